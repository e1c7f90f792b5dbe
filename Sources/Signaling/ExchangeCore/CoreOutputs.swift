package import SignalWire

/// The result of a request.
package enum ClientResponse: Hashable, Sendable {
    case session(SessionStart.Result)
    case renewal(SessionRenew.Result)
    case invite(InviteSend.Result)
    case invites(InviteListText)
    case room(RoomJoin.Result)
    case group(GroupCreate.Result)
    case members(GroupMembers.Result)
    case groups(GroupList.Result)
    case presence(PresenceSubscribe.Result)
    case probe(CallProbe.Result)
    case empty

    /// The response to the request `id`, ready to send.
    package func message(id: RPCID) throws(SignalCodingError) -> [UInt8] {
        switch self {
        case .session(let result): try SignalCoding.response(id: id, result)
        case .renewal(let result): try SignalCoding.response(id: id, result)
        case .invite(let result): try SignalCoding.response(id: id, result)
        case .invites(let result): try result.response(id: id)
        case .group(let result): try SignalCoding.response(id: id, result)
        case .members(let result): try SignalCoding.response(id: id, result)
        case .groups(let result): try SignalCoding.response(id: id, result)
        case .presence(let result): try SignalCoding.response(id: id, result)
        case .room(let result): try SignalCoding.response(id: id, result)
        case .probe(let result): try SignalCoding.response(id: id, result)
        case .empty: try SignalCoding.response(id: id, Empty())
        }
    }

    /// About how long the response is; exact to a few hundred bytes for the long ones.
    var bytes: Int {
        switch self {
        case .invites(let result): result.text.utf8.count
        case .session(let result): result.publicIDs.reduce(256) { $0 + $1.text.utf8.count + 3 }
        case .members(let result): result.members.reduce(256) { $0 + $1.text.utf8.count + 3 }
        case .groups(let result):
            result.groups.reduce(0) {
                $0 + $1.group.text.utf8.count + $1.owner.text.utf8.count + ($1.name?.utf8.count ?? 0) + 32
            }
        case .presence(let result):
            result.users.reduce(0) { sum, user in
                user.publicIDs.reduce(sum + user.user.text.utf8.count + 48) { $0 + $1.text.utf8.count + 3 }
            }
        case .room(let result):
            result.participants.reduce(0) {
                $0 + $1.connection.text.utf8.count + $1.user.text.utf8.count + ($1.data?.utf8.count ?? 0) + 64
            }
        case .renewal, .invite, .group, .probe, .empty: 0
        }
    }
}

/// Why the exchange closes a socket (RFC 6455 §7.4).
package enum CloseReason: Hashable, Sendable {
    /// The exchange is going down; connect again a little later.
    case goingDown
    /// The client breaks a rule that `text` names.
    case policy(String)
    /// The client's frames are no WebSocket frames.
    case protocolError
    /// A message is longer than ``SignalLimits/messageBytes``.
    case tooBig
    /// The access token is not good.
    case tokenRejected
    /// The access token expired, and the client presented no other.
    case tokenExpired
    /// The login ended.
    case loggedOut
    /// The operator ended the session, and not the login.
    case sessionEnded
    /// The last events may not have been stored; the client must connect again.
    case notKept

    /// The close code on the wire.
    package var code: UInt16 {
        switch self {
        case .goingDown, .sessionEnded: 1001
        case .protocolError: 1002
        case .policy: 1008
        case .tooBig: 1009
        case .tokenRejected, .tokenExpired, .loggedOut: 4001
        case .notKept: 1013
        }
    }

    /// The close reason on the wire; at most 123 bytes.
    package var text: String {
        switch self {
        case .goingDown: "the exchange is shutting down"
        case .policy(let text): text
        case .protocolError: "not a WebSocket frame"
        case .tooBig: "messages have at most \(SignalLimits.messageBytes) bytes"
        case .tokenRejected: "the access token is invalid"
        case .notKept: "the exchange cannot write its database; connect again"
        case .tokenExpired: "the access token has expired"
        case .loggedOut: "logged out"
        case .sessionEnded: "the operator has ended this session"
        }
    }
}

/// Something worth a line in the log.
package enum ExchangeNote: Hashable, Sendable {
    case sessionStarted(Endpoint, ConnectionID, resumed: Bool)
    case sessionEnded(Endpoint, ConnectionID)
    case sessionLost(Endpoint, ConnectionID)
    case inviteSent(InviteID, from: Endpoint, to: [UserID])
    case inviteAnswered(InviteID, by: Endpoint, InviteHandled.Action)
    case inviteCancelled(InviteID)
    case inviteTimedOut(InviteID)
    /// The operator has ended it, which is a timeout to everyone else.
    case inviteEndedByOperator(InviteID)
    /// It has timed out for one invitee before its time, because another stranger needed the place.
    case inviteGaveWay(InviteID, with: UserID)
    case callEnded(InviteID, between: [UserID], reason: String, durationMilliseconds: Int64)
    /// The operator has taken a participant out of a room.
    case participantRemoved(RoomName, Endpoint)
    /// The operator has taken a member out of a group.
    case memberRemoved(GroupID, UserID)
    /// The operator has a device asked to connect again.
    case moveRequested(Endpoint, ConnectionID)
    case connectionRefused(ConnectionID, reason: String)
    case tokenExpired(Endpoint, ConnectionID)
    case loginEnded(UserID, LoginEnd)
    case pushMade(PushID, Endpoint)
    case pushFailed(PushID, Endpoint, detail: String, wait: Duration)
    case pushDied(DeadPush)
}

/// Why a login ended.
package enum LoginEnd: String, Hashable, Sendable {
    /// The user logged out, or an authorised user ended the login.
    case loggedOut
    /// It was used longest ago of as many as its user may have, and had to make room for another.
    case replaced
    /// A superseded refresh token was presented again, so a copy of it exists.
    case copied
}

/// What the core has counted since it began.
package struct CoreCounters: Hashable, Sendable {
    package var requests = 0
    package var refusals = 0
    package var malformed = 0
    package var events = 0
    package var sessions = 0
    package var invites = 0
    package var calls = 0
    package var pushes = 0
    package var deadPushes = 0
    /// Requests refused since one user would have had too much kept.
    package var overBudget = 0
    /// Requests refused since too much was kept for all.
    package var overload = 0
    /// Events that were sent and not stored, because there was no room.
    package var unkeptEvents = 0
}
