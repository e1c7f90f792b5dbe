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
