internal import Core

/// The address of a bot's server: an absolute URL without a user, a password or a fragment (RFC 3986).
///
/// Its parts are what a connection is made with, so that no second reader of the text can take another host from it.
public struct WebAddress: Hashable, Sendable {
    /// The protocol of an address.
    public enum Scheme: String, CaseIterable, Hashable, Sendable {
        case http, https, ws, wss
        /// AudioSocket over TCP, which has no standard URL.
        case tcp

        /// The port if none is named.
        public var port: Int {
            switch self {
            case .http, .ws: 80
            case .https, .wss: 443
            case .tcp: 9_092
            }
        }
        /// Whether TLS protects it.
        public var isSecure: Bool { port == 443 }
        /// Schemes of requests.
        public static let requests: Set<Scheme> = [.http, .https]
        /// Schemes of WebSockets.
        public static let sockets: Set<Scheme> = [.ws, .wss]
    }

    /// The protocol.
    public let scheme: Scheme
    /// A name or an address, in lower case; an IPv6 address without its brackets.
    public let host: String
    /// 1 to 65535.
    public let port: Int
    /// The path, which begins with a slash, and the query.
    public let target: String
    /// The whole as it was written.
    public let text: String

    /// For logs and errors: without the query, which may have a secret.
    public var shown: String { String(text.prefix { $0 != "?" }) }

    /// Reads an absolute URL of up to ``WireLimits/addressBytes``.
    public init?(_ text: String, _ schemes: Set<Scheme>) {
        guard text.utf8.count <= WireLimits.addressBytes, text.utf8.allSatisfy(Self.isAllowed),
            let colon = text.firstIndex(of: ":"), let scheme = Scheme(rawValue: text[..<colon].lowercased()),
            schemes.contains(scheme), text[colon...].hasPrefix("://")
        else { return nil }
        let rest = text[colon...].dropFirst(3)
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        guard let (host, port) = Self.hostAndPort(rest[..<end]) else { return nil }
        self.scheme = scheme
        self.host = host
        self.port = port ?? scheme.port
        target = (rest[end...].hasPrefix("/") ? "" : "/") + rest[end...]
        self.text = text
    }

    /// The address that a reference in a document from here means; nothing if it is none.
    public func resolving(_ reference: String, _ schemes: Set<Scheme> = Scheme.requests) -> WebAddress? {
        guard !reference.isEmpty else { return nil }
        return WebAddress(URIReference(text).rooted.resolving(URIReference(reference)).withoutFragment.text, schemes)
    }

    /// Printable ASCII of RFC 3986, without the number sign.
    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x21, 0x24...0x3B, 0x3D, 0x3F...0x5B, 0x5D, 0x5F, 0x61...0x7A, 0x7E: true
        default: false
        }
    }

    private static func hostAndPort(_ text: Substring) -> (String, Int?)? {
        var host = text
        var port: Int?
        if let colon = text.lastIndex(of: ":"), !text[colon...].contains("]") {
            let digits = text[text.index(after: colon)...]
            guard digits.utf8.count <= 5, let number = Digits.number(digits, upTo: 0xFFFF), number > 0 else {
                return nil
            }
            port = number
            host = text[..<colon]
        }
        if host.hasPrefix("["), host.hasSuffix("]") {
            let inner = host.dropFirst().dropLast()
            guard inner.contains(":"), inner.utf8.count <= 45,
                inner.allSatisfy({ $0.isHexDigit || $0 == ":" || $0 == "." })
            else { return nil }
            return (inner.lowercased(), port)
        }
        guard (1...253).contains(host.utf8.count), !host.hasPrefix("."), !host.contains(".."),
            host.allSatisfy({ $0.isLetter || $0.isNumber || $0 == "." || $0 == "-" || $0 == "_" })
        else { return nil }
        return (host.lowercased(), port)
    }
}

/// A request to send to a bot's server: its address and method.
public struct Webhook: Hashable, Sendable {
    /// The methods that there are.
    public enum Method: String, CaseIterable, Hashable, Sendable {
        case get = "GET"
        case post = "POST"
    }

    /// The target of the request.
    public let address: WebAddress
    /// How it is sent.
    public let method: Method

    /// Makes one.
    public init(_ address: WebAddress, _ method: Method = .post) {
        self.address = address
        self.method = method
    }
}
