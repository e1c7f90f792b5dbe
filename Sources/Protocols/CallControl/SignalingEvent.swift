public import JSON
public import Tracing

/// Events of a signaling service for the device, in order.
public enum SignalingEvent: Hashable, Sendable {
    // The connection (contract CONN-3); never two of a kind in a row.

    /// The first connection since `connect` is established.
    case connected
    /// The connection dropped, and the device reconnects.
    case reconnecting
    /// The dropped connection is established again.
    case reconnected
    /// The connection is down and nothing is being done about it.
    case disconnected
    /// Why the connection cannot continue; `disconnected` follows.
    case error(SignalingError)

    // Invites, on the invitee's side.

    /// An invite to this user.
    case inviteReceived(ReceivedInvite)
    /// Another device of this user answered.
    case inviteHandled(InviteHandling)
    /// The inviter changed what it says (INV-15).
    case inviteModified(InviteID, data: JSONValue)
    /// The inviter took it back.
    case inviteCancelled(InviteID, data: JSONValue = [:])
    /// The payload for those who let an invite pass.
    case inviteMissed(InviteID, payload: JSONValue)

    // Invites, on the inviter's side.

    /// The service accepted an outgoing invite; reported before everything else about it.
    case inviteSent(InviteID, idempotencyKey: IdempotencyKey)
    /// An invitee accepted.
    case inviteAccepted(InviteAnswer)
    /// An invitee rejected.
    case inviteRejected(InviteAnswer)
    /// Every invitee is done.
    case inviteEnded(InviteID)

    /// The invite timed out; both sides receive this.
    case inviteTimedOut(InviteID, invitees: [UserID])

    // Calls and rooms.

    /// A message from the peer of a call.
    case callSignal(CallSignal)
    /// The peer hung up.
    case callEnded(CallHangUp)
    /// A participant of a room that this device is in.
    case connectionCreated(room: RoomName, RoomParticipant)
    /// A participant left a room that this device is in; or this device itself, if the operator has taken it out.
    case connectionDestroyed(room: RoomName, connection: ConnectionName, reason: String)

    /// A signal of a participant of a room (SIG-1).
    case roomSignal(RoomSignal)
    /// The signaling connection of a peer dropped; its media may flow on (CONN-8).
    case streamDropped(StreamPeer)
    /// It is back.
    case streamResumed(StreamPeer)
    /// A group that this user is in changed (GRP-1).
    case groupChanged(GroupChange)
    /// A room that this device was in is lost to it: it could not be joined again after a fresh start.
    case roomLost(room: RoomName, SignalingError)
    /// The service asks for another connection within the given time (CONN-12); it is made without being asked.
    case moveRequested(within: Duration, webSocketURL: String?)
    /// The service names other servers that help media through firewalls, or other ways in there: calls that begin from
    /// now on use those.
    case iceServersChanged

    /// An application's own message, unchanged (CONN-11).
    case notification(JSONValue)
    /// Something a newer service says.
    case unknown(type: String, data: JSONValue)
}

/// An invite as it reaches an invitee (contract INV-2).
public struct ReceivedInvite: Hashable, Sendable {
    /// The invite.
    public var id: InviteID
    /// Who invites.
    public var inviter: UserID
    /// The group it was sent in, if any.
    public var group: GroupID?
    /// Everybody who is invited.
    public var invitees: [UserID]
    /// The caller's offer; nil if the invite is no call.
    public var offer: CallDescription?
    /// What is said of a call that crosses between an exchange and a telephone network.
    public var trunk: TrunkCall?
    /// The call that this one takes the place of, if it is a transfer.
    public var transfer: CallTransfer.Origin?
    /// The inviter's span, if it traces its calls; nothing vouches for it.
    public var trace: TraceContext?
    /// How many calls led to this one; nothing vouches for it.
    public var hops: CallHops
    /// All that the inviter sent, for applications.
    public var data: JSONValue
    /// The remaining ttl; `nil`: no timeout.
    public var remaining: Duration?
    /// The push payload.
    public var payload: JSONValue?

    /// Makes a received invite.
    public init(
        id: InviteID, inviter: UserID, group: GroupID? = nil, invitees: [UserID], offer: CallDescription? = nil,
        trunk: TrunkCall? = nil, transfer: CallTransfer.Origin? = nil, trace: TraceContext? = nil,
        hops: CallHops = CallHops(), data: JSONValue = [:], remaining: Duration?, payload: JSONValue? = nil
    ) {
        self.id = id
        self.inviter = inviter
        self.group = group
        self.invitees = invitees
        self.offer = offer
        self.trunk = trunk
        self.transfer = transfer
        self.trace = trace
        self.hops = hops
        self.data = data
        self.remaining = remaining
        self.payload = payload
    }
}

/// An invitee's answer as it reaches the inviter (contract INV-3).
public struct InviteAnswer: Hashable, Sendable {
    /// The invite.
    public var invite: InviteID
    /// Who answers.
    public var invitee: UserID
    /// The device that answers.
    public var device: DeviceID
    /// The answer to the call's offer; nil in a rejection, and if the accept has none.
    public var answer: CallDescription?
    /// What a rejection says; nil in an accept.
    public var rejection: InviteRejection?
    /// All that it sent, for applications.
    public var data: JSONValue

    /// Makes an answer.
    public init(
        invite: InviteID, invitee: UserID, device: DeviceID, answer: CallDescription? = nil,
        rejection: InviteRejection? = nil, data: JSONValue = [:]
    ) {
        self.invite = invite
        self.invitee = invitee
        self.device = device
        self.answer = answer
        self.rejection = rejection
        self.data = data
    }
}

/// Notifies an invitee's other devices that one of them answered (contract INV-4).
public struct InviteHandling: Hashable, Sendable {
    /// How it answered.
    public enum Action: String, CaseIterable, Hashable, Sendable {
        case accepted
        case rejected
    }

    /// The invite.
    public var invite: InviteID
    /// The device that answered.
    public var device: DeviceID
    /// How it answered.
    public var action: Action

    /// Makes the notice.
    public init(invite: InviteID, device: DeviceID, action: Action) {
        self.invite = invite
        self.device = device
        self.action = action
    }
}

/// The peer's hang-up (contract CALL-3).
public struct CallHangUp: Hashable, Sendable {
    /// The call's invite.
    public var invite: InviteID
    /// The reason given by the peer.
    public var reason: CallEndReason
    /// Why it failed, if it did.
    public var cause: CallFailureCause?
    /// How long the call had lasted, by the peer's clock.
    public var duration: Duration
    /// Who hung up; nil on the way out.
    public var from: UserID?
    /// The receiver, in outgoing hang-ups; needed once several have accepted the invite.
    public var peer: UserID?

    /// Creates the event.
    public init(
        invite: InviteID, reason: CallEndReason, cause: CallFailureCause? = nil, duration: Duration,
        from: UserID? = nil,
        peer: UserID? = nil
    ) {
        self.peer = peer
        self.cause = cause
        self.invite = invite
        self.reason = reason
        self.duration = duration
        self.from = from
    }
}
