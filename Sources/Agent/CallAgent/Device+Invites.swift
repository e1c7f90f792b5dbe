internal import CallControl
internal import JSON
internal import Realtime
internal import SignalingClient
internal import Core

// Invites that are no calls.
extension Device {
    /// Sends an invite.
    func send(_ options: InviteOptions) async throws(SignalingError) -> OutgoingInvite {
        let sent = try await service.invite(options)
        let answers = plainInvites.add(sent: sent, options, configuration.inviteTimings, at: MonotonicClock.now)
        arm(sent.id)
        // Answers may have come while this task was on its way back here.
        for answer in answers { handle(.outgoing(answer), for: sent.id) }
        return OutgoingInvite(id: sent.id, invitees: sent.invitees, device: self)
    }

    /// Notes that the invite is being cancelled.
    func cancel(_ id: InviteID, data: JSONValue) throws(SignalingError) {
        try plainInvites.cancel(id, .application(data), at: MonotonicClock.now)
        arm(id)
    }

    /// An invite without an offer of media came.
    func takeInvite(_ received: ReceivedInvite) {
        let asksUs = signaling.asksUser(received)
        if asksUs {
            guard plainInvites.add(received: received, configuration.inviteTimings, at: MonotonicClock.now) else {
                // Too many are open to ask the user: the inviter is notified at once (contract INV-9).
                Task { [service] in try? await service.reject(received.id, InviteRejection(.busy)) }
                return
            }
            arm(received.id)
        }
        publish(.invited(IncomingInvite(received: received, asksUs: asksUs, device: self)))
    }

    /// Notes that an answer is on its way; false if this device does not follow the invite.
    func begin(_ answer: IncomingInviteMachine.Input, to id: InviteID) throws(SignalingError) -> Bool {
        guard try plainInvites.begin(answer, to: id, at: MonotonicClock.now) else { return false }
        arm(id)
        return true
    }

    /// Handles what has happened to an invite that no call is about.
    func handle(_ input: PlainInvites.Input, for id: InviteID) {
        let effects = plainInvites.handle(input, for: id, at: MonotonicClock.now)
        arm(id)
        for effect in effects {
            switch effect {
            case .publish(let news): publish(.invite(news))
            case .sendReject(let rejection): requests.reject(id, rejection, for: self)
            }
        }
    }

    private func arm(_ id: InviteID) {
        plainInvites.arm(id) { [weak self] in await self?.handle(.timerFired, for: id) }
    }
}
