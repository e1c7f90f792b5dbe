import SignalWire

/// The invites that have not ended, by inviter, invitee and group, oldest first.
struct OpenInvites: Sendable {
    private var sent: [UserID: [InviteID]] = [:]
    private var received: [UserID: [InviteID]] = [:]
    private var inGroup: [GroupID: [InviteID]] = [:]

    /// From `user`.
    func sent(by user: UserID) -> [InviteID] { sent[user] ?? [] }
    /// To `user`, whether it has answered or not.
    func received(by user: UserID) -> [InviteID] { received[user] ?? [] }
    /// In a group.
    func inGroup(_ group: GroupID) -> [InviteID] { inGroup[group] ?? [] }

    mutating func add(_ record: InviteRecord) {
        sent[record.inviter.user, default: []].append(record.id)
        for invitee in record.invitees { received[invitee, default: []].append(record.id) }
        if let group = record.group { inGroup[group, default: []].append(record.id) }
    }

    mutating func remove(_ record: InviteRecord) {
        Self.remove(record.id, from: &sent, at: record.inviter.user)
        for invitee in record.invitees { Self.remove(record.id, from: &received, at: invitee) }
        if let group = record.group { Self.remove(record.id, from: &inGroup, at: group) }
    }

    /// A group is dismissed: its invites continue without it.
    mutating func leaveGroup(_ record: InviteRecord) {
        if let group = record.group { Self.remove(record.id, from: &inGroup, at: group) }
    }

    /// `user` is taken off an invite's invitees.
    mutating func strike(_ user: UserID, from record: InviteRecord) {
        Self.remove(record.id, from: &received, at: user)
    }

    private static func remove<Kind>(
        _ id: InviteID, from index: inout [Identifier<Kind>: [InviteID]], at key: Identifier<Kind>
    ) {
        index[key]?.removeAll { $0 == id }
        if index[key]?.isEmpty == true { index[key] = nil }
    }
}
