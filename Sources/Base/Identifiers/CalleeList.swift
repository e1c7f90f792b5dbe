internal import Core

/// The target of a call in its normal form, by which a ``CalleeList`` judges it.
public struct Callee: Sendable, CustomStringConvertible {
    /// A user's name or a telephone number, without escapes.
    public let name: String
    /// The host, with its port if it names one; nil for the account's own service.
    public let host: String?

    /// Takes a name and a host as they were written.
    public init(name: String, host: String? = nil) {
        self.name = name
        self.host = host.map(Self.normal)
    }

    /// A name that may have a host behind its last `@`.
    public init(_ text: String) {
        if let at = text.lastIndex(of: "@"), at > text.startIndex {
            self.init(name: String(text[..<at]), host: String(text[text.index(after: at)...]))
        } else {
            self.init(name: text)
        }
    }

    /// `name` or `name@host`.
    public var description: String { host.map { "\(name)@\($0)" } ?? name }

    /// A host in lower case, without the final dot of a name that is complete (RFC 1034 §3.1). An IPv6 address in brackets has its
    /// canonical text (RFC 5952); without them it stays as it is, because its last group may be a port.
    public static func normal(host: String) -> String {
        var host = host.lowercased()
        if host.hasPrefix("["), let end = host.firstIndex(of: "]"),
            let address = SocketAddress(literal: host[..<end].dropFirst()), address.isIPv6
        {
            return "[\(address.host)]" + String(host[end...].dropFirst())
        }
        if host.hasSuffix("."), host.utf8.count > 1 { host.removeLast() }
        return host
    }
}

/// One entry of a ``CalleeList``: a telephone number's pattern (``NumberPattern``), a user's name, or the beginning of one with `*`
/// behind it; with `@` and a host behind that, a callee at another service.
///
/// A pattern of digits matches telephone numbers only, so that `49*` admits no `49x`. The text that `*` matches in a
/// name leads to no other host, has no parameters, and is no order of a telephone network.
public struct CalleePattern: Hashable, Sendable, CustomStringConvertible {
    private enum Name: Hashable, Sendable {
        case number(NumberPattern)
        case exactly([UInt8])
        case beginning([UInt8])
    }

    /// The most bytes of one.
    private static let mostBytes = 256
    /// `*` matches none of these.
    private static let special: Set<UInt8> = Set("@:;?/%*#".utf8)

    /// The pattern.
    public let text: String
    private let name: Name
    /// In normal form; nil for the account's own service.
    private let host: String?

    /// Takes a text from outside; nil if it is no pattern.
    public init?(_ text: String) {
        let callee = Callee(text)
        let name = callee.name
        guard text.utf8.count <= Self.mostBytes, !name.isEmpty, callee.host != "", callee.host?.contains("*") != true,
            !name.contains(":"), !name.hasPrefix("@")
        else { return nil }
        if name != "*", let pattern = NumberPattern(name) {
            self.name = .number(pattern)
        } else {
            let goesOn = name.hasSuffix("*")
            let bytes = Array(name.utf8.dropLast(goesOn ? 1 : 0))
            // A question mark would be a digit, and an asterisk elsewhere is none that this understands.
            guard !bytes.contains(UInt8(ascii: "*")), !bytes.contains(UInt8(ascii: "?")) else { return nil }
            self.name = goesOn ? .beginning(bytes) : .exactly(bytes)
        }
        self.text = text
        host = callee.host
    }

    /// The pattern.
    public var description: String { text }

    /// Whether a callee is meant.
    ///
    /// - Parameter ownHost: The account's own service, which a pattern may name, in normal form.
    func matches(_ callee: Callee, ownHost: String?) -> Bool {
        guard (host == ownHost ? nil : host) == (callee.host == ownHost ? nil : callee.host) else { return false }
        // Names are compared by their bytes: one that only looks the same is another.
        switch name {
        case .number(let pattern): return TelephoneNumber(callee.name).map(pattern.matches) ?? false
        case .exactly(let bytes): return callee.name.utf8.elementsEqual(bytes)
        case .beginning(let bytes):
            let rest = callee.name.utf8.dropFirst(bytes.count)
            return !callee.name.isEmpty && callee.name.utf8.starts(with: bytes)
                && !rest.contains { Self.special.contains($0) || $0 < 0x20 || $0 == 0x7F }
        }
    }
}

/// The callees that a third party may name: by a transfer that a peer asks for, by a redirection, or at a request of a
/// bot's server. A callee that no pattern admits is refused.
public struct CalleeList: Hashable, Sendable {
    private let patterns: [CalleePattern]
    private let ownHost: String?

    /// Makes a list; empty by default, so that no callee is admitted.
    ///
    /// - Parameter ownHost: The host of the account's own service, if its users are known by one.
    public init(_ patterns: [CalleePattern] = [], ownHost: String? = nil) {
        self.patterns = patterns
        self.ownHost = ownHost.map(Callee.normal)
    }

    /// Whether no callee is admitted.
    public var isEmpty: Bool { patterns.isEmpty }

    /// Whether a callee may be called.
    public func admits(_ callee: Callee) -> Bool { patterns.contains { $0.matches(callee, ownHost: ownHost) } }
}
