public import SignalWire

/// An account whose devices carry calls to and from a telephone network, and who may have calls carried there.
public struct Trunk: Hashable, Sendable {
    /// The account.
    public var user: UserID
    /// Numbers that go this way.
    public var numbers: [NumberPattern]
    /// Users who may call these numbers.
    public var callers: Set<UserID> = []
    /// Calls that each of them may begin within an hour.
    public var callsPerHour = 20
    /// Calls that each of them may have at once.
    public var callsAtOnce = 2

    /// Makes a trunk that no user may call out by.
    public init(user: UserID, numbers: [NumberPattern]) {
        self.user = user
        self.numbers = numbers
    }
}
