/// Which sound card to use, and how.
public struct AudioDeviceConfiguration: Equatable, Sendable {
    /// The card to play on; nil for none.
    ///
    /// A PCM's name as ALSA knows it ("default", "hw:CARD=Headset", "pulse", …), or a card's own identity, which stays
    /// the same wherever and whenever it is plugged in: "by-id/…" or "by-path/…", as in /dev/snd. A comma and a number
    /// may follow an identity for a device of the card other than its first.
    public var playback: String?
    /// The card to capture from, named likewise; nil for none.
    public var capture: String?
    /// The time between a card's wake-ups that is asked for, in ms, 1…100. Shorter means less delay and more work. The
    /// card may grant another.
    public var periodMilliseconds = 10
    /// The least length of the card's buffers that is asked for, in ms; they have eight periods if that is more.
    public var leastBufferMilliseconds = 0
    /// Channels requested in each direction; a card with fewer channels uses those that it has.
    public var channels = 1
    /// SCHED_FIFO priority of the card's thread, above the media workers'; nil for none.
    public var realtimePriority: Int32?

    /// - Parameters:
    ///   - playback: The card to play on; nil for none.
    ///   - capture: The card to capture from; nil for none.
    public init(playback: String? = "default", capture: String? = "default") {
        self.playback = playback
        self.capture = capture
    }
}
