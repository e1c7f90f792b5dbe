import Core
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

/// The groups, found by their id or their members. Of a group that a user is not in it learns nothing but that it cannot
/// have its id.
///
/// Capacity: ``SignalLimits/groupMembers`` in a group, ``SignalLimits/groupsOwned`` and
/// ``SignalLimits/groupsJoined`` for a user.
struct Groups: Sendable {
    private var byID: [GroupID: Group] = [:]
    /// The groups that a user is in, in the order of joining.
    private var joined: [UserID: [GroupID]] = [:]
    /// The groups that a user owns, in the order of their ids.
    private var owned: [UserID: [GroupID]] = [:]
    /// The groups that changed since ``recordChanges(_:into:)``.
    private var changed: Set<GroupID> = []

    /// All there are.
    var ids: some Collection<GroupID> { byID.keys }

    subscript(id: GroupID) -> Group? { byID[id] }

    /// The members of a group; none of no group.
    func members(of id: GroupID?) -> [UserID] { id.flatMap { byID[$0] }?.members ?? [] }

    /// The groups that `user` is in, in the order of joining.
    func groups(of user: UserID) -> [Group] { (joined[user] ?? []).compactMap { byID[$0] } }

    /// The first groups that `user` owns in the order of their ids behind the id `after`.
    ///
    /// - Complexity: Logarithmic in the groups that the user owns.
    func groups(ownedBy user: UserID, after id: String?, atMost limit: Int) -> [Group] {
        let own = owned[user] ?? []
        let first = id.map { id in own.sortedIndex(behind: { $0.text > id }) } ?? 0
        return own[first...].prefix(limit).compactMap { byID[$0] }
    }

    func owns(_ user: UserID) -> Int { owned[user]?.count ?? 0 }
    func joins(_ user: UserID) -> Int { joined[user]?.count ?? 0 }

    /// A group that a user is in.
    ///
    /// - Throws: `unknownGroup`, whether or not there is one that it is not in.
    func group(_ id: GroupID, of user: UserID) throws(RPCError) -> Group {
        guard let group = byID[id], group.members.contains(user) else { throw Self.unknownGroup }
        return group
    }

    /// A group that a user is in, and in which it asks others: members ask members.
    func group(_ id: GroupID, of user: UserID, asking others: [UserID]) throws(RPCError) -> Group {
        let group = try group(id, of: user)
        guard others.allSatisfy(group.members.contains) else {
            throw RPCError(.notAllowed, "An invite in a group can name its members only.")
        }
        return group
    }

    // MARK: - Requests

    /// Makes a group and notifies its members. If the owner already has a group of that id, returns it.
    mutating func create(
        _ params: GroupCreate, by owner: UserID, _ accounts: AccountDirectory, _ acquaintances: Acquaintances,
        _ effects: inout Effects
    ) throws(RPCError) -> GroupCreate.Result {
        try RequestChecks.check(params)
        if let known = params.group.flatMap({ byID[$0] }) {
            guard known.owner == owner else { throw RPCError(.groupExists, "Another group has that id.") }
            return GroupCreate.Result(group: known.id)
        }
        var members = [owner]
        for user in try accounts.users(called: params.members ?? []) where user != owner { members.append(user) }
        guard owns(owner) < SignalLimits.groupsOwned else {
            throw RPCError(.tooManyRequests, "This user already owns \(SignalLimits.groupsOwned) groups, the limit.")
        }
        for member in members { try checkRoom(for: member, addedBy: owner, acquaintances) }

        let group = Group(
            id: params.group ?? effects.nextGroupID(), name: params.name, owner: owner, members: members)
        try effects.afford(Weight.of(group) + 2 * Weight.record + members.count * Weight.entry * 5)
        changed.insert(group.id)
        restore(group)
        charge(group.id, &effects.budget)
        let event = GroupChanged(group: group.id, change: .created, user: owner, members: members, name: group.name)
        Self.notify(members, event, &effects)
        return GroupCreate.Result(group: group.id)
    }

    /// Adds a user to a group at its own request.
    mutating func join(_ id: GroupID, _ user: UserID, _ effects: inout Effects) throws(RPCError) {
        guard let group = byID[id] else { throw Self.unknownGroup }
        guard !group.members.contains(user) else { return }
        guard group.members.count < SignalLimits.groupMembers else {
            throw RPCError(.tooManyRequests, "The group already has \(SignalLimits.groupMembers) members, the limit.")
        }
        try checkRoom(for: user)
        try effects.afford(2 * Weight.record + (group.members.count + 2) * Weight.entry)
        changed.insert(id)
        byID[id]?.members.append(user)
        joined[user, default: []].append(id)
        Self.notify(group.members + [user], GroupChanged(group: id, change: .joined, user: user), &effects)
    }

    /// Takes a user out of a group at its own request; the owner stays.
    mutating func leave(_ id: GroupID, _ user: UserID, _ effects: inout Effects) throws(RPCError) {
        let group = try group(id, of: user)
        guard group.owner != user else {
            throw RPCError(.notAllowed, "The owner cannot leave a group, only dismiss it.")
        }
        remove(user, from: group, &effects)
    }

    /// The group that its owner is about to dismiss.
    func toDismiss(_ id: GroupID, by user: UserID) throws(RPCError) -> Group {
        let group = try group(id, of: user)
        guard group.owner == user else { throw RPCError(.notYours, "Only the owner can dismiss a group.") }
        return group
    }

    /// Removes a user from a group, and notifies its former members, the user included.
    mutating func remove(_ user: UserID, from group: Group, _ effects: inout Effects) {
        changed.insert(group.id)
        byID[group.id]?.members.removeAll { $0 == user }
        forget(group.id, of: user)
        Self.notify(group.members, GroupChanged(group: group.id, change: .left, user: user), &effects)
    }

    /// Dismisses a group, and notifies its members.
    mutating func dismiss(_ group: Group, _ effects: inout Effects) {
        changed.insert(group.id)
        byID[group.id] = nil
        owned[group.owner]?.removeAll { $0 == group.id }
        if owned[group.owner]?.isEmpty == true { owned[group.owner] = nil }
        for member in group.members { forget(group.id, of: member) }
        Self.notify(group.members, GroupChanged(group: group.id, change: .dismissed, user: group.owner), &effects)
    }

    func listMembers(of id: GroupID, for user: UserID) throws(RPCError) -> GroupMembers.Result {
        let group = try group(id, of: user)
        return GroupMembers.Result(group: id, name: group.name, owner: group.owner, members: group.members)
    }

    func list(_ params: GroupList, of user: UserID) -> GroupList.Result {
        let own = groups(of: user).sorted { $0.id < $1.id }
        let page = Page(
            own.lazy.filter { group in params.after.map { group.id > $0 } ?? true }.map { group in
                (group.id, GroupList.Entry(group: group.id, name: group.name, owner: group.owner))
            })
        return GroupList.Result(groups: page.entries, next: page.next)
    }

    // MARK: - To disk and back

    /// Puts out what changed, in the order of the groups' ids, and charges the owners.
    mutating func recordChanges(_ budget: inout Budget, into outbox: inout [ExchangeCore.Output]) {
        guard !changed.isEmpty else { return }
        for id in changed.sorted() {
            charge(id, &budget)
            outbox.append(.persist(byID[id].map { .group($0.stored) } ?? .groupForgotten(id)))
        }
        changed = []
    }

    /// Charges the owners of all groups.
    func chargeAll(_ budget: inout Budget) { for id in ids { charge(id, &budget) } }

    /// Adds a group that is on disk already.
    mutating func restore(_ group: Group) {
        byID[group.id] = group
        let index = (owned[group.owner] ?? []).sortedIndex(behind: { $0 >= group.id })
        owned[group.owner, default: []].insert(group.id, at: index)
        for member in group.members { joined[member, default: []].append(group.id) }
    }

    // MARK: - Within

    /// Users are added to a group without their consent: without a share for unfamiliar owners, a few strangers could
    /// fill a user's groups.
    private func checkRoom(
        for user: UserID, addedBy owner: UserID, _ acquaintances: Acquaintances
    ) throws(RPCError) {
        try checkRoom(for: user)
        let limit = SignalLimits.groupsOfStrangers
        guard joins(user) >= limit, !acquaintances.has(user, owner) else { return }
        guard groups(of: user).count(where: { !acquaintances.has(user, $0.owner) }) < limit else {
            throw RPCError(
                .tooManyRequests,
                "A member never accepted an invite of this user and is in \(limit) groups of such owners, the limit; it can "
                    + "join the group by itself.")
        }
    }

    private func checkRoom(for user: UserID) throws(RPCError) {
        guard joins(user) < SignalLimits.groupsJoined else {
            throw RPCError(.tooManyRequests, "A user can be in at most \(SignalLimits.groupsJoined) groups.")
        }
    }

    private mutating func forget(_ id: GroupID, of user: UserID) {
        joined[user]?.removeAll { $0 == id }
        if joined[user]?.isEmpty == true { joined[user] = nil }
    }

    private func charge(_ id: GroupID, _ budget: inout Budget) {
        let group = byID[id]
        budget.charge(.group(id), group.map(Weight.of) ?? 0, for: (group?.owner).map(Principal.account))
    }

    private static func notify(_ members: [UserID], _ change: GroupChanged, _ effects: inout Effects) {
        let event = effects.body(of: .groupChanged(change))
        for member in members { effects.notify(member, .every, event) }
    }

    private static let unknownGroup = RPCError(
        .unknownGroup, "There is no such group, or this user is not in it.")
}

extension Group {
    /// The record to store on disk.
    var stored: StoredGroup { StoredGroup(id: id, name: name, owner: owner, members: members) }

    init(_ stored: StoredGroup) {
        self.init(id: stored.id, name: stored.name, owner: stored.owner, members: stored.members)
    }
}
