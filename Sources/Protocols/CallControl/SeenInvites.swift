/// Remembers which invites were seen, so that each is reported once (contract INV-17).
///
/// Holds the newest `capacity` invites; when one more comes the oldest is forgotten.
public struct SeenInvites: Sendable {
    /// Invites remembered at most.
    public let capacity: Int
    private var known: Set<InviteID> = []
    /// A ring in order of arrival; `oldest` is the next to be forgotten.
    private var order: [InviteID] = []
    private var oldest = 0

    /// Makes an empty set that remembers up to `capacity` invites, at least one.
    public init(capacity: Int = 1_024) { self.capacity = max(1, capacity) }

    /// Whether an invite was recorded, and not forgotten since.
    public func contains(_ invite: InviteID) -> Bool { known.contains(invite) }

    /// Records an invite; false if it is already known and must not be reported again.
    @discardableResult
    public mutating func note(_ invite: InviteID) -> Bool {
        guard known.insert(invite).inserted else { return false }
        if order.count < capacity {
            order.append(invite)
        } else {
            known.remove(order[oldest])
            order[oldest] = invite
            oldest = (oldest + 1) % capacity
        }
        return true
    }
}
