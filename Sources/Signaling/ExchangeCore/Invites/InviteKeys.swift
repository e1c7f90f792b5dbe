import SignalWire

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
