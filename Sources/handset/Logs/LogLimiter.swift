internal import Logging
internal import Realtime
internal import Synchronization
internal import Core

/// Applies ``MessageLimit`` to all loggers of a process, and reports what was withheld at the end of its minute. Without
/// withheld lines it needs no timer.
final class LogLimiter: Sendable {
    private struct State {
        var limit = MessageLimit()
        var timer: (deadline: Instant, task: Task<Void, Never>)?
    }

    private let state = Mutex(State())
    private let now: @Sendable () -> Instant
    private let tell: @Sendable (MessageLimit.Withheld) -> Void

    /// - Parameter tell: Writes the line with the number of withheld ones.
    init(
        now: @escaping @Sendable () -> Instant = { MonotonicClock.now },
        tell: @escaping @Sendable (MessageLimit.Withheld) -> Void
    ) {
        self.now = now
        self.tell = tell
    }

    /// Whether a message is to be written.
    func admits(_ message: String, _ level: Logger.Level, label: String) -> Bool {
        feed(.message(message, level, label: label))
    }

    /// Reports at once what was withheld.
    func finish() { _ = feed(.finish) }

    private func feed(_ input: MessageLimit.Input) -> Bool {
        var outbox: [MessageLimit.Output] = []
        state.withLock { state in
            state.limit.handle(input, at: now(), into: &outbox)
            setTimer(&state)
        }
        var isAdmitted = false
        // Written without the lock: the log's reader may be slow.
        for output in outbox {
            switch output {
            case .write: isAdmitted = true
            case .tell(let withheld): tell(withheld)
            }
        }
        return isAdmitted
    }

    private func setTimer(_ state: inout State) {
        let deadline = state.limit.nextDeadline
        guard deadline != state.timer?.deadline else { return }
        state.timer?.task.cancel()
        state.timer = deadline.map { deadline in
            let wait = now().duration(to: deadline)
            return (
                deadline,
                Task.detached { [weak self] in
                    guard (try? await Task.sleep(for: wait)) != nil else { return }
                    _ = self?.feed(.timerFired)
                }
            )
        }
    }
}

extension LogLine {
    /// Reports how many lines were lost.
    init(lost count: Int, at time: WallClock) {
        self.init(
            time: time, level: .warning, label: "handset",
            message: "Lines of the log were lost, because they could not be written in time",
            metadata: ["lost": .stringConvertible(count)])
    }

    /// Reports how many lines with a message were not written.
    init(_ withheld: MessageLimit.Withheld, at time: WallClock) {
        self.init(
            time: time, level: withheld.level, label: withheld.label,
            message: "\(withheld.message) … and \(Self.grouped(withheld.count)) more of these in the last minute",
            metadata: ["withheld": .stringConvertible(withheld.count)])
    }

    /// With a comma between thousands.
    private static func grouped(_ number: Int) -> String {
        let digits = Array(String(number))
        return digits.indices.map { index in
            let left = digits.count - index
            return (index > 0 && left % 3 == 0 ? "," : "") + String(digits[index])
        }.joined()
    }
}
