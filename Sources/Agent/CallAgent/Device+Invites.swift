public import CallControl
public import JSON
internal import Realtime
internal import SignalingClient
internal import Core

// Invites that are no calls.
extension Device {
    // MARK: Ours

    /// Invites users to something that `data` describes; with a `group`, in that group.
    ///
    /// - Parameters:
    ///   - timeToLive: How long they have to answer; nil: no timeout. Default: the configured value.
    ///   - payload: For pushes to devices that are not connected.
    ///   - missedPayload: For invitees who do not answer.
    ///   - idempotencyKey: The same key means the same invite; generated unless given.
    public func invite(
        _ users: [UserID], in group: GroupID? = nil, data: JSONValue = [:], timeToLive: Duration?? = .none,
        payload: JSONValue? = nil, missedPayload: JSONValue? = nil, onlineOnly: Bool? = nil,
        idempotencyKey: IdempotencyKey? = nil
    ) async throws(SignalingError) -> OutgoingInvite {
        let defaults = configuration.invites
        let options = InviteOptions(
            to: users, in: group, data: data, timeToLive: timeToLive ?? defaults.timeToLive,
            payload: payload ?? defaults.payload, timeoutPayload: missedPayload ?? defaults.missedPayload,
            isOnlineOnly: onlineOnly ?? defaults.isOnlineOnly,
            idempotencyKey: idempotencyKey ?? IdempotencyKey(ours: newKey()))
        let sent = try await service.invite(options)
        let answers = invites.add(sent: sent, options, inviteTimings, at: MonotonicClock.now)
        arm(sent.id)
        // Answers may have come while this task was on its way back here.
        for answer in answers { handle(outgoing: answer, for: sent.id) }
        return OutgoingInvite(id: sent.id, invitees: sent.invitees, device: self)
    }

    /// Invites one user.
    public func invite(
        _ user: UserID, data: JSONValue = [:], timeToLive: Duration?? = .none
    ) async throws(SignalingError) -> OutgoingInvite {
        try await invite([user], data: data, timeToLive: timeToLive)
    }

    func cancel(_ id: InviteID, data: JSONValue) async throws(SignalingError) {
        // The machine knows before the service does: the event that the invite has ended may be here before the answer.
        try invites.cancel(id, .application(data), at: MonotonicClock.now)
        arm(id)
        do throws(SignalingError) {
            try await service.cancel(id, .application(data))
            handle(outgoing: .cancelConfirmed, for: id)
        } catch {
            handle(outgoing: .cancelFailed(error), for: id)
            throw error
        }
    }

    // MARK: Theirs

    /// An invite without an offer of media came.
    func takeInvite(_ received: ReceivedInvite) {
        let asksUs = asksUser(received)
        if asksUs {
            guard invites.add(received: received, inviteTimings, at: MonotonicClock.now) else {
                // Too many are open to ask the user: the inviter is notified at once (contract INV-9).
                Task { [service] in try? await service.reject(received.id, InviteRejection(.busy)) }
                return
            }
            arm(received.id)
        }
        publish(.invited(IncomingInvite(received: received, asksUs: asksUs, device: self)))
    }

    func accept(_ id: InviteID, data: JSONValue) async throws(SignalingError) {
        guard try begin(.accept(.application(data)), id) else {
            return try await service.accept(id, .application(data))
        }
        do throws(SignalingError) {
            try await service.accept(id, .application(data))
            handle(incoming: .answerConfirmed, for: id)
        } catch {
            handle(incoming: .answerFailed(error), for: id)
            throw error
        }
    }

    func reject(_ id: InviteID, _ reason: RejectReason) async throws(SignalingError) {
        let rejection = InviteRejection(reason)
        guard try begin(.reject(reason), id) else { return try await service.reject(id, rejection) }
        do throws(SignalingError) {
            try await service.reject(id, rejection)
            handle(incoming: .answerConfirmed, for: id)
        } catch {
            handle(incoming: .answerFailed(error), for: id)
            throw error
        }
    }

    /// Notes that an answer is on its way; false if this device does not follow the invite.
    private func begin(_ answer: IncomingInviteMachine.Input, _ id: InviteID) throws(SignalingError) -> Bool {
        guard try invites.begin(answer, to: id, at: MonotonicClock.now) else { return false }
        arm(id)
        return true
    }

    // MARK: Those who have said yes

    func signal(_ type: String, _ data: JSONValue, about id: InviteID, to peer: UserID?) async throws(SignalingError) {
        try await service.send(CallSignal(invite: id, type: type, data: data, peer: peer))
    }

    func leave(_ id: InviteID, _ peer: UserID?) async throws(SignalingError) {
        try await service.hangUp(CallHangUp(invite: id, reason: .completed, duration: .zero, peer: peer))
    }

    // MARK: Events and timers

    private func handle(incoming input: IncomingInviteMachine.Input, for id: InviteID) {
        carryOut(invites.handle(incoming: input, for: id, at: MonotonicClock.now), for: id)
    }

    private func handle(outgoing input: OutgoingInviteMachine.Input, for id: InviteID) {
        carryOut(invites.handle(outgoing: input, for: id, at: MonotonicClock.now), for: id)
    }

    /// Handles an event about an invite that no call is about.
    func handle(_ event: CallMachine.ServiceEvent, forInvite id: InviteID) {
        carryOut(invites.handle(event, for: id, at: MonotonicClock.now), for: id)
    }

    private func timerFired(for id: InviteID) {
        carryOut(invites.timerFired(for: id, at: MonotonicClock.now), for: id)
    }

    private func arm(_ id: InviteID) {
        invites.arm(id) { [weak self] in await self?.timerFired(for: id) }
    }

    private func carryOut(_ effects: [PlainInvites.Effect], for id: InviteID) {
        arm(id)
        for effect in effects {
            switch effect {
            case .publish(let news): publish(.invite(news))
            case .sendReject(let rejection): Task { await sendReject(of: id, rejection) }
            }
        }
    }

    private func sendReject(of id: InviteID, _ rejection: InviteRejection) async {
        do throws(SignalingError) {
            try await service.reject(id, rejection)
            handle(incoming: .answerConfirmed, for: id)
        } catch {
            handle(incoming: .answerFailed(error), for: id)
        }
    }
}
