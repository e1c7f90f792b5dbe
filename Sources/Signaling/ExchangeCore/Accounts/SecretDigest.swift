internal import Core
internal import Cryptography
public import SignalWire

/// A secret's SHA-256 digest: how random secrets (tokens, application secrets) are kept and compared.
///
/// Equality takes the same time wherever the first difference is. Not for passwords, which people choose and others
/// guess; see ``PasswordHash`` for those.
public struct SecretDigest: Hashable, Sendable {
    /// Bytes in a digest.
    static let size = 32
    private let bytes: [UInt8]

    /// Digests a secret.
    public init(of secret: String) { bytes = Digest.sha256(Array(secret.utf8)) }

    /// Reads a digest written as 64 hexadecimal digits; `nil` if `hex` is not that.
    public init?(hex: String) {
        guard let bytes = Hexadecimal.bytes(of: hex.utf8), bytes.count == Self.size else { return nil }
        self.bytes = bytes
    }

    /// The digest as 64 hexadecimal digits.
    public var hex: String { Hexadecimal.text(bytes) }

    /// Compares in constant time.
    public static func == (left: Self, right: Self) -> Bool { Digest.areEqual(left.bytes, right.bytes) }
}

/// Makes secrets.
public enum FreshSecret {
    /// 256 random bits from the system, in base64url: 43 characters.
    public static func make() -> Redacted<String> { Redacted(text(bytes: 32)) }

    /// Such a secret as an access token, which names the shard that has the login, if there are several.
    package static func accessToken(of shard: Shard?) -> Redacted<String> {
        Redacted((shard?.prefix ?? "") + text(bytes: 32))
    }

    /// Random bytes from the system, in base64url without padding.
    package static func text(bytes count: Int) -> String {
        Base64URL.text(bytes(count))
    }

    /// Random bytes from the system.
    package static func bytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
}
