/// A telephone key that signaling carries, and not the media.
public struct CallKey: Hashable, Sendable {
    /// `0`…`9`, `*`, `#`, `A`…`D`, or `!` for the flash of the hook.
    public let key: Character
    /// How long it was held, or is to be taken as held; up to 60 s.
    public let held: Duration

    /// Makes one; nil if there is no such key.
    public init?(_ key: Character, held: Duration) {
        guard "0123456789*#ABCD!".contains(key) else { return nil }
        self.key = key
        self.held = min(max(held, .zero), .seconds(60))
    }
}
