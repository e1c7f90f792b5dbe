import ExchangeCore

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

    /// What clients with a login have sent of requests and messages that are not complete (``InboundBudget``).
    var messages: Int { kept / 4 }

    /// All of it.
    var total: Int { kept + sendBuffers + 2 * journal + 4 * turns + messages }

    /// Tokens that are remembered (``ExchangeCore/ExchangeCore/Settings/tokens``): half of ``kept`` has room for them.
    var tokens: Int { min(ExchangeCore.Settings.mostTokens, kept / 2 / Self.tokenBytes) }
    /// Memory of a token, with its share of its login.
    static let tokenBytes = 512

    /// What is kept at most unless the configuration says otherwise.
    static let largestDefault = 256 << 20
    /// The least that can be configured: a user's share is an eighth of it, which the largest invite to 32 users fits into.
    static let leastKept = 8 << 20

    /// What an exchange has besides all that is shared out here: the program with what the database caches, and the
    /// memory of one password's hash.
    static let fixed = 64 << 20

    /// The shares of an exchange that may use `memory` bytes: a quarter of what is beyond ``fixed`` is kept for users, so
    /// that all shares take up less than half of it. As much is for connections (``ConnectionBounds``), and the rest for
    /// logins and for the system.
    ///
    /// - Parameter memory: `nil` if it is not known.
    static func fitting(_ memory: Int?) -> MemoryShares {
        MemoryShares(kept: max(leastKept, min(largestDefault, quarter(of: memory))))
    }

    /// A quarter of what `memory` has beyond ``fixed``.
    static func quarter(of memory: Int?) -> Int { ((memory ?? .max) - fixed) / 4 }

    /// What clients without a login may take up together on a machine with `memory` bytes, unless the configuration says
    /// otherwise.
    static func logins(_ memory: Int?) -> Int {
        min(mostForLogins, max(leastForLogins, (memory ?? .max) / 16))
    }
    static let (leastForLogins, mostForLogins) = (4 << 20, 16 << 20)
}
