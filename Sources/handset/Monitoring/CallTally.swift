internal import AudioKit
internal import CallAgent
internal import CallControl
internal import CallMedia
internal import Core
internal import Monitoring
internal import Playout

/// Sums over a process's calls since its start. It receives each event of a device, and counts a call's media when the call ends, so that
/// counters only increase.
struct CallTally: Sendable {
    /// The share of loss and concealment at which a bucket ends.
    private static let ratios = [0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]
    private static let delays = [0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 1]

    /// What is counted for each account by itself.
    private struct Account {
        var ended: [Ending: Int] = [:]
        var reconnections = 0

        mutating func count(_ ending: Ending) { ended[ending, default: 0] += 1 }
    }

    private struct Ending: Hashable {
        let direction: CallRecord.Direction
        let reason: CallEndReason
    }

    /// By name; the only account of a file that names none has an empty one.
    private var accounts: [String: Account] = [:]
    private var setUp = MetricHistogram(bounds: [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30])
    private var duration = MetricHistogram(bounds: [1, 5, 15, 30, 60, 300, 900, 3_600])
    private var bufferDelay = MetricHistogram(bounds: delays)
    private var roundTrip = MetricHistogram(bounds: delays)
    private var loss = MetricHistogram(bounds: ratios)
    private var remoteLoss = MetricHistogram(bounds: ratios)
    private var concealed = MetricHistogram(bounds: ratios)
    private var opinionScore = MetricHistogram(bounds: [1, 2, 2.5, 3, 3.5, 3.8, 4, 4.2, 4.3])
    private var response = MetricHistogram(bounds: [0.1, 0.2, 0.3, 0.5, 0.8, 1, 1.5, 2, 3, 5])
    private var interruptions = 0
    /// By the result, of which there are eight.
    private var queueResults: [String: Int] = [:]
    private var queueTimes = MetricHistogram(bounds: [1, 5, 15, 30, 60, 120, 300, 900, 3_600])
    private var recordings = (whole: 0, failed: 0)
    private var failedFiles = 0
    private var framesRun = 0
    private var framesSkipped = 0

    /// Notes an event of an account's device.
    mutating func note(_ event: DeviceEvent, of account: String?) {
        switch event {
        case .ended(_, let record, let report):
            let ending = Ending(direction: record.direction, reason: record.reason)
            change(account) { $0.count(ending) }
            note(record)
            if let report { note(report) }
        case .signaling(.reconnecting): change(account) { $0.reconnections += 1 }
        case .responded(_, let time): response.observe(time.seconds)
        case .interrupted: interruptions += 1
        case .recordingEnded(_, let end, _), .roomRecordingEnded(_, _, let end):
            if end.failure == nil { recordings.whole += 1 } else { recordings.failed += 1 }
        case .fileFailed: failedFiles += 1
        case .leftQueue(_, _, let result, let time):
            queueResults[result] = (queueResults[result] ?? 0) + 1
            queueTimes.observe(time.seconds)
        case .signaling, .identified, .incoming, .invited, .invite, .answered, .established, .flowing, .playbackEnded,
            .playing, .playingEnded, .recording, .roomRecording, .voicemail, .attached, .detached, .digit, .speech,
            .transferRequested,
            .transferProgress, .handover, .parking, .queued, .sendingStopped, .sendingResumed, .card, .loadChanged,
            .realtimePriorityRefused:
            break
        }
    }

    private mutating func change(_ account: String?, _ change: (inout Account) -> Void) {
        change(&accounts[account ?? "", default: Account()])
    }

    private mutating func note(_ record: CallRecord) {
        if let time = record.setUpTime { setUp.observe(time.seconds) }
        if record.establishedAfter != nil { duration.observe(record.duration.seconds) }
    }

    private mutating func note(_ report: MediaReport) {
        let (peer, playout) = (report.peer, report.playout)
        framesRun += report.call.framesRun
        framesSkipped += report.call.framesSkipped
        if playout.bufferDelayCount > 0 { bufferDelay.observe(Double(playout.meanBufferDelayNanoseconds) / 1e9) }
        if peer.roundTripNanoseconds > 0 { roundTrip.observe(Double(peer.roundTripNanoseconds) / 1e9) }
        let expected = playout.packetsReceived + playout.packetsLost
        if expected > 0 { loss.observe(Double(playout.packetsLost) / Double(expected)) }
        if peer.packetsSent > 0, peer.controlPacketsReceived > 0 {
            remoteLoss.observe(Double(max(0, peer.remotePacketsLost)) / Double(peer.packetsSent))
        }
        let heard = playout.samplesPlayed - playout.samplesSilent
        if heard > 0 { concealed.observe(Double(playout.samplesConcealed) / Double(heard)) }
        if let quality = CallQuality(report) { opinionScore.observe(quality.opinionScore) }
    }
}

extension CallTally {
    static let ended = Metric(
        "handset_calls_ended_total", .counter, "Calls that have ended, missed ones too, by direction and reason",
        by: ["account", "direction", "reason"])
    static let reconnections = Metric(
        "handset_connection_losses_total", .counter, "Times the connection to the service was lost", by: ["account"])
    static let setUpTime = Metric(
        "handset_call_setup_seconds", .histogram, "From the invite until media flowed both ways")
    static let durations = Metric(
        "handset_call_duration_seconds", .histogram, "For how long calls were established")
    static let bufferDelays = Metric(
        "handset_call_jitter_buffer_seconds", .histogram,
        "Mean time of a call's packets from their arrival to their playout")
    static let roundTrips = Metric(
        "handset_call_round_trip_seconds", .histogram, "A call's last round trip by RTCP, of calls that have one")
    static let losses = Metric(
        "handset_call_loss_ratio", .histogram, "Share of a call's packets that never came")
    static let remoteLosses = Metric(
        "handset_call_remote_loss_ratio", .histogram,
        "Share of a call's sent packets that the other side reports as lost")
    static let concealment = Metric(
        "handset_call_concealed_ratio", .histogram,
        "Share of a call's sound that was concealed because packets were lost or late")
    static let opinionScores = Metric(
        "handset_call_mos", .histogram,
        "Estimated mean opinion score of a call as heard here (ITU-T G.107: delay and concealment)")
    static let responses = Metric(
        "handset_bot_response_seconds", .histogram,
        "From the end of the caller's speech to the first sound of a program's or bot's answer")
    static let interrupted = Metric(
        "handset_bot_interruptions_total", .counter, "Times a caller's speech stopped a program or bot")
    static let queueExits = Metric(
        "handset_queue_exits_total", .counter, "Callers that have left a queue of call flows, by result",
        by: ["result"])
    static let queueWaits = Metric(
        "handset_queue_wait_seconds", .histogram, "How long callers were in a queue of call flows")
    static let recorded = Metric(
        "handset_recordings_total", .counter, "Recordings that have ended, whole or failed", by: ["result"])
    static let fileFailures = Metric(
        "handset_file_failures_total", .counter, "Files played, recorded or captured in calls that failed")
    static let frames = Metric(
        "handset_call_frames_total", .counter,
        "Frames of calls that have ended: run, or skipped because the machine stalled",
        by: ["result"])

    /// All of them.
    static let metrics = [
        ended, reconnections, setUpTime, durations, bufferDelays, roundTrips, losses, remoteLosses, concealment,
        opinionScores,
        responses, interrupted, queueExits, queueWaits, recorded, fileFailures, frames,
    ]

    /// Adds what was counted to a page.
    func add(to page: inout MetricPage) {
        for (name, account) in accounts.sorted(by: { $0.key < $1.key }) {
            let counts = account.ended.map { (labels: [name, $0.direction.rawValue, $0.reason.rawValue], count: $1) }
            for (labels, count) in counts.sorted(by: { $0.labels.lexicographicallyPrecedes($1.labels) }) {
                page.add(Self.ended, count, labels)
            }
        }
        for (name, account) in accounts.sorted(by: { $0.key < $1.key }) {
            page.add(Self.reconnections, account.reconnections, [name])
        }
        page.add(Self.setUpTime, setUp)
        page.add(Self.durations, duration)
        page.add(Self.bufferDelays, bufferDelay)
        page.add(Self.roundTrips, roundTrip)
        page.add(Self.losses, loss)
        page.add(Self.remoteLosses, remoteLoss)
        page.add(Self.concealment, concealed)
        page.add(Self.opinionScores, opinionScore)
        page.add(Self.responses, response)
        page.add(Self.interrupted, interruptions)
        for (result, count) in queueResults.sorted(by: { $0.key < $1.key }) {
            page.add(Self.queueExits, count, [result])
        }
        page.add(Self.queueWaits, queueTimes)
        page.add(Self.recorded, recordings.whole, ["whole"])
        page.add(Self.recorded, recordings.failed, ["failed"])
        page.add(Self.fileFailures, failedFiles)
        page.add(Self.frames, framesRun, ["run"])
        page.add(Self.frames, framesSkipped, ["skipped"])
    }
}
