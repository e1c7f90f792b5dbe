package import CallMedia
package import Core

/// What a call's media counted until its end, as the call's record has it. Times are in milliseconds.
///
/// In JSON it is one flat object. What an older version did not write counts as none.
public struct MediaFacts: Codable, Hashable, Sendable {
    /// What went to the other side.
    public var sent = SentFacts()
    /// What came from the other side.
    public var received = ReceivedFacts()
    /// The sound card; nil if the call did not use it.
    public var card: CardFacts?
    /// The round trip by the other side's last report; nil without one.
    public var roundTrip: Int?
    /// Frames that were run.
    public var frames = 0
    /// Frames that were skipped because this machine stalled.
    public var skipped = 0
    /// Sound that a file could not give in time.
    public var playGap = 0
    /// Sound that a recording could not take in time.
    public var recordGap = 0

    /// Nothing has happened.
    public init() {}

    /// - Parameters:
    ///   - source: What was sent, in one word, as in ``SentFacts/source``.
    ///   - now: The end of the call.
    package init(_ report: MediaReport, source: String? = nil, at now: Instant) {
        sent = SentFacts(report, source: source)
        received = ReceivedFacts(report, at: now)
        card = report.sound.map(CardFacts.init)
        let trip = report.peer.roundTripNanoseconds
        roundTrip = trip > 0 ? Int(trip / 1_000_000) : nil
        frames = report.call.framesRun
        skipped = report.call.framesSkipped
        playGap = report.playUnderrunSamples / 48
        recordGap = report.recordOverrunSamples / 48
    }

    /// What a capture of a call's input says.
    package init(_ replay: StreamReplay.Result) {
        received = ReceivedFacts(replay)
    }

    private enum CodingKeys: String, CodingKey {
        case card, frames
        case roundTrip = "round_trip_ms"
        case skipped = "frames_skipped"
        case playGap = "play_gap_ms"
        case recordGap = "record_gap_ms"
    }

    /// Reads what any version may have written.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        sent = try SentFacts(from: decoder)
        received = try ReceivedFacts(from: decoder)
        card = fields.value(.card)
        roundTrip = fields.value(.roundTrip)
        (frames, skipped) = (fields.count(.frames), fields.count(.skipped))
        (playGap, recordGap) = (fields.count(.playGap), fields.count(.recordGap))
    }

    /// Writes one flat object.
    public func encode(to encoder: any Encoder) throws {
        try sent.encode(to: encoder)
        try received.encode(to: encoder)
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encodeIfPresent(card, forKey: .card)
        try fields.encodeIfPresent(roundTrip, forKey: .roundTrip)
        try fields.encode(frames, forKey: .frames)
        try fields.encode(skipped, forKey: .skipped)
        try fields.encode(playGap, forKey: .playGap)
        try fields.encode(recordGap, forKey: .recordGap)
    }
}

/// What a call sent.
public struct SentFacts: Codable, Hashable, Sendable {
    /// RTP packets.
    public var packets = 0
    /// Packets that the other side reports as lost.
    public var lost = 0
    /// Reports and feedback of the other side that confirm packets of this side; nil if the record does not have them.
    public var confirmations: Int?
    /// `card`, `program` (bots, too), `file`, `tone`, `echo` or `silence`; nil if the record does not have it.
    public var source: String?
    /// The largest level in dBFS; −100 is silence, nil if the record does not have it.
    public var peak: Int?
    /// Samples of 1,000 at full scale.
    public var clipped = 0

    /// Nothing.
    public init() {}

    fileprivate init(_ report: MediaReport, source: String?) {
        packets = report.peer.packetsSent
        lost = max(0, report.peer.remotePacketsLost)
        confirmations = report.peer.confirmingReports
        self.source = source
        peak = report.sent.wholePeak
        clipped = report.sent.clippedPermille
    }

    private enum CodingKeys: String, CodingKey {
        case source
        case packets = "sent"
        case lost = "remote_lost"
        case confirmations = "reports_on_us"
        case peak = "sent_peak_dbfs"
        case clipped = "sent_clipped_permille"
    }

    /// Reads what any version may have written.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        (packets, lost) = (fields.count(.packets), fields.count(.lost))
        confirmations = fields.value(.confirmations)
        source = fields.value(.source)
        peak = fields.value(.peak)
        clipped = fields.count(.clipped)
    }
}

/// How the sound card was in a call.
public struct CardFacts: Codable, Hashable, Sendable {
    /// Whether the microphone was muted at the end.
    public var isMuted = false
    /// Captured sound that was not there in time, during the call.
    public var captureGap = 0
    /// Sound that the card did not take in time, during the call.
    public var playGap = 0
    /// Whether the microphone gave digital silence alone : samples that are all equal, over 5 s or more; nil if the record does not have it.
    public var isDigitalSilence: Bool?

    /// A card without a fault.
    public init() {}

    fileprivate init(_ sound: SoundReport) {
        isMuted = sound.isMuted
        captureGap = sound.captureUnderrunSamples / 48
        playGap = sound.playOverrunSamples / 48
        // What was missing is silence, too.
        let isMissing = sound.captureUnderrunSamples * 2 > sound.captured.samples
        isDigitalSilence = isMissing ? nil : sound.captured.isDigitalSilence(within: Self.noise)
    }

    /// The noise of any microphone that works is larger than this number of steps, of 65,536.
    private static let noise = 2

    private enum CodingKeys: String, CodingKey {
        case isMuted = "muted"
        case captureGap = "capture_gap_ms"
        case playGap = "play_gap_ms"
        case isDigitalSilence = "digital_silence"
    }
}

extension SoundTrace {
    /// What is shorter has no say on silence: 5 s.
    private static var shortest: Int { 5 * 48_000 }

    /// Whether all samples are equal, to a number of steps: sound of a source that is muted, unplugged or dead. A quiet room has noise.
    ///
    /// - Returns: Nil if there were less than 5 s.
    func isDigitalSilence(within steps: Int) -> Bool? { samples >= Self.shortest ? spread <= steps : nil }

    /// The largest level in whole dBFS; nil without sound.
    var wholePeak: Int? { samples > 0 ? Int(peakDBFS.rounded()) : nil }
}

extension KeyedDecodingContainer {
    /// A count; 0 if it is not there.
    func count(_ key: Key) -> Int { value(key) ?? 0 }

    /// A value; nil if it is not there, or is another kind of value.
    func value<Value: Decodable>(_ key: Key) -> Value? { try? decode(Value.self, forKey: key) }
}
