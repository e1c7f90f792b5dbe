import BlockingWork
import Core
import ExchangeCore
import Logging
import NIOPosix
import Realtime
import SignalWire

/// The database of one exchange, what was in it at the start, and the thread that waits for it.
struct ExchangeDisk: Sendable {
    let store: any StateStore
    let saved: Saved
    let thread: NIOThreadPool

    /// What an exchange does while another one owns its database; called with that one, and again when the owner changes.
    typealias Waiting = @Sendable (PostgresStore.Owner) async throws(ExchangeError) -> Void

    /// Opens what the configuration names; `nil` if that is nothing.
    static func open(
        _ configuration: ExchangeConfiguration, _ logger: Logger, waiting: Waiting
    ) async throws(ExchangeError) -> ExchangeDisk? {
        guard let store = try await store(configuration, logger, waiting: waiting) else { return nil }
        let saved = try await Self.usable { () throws(StoreError) in try store.read() }
        logger.info(
            "Continuing from the database",
            metadata: [
                "invites": "\(saved.invites.count)", "calls": "\(saved.calls.count)",
                "sessions": "\(saved.sessions.count)", "events": "\(saved.events.count)",
            ])
        let thread = NIOThreadPool(numberOfThreads: 1)
        thread.start()
        return ExchangeDisk(store: store, saved: saved, thread: thread)
    }

    private static func store(
        _ configuration: ExchangeConfiguration, _ logger: Logger, waiting: Waiting
    ) async throws(ExchangeError) -> (any StateStore)? {
        if let postgres = configuration.postgres {
            var settings = PostgresStore.Settings(postgres)
            settings.recordLimits = configuration.callRecordLimits
            return try await owned(PostgresStore(settings), logger, waiting: waiting)
        }
        guard let path = configuration.databasePath else { return nil }
        let store = try await usable { () throws(StoreError) in
            try ExchangeStore.open(
                path: path, durability: configuration.databaseDurability, ifCorrupt: configuration.databaseIfCorrupt,
                recordLimits: configuration.callRecordLimits)
        }
        if let aside = store.setAside {
            logger.error("The database was damaged; starting with an empty one", metadata: ["set_aside": "\(aside)"])
        }
        report(store, logger)
        return store
    }

    /// Waits for the disk on a thread of its own.
    private static func usable<Value: Sendable>(
        _ body: @escaping @Sendable () throws(StoreError) -> Value
    ) async throws(ExchangeError) -> Value {
        do throws(StoreError) {
            return try await BlockingThreads.files.run(body)
        } catch {
            throw ExchangeError(.databaseNotUsable, error.description)
        }
    }

    /// How often a standby looks at the lease, and while the owner waits for it.
    private static let standbyInterval = Duration.milliseconds(200)
    private static let successionInterval = Duration.milliseconds(20)

    /// Waits until this process owns the database. A failure ends the first attempt; once it waits, a standby outlasts its database's
    /// failures, such as a change of the primary.
    private static func owned(
        _ store: PostgresStore, _ logger: Logger, waiting: Waiting
    ) async throws(ExchangeError) -> PostgresStore {
        var owner: PostgresStore.Owner?
        var isFailing = false
        while true {
            var isAwaited = false
            do throws(ExchangeError) {
                let attempt = try await usable { () throws(StoreError) in try store.attempt() }
                guard case .waiting(let found) = attempt else { return store }
                if found != owner || isFailing {
                    logger.notice(
                        "Standing by: another exchange owns the database", metadata: ["owner": "\(found.name)"])
                }
                if found != owner { try await waiting(found) }
                (owner, isFailing) = (found, false)
                isAwaited = try await usable { () throws(StoreError) in try store.standBy() }
            } catch {
                guard owner != nil, error.code == .databaseNotUsable else { throw error }
                if !isFailing { logger.warning("The standby cannot see the database", metadata: ["error": "\(error)"]) }
                isFailing = true
            }
            do {
                try await Task.sleep(for: isAwaited ? successionInterval : standbyInterval)
            } catch {
                store.close()
                throw ExchangeError(.databaseNotUsable, "the standby was stopped")
            }
        }
    }

    /// That the users file is missing which an earlier run has read: without it its users would count as removed, unless the
    /// configuration has them now. A running exchange keeps them, too.
    ///
    /// - Returns: Nil if it is there, was never read, or no user would be lost.
    func usersFileIsMissed(_ configuration: ExchangeConfiguration) -> ExchangeError? {
        guard let file = configuration.usersFile, !file.exists else { return nil }
        let known = Set(configuration.users.map(\.id))
        let lost = (saved.fileUsers ?? owners).subtracting(known).map { "\($0)" }.sorted()
        guard let first = lost.first else { return nil }
        let users = lost.count == 1 ? "its user \(first)" : "\(lost.count) users of it, such as \(first)"
        return ExchangeError(
            .usersFileMissing,
            "\(file.path) is missing, and \(store.path) is of an exchange that had \(users): their logins would end, and their "
                + "groups and push tokens be removed. Put the users file back. If there are to be no users, write `users: []` "
                + "into it.")
    }

    /// Users who own something in the database. One of an earlier version does not say which came from the users file.
    private var owners: Set<UserID> {
        Set(saved.groups.flatMap(\.members) + saved.groups.map(\.owner) + saved.pushTargets.map(\.user))
    }

    /// Notes which users came from the users file; none if it was never made, or is no longer configured.
    func noteFileUsers(_ configuration: ExchangeConfiguration) throws(ExchangeError) {
        let users = configuration.fileUsers.map(\.id)
        guard saved.fileUsers != Set(users) else { return }
        do throws(StoreError) {
            try store.write([.fileUsers(users)])
        } catch {
            throw ExchangeError(.databaseNotUsable, error.description)
        }
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

    // MARK: - Another exchange continues

    /// How long an exchange that ends serves until a standby is ready, and then waits until that one serves.
    private static let preparation = Duration.seconds(3)
    private static let succession = Duration.seconds(2)

    /// The database, if another exchange can take it over.
    private var shared: PostgresStore? { store as? PostgresStore }

    /// Whether another exchange can take the database over.
    var isShared: Bool { shared != nil }

    /// Whether another exchange waits for the database. It is not notified yet that this one ends.
    func hasStandby() async -> Bool {
        guard let shared else { return false }
        let found = try? await Self.usable { () throws(StoreError) in try shared.standby() }
        return (found ?? nil) != nil
    }

    /// Waits until a standby is ready to follow this exchange, which serves meanwhile.
    ///
    /// - Returns: The standby; nil if there is none.
    func successor() async -> PostgresStore.Standby? {
        guard let shared else { return nil }
        let deadline = ContinuousClock.now + Self.preparation
        var last: PostgresStore.Standby?
        while true {
            do {
                guard let standby = try await Self.usable({ () throws(StoreError) in try shared.leave() }) else {
                    return nil
                }
                if standby.isReady { return standby }
                last = standby
            } catch {
                // One look that failed says nothing of the standby.
            }
            if ContinuousClock.now >= deadline { return last }
            try? await Task.sleep(for: Self.successionInterval)
        }
    }

    /// Gives the database to a standby, once what was asked of it is done, and waits until that one serves; without one to any.
    ///
    /// - Returns: Whether it serves.
    func giveAway(to standby: PostgresStore.Standby?) async -> Bool {
        guard let shared else { return false }
        try? await thread.shutdownGracefully()
        do {
            try await Self.usable { () throws(StoreError) in try shared.giveAway(to: standby) }
            guard standby != nil else { return false }
            let deadline = ContinuousClock.now + Self.succession
            while ContinuousClock.now < deadline {
                let isFollowed = try await Self.usable { () throws(StoreError) in try shared.isFollowed() }
                if isFollowed { return true }
                try? await Task.sleep(for: Self.successionInterval)
            }
        } catch {
            // The lease ends by itself.
        }
        return false
    }

    /// Notifies an exchange that has given the database away: its clients can come.
    func noteServing() async {
        guard let shared else { return }
        // The next write would fail likewise, and is what ends this exchange.
        try? await Self.usable { () throws(StoreError) in try shared.noteServing() }
    }

    /// Closes the database once what was asked of it is done.
    func close() async {
        try? await thread.shutdownGracefully()
        store.close()
    }
}
