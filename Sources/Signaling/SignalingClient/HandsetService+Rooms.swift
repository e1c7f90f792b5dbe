public import CallControl
internal import NIOCore
internal import SignalWire

extension HandsetService: RoomSignaling, GroupSignaling {
    /// The exchange's rooms.
    public var roomSignaling: (any RoomSignaling)? { self }

    /// The exchange's groups.
    public var groupSignaling: (any GroupSignaling)? { self }

    /// Joins a room.
    public func join(room: RoomName, data: String?) async throws(SignalingError) -> [RoomParticipant] {
        var participants: [RoomJoin.Participant] = []
        var after: UInt64?
        repeat {
            let page = try await ask { [after] (driver, promise: EventLoopPromise<RoomJoin.Result>) in
                driver.join(RoomJoin(room: room, data: data, after: after), promise)
            }
            participants += page.participants
            after = page.next
        } while after != nil
        return participants.map(CallControl.RoomParticipant.init)
    }

    /// Leaves a room.
    public func leave(room: RoomName) async throws(SignalingError) {
        let leave = RoomLeave(room: room)
        _ = try await ask { (driver, promise: EventLoopPromise<Empty>) in
            driver.leave(leave, promise)
        }
    }

    /// Sends a signal in a room.
    public func send(_ signal: CallControl.RoomSignal, retryAfterReconnect: Bool) async throws(SignalingError) {
        let message = SignalWire.RoomSignal(room: signal.room, to: signal.to, type: signal.type, data: signal.data)
        try await tell(
            message, retryAfterReconnect ? .queued : .atOnce, doing: "send a signal in the room \(signal.room)")
    }

    /// Makes a group.
    public func createGroup(
        _ id: GroupID?, name: String?, members: [UserID]
    ) async throws(SignalingError) -> GroupID {
        let create = GroupCreate(group: id, name: name, members: members)
        let created = try await ask { (driver, promise: EventLoopPromise<GroupCreate.Result>) in
            driver.request(create, doing: "make a group", promise)
        }
        return created.group
    }

    /// Joins a group.
    public func join(group: GroupID) async throws(SignalingError) {
        try await tell(GroupJoin(group: group), doing: "join the group \(group)")
    }

    /// Leaves a group.
    public func leave(group: GroupID) async throws(SignalingError) {
        try await tell(GroupLeave(group: group), doing: "leave the group \(group)")
    }

    /// Ends a group.
    public func dismiss(group: GroupID) async throws(SignalingError) {
        try await tell(GroupDismiss(group: group), doing: "dismiss the group \(group)")
    }

    /// A group with its members.
    public func group(_ id: GroupID) async throws(SignalingError) -> Group {
        let question = GroupMembers(group: id)
        let found = try await ask { (driver, promise: EventLoopPromise<GroupMembers.Result>) in
            driver.request(question, doing: "ask who is in the group \(id)", promise)
        }
        return Group(
            id: found.group, name: found.name, owner: found.owner, members: found.members)
    }

    /// The groups that this user is in.
    public func groups() async throws(SignalingError) -> [Group] {
        var groups: [GroupList.Entry] = []
        var after: GroupID?
        repeat {
            let page = try await ask { [after] (driver, promise: EventLoopPromise<GroupList.Result>) in
                driver.request(GroupList(after: after), doing: "list the groups", promise)
            }
            groups += page.groups
            after = page.next
        } while after != nil
        return groups.map { Group(id: $0.group, name: $0.name, owner: $0.owner) }
    }
}

extension CallControl.RoomParticipant {
    /// A room's participant, from the wire.
    init(_ participant: RoomJoin.Participant) {
        self.init(connection: participant.connection, user: participant.user, data: participant.data)
    }
}
