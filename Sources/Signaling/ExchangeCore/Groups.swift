import SignalWire

/// Some users under one id (GRP-1).
struct Group: Hashable, Sendable {
    let id: GroupID
    /// For people.
    let name: String?
    let owner: UserID
    /// In the order of joining, the owner first.
    var members: [UserID]
}

/// The groups, found by their id or their members.
///
/// Capacity: ``SignalLimits/groupMembers`` in a group, ``SignalLimits/groupsOwned`` and
/// ``SignalLimits/groupsJoined`` for a user.
struct Groups: Sendable {
    private var byID: [GroupID: Group] = [:]
    /// The groups that a user is in, in the order of joining.
    private var joined: [UserID: [GroupID]] = [:]
    private var owned: [UserID: Int] = [:]
    /// The groups that changed since ``takeChanged()``.
    private var changed: Set<GroupID> = []

    /// All there are.
    var ids: some Collection<GroupID> { byID.keys }

    subscript(id: GroupID) -> Group? { byID[id] }

    /// The groups that `user` is in, in the order of joining.
    func groups(of user: UserID) -> [Group] { (joined[user] ?? []).compactMap { byID[$0] } }

    func owns(_ user: UserID) -> Int { owned[user] ?? 0 }
    func joins(_ user: UserID) -> Int { joined[user]?.count ?? 0 }

    /// The groups that were made, changed or dismissed since last asked, in the order of their ids.
    mutating func takeChanged() -> [GroupID] {
        guard !changed.isEmpty else { return [] }
        defer { changed = [] }
        return changed.sorted()
    }

    mutating func add(_ group: Group) {
        changed.insert(group.id)
        restore(group)
    }

    /// Adds a group that is on disk already.
    mutating func restore(_ group: Group) {
        byID[group.id] = group
        owned[group.owner, default: 0] += 1
        for member in group.members { joined[member, default: []].append(group.id) }
    }

    mutating func join(_ id: GroupID, _ user: UserID) {
        changed.insert(id)
        byID[id]?.members.append(user)
        joined[user, default: []].append(id)
    }

    mutating func leave(_ id: GroupID, _ user: UserID) {
        changed.insert(id)
        byID[id]?.members.removeAll { $0 == user }
        forget(id, of: user)
    }

    mutating func remove(_ group: Group) {
        changed.insert(group.id)
        byID[group.id] = nil
        let left = owns(group.owner) - 1
        owned[group.owner] = left > 0 ? left : nil
        for member in group.members { forget(group.id, of: member) }
    }

    private mutating func forget(_ id: GroupID, of user: UserID) {
        joined[user]?.removeAll { $0 == id }
        if joined[user]?.isEmpty == true { joined[user] = nil }
    }
}
