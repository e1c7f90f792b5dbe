public import Timekeeping

/// What happened at a card that is played on and captured from frame by frame; see ``DuplexCard``.
public struct DuplexNote: BitwiseCopyable, Equatable, Sendable {
    /// What it was.
    public var event: Event
    /// When.
    public var at: Instant
    /// Captured frames handed on until then, counted from the beginning of the measurement.
    public var captured: Int
    /// Frames of the signal played until then, counted from the same moment.
    public var played: Int

    /// What can happen.
    public enum Event: BitwiseCopyable, Equatable, Sendable {
        /// A block was read and another written. Before that `available` captured frames waited, `queue` frames in the
        /// buffer were still to be played, and as many as `behind` says behind the buffer, in the driver or a server.
        case exchanged(available: Int, queue: Int, behind: Int)
        /// The buffer ran empty (playback) or over (capture). Both directions are started anew.
        case xrun(SoundDirection)
        /// The thread was not run for so long that the buffer to play from may have run empty meanwhile: told before what
        /// came of it.
        case heldUp(nanoseconds: Int64)
        /// The card was suspended. Both directions are started anew.
        case suspended
        /// The card went away.
        case lost(errno: Int32)
        /// It is back.
        case returned
        /// The thread runs without the real-time priority that was asked for.
        case priorityRefused(errno: Int32)
        /// So many frames were not there to be played, or not taken when they were captured: the program that measures
        /// was late, and silence stands in their place.
        case late(played: Int, captured: Int)
    }
}
