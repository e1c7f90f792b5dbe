internal import Synchronization

/// What the workers answer when they are asked whether they work.
struct WorkerPulses {
    /// A call whose frame is later than this is not being run. A loaded worker skips frames long before.
    static let longestOverdueNanoseconds: Int64 = 2_000_000_000

    private var isAsked = false
    private var overdueNanoseconds: [Int: Int64] = [:]

    /// A worker has answered.
    mutating func note(overdueNanoseconds: Int64, of worker: Int) {
        self.overdueNanoseconds[worker] = overdueNanoseconds
    }

    /// The workers are asked again.
    ///
    /// - Returns: Whether all of them have answered since they were asked before, and run their calls; true at the first time.
    mutating func ask(workers: Int) -> Bool {
        defer { (isAsked, overdueNanoseconds) = (true, [:]) }
        guard isAsked else { return true }
        return (0..<workers).allSatisfy { worker in
            overdueNanoseconds[worker].map { $0 < Self.longestOverdueNanoseconds } ?? false
        }
    }
}

// Whether the workers work, for a watchdog.
extension MediaEngine {
    /// Whether every worker has answered since this was last called, and runs the frames of its calls. A sound card that is
    /// missing changes nothing about that. Asks each worker, which answers within a few milliseconds.
    ///
    /// - Returns: True at the first call.
    public func areWorkersAlive() -> Bool {
        let haveAnswered = state.withLock { $0.pulses.ask(workers: workers.count) }
        for worker in workers where !worker.send(.pulse) { return false }
        return haveAnswered
    }

    func note(overdueNanoseconds: Int64, of worker: MediaWorker) {
        guard let index = workers.firstIndex(where: { $0 === worker }) else { return }
        state.withLock { $0.pulses.note(overdueNanoseconds: overdueNanoseconds, of: index) }
    }
}
