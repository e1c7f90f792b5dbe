internal import AudioKit
internal import Realtime
internal import Synchronization

/// A file that is being played or recorded. Only one thread at a time uses it: whoever opened it, then the file thread.
protocol AudioFileStream: AnyObject, Sendable {
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
    }

    private let state: Mutex<State>
    private let onFailure: @Sendable (AudioFileError) -> Void

    init(
        _ reader: consuming AudioFileReader, into ring: consuming AudioRing.Producer,
        onFailure: @escaping @Sendable (AudioFileError) -> Void
    ) {
        state = Mutex(State(reader: reader, ring: ring))
        self.onFailure = onFailure
    }

    func move() {
        let failure: AudioFileError? = state.withLock { state in
            while !state.isOver, state.ring.space >= state.block.capacity {
                do throws(AudioFileError) {
                    var room = state.block.mutableSamples(state.block.capacity)
                    let count = try state.reader.read(into: &room)
                    _ = state.ring.write(state.block.samples(count))
                    if count < state.block.capacity { state.isOver = true }
                } catch {
                    state.isOver = true
                    state.ring.close()
                    return error
                }
                if state.isOver { state.ring.close() }
            }
            return nil
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
    }

    private let state: Mutex<State>
    private let onFailure: @Sendable (AudioFileError) -> Void

    init(
        _ writer: consuming WAVWriter, from ring: consuming AudioRing.Consumer,
        onFailure: @escaping @Sendable (AudioFileError) -> Void
    ) {
        state = Mutex(State(writer: writer, ring: ring))
        self.onFailure = onFailure
    }

    func move() { report { state throws(AudioFileError) in try Self.drain(&state) } }

    func finish() {
        report { state throws(AudioFileError) in
            try Self.drain(&state)
            guard !state.isClosed else { return }
            state.isClosed = true
            try state.writer.finish()
        }
    }

    /// Does something with the file, and tells of the first failure.
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

    private static func drain(_ state: inout State) throws(AudioFileError) {
        while true {
            var room = state.block.mutableSamples(state.block.capacity)
            let count = state.ring.read(into: &room)
            guard count > 0 else { return }
            if !state.isClosed { try state.writer.append(state.block.samples(count)) }
        }
    }
}
