internal import Cryptography

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
        let digits = hex.utf8.compactMap { byte -> UInt8? in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
            default: nil
            }
        }
        guard digits.count == 2 * Self.size, hex.utf8.count == digits.count else { return nil }
        bytes = stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    /// The digest as 64 hexadecimal digits.
    public var hex: String { Hexadecimal.text(bytes) }

    /// Compares in constant time.
    public static func == (left: Self, right: Self) -> Bool { Digest.areEqual(left.bytes, right.bytes) }
}
