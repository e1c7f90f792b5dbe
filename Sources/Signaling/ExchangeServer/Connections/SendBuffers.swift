import ExchangeCore
/// Bytes that wait for clients that read too slowly, by payer.
///
/// Each connection limits its own waiting bytes. This limits those of all connections together, and those of all
/// connections of one account. Past a limit the connection with the most waiting bytes is dropped: of the account that
/// exceeds its limit, or else of the account with the most in all. So no client is dropped because others do not read.
///
/// A number may be too high, since a client may have read more since it was set: measure again before dropping a
/// connection.
struct SendBuffers<Connection: Hashable & Sendable>: Sendable {
    /// Bytes that may wait.
    struct Limits: Hashable, Sendable {
        /// For all together.
        var total = 64 << 20
        /// For one account: as much as is kept for it at most.
        var account = StorageQuota.Limits().user
    }

    private struct Entry {
        var bytes: Int
        var payer: Payer
    }

    let limits: Limits
    /// Bytes that wait in all.
    private(set) var total = 0
    private var entries: [Connection: Entry] = [:]
    private var sums: [Payer: Int] = [:]

    init(_ limits: Limits = Limits()) { self.limits = limits }

    /// Connections for which something waits.
    var connections: some Collection<Connection> { entries.keys }

    /// Bytes that wait for a payer's connections.
    func bytes(of payer: Payer) -> Int { sums[payer] ?? 0 }

    /// Sets what waits for a connection; 0 for one that has read it all, or is closed.
    mutating func set(_ connection: Connection, _ bytes: Int, of payer: Payer) {
        if let before = entries[connection] { add(-before.bytes, to: before.payer) }
        entries[connection] = bytes > 0 ? Entry(bytes: bytes, payer: payer) : nil
        if bytes > 0 { add(bytes, to: payer) }
    }

    /// Sets what waits for a connection that is known; whose it is stays as it was.
    mutating func measure(_ connection: Connection, _ bytes: Int) {
        guard let entry = entries[connection] else { return }
        set(connection, bytes, of: entry.payer)
    }

    /// Whether too much waits, after something was set for `payer`.
    func isOver(_ payer: Payer) -> Bool {
        if case .account = payer, bytes(of: payer) > limits.account { return true }
        return total > limits.total
    }

    /// The connection that is to be dropped once ``isOver(_:)`` is true; `nil` when an eighth of the limit is free again, so
    /// that not each message leads to a search.
    ///
    /// - Complexity: O(connections for which something waits).
    func loser(after payer: Payer) -> Connection? {
        if case .account = payer, bytes(of: payer) > limits.account / 8 * 7 { return largest(of: payer) }
        guard total > limits.total / 8 * 7 else { return nil }
        return sums.max { $0.value < $1.value }.flatMap { largest(of: $0.key) }
    }

    private func largest(of payer: Payer) -> Connection? {
        entries.filter { $0.value.payer == payer }.max { $0.value.bytes < $1.value.bytes }?.key
    }

    private mutating func add(_ bytes: Int, to payer: Payer) {
        total += bytes
        let sum = self.bytes(of: payer) + bytes
        sums[payer] = sum > 0 ? sum : nil
    }
}
