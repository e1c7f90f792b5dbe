internal import ControlWire
internal import Synchronization

/// The waiting events of one watching client, between the server and the task that writes them.
final class ControlEventQueue: Sendable {
    private struct State {
        var buffer = ControlEventBuffer()
        var waiter: CheckedContinuation<[UInt8]?, Never>?
        var isOver = false
    }

    private let state = Mutex(State())

    /// Adds a line; false if the client is too slow and must be disconnected.
    func add(_ line: [UInt8]) -> Bool { change { $0.add(line) } }

    /// Replaces waiting levels by newer ones.
    func setLevels(_ line: [UInt8]) {
        _ = change { buffer in
            buffer.setLevels(line)
            return true
        }
    }

    /// No more comes, and what waits is not wanted.
    func end() {
        let waiter = state.withLock { state in
            state.isOver = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: nil)
    }

    /// Waits for the next line; nil at the end, which comes, too, when the task is cancelled. For one task.
    func next() async -> [UInt8]? {
        await withTaskCancellationHandler {
            await nextLine()
        } onCancel: {
            end()
        }
    }

    private func nextLine() async -> [UInt8]? {
        await withCheckedContinuation { continuation in
            let (line, isReady) = state.withLock { state -> ([UInt8]?, Bool) in
                if state.isOver { return (nil, true) }
                if let line = state.buffer.next() { return (line, true) }
                state.waiter = continuation
                return (nil, false)
            }
            if isReady { continuation.resume(returning: line) }
        }
    }

    private func change(_ body: (inout ControlEventBuffer) -> Bool) -> Bool {
        let (hasRoom, waiter, line) = state.withLock { state in
            let hasRoom = state.isOver || body(&state.buffer)
            guard !state.isOver, let waiter = state.waiter, let line = state.buffer.next() else {
                return (hasRoom, nil as CheckedContinuation<[UInt8]?, Never>?, nil as [UInt8]?)
            }
            state.waiter = nil
            return (hasRoom, waiter, line)
        }
        waiter?.resume(returning: line)
        return hasRoom
    }
}
