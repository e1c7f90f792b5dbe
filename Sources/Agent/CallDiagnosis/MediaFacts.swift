// CallDiagnosis: what went wrong in a call, whose fault it looks like, and what to try, from what its record says. Pure.

package import CallMedia
package import Core
internal import Playout

/// What a call's media counted until its end, as the call's record keeps it. Times are in milliseconds.
public struct MediaFacts: Codable, Hashable, Sendable {
    /// RTP packets that were sent.
    public var sent = 0
    /// RTP packets of the other side that arrived and were accepted.
    public var received = 0
    /// Packets that were needed and never came.
    public var lost = 0
    /// Packets that came after their turn.
    public var late = 0
    /// Packets that came after one that was sent later.
    public var reordered = 0
    /// Packets that found no room in the jitter buffer, or no sense.
    public var discarded = 0
    /// Packets whose payload is not what its type says.
    public var malformed = 0
    /// Packets that were dropped before all that, by reason; without reasons that did not occur.
    public var dropped: [String: Int] = [:]
    /// RTCP packets of the other side.
    public var reports = 0
    /// Our packets that the other side reports as lost.
    public var remoteLost = 0
    /// The round trip by the other side's last report; nil without one.
    public var roundTrip: Int?
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
    /// Frames that were run.
    public var frames = 0
    /// Frames that were skipped because this machine stalled.
    public var skipped = 0
    /// Sound that a file could not give in time.
    public var playGap = 0
    /// Sound that a recording could not take in time.
    public var recordGap = 0
    /// For how long nothing had come when the call ended; nil if nothing ever came.
    public var quiet: Int?
    /// The sound card; nil if the call did not use it.
    public var card: Card?
    /// What was sent: `card`, `program` (bots, too), `file`, `tone`, `echo` or `silence`; nil if the record does not say so, as for all that
    /// follows.
    public var source: String?
    /// Reports and feedback of the other side on packets of ours that it received.
    public var reportsOnUs: Int?
    /// The largest level that was sent, in dBFS; −100 is silence.
    public var sentPeak: Int?
    /// The largest level that was received, in dBFS.
    public var receivedPeak: Int?
    /// Ticks a second by which the codec's timestamps advance.
    public var clockRate: Int?
    /// Ticks a second by which those of the other side's packets advanced, by this machine's clock.
    public var measuredRate: Double?
    /// For how long that was measured.
    public var clockSpan: Int?

    /// How the sound card was in a call.
    public struct Card: Codable, Hashable, Sendable {
        /// Whether the microphone was muted at the end.
        public var isMuted = false
        /// Captured sound that was not there in time.
        public var captureGap = 0
        /// Sound that the card did not take in time.
        public var playGap = 0

        /// A card without a fault.
        public init() {}

        private enum CodingKeys: String, CodingKey {
            case isMuted = "muted"
            case captureGap = "capture_gap_ms"
            case playGap = "play_gap_ms"
        }
    }

    /// Nothing has happened.
    public init() {}

    /// - Parameter now: The end of the call.
    package init(_ report: MediaReport, at now: Instant) {
        let (peer, playout) = (report.peer, report.playout)
        sent = peer.packetsSent
        received = peer.packetsReceived
        lost = playout.packetsLost
        late = playout.packetsLate
        reordered = playout.packetsReordered
        discarded = playout.packetsDiscarded
        malformed = report.call.payloadsMalformed
        dropped = Dictionary(
            uniqueKeysWithValues: peer.dropped.counts.filter { $0.count > 0 }.map { ($0.reason, $0.count) })
        reports = peer.controlPacketsReceived
        remoteLost = max(0, peer.remotePacketsLost)
        roundTrip = peer.roundTripNanoseconds > 0 ? Int(peer.roundTripNanoseconds / 1_000_000) : nil
        played = playout.samplesPlayed / 48
        concealed = playout.samplesConcealed / 48
        silent = playout.samplesSilent / 48
        buffered = Int(playout.meanBufferDelayNanoseconds / 1_000_000)
        bufferedMost = Int(playout.bufferDelayNanoseconds(quantile: 0.95) / 1_000_000)
        frames = report.call.framesRun
        skipped = report.call.framesSkipped
        playGap = report.playUnderrunSamples / 48
        recordGap = report.recordOverrunSamples / 48
        quiet = report.newestArrival.map { max(0, Int($0.duration(to: now).milliseconds)) }
        reportsOnUs = peer.reportsOnUs
        sentPeak = report.sent.samples > 0 ? Int(report.sent.peakDBFS.rounded()) : nil
        receivedPeak = report.received.samples > 0 ? Int(report.received.peakDBFS.rounded()) : nil
        if let rate = peer.senderClock.measuredRateHz {
            clockRate = peer.senderClock.clockRateHz
            measuredRate = rate.rounded()
            clockSpan = Int(peer.senderClock.spanNanoseconds / 1_000_000)
        }
        card = report.sound.map { sound in
            var card = Card()
            card.isMuted = sound.isMuted
            card.captureGap = sound.captureUnderrunSamples / 48
            card.playGap = sound.playOverrunSamples / 48
            return card
        }
    }

    /// Reads what another version may have written: what it does not have counts as none.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        func count(_ key: CodingKeys) -> Int { (try? fields.decode(Int.self, forKey: key)) ?? 0 }
        (sent, received, lost, late) = (count(.sent), count(.received), count(.lost), count(.late))
        (reordered, discarded, malformed) = (count(.reordered), count(.discarded), count(.malformed))
        dropped = (try? fields.decode([String: Int].self, forKey: .dropped)) ?? [:]
        (reports, remoteLost) = (count(.reports), count(.remoteLost))
        roundTrip = try? fields.decode(Int.self, forKey: .roundTrip)
        (played, concealed, silent) = (count(.played), count(.concealed), count(.silent))
        (buffered, bufferedMost) = (count(.buffered), count(.bufferedMost))
        (frames, skipped) = (count(.frames), count(.skipped))
        (playGap, recordGap) = (count(.playGap), count(.recordGap))
        quiet = try? fields.decode(Int.self, forKey: .quiet)
        card = try? fields.decode(Card.self, forKey: .card)
        source = try? fields.decode(String.self, forKey: .source)
        reportsOnUs = try? fields.decode(Int.self, forKey: .reportsOnUs)
        sentPeak = try? fields.decode(Int.self, forKey: .sentPeak)
        receivedPeak = try? fields.decode(Int.self, forKey: .receivedPeak)
        clockRate = try? fields.decode(Int.self, forKey: .clockRate)
        measuredRate = try? fields.decode(Double.self, forKey: .measuredRate)
        clockSpan = try? fields.decode(Int.self, forKey: .clockSpan)
    }

    private enum CodingKeys: String, CodingKey {
        case sent, received, lost, late, reordered, discarded, malformed, dropped, reports, frames, card, source
        case remoteLost = "remote_lost"
        case roundTrip = "round_trip_ms"
        case played = "played_ms"
        case concealed = "concealed_ms"
        case silent = "silent_ms"
        case buffered = "buffered_ms"
        case bufferedMost = "buffered_p95_ms"
        case skipped = "frames_skipped"
        case playGap = "play_gap_ms"
        case recordGap = "record_gap_ms"
        case quiet = "quiet_ms"
        case reportsOnUs = "reports_on_us"
        case sentPeak = "sent_peak_dbfs"
        case receivedPeak = "received_peak_dbfs"
        case clockRate = "clock_hz"
        case measuredRate = "measured_hz"
        case clockSpan = "measured_ms"
    }
}
