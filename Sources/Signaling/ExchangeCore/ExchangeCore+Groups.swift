import SignalWire
import Timekeeping

/// Groups (GRP-1). Of a group that a user is not in it learns nothing but that it cannot have its id.
extension ExchangeCore {
    mutating func createGroup(
        _ params: GroupCreate, _ session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) -> GroupCreate.Result {
        let owner = session.endpoint.user
        try Self.check(params)
        if let known = params.group.flatMap({ groups[$0] }) {
            guard known.owner == owner else { throw RPCError(.groupExists, "Another group has that id.") }
            return GroupCreate.Result(group: known.id)
        }
        var members = [owner]
        for user in try users(called: params.members ?? []) where user != owner { members.append(user) }
        guard groups.owns(owner) < SignalLimits.groupsOwned else {
            throw RPCError(.tooManyRequests, "This user owns \(SignalLimits.groupsOwned) groups already.")
        }
        for member in members { try checkRoomForGroup(member, addedBy: owner) }

        let group = Group(id: params.group ?? ids.next("group"), name: params.name, owner: owner, members: members)
        try afford(Weight.of(group) + 2 * Weight.record + members.count * Weight.entry * 5)
        groups.add(group)
        settle(group.id)
        let event = GroupChanged(group: group.id, change: .created, user: owner, members: members, name: group.name)
        tell(members, event, at: now, into: &outbox)
        return GroupCreate.Result(group: group.id)
    }

    private static func check(_ params: GroupCreate) throws(RPCError) {
        if let name = params.name { try check(name, "name") }
        guard (params.members?.count ?? 0) < SignalLimits.groupMembers else {
            throw RPCError(
                .tooLarge, "A group has at most \(SignalLimits.groupMembers) members, its owner included.",
                limit: SignalLimits.groupMembers)
        }
    }

    /// What people call something is theirs to choose, but for what spoils a log or a screen.
    static func check(_ name: String, _ member: String) throws(RPCError) {
        guard name.utf8.count <= SignalLimits.nameBytes else {
            throw RPCError(
                .tooLarge, "\(member) has at most \(SignalLimits.nameBytes) bytes.", limit: SignalLimits.nameBytes)
        }
        let isPlain = name.unicodeScalars.allSatisfy {
            $0.properties.generalCategory != .control && !$0.properties.isBidiControl
        }
        guard isPlain else {
            throw RPCError(.invalidParams, "\(member) must have no control and no bidirectional characters.")
        }
    }

    /// Nobody is asked before it is added to a group: without a share for them, a few strangers could fill a user's groups.
    private func checkRoomForGroup(_ user: UserID, addedBy owner: UserID) throws(RPCError) {
        try checkRoomForGroup(user)
        let limit = SignalLimits.groupsOfStrangers
        guard groups.joins(user) >= limit, !acquaintances.has(user, owner) else { return }
        guard groups.groups(of: user).count(where: { !acquaintances.has(user, $0.owner) }) < limit else {
            throw RPCError(
                .tooManyRequests,
                "A member is in \(limit) groups already whose owners' invites it has never accepted, as this user's; it can "
                    + "join the group by itself.")
        }
    }

    private func checkRoomForGroup(_ user: UserID) throws(RPCError) {
        guard groups.joins(user) < SignalLimits.groupsJoined else {
            throw RPCError(.tooManyRequests, "A user can be in \(SignalLimits.groupsJoined) groups at most.")
        }
    }

    mutating func joinGroup(
        _ id: GroupID, _ session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) {
        let user = session.endpoint.user
        guard let group = groups[id] else { throw Self.unknownGroup }
        guard !group.members.contains(user) else { return }
        guard group.members.count < SignalLimits.groupMembers else {
            throw RPCError(.tooManyRequests, "The group has \(SignalLimits.groupMembers) members already.")
        }
        try checkRoomForGroup(user)
        try afford(2 * Weight.record + (group.members.count + 2) * Weight.entry)
        groups.join(id, user)
        tell(
            group.members + [user], GroupChanged(group: id, change: .joined, user: user), at: now, into: &outbox)
    }

    mutating func leaveGroup(
        _ id: GroupID, _ session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) {
        let group = try group(id, of: session)
        let user = session.endpoint.user
        guard group.owner != user else {
            throw RPCError(.notAllowed, "The owner cannot leave a group; it dismisses it.")
        }
        leave(group, user, at: now, into: &outbox)
    }

    private mutating func leave(_ group: Group, _ user: UserID, at now: Instant, into outbox: inout [Output]) {
        groups.leave(group.id, user)
        tell(group.members, GroupChanged(group: group.id, change: .left, user: user), at: now, into: &outbox)
    }

    mutating func dismissGroup(
        _ id: GroupID, _ session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) {
        let group = try group(id, of: session)
        guard group.owner == session.endpoint.user else {
            throw RPCError(.notYours, "Only the owner dismisses a group.")
        }
        dismiss(group, at: now, into: &outbox)
    }

    /// Its open invites go on without it: of those whoever makes a group of that name next must not be told.
    private mutating func dismiss(_ group: Group, at now: Instant, into outbox: inout [Output]) {
        for var record in openInvites.inGroup(group.id).compactMap({ invites[$0] }) {
            openInvites.leaveGroup(record)
            invitePlaces.leaveGroup(record)
            record.leaveGroup()
            invites[record.id] = record
        }
        groups.remove(group)
        let event = GroupChanged(group: group.id, change: .dismissed, user: group.owner)
        tell(group.members, event, at: now, into: &outbox)
    }

    /// Takes a user whose account is gone out of all groups, and dismisses those that it owns.
    mutating func leaveGroups(of user: UserID, at now: Instant, into outbox: inout [Output]) {
        for group in groups.groups(of: user) {
            if group.owner == user {
                dismiss(group, at: now, into: &outbox)
            } else {
                leave(group, user, at: now, into: &outbox)
            }
        }
    }

    func membersOfGroup(_ id: GroupID, _ session: Session) throws(RPCError) -> GroupMembers.Result {
        let group = try group(id, of: session)
        return GroupMembers.Result(group: id, name: group.name, owner: group.owner, members: group.members)
    }

    func listGroups(_ params: GroupList, of session: Session) -> GroupList.Result {
        let own = groups.groups(of: session.endpoint.user).sorted { $0.id < $1.id }
        let page = Page(
            own.lazy.filter { group in params.after.map { group.id > $0 } ?? true }.map { group in
                (group.id, GroupList.Entry(group: group.id, name: group.name, owner: group.owner))
            })
        return GroupList.Result(groups: page.entries, next: page.next)
    }

    /// A group that the session's user is in.
    ///
    /// - Throws: `unknownGroup`, whether or not there is one that it is not in.
    func group(_ id: GroupID, of session: Session) throws(RPCError) -> Group {
        guard let group = groups[id], group.members.contains(session.endpoint.user) else { throw Self.unknownGroup }
        return group
    }

    /// The ids of the users that are called `names`, each once, in that order.
    func users(called names: [UserID]) throws(RPCError) -> [UserID] {
        var users: [UserID] = []
        for name in names {
            guard let user = accounts.account(called: name)?.id else {
                throw RPCError(.unknownUser, "Nobody here is called that.")
            }
            if !users.contains(user) { users.append(user) }
        }
        return users
    }

    private mutating func tell(
        _ members: [UserID], _ change: GroupChanged, at now: Instant, into outbox: inout [Output]
    ) {
        let event = body(of: .groupChanged(change))
        for member in members { tell(member, .every, event, at: now, into: &outbox) }
    }

    private static let unknownGroup = RPCError(
        .unknownGroup, "There is no such group, or this user is not in it.")
}
