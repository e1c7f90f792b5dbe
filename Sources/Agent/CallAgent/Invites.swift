public import CallControl
public import JSON
internal import SignalingClient

/// An invite of somebody else's that is no call: to raise one's hand, to join a room, or whatever its data says.
public struct IncomingInvite: Sendable {
    /// What came, and from whom.
    public let received: ReceivedInvite
    /// Whether it asks this user; a member of a group hears of invites that ask others, too (contract GRP-2).
    public let asksUs: Bool
    let device: Device

    /// Its name.
    public var id: InviteID { received.id }

    /// Says yes; returns when the service has taken it.
    public func accept(data: JSONValue = [:]) async throws(SignalingError) {
        try await device.accept(id, data: data)
    }

    /// Says no.
    public func reject(_ reason: RejectReason = .declined) async throws(SignalingError) {
        try await device.reject(id, reason)
    }
}

/// An invite of ours that is no call.
///
/// The answers to it are among the device's events.
public struct OutgoingInvite: Sendable {
    /// Its name.
    public let id: InviteID
    /// Who is asked, by user id.
    public let invitees: [UserID]
    let device: Device

    /// Takes it back from all that have not answered.
    public func cancel(data: JSONValue = [:]) async throws(SignalingError) {
        try await device.cancel(id, data: data)
    }

    /// Changes what it says to those that have not answered.
    public func modify(data: JSONValue) async throws(SignalingError) {
        try await device.service.modify(id, data: data)
    }
}

/// What becomes of an invite that is no call.
public enum InviteNews: Sendable, Hashable {
    /// One of those asked says yes.
    case accepted(InviteAnswer)
    /// One of those asked says no.
    case rejected(InviteAnswer)
    /// These did not answer in time.
    case timedOut(InviteID, [UserID])
    /// The inviter changed what it says.
    case modified(InviteID, data: JSONValue)
    /// An invite of ours is over: everybody is done, or it was cancelled.
    case finished(InviteID, OutgoingInviteMachine.End)
    /// An invite to us is over without our yes.
    case withdrawn(InviteID, IncomingInviteMachine.End)
    /// What the inviter had to say to those who let it pass.
    case missed(InviteID, payload: JSONValue)
}
