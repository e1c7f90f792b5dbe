internal import CallMedia
internal import Core
internal import Playout

/// What a call received. Times are in milliseconds.
public struct ReceivedFacts: Codable, Hashable, Sendable {
    /// RTP packets that arrived and were accepted.
    public var packets = 0
    /// Packets that were needed and never came.
    public var lost = 0
    /// Packets that came after their turn.
    public var late = 0
    /// Packets that came after one that was sent later.
    public var reordered = 0
    /// Packets for which the jitter buffer had no room, or which are no frame of the codec.
    public var discarded = 0
    /// Packets whose payload is not what its type promises.
    public var malformed = 0
    /// Packets that were dropped before all that, by reason; without reasons that did not occur.
    public var dropped: [String: Int] = [:]
    /// RTCP packets.
    public var reports = 0
    /// How long before the end of the call the newest packet came; nil if none ever came.
    public var quiet: Int?
    /// The largest level in dBFS; −100 is silence, nil if the record does not have it.
    public var peak: Int?
    /// Samples of 1,000 at full scale.
    public var clipped = 0
    /// Whether digital silence alone came : samples that are all equal, over 5 s or more; nil if the record does not have it.
    public var isDigitalSilence: Bool?
    /// What became of the sound.
    public var playout = PlayoutFacts()
    /// The sender's clock; nil if it was not measured.
    public var clock: ClockFacts?

    /// Nothing.
    public init() {}

    init(_ report: MediaReport, at now: Instant) {
        let (peer, playout) = (report.peer, report.playout)
        packets = peer.packetsReceived
        lost = playout.packetsLost
        late = playout.packetsLate
        reordered = playout.packetsReordered
        discarded = playout.packetsDiscarded
        malformed = report.call.payloadsMalformed
        dropped = Dictionary(
            uniqueKeysWithValues: peer.dropped.counts.filter { $0.count > 0 }.map { ($0.reason, $0.count) })
        reports = peer.controlPacketsReceived
        quiet = report.newestArrival.map { max(0, Int($0.duration(to: now).milliseconds)) }
        peak = report.received.wholePeak
        clipped = report.received.clippedPermille
        isDigitalSilence = report.received.isDigitalSilence(within: Self.noise)
        self.playout = PlayoutFacts(playout)
        clock = ClockFacts(peer.senderClock)
    }

    init(_ replay: StreamReplay.Result) {
        let playout = replay.statistics
        packets = playout.packetsReceived
        (lost, late) = (playout.packetsLost, playout.packetsLate)
        (reordered, discarded) = (playout.packetsReordered, playout.packetsDiscarded)
        var sound = SoundTrace()
        sound.note(replay.samples.span)
        (peak, clipped) = (sound.wholePeak, sound.clippedPermille)
        isDigitalSilence = sound.isDigitalSilence(within: Self.noise)
        self.playout = PlayoutFacts(playout)
    }

    /// The noise of any microphone that works is larger than this number of steps, of 65,536. Silence in A-law is a step of 8 beside the
    /// silence that is played before the first packet.
    private static let noise = 12

    /// Packets that came or were lost.
    public var expected: Int { packets + lost }
    /// The share of packets that were lost, 0…1.
    public var lostShare: Double { expected > 0 ? Double(lost) / Double(expected) : 0 }

    private enum CodingKeys: String, CodingKey {
        case lost, late, reordered, discarded, malformed, dropped, reports
        case packets = "received"
        case quiet = "quiet_ms"
        case peak = "received_peak_dbfs"
        case clipped = "received_clipped_permille"
        case isDigitalSilence = "received_digital_silence"
    }

    /// Reads what any version may have written.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        (packets, lost, late) = (fields.count(.packets), fields.count(.lost), fields.count(.late))
        (reordered, discarded) = (fields.count(.reordered), fields.count(.discarded))
        (malformed, reports) = (fields.count(.malformed), fields.count(.reports))
        dropped = fields.value(.dropped) ?? [:]
        (quiet, peak, clipped) = (fields.value(.quiet), fields.value(.peak), fields.count(.clipped))
        isDigitalSilence = fields.value(.isDigitalSilence)
        playout = try PlayoutFacts(from: decoder)
        clock = try? ClockFacts(from: decoder)
    }

    /// Writes its members beside those of its parts.
    public func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(packets, forKey: .packets)
        try fields.encode(lost, forKey: .lost)
        try fields.encode(late, forKey: .late)
        try fields.encode(reordered, forKey: .reordered)
        try fields.encode(discarded, forKey: .discarded)
        try fields.encode(malformed, forKey: .malformed)
        try fields.encode(dropped, forKey: .dropped)
        try fields.encode(reports, forKey: .reports)
        try fields.encodeIfPresent(quiet, forKey: .quiet)
        try fields.encodeIfPresent(peak, forKey: .peak)
        try fields.encode(clipped, forKey: .clipped)
        try fields.encodeIfPresent(isDigitalSilence, forKey: .isDigitalSilence)
        try playout.encode(to: encoder)
        try clock?.encode(to: encoder)
    }
}

/// What became of the sound that a call received. Times are in milliseconds.
public struct PlayoutFacts: Codable, Hashable, Sendable {
    /// Sound that was played out, concealment and silence included.
    public var played = 0
    /// Of that, concealed because packets were lost or late.
    public var concealed = 0
    /// Of that, silence because nothing was to be played.
    public var silent = 0
    /// Time of packets from their arrival to their playout, on average.
    public var buffered = 0
    /// The same, of which 95 % of the packets stayed below.
    public var bufferedMost = 0

    /// Nothing.
    public init() {}

    init(_ statistics: PlayoutStatistics) {
        played = statistics.samplesPlayed / 48
        concealed = statistics.samplesConcealed / 48
        silent = statistics.samplesSilent / 48
        buffered = Int(statistics.meanBufferDelayNanoseconds / 1_000_000)
        bufferedMost = Int(statistics.bufferDelayNanoseconds(quantile: 0.95) / 1_000_000)
    }

    /// Sound that was heard, concealment included.
    public var heard: Int { max(0, played - silent) }

    private enum CodingKeys: String, CodingKey {
        case played = "played_ms"
        case concealed = "concealed_ms"
        case silent = "silent_ms"
        case buffered = "buffered_ms"
        case bufferedMost = "buffered_p95_ms"
    }

    /// Reads what any version may have written.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        (played, concealed, silent) = (fields.count(.played), fields.count(.concealed), fields.count(.silent))
        (buffered, bufferedMost) = (fields.count(.buffered), fields.count(.bufferedMost))
    }
}

/// How fast the timestamps of the other side's packets advanced, by this machine's clock.
public struct ClockFacts: Codable, Hashable, Sendable {
    /// Ticks a second that the codec has.
    public var rate: Int
    /// Ticks a second that were measured.
    public var measured: Double
    /// The duration of the measurement, in milliseconds.
    public var span: Int

    /// A measurement.
    public init(rate: Int, measured: Double, over span: Int) {
        self.rate = rate
        self.measured = measured
        self.span = span
    }

    init?(_ clock: SenderClock) {
        guard let measured = clock.measuredRateHz else { return nil }
        self.init(rate: clock.clockRateHz, measured: measured.rounded(), over: Int(clock.spanNanoseconds / 1_000_000))
    }

    /// By how many millionths the other side's sound is too fast; negative if it is too slow.
    public var drift: Double { rate > 0 ? (measured / Double(rate) - 1) * 1e6 : 0 }

    private enum CodingKeys: String, CodingKey {
        case rate = "clock_hz"
        case measured = "measured_hz"
        case span = "measured_ms"
    }
}
