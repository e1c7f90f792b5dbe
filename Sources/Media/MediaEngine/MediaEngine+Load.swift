internal import Synchronization

// How busy the workers are, and whether they have room for more calls.
extension MediaEngine {
    /// Whether the workers, and the memory, have room for one more call without harm to those that they have.
    ///
    /// A refusal makes it answer no until the load has fallen clearly below what it refused at.
    /// - Parameters:
    ///   - streams: Streams of the call, each of which costs as much as a call.
    ///   - unplaced: Streams of calls that have been admitted before and have not been started yet.
    public func hasRoom(for streams: Int = 1, besides unplaced: Int) -> Bool {
        state.withLock { state in
            var calls = [Int](repeating: 0, count: workers.count)
            for call in state.calls.values { calls[call.worker] += 1 }
            let loads = workers.indices.map { index in
                CallAdmission.Worker(
                    load: state.loads[index], calls: calls[index], capacity: callLimitPerWorker)
            }
            return state.admission.admits(loads, streams: streams, unplaced: unplaced)
        }
    }

    /// How busy the workers are, in their order.
    public var loads: [WorkerLoad] { state.withLock { $0.loads } }

    func note(_ load: WorkerLoad, of worker: MediaWorker) {
        guard let index = workers.firstIndex(where: { $0 === worker }) else { return }
        let before = state.withLock { state in
            defer { state.loads[index] = load }
            return state.loads[index].complexityLimit
        }
        if before != load.complexityLimit { onEvent(.effortLimited(worker: index, load)) }
        onEvent(.loadMeasured)
    }
}
