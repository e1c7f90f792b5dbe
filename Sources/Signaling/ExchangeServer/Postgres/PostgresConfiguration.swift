public import ConfigReader
internal import ExchangeCore
internal import Glibc
internal import Realtime
internal import Core

/// What the keys that begin with `store` say: an exchange whose state is in PostgreSQL.
public struct PostgresConfiguration: Sendable {
    /// Whether the server should have a synchronous standby.
    public enum Replication: String, CaseIterable, Sendable {
        /// `handset check` and the exchange warn without one.
        case synchronous
        /// The operator knows that what was acknowledged may be lost with the server.
        case none
    }

    /// Where the database is.
    public var address: PostgresAddress
    /// The user's password there.
    public var password: Secret?
    /// Where clients find this exchange, for standbys to name while it owns the database.
    public var ownerURL: String?
    /// How long an owner that no longer confirms it is waited for.
    public var lease = Duration.seconds(3)
    /// Whether to warn without a synchronous standby.
    public var replication = Replication.synchronous

    /// Names a database.
    public init(address: PostgresAddress) { self.address = address }

    /// How long a server is waited for by those who only look.
    private static let patience = Duration.seconds(5)

    /// What is wrong with the server, and what to warn of.
    ///
    /// - Returns: The warning, to be read after the key; nil if there is none.
    /// - Throws: ``StoreError`` if the database cannot be used.
    func check() throws(StoreError) -> String? {
        let findings = try connected("use") { try $1.look() }
        guard replication == .synchronous, !findings.isSynchronous else { return nil }
        return
            "PostgreSQL \(findings.version) has no synchronous standby: what it has acknowledged is lost with its disk, or "
            + "with a failover to a replica. Set synchronous_standby_names there, or store_replication: none here"
    }

    /// What the server is, and who owns the database.
    func look() throws(StoreError) -> (server: PostgresServerCheck.Findings, owner: StateOwnership.Owner?) {
        try connected("read") { connection, check in
            let server = try check.look()
            try check.open()
            let sql = """
                SELECT owner, url, epoch, generation,
                    lease_ms + (extract(epoch FROM clock_timestamp() - until) * 1000)::bigint AS age_ms FROM lease
                """
            guard let row = try PostgresReader(connection: connection).rows(sql).first,
                let name = try row.text("owner")
            else { return (server, nil) }
            let age = Duration.milliseconds(try row.decode(Int64.self, forColumn: "age_ms"))
            return (
                server,
                StateOwnership.Owner(
                    name: name, url: try row.text("url"), epoch: try row.decode(forColumn: "epoch"),
                    generation: try row.decode(forColumn: "generation"), sinceConfirmed: max(.zero, age))
            )
        }
    }

    /// Gives what `body` reads. An exchange may own the database; nothing is changed.
    func read<Value>(_ body: (PostgresReader) throws -> Value) throws(StoreError) -> Value {
        try connected("read") { connection, check in
            try check.open()
            return try body(PostgresReader(connection: connection))
        }
    }

    private func connected<Value>(
        _ doing: String, _ body: (PostgresConnection, PostgresServerCheck) throws -> Value
    ) throws(StoreError) -> Value {
        do {
            let connection = try PostgresConnection(
                address.parameters(password: password, lease: lease), within: Self.patience)
            return try body(
                connection, PostgresServerCheck(connection, path: address.description, within: Self.patience))
        } catch {
            throw StoreError(postgres: error, doing, address.description)
        }
    }
}

/// Answers queries of those who do not own the database.
struct PostgresReader: RowSource {
    /// How long a query of a whole table may take.
    static let patience = Duration.seconds(60)

    let connection: PostgresConnection

    func rows(_ sql: String, _ values: [any StoredValue]) throws -> [PostgresRow] {
        try connection.run([PostgresStatement(sql, values.map(\.stored))], within: Self.patience)[0].all
    }
}

extension PostgresStore.Settings {
    init(_ configuration: PostgresConfiguration) {
        let host = (KernelFile.text(of: "/proc/sys/kernel/hostname") ?? "").filter { $0 > " " }
        self.init(
            address: configuration.address, password: configuration.password, lease: configuration.lease,
            owner: PostgresStore.Owner(
                name: "\(host.isEmpty ? "unknown host" : host), process \(getpid())", url: configuration.ownerURL))
    }
}
