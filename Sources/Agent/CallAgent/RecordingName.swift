internal import CallControl
internal import Core

/// The name of a call's recording: when the call began, in UTC, and who is at the other end.
///
/// What the peer calls itself is its own choice, so that it is escaped and bounded; the key keeps calls of the same millisecond, also of
/// several processes, apart.
struct RecordingName: CustomStringConvertible {
    /// Bytes of the peer's name, with escapes.
    static let mostBytes = 64
    private static let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@+".utf8)

    /// The name, without an ending.
    let description: String

    /// - Parameter key: Letters and digits.
    init(peer: String, isOutgoing: Bool, at time: WallClock, key: String) {
        // A colon is no character of names on memory cards (FAT).
        let clock = time.rfc3339.map { $0 == ":" ? "-" : $0 }
        description = "\(String(clock))_\(isOutgoing ? "to" : "from")_\(Self.escaped(peer))_\(key.prefix(6))"
    }

    /// The beginning of a name; `~` is in place of what is left out.
    private static func escaped(_ name: String) -> String {
        var text = ""
        for byte in name.utf8 {
            let next =
                plain.contains(byte)
                ? String(UnicodeScalar(byte)) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            guard text.utf8.count + next.utf8.count <= mostBytes else { return text + "~" }
            text += next
        }
        return text
    }
}
