import SignalWire

/// A refresh token: its login's family, its generation, and a secret.
///
/// All refresh tokens of a login begin with the same 144 random bits, its family, which nobody knows who has not had one
/// of them. So an old one is known by its family and generation for as long as the login lasts, though nothing of the
/// token itself is kept. The three parts are 18, 6 and 33 bytes in base64url: each ends with a whole character, so that
/// there is one way to write a token.
struct RefreshToken: Hashable, Sendable {
    /// What an old token is known by.
    struct Mark: Hashable, Sendable {
        /// The digest of the family.
        var family: SecretDigest
        /// Counts the exchanges since the login.
        var generation: UInt64
    }

    private static let familyBytes = 18
    private static let generationBytes = 6
    private static let secretBytes = 33
    private static let familyLength = familyBytes / 3 * 4
    private static let generationLength = generationBytes / 3 * 4
    private static let length = (familyBytes + generationBytes + secretBytes) / 3 * 4

    let text: Redacted<String>
    let generation: UInt64
    private var family: Substring { text.secret.prefix(Self.familyLength) }

    var mark: Mark { Mark(family: SecretDigest(of: String(family)), generation: generation) }
    var digest: SecretDigest { SecretDigest(of: text.secret) }

    /// A new one.
    ///
    /// - Parameter earlier: One of the same login; `nil` begins a family.
    init(after earlier: RefreshToken?, generation: UInt64) {
        let family = earlier.map { String($0.family) } ?? FreshSecret.text(bytes: Self.familyBytes)
        let number = (0..<Self.generationBytes).reversed().map { UInt8(truncatingIfNeeded: generation >> (8 * $0)) }
        text = Redacted(family + FreshSecret.base64url(number) + FreshSecret.text(bytes: Self.secretBytes))
        self.generation = generation
    }

    /// One that a client shows; `nil` if it is none, or from before there were families.
    init?(_ shown: Redacted<String>) {
        let bytes = Array(shown.secret.utf8)
        guard bytes.count == Self.length else { return nil }
        let values = bytes.compactMap { Self.value($0) }
        guard values.count == Self.length else { return nil }
        text = shown
        generation = values.dropFirst(Self.familyLength).prefix(Self.generationLength)
            .reduce(0) { $0 << 6 | UInt64($1) }
    }

    /// What a character of base64url stands for (RFC 4648 §5).
    private static func value(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
