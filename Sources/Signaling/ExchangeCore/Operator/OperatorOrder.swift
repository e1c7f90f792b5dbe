package import SignalWire

/// Names one order of the operator, in this process.
package struct OrderNumber: Hashable, Sendable {
    package let value: UInt64

    /// Names an order by a number that no other has.
    package init(_ value: UInt64) { self.value = value }
}

/// What an operator may have the exchange do (docs/exchange-control.md).
package enum OperatorOrder: Hashable, Sendable {
    /// End all logins of a user, with their sessions and the calls of their devices.
    case logOut(UserID)
    /// End the session of one device, with its calls. Its login remains.
    case endSession(UserID, DeviceID)
    /// End an invite for all who have not answered, as if its time to live had ended.
    case endInvite(InviteID)
    /// End a call. `with` names the invitee if the invite has become several calls.
    case endCall(InviteID, with: UserID?)
    /// Take the sessions of a user out of a room, or one of them by the name of its connection. They stay connected, and may join again.
    case removeFromRoom(RoomName, UserID, ConnectionName?)
    /// Take a member out of a group. The owner stays.
    case removeFromGroup(GroupID, UserID)
    /// Ask the devices of a user, or one of them, to connect again within a time, at an address if one is given (CONN-12).
    case move(UserID, DeviceID?, within: Duration, to: String?)
}

/// What became of an order.
package enum OperatorResult: Hashable, Sendable {
    /// It was carried out: how many sessions, invitees, calls, or places in rooms and groups it ended, or how many devices were asked to
    /// move. A user without a session may have had logins.
    case done(ended: Int)
    /// Nothing was changed.
    case refused(OperatorRefusal)
}

/// Why an order was not carried out.
package enum OperatorRefusal: Hashable, Sendable {
    /// There is no user of that name, and none has a session.
    case unknownUser
    /// The device has no session.
    case noSession
    /// There is no such invite, or it ended a long time ago.
    case unknownInvite
    /// The invite has ended.
    case inviteEnded
    /// The invite is no call, or the call has ended.
    case unknownCall
    /// The invite has become several calls, of which one must be named.
    case severalCalls
    /// The room has no one in it.
    case unknownRoom
    /// There is no such group.
    case unknownGroup
    /// The user is not in the room or group, or not on that connection.
    case noMember
    /// The owner of a group stays until the group is dismissed.
    case isOwner
}
