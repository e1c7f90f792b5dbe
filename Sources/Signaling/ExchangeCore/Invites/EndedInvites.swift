import SignalWire

/// The invites that have ended and are remembered, by who sent them, in the order of their ends.
struct EndedInvites: Sendable {
    private var bySender: [UserID: [InviteID]] = [:]

    /// From `sender`, in the order of their ends.
    func sent(by sender: UserID) -> [InviteID] { bySender[sender] ?? [] }

    /// Adds one.
    ///
    /// - Returns: The one that has to go, if there are more than `limit`.
    mutating func add(_ id: InviteID, of sender: UserID, limit: Int) -> InviteID? {
        bySender[sender, default: []].append(id)
        guard let all = bySender[sender], all.count > limit else { return nil }
        return all.first
    }

    /// Takes out one that is to be forgotten; as a rule it is the oldest.
    mutating func remove(_ id: InviteID, of sender: UserID) {
        guard let index = bySender[sender]?.firstIndex(of: id) else { return }
        bySender[sender]?.remove(at: index)
        if bySender[sender]?.isEmpty == true { bySender[sender] = nil }
    }
}
