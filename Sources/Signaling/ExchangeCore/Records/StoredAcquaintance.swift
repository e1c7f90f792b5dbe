public import SignalWire
public import Core

/// That a user knows another: it has accepted an invite of the other, or has invited it.
public struct StoredAcquaintance: Hashable, Sendable {
    /// The user that knows the other.
    public var owner: UserID
    /// The other.
    public var user: UserID
    /// When that was last so, an hour too early at most.
    public var used: Instant

    /// Makes an entry.
    public init(owner: UserID, user: UserID, used: Instant) {
        self.owner = owner
        self.user = user
        self.used = used
    }
}
