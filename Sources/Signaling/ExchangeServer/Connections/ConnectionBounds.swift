import ExchangeCore

/// How many TCP connections an exchange takes, in all and from one address.
struct ConnectionBounds: Hashable, Sendable {
    /// Connections in all, at least 1.
    let total: Int
    /// Connections from one address, at least 1 and at most ``total``.
    let perAddress: Int
    /// Connections from this machine's own addresses together, at least 1 and at most ``total``.
    let fromThisMachine: Int
    /// Whether the configuration asks for more connections in all than the limit on open files leaves room for.
    let isCut: Bool

    /// Descriptors for everything but connections: the database, the users file, the log, the event loop, the listening
    /// socket, and a reserve. An exchange with a database holds 14 while it is idle.
    static let otherDescriptors = 32
    /// The default is never higher: an exchange has 200,000 tokens, and a session needs one.
    static let most = 200_000
    /// Memory of a connection besides what its client has sent: 7 to 9 kB were measured.
    static let plainBytes = 10 << 10
    /// The same over TLS. With OpenSSL 3.0.19 an open connection takes 22 KiB, one with a record that is not complete 44, and one whose
    /// client halts in the handshake, with the worst hello that ``TLS/HelloLimit`` admits and such a record, 95.
    static let encryptedBytes = 96 << 10
    /// Unless configured, one address has an eighth of the places, and at least this many.
    static let leastPerAddress = 8

    /// - Parameters:
    ///   - total: What the configuration says; `nil` for as many as the limit on open files and the memory leave room for.
    ///   - perAddress: What the configuration says; `nil` for an eighth of all.
    ///   - fromThisMachine: What the configuration says; `nil` for half of all, so that a reverse proxy has room, and programs of this
    ///     machine cannot take all.
    ///   - descriptors: The process's limit on open files.
    ///   - outgoing: Connections that the exchange may open itself, for pushes.
    ///   - memory: Bytes of memory that the machine has; `nil` if that is not known.
    ///   - isEncrypted: Whether connections use TLS.
    init(
        total: Int?, perAddress: Int?, fromThisMachine: Int? = nil, descriptors: Int, outgoing: Int, memory: Int? = nil,
        isEncrypted: Bool = false
    ) {
        let room = max(1, descriptors - Self.otherDescriptors - outgoing)
        self.total = min(total ?? Self.fitting(memory, isEncrypted: isEncrypted), room)
        isCut = total.map { $0 > room } ?? false
        self.perAddress = min(self.total, perAddress ?? max(Self.leastPerAddress, self.total / 8))
        self.fromThisMachine = min(self.total, fromThisMachine ?? max(Self.leastPerAddress, self.total / 2))
    }

    /// The default: as many as fit into as much memory as is kept for users (``MemoryShares/fitting(_:)``), without its
    /// upper bound.
    static func fitting(_ memory: Int?, isEncrypted: Bool) -> Int {
        let share = max(MemoryShares.leastKept, MemoryShares.quarter(of: memory))
        return min(most, share / (isEncrypted ? encryptedBytes : plainBytes))
    }
}
