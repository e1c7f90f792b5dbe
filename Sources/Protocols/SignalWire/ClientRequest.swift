/// Everything that a client can ask of the exchange.
public enum ClientRequest: Hashable, Sendable {
    case sessionStart(SessionStart)
    case sessionRenew(SessionRenew)
    case sessionEnd(SessionEnd)
    case deviceRegister(DeviceRegister)
    case deviceUnregister(DeviceUnregister)
    case inviteSend(InviteSend)
    case inviteAccept(InviteAccept)
    case inviteReject(InviteReject)
    case inviteCancel(InviteCancel)
    case inviteModify(InviteModify)
    case inviteList(InviteList)
    case callSignal(CallSignal)
    case callProbe(CallProbe)
    case callEnd(CallEnd)
    case roomJoin(RoomJoin)
    case roomLeave(RoomLeave)
    case roomSignal(RoomSignal)
    case groupCreate(GroupCreate)
    case groupJoin(GroupJoin)
    case groupLeave(GroupLeave)
    case groupDismiss(GroupDismiss)
    case groupMembers(GroupMembers)
    case groupList(GroupList)
    case presenceSubscribe(PresenceSubscribe)
    case presenceUnsubscribe(PresenceUnsubscribe)
    case ping(Ping)

    /// Every method of the wire.
    public static let methods: [String] = [
        SessionStart.method, SessionRenew.method, SessionEnd.method, DeviceRegister.method, DeviceUnregister.method,
        InviteSend.method, InviteAccept.method, InviteReject.method, InviteCancel.method, InviteModify.method,
        InviteList.method,
        CallSignal.method, CallProbe.method, CallEnd.method, RoomJoin.method, RoomLeave.method, RoomSignal.method,
        GroupCreate.method, GroupJoin.method, GroupLeave.method, GroupDismiss.method, GroupMembers.method,
        GroupList.method,
        PresenceSubscribe.method, PresenceUnsubscribe.method, Ping.method,
    ]

    /// Reads the parameters of a request whose envelope names `method`.
    ///
    /// - Throws: ``RPCErrorCode/unknownMethod`` or ``RPCErrorCode/invalidParams``.
    public init(method: String, in message: RPCMessage) throws(RPCError) {
        switch method {
        case SessionStart.method: self = .sessionStart(try message.params(SessionStart.self))
        case SessionRenew.method: self = .sessionRenew(try message.params(SessionRenew.self))
        case SessionEnd.method: self = .sessionEnd(try message.params(SessionEnd.self))
        case DeviceRegister.method: self = .deviceRegister(try message.params(DeviceRegister.self))
        case DeviceUnregister.method: self = .deviceUnregister(try message.params(DeviceUnregister.self))
        case InviteSend.method: self = .inviteSend(try message.params(InviteSend.self))
        case InviteAccept.method: self = .inviteAccept(try message.params(InviteAccept.self))
        case InviteReject.method: self = .inviteReject(try message.params(InviteReject.self))
        case InviteCancel.method: self = .inviteCancel(try message.params(InviteCancel.self))
        case InviteModify.method: self = .inviteModify(try message.params(InviteModify.self))
        case InviteList.method: self = .inviteList(try message.params(InviteList.self))
        case CallSignal.method: self = .callSignal(try message.params(CallSignal.self))
        case CallProbe.method: self = .callProbe(try message.params(CallProbe.self))
        case CallEnd.method: self = .callEnd(try message.params(CallEnd.self))
        case RoomJoin.method: self = .roomJoin(try message.params(RoomJoin.self))
        case RoomLeave.method: self = .roomLeave(try message.params(RoomLeave.self))
        case RoomSignal.method: self = .roomSignal(try message.params(RoomSignal.self))
        case GroupCreate.method: self = .groupCreate(try message.params(GroupCreate.self))
        case GroupJoin.method: self = .groupJoin(try message.params(GroupJoin.self))
        case GroupLeave.method: self = .groupLeave(try message.params(GroupLeave.self))
        case GroupDismiss.method: self = .groupDismiss(try message.params(GroupDismiss.self))
        case GroupMembers.method: self = .groupMembers(try message.params(GroupMembers.self))
        case GroupList.method: self = .groupList(try message.params(GroupList.self))
        case PresenceSubscribe.method: self = .presenceSubscribe(try message.params(PresenceSubscribe.self))
        case PresenceUnsubscribe.method: self = .presenceUnsubscribe(try message.params(PresenceUnsubscribe.self))
        case Ping.method: self = .ping(try message.params(Ping.self))
        default: throw RPCError(.unknownMethod, "There is no such method; see docs/protocol.md for those there are.")
        }
    }
}
