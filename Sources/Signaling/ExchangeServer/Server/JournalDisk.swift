import ExchangeCore
import NIOCore
import NIOPosix

/// What a journal writes to. Its futures are the journal's event loop's.
protocol JournalDisk {
    /// Where it is, for people.
    var path: String { get }

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
