import ExchangeCore
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
                    "The database was damaged; starting with an empty one", metadata: ["set_aside": "\(aside)"])
            }
            report(store, logger)
            let saved = try store.read()
            logger.info(
                "Continuing from the database",
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

    /// That the users file is missing, to whose users groups and push tokens belong: without it they would count as removed.
    /// A running exchange keeps them, too.
    ///
    /// - Returns: Nil if it is there, or nothing would be lost.
    func usersFileIsMissed(_ configuration: ExchangeConfiguration) -> ExchangeError? {
        guard let file = configuration.usersFile, !file.exists else { return nil }
        let known = Set(configuration.users.map(\.id))
        let owners = saved.groups.flatMap(\.members) + saved.groups.map(\.owner) + saved.pushTargets.map(\.user)
        let lost = Set(owners).subtracting(known).map { "\($0)" }.sorted()
        guard let first = lost.first else { return nil }
        let users = lost.count == 1 ? "its user \(first)" : "\(lost.count) users of it, such as \(first)"
        return ExchangeError(
            .usersFileMissing,
            "\(file.path) is missing, and \(store.path) has groups or push tokens of \(users), which would be removed. Put the "
                + "users file back. If there are to be no users, write `users: []` into it.")
    }

    /// Logs what an operator should know about the state of the database.
    private static func report(_ store: ExchangeStore, _ logger: Logger) {
        if !store.wasOpenToOthers.isEmpty {
            logger.warning(
                "Other users could read the database; they no longer can, but may have copied it",
                metadata: ["files": .array(store.wasOpenToOthers.map { "\($0)" })])
        }
        for rows in store.setAsideRows {
            logger.error(
                "Rows of the database are damaged, or have names that are no longer allowed; they were set aside",
                metadata: [
                    "table": "\(rows.table)", "rows": "\(rows.count)", "first": "\(rows.reason)",
                    "now_in": "table set_aside of \(store.path)",
                ])
        }
    }

    /// Closes the database once what was asked of it is done.
    func close() async {
        try? await thread.shutdownGracefully()
        store.close()
    }
}
