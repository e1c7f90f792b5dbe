internal import BlockingWork
internal import Logging
internal import Files
internal import Realtime
internal import Synchronization
internal import Core

/// Keeps mute and volume of a device in a file, for its next start.
final class SoundKeeper: Sendable {
    private struct State {
        var memory: SoundMemory
        var timer: Task<Void, Never>?
        var writer: Task<Void, Never>?
    }

    private let state: Mutex<State>
    private let queue: AsyncStream<[UInt8]>.Continuation
    /// How loud the device was when it last stopped, as far as the configuration still says what it said then.
    let kept: SoundSettings

    /// Reads what an earlier run has kept. A file that cannot be used is logged, and the configuration applies.
    init(path: String, configured: SoundSettings, logger: Logger) {
        let memory = Self.read(path, configured, logger)
        kept = memory.current
        state = Mutex(State(memory: memory))
        // The newest is all that counts.
        let (writings, queue) = AsyncStream.makeStream(of: [UInt8].self, bufferingPolicy: .bufferingNewest(1))
        self.queue = queue
        let writer = Task { [weak self] in
            for await bytes in writings {
                do throws(PrivateFileError) {
                    try await BlockingThreads.files.run { () throws(PrivateFileError) in
                        try PrivateFile.replace(path, with: bytes)
                    }
                } catch {
                    logger.warning("Mute and volume are not kept for the next start", metadata: ["error": "\(error)"])
                    self?.state.withLock { $0.memory.writingFailed() }
                }
            }
        }
        state.withLock { $0.writer = writer }
    }

    deinit { queue.finish() }

    /// Mute or volume has changed.
    func note(_ settings: SoundSettings) {
        state.withLock { state in
            let isWaiting = state.memory.nextDeadline != nil
            feed(.changed(settings), &state)
            guard !isWaiting else { return }
            state.timer = Task.detached { [weak self] in
                guard (try? await Task.sleep(for: SoundMemory.delay)) != nil else { return }
                self?.fire()
            }
        }
    }

    /// Writes what waits, and stops.
    func close() async {
        let writer = state.withLock { state in
            state.timer?.cancel()
            feed(.finish, &state)
            return state.writer
        }
        queue.finish()
        await writer?.value
    }

    private func fire() { state.withLock { feed(.timerFired, &$0) } }

    private func feed(_ input: SoundMemory.Input, _ state: inout State) {
        var outbox: [SoundMemory.Output] = []
        state.memory.handle(input, at: MonotonicClock.now, into: &outbox)
        for case .write(let bytes) in outbox { queue.yield(bytes) }
    }

    private static func read(_ path: String, _ configured: SoundSettings, _ logger: Logger) -> SoundMemory {
        let why: String
        do throws(PrivateFileError) {
            guard let bytes = try PrivateFile.read(path, maximumBytes: SoundMemory.maximumBytes), !bytes.isEmpty else {
                return SoundMemory(configured: configured)
            }
            do throws(SoundMemory.Fault) {
                return try SoundMemory(configured: configured, kept: bytes)
            } catch {
                why = "\"\(path)\": \(error)"
            }
        } catch {
            why = "\(error)"
        }
        logger.warning(
            "Mute and volume are as configured, not as they were: the file that keeps them cannot be used, and the next change replaces it",
            metadata: ["error": "\(why)"])
        return SoundMemory(configured: configured)
    }
}
