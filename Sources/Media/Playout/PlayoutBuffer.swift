// Playout: from packets that come when they like to sound that flows. Jitter buffer, concealment, time-stretching.

public import OpusCodec
internal import Timekeeping

/// Plays one stream of packets, of Opus or G.711: waits as little as the path allows, and conceals what does not
/// arrive.
///
/// `insert` packets as they arrive and `pull` a frame whenever sound is due; both take bounded time, allocate nothing
/// and never fail. One thread at a time. All memory is taken by `init`: about 230 kB, of which only the pages that
/// packets were ever stored in become resident.
public struct PlayoutBuffer: ~Copyable {
    /// Counters and delays since the buffer was made.
    public internal(set) var statistics = PlayoutStatistics()

    var decoder: StreamDecoder
    /// The decoder for packets of the previous or the next format.
    var otherDecoder = StreamDecoder()
    /// The formats that ``decoder``, ``otherDecoder`` and ``clock`` are of, counted by changes.
    var format: UInt8 = 0
    var otherFormat: UInt8 = 0
    var clockFormat: UInt8 = 0
    /// The format of the newest change.
    var newestFormat: UInt8 = 0
    /// Counts packets of the format before that still come.
    var formerClock: StreamClock?
    var store = PacketStore()
    var samples = SampleBuffer()
    var clock: StreamClock
    /// Packets that hold no sound, and those of them that hold nothing at all.
    var soundless = PacketNumbers()
    var padding = PacketNumbers()
    var history: ArrivalHistory
    var target: TargetDelay
    /// Packets that were asked for again: when they come says nothing of the path.
    var asked = PacketNumbers()
    /// When the newest packet came that overtook one that is not missing yet.
    var missingSince: Int64?
    /// How long after a request a retransmitted packet arrives; nil if lost packets are not requested. If set, the
    /// choice of the delay considers the benefit of waiting for it.
    public var repairNanoseconds: Int64?
    /// By how much this pull and all later ones would be delayed if sound is missing that may only be late
    /// (``mayAwait(forPull:)``). Packets that are late by less are then no reason for a whole step of delay.
    public var pullPatienceNanoseconds: Int64 = 0
    let configuration: PlayoutConfiguration

    /// SSRC of the stream being played; means nothing before the first packet.
    var ssrc: UInt32 = 0
    var hasStream = false
    /// The packet to decode next: the one with this number, or the first after it.
    var nextSequence: Int64 = 0
    /// Media time, in samples, of the first sample not yet decoded.
    var nextTimestamp: Int64 = 0
    /// One past the newest packet received, as number and as media time.
    var endSequence: Int64 = 0
    var endTimestamp: Int64 = 0
    /// One past the newest packet that came itself, not as a copy in another.
    var endOfArrivals: Int64 = 0
    /// Where its sound ends.
    var endOfArrivalsTimestamp: Int64 = 0
    /// The newest gap between packets, until it is known whether what is missing was only overtaken.
    var freshGap: FreshGap?
    /// The copies in the packet that is inserted next.
    var carried = CarriedCopies()
    /// Sound in one packet, as of the last one.
    var packetSamples = 960
    /// Sound received since the stream began.
    var receivedNanoseconds: Int64 = 0
    /// Whether the first packet has been played.
    var isPlaying = false
    /// The newest packet decoded said that the sender is silent.
    var isDiscontinuous = false
    /// Concealment played in place of packets that may still come.
    var heldSamples = 0
    /// Concealment since the last packet played.
    var concealedRun = 0
    /// Samples of the stream that are still to be skipped, because concealment has already replaced them.
    var skippedSamples = 0
    /// The decoder's state from before the concealment that is held has been saved.
    var canRestore = false
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
        self.configuration = configuration
        clock = StreamClock(samplesPerTick: decoder.samplesPerTick)
        self.decoder = decoder
        history = ArrivalHistory(memoryMilliseconds: configuration.memoryMilliseconds)
        target = TargetDelay(configuration)
    }

    /// Media time in nanoseconds of `timestamp`, in samples at 48 kHz.
    @_noAllocation @_noLocks
    static func nanoseconds(samples: Int64) -> Int64 { samples &* 62_500 / 3 }

    /// Samples at 48 kHz in `nanoseconds`, rounded towards zero.
    @_noAllocation @_noLocks
    static func samples(nanoseconds: Int64) -> Int { Int(nanoseconds &* 3 / 62_500) }
}
