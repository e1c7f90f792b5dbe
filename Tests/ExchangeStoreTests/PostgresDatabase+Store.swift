@testable import ExchangeServer
import TestSupport

extension PostgresDatabase {
    func address(user: String = "handset") throws -> PostgresAddress {
        try PostgresAddress(url(user: user))
    }

    func settings(
        _ owner: String = "one", url: String? = nil, clock: StoreClock = .system, user: String = "handset"
    ) throws -> PostgresStore.Settings {
        PostgresStore.Settings(
            address: try address(user: user), lease: .milliseconds(600),
            owner: PostgresStore.Owner(name: owner, url: url), clock: clock)
    }

    /// Runs statements as the superuser.
    @discardableResult
    func run(_ sql: String) throws -> [PostgresRow] {
        let connection = try PostgresConnection(
            try address().parameters(password: nil, lease: .seconds(3)), within: .seconds(10))
        return try connection.runScript(sql, within: .seconds(10)).all
    }

    /// A store that owns the database.
    func owned(_ settings: PostgresStore.Settings) async throws -> PostgresStore {
        let store = PostgresStore(settings)
        try await until { try store.attempt() == .taken }
        return store
    }
}
