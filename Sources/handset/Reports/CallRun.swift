internal import AudioDevices
internal import AudioKit
internal import CallControl
internal import Glibc
internal import LoopbackAnalysis
internal import CallMedia
internal import MediaEngine
internal import Realtime
internal import Core

/// What one `handset call` has seen, and the report that follows from it.
struct CallRun {
    let callee: String
    let play: String?
    /// Where what comes back is recorded; a temporary file if the user did not ask for it but it is to be compared.
    let recordingPath: String?
    private let keepsRecording: Bool
    private let watched: [WatchedProcess]
    /// The PCMs that the call is on, if it is on a sound card.
    private let cards: (playback: String?, capture: String?)?
    var connectTime = Duration.zero
    var establishedAfter: Duration?
    var setUpTime: Duration?
    var fileError: AudioFileError?
    /// Why the keys that were to be pressed could not be.
    var keyError: String?
    /// Whether the process was asked to end before the call had come to its end.
    var isInterrupted = false
    private(set) var record: CallRecord?
    private(set) var media: MediaReport?
    private(set) var card: CardStatistics?

    init(
        callee: String, play: String?, record: String?, watched: [WatchedProcess],
        cards: (playback: String?, capture: String?)?
    ) {
        self.cards = cards
        self.callee = callee
        self.play = play
        self.watched = watched
        keepsRecording = record != nil
        recordingPath = record ?? (play == nil ? nil : "/tmp/handset-call-\(getpid()).wav")
    }

    mutating func ended(_ record: CallRecord, _ media: MediaReport?, _ card: CardStatistics?) {
        self.card = card
        self.record = record
        self.media = media
    }

    /// Whether there is something that was played, and something that came back.
    var hasSoundToCompare: Bool { play != nil && recordingPath != nil && isRecorded }

    /// Whether the recording is this call's. One of an earlier call may be there if this one's cannot be written.
    private var isRecorded: Bool { establishedAfter != nil && fileError?.purpose != .record }

    /// The report; compares the two recordings, which takes a moment.
    func report() -> CallReport {
        var report = CallReport(
            callee: callee, outcome: outcome,
            connectMilliseconds: connectTime.milliseconds)
        report.establishedMilliseconds = establishedAfter?.milliseconds
        report.setUpMilliseconds = setUpTime?.milliseconds
        report.durationMilliseconds = record?.duration.milliseconds ?? 0
        report.cause = record?.cause
        report.error = record?.foundNoDevice == true ? nil : record?.error.map { "\($0)" }
        if let keyError {
            report.keysFailed = true
            report.error = report.error ?? "the keys could not be pressed: \(keyError)"
        }
        report.fileError = fileError
        if let media { report.take(media) }
        report.card = card
        report.cards = cards
        compare(&report)
        report.processes =
            [("call", ProcessUsage.ofThisProcess)]
            + watched.compactMap { process in
                process.usage.map { (process.name, $0) }
            }
        if !keepsRecording, let recordingPath { unsafe unlink(recordingPath) }
        return report
    }

    private var outcome: CallReport.Outcome {
        let reason = record?.reason ?? .internalError
        if isInterrupted, reason == .completed || reason == .cancelled { return .interrupted }
        return record?.foundNoDevice == true ? .notThere : .ended(reason)
    }

    private func compare(_ report: inout CallReport) {
        guard let play, let recordingPath, isRecorded else { return }
        do {
            let sent = try AudioFileReader.samples(ofFile: play)
            let received = try AudioFileReader.samples(ofFile: recordingPath)
            guard let likeness = LikenessAnalysis().compare(sent: sent, received: received) else { return }
            report.likeness = likeness.likeness
            report.roundTripMilliseconds = likeness.delayMilliseconds
            report.quality = SpeechQualityAnalysis().compare(reference: sent, degraded: received)
        } catch {
            report.error = report.error ?? "\(error)"
        }
    }
}

extension CallRecord {
    /// Whether the call failed because no device of the callee was connected.
    var foundNoDevice: Bool { error?.code == .noDeviceOnline }
}
