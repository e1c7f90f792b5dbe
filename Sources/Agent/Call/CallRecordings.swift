internal import AudioKit

/// Why a recording has ended.
public enum RecordingEndReason: String, Sendable {
    /// It was stopped by request.
    case stopped
    /// The call has ended.
    case callEnded = "call_ended"
    /// Its file failed.
    case failed
}

/// The recordings of a call, one after the other.
struct CallRecordings {
    /// The file that is being recorded to.
    private(set) var recording: String?
    /// That file has failed, and gets nothing more.
    private var hasFailed = false
    /// Recordings that were stopped, and whose files are not finished yet.
    private var stopped: Set<String> = []
    private var count = 0

    /// A recording has begun.
    mutating func began(_ path: String) {
        recording = path
        hasFailed = false
        count += 1
    }

    /// A file has failed.
    mutating func failed(_ error: AudioFileError) {
        guard error.purpose == .record, let recording else { return }
        if error.path == recording || error.path == PartFile.path(of: recording) { hasFailed = true }
    }

    /// The file that is being recorded to and has not failed.
    var intact: String? { hasFailed ? nil : recording }

    /// Whether the end of one is still to come.
    var areOpen: Bool { recording != nil || !stopped.isEmpty }

    /// Ends the recording in a continuing call.
    mutating func stop() {
        if let recording { stopped.insert(recording) }
        recording = nil
    }

    /// A recording has ended.
    ///
    /// - Parameter path: The file that was asked for.
    /// - Returns: Why.
    mutating func ended(_ path: String, isWhole: Bool) -> RecordingEndReason {
        let wasStopped = stopped.remove(path) != nil
        if wasStopped, isWhole { return .stopped }
        // One that was stopped, or has failed, may have been followed by another.
        if !wasStopped, path == recording { recording = nil }
        return isWhole ? .callEnded : .failed
    }

    /// Names that are tried for a recording.
    private static let mostNames = 1_000

    /// The file for the next recording, beside the one that the configuration gives the call.
    ///
    /// - Parameter isTaken: Whether there is a file of this name.
    func next(beside first: String, isTaken: (String) -> Bool) -> String {
        guard count > 0 else { return first }
        let name = first.lastIndex(of: "/").map { first.index(after: $0) } ?? first.startIndex
        let dot = first[name...].lastIndex(of: ".") ?? first.endIndex
        let numbers = count + 1...count + Self.mostNames
        let names = numbers.lazy.map { "\(first[..<dot])-\($0)\(first[dot...])" }
        // If all are, the recording is refused.
        return names.first { !isTaken($0) } ?? first
    }
}
