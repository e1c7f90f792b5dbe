import ExchangeCore
import Logging
import NIOCore
import SignalWire
import Core

/// What happens when the disk has written a batch, cannot, or can again.
extension ExchangeHub {
    /// Calls `then` once all that was done so far is on disk, or is known never to be.
    func afterWriting(_ then: @escaping (Bool) -> Void) {
        guard let journal else { return then(true) }
        journal.afterWriting(then)
    }

    /// Whether an input must wait until the disk can be written again; if it is a request, its client receives an
    /// error.
    func refuses(_ input: ExchangeCore.Input) -> Bool {
        guard failure != nil || journal?.isFull == true else { return false }
        if case .request(let connection, let id, _) = input {
            if failure == nil { counters.crowdedDisk += 1 }
            carryOut(.refuse(connection, id, failure == nil ? Self.behind : Self.notKept))
            return true
        }
        if case .badToken(let connection, let id, _, _) = input, failure != nil {
            carryOut(.refuse(connection, id, Self.notKept))
        }
        // Sockets are counted again when the disk is back.
        return failure != nil
    }

    func written(_ batch: CommitGate.Batch, _ error: StoreError?) {
        guard let error else {
            roundBegan = now
            work(batch.outputs)
            for then in batch.waiting { then(true) }
            return
        }
        // Sockets that close behind the goodbye lose nothing by it: their sessions are resumed as after a kill.
        if !isStopping { fail(batch, error) } else { for then in batch.waiting { then(false) } }
    }

    /// The core's state contains changes that are lost. It is no longer used, and all clients are disconnected, to come
    /// back to a core that has been read from disk again, as after a restart.
    private func fail(_ batch: CommitGate.Batch, _ error: StoreError) {
        failure = error
        logger.critical("Nothing can be stored, so all requests are refused", metadata: ["error": "\(error)"])
        isBusy = true
        for output in batch.outputs {
            switch output {
            case .respond(let connection, let id, _): carryOut(.refuse(connection, id, Self.notKept))
            case .refuse, .close: carryOut(output)
            case .event, .note, .push, .persist: break
            }
        }
        isBusy = false
        for then in batch.waiting { then(false) }
        for connection in attached.keys { _ = deliver(.closed, to: connection) }
        for socket in sockets.values { socket.close(.notKept) }
        work()
        recover()
    }

    /// How often a disk that failed is tried.
    private static let recoveryInterval = TimeAmount.seconds(1)

    private func recover() {
        loop.assumeIsolated().scheduleTask(in: Self.recoveryInterval) { [weak self] in
            guard let self, let journal, !isStopping else { return }
            journal.recover().assumeIsolated().whenComplete { [weak self] result in
                guard let self else { return }
                switch result {
                case .success(let saved): goOn(with: saved)
                case .failure: recover()
                }
            }
        }
    }

    private func goOn(with saved: Saved) {
        var fresh = Self.makeCore(configuration, fileUsers: fileUsers)
        fresh.restore(saved, at: now)
        fresh.goOn(from: core.counters)
        core = fresh
        failure = nil
        logger.notice("The database can be written again")
        for connection in sockets.keys.sorted(by: { $0.number < $1.number }) { handle(.connected(connection)) }
        handle(.timer)
    }

    private static let behind = RPCError(
        .tooManyRequests, "The exchange is waiting for its disk and changed nothing; try again in a moment.")
    private static let notKept = RPCError(
        .internalError, "The exchange cannot write its database and changed nothing; try again later.")
}
