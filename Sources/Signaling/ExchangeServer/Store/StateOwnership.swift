public import ExchangeCore

/// Who has the state of an exchange open, for people and scripts.
public struct StateOwnership: Sendable {
    /// The exchange that owns a database of PostgreSQL, as its lease says.
    public struct Owner: Sendable {
        /// Its host and process.
        public var name: String
        /// Where clients find it, if it was configured to say so.
        public var url: String?
        /// How often the database was taken.
        public var epoch: Int64
        /// The timeline of the database, which changes with each promotion of a replica.
        public var generation: String
        /// For how long the owner has not confirmed that it owns the database. Beyond the lease's duration a standby takes over.
        public var sinceConfirmed: Duration
    }

    /// Which database that is.
    public enum Database: Sendable {
        /// A file of SQLite, and whether an exchange has it open.
        case file(path: String, isOpen: Bool)
        /// A database of PostgreSQL, without password.
        case postgres(address: String, version: String, isSynchronous: Bool, owner: Owner?)
    }

    /// Which database that is, and who owns it.
    public let database: Database

    /// Looks, and changes nothing.
    ///
    /// - Throws: ``StoreError`` if the database cannot be read.
    public init(of location: StateLocation) throws(StoreError) {
        switch location {
        case .file(let path):
            try StoreFiles.checkReadable(path)
            database = .file(path: path, isOpen: StoreLock.isHeld(path: path))
        case .postgres(let configuration):
            let (server, owner) = try configuration.look()
            database = .postgres(
                address: configuration.address.description, version: server.version,
                isSynchronous: server.isSynchronous, owner: owner)
        }
    }
}
