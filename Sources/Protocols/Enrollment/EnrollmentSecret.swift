/// The secret of an enrolment code: 20 characters. The first four identify the enrolment, and the other sixteen, 80
/// random bits, authorise it.
///
/// So a wrong guess at one enrolment is distinct from random guesses, and random guesses cannot use up the attempts of
/// the right device.
public struct EnrollmentSecret: Hashable, Sendable {
    /// Characters that find the enrolment.
    public static let locatorCount = 4
    /// Characters in all.
    public static let count = 20

    /// Identifies the enrolment; not secret.
    public let locator: String
    /// All characters, in capital letters: secret.
    public let characters: String

    /// Reads a secret; hyphens and the letters' case make no difference.
    ///
    /// - Returns: `nil` for anything else.
    public init?(_ text: some StringProtocol) {
        guard text.utf8.count <= 64, let values = Base32.values(of: text), values.count == Self.count else {
            return nil
        }
        characters = Base32.text(of: values)
        locator = String(characters.prefix(Self.locatorCount))
    }

    /// Makes one from random numbers.
    public init(using generator: inout some RandomNumberGenerator) {
        let values = (0..<Self.count).map { _ in UInt8.random(in: 0..<32, using: &generator) }
        characters = Base32.text(of: values)
        locator = String(characters.prefix(Self.locatorCount))
    }

    /// Display form: groups of four.
    public var text: String { Base32.grouped(characters) }
}

extension EnrollmentSecret: CustomStringConvertible, CustomReflectable {
    /// Identifies the enrolment, without the secret part.
    public var description: String { "\(locator)-…" }
    /// Shows no secret to a debugger's or logger's reflection either.
    public var customMirror: Mirror { Mirror(self, children: ["locator": locator]) }
}

/// The first 160 bits of the SHA-256 digest of an authority's certificate.
public struct AuthorityFingerprint: Hashable, Sendable {
    /// Bytes of the digest that count.
    public static let byteCount = 20

    private let bytes: [UInt8]

    /// Takes a SHA-256 digest.
    ///
    /// - Returns: `nil` for fewer than 20 bytes.
    public init?(digest: [UInt8]) {
        guard digest.count >= Self.byteCount else { return nil }
        bytes = Array(digest.prefix(Self.byteCount))
    }

    /// Reads a fingerprint; hyphens and the letters' case make no difference.
    public init?(_ text: some StringProtocol) {
        guard text.utf8.count <= 64, let values = Base32.values(of: text), values.count == Self.byteCount * 8 / 5 else {
            return nil
        }
        bytes = Base32.bytes(of: values)
    }

    /// Display form: groups of four.
    public var text: String { Base32.grouped(Base32.text(of: Base32.values(ofBytes: bytes))) }
}

/// Five bits a character, without the letters that are taken for digits (Crockford's alphabet).
enum Base32 {
    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

    /// The values of the characters, without hyphens; `nil` if there is any other.
    static func values(of text: some StringProtocol) -> [UInt8]? {
        var values: [UInt8] = []
        for byte in text.utf8 where byte != UInt8(ascii: "-") {
            let capital = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) ? byte - 32 : byte
            switch capital {
            case UInt8(ascii: "O"): values.append(0)
            case UInt8(ascii: "I"), UInt8(ascii: "L"): values.append(1)
            default:
                guard let value = alphabet.firstIndex(of: capital) else { return nil }
                values.append(UInt8(value))
            }
        }
        return values
    }

    static func text(of values: [UInt8]) -> String {
        String(decoding: values.map { alphabet[Int($0 & 31)] }, as: UTF8.self)
    }

    /// Groups of four, with hyphens between them.
    static func grouped(_ text: String) -> String {
        let characters = Array(text)
        return stride(from: 0, to: characters.count, by: 4)
            .map { String(characters[$0..<min($0 + 4, characters.count)]) }.joined(separator: "-")
    }

    /// The bytes of a number of bits that is a multiple of 40.
    static func bytes(of values: [UInt8]) -> [UInt8] { repack(values, from: 5, to: 8) }

    static func values(ofBytes bytes: [UInt8]) -> [UInt8] { repack(bytes, from: 8, to: 5) }

    private static func repack(_ parts: [UInt8], from wide: UInt32, to narrow: UInt32) -> [UInt8] {
        var (bits, count, result): (UInt32, UInt32, [UInt8]) = (0, 0, [])
        for part in parts {
            bits = bits << wide | UInt32(part)
            count += wide
            while count >= narrow {
                count -= narrow
                result.append(UInt8(truncatingIfNeeded: bits >> count & (1 << narrow - 1)))
            }
        }
        return result
    }
}
