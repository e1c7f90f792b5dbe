// Playout: from packets that come when they like to sound that flows. Jitter buffer, concealment, time-stretching.

public import OpusCodec

/// Plays one stream of packets, of Opus or G.711: waits as little as the path allows, and fills in what does not come.
///
/// `insert` packets as they arrive and `pull` a frame whenever sound is due; both take bounded time, allocate nothing
/// and never fail. One thread at a time. All memory is taken by `init`: about 230 kB, of which only the pages that
/// packets were ever stored in become resident.
public struct PlayoutBuffer: ~Copyable {
    /// Counters and delays since the buffer was made.
    public internal(set) var statistics = PlayoutStatistics()

    var decoders: FormatDecoders
    var stream: ReceivedStream
    var queue = PacketQueue()
    var losses = LossDetector()
    var samples = SampleBuffer()
    var delay: DelayEstimator
    /// How long after a request a lost packet comes; nil if none is asked for. What waiting for it is worth then counts
    /// when the delay is chosen.
    public var repairNanoseconds: Int64?
    /// By how much pulls would be put off now, and all that follow with them, if sound is missing that may only be late
    /// (``mayAwait(forPull:)``). Packets that are late by less are then no reason for a whole step of delay.
    public var pullPatienceNanoseconds: Int64 = 0

    /// The packet to decode next: the one with this number, or the first after it.
    var nextSequence: Int64 = 0
    /// Media time, in samples, of the first sample not yet decoded.
    var nextTimestamp: Int64 = 0
    /// Whether the first packet has been played.
    var isPlaying = false
    /// The newest packet decoded said that the sender is silent.
    var isDiscontinuous = false
    /// Concealment played in place of packets that may still come.
    var heldSamples = 0
    /// Concealment since the last packet played.
    var concealedRun = 0
    /// Samples of the stream still to be passed over unheard: what was made up in their place stands for them.
    var skippedSamples = 0
    var hasListened = false
    var samplesSinceStretch = 0
    var samplesOffTarget = 0
    var hasStretched = false
    var loudness = LoudnessTracker()

    /// A buffer that plays the Opus that `decoder` decodes; it must be a mono decoder.
    public init(configuration: PlayoutConfiguration, decoder: consuming OpusDecoder) {
        self.init(configuration: configuration, stream: StreamDecoder(decoder))
    }

    /// A buffer that plays what `decoder` decodes.
    public init(configuration: PlayoutConfiguration, stream decoder: consuming StreamDecoder) {
        stream = ReceivedStream(samplesPerTick: decoder.samplesPerTick)
        decoders = FormatDecoders(decoder)
        delay = DelayEstimator(configuration)
    }
}
