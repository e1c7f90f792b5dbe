public import CallControl
internal import NIOCore
internal import SignalWire

// Rooms and groups.
extension HandsetService {
    /// Joins a room.
    public func join(room: String, data: String?) async throws(SignalingError) -> [RoomParticipant] {
        let name = try RoomName(room, of: "the room's name", doing: "join a room")
        var participants: [RoomJoin.Participant] = []
        var after: UInt64?
        repeat {
            let page = try await ask { [after] (driver, promise: EventLoopPromise<RoomJoin.Result>) in
                driver.join(RoomJoin(room: name, data: data, after: after), promise)
            }
            participants += page.participants
            after = page.next
        } while after != nil
        return participants.map(CallControl.RoomParticipant.init)
    }

    /// Leaves a room.
    public func leave(room: String) async throws(SignalingError) {
        let leave = RoomLeave(room: try RoomName(room, of: "the room's name", doing: "leave a room"))
        _ = try await ask { (driver, promise: EventLoopPromise<Empty>) in
            driver.leave(leave, promise)
        }
    }

    /// Says something in a room.
    public func send(_ signal: CallControl.RoomSignal, retryAfterReconnect: Bool) async throws(SignalingError) {
        let activity = "send a signal in the room \(signal.room)"
        let message = SignalWire.RoomSignal(
            room: try RoomName(signal.room, of: "the room's name", doing: activity),
            to: try .of(signal.to, "the connection", doing: activity), type: signal.type, data: signal.data)
        try await tell(message, retryAfterReconnect ? .queued : .atOnce, doing: activity)
    }

    /// Makes a group.
    public func createGroup(
        _ id: GroupID?, name: String?, members: [UserID]
    ) async throws(SignalingError) -> GroupID {
        let activity = "make a group"
        var users: [SignalWire.UserID] = []
        for member in members {
            users.append(try SignalWire.UserID(member.rawValue, of: "a member's id", doing: activity))
        }
        let create = GroupCreate(
            group: try .of(id?.rawValue, "the group's id", doing: activity), name: name, members: users)
        let created = try await ask { (driver, promise: EventLoopPromise<GroupCreate.Result>) in
            driver.request(create, doing: activity, promise)
        }
        return GroupID(created.group)
    }

    /// Joins a group.
    public func join(group: GroupID) async throws(SignalingError) {
        try await tell(GroupJoin(group: .init(group)), doing: "join the group \(group)")
    }

    /// Leaves a group.
    public func leave(group: GroupID) async throws(SignalingError) {
        try await tell(GroupLeave(group: .init(group)), doing: "leave the group \(group)")
    }

    /// Ends a group.
    public func dismiss(group: GroupID) async throws(SignalingError) {
        try await tell(GroupDismiss(group: .init(group)), doing: "dismiss the group \(group)")
    }

    /// A group with its members.
    public func group(_ id: GroupID) async throws(SignalingError) -> Group {
        let question = try GroupMembers(group: .init(id))
        let found = try await ask { (driver, promise: EventLoopPromise<GroupMembers.Result>) in
            driver.request(question, doing: "ask who is in the group \(id)", promise)
        }
        return Group(
            id: GroupID(found.group), name: found.name, owner: UserID(found.owner),
            members: found.members.map { UserID($0) })
    }

    /// The groups that this user is in.
    public func groups() async throws(SignalingError) -> [Group] {
        var groups: [GroupList.Entry] = []
        var after: SignalWire.GroupID?
        repeat {
            let page = try await ask { [after] (driver, promise: EventLoopPromise<GroupList.Result>) in
                driver.request(GroupList(after: after), doing: "list the groups", promise)
            }
            groups += page.groups
            after = page.next
        } while after != nil
        return groups.map { Group(id: GroupID($0.group), name: $0.name, owner: UserID($0.owner)) }
    }
}

extension CallControl.RoomParticipant {
    /// Somebody in a room, from the wire.
    init(_ participant: RoomJoin.Participant) {
        self.init(connection: participant.connection.text, user: UserID(participant.user), data: participant.data)
    }
}
