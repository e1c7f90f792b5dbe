/// Something that happened to a sound card, told by the device's thread as plain values.
public enum CardEvent: BitwiseCopyable, Equatable, Sendable {
    /// A card was opened; what it granted for each direction that is used.
    case opened(playback: CardGrant?, capture: CardGrant?)
    /// There is no card, or it cannot be opened, for this reason. Told once for each reason; it is tried again and
    /// again.
    case unavailable(CardFailure)
    /// Sound flows, with a steady delay.
    case running
    /// The card has gone away or given up, with this errno. Calls go on in silence until it is back.
    case lost(errno: Int32)
    /// The card says that all is well, and moves nothing. It is opened anew.
    case stalled(SoundDirection)
    /// The card ran out of samples, or of room, so often since this was last told; at most once in ten seconds.
    case xruns(SoundDirection, count: Int)
    /// The card was suspended.
    case suspended
    /// The card is back from a suspend.
    case resumed
    /// Its thread was refused real-time priority, with this errno.
    case priorityRefused(errno: Int32)
    /// How it is doing, once a second.
    case report(CardStatistics)
    /// It was closed as asked.
    case stopped
}
