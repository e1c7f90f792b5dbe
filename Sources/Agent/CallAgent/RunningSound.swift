internal import MediaEngine

/// What clients have changed in the sound of a call that runs.
struct RunningSound {
    /// The part of a program or bot in the call.
    enum Participation {
        case none, present, left
    }

    var participation = Participation.none
    /// The file was played to its end before media flowed both ways.
    var isOverEarly = false
    /// The file that is being recorded to.
    private(set) var recording: String?
    /// Recordings that were stopped, and whose files are not finished yet.
    private var stopped: Set<String> = []
    private var recordings = 0

    /// A recording has begun.
    mutating func began(recording path: String) {
        recording = path
        recordings += 1
    }

    /// The recording is to end, and the call goes on.
    mutating func stopRecording() {
        if let recording { stopped.insert(recording) }
        recording = nil
    }

    /// A recording is over.
    ///
    /// - Returns: Why.
    mutating func ended(recording end: RecordingEnd) -> RecordingEndReason {
        if stopped.remove(end.path) != nil, end.failure == nil { return .stopped }
        if end.path == recording { recording = nil }
        return end.failure == nil ? .callEnded : .failed
    }

    /// The file for the next recording, beside the one that the configuration gives the call.
    func nextRecording(beside first: String) -> String {
        guard recordings > 0 else { return first }
        let name = first.lastIndex(of: "/").map { first.index(after: $0) } ?? first.startIndex
        let dot = first[name...].lastIndex(of: ".") ?? first.endIndex
        return "\(first[..<dot])-\(recordings + 1)\(first[dot...])"
    }
}
