public import Core

// ICE: finding a path to a peer (RFC 8445, RFC 8838) and keeping its consent (RFC 7675), with TURN (RFC 8656), without I/O.

/// One address at which a side may be reached, as sent to the other side (RFC 8445 §5.1, RFC 8839 §5.1).
public struct Candidate: Hashable, Sendable {
    /// The address of a candidate: known, or a name that is still to be looked up.
    public enum Location: Hashable, Sendable {
        /// A literal address.
        case address(SocketAddress)
        /// A host name, as sent by browsers that hide their addresses (".local", by multicast DNS).
        case name(String, port: UInt16)
    }

    /// Candidates of the same kind, base and server share it: 1 to 32 letters, digits, "+" or "/".
    public var foundation: String
    /// 1 for RTP and everything multiplexed with it; 2 for separate RTCP.
    public var component: Int
    /// "udp" or "tcp", in lower case. Only UDP candidates are used.
    public var transport: String
    /// The higher, the better.
    public var priority: UInt32
    /// Where.
    public var location: Location
    /// How it came to be.
    public var type: CandidateType
    /// The address behind it, for all types except host. Only for diagnosis, and often hidden.
    public var relatedAddress: SocketAddress?
    /// The user name fragment of its generation, if given (RFC 8838, RFC 8840).
    public var usernameFragment: String?

    /// Makes a candidate for UDP and the first component.
    public init(
        foundation: String, priority: UInt32, address: SocketAddress, type: CandidateType,
        relatedAddress: SocketAddress? = nil, usernameFragment: String? = nil
    ) {
        self.foundation = foundation
        component = 1
        transport = "udp"
        self.priority = priority
        location = .address(address)
        self.type = type
        self.relatedAddress = relatedAddress
        self.usernameFragment = usernameFragment
    }

    /// The literal address; `nil` while there is only a name.
    public var address: SocketAddress? {
        switch location {
        case .address(let address): address
        case .name: nil
        }
    }

    /// The same candidate with its name looked up.
    public func resolved(to address: SocketAddress) -> Candidate {
        var copy = self
        if case .name(_, let port) = location { copy.location = .address(address.withPort(port)) }
        return copy
    }
}

/// How an address came to be a candidate (RFC 8445 §4). In the order of preference, best first.
public enum CandidateType: String, Sendable {
    /// An address of the machine itself.
    case host
    /// An address from which a peer received a check, or to which one of our checks was answered.
    case peerReflexive = "prflx"
    /// An address that a STUN or TURN server saw.
    case serverReflexive = "srflx"
    /// An address of a TURN server.
    case relayed = "relay"

    /// The type's share of a priority (RFC 8445 §5.1.2.2).
    var preference: UInt32 {
        switch self {
        case .host: 126
        case .peerReflexive: 110
        case .serverReflexive: 100
        case .relayed: 0
        }
    }

    /// A candidate's priority (RFC 8445 §5.1.2.1), for the only component.
    func priority(localPreference: UInt16) -> UInt32 {
        preference << 24 | UInt32(localPreference) << 8 | 255
    }
}

/// Candidates as text: the value of SDP's `candidate` attribute (RFC 8839 §5.1).
extension Candidate {
    /// Longer texts are refused.
    public static let maximumTextBytes = 1_024

    /// Parses a candidate, with or without "candidate:" or "a=candidate:" before it. Unknown extensions are skipped.
    ///
    /// - Returns: nil if the text is not a candidate, or one of a type that is not known.
    public init?(parsing text: some StringProtocol) {
        guard text.utf8.count <= Self.maximumTextBytes else { return nil }
        var fields = String(text).split { $0.isWhitespace }.map(String.init)
        guard let first = fields.first else { return nil }
        for prefix in ["a=candidate:", "candidate:"] where first.hasPrefix(prefix) {
            fields[0] = String(first.dropFirst(prefix.count))
            break
        }
        guard fields.count >= 8, fields[6] == "typ", Self.isToken(fields[0], upTo: 32),
            Self.isToken(fields[2].filter { $0 != "-" }, upTo: 32),
            let component = Self.number(fields[1], upTo: 256), component > 0,
            let priority = Self.number(fields[3], upTo: UInt64(UInt32.max)),
            let port = Self.number(fields[5], upTo: 65_535), let type = CandidateType(rawValue: fields[7].lowercased()),
            let location = Self.location(fields[4], UInt16(truncatingIfNeeded: port))
        else { return nil }
        foundation = fields[0]
        self.component = Int(truncatingIfNeeded: component)
        transport = fields[2].lowercased()
        self.priority = UInt32(truncatingIfNeeded: priority)
        self.location = location
        self.type = type
        relatedAddress = nil
        usernameFragment = nil
        readExtensions(Array(fields.dropFirst(8)))
    }

    private mutating func readExtensions(_ fields: [String]) {
        var relatedHost: String?
        var relatedPort: UInt16 = 0
        var index = 0
        while index + 1 < fields.count {
            let value = fields[index + 1]
            switch fields[index] {
            case "raddr": relatedHost = value
            case "rport": relatedPort = UInt16(truncatingIfNeeded: Self.number(value, upTo: 65_535) ?? 0)
            case "ufrag": usernameFragment = Self.isToken(value, upTo: 256) ? value : nil
            default: break
            }
            index += 2
        }
        relatedAddress = relatedHost.flatMap { SocketAddress(host: $0, port: relatedPort) }
    }

    /// The attribute's value, beginning with the foundation; "candidate:" is left to the caller.
    public var attributeValue: String {
        let (host, port): (String, UInt16) =
            switch location {
            case .address(let address): (address.host, address.port)
            case .name(let name, let port): (name, port)
            }
        var text = "\(foundation) \(component) \(transport) \(priority) \(host) \(port) typ \(type.rawValue)"
        if let relatedAddress { text += " raddr \(relatedAddress.host) rport \(relatedAddress.port)" }
        if let usernameFragment { text += " ufrag \(usernameFragment)" }
        return text
    }

    private static func location(_ host: String, _ port: UInt16) -> Location? {
        if let address = SocketAddress(host: host, port: port) { return .address(address) }
        // Only names that a resolver can be asked for: letters, digits, hyphens and dots.
        guard host.utf8.count <= 253, host.contains("."), let last = host.last, last != ".",
            host.utf8.contains(where: { isAlphanumeric($0) && !(48...57).contains($0) }),
            host.utf8.allSatisfy({ isAlphanumeric($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") })
        else { return nil }
        return .name(host, port: port)
    }

    private static func number(_ text: String, upTo limit: UInt64) -> UInt64? {
        guard !text.isEmpty, text.utf8.count <= 10, text.utf8.allSatisfy({ (48...57).contains($0) }),
            let value = UInt64(text), value <= limit
        else { return nil }
        return value
    }

    /// Whether `text` is one to `limit` of the characters that ICE allows (RFC 8839 §5.1: ice-char).
    static func isToken(_ text: String, upTo limit: Int) -> Bool {
        (1...limit).contains(text.utf8.count)
            && text.utf8.allSatisfy { isAlphanumeric($0) || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "/") }
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: false
        }
    }
}
