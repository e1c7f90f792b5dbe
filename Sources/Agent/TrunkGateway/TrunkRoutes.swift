public import CallControl

/// Where calls go that come to a trunk. What is not listed goes nowhere.
public struct TrunkRoutes: Sendable {
    /// How a number is dialled in the network.
    public struct Rewriting: Hashable, Sendable {
        /// Characters that are left out at the beginning.
        public var strip = 0
        /// What is put there.
        public var prepend = ""

        /// A number as it is.
        public init() {}
    }

    /// Users of the exchange, by the numbers at which the network calls them.
    public var users = NumberTable<UserID>()
    /// How numbers are dialled, if not as they are.
    public var rewritings = NumberTable<Rewriting>()

    /// Routes no number to any user.
    public init() {}

    /// What is called in the network for a number that a user of the exchange has dialled; nil if it is no number.
    public func networkName(of dialled: String) -> UserID? {
        guard let number = TelephoneNumber(dialled) else { return nil }
        let rewriting = rewritings[number] ?? Rewriting()
        let dialled = number.rewritten(without: rewriting.strip, prepending: rewriting.prepend)
        return dialled.flatMap { try? UserID($0.text) }
    }

    /// The user of the exchange to call for a number that was dialled in the network.
    public func user(of dialled: String) -> UserID? { TelephoneNumber(dialled).flatMap { users[$0] } }
}
