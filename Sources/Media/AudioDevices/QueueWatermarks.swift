internal import Core

/// How long the card's queue of samples to play is kept: one and a quarter periods for a thread with real-time
/// priority, one and a half without, and more for a machine on which that is not enough.
struct QueueWatermarks: BitwiseCopyable, Sendable {
    private var periodFrames = 480
    private var bufferFrames = 1_920
    private var rate = 48_000
    private var extraFrames = 0
    private var isLatenessExpected = false
    private var lastXrun: Instant?

    /// Frames that the queue is filled up to.
    var queueFrames: Int {
        min(bufferFrames, periodFrames + periodFrames / (isLatenessExpected ? 2 : 4) + extraFrames)
    }

    /// The queue is filled up once it is no longer than this. The two differ by an eighth or a quarter of a period:
    /// enough that the card does not wake the thread continuously, and so little that a card whose thread was late is
    /// served at its next interrupt anyway.
    var wakeFrames: Int { max(0, queueFrames - max(1, periodFrames / (isLatenessExpected ? 4 : 8))) }

    /// The least to fill the queue up to, with silence if the worker has not given enough: it lasts until the next
    /// interrupt, and a millisecond longer.
    var leastFrames: Int { min(queueFrames, periodFrames + rate / 1_000) }

    /// The thread has no priority over others.
    mutating func expectLateness() { isLatenessExpected = true }

    /// A card was opened.
    mutating func open(_ grant: CardGrant) {
        periodFrames = grant.periodFrames
        bufferFrames = grant.bufferFrames
        rate = grant.rate
    }

    /// The queue ran empty. Once may be an accident; twice within half a minute, and half a period is added.
    mutating func noteXrun(at now: Instant) {
        if let lastXrun, lastXrun.nanoseconds(to: now) < 30_000_000_000 { extraFrames += periodFrames / 2 }
        // The card keeps room for a period.
        extraFrames = max(0, min(extraFrames, bufferFrames - 2 * periodFrames - periodFrames / 2))
        lastXrun = now
    }

    /// Another card may need less.
    mutating func reset() {
        extraFrames = 0
        lastXrun = nil
    }
}
