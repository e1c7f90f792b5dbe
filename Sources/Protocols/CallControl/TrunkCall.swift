/// What an invite says of a call that crosses between an exchange and a telephone network.
///
/// The exchange vouches for it: only a trunk says who calls from outside. What strangers say there is hostile text, and is
/// kept only if it is a name (docs/protocol.md) of ``longest`` bytes at most.
public struct TrunkCall: Hashable, Sendable {
    /// Bytes of each text.
    public static let longest = 128

    /// What was dialled.
    public var dialled: String?
    /// Who calls, as the network says: a number or an address.
    public var caller: String?
    /// What the caller calls itself.
    public var name: String?

    /// Keeps what is a name, and of what is too long the beginning.
    public init(dialled: String? = nil, caller: String? = nil, name: String? = nil) {
        self.dialled = dialled.flatMap(Self.harmless)
        self.caller = caller.flatMap(Self.harmless)
        self.name = name.flatMap(Self.harmless)
    }

    private static func harmless(_ text: String) -> String? {
        var bytes = 0
        let start = text.prefix { character in
            bytes += character.utf8.count
            return bytes <= longest
        }
        // A name has no spaces at its ends.
        let words = start.drop { $0 == " " }
        return words.lastIndex { $0 != " " }.flatMap { try? UserID(String(words[...$0])).text }
    }
}
