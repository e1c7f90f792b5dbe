/// How much a stranger, a peer that the service has not admitted, may send at once.
package struct StrangerBounds: Hashable, Sendable {
    let bodyBytes: Int
    let messageBytes: Int

    /// - Parameters:
    ///   - bodyBytes: The most that the body of a request may have.
    ///   - messageBytes: The most that a message on a WebSocket may have.
    package init(bodyBytes: Int, messageBytes: Int) {
        self.bodyBytes = bodyBytes
        self.messageBytes = messageBytes
    }
}

/// Holds all strangers of a server, or all its admitted peers, to a ``StrangerBudget``, and refuses those that must let go.
///
/// Lives on the listener's event loop.
package final class InboundBudget {
    /// When clients that are refused may come again.
    package static let retrySeconds = 2

    private var budget: StrangerBudget
    /// Those that hold bytes of the budget.
    private var meters: [StrangerBudget.Holder: InboundMeter] = [:]
    /// Requests and messages that were refused because there was no more memory for them.
    package private(set) var crowdedOut = 0
    /// Called before a connection is refused.
    package var onCrowded: (() -> Void)?

    /// - Parameter limit: Bytes that all of them may hold together.
    package init(limit: Int) { budget = StrangerBudget(limit: limit) }

    /// Bytes that all of them may hold together.
    package var limit: Int { budget.limit }
    /// How many hold something.
    package var count: Int { budget.count }
    /// Bytes that they hold.
    package var held: Int { budget.held }

    /// Holds bytes for a connection; false if that one must go.
    func hold(_ bytes: Int, for holder: inout StrangerBudget.Holder?, of meter: InboundMeter) -> Bool {
        let losers = budget.hold(bytes, for: &holder)
        if let holder { meters[holder] = meter }
        guard !losers.isEmpty else { return true }
        onCrowded?()
        crowdedOut += losers.count
        let own = holder
        for loser in losers { meters.removeValue(forKey: loser)?.refuse(.crowded) }
        return !losers.contains { $0 == own }
    }

    /// Holds nothing for `holder` any more.
    func release(_ holder: StrangerBudget.Holder) {
        budget.release(holder)
        meters[holder] = nil
    }

    /// Holds `bytes` less for `holder`.
    func release(_ bytes: Int, of holder: StrangerBudget.Holder) { budget.release(bytes, of: holder) }
}
