/// Telephone keys with pauses, as `1,,2` or `1w2#`.
public struct KeySequence: Equatable, Sendable {
    /// A character of it.
    public enum Element: Equatable, Sendable {
        case key(Character)
        /// A second passes.
        case pause
        /// Waits until something is heard.
        case sound
        /// Waits until something was heard, and then nothing for a second.
        case prompt
    }

    /// As it was written.
    public let text: String
    /// In order; at least one key.
    public let elements: [Element]

    /// The keys, and `!` for the flash of the hook.
    private static let keys = "0123456789*#ABCD!"
    /// A longer sequence is no telephone number.
    private static let longest = 200

    /// - Parameter text: `0`-`9`, `*`, `#`, `A`-`D` of either case, `!`; `,` for a second, `p` for the beginning of a prompt, `w` for its end.
    ///   Nil if it has anything else, no key, or more than 200 characters.
    public init?(_ text: String) {
        var elements: [Element] = []
        guard text.utf8.count <= Self.longest else { return nil }
        for character in text {
            switch character {
            case ",": elements.append(.pause)
            case "p": elements.append(.sound)
            case "w": elements.append(.prompt)
            case "a"..."d": elements.append(.key(Character(character.uppercased())))
            case _ where Self.keys.contains(character): elements.append(.key(character))
            default: return nil
            }
        }
        guard elements.contains(where: { if case .key = $0 { true } else { false } }) else { return nil }
        self.text = text
        self.elements = elements
    }

    /// What may be in it, for messages.
    public static let allowed = "0-9, *, #, A-D and ! (flash), with , for a second, p for a prompt and w for its end"

    /// Why a text is no sequence, as the end of a sentence about it; nil if it is one.
    public static func problem(with text: String) -> String? {
        if text.utf8.count > longest { return "must have at most \(longest) characters, not \(text.utf8.count)" }
        return KeySequence(text) == nil ? "must be made of \(allowed), and have a key, not \"\(text)\"" : nil
    }

    /// Whether it waits for what is heard.
    public var listens: Bool { elements.contains { $0 == .sound || $0 == .prompt } }
}
