// Enrollment: how a device joins an exchange by a code, and logs in by a key from then on (contract AUTH-13). Texts and
// what is signed; no sockets, no clock.

/// What `handset user enroll` prints and `handset enroll` reads: where the exchange is, the secret that lets one device
/// join, and the fingerprint of the exchange's authority.
///
/// As text: `HANDSET://HOST:PORT/SECRET/FINGERPRINT`. Without a fingerprint the exchange speaks plain text. Small letters
/// and hyphens make no difference in the last two parts.
public struct EnrollmentCode: Hashable, Sendable {
    /// Texts longer than this are no codes.
    public static let maximumBytes = 512

    /// Why a text is no code; to be read after the text's name.
    public struct Fault: Error, Hashable, Sendable, CustomStringConvertible {
        /// The sentence.
        public let description: String

        init(_ description: String) { self.description = description }
    }

    /// A name or an address, in lower case, an IPv6 address without brackets.
    public let host: String
    /// The TCP port.
    public let port: Int
    /// The secret that one device joins with.
    public let secret: EnrollmentSecret
    /// Of the exchange's authority; `nil` if the exchange speaks plain text.
    public let fingerprint: AuthorityFingerprint?

    /// Makes a code.
    ///
    /// - Throws: If `host` is neither a name nor an address, or there is no such port.
    public init(host: String, port: Int, secret: EnrollmentSecret, fingerprint: AuthorityFingerprint?) throws(Fault) {
        guard Self.isHost(host) else { throw Fault("names a host that is neither a name nor an address") }
        guard (1...65_535).contains(port) else { throw Fault("has no port from 1 to 65535") }
        self.host = host.lowercased()
        self.port = port
        self.secret = secret
        self.fingerprint = fingerprint
    }

    /// Reads a code.
    public init(_ text: String) throws(Fault) {
        guard text.utf8.count <= Self.maximumBytes else { throw Fault("is too long for a code") }
        let trimmed = text.drop { $0.isWhitespace }
        let end = trimmed.lastIndex { !$0.isWhitespace }.map { trimmed.index(after: $0) } ?? trimmed.startIndex
        let code = trimmed[..<end]
        guard code.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), code.lowercased().hasPrefix(Self.scheme) else {
            throw Fault("does not begin with \(Self.scheme.uppercased()), as codes of `handset user enroll` do")
        }
        let parts = code.dropFirst(Self.scheme.count).split(separator: "/", omittingEmptySubsequences: false)
        guard (2...3).contains(parts.count) else { throw Fault("is not complete: parts are missing after the host") }
        let (host, port) = try Self.authority(parts[0])
        guard let secret = EnrollmentSecret(parts[1]) else {
            throw Fault(
                "has a mistake in its secret, which is 20 letters and digits; check it against what was printed")
        }
        var fingerprint: AuthorityFingerprint?
        if parts.count == 3 {
            fingerprint = AuthorityFingerprint(parts[2])
            guard fingerprint != nil else {
                throw Fault(
                    "has a mistake in its last part, which is 32 letters and digits; check it against what was printed")
            }
        }
        try self.init(host: host, port: port, secret: secret, fingerprint: fingerprint)
    }

    /// As it is printed, in characters that a QR code packs well.
    public var text: String {
        let name = host.contains(":") ? "[\(host)]" : host
        let tail = fingerprint.map { "/\($0.text)" } ?? ""
        return "\(Self.scheme)\(name):\(port)/\(secret.text)".uppercased() + tail
    }

    /// The exchange's base URL.
    public var server: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return "\(fingerprint == nil ? "http" : "https")://\(name):\(port)"
    }

    private static let scheme = "handset://"

    private static func authority(_ text: Substring) throws(Fault) -> (host: String, port: Int) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            throw Fault("has no port after its host")
        }
        let host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]"), host.contains(":") {
            return (String(host.dropFirst().dropLast()), Int(port))
        }
        guard !host.contains(":") else { throw Fault("has an IPv6 address without brackets") }
        return (String(host), Int(port))
    }

    private static func isHost(_ host: String) -> Bool {
        guard (1...253).contains(host.utf8.count) else { return false }
        let isAddress = host.contains(":")
        return host.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
                UInt8(ascii: "A")...UInt8(ascii: "F"), UInt8(ascii: "."):
                true
            case UInt8(ascii: "g")...UInt8(ascii: "z"), UInt8(ascii: "G")...UInt8(ascii: "Z"), UInt8(ascii: "-"),
                UInt8(ascii: "_"):
                !isAddress
            case UInt8(ascii: ":"): isAddress
            default: false
            }
        }
    }
}

/// Shows no secret in a log or an error.
extension EnrollmentCode: CustomStringConvertible, CustomReflectable {
    /// Names the exchange only.
    public var description: String { "a code for \(server)" }
    /// Shows no secret to a debugger's or logger's reflection either.
    public var customMirror: Mirror { Mirror(self, children: ["server": server]) }
}
