/// Counts connections, in all and by address, and decides which new ones are admitted.
///
/// Capacity: one entry for each address that has a connection, so at most ``limit``.
///
/// `Client` is what the user of the module counts as one client: it knows which addresses are assigned together, and
/// which proxies represent other clients.
package struct ConnectionCensus<Client: Hashable & Sendable>: Sendable {
    /// Connections in all, at most.
    package let limit: Int
    /// Connections of one client, at most.
    package let clientLimit: Int
    /// A client with a limit of its own.
    private let special: (client: Client, limit: Int)?
    /// Connections now.
    package private(set) var total = 0
    private var byAddress: [Client: Int] = [:]

    /// - Parameters:
    ///   - limit: Connections in all, at most.
    ///   - clientLimit: Connections of one client, at most.
    ///   - special: A client with a limit of its own.
    package init(limit: Int, clientLimit: Int, special: (client: Client, limit: Int)? = nil) {
        self.limit = limit
        self.clientLimit = clientLimit
        self.special = special
    }

    /// Counts a connection that comes.
    ///
    /// - Parameter address: `nil` for a connection that only the total limit applies to.
    package mutating func admit(_ address: Client?) throws(ConnectionRefusal) {
        guard total < limit else { throw .full }
        guard hasRoom(address) else { throw .addressFull }
        total += 1
        count(address)
    }

    /// Takes a connection out of the count.
    package mutating func leave(_ address: Client?) {
        total -= 1
        forget(address)
    }

    /// A proxy's connection speaks for another client from now on.
    package mutating func move(from old: Client?, to new: Client?) throws(ConnectionRefusal) {
        guard old != new else { return }
        guard hasRoom(new) else { throw .addressFull }
        forget(old)
        count(new)
    }

    /// Connections from `address` now.
    package func connections(from address: Client) -> Int { byAddress[address] ?? 0 }

    private func hasRoom(_ address: Client?) -> Bool {
        address.map { connections(from: $0) < ($0 == special?.client ? special?.limit ?? clientLimit : clientLimit) }
            ?? true
    }

    private mutating func count(_ address: Client?) {
        if let address { byAddress[address, default: 0] += 1 }
    }

    private mutating func forget(_ address: Client?) {
        guard let address, let count = byAddress[address] else { return }
        byAddress[address] = count > 1 ? count - 1 : nil
    }
}

/// Why a ``ConnectionCensus`` refuses a connection.
package enum ConnectionRefusal: Error, Hashable, Sendable {
    /// There are as many as there may be.
    case full
    /// There are as many from its address as one may have.
    case addressFull
}
