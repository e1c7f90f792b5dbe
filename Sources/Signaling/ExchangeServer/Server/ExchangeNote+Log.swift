import ExchangeCore
import Logging
import SignalWire
import Core

/// The log levels of notes: calls and sessions at `info`, the rest at `debug`.
extension ExchangeNote {
    var level: Logger.Level {
        switch self {
        case .sessionStarted, .sessionEnded, .sessionLost, .callEnded, .tokenExpired: .info
        case .loginEnded(_, let cause): cause == .copied ? .warning : .info
        case .pushMade, .pushFailed: .debug
        case .pushDied: .warning
        case .inviteSent, .inviteAnswered, .inviteCancelled, .inviteTimedOut, .inviteGaveWay: .debug
        case .inviteEndedByOperator, .participantRemoved, .memberRemoved, .moveRequested: .notice
        case .connectionRefused: .notice
        }
    }

    var message: Logger.Message {
        switch self {
        case .sessionStarted: "Session started"
        case .sessionEnded: "Session ended"
        case .sessionLost: "Session lost its connection"
        case .inviteSent: "Invite sent"
        case .inviteAnswered: "Invite answered"
        case .inviteCancelled: "Invite cancelled"
        case .inviteTimedOut: "Invite timed out"
        case .inviteEndedByOperator: "The operator ends an invite"
        case .participantRemoved: "The operator takes a participant out of a room"
        case .memberRemoved: "The operator takes a member out of a group"
        case .moveRequested: "The operator asks a device to move"
        case .inviteGaveWay: "Invite timed out: its invitee had too many from strangers"
        case .callEnded: "Call ended"
        case .connectionRefused: "Connection refused"
        case .tokenExpired: "Session closed: its token is no longer valid"
        case .loginEnded(_, .loggedOut): "Login ended"
        case .loginEnded(_, .replaced): "Login ended: the user reached the limit, and this one was unused the longest"
        case .loginEnded(_, .copied): "Login ended: a replaced refresh token was used, so there is a copy of it"
        case .pushMade: "Push sent"
        case .pushFailed: "Push failed; it is retried"
        case .pushDied: "Push given up"
        }
    }

    var metadata: Logger.Metadata {
        switch self {
        case .sessionStarted(let endpoint, let connection, let resumed):
            Self.metadata(endpoint, connection).merging(["resumed": "\(resumed)"]) { first, _ in first }
        case .sessionEnded(let endpoint, let connection), .sessionLost(let endpoint, let connection),
            .tokenExpired(let endpoint, let connection), .moveRequested(let endpoint, let connection):
            Self.metadata(endpoint, connection)
        case .inviteSent(let invite, let inviter, let invitees):
            ["invite": "\(invite)", "inviter": "\(inviter.user)", "invitees": .array(invitees.map { "\($0)" })]
        case .inviteAnswered(let invite, let endpoint, let action):
            [
                "invite": "\(invite)", "user": "\(endpoint.user)", "device": "\(endpoint.device)",
                "action": "\(action.rawValue)",
            ]
        case .inviteCancelled(let invite), .inviteTimedOut(let invite), .inviteEndedByOperator(let invite):
            ["invite": "\(invite)"]
        case .participantRemoved(let room, let endpoint):
            ["room": "\(room)", "user": "\(endpoint.user)", "device": "\(endpoint.device)"]
        case .memberRemoved(let group, let user): ["group": "\(group)", "user": "\(user)"]
        case .inviteGaveWay(let invite, let user): ["invite": "\(invite)", "user": "\(user)"]
        case .callEnded(let invite, _, let reason, let duration):
            ["invite": "\(invite)", "reason": "\(reason)", "duration_ms": "\(duration)"]
        case .connectionRefused(let connection, let reason):
            ["connection": "\(connection.name)", "reason": "\(reason)"]
        case .loginEnded(let user, _): ["user": "\(user)"]
        case .pushMade(let push, let endpoint):
            ["push": "\(push)", "user": "\(endpoint.user)", "device": "\(endpoint.device)"]
        case .pushFailed(let push, let endpoint, let detail, let wait):
            [
                "push": "\(push)", "user": "\(endpoint.user)", "device": "\(endpoint.device)", "answer": "\(detail)",
                "wait": "\(wait.text)",
            ]
        case .pushDied(let dead):
            [
                "push": "\(dead.id)", "invite": "\(dead.invite)", "user": "\(dead.user)", "device": "\(dead.device)",
                "kind": "\(dead.kind)", "reason": "\(dead.reason.rawValue)", "answer": "\(dead.detail ?? "none")",
                "attempts": "\(dead.attempts)",
            ]
        }
    }

    private static func metadata(_ endpoint: Endpoint, _ connection: ConnectionID) -> Logger.Metadata {
        ["user": "\(endpoint.user)", "device": "\(endpoint.device)", "connection": "\(connection.name)"]
    }
}
