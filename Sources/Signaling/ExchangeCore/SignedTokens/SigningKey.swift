public import SignalWire

/// An application's key: its name, which tokens carry, and the secret that signs them.
public struct SigningKey: Sendable, CustomStringConvertible, CustomReflectable {
    /// Bytes in a secret, at least: as many as the hash has (RFC 7518 §3.2).
    public static let minimumSecretBytes = 32

    /// The name.
    public let name: ApplicationKey
    let secret: Redacted<[UInt8]>

    /// Makes a key; `nil` if the secret is shorter than ``minimumSecretBytes``.
    public init?(name: ApplicationKey, secret: String) {
        guard secret.utf8.count >= Self.minimumSecretBytes else { return nil }
        self.name = name
        self.secret = Redacted(Array(secret.utf8))
    }

    /// The name alone.
    public var description: String { name.text }
    /// A mirror with the name alone.
    public var customMirror: Mirror { Mirror(self, children: ["name": name]) }
}
