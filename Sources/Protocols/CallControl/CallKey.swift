public import JSON
internal import Core

/// A telephone key that signaling carries, and not the media.
public struct CallKey: Hashable, Sendable {
    /// The type of the call signal that carries it.
    public static let signal = "digit"

    /// `0`…`9`, `*`, `#`, `A`…`D`, or `!` for the flash of the hook.
    public var key: Character
    /// How long it was held, or is to be taken as held.
    public var held: Duration

    /// Makes one.
    public init(_ key: Character, held: Duration) {
        self.key = key
        self.held = held
    }

    /// Reads a signal's data; `nil` if it names no key.
    public init?(data: JSONValue) {
        guard let text = data["digit"]?.string, text.count == 1, let key = text.first,
            "0123456789*#ABCD!".contains(key), case .integer(let milliseconds)? = data["duration"]
        else { return nil }
        self.init(key, held: .milliseconds(min(max(milliseconds, 0), 60_000)))
    }

    /// As it is sent.
    public var data: JSONValue {
        ["digit": .string(String(key)), "duration": .integer(Int64(held.milliseconds))]
    }
}
