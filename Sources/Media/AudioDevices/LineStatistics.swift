/// How one direction of a sound card is doing: where its delay comes from, stage by stage, and what went wrong.
///
/// Delays are in milliseconds. Their sum, ``delayMilliseconds``, is the time from the worker's hands to the card's
/// converter, or back; the time that a frame takes to fill belongs to the worker and is not in it.
public struct LineStatistics: BitwiseCopyable, Equatable, Sendable {
    /// Waiting in the ring between the worker and the device's thread, on average over a frame.
    public var ringMilliseconds = 0.0
    /// Held by the resampler's filter.
    public var resamplerMilliseconds = 0.0
    /// Waiting in the card's buffer.
    public var cardMilliseconds = 0.0
    /// Behind the card's buffer, as reported by the driver: its own queue, or a sound server.
    public var behindCardMilliseconds = 0.0
    /// The loop's target for the sum of the first three.
    public var targetMilliseconds = 0.0
    /// The first three as last measured, over a tenth of a second.
    public var heldMilliseconds = 0.0
    /// The largest distance between the last two since the line became steady.
    public var worstErrorMilliseconds = 0.0
    /// How much faster than the worker's clock the card's runs, in millionths, as learnt.
    public var driftPPM = 0.0
    /// How much faster than nominal samples are consumed at the moment, in millionths.
    public var correctionPPM = 0.0
    /// Frames the card has taken or given, in its own rate.
    public var cardFrames = 0
    /// Times the card ran out of samples, or of room.
    public var xruns = 0
    /// Samples of 48 kHz that were missing when they were due, replaced by silence.
    public var missingSamples = 0
    /// Captured samples that the worker did not fetch in time.
    public var overrunSamples = 0
    /// Delays that were too far off for resampling, and put right at once.
    public var jumps = 0
    /// Whether a worker uses the line.
    public var isInUse = false

    /// The whole delay of this direction.
    public var delayMilliseconds: Double { heldMilliseconds + behindCardMilliseconds }

    /// Nothing yet.
    public init() {}
}

/// How a sound card is doing, in both directions.
public struct CardStatistics: BitwiseCopyable, Equatable, Sendable {
    /// From the worker to the loudspeaker.
    public var playback = LineStatistics()
    /// From the microphone to the worker.
    public var capture = LineStatistics()
    /// Times a card was opened.
    public var opens = 0
    /// Times a card was lost.
    public var losses = 0
    /// Times a card was suspended.
    public var suspends = 0
    /// Whether a card is there and running.
    public var isRunning = false
    /// How much later than asked for the device's thread has run at the worst since the last report, in ms.
    public var worstLatenessMilliseconds = 0.0

    /// Nothing yet.
    public init() {}
}
