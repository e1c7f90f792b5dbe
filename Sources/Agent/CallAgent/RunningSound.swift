internal import AudioKit
internal import MediaEngine

/// What clients have changed in the sound of a call that runs.
struct RunningSound {
    /// The part of a program or bot in the call.
    enum Participation {
        case none, present, left
    }

    var participation = Participation.none
    /// Participants that were asked to leave, and whose events may still come.
    private var leaving = 0
    /// The file was played to its end before the call was established.
    var isOverEarly = false
    /// The file that is being recorded to.
    private(set) var recording: String?
    /// That file has failed, and gets nothing more.
    private var hasFailed = false
    /// Recordings that were stopped, and whose files are not finished yet.
    private var stopped: Set<String> = []
    private var recordings = 0

    /// Whether events of a program or bot are of one that was detached.
    var hasLeft: Bool { participation == .left || leaving > 0 }

    /// A participant is asked to leave.
    mutating func beganToLeave() { leaving += 1 }

    /// One of those has left.
    mutating func noteLeft() { leaving = max(0, leaving - 1) }

    /// A recording has begun.
    mutating func began(recording path: String) {
        recording = path
        hasFailed = false
        recordings += 1
    }

    /// A file has failed.
    mutating func failed(_ error: AudioFileError) {
        guard error.purpose == .record, let recording else { return }
        if error.path == recording || error.path == PartFile.path(of: recording) { hasFailed = true }
    }

    /// The file that is being recorded to and has not failed.
    var soundRecording: String? { hasFailed ? nil : recording }

    /// Ends the recording in a continuing call.
    mutating func stopRecording() {
        if let recording { stopped.insert(recording) }
        recording = nil
    }

    /// A recording has ended.
    ///
    /// - Returns: Why.
    mutating func ended(recording end: RecordingEnd) -> RecordingEndReason {
        let wasStopped = stopped.remove(end.requestedPath) != nil
        if wasStopped, end.failure == nil { return .stopped }
        // One that was stopped, or has failed, may have been followed by another.
        if !wasStopped, end.requestedPath == recording { recording = nil }
        return end.failure == nil ? .callEnded : .failed
    }

    /// Names that are tried for a recording.
    private static let mostNames = 1_000

    /// The file for the next recording, beside the one that the configuration gives the call.
    ///
    /// - Parameter isTaken: Whether there is a file of this name.
    func nextRecording(beside first: String, isTaken: (String) -> Bool) -> String {
        guard recordings > 0 else { return first }
        let name = first.lastIndex(of: "/").map { first.index(after: $0) } ?? first.startIndex
        let dot = first[name...].lastIndex(of: ".") ?? first.endIndex
        let numbers = recordings + 1...recordings + Self.mostNames
        let names = numbers.lazy.map { "\(first[..<dot])-\($0)\(first[dot...])" }
        // If all are, the recording is refused.
        return names.first { !isTaken($0) } ?? first
    }
}
