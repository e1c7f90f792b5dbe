// DomainNames: questions to the domain name system, and its answers, as values. Replies are read here; they are sent for by
// `NameLookup`.

public import Core

/// A question about a name.
public struct DNSQuestion: Hashable, Sendable, CustomStringConvertible {
    /// The kinds of records.
    public enum Kind: String, Hashable, Sendable {
        /// A and AAAA.
        case addresses
        /// SRV (RFC 2782).
        case services = "SRV"
        /// NAPTR (RFC 3403).
        case rules = "NAPTR"
    }

    /// The name in lower case, without a dot at its end.
    public let name: String
    /// The kind of records.
    public let kind: Kind

    /// Makes a question.
    public init(_ name: String, _ kind: Kind) {
        let name = name.lowercased()
        self.name = name.hasSuffix(".") ? String(name.dropLast()) : name
        self.kind = kind
    }

    /// For example `SRV of _sip._udp.example.org`.
    public var description: String { "\(kind.rawValue) of \(name)" }
}

/// A server of a service (RFC 2782).
public struct SRVRecord: Hashable, Sendable {
    /// Records with the smallest priority are tried first.
    public let priority: UInt16
    /// The share of the load among those of one priority.
    public let weight: UInt16
    /// Its port; 0 if there is no such server.
    public let port: UInt16
    /// Its name in lower case; empty if the service is not there by decision.
    public let target: String

    /// Makes a record.
    public init(priority: UInt16, weight: UInt16, port: UInt16, target: String) {
        self.priority = priority
        self.weight = weight
        self.port = port
        self.target = target
    }
}

/// A rule that leads from a name to a service (RFC 3403). Regular expressions are not read.
public struct NAPTRRecord: Hashable, Sendable {
    /// Smaller orders come first.
    public let order: UInt16
    /// Among rules of one order smaller preferences come first.
    public let preference: UInt16
    /// In lower case: `s` leads to SRV records, `a` to addresses.
    public let flags: String
    /// In upper case, such as `SIP+D2T`.
    public let service: String
    /// The name that it leads to, in lower case; empty if the rule has a regular expression.
    public let replacement: String

    /// Makes a record.
    public init(order: UInt16, preference: UInt16, flags: String, service: String, replacement: String) {
        self.order = order
        self.preference = preference
        self.flags = flags.lowercased()
        self.service = service.uppercased()
        self.replacement = replacement
    }
}

/// The records that answer a question.
public enum DNSRecords: Hashable, Sendable {
    /// Answer to ``DNSQuestion/Kind/addresses``, the best first; their ports are 0.
    case addresses([SocketAddress])
    /// Answer to ``DNSQuestion/Kind/services``.
    case services([SRVRecord])
    /// Answer to ``DNSQuestion/Kind/rules``.
    case rules([NAPTRRecord])
}

/// The answer to a question.
public enum DNSAnswer: Hashable, Sendable {
    /// The records, and how long they may be kept.
    case found(DNSRecords, lifetime: Duration)
    /// The name, or the kind of record, does not exist; and for how long that may be kept, which is not at all if the zone does not say
    /// it (RFC 2308 §5).
    case nothing(lifetime: Duration)
    /// No server has answered, or none could.
    case failed
}
