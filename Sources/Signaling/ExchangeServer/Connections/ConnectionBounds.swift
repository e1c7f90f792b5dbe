import ExchangeCore
/// How many TCP connections an exchange takes, in all and from one address.
struct ConnectionBounds: Hashable, Sendable {
    /// Connections in all, at least 1.
    let total: Int
    /// Connections from one address, at least 1 and at most ``total``.
    let perAddress: Int
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
    ///   - descriptors: The process's limit on open files.
    ///   - outgoing: Connections that the exchange may open itself, for pushes.
    init(total: Int?, perAddress: Int?, descriptors: Int, outgoing: Int) {
        let room = max(1, descriptors - Self.otherDescriptors - outgoing)
        self.total = min(total ?? Self.most, room)
        isCut = total.map { $0 > room } ?? false
        self.perAddress = min(self.total, perAddress ?? max(Self.leastPerAddress, self.total / 8))
    }
}

/// Counts connections, in all and by address, and says which may still come.
///
/// Capacity: one entry for each address that has a connection, so at most ``ConnectionBounds/total``.
struct ConnectionCensus: Sendable {
    /// Why a connection is refused.
    enum Refusal: Error {
        /// There are as many as there may be.
        case full
        /// There are as many from its address as one may have.
        case addressFull
    }

    let bounds: ConnectionBounds
    /// Connections now.
    private(set) var total = 0
    private var byAddress: [ClientAddress: Int] = [:]

    init(_ bounds: ConnectionBounds) { self.bounds = bounds }

    /// Counts a connection that comes.
    ///
    /// - Parameter address: `nil` for one that only the bound of all holds for.
    mutating func admit(_ address: ClientAddress?) throws(Refusal) {
        guard total < bounds.total else { throw .full }
        guard hasRoom(address) else { throw .addressFull }
        total += 1
        count(address)
    }

    /// Counts a connection no longer.
    mutating func leave(_ address: ClientAddress?) {
        total -= 1
        forget(address)
    }

    /// A proxy's connection speaks for another client from now on.
    mutating func move(from old: ClientAddress?, to new: ClientAddress?) throws(Refusal) {
        guard old != new else { return }
        guard hasRoom(new) else { throw .addressFull }
        forget(old)
        count(new)
    }

    /// Connections from `address` now.
    func connections(from address: ClientAddress) -> Int { byAddress[address] ?? 0 }

    private func hasRoom(_ address: ClientAddress?) -> Bool {
        address.map { connections(from: $0) < bounds.perAddress } ?? true
    }

    private mutating func count(_ address: ClientAddress?) {
        if let address { byAddress[address, default: 0] += 1 }
    }

    private mutating func forget(_ address: ClientAddress?) {
        guard let address, let count = byAddress[address] else { return }
        byAddress[address] = count > 1 ? count - 1 : nil
    }
}
