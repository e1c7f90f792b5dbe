internal import AudioDevices
internal import AudioKit
internal import CallControl
internal import LoopbackAnalysis
internal import Loopback
internal import CallMedia
internal import MediaEngine
internal import Playout
internal import Realtime

/// How a call was: for a person to read in ten seconds, or for a program to parse.
struct CallReport {
    let callee: String
    /// How the call came out.
    enum Outcome: Equatable {
        /// It ended for this reason; `completed` is success.
        case ended(CallEndReason)
        /// This program was asked to end, and ended it.
        case interrupted
        /// No device of the callee was connected.
        case notThere

        /// The contract's word (CALL-5), or one of the two that a command line needs besides.
        var name: String {
            switch self {
            case .ended(let reason): reason.rawValue
            case .interrupted: "interrupted"
            case .notThere: "notThere"
            }
        }

        /// The same for a person.
        var text: String {
            switch self {
            case .ended, .interrupted: name
            case .notThere: "offline (no device of that user is connected; --wait rings until one is)"
            }
        }
    }

    /// How the call came out.
    let outcome: Outcome
    /// Login and connection together.
    let connectMilliseconds: Double
    var setUpMilliseconds: Double?
    /// From the invite until the call could carry media.
    var establishedMilliseconds: Double?
    var durationMilliseconds = 0.0
    /// From a sample's sending to its return, both as files.
    var roundTripMilliseconds: Double?
    /// Median over windows of 200 ms that hold speech of the best normalised cross-correlation.
    var likeness: Double?
    /// How good the speech sounded that came back.
    var quality: SpeechQuality?
    /// Why it failed, found out here or reported by the peer.
    var cause: CallFailureCause?
    var error: String?
    var fileError: AudioFileError?
    /// Whether the keys that were to be pressed could not be.
    var keysFailed = false
    var media: MediaReport?
    var card: CardStatistics?
    /// The PCMs that the call was on, if it was on a sound card.
    var cards: (playback: String?, capture: String?)?
    /// Which Handset called, and from where.
    var origin = RunOrigin.here
    var processes: [(name: String, usage: ProcessUsage)] = []

    init(callee: String, outcome: Outcome, connectMilliseconds: Double) {
        self.callee = callee
        self.outcome = outcome
        self.connectMilliseconds = connectMilliseconds
    }

    mutating func take(_ media: MediaReport) { self.media = media }

    /// Why the process must not end as a success; nil if all went well.
    var failure: ExitStatus? {
        if let fileError, outcome != .interrupted { return ExitStatus(fileError) }
        switch outcome {
        case .interrupted: return .interrupted
        case .notThere: return .callNotAnswered
        case .ended(let reason):
            switch reason {
            case .completed: return keysFailed ? .failed : nil
            case .declined, .busy, .noAnswer: return .callNotAnswered
            case .dialFailed where cause == .noSuchNumber: return .noSuchNumber
            case .dialFailed where cause == .notReachable: return .calleeNotReachable
            case .cancelled, .acceptedElsewhere, .declinedElsewhere, .dialFailed, .acceptFailed, .connectionLost,
                .disconnected, .internalError:
                return .failed
            }
        }
    }

    private var payloadBitrate: Double? {
        guard let media, durationMilliseconds > 0 else { return nil }
        return Double(media.peer.payloadBytesReceived) * 8_000 / durationMilliseconds
    }

    /// The report for a person.
    var text: String {
        var lines = ["Call to \(callee): \(outcome.text)" + (error.map { " (\($0))" } ?? "")]
        func add(_ label: String, _ value: String?) {
            if let value { lines.append("  " + label.padded(to: 22) + value) }
        }
        add("cause", cause.map { "\($0.rawValue): \($0.sentence)" })
        add("login and connect", "\(connectMilliseconds.rounded(toPlaces: 1)) ms")
        add("established", establishedMilliseconds.map { "\($0.rounded(toPlaces: 1)) ms after the invite" })
        add("set-up", setUpMilliseconds.map { "\($0.rounded(toPlaces: 1)) ms, invite to media both ways" })
        add("duration", "\((durationMilliseconds / 1_000).rounded(toPlaces: 1)) s")
        add("round-trip audio", roundTripMilliseconds.map { "\($0.rounded(toPlaces: 1)) ms" })
        add("likeness", likeness.map { "\($0.rounded(toPlaces: 3)) of 1" })
        add("quality of speech", quality.map(LoopbackSummary.quality))
        if let media {
            let playout = media.playout
            add(
                "packets",
                "\(media.peer.packetsSent) sent, \(media.peer.packetsReceived) received, "
                    + "\(playout.packetsLost) lost, \(playout.packetsLate) late, \(playout.packetsDiscarded) discarded")
            add(
                "concealed",
                "\(Self.milliseconds(playout.samplesConcealed)) ms, "
                    + "\(Self.milliseconds(playout.samplesRecovered)) ms recovered")
            add("jitter buffer", "mean \(Self.mean(playout)) ms, p95 \(Self.p95(playout)) ms")
            if let sound = media.sound {
                for (label, value) in SoundReportText(sound: sound, card: card).lines { add(label, value) }
                add("delay, mouth to ear", DelayBudget(media, card: card).text)
            }
        }
        if let cards {
            let directory = CardDirectory()
            add("played on", cards.playback.map(directory.label))
            add("captured from", cards.capture.map(directory.label))
        }
        add("measured by", origin.text)
        add("bitrate", payloadBitrate.map { "\(($0 / 1_000).rounded(toPlaces: 1)) kb/s of Opus received" })
        add(
            "CPU time",
            processes.map { "\($0.name) \(($0.usage.cpuSeconds * 1_000).rounded(toPlaces: 0)) ms" }
                .joined(separator: ", "))
        add(
            "memory",
            processes.map { "\($0.name) \(($0.usage.residentBytes / 1_048_576).rounded(toPlaces: 1)) MB" }
                .joined(separator: ", "))
        return lines.joined(separator: "\n")
    }

    /// The report for a program: one JSON object on one line.
    var json: String {
        var object = JSONObjectText()
        object.add("outcome", outcome.name)
        object.add("callee", callee)
        object.add(origin)
        if let cards {
            let directory = CardDirectory()
            for (direction, name) in [("playback", cards.playback), ("capture", cards.capture)] {
                var side = JSONObjectText()
                side.add("name", name)
                side.add("card", name.flatMap(directory.cardName))
                object.add(direction, object: side)
            }
        }
        object.add("cause", cause?.rawValue)
        object.add("error", error)
        object.add("login_connect_ms", connectMilliseconds)
        object.add("setup_ms", setUpMilliseconds)
        object.add("established_ms", establishedMilliseconds)
        object.add("duration_ms", durationMilliseconds)
        object.add("round_trip_ms", roundTripMilliseconds)
        object.add("likeness", likeness)
        object.add("quality", quality.map { $0.score.rounded(toPlaces: 2) })
        if let media {
            let playout = media.playout
            object.add("packets_sent", Double(media.peer.packetsSent))
            object.add("packets_received", Double(media.peer.packetsReceived))
            object.add("packets_lost", Double(playout.packetsLost))
            object.add("packets_late", Double(playout.packetsLate))
            object.add("packets_discarded", Double(playout.packetsDiscarded))
            object.add("packets_dropped", Double(media.peer.dropped.total))
            object.add("frames_skipped", Double(media.call.framesSkipped))
            object.add("concealed_ms", Self.milliseconds(playout.samplesConcealed))
            object.add("recovered_ms", Self.milliseconds(playout.samplesRecovered))
            object.add("jitter_buffer_mean_ms", Self.mean(playout))
            object.add("jitter_buffer_p95_ms", Self.p95(playout))
            object.add("network_round_trip_ms", Double(media.peer.roundTripNanoseconds) / 1e6)
            if let sound = media.sound {
                object.add("sound", object: SoundReportText(sound: sound, card: card).object)
                object.add("delay_ms", object: DelayBudget(media, card: card).object)
            }
        }
        object.add("bitrate_bps", payloadBitrate)
        var processObject = JSONObjectText()
        for (name, usage) in processes {
            var one = JSONObjectText()
            one.add("cpu_s", usage.cpuSeconds)
            one.add("resident_mb", (usage.residentBytes / 1_048_576).rounded(toPlaces: 2))
            processObject.add(name, object: one)
        }
        object.add("processes", object: processObject)
        return object.text
    }

    private static func milliseconds(_ samples: Int) -> Double { (Double(samples) / 48).rounded(toPlaces: 1) }

    private static func mean(_ playout: PlayoutStatistics) -> Double {
        (Double(playout.meanBufferDelayNanoseconds) / 1e6).rounded(toPlaces: 1)
    }

    private static func p95(_ playout: PlayoutStatistics) -> Double {
        (Double(playout.bufferDelayNanoseconds(quantile: 0.95)) / 1e6).rounded(toPlaces: 1)
    }
}
