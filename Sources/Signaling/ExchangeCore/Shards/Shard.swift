import Cryptography
public import SignalWire

/// One of the 64 parts of an exchange's users, groups and rooms (docs/shards.md).
public struct Shard: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// How many there are. What is stored depends on it, so it never changes.
    public static let count = 64

    /// From 0 to 63.
    public let number: Int

    /// The shard of a number; nil if there is none.
    public init?(_ number: Int) {
        guard 0..<Self.count ~= number else { return nil }
        self.number = number
    }

    /// The shard of a user, group or room: the low six bits of the first byte of the SHA-256 digest of its name.
    ///
    /// PostgreSQL computes the same: `get_byte(sha256(convert_to(name, 'UTF8')), 0) & 63`.
    public init<Kind>(of name: Identifier<Kind>) {
        number = Int(Digest.sha256(Array(name.text.utf8))[0]) & (Self.count - 1)
    }

    /// Two hexadecimal digits.
    public var description: String { (number < 16 ? "0" : "") + String(number, radix: 16) }

    /// Orders by number.
    public static func < (left: Shard, right: Shard) -> Bool { left.number < right.number }
}

/// Ids and tokens that say which shard has what they name: `invite-2f.0b5f9e3ad2c14f7f8e6d1c0b9a887766`.
///
/// The shard is in the clear, beside the random part: it is no secret and no credential.
extension Shard {
    /// What follows the kind in an id, before the random part.
    var prefix: String { "\(self)." }

    /// The shard that an id of the exchange's own making names; nil for one from before there were shards, which is looked up in each.
    public init?<Kind>(namedIn id: Identifier<Kind>) {
        let parts = id.text.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let dash = parts[0].lastIndex(of: UInt8(ascii: "-")),
            let shard = Shard(digits: parts[0][parts[0].index(after: dash)...])
        else { return nil }
        self = shard
    }

    /// The shard that a token of the exchange's own making begins with, as `2f.`; nil for another token.
    package init?(namedIn token: Redacted<String>) {
        let bytes = token.secret.utf8
        guard bytes.dropFirst(2).first == UInt8(ascii: "."), let shard = Shard(digits: bytes.prefix(2)) else {
            return nil
        }
        self = shard
    }

    private init?(digits: Substring.UTF8View) {
        guard digits.count == 2, let text = String(digits), let number = Int(text, radix: 16),
            let shard = Shard(number),
            shard.description == text
        else { return nil }
        self = shard
    }
}
