internal import Core

/// What a device signs to show that it has a key (contract AUTH-13).
///
/// Each text names its purpose, and serves no other: a signature of one is not valid for another purpose, exchange,
/// user or key.
public enum KeyProof {
    /// What is signed to enrol: proves that the key belongs to the holder of the code.
    public static func enrolling(_ secret: EnrollmentSecret, key: DeviceKeyText) -> [UInt8] {
        lines(["handset-enroll-1", secret.characters, key.text])
    }

    /// What is signed to log in.
    ///
    /// - Parameters:
    ///   - enrollment: What the exchange has called the enrolment, which no other exchange does.
    ///   - challenge: From the exchange, for this login alone.
    public static func loggingIn(user: String, enrollment: String, key: DeviceKeyText, challenge: String) -> [UInt8] {
        lines(["handset-login-1", user, enrollment, key.text, challenge])
    }

    /// One line for each part. No part contains a line break, because names and base64url have none.
    private static func lines(_ parts: [String]) -> [UInt8] { parts.flatMap { Array("\($0)\n".utf8) } }
}

/// A public key of Ed25519 (RFC 8032), as text: base64url without padding, 43 characters.
public struct DeviceKeyText: Hashable, Sendable {
    /// The 32 bytes of the key.
    public let bytes: [UInt8]

    /// Takes a key's bytes; `nil` for another number than 32.
    public init?(bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        self.bytes = bytes
    }

    /// Reads a key.
    public init?(_ text: some StringProtocol) {
        guard text.utf8.count == 43, let bytes = Base64URL.bytes(of: text.utf8) else { return nil }
        self.init(bytes: bytes)
    }

    /// As it is on the wire.
    public var text: String { Base64URL.text(bytes) }
}

/// The text of a file that keeps a private key of Ed25519: PEM (RFC 7468) of PKCS#8 (RFC 8410), as OpenSSL writes it.
public enum KeyFile {
    /// Longer texts are no such files.
    public static let maximumBytes = 4_096

    private static let begin = "-----BEGIN PRIVATE KEY-----"
    private static let end = "-----END PRIVATE KEY-----"
    /// The bytes before the seed: version 0, the algorithm 1.3.101.112, and two octet strings (RFC 8410 §7).
    private static let prefix: [UInt8] = [
        0x30, 0x2E, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
    ]

    /// Writes a key.
    ///
    /// - Parameter seed: 32 bytes.
    public static func text(seed: [UInt8]) -> String { "\(begin)\n\(Base64.text(prefix + seed))\n\(end)\n" }

    /// The seed of the key in a file: 32 bytes, or `nil` if there is no such key in it.
    public static func seed(in text: String) -> [UInt8]? {
        guard text.utf8.count <= maximumBytes else { return nil }
        let lines = text.split(whereSeparator: \.isNewline).map { line in line.filter { !$0.isWhitespace } }
        let marks = [begin, end].map { mark in lines.firstIndex(of: mark.filter { !$0.isWhitespace }) }
        guard let first = marks[0], let last = marks[1], first < last,
            let bytes = Base64.bytes(of: lines[(first + 1)..<last].joined().utf8), bytes.starts(with: prefix),
            bytes.count == prefix.count + 32
        else { return nil }
        return Array(bytes.dropFirst(prefix.count))
    }
}
