import SignalWire

/// The places that open invites take: one with each invitee that has still to answer, and one in their group.
///
/// Of each invitee and each group it knows how many places each inviter has. That is bounded by those who ask it
/// (``Invites``).
struct InvitePlaces: Sendable {
    /// The places with one invitee, or in one group.
    struct Table: Sendable {
        /// Taken in all.
        private(set) var count = 0
        private(set) var byInviter: [UserID: Int] = [:]

        /// How many `inviter` has.
        func count(of inviter: UserID) -> Int { byInviter[inviter] ?? 0 }

        fileprivate mutating func take(_ inviter: UserID) {
            count += 1
            byInviter[inviter, default: 0] += 1
        }

        fileprivate mutating func leave(_ inviter: UserID) {
            guard let own = byInviter[inviter] else { return }
            count -= 1
            byInviter[inviter] = own > 1 ? own - 1 : nil
        }
    }

    private var byInvitee: [UserID: Table] = [:]
    private var byGroup: [GroupID: Table] = [:]

    /// The invites that `user` has still to answer.
    func toAnswer(by user: UserID) -> Table { byInvitee[user] ?? Table() }

    /// The invites in a group that have not ended.
    func inGroup(_ group: GroupID) -> Table { byGroup[group] ?? Table() }

    /// An invite begins, or is taken in from disk: it has a place with all who have still to answer it.
    mutating func take(_ record: InviteRecord) {
        for user in record.pending { byInvitee[user, default: Table()].take(record.inviter.user) }
        if let group = record.group { byGroup[group, default: Table()].take(record.inviter.user) }
    }

    /// Invitees have answered, or need not any more.
    mutating func leave(_ record: InviteRecord, by users: [UserID]) {
        for user in users {
            byInvitee[user]?.leave(record.inviter.user)
            if byInvitee[user]?.count == 0 { byInvitee[user] = nil }
        }
    }

    /// An invite has no invitee left to answer: frees its slot in the group.
    mutating func leaveGroup(_ record: InviteRecord) {
        guard let group = record.group else { return }
        byGroup[group]?.leave(record.inviter.user)
        if byGroup[group]?.count == 0 { byGroup[group] = nil }
    }
}

/// How many invites may be open: docs/protocol.md has the numbers, and tests take smaller ones.
struct InviteLimits: Sendable {
    /// From one user; to one user that has still to answer; in one group. Contract and memory both want a bound.
    var open = SignalLimits.openInvites
    /// From one user to one other, and from one member in a group.
    var ofPair = SignalLimits.openInvitesOfPair
    /// Open invites to one user from all users that it does not know.
    var ofStrangers = SignalLimits.openInvitesOfStrangers
    /// In one group beyond the first of each member, the owner's not counted.
    var beyondFirst = SignalLimits.openInvitesBeyondFirst
}
