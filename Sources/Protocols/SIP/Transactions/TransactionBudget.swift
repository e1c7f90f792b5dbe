internal import Core

/// The memory that transactions of peers may take up, and who has how much of it.
///
/// The server may use all of it. Other peers together may use three quarters, and those without a call half. One
/// address may use at most an eighth of what is free for its kind, so that a few addresses cannot use it up, however
/// many requests they send. An IPv6 address counts as its /64.
struct TransactionBudget: Sendable {
    /// The sender of a request.
    enum Peer: Hashable, Sendable {
        case server
        /// The peer of a call.
        case caller(ClientAddress)
        case stranger(ClientAddress)

        var address: ClientAddress? {
            switch self {
            case .server: nil
            case .caller(let address), .stranger(let address): address
            }
        }
    }

    let limit: Int
    private(set) var used = 0
    private var usedByOthers = 0
    private var usedByStrangers = 0
    private var usedByAddress: [ClientAddress: Int] = [:]

    init(limit: Int) { self.limit = limit }

    /// Whether a peer may use `bytes` more.
    func allows(_ bytes: Int, for peer: Peer) -> Bool {
        guard used + bytes <= limit else { return false }
        guard let address = peer.address else { return true }
        let own = usedByAddress[address] ?? 0
        var free = limit / 4 * 3 - usedByOthers
        if case .stranger = peer { free = min(free, limit / 2 - usedByStrangers) }
        return own + bytes <= (free + own) / 8
    }

    /// Adds to the bytes that a peer uses; a negative number subtracts.
    mutating func use(_ bytes: Int, by peer: Peer) {
        used += bytes
        guard let address = peer.address else { return }
        usedByOthers += bytes
        if case .stranger = peer { usedByStrangers += bytes }
        let own = (usedByAddress[address] ?? 0) + bytes
        usedByAddress[address] = own > 0 ? own : nil
    }
}
