internal import Core
internal import Cryptography

/// Makes tags, branches, Call-IDs and nonces that cannot be guessed: an HMAC of a counter under a secret key.
///
/// The key is the injected randomness: the same key gives the same tokens, so tests repeat.
public struct TokenSource: Sendable {
    private let key: [UInt8]
    private var counter: UInt64 = 0

    /// - Parameter key: 16 random bytes or more, of one owner only.
    public init(key: [UInt8]) {
        precondition(key.count >= 16, "a token source needs 16 random bytes or more")
        self.key = key
    }

    /// The next token: 20 hexadecimal digits, 80 bits.
    public mutating func next() -> String { Hexadecimal.text(bytes().prefix(10)) }

    /// The token of a number: always the same for that number, and never one of ``next()``.
    public func token(of number: UInt64) -> String {
        let bytes = (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
        return Hexadecimal.text(Digest.hmacSHA256(key, Array("number".utf8) + bytes).prefix(10))
    }

    /// The next random number, such as a first `CSeq` or `RSeq`.
    public mutating func number() -> UInt64 { bytes().prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }

    private mutating func bytes() -> [UInt8] {
        counter += 1
        return Digest.hmacSHA256(key, (0..<8).map { UInt8(truncatingIfNeeded: counter >> (8 * $0)) })
    }
}
