internal import ExchangeCore
internal import GRDB

/// Reads from a database that an exchange may have open meanwhile, and changes nothing in it.
enum DatabaseReading {
    /// Gives what `body` reads.
    ///
    /// - Throws: ``StoreError``.
    static func read<Value>(_ path: String, _ body: (Database) throws -> Value) throws(StoreError) -> Value {
        try StoreFiles.checkReadable(path)
        do {
            var configuration = Configuration()
            configuration.readonly = true
            configuration.busyMode = .timeout(5)
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            defer { try? queue.close() }
            return try queue.read(body)
        } catch {
            throw StoreError(error, "read", path)
        }
    }
}
