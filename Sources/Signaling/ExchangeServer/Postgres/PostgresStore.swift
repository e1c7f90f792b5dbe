internal import ExchangeCore
internal import ConfigReader
internal import SignalWire
internal import Synchronization
import Core

/// The exchange's state in PostgreSQL, which one process at a time owns by a lease.
///
/// The lease is a row. Each transaction begins by confirming it, and fails if another process has taken it. A process that waits takes
/// it once the row has not changed for the lease's duration by that process's own CLOCK_BOOTTIME, so that no time of day matters.
/// The token is generation and epoch: the epoch is raised with each taking, and the generation is the timeline of the database, which
/// changes with each promotion of a replica; an old epoch of a replica that lagged is not mistaken for today's.
///
/// Every call waits for the network: not for an event loop. Any thread may call; one at a time is served.
final class PostgresStore: StateStore {
    /// What it takes to connect, and how long the lease is.
    struct Settings: Sendable {
        var address: PostgresAddress
        var password: Secret?
        var lease = PostgresLease.usual
        /// This process, as standbys name it.
        var owner: Owner
        var recordLimits = RecordLimits()
        var clock = StoreClock.system
        /// How long a statement may take.
        var patience = Duration.seconds(10)
    }

    /// A process that owns the database.
    struct Owner: Equatable, Sendable {
        /// How it is called for people: host and process.
        var name: String
        /// Where clients find it, if it was configured to say so.
        var url: String?
    }

    /// What an attempt to take the lease came to.
    enum Attempt: Equatable, Sendable {
        case taken
        /// Another process has it.
        case waiting(Owner)
    }

    let path: String
    private let settings: Settings
    private let hold: PostgresLease
    private let state: Mutex<State>

    var lease: (any StoreLease)? { hold }

    private struct State {
        var connection: PostgresConnection?
        /// By which this process owns the database; nil unless it does.
        var token: Token?
        /// What was seen of another owner's lease, and since when, by CLOCK_BOOTTIME.
        var seen: (row: LeaseRow, since: Int64)?
        /// By how much the database's time of day is ahead of the instants' origin, in milliseconds.
        var offset: Int64 = 0
        /// A step of the database's clock that the stored times have yet to follow.
        var step: Int64 = 0
        var recordsBefore: Int64?
        var nextBody: Int64 = 0
        /// What a standby has read, over this connection.
        var ahead: ReadAhead?
        /// What other exchanges read of this standby, over this connection; nil before they can.
        var isShownReady: Bool?

        /// A connection and what holds for it alone.
        mutating func use(_ connection: PostgresConnection?) {
            (self.connection, ahead, isShownReady) = (connection, nil, nil)
        }
    }

    /// What proves that no other process has taken the lease since.
    private struct Token {
        var generation: String
        var epoch: Int64

        var shown: OwnerEpoch? { OwnerEpoch(timeline: generation, number: epoch) }
    }

    /// The lease as it is stored.
    private struct LeaseRow: Equatable {
        var generation: String
        var epoch: Int64
        var renewal: Int64
        var owner: Owner?
        var backend: Int64
        var milliseconds: Int64
        /// The owner ends soon, and waits for a standby that is ready.
        var isLeaving: Bool
        /// The session of the standby to which the last owner gave the lease.
        var successor: Int64?
    }

    init(_ settings: Settings) {
        self.settings = settings
        path = settings.address.description
        hold = PostgresLease(duration: settings.lease)
        state = Mutex(State())
    }

    /// The lease until the first write: reading what is stored, and making a core of it, may take longer than a lease. A process that dies
    /// meanwhile is waited for that long.
    private var readingLease: Duration { settings.lease * 10 }

    // MARK: - Taking the lease

    /// Takes the lease if no process has it.
    ///
    /// - Throws: ``StoreError`` if the database cannot be used; a later attempt may succeed.
    func attempt() throws(StoreError) -> Attempt {
        try locked("open") { state in
            let connection = try connected(&state)
            let row = try Self.readLease(connection, settings.patience)
            if row.owner == nil, row.successor == nil || row.successor == Int64(connection.backend) {
                return try take(row, &state, connection)
            }
            let owner = row.owner ?? Owner(name: "another standby")
            let now = PostgresConnection.now
            if let seen = state.seen, seen.row == row {
                if now - seen.since >= row.milliseconds * 1_000_000 { return try take(row, &state, connection) }
            } else {
                state.seen = (row, now)
            }
            return .waiting(owner)
        }
    }

    /// - Parameter row: The lease as it was read: if it has changed, another process was faster.
    private func take(_ row: LeaseRow, _ state: inout State, _ connection: PostgresConnection) throws -> Attempt {
        let begun = PostgresConnection.now
        do {
            let results = try connection.run(
                [
                    PostgresStatement("BEGIN"), PostgresStatement("SET LOCAL lock_timeout = '1s'"),
                    PostgresStatement(
                        """
                        UPDATE lease SET epoch = epoch + 1, generation = timeline(), renewal = renewal + 1, owner = $1, url = $6,
                            leaving = false, successor = NULL, serves = false, backend = pg_backend_pid(), lease_ms = $2,
                            until = clock_timestamp() + $2::bigint * interval '1 millisecond'
                        WHERE generation = $3 AND epoch = $4 AND renewal = $5
                        RETURNING generation, epoch, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms
                        """,
                        [
                            settings.owner.name, String(readingLease.nanoseconds / 1_000_000), row.generation,
                            String(row.epoch), String(row.renewal), settings.owner.url,
                        ]),
                    PostgresStatement("UPDATE exchange SET runs = runs + 1 RETURNING runs"),
                    PostgresStatement("DELETE FROM standbys WHERE backend = pg_backend_pid()"),
                    PostgresStatement("COMMIT"),
                ], within: settings.patience)
            guard let taken = results[2].first else {
                state.use(nil)
                return .waiting(row.owner ?? Owner(name: "another process"))
            }
            let runs = try results[3].first?.decode(Int64.self, forColumn: "runs") ?? 1
            let wasOwner = state.token != nil
            state.token = Token(
                generation: try taken.decode(forColumn: "generation"), epoch: try taken.decode(forColumn: "epoch"))
            state.seen = nil
            let time = try taken.decode(Int64.self, forColumn: "now_ms")
            if wasOwner { follow(time, &state) } else { begin(at: time, &state) }
            state.nextBody = max(state.nextBody, runs << 40)
            hold.begin(state.token?.shown)
            hold.confirm(from: begun, for: readingLease)
            return .taken
        } catch PostgresFailure.refused("55P03", _) {
            // A transaction of an owner that was stopped or cut off has the row: it is ended, and the row tried again.
            state.use(nil)
            try endSession(row.backend, connected(&state))
            return .waiting(row.owner ?? Owner(name: "another process"))
        }
    }

    /// Times are stored as what was read ahead has them, unless a clock was set since.
    private func begin(at databaseTime: Int64, _ state: inout State) {
        (state.offset, state.step) = (offset(databaseTime: databaseTime), 0)
        guard let ahead = state.ahead else { return }
        if (ahead.times.offset - state.offset).magnitude < StoredClock.tolerance {
            state.offset = ahead.times.offset
        } else {
            state.ahead = nil
        }
    }

    private static func readLease(_ connection: PostgresConnection, _ limit: Duration) throws -> LeaseRow {
        let rows = try connection.run([PostgresStatement("SELECT * FROM lease")], within: limit)
        guard let row = rows[0].first else { throw MissingValue(column: "lease") }
        return LeaseRow(
            generation: try row.decode(forColumn: "generation"), epoch: try row.decode(forColumn: "epoch"),
            renewal: try row.decode(forColumn: "renewal"),
            owner: try row.text("owner").map { Owner(name: $0, url: try row.text("url")) },
            backend: try row.decode(forColumn: "backend"), milliseconds: try row.decode(forColumn: "lease_ms"),
            isLeaving: try row.decode(forColumn: "leaving"), successor: try row.decode(forColumn: "successor"))
    }

    /// Ends a session of an exchange of the same user.
    private func endSession(_ backend: Int64, _ connection: PostgresConnection) throws {
        let sql = """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE pid = $1::integer AND usename = current_user AND application_name = '\(PostgresAddress.application)'
            """
        _ = try connection.run([PostgresStatement(sql, [String(backend)])], within: settings.patience)
    }

    /// By how much the database's clock is ahead of this process's instants.
    private func offset(databaseTime: Int64) -> Int64 {
        databaseTime - settings.clock.instant().nanoseconds / 1_000_000
    }

    // MARK: - Reading and writing

    func read() throws(StoreError) -> Saved {
        try locked("read") { state in
            let connection = try owned(state)
            if let saved = try readOn(&state, connection) { return saved }
            let source = PostgresSource(
                connection: connection, fence: try fence(state, during: readingLease), hold: hold,
                duration: readingLease)
            // The rows have yet to follow a step of the database's clock.
            let times = TimeMap(offset: state.offset - state.step)
            return try SavedReader(database: source, times: times, now: settings.clock.instant()).read()
        }
    }

    /// Reads what has changed since it was read ahead; nil if it was not.
    private func readOn(_ state: inout State, _ connection: PostgresConnection) throws -> Saved? {
        guard let ahead = state.ahead else { return nil }
        state.ahead = nil
        let begun = PostgresConnection.now
        guard
            let source = try PostgresContinuation(
                ahead, connection, fence: try fence(state, during: readingLease))
        else { return nil }
        let saved = try SavedReader(database: source, times: ahead.times, now: settings.clock.instant()).read()
        try source.end()
        hold.confirm(from: begun, for: readingLease)
        return saved
    }

    func write(_ changes: [Change]) throws(StoreError) {
        try locked("write") { state in
            let connection = try owned(state)
            let writer = try PostgresChanges(
                changes, times: TimeMap(offset: state.offset), limits: settings.recordLimits, nextBody: state.nextBody)
            state.nextBody = writer.nextBody
            guard let outdated = writer.recordsBefore ?? state.recordsBefore else {
                try confirm(writer.statements, &state, connection)
                return
            }
            let results = try confirm(writer.statements + [Self.removal(of: outdated)], &state, connection)
            let removed = try results.last?.first?.decode(Int64.self, forColumn: "removed") ?? 0
            state.recordsBefore = removed < RecordRemoval.rowsPerCommit ? nil : outdated
        }
    }

    /// Runs groups of statements in one transaction, which begins by confirming the lease.
    ///
    /// - Parameter body: Gets how times are stored, and what runs statements. If it throws, all is as before.
    func transact(
        _ body: (TimeMap, ([PostgresStatement]) throws -> [PostgresRows]) throws -> Void
    ) throws(StoreError) {
        try locked("write") { state in
            let connection = try owned(state)
            let run = { (statements: [PostgresStatement]) in
                try connection.run(statements, within: PostgresReader.patience)
            }
            _ = try run([PostgresStatement("BEGIN"), fence(state, during: settings.lease)])
            do {
                try body(TimeMap(offset: state.offset), run)
            } catch let refusal as StoreError {
                _ = try run([PostgresStatement("ROLLBACK")])
                throw refusal
            }
            _ = try run([PostgresStatement("COMMIT")])
        }
    }

    private static func removal(of outdated: Int64) -> PostgresStatement {
        PostgresStatement(
            """
            SELECT drop_records(ARRAY(
                SELECT rowid FROM call_records WHERE sent_ms < $1 ORDER BY sent_ms LIMIT $2)) AS removed
            """, [String(outdated), String(RecordRemoval.rowsPerCommit)])
    }

    /// Runs statements in a transaction that begins with the proof that the lease is this process's, and confirms it.
    ///
    /// - Returns: The rows of each.
    @discardableResult
    private func confirm(
        _ statements: [PostgresStatement], _ state: inout State, _ connection: PostgresConnection
    ) throws -> [PostgresRows] {
        let begun = PostgresConnection.now
        let fence = try fence(state, during: settings.lease)
        let steps =
            state.step == 0
            ? []
            : PostgresSchema.timed.map { table, column in
                PostgresStatement("UPDATE \(table) SET \(column) = \(column) + $1", [String(state.step)])
            }
        let before = [PostgresStatement("BEGIN"), fence] + steps
        // The changes' times have the new offset already.
        let results = try connection.run(before + statements + [PostgresStatement("COMMIT")], within: settings.patience)
        state.step = 0
        hold.confirm(from: begun, for: settings.lease)
        if let answer = results[1].first { follow(try answer.decode(forColumn: "now_ms"), &state) }
        return Array(results[before.count..<(before.count + statements.count)])
    }

    /// The proof that the lease is this process's, which confirms it.
    private func fence(_ state: State, during lease: Duration) throws -> PostgresStatement {
        guard let token = state.token else { throw PostgresFailure.refused(state: PostgresSchema.fenced, message: "") }
        return PostgresStatement(
            "SELECT confirm($1, $2, $3) AS now_ms",
            [token.generation, String(token.epoch), String(lease.nanoseconds / 1_000_000)])
    }

    /// The database's clock may have been set: stored times follow, as ``StoredClock`` has them follow the machine's.
    private func follow(_ databaseTime: Int64, _ state: inout State) {
        let step = offset(databaseTime: databaseTime) - state.offset
        guard step.magnitude >= StoredClock.tolerance else { return }
        state.step += step
        state.offset += step
    }

    /// Connects again if need be, and raises the epoch: a transaction of this process whose end is not known has ended then, or can
    /// change nothing any more.
    func probe() throws(StoreError) {
        try locked("write") { state in
            guard let token = state.token else {
                throw PostgresFailure.refused(state: PostgresSchema.fenced, message: "")
            }
            let connection = try connected(&state)
            let row = try Self.readLease(connection, settings.patience)
            guard row.generation == token.generation, row.epoch == token.epoch else {
                throw PostgresFailure.refused(state: PostgresSchema.fenced, message: "")
            }
            guard try take(row, &state, connection) == .taken else {
                throw PostgresFailure.unreachable("a transaction of before has not ended yet")
            }
        }
    }

    func close() {
        state.withLock { state in
            // If this fails, the lease ends by itself.
            if let connection = state.connection {
                _ = try? giveAway(to: nil, &state, connection)
                if state.isShownReady != nil {
                    let sql = "DELETE FROM standbys WHERE backend = pg_backend_pid()"
                    _ = try? connection.run([PostgresStatement(sql)], within: settings.patience)
                }
            }
            hold.end()
            state = State()
        }
    }

    // MARK: - One after the other

    /// A process that waits for the database.
    struct Standby: Equatable, Sendable {
        /// How it is called for people, and where its clients will find it.
        var process: Owner
        /// Whether it has read the state, so that it takes over at once.
        var isReady: Bool
        fileprivate var backend: Int64
    }

    /// Shows other exchanges that this process waits, and reads ahead if the owner ends soon, or has been silent for a third of its
    /// lease.
    ///
    /// - Returns: Whether the owner waits for this process.
    func standBy() throws(StoreError) -> Bool {
        try locked("read") { state in
            let connection = try connected(&state)
            guard let (row, since) = state.seen else { return false }
            if state.ahead?.isOutdated == true, row.owner != nil { state.ahead = nil }
            let silence = PostgresConnection.now - since
            let isNeeded = row.isLeaving || silence * 3 >= row.milliseconds * 1_000_000
            if isNeeded, state.ahead == nil {
                try show(isReady: false, &state, connection)
                state.ahead = try ReadAhead(connection, clock: settings.clock)
            }
            try show(isReady: row.isLeaving && state.ahead != nil, &state, connection)
            return row.isLeaving
        }
    }

    private func show(isReady: Bool, _ state: inout State, _ connection: PostgresConnection) throws {
        guard state.isShownReady != isReady else { return }
        _ = try connection.run(
            [
                PostgresStatement(
                    """
                    INSERT INTO standbys
                    SELECT pid, backend_start, $1, $2, $3::boolean FROM pg_stat_activity WHERE pid = pg_backend_pid()
                    ON CONFLICT (backend) DO UPDATE SET began = excluded.began, name = $1, url = $2, ready = $3::boolean
                    """, [settings.owner.name, settings.owner.url, isReady ? "t" : "f"]),
                // Those of processes that died.
                PostgresStatement(
                    """
                    DELETE FROM standbys s WHERE NOT EXISTS
                        (SELECT FROM pg_stat_activity a WHERE a.pid = s.backend AND a.backend_start = s.began)
                    """),
            ], within: settings.patience)
        state.isShownReady = isReady
    }

    /// Reports to standbys that this process ends soon.
    ///
    /// - Returns: The one that can follow first; nil if there is none.
    func leave() throws(StoreError) -> Standby? {
        try locked("write") { state in
            guard let token = state.token else { return nil }
            let sql = "UPDATE lease SET leaving = true WHERE generation = $1 AND epoch = $2 AND NOT leaving"
            let values = [token.generation, String(token.epoch)]
            return try standby(owned(state), after: [PostgresStatement(sql, values)])
        }
    }

    /// The process that could follow this owner first; nil if there is none.
    func standby() throws(StoreError) -> Standby? {
        try locked("read") { state in
            guard state.token != nil else { return nil }
            return try standby(owned(state), after: [])
        }
    }

    private func standby(_ connection: PostgresConnection, after statements: [PostgresStatement]) throws -> Standby? {
        let first = PostgresStatement(
            """
            SELECT s.* FROM standbys s JOIN pg_stat_activity a ON a.pid = s.backend AND a.backend_start = s.began
            ORDER BY s.ready DESC, s.began LIMIT 1
            """)
        let results = try connection.run(statements + [first], within: settings.patience)
        return try results.last?.first.map { row in
            Standby(
                process: Owner(name: try row.decode(forColumn: "name"), url: try row.text("url")),
                isReady: try row.decode(forColumn: "ready"), backend: try row.decode(forColumn: "backend"))
        }
    }

    /// Gives the lease away, to a standby if there is one: for the lease's duration no other process takes it. Nothing may be written
    /// after.
    func giveAway(to standby: Standby?) throws(StoreError) {
        try locked("write") { state in try giveAway(to: standby, &state, try owned(state)) }
    }

    private func giveAway(to standby: Standby?, _ state: inout State, _ connection: PostgresConnection) throws {
        guard let token = state.token else { return }
        hold.end()
        state.token = nil
        let sql = """
            UPDATE lease SET owner = NULL, url = NULL, leaving = false, successor = $3, renewal = renewal + 1
            WHERE generation = $1 AND epoch = $2
            """
        let values = [token.generation, String(token.epoch), (standby?.backend).map { String($0) }]
        _ = try connection.run([PostgresStatement(sql, values)], within: settings.patience)
    }

    /// Whether an exchange serves after this one has given its lease away.
    func isFollowed() throws(StoreError) -> Bool {
        try locked("read") { state in
            let row = try owned(state).run(
                [PostgresStatement("SELECT serves AND owner IS NOT NULL AS followed FROM lease")],
                within: settings.patience)
            return try row[0].first?.decode(Bool.self, forColumn: "followed") ?? false
        }
    }

    /// Says that this process serves its clients now.
    func noteServing() throws(StoreError) {
        try locked("write") { state in
            let sql = "UPDATE lease SET serves = true WHERE generation = $1 AND epoch = $2"
            guard let token = state.token else { return }
            _ = try owned(state).run(
                [PostgresStatement(sql, [token.generation, String(token.epoch)])], within: settings.patience)
        }
    }

    // MARK: - The connection

    /// Does something, one thread at a time. A connection on which anything went wrong is closed, but not for a ``StoreError``, which this store throws itself.
    private func locked<Value: Sendable>(_ doing: String, _ body: (inout State) throws -> Value) throws(StoreError)
        -> Value
    {
        let result: Result<Value, StoreError> = state.withLock { state in
            do {
                return .success(try body(&state))
            } catch {
                if !(error is StoreError) { state.use(nil) }
                let error = StoreError(postgres: error, doing, path)
                if error.code == .fenced {
                    state.token = nil
                    hold.end()
                }
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// The connection of the owner.
    private func owned(_ state: State) throws -> PostgresConnection {
        guard let connection = state.connection else {
            throw PostgresFailure.unreachable("its connection has ended")
        }
        return connection
    }

    private func connected(_ state: inout State) throws -> PostgresConnection {
        if let connection = state.connection, connection.isOpen { return connection }
        state.use(nil)
        let connection = try PostgresConnection(
            settings.address.parameters(password: settings.password, lease: settings.lease),
            within: settings.patience)
        try PostgresServerCheck(connection, path: path, within: settings.patience).prepare()
        state.use(connection)
        return connection
    }
}

/// How long the ownership of a database is certain.
final class PostgresLease: StoreLease {
    /// How long after a confirmation another process may take over, unless configured.
    static let usual = Duration.seconds(3)

    private let duration: Duration
    /// CLOCK_BOOTTIME until which no other process can own the database, less a sixth of the lease for what clocks differ by, and
    /// for the time from this check to the socket.
    private let heldUntil = Atomic<Int64>(0)
    private let shown = Mutex<OwnerEpoch?>(nil)

    init(duration: Duration) { self.duration = duration }

    var isHeld: Bool { PostgresConnection.now < heldUntil.load(ordering: .acquiring) }
    var confirmationInterval: Duration { duration / 6 }
    var epoch: OwnerEpoch? { shown.withLock { $0 } }

    /// The lease was taken, under this epoch.
    func begin(_ epoch: OwnerEpoch?) { shown.withLock { $0 = epoch } }

    /// The lease was confirmed by what was sent at `begun`: no process can take it before `begun` and its duration.
    func confirm(from begun: Int64, for lease: Duration) {
        heldUntil.store(begun + lease.nanoseconds - duration.nanoseconds / 6, ordering: .releasing)
    }

    func end() { heldUntil.store(0, ordering: .releasing) }
}

/// Answers the reader's queries, each of which confirms the lease.
private struct PostgresSource: RowSource {
    let connection: PostgresConnection
    let fence: PostgresStatement
    let hold: PostgresLease
    let duration: Duration

    func rows(_ sql: String, _ values: [any StoredValue]) throws -> [PostgresRow] {
        let begun = PostgresConnection.now
        let results = try connection.run(
            [fence, PostgresStatement(sql, values.map(\.stored))], within: PostgresReader.patience)
        hold.confirm(from: begun, for: duration)
        return results[1].all
    }
}
