public import Core

/// An event of a card that is used frame by frame; see ``DuplexCard``.
public struct DuplexNote: BitwiseCopyable, Equatable, Sendable {
    /// The kind of event.
    public var event: Event
    /// When.
    public var at: Instant
    /// Captured frames handed on until then, counted from the beginning of the measurement.
    public var captured: Int
    /// Frames of the signal played until then, counted from the same moment.
    public var played: Int

    /// The kinds of event.
    public enum Event: BitwiseCopyable, Equatable, Sendable {
        /// A block was read and another written. Before that `available` captured frames waited, `queue` frames in the
        /// buffer were still to be played, and as many as `behind` says behind the buffer, in the driver or a server.
        case exchanged(available: Int, queue: Int, behind: Int)
        /// The buffer underran (playback) or overran (capture). Both directions are restarted.
        case xrun(SoundDirection)
        /// The thread paused longer than the playback buffer lasts, so the buffer may have run empty: reported before any xrun
        /// that follows.
        case heldUp(nanoseconds: Int64)
        /// The card was suspended. Both directions are restarted.
        case suspended
        /// The card went away.
        case lost(errno: Int32)
        /// It is back.
        case returned
        /// The thread runs without the real-time priority that was asked for.
        case priorityRefused(errno: Int32)
        /// This many frames were not provided for playback, or not taken after capture: the measuring program was late,
        /// and silence replaces them.
        case late(played: Int, captured: Int)
    }
}
