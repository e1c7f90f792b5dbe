internal import AudioKit
internal import Realtime
internal import Files
internal import Synchronization

/// A file that is being played or recorded. Only one thread at a time uses it: first the one that opened it, then the
/// file thread.
protocol AudioFileStream: AnyObject, Sendable {
    /// The file that is played, if one is.
    var played: FileIdentity? { get }
    /// Moves as many samples as there are, or as fit.
    func move()
    /// Moves what is left and closes the file.
    func finish()
}

/// Fills a ring from a file.
final class PlayerStream: AudioFileStream {
    private struct State: ~Copyable {
        var reader: AudioFileReader
        var ring: AudioRing.Producer
        var block = SampleBuffer(capacity: 4_096)
        var isOver = false

        /// Moves one block if there is room for it.
        ///
        /// - Returns: Whether there may be another.
        mutating func moveBlock() throws(AudioFileError) -> Bool {
            guard !isOver, ring.space >= block.capacity else { return false }
            let count = try Self.read(&reader, into: &block)
            Self.write(block, count, to: &ring)
            if count < block.capacity { end() }
            return true
        }

        mutating func end() {
            isOver = true
            ring.close()
        }

        private static func write(_ block: borrowing SampleBuffer, _ count: Int, to ring: inout AudioRing.Producer) {
            _ = ring.write(block.samples(count))
        }

        private static func read(
            _ reader: inout AudioFileReader, into block: inout SampleBuffer
        ) throws(AudioFileError) -> Int {
            var room = block.mutableSamples(block.capacity)
            return try reader.read(into: &room)
        }
    }

    let played: FileIdentity?
    private let state: Mutex<State>
    private let onFailure: @Sendable (AudioFileError) -> Void

    init(
        _ reader: consuming AudioFileReader, into ring: consuming AudioRing.Producer,
        onFailure: @escaping @Sendable (AudioFileError) -> Void
    ) {
        played = reader.identity
        state = Mutex(State(reader: reader, ring: ring))
        self.onFailure = onFailure
    }

    func move() {
        let failure: AudioFileError? = state.withLock { state in
            do throws(AudioFileError) {
                while try state.moveBlock() {}
                return nil
            } catch {
                return error
            }
        }
        guard let failure else { return }
        // The reader of the sound's end knows of the failure.
        onFailure(failure)
        state.withLock { $0.end() }
    }

    func finish() {}
}

/// Handlers for the file thread's reports of a call's files.
struct FileReports: Sendable {
    /// A file failed, or could not be opened.
    var onFailure: @Sendable (AudioFileError) -> Void
    /// A recording has ended.
    var onRecordingEnd: @Sendable (RecordingEnd) -> Void = { _ in }
}

/// Empties the ring of what the peer says into a recording, and that of what this side says, if there is one.
final class RecorderStream: AudioFileStream {
    private struct State: ~Copyable {
        var writer: RecordingWriter
        var ring: AudioRing.Consumer
        var sent: AudioRing.Consumer?
        var block = SampleBuffer(capacity: 4_096)
        var sentBlock = SampleBuffer(capacity: 4_096)
        /// The file has failed or is finished: the rest is read and dropped.
        var isClosed = false
        /// Samples that were dropped.
        var missed = 0

        /// Sides of calls on a card come at different times; if one stalls for longer than this, its gap is silence.
        private static let largestGap = 9_600

        /// Moves all that waits on both sides, or at the end all that there is.
        mutating func drain(isLast: Bool = false) throws(AudioFileError) {
            while true {
                let (heard, said) = (ring.count, sent?.available())
                let common = min(heard, said ?? heard)
                var counts = (heard: common, said: said == nil ? 0 : common)
                if common == 0 {
                    guard isLast || max(heard, said ?? 0) > Self.largestGap else { return }
                    counts = (heard, said ?? 0)
                }
                counts = (min(counts.heard, block.capacity), min(counts.said, block.capacity))
                guard max(counts.heard, counts.said) > 0 else { return }
                try move(counts.heard, counts.said)
            }
        }

        private mutating func move(_ heard: Int, _ said: Int) throws(AudioFileError) {
            Self.read(&ring, heard, into: &block)
            if said > 0 { Self.read(&sent, said, into: &sentBlock) }
            if isClosed {
                missed += max(heard, said)
            } else {
                try Self.append(block, heard, sentBlock, said, to: &writer)
            }
        }

        private static func append(
            _ heard: borrowing SampleBuffer, _ heardCount: Int, _ said: borrowing SampleBuffer, _ saidCount: Int,
            to writer: inout RecordingWriter
        ) throws(AudioFileError) {
            try writer.append(heard: heard.samples(heardCount), said: said.samples(saidCount))
        }

        private static func read(_ ring: inout AudioRing.Consumer, _ count: Int, into block: inout SampleBuffer) {
            var room = block.mutableSamples(count)
            _ = ring.read(into: &room)
        }

        private static func read(_ ring: inout AudioRing.Consumer?, _ count: Int, into block: inout SampleBuffer) {
            var room = block.mutableSamples(count)
            _ = ring?.read(into: &room)
        }
    }

    var played: FileIdentity? { nil }
    private let state: Mutex<State>
    private let reports: FileReports

    init(
        _ writer: consuming RecordingWriter, from ring: consuming AudioRing.Consumer,
        and sent: consuming AudioRing.Consumer? = nil, _ reports: FileReports
    ) {
        state = Mutex(State(writer: writer, ring: ring, sent: sent))
        self.reports = reports
    }

    func move() { report { state throws(AudioFileError) in try state.drain() } }

    func finish() {
        report { state throws(AudioFileError) in
            try state.drain(isLast: true)
            guard !state.isClosed else { return }
            try state.writer.finish()
            state.isClosed = true
        }
        reports.onRecordingEnd(state.withLock { $0.writer.end(missed: $0.missed) })
    }

    /// Runs `body` on the file, and reports the first failure.
    private func report(_ action: (inout State) throws(AudioFileError) -> Void) {
        let failure: AudioFileError? = state.withLock { state in
            do throws(AudioFileError) {
                try action(&state)
                return nil
            } catch {
                guard !state.isClosed else { return nil }
                state.isClosed = true
                state.writer.fail(error)
                return error
            }
        }
        if let failure { reports.onFailure(failure) }
    }
}
