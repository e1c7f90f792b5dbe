import SignalWire

/// The invites that have not ended, by inviter, invitee and group, oldest first.
struct OpenInvites: Sendable {
    private var sent: [UserID: [InviteID]] = [:]
    private var received: [UserID: [InviteID]] = [:]
    private var inGroup: [GroupID: [InviteID]] = [:]
    /// How many there are.
    private(set) var count = 0

    /// From `user`.
    func sent(by user: UserID) -> [InviteID] { sent[user] ?? [] }
    /// To `user`, whether it has answered or not.
    func received(by user: UserID) -> [InviteID] { received[user] ?? [] }
    /// In a group.
    func inGroup(_ group: GroupID) -> [InviteID] { inGroup[group] ?? [] }

    mutating func add(_ record: InviteRecord) {
        count += 1
        sent[record.inviter.user, default: []].append(record.id)
        for invitee in record.invitees { received[invitee, default: []].append(record.id) }
        if let group = record.group { inGroup[group, default: []].append(record.id) }
    }

    mutating func remove(_ record: InviteRecord) {
        count -= 1
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

/// Which invite a user's idempotency key names, and back. A key is one user's own.
struct InviteKeys: Sendable {
    private struct Key: Hashable {
        var user: UserID
        var key: IdempotencyKey
    }

    private var inviteByKey = PartedDictionary<Key, InviteID>()
    private var keyByInvite = PartedDictionary<InviteID, Key>()

    /// How many keys name an invite.
    var count: Int { inviteByKey.count }
    /// Whether as many invites have a key as keys name one.
    var isConsistent: Bool { inviteByKey.count == keyByInvite.count }

    /// The invite that a key of `user` names.
    func invite(of user: UserID, _ key: IdempotencyKey) -> InviteID? { inviteByKey[Key(user: user, key: key)] }

    /// The key of an invite.
    func key(of invite: InviteID) -> IdempotencyKey? { keyByInvite[invite]?.key }

    mutating func set(_ key: IdempotencyKey, of user: UserID, to invite: InviteID) {
        let key = Key(user: user, key: key)
        inviteByKey[key] = invite
        keyByInvite[invite] = key
    }

    /// Frees the key of an invite.
    ///
    /// - Returns: Whether it had one.
    @discardableResult
    mutating func free(_ invite: InviteID) -> Bool {
        guard let key = keyByInvite[invite] else { return false }
        keyByInvite[invite] = nil
        inviteByKey[key] = nil
        return true
    }
}
