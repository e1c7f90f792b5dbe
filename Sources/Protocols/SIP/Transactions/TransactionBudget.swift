internal import Core

/// The memory that transactions of peers may take up, and who has how much of it.
///
/// The server may have all of it. Others together have three quarters, and those of them with whom there is no call half. None of them
/// has more than an eighth of what is free for it, so that no few addresses, however many requests they send, use it up. An IPv6 address
/// counts as its /64.
struct TransactionBudget: Sendable {
    /// Who a request comes from.
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

    /// Whether so many bytes more may be used.
    func allows(_ bytes: Int, for peer: Peer) -> Bool {
        guard used + bytes <= limit else { return false }
        guard let address = peer.address else { return true }
        let own = usedByAddress[address] ?? 0
        var free = limit / 4 * 3 - usedByOthers
        if case .stranger = peer { free = min(free, limit / 2 - usedByStrangers) }
        return own + bytes <= (free + own) / 8
    }

    /// A peer uses so many bytes more; or less, if it is negative.
    mutating func use(_ bytes: Int, by peer: Peer) {
        used += bytes
        guard let address = peer.address else { return }
        usedByOthers += bytes
        if case .stranger = peer { usedByStrangers += bytes }
        let own = (usedByAddress[address] ?? 0) + bytes
        usedByAddress[address] = own > 0 ? own : nil
    }
}
