/// How the memory that an exchange may use is shared out between what it keeps and what is under way.
///
/// The one number is ``kept``; all others follow from it, so that together they take up ``total`` at most, and an exchange
/// fits a machine as a whole (docs/protocol.md, Limits).
struct MemoryShares: Hashable, Sendable {
    /// Bytes kept for users (``StorageQuota``).
    let kept: Int

    /// What waits for clients that read slowly (``SendBuffers``).
    var sendBuffers: Int { kept / 4 }
    /// What gathers for the disk while it is written to (``CommitGate``); as much again is being written.
    var journal: Int { kept / 8 }
    /// What waits for its turn before no more is read (``FairQueue``); four times as much is refused.
    var turns: Int { kept / 32 }

    /// All of it.
    var total: Int { kept + sendBuffers + 2 * journal + 4 * turns }

    /// What is kept at most unless the configuration says otherwise.
    static let largestDefault = 256 << 20
    /// The least that can be configured: a user's share is an eighth of it, which the largest invite to 32 users fits into.
    static let leastKept = 8 << 20

    /// The shares of an exchange that may use `memory` bytes: a quarter is kept for users, so that all shares take up
    /// less than half of it. The rest is for connections, logins, the program itself and what the database caches.
    ///
    /// - Parameter memory: `nil` if it is not known.
    static func fitting(_ memory: Int?) -> MemoryShares {
        guard let memory else { return MemoryShares(kept: largestDefault) }
        return MemoryShares(kept: max(leastKept, min(largestDefault, memory / 4)))
    }
}
