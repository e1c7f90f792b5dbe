import ExchangeStore
import Logging
import NIOPosix

/// The database of one exchange, what was in it at the start, and the thread that waits for it.
struct ExchangeDisk: Sendable {
    let store: ExchangeStore
    let saved: Saved
    let thread: NIOThreadPool

    /// Opens what the configuration names; `nil` if that is nothing.
    static func open(_ configuration: ExchangeConfiguration, _ logger: Logger) throws(ExchangeError) -> ExchangeDisk? {
        guard let path = configuration.databasePath else { return nil }
        do throws(StoreError) {
            let store = try ExchangeStore.open(
                path: path, durability: configuration.databaseDurability, ifCorrupt: configuration.databaseIfCorrupt,
                recordLimits: configuration.callRecordLimits)
            if let aside = store.setAside {
                logger.error(
                    "the database was damaged; starting with an empty one", metadata: ["set_aside": "\(aside)"])
            }
            let saved = try store.read()
            logger.info(
                "went on from the database",
                metadata: [
                    "invites": "\(saved.invites.count)", "calls": "\(saved.calls.count)",
                    "sessions": "\(saved.sessions.count)", "events": "\(saved.events.count)",
                ])
            let thread = NIOThreadPool(numberOfThreads: 1)
            thread.start()
            return ExchangeDisk(store: store, saved: saved, thread: thread)
        } catch {
            throw ExchangeError(.databaseNotUsable, error.description)
        }
    }

    /// Closes the database once what was asked of it is done.
    func close() async {
        try? await thread.shutdownGracefully()
        store.close()
    }
}
