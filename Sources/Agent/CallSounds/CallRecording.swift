public import AudioKit
internal import BlockingWork
internal import Files
internal import Synchronization

/// The part of a caller's sound that a recording keeps: with trimming, from the first speech to the last, with a margin.
public struct RecordingTrim: Sendable {
    private let trims: Bool
    private let margin: Int
    private let lead: Int
    /// Kept until it is known whether there is speech near.
    private var held: [Int16] = []
    /// Of the first held sample, in the caller's sound.
    private var position: Int
    private var isSpeaking: Bool
    /// Whether there was any speech.
    public private(set) var hasSpoken: Bool
    /// Samples of speech that has ended.
    private var spoken = 0
    private var speechStart: Int
    private var speechEnd = 0

    /// Speech is reported some time after it has begun, so that this is kept before: in milliseconds.
    private static let leadMilliseconds = 1_500
    private static let marginMilliseconds = 250

    /// Begins with a recording.
    ///
    /// - Parameters:
    ///   - position: Of the first sample, in the caller's sound.
    ///   - rate: Samples a second.
    ///   - isSpeaking: Whether the caller speaks when the recording begins.
    public init(trims: Bool, from position: Int, rate: Int, isSpeaking: Bool) {
        self.trims = trims
        margin = rate * Self.marginMilliseconds / 1_000
        lead = rate * Self.leadMilliseconds / 1_000
        self.position = position
        self.isSpeaking = isSpeaking
        hasSpoken = isSpeaking
        speechStart = position
    }

    /// Takes what the caller says.
    ///
    /// - Returns: What is to be written.
    public mutating func take(_ samples: [Int16]) -> [Int16] {
        guard trims else { return samples }
        held += samples
        if isSpeaking { return release(held.count) }
        if !hasSpoken, held.count > lead { drop(held.count - lead) }
        return []
    }

    /// The caller has begun to speak, or has ended, at a position in the caller's sound.
    public mutating func noteSpeech(isOver: Bool, at place: Int) {
        if isOver, isSpeaking { spoken += max(0, place - speechStart) }
        isSpeaking = !isOver
        if isOver { speechEnd = place } else { speechStart = place }
        if !isOver, trims, !hasSpoken { drop(place - margin - position) }
        hasSpoken = true
    }

    /// Samples of speech so far, without pauses that are long enough to be noticed.
    ///
    /// - Parameter place: Where in the caller's sound the recording is.
    public func spokenSamples(at place: Int) -> Int { spoken + (isSpeaking ? max(0, place - speechStart) : 0) }

    /// Ends the recording.
    ///
    /// - Returns: The rest that is to be written.
    public mutating func finish() -> [Int16] {
        guard trims, hasSpoken else { return [] }
        return release(isSpeaking ? held.count : speechEnd + margin - position)
    }

    private mutating func drop(_ count: Int) { _ = release(count) }

    private mutating func release(_ count: Int) -> [Int16] {
        let count = max(0, min(held.count, count))
        let first = Array(held[..<count])
        held.removeFirst(count)
        position += count
        return first
    }
}

/// The file of a recording, which a thread that may block writes. It gets its name when it is whole.
public final class CallRecording: Sendable {
    private struct State {
        var pending: [Int16] = []
        var isWriting = false
        /// Whether it is kept, once it has ended.
        var end: Bool?
        var isFailed = false
        /// The disk takes sound too slowly: the recording fails once nothing is being written.
        var isTooSlow = false
    }

    /// Samples that may wait for the disk, at 16 kHz: ten seconds.
    static let mostPending = 160_000

    private let path: String
    private let rate: Int
    private let state = Mutex(State())
    private let writer: Mutex<WAVWriter?>
    private let finished: @Sendable (Result<String?, SoundFault>) -> Void

    /// Prepares a recording.
    ///
    /// - Parameters:
    ///   - path: The name that it gets when it is whole.
    ///   - rate: Samples a second.
    ///   - opened: The file under the name of one that is not whole; nil: it is made with the first samples.
    ///   - finished: Is called once, on another thread: with the file's path, which is nil if it is dropped, or when it has failed. What
    ///     was written before a failure stays under the name of a recording that is not whole.
    public init(
        path: String, rate: Int, opened: consuming WAVWriter? = nil,
        finished: @escaping @Sendable (Result<String?, SoundFault>) -> Void
    ) {
        self.path = path
        self.rate = rate
        self.finished = finished
        writer = Mutex(opened)
    }

    /// Appends samples.
    public func append(_ samples: [Int16]) {
        state.withLock { state in
            state.isTooSlow = state.isTooSlow || state.pending.count + samples.count > Self.mostPending
            if !state.isTooSlow { state.pending += samples }
        }
        write()
    }

    /// Ends the recording.
    ///
    /// - Parameter isKept: Otherwise the file is removed.
    public func finish(isKept: Bool) {
        state.withLock { $0.end = $0.end ?? isKept }
        write()
    }

    private func write() {
        let isDue = state.withLock { state in
            guard !state.isWriting, !state.isFailed, state.end != nil || !state.pending.isEmpty else { return false }
            state.isWriting = true
            return true
        }
        guard isDue else { return }
        Task { [self] in await BlockingThreads.files.run { [self] in writePending() } }
    }

    private func writePending() {
        while let (samples, end) = takePending() {
            do throws(AudioFileError) {
                guard !state.withLock(\.isTooSlow) else {
                    throw AudioFileError(stalled: path, .record, reason: "it does not take sound as fast as it comes")
                }
                try write(samples)
                guard let end else { continue }
                finished(.success(try complete(isKept: end)))
            } catch {
                // The file is closed, so that it can be had by another.
                writer.withLock { $0 = nil }
                fail("\(error)")
            }
            return
        }
    }

    /// What is to be written, and whether the file is kept if the recording has ended; nil if there is nothing to do now.
    private func takePending() -> (samples: [Int16], end: Bool?)? {
        state.withLock { state in
            guard state.end != nil || !state.pending.isEmpty else {
                state.isWriting = false
                return nil
            }
            defer { state.pending = [] }
            return (state.pending, state.end)
        }
    }

    private func write(_ samples: [Int16]) throws(AudioFileError) {
        guard !samples.isEmpty else { return }
        // A folder that cannot be made is an error of the file.
        try? WritableFolder.make(WritableFolder.parent(of: path))
        try writer.withLock { writer throws(AudioFileError) in
            if writer == nil { writer = try WAVWriter(path: PartFile.path(of: path), sampleRate: rate) }
            try writer?.append(samples.span)
        }
    }

    private func complete(isKept: Bool) throws(AudioFileError) -> String? {
        try writer.withLock { writer throws(AudioFileError) in
            guard writer != nil else { return nil }
            try writer?.finish()
            // It stays locked until it has its name, so that no process takes it for one that was left behind.
            defer { writer = nil }
            if isKept { return try PartFile.complete(path) }
            PartFile.discard(path)
            return nil
        }
    }

    private func fail(_ why: String) {
        let isFirst = state.withLock { state in
            defer { state.isFailed = true }
            return !state.isFailed
        }
        if isFirst { finished(.failure(SoundFault(why))) }
    }
}
