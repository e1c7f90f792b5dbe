import ExchangeCore
import NIOCore

/// The connections of clients, each with a number that is given once: WebSockets, and those that streams attach, with who
/// pays for them.
struct ConnectionTable {
    private var sockets: [ConnectionID: SocketSession] = [:]
    private var attached: [ConnectionID: Payer] = [:]
    private var last: UInt64 = 0

    /// Rooms that outlive the process contain connections' names, so each run has numbers of its own.
    mutating func beginRun(_ run: UInt64) { last = run << 32 }

    /// A number for a connection.
    mutating func reserve() -> ConnectionID {
        last += 1
        return ConnectionID(number: last)
    }

    // MARK: - WebSockets

    /// All of them, in no order.
    var allSockets: Dictionary<ConnectionID, SocketSession>.Values { sockets.values }

    /// Their numbers, the oldest first.
    var socketIDs: [ConnectionID] { sockets.keys.sorted { $0.number < $1.number } }

    func socket(_ connection: ConnectionID) -> SocketSession? { sockets[connection] }

    mutating func add(_ socket: SocketSession) -> ConnectionID {
        let connection = reserve()
        sockets[connection] = socket
        return connection
    }

    /// False if it was not known.
    mutating func removeSocket(_ connection: ConnectionID) -> Bool { sockets.removeValue(forKey: connection) != nil }

    // MARK: - Attached connections

    var attachedIDs: [ConnectionID] { Array(attached.keys) }

    /// Who pays for an attached connection.
    func attachedPayer(_ connection: ConnectionID) -> Payer? { attached[connection] }

    mutating func attach(_ connection: ConnectionID, of payer: Payer) { attached[connection] = payer }

    /// Returns who paid for it; `nil` if it was not attached.
    mutating func detach(_ connection: ConnectionID) -> Payer? { attached.removeValue(forKey: connection) }
}
