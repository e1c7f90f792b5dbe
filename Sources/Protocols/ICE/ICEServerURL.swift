internal import Core

/// Where a STUN or TURN server is, as a URL: `stun[s]:HOST[:PORT]` or `turn[s]:HOST[:PORT][?transport=udp|tcp]`.
///
/// Source: RFC 7064 §3.1, RFC 7065 §3.1. What browsers refuse is refused here, too, such as a transport of another name.
public struct ICEServerURL: Hashable, Sendable {
    /// What the server does, and whether it is reached over TLS.
    public enum Scheme: String, Sendable {
        case stun, stuns, turn, turns

        /// Whether the server relays, for which it wants a name and a password.
        public var isRelay: Bool {
            switch self {
            case .stun, .stuns: false
            case .turn, .turns: true
            }
        }

        /// Whether it is reached over TLS.
        public var isSecure: Bool {
            switch self {
            case .stun, .turn: false
            case .stuns, .turns: true
            }
        }
    }

    /// What the server does.
    public let scheme: Scheme
    /// A name or an address; an IPv6 address without its brackets.
    public let host: String
    /// 1…65535; 3478 unless it is given, and 5349 over TLS.
    public let port: UInt16
    /// How a TURN server is reached.
    public let transport: ICEServer.Transport

    /// Reads a URL; nil if `text` is not of that form.
    public init?(_ text: String) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let scheme = Scheme(rawValue: parts[0].lowercased()) else { return nil }
        let pieces = parts[1].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard let (host, port) = Self.place(pieces[0], scheme) else { return nil }
        var usesTCP = false
        if pieces.count > 1 {
            guard scheme.isRelay else { return nil }
            switch pieces[1].lowercased() {
            case "transport=udp": break
            case "transport=tcp": usesTCP = true
            default: return nil
            }
        }
        self.scheme = scheme
        self.host = host
        self.port = port
        transport = scheme.isSecure ? .tls(hostName: host) : usesTCP ? .tcp : .udp
    }

    private static func place(_ text: Substring, _ scheme: Scheme) -> (host: String, port: UInt16)? {
        var host = text
        var rest = Substring()
        if text.first == "[" {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
            rest = text[text.index(after: end)...]
            guard SocketAddress(literal: host)?.isIPv6 == true else { return nil }
        } else {
            if let colon = text.firstIndex(of: ":") { (host, rest) = (text[..<colon], text[colon...]) }
            guard !host.isEmpty, host.utf8.allSatisfy(isOfName) else { return nil }
        }
        guard !rest.isEmpty else { return (String(host), scheme.isSecure ? 5_349 : 3_478) }
        let digits = rest.dropFirst()
        guard rest.first == ":", let port = Digits.number(digits, upTo: UInt16.max), port > 0 else { return nil }
        return (String(host), port)
    }

    /// Whether hosts are named by the character, of those that a `reg-name` may have (RFC 3986 §3.2.2).
    private static func isOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
