/// An event of a sound card, sent by the device's thread as plain values.
public enum CardEvent: BitwiseCopyable, Equatable, Sendable {
    /// A card was opened; what it granted for each direction that is used.
    case opened(playback: CardGrant?, capture: CardGrant?)
    /// There is no card, or it cannot be opened, for this reason. Reported once for each reason; opening is retried.
    case unavailable(CardFailure)
    /// Sound flows, with a steady delay.
    case running
    /// The card has gone away or given up, with this errno. Calls continue in silence until it is back.
    case lost(errno: Int32)
    /// The card reports no error, but moves no samples. It is reopened.
    case stalled(SoundDirection)
    /// The number of underruns and overruns since this was last reported; at most once in ten seconds.
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
