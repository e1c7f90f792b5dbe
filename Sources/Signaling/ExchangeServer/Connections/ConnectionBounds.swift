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
    /// Unless configured, one address has an eighth of the places, and at least this many.
    static let leastPerAddress = 8

    /// - Parameters:
    ///   - total: What the configuration says; `nil` for as many as the limit on open files leaves room for.
    ///   - perAddress: What the configuration says; `nil` for an eighth of all.
    ///   - fromThisMachine: What the configuration says; `nil` for half of all, so that a reverse proxy has room, and programs of this
    ///     machine cannot take all.
    ///   - descriptors: The process's limit on open files.
    ///   - outgoing: Connections that the exchange may open itself, for pushes.
    init(total: Int?, perAddress: Int?, fromThisMachine: Int? = nil, descriptors: Int, outgoing: Int) {
        let room = max(1, descriptors - Self.otherDescriptors - outgoing)
        self.total = min(total ?? Self.most, room)
        isCut = total.map { $0 > room } ?? false
        self.perAddress = min(self.total, perAddress ?? max(Self.leastPerAddress, self.total / 8))
        self.fromThisMachine = min(self.total, fromThisMachine ?? max(Self.leastPerAddress, self.total / 2))
    }
}
