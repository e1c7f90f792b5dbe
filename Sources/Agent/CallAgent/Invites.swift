public import CallControl
public import JSON
internal import SignalingClient

/// An incoming invite that is no call: to raise one's hand, to join a room, or another purpose of its data.
public struct IncomingInvite: Sendable {
    /// The invite, with its sender.
    public let received: ReceivedInvite
    /// Whether it invites this user; a member of a group also receives invites for others (contract GRP-2).
    public let asksUs: Bool
    let device: Device

    /// Its name.
    public var id: InviteID { received.id }

    /// Says yes; returns when the service has taken it.
    public func accept(data: JSONValue = [:]) async throws(SignalingError) {
        try await answer(.accept(.application(data))) { () async throws(SignalingError) in
            try await device.service.accept(id, .application(data))
        }
    }

    /// Says no.
    public func reject(_ reason: RejectReason = .declined) async throws(SignalingError) {
        try await answer(.reject(reason)) { () async throws(SignalingError) in
            try await device.service.reject(id, InviteRejection(reason))
        }
    }

    /// Sends an answer, which the invite's machine knows of if the device follows the invite.
    private func answer(
        _ answer: IncomingInviteMachine.Input, _ send: () async throws(SignalingError) -> Void
    ) async throws(SignalingError) {
        let isFollowed = try await device.begin(answer, to: id)
        do throws(SignalingError) {
            try await send()
        } catch {
            if isFollowed { await device.handle(.incoming(.answerFailed(error)), for: id) }
            throw error
        }
        if isFollowed { await device.handle(.incoming(.answerConfirmed), for: id) }
    }

    /// Sends a signal to the inviter, up to 128 bytes of `type` and 8 KiB of `data`. Possible after accepting, until
    /// one of the two leaves.
    public func signal(_ type: String, data: JSONValue = .null) async throws(SignalingError) {
        try await device.service.send(CallSignal(invite: id, type: type, data: data))
    }

    /// Leaves an accepted invite; the inviter receives ``InviteEvent/left(_:by:)``.
    public func leave() async throws(SignalingError) {
        try await device.service.hangUp(CallHangUp(invite: id, reason: .completed, duration: .zero))
    }
}

/// An outgoing invite that is not a call.
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
        // The machine knows before the service does: the event that the invite has ended may be here before the answer.
        try await device.cancel(id, data: data)
        do throws(SignalingError) {
            try await device.service.cancel(id, .application(data))
        } catch {
            await device.handle(.outgoing(.cancelFailed(error)), for: id)
            throw error
        }
        await device.handle(.outgoing(.cancelConfirmed), for: id)
    }

    /// Changes what it says to those that have not answered.
    public func modify(data: JSONValue) async throws(SignalingError) {
        try await device.service.modify(id, data: data)
    }

    /// Sends a signal to one of the users who have accepted, up to 128 bytes of `type` and 8 KiB of `data`; without
    /// `user`, to the only one. Their signals arrive as ``DeviceEvent/signaling(_:)``, a `callSignal` with the sending
    /// user.
    public func signal(_ type: String, data: JSONValue = .null, to user: UserID? = nil) async throws(SignalingError) {
        try await device.service.send(CallSignal(invite: id, type: type, data: data, peer: user))
    }

    /// Ends what accepting began with one of those who have accepted; without `user` with the only one.
    public func leave(_ user: UserID? = nil) async throws(SignalingError) {
        try await device.service.hangUp(CallHangUp(invite: id, reason: .completed, duration: .zero, peer: user))
    }
}

/// Events of an invite that is not a call.
public enum InviteEvent: Sendable, Hashable {
    /// One of those asked says yes.
    case accepted(InviteAnswer)
    /// One of those asked says no.
    case rejected(InviteAnswer)
    /// These did not answer in time.
    case timedOut(InviteID, [UserID])
    /// The inviter changed what it says.
    case modified(InviteID, data: JSONValue)
    /// An outgoing invite has ended: all invitees are done, or it was cancelled.
    case finished(InviteID, OutgoingInviteMachine.End)
    /// An invite to us has ended without our acceptance.
    case withdrawn(InviteID, IncomingInviteMachine.End)
    /// A user who had accepted, or the inviter whose invite we had accepted, has left.
    case left(InviteID, by: UserID)
    /// The inviter's payload for invitees who did not answer.
    case missed(InviteID, payload: JSONValue)
}
