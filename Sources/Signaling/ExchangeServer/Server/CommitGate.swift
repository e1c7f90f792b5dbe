import Core
import ExchangeCore
import NIOCore
import SignalWire
import NIOPosix

/// Ensures that clients are notified only of what is on disk.
///
/// The core's outputs gather here until all its changes are written: one transaction for everything that has gathered
/// while the previous one was being written. Lives on the hub's event loop; a thread of its own waits for the disk.
///
/// Of a store that another process can take over, outputs leave only while the lease is held. If it is not, because a write hangs or this
/// process was stopped, they wait until a write, of no changes if there are none, has confirmed it.
final class CommitGate {
    /// Limits of what may gather; past them requests are refused until the disk has caught up. Changes that follow from
    /// earlier requests, such as the end of an invite, are always accepted: the amount of kept data bounds them.
    struct Limits {
        var changes = 50_000
        var bytes = MemoryShares(kept: MemoryShares.largestDefault).journal
    }

    /// What is done once it is on disk.
    struct Batch {
        var changes: [Change] = []
        /// What the changes take up (``Weight``).
        var bytes = 0
        var outputs: [ExchangeCore.Output] = []
        /// Called with whether the batch was written.
        var waiting: [(Bool) -> Void] = []

        /// Whether anything would leave if the lease were held.
        var awaitsLease: Bool { !outputs.isEmpty || !waiting.isEmpty }
    }

    let limits: Limits
    private let disk: any JournalDisk
    private let lease: (any StoreLease)?
    /// Which ownership of the store answers are given under.
    var epoch: OwnerEpoch? { lease?.epoch }
    /// Where the store is, for people.
    var path: String { disk.path }
    private let loop: any EventLoop
    private var gathered = Batch()
    /// The batch that is on its way to the disk.
    private var inFlight: Batch?
    /// Completed once no write is under way.
    private var idle: [EventLoopPromise<Void>] = []
    private(set) var commits = 0
    /// Batches that were handed to the disk, written or not.
    private(set) var begun = 0
    /// ``begun`` when it was last looked whether the lease needs a write of its own.
    private var begunBefore = 0
    private var isConfirming = false
    /// Whether a write has failed, until the disk has been read again: the lease is not confirmed meanwhile.
    private var isBroken = false
    /// Called with the batch that is on disk now; or with an error if it cannot be written, and then also with the
    /// outputs that must not be carried out.
    var finish: (Batch, StoreError?) -> Void = { _, _ in }

    init(_ disk: any JournalDisk, loop: any EventLoop, limits: Limits = Limits()) {
        self.limits = limits
        self.disk = disk
        self.loop = loop
        lease = disk.lease
        guard let lease else { return }
        isConfirming = true
        planConfirmation(every: TimeAmount.nanoseconds(lease.confirmationInterval.nanoseconds))
    }

    private func planConfirmation(every interval: TimeAmount) {
        loop.assumeIsolated().scheduleTask(in: interval) { [weak self] in
            guard let self, isConfirming else { return }
            confirmIfIdle()
            planConfirmation(every: interval)
        }
    }

    /// Whether no other process can own the store at this moment.
    var isHeld: Bool { lease?.isHeld ?? true }

    /// Confirms the lease unless changes were written since the last time.
    private func confirmIfIdle() {
        if begun == begunBefore, inFlight == nil, !isBroken { write(takeGathered()) }
        begunBefore = begun
    }

    /// Ends the confirming; the lease runs out, or is given back by the store's end.
    func stopConfirming() { isConfirming = false }

    var isFull: Bool { gathered.changes.count >= limits.changes || gathered.bytes >= limits.bytes }
    /// Bytes that wait for the disk.
    var bytes: Int { gathered.bytes + (inFlight?.bytes ?? 0) }
    /// Whether a batch is on its way to the disk.
    var isWriting: Bool { inFlight != nil }
    private var isSettled: Bool { inFlight == nil && gathered.changes.isEmpty }

    /// Takes what the core put out.
    ///
    /// - Returns: What can be done at once.
    func take(_ outputs: [ExchangeCore.Output]) -> [ExchangeCore.Output] {
        for output in outputs {
            if case .persist(let change) = output {
                gathered.changes.append(change)
                gathered.bytes += Weight.of(change)
            } else {
                gathered.outputs.append(output)
            }
        }
        if isSettled, isHeld {
            defer { gathered.outputs = [] }
            return gathered.outputs
        }
        writeNext()
        return []
    }

    /// Keeps outputs that could not leave, because the lease has run out, until it is confirmed.
    func putBack(_ outputs: some Collection<ExchangeCore.Output>) {
        gathered.outputs.insert(contentsOf: outputs, at: 0)
        writeNext()
    }

    /// Calls `then` with true once everything accepted so far is on disk, or with false if it can never be written.
    func afterWriting(_ then: @escaping (Bool) -> Void) {
        if isSettled, isHeld { return then(true) }
        if isSettled, isBroken { return then(false) }
        gathered.waiting.append(then)
        writeNext()
    }

    /// Completes when nothing is on its way to the disk.
    func settled() -> EventLoopFuture<Void> {
        let promise = loop.makePromise(of: Void.self)
        if isSettled { promise.succeed() } else { idle.append(promise) }
        return promise.futureResult
    }

    private func writeNext() {
        guard inFlight == nil, !gathered.changes.isEmpty || mustConfirm else { return }
        write(takeGathered())
    }

    /// Whether only the lease keeps what gathered from leaving.
    private var mustConfirm: Bool { gathered.awaitsLease && !isHeld && !isBroken }

    private func takeGathered() -> Batch {
        defer { gathered = Batch() }
        return gathered
    }

    private func write(_ batch: Batch) {
        inFlight = batch
        begun += 1
        disk.write(batch.changes).assumeIsolated().whenComplete { [weak self] result in self?.end(batch, result) }
    }

    private func end(_ batch: Batch, _ result: Result<Void, any Error>) {
        inFlight = nil
        switch result {
        case .success:
            commits += 1
            var done = batch
            // What gathered without changes of its own waited for this batch alone.
            if gathered.changes.isEmpty {
                done.outputs += gathered.outputs
                done.waiting += gathered.waiting
                gathered = Batch()
            }
            if isHeld { finish(done, nil) } else { keep(done) }
        case .failure(let error):
            isBroken = true
            // Outputs that gathered meanwhile depend on the lost batch, and are lost with it.
            var lost = batch
            lost.outputs += gathered.outputs
            lost.waiting += gathered.waiting
            gathered = Batch()
            finish(lost, error as? StoreError ?? StoreError(stopped: disk.path))
        }
        writeNext()
        guard isSettled else { return }
        let told = idle
        idle = []
        for promise in told { promise.succeed() }
    }

    /// What was written may be answered, but not now: the lease has run out since the write began.
    private func keep(_ written: Batch) {
        gathered.outputs = written.outputs + gathered.outputs
        gathered.waiting = written.waiting + gathered.waiting
    }

    /// Tries whether the disk can be written again and, if so, reads what is on it.
    func recover() -> EventLoopFuture<Saved> {
        let recovered = disk.recover()
        recovered.assumeIsolated().whenSuccess { [weak self] _ in self?.isBroken = false }
        return recovered
    }
}

extension JournalDisk {
    var lease: (any StoreLease)? { nil }
}

/// What a journal writes to. Its futures are the journal's event loop's.
protocol JournalDisk {
    /// Where it is, for people.
    var path: String { get }

    /// The lease by which this process owns it, if it has one.
    var lease: (any StoreLease)? { get }

    /// Writes changes in one transaction; fails with a ``StoreError`` if nothing was written.
    func write(_ changes: [Change]) -> EventLoopFuture<Void>

    /// Checks whether the disk can be written and, if so, reads the stored state.
    func recover() -> EventLoopFuture<Saved>
}

/// The database, which is waited for on a thread of its own.
struct DatabaseThread: JournalDisk {
    let store: any StateStore
    let thread: NIOThreadPool
    let loop: any EventLoop

    var path: String { store.path }
    var lease: (any StoreLease)? { store.lease }

    func write(_ changes: [Change]) -> EventLoopFuture<Void> {
        run { [store] () throws(StoreError) in try store.write(changes) }
    }

    func recover() -> EventLoopFuture<Saved> {
        run { [store] () throws(StoreError) in
            try store.probe()
            return try store.read()
        }
    }

    private func run<Value: Sendable>(
        _ body: @escaping @Sendable () throws(StoreError) -> Value
    ) -> EventLoopFuture<Value> {
        thread.runIfActive(eventLoop: loop) { try body() }
    }
}
