internal import Core
internal import Cryptography
internal import Enrollment

/// A private key by which a device logs in (contract AUTH-13); never printed.
public struct DeviceLoginKey: Hashable, Sendable {
    private let key: Ed25519.PrivateKey
    /// What the exchange has called the enrolment: no other exchange does, so that no other has use of a signature.
    public let enrollment: String

    /// Takes the text of a key file.
    ///
    /// - Parameters:
    ///   - pem: As ``text`` writes it; others' PKCS#8 of an Ed25519 key will do.
    ///   - enrollment: Empty for a key that has not joined yet.
    /// - Returns: `nil` if there is no such key in it.
    public init?(pem: String, enrollment: String) {
        guard let seed = KeyFile.seed(in: pem), let key = Ed25519.PrivateKey(seed: seed) else { return nil }
        self.key = key
        self.enrollment = enrollment
    }

    /// Makes a key that has not joined yet.
    ///
    /// - Returns: `nil` if the system's OpenSSL has no Ed25519.
    public init?() {
        var generator = SystemRandomNumberGenerator()
        guard let key = Ed25519.PrivateKey(using: &generator) else { return nil }
        self.key = key
        enrollment = ""
    }

    /// For a file of mode 0600.
    public var text: String { KeyFile.text(seed: key.seed) }

    /// For the name of a file: eight letters and digits of the public half.
    public var name: String { String((publicKey?.text ?? "").filter { $0 != "-" && $0 != "_" }.prefix(8)) }

    /// The public half, for the wire.
    var publicKey: DeviceKeyText? { DeviceKeyText(bytes: key.publicKey) }

    /// The signature of a text, for the wire.
    func sign(_ proof: [UInt8]) -> String { Base64URL.text(key.sign(proof)) }

    /// Of one key and one enrolment.
    public static func == (left: Self, right: Self) -> Bool {
        left.key.publicKey == right.key.publicKey && left.enrollment == right.enrollment
    }

    /// Hashes the public half.
    public func hash(into hasher: inout Hasher) { hasher.combine(key.publicKey) }
}

extension DeviceLoginKey: CustomStringConvertible, CustomReflectable {
    /// The public half alone.
    public var description: String { "the key \(publicKey?.text.prefix(8) ?? "")…" }
    /// Shows no secret to a debugger's or logger's reflection either.
    public var customMirror: Mirror { Mirror(self, children: ["key": description]) }
}
