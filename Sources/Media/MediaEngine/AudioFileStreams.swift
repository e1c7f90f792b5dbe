internal import AudioKit
internal import Realtime
internal import RegularFiles
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
                state.end()
                return error
            }
        }
        if let failure { onFailure(failure) }
    }

    func finish() {}
}

/// Empties a ring into a file.
final class RecorderStream: AudioFileStream {
    private struct State: ~Copyable {
        var writer: WAVWriter
        var ring: AudioRing.Consumer
        var block = SampleBuffer(capacity: 4_096)
        /// The file has failed or is finished: the rest is read and dropped.
        var isClosed = false

        /// Moves all that waits.
        mutating func drain() throws(AudioFileError) {
            while true {
                let count = Self.read(&ring, into: &block)
                guard count > 0 else { return }
                if !isClosed { try Self.append(block, count, to: &writer) }
            }
        }

        private static func append(
            _ block: borrowing SampleBuffer, _ count: Int, to writer: inout WAVWriter
        ) throws(AudioFileError) {
            try writer.append(block.samples(count))
        }

        private static func read(_ ring: inout AudioRing.Consumer, into block: inout SampleBuffer) -> Int {
            var room = block.mutableSamples(block.capacity)
            return ring.read(into: &room)
        }
    }

    var played: FileIdentity? { nil }
    private let state: Mutex<State>
    private let onFailure: @Sendable (AudioFileError) -> Void

    init(
        _ writer: consuming WAVWriter, from ring: consuming AudioRing.Consumer,
        onFailure: @escaping @Sendable (AudioFileError) -> Void
    ) {
        state = Mutex(State(writer: writer, ring: ring))
        self.onFailure = onFailure
    }

    func move() { report { state throws(AudioFileError) in try state.drain() } }

    func finish() {
        report { state throws(AudioFileError) in
            try state.drain()
            guard !state.isClosed else { return }
            state.isClosed = true
            try state.writer.finish()
        }
    }

    /// Runs `body` on the file, and reports the first failure.
    private func report(_ action: (inout State) throws(AudioFileError) -> Void) {
        let failure: AudioFileError? = state.withLock { state in
            do throws(AudioFileError) {
                try action(&state)
                return nil
            } catch {
                state.isClosed = true
                return error
            }
        }
        if let failure { onFailure(failure) }
    }
}
