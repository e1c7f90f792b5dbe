internal import Realtime
internal import Synchronization

/// Writes the log from a thread of its own, so that a disk or a reader that stalls delays no call.
///
/// Capacity: ``capacity`` bytes of lines that wait, and those that are being written. Further lines are lost and counted; a line with
/// their number takes their place.
final class LogWriter: Sendable {
    /// Some 3,500 lines, of which a call has five.
    static let capacity = 1 << 20

    private struct State {
        var lines: [String] = []
        var bytes = 0
        var lost = 0
        var isEnding = false
    }

    private let state = Mutex(State())
    private let capacity: Int
    private let wakeup: Wakeup
    private let ended: Wakeup
    private let lossLine: @Sendable (Int) -> String
    private let output: @Sendable (String) -> Void

    /// - Parameters:
    ///   - lossLine: The line that reports a number of lost lines.
    ///   - output: Writes one line; may block.
    init(
        capacity: Int = LogWriter.capacity, lossLine: @escaping @Sendable (Int) -> String,
        output: @escaping @Sendable (String) -> Void
    ) throws(RealtimeError) {
        self.capacity = capacity
        wakeup = try Wakeup()
        ended = try Wakeup()
        self.lossLine = lossLine
        self.output = output
        // Not joined: a write that never returns must not keep the process from ending.
        _ = try RealtimeThread(name: "log") { [self] in run() }
    }

    /// Hands over a line, without blocking.
    func write(_ line: String) {
        state.withLock { state in
            // After a loss all lines are lost until the thread has reported it, so that the report is in the right place.
            guard state.lost == 0, state.bytes + line.utf8.count <= capacity else { return state.lost += 1 }
            state.lines.append(line)
            state.bytes += line.utf8.count
        }
        wakeup.signal()
    }

    /// Writes what waits and then `line`, for `milliseconds` at most, and ends the thread. Lines that come later are not written.
    func finish(saying line: String? = nil, withinMilliseconds milliseconds: Int32) {
        state.withLock { state in
            if let line { state.lines.append(line) }
            state.isEnding = true
        }
        wakeup.signal()
        ended.wait(timeoutMilliseconds: milliseconds)
    }

    private func run() {
        while true {
            let batch = state.withLock { state in
                defer { (state.lines, state.bytes, state.lost) = ([], 0, 0) }
                return state
            }
            for line in batch.lines { output(line) }
            if batch.lost > 0 { output(lossLine(batch.lost)) }
            guard batch.lines.isEmpty, batch.lost == 0 else { continue }
            if batch.isEnding { break }
            wakeup.wait()
        }
        ended.signal()
    }
}
