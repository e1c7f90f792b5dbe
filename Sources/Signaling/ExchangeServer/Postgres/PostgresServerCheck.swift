internal import ExchangeCore
import Core

/// Judges a server before its database is used, and makes the tables if there are none.
struct PostgresServerCheck {
    /// What was found out about a server.
    struct Findings: Equatable {
        /// Such as `15.14`.
        var version: String
        /// Whether a commit waits for a synchronous standby.
        var isSynchronous: Bool
    }

    static let leastVersion = 150_000

    private let connection: PostgresConnection
    private let path: String
    private let limit: Duration

    init(_ connection: PostgresConnection, path: String, within limit: Duration) {
        self.connection = connection
        self.path = path
        self.limit = limit
    }

    /// Refuses a server that cannot be used, makes the tables or brings them to this version, and readies the session.
    func prepare() throws {
        try judge()
        try migrate()
        _ = try connection.runScript(
            """
            SET search_path = handset, pg_catalog; SET synchronous_commit = on; SET client_min_messages = warning;
            SET idle_in_transaction_session_timeout = '10s'
            """, within: limit)
    }

    /// What an operator should know, without changing anything.
    func look() throws -> Findings {
        try judge()
        if case .nothing = try state() {
            let right = try row("SELECT has_database_privilege(current_database(), 'CREATE') AS may")
            guard try right.decode(Bool.self, forColumn: "may") else {
                throw PostgresFailure.refused(state: "42501", message: "the user may not make the schema handset")
            }
        } else {
            guard case .version(let version) = try state() else { throw foreign }
            guard version <= PostgresSchema.version else { throw newer }
        }
        let row = try row(
            """
            SELECT current_setting('server_version') AS version,
                current_setting('synchronous_commit') <> 'off' AND current_setting('synchronous_commit') <> 'local'
                    AND current_setting('synchronous_standby_names') <> '' AS synchronous
            """)
        return Findings(
            version: try row.decode(forColumn: "version"), isSynchronous: try row.decode(forColumn: "synchronous"))
    }

    /// Readies the session for reading tables of this version.
    func open() throws {
        try judge()
        switch try outdatedVersion() {
        case nil: break
        case 0: throw refusal("no exchange has used it yet. Start one, or name another database.", .notReachable)
        case _: throw refusal("an older version of handset has made it. Start an exchange of this version on it first.")
        }
        _ = try connection.runScript("SET search_path = handset, pg_catalog", within: limit)
    }

    private func row(_ sql: String) throws -> PostgresRow {
        guard let row = try connection.runScript(sql, within: limit).first else { throw MissingValue(column: "answer") }
        return row
    }

    private func judge() throws {
        guard connection.version >= Self.leastVersion else {
            let version = "\(connection.version / 10_000).\(connection.version % 10_000)"
            throw refusal("the server is PostgreSQL \(version). Version 15 or later is needed.")
        }
        let facts = try row(
            "SELECT pg_backend_pid()::bigint AS backend, pg_is_in_recovery() AS recovering, current_setting('server_encoding') AS encoding"
        )
        guard try facts.decode(Int64.self, forColumn: "backend") == Int64(connection.backend) else {
            throw refusal(
                "there is a connection pooler in between, such as PgBouncer, which may give each transaction another session; "
                    + "the lease needs one of its own. Name the server itself.")
        }
        guard try !facts.decode(Bool.self, forColumn: "recovering") else {
            throw refusal(
                "the server is a replica, which cannot be written. Name the primary, or all servers, with commas.")
        }
        guard try facts.decode(String.self, forColumn: "encoding") == "UTF8" else {
            throw refusal(
                "its encoding is not UTF8. Make it with `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`.")
        }
    }

    private enum State: Equatable { case nothing, version(Int64), foreign }

    private func state() throws -> State {
        let found = try row(
            """
            SELECT to_regnamespace('handset') IS NOT NULL AS schema, to_regclass('handset.exchange') IS NOT NULL AS exchange,
                to_regclass('handset.lease') IS NOT NULL AS lease
            """)
        guard try found.decode(Bool.self, forColumn: "schema") else { return .nothing }
        guard try found.decode(Bool.self, forColumn: "exchange"), try found.decode(Bool.self, forColumn: "lease") else {
            return .foreign
        }
        return .version(try row("SELECT version FROM handset.exchange").decode(forColumn: "version"))
    }

    private func migrate() throws {
        while let version = try outdatedVersion() {
            let script = """
                SELECT pg_advisory_xact_lock(4711470947);
                \(PostgresSchema.steps[Int(version)])
                """
            do throws(PostgresFailure) {
                _ = try connection.runScript(script, within: limit)
            } catch {
                // Another process that started at the same time may have made the tables.
                guard case .refused("42P06", _) = error else { throw error }
            }
        }
    }

    /// The version of the tables, 0 without any; nil if it is this one's.
    private func outdatedVersion() throws -> Int64? {
        switch try state() {
        case .foreign: throw foreign
        case .nothing: return 0
        case .version(PostgresSchema.version): return nil
        case .version(let found) where found > PostgresSchema.version: throw newer
        case .version(let found): return found
        }
    }

    private var foreign: StoreError {
        refusal(
            "its schema handset is not that of an exchange. Name a database of the exchange's own, or remove that schema.",
            .corrupt)
    }

    private var newer: StoreError {
        refusal("a newer version of handset has changed it. Run that version, or restore a backup from before.", .newer)
    }

    private func refusal(_ reason: String, _ code: StoreError.Code = .failed) -> StoreError {
        StoreError(code, "cannot open the database \(path): \(reason)")
    }
}

extension StoreError {
    /// Says in our words what PostgreSQL, or its library, said.
    ///
    /// - Parameter doing: What was being done, such as `open`.
    init(postgres error: any Error, _ doing: String, _ path: String) {
        if let error = error as? StoreError {
            self = error
            return
        }
        let task = "cannot \(doing) the database \(path)"
        guard let failure = error as? PostgresFailure else {
            // What decoding says would quote what is stored.
            self.init(.corrupt, "\(task): it contains data that no exchange writes. Restore a backup.")
            return
        }
        switch failure {
        case .noLibrary(let said):
            self.init(
                .notReachable,
                "\(task): the client library of PostgreSQL cannot be loaded (\(said)). Install the package libpq5.")
        case .unreachable(let said):
            self.init(
                .notReachable,
                "\(task): \(said). Check that the server runs, that its address, user and password are right, and what its log says."
            )
        case .lost(let said):
            self.init(
                .unknown,
                "\(task): \(said). Whether the last changes were stored is not known; the exchange reads the database again."
            )
        case .refused(PostgresSchema.fenced, _):
            self.init(
                .fenced,
                "\(task): another process has taken it over, or it was promoted from a replica. This process no longer owns it, and "
                    + "waits for it once restarted.")
        case .refused(let state, let message): self.init(refused: state, message, task)
        }
    }

    private init(refused state: String, _ message: String, _ task: String) {
        switch state {
        case "53100":
            self.init(
                .full, "\(task): the server's disk is full (\(message)). Make room on it; nothing need be restarted.")
        case "42501":
            self.init(
                .readOnly,
                "\(task): \(message). Give the user the right to make a schema, `GRANT CREATE ON DATABASE … TO …`; what is in "
                    + "the schema handset must belong to that user.")
        case "25006":
            self.init(.readOnly, "\(task): the server is read-only (\(message)). Name the primary.")
        default: self.init(.failed, "\(task): \(message) (SQLSTATE \(state)). The server's log may say more.")
        }
    }
}
