public import CallControl
public import JSON
internal import Realtime
internal import SignalingClient
internal import Timekeeping

// Invites that are no calls. Their machines are those that calls have inside.
extension Device {
    /// What a device keeps of an invite that is no call.
    struct PendingInvite {
        enum Machine {
            case incoming(IncomingInviteMachine)
            case outgoing(OutgoingInviteMachine)

            var nextDeadline: Instant? {
                switch self {
                case .incoming(let machine): machine.nextDeadline
                case .outgoing(let machine): machine.nextDeadline
                }
            }
        }

        var machine: Machine
        var timer: Task<Void, Never>?
    }

    /// Invites that a device takes part in at once: one more is rejected as busy. Of what this device itself sends beyond it
    /// the end is left to the service.
    static let pendingInvites = 4_096

    // MARK: Ours

    /// Invites users to something that `data` describes; with a `group`, in that group.
    ///
    /// - Parameters:
    ///   - timeToLive: How long they have to answer; nil for ever. Without it, what the configuration says.
    ///   - payload: For the push to those whose devices are not connected.
    ///   - missedPayload: What those get who let it pass.
    ///   - idempotencyKey: The same key names the same invite; made up unless given.
    public func invite(
        _ users: [UserID], in group: GroupID? = nil, data: JSONValue = [:], timeToLive: Duration?? = .none,
        payload: JSONValue? = nil, missedPayload: JSONValue? = nil, onlineOnly: Bool? = nil,
        idempotencyKey: String? = nil
    ) async throws(SignalingError) -> OutgoingInvite {
        let defaults = configuration.invites
        let options = InviteOptions(
            to: users, in: group, data: data, timeToLive: timeToLive ?? defaults.timeToLive,
            payload: payload ?? defaults.payload, timeoutPayload: missedPayload ?? defaults.missedPayload,
            isOnlineOnly: onlineOnly ?? defaults.isOnlineOnly, idempotencyKey: idempotencyKey ?? newKey())
        let sent = try await service.invite(options)
        var machine = OutgoingInviteMachine(options, timings: inviteTimings)
        var ignored: [OutgoingInviteMachine.Output] = []
        machine.handle(.send, at: MonotonicClock.now, into: &ignored)
        machine.handle(.sent(sent.id, invitees: sent.invitees), at: MonotonicClock.now, into: &ignored)
        plainInvites.note(sent.id)
        if invites.count < Self.pendingInvites {
            invites[sent.id] = PendingInvite(machine: .outgoing(machine))
            armInvite(sent.id)
            // Answers may have come while this task was on its way back here.
            for word in earlyWords[sent.id] ?? [] { feed(outgoing: word, to: sent.id) }
        }
        earlyWords[sent.id] = nil
        return OutgoingInvite(id: sent.id, invitees: sent.invitees, device: self)
    }

    /// Invites one user.
    public func invite(
        _ user: UserID, data: JSONValue = [:], timeToLive: Duration?? = .none
    ) async throws(SignalingError) -> OutgoingInvite {
        try await invite([user], data: data, timeToLive: timeToLive)
    }

    func cancel(_ id: InviteID, data: JSONValue) async throws(SignalingError) {
        guard case .outgoing(var machine)? = invites[id]?.machine else {
            throw SignalingError(.inviteEnded, activity: "cancel the invite", cause: "it has ended")
        }
        // The machine knows before the service does: the event that the invite has ended may be here before the answer.
        var outbox: [OutgoingInviteMachine.Output] = []
        machine.handle(.cancel(data: data), at: MonotonicClock.now, into: &outbox)
        for case .refused(let error) in outbox { throw error }
        invites[id]?.machine = .outgoing(machine)
        armInvite(id)
        do throws(SignalingError) {
            try await service.cancel(id, data: data)
            feed(outgoing: .cancelConfirmed, to: id)
        } catch {
            feed(outgoing: .cancelFailed(error), to: id)
            throw error
        }
    }

    // MARK: Theirs

    /// An invite without an offer of media came.
    func takeInvite(_ received: ReceivedInvite) {
        let asksUs = asksUser(received)
        if asksUs { plainInvites.note(received.id) }
        if asksUs, invites.count >= Self.pendingInvites {
            // Nobody can be asked about so many: the inviter is told at once (contract INV-9).
            Task { [service] in try? await service.reject(received.id, data: RejectReason.busy.data) }
            return
        }
        if asksUs {
            let machine = IncomingInviteMachine(
                received.id, remaining: received.remaining, timings: inviteTimings, at: MonotonicClock.now)
            invites[received.id] = PendingInvite(machine: .incoming(machine))
            armInvite(received.id)
        }
        tell(.invited(IncomingInvite(received: received, asksUs: asksUs, device: self)))
    }

    func accept(_ id: InviteID, data: JSONValue) async throws(SignalingError) {
        guard try begin(.accept(data: data), id) else { return try await service.accept(id, data: data) }
        do throws(SignalingError) {
            try await service.accept(id, data: data)
            feed(incoming: .answerConfirmed, to: id)
        } catch {
            feed(incoming: .answerFailed(error), to: id)
            throw error
        }
    }

    func reject(_ id: InviteID, _ reason: RejectReason) async throws(SignalingError) {
        guard try begin(.reject(reason), id) else { return try await service.reject(id, data: reason.data) }
        do throws(SignalingError) {
            try await service.reject(id, data: reason.data)
            feed(incoming: .answerConfirmed, to: id)
        } catch {
            feed(incoming: .answerFailed(error), to: id)
            throw error
        }
    }

    /// Notes that an answer is on its way; false if the invite is not ours to keep watch over.
    private func begin(_ answer: IncomingInviteMachine.Input, _ id: InviteID) throws(SignalingError) -> Bool {
        guard case .incoming(var machine)? = invites[id]?.machine else { return false }
        var outbox: [IncomingInviteMachine.Output] = []
        machine.handle(answer, at: MonotonicClock.now, into: &outbox)
        for case .refused(let error) in outbox { throw error }
        invites[id]?.machine = .incoming(machine)
        armInvite(id)
        return true
    }

    // MARK: Those who have said yes

    func signal(_ type: String, _ data: JSONValue, about id: InviteID, to peer: UserID?) async throws(SignalingError) {
        try await service.send(CallSignal(invite: id, type: type, data: data, peer: peer))
    }

    func leave(_ id: InviteID, _ peer: UserID?) async throws(SignalingError) {
        try await service.hangUp(
            CallHangUp(invite: id, reason: CallEndReason.completed.rawValue, duration: .zero, peer: peer))
    }

    // MARK: Words and timers

    func feed(incoming input: IncomingInviteMachine.Input, to id: InviteID) {
        guard case .incoming(var machine)? = invites[id]?.machine else { return }
        var outbox: [IncomingInviteMachine.Output] = []
        machine.handle(input, at: MonotonicClock.now, into: &outbox)
        invites[id]?.machine = .incoming(machine)
        armInvite(id)
        for output in outbox {
            switch output {
            case .accepted: forgetInvite(id)
            case .ended(let end):
                forgetInvite(id)
                tell(.invite(.withdrawn(id, end)))
            case .sendReject(_, let data): Task { await sendReject(of: id, data) }  // Nobody has decided in time.
            case .sendAccept, .refused: break  // Done by those who asked for it.
            }
        }
    }

    private func sendReject(of id: InviteID, _ data: JSONValue) async {
        do throws(SignalingError) {
            try await service.reject(id, data: data)
            feed(incoming: .answerConfirmed, to: id)
        } catch {
            feed(incoming: .answerFailed(error), to: id)
        }
    }

    func feed(outgoing input: OutgoingInviteMachine.Input, to id: InviteID) {
        guard case .outgoing(var machine)? = invites[id]?.machine else { return }
        var outbox: [OutgoingInviteMachine.Output] = []
        machine.handle(input, at: MonotonicClock.now, into: &outbox)
        invites[id]?.machine = .outgoing(machine)
        armInvite(id)
        for output in outbox {
            switch output {
            case .accepted(let answer): tell(.invite(.accepted(answer)))
            case .rejected(let answer): tell(.invite(.rejected(answer)))
            case .timedOut(let users): tell(.invite(.timedOut(id, users)))
            case .ended(let end):
                forgetInvite(id)
                tell(.invite(.finished(id, end)))
            case .sendInvite, .sendCancel, .refused: break  // Done by those who asked for it.
            }
        }
    }

    /// A word about an invite that no call is about.
    func hear(_ word: CallMachine.ServiceEvent, aboutInvite id: InviteID) {
        if let input = OutgoingInviteMachine.Input(word), case .outgoing? = invites[id]?.machine {
            return feed(outgoing: input, to: id)
        }
        if let input = IncomingInviteMachine.Input(heard: word), case .incoming? = invites[id]?.machine {
            return feed(incoming: input, to: id)
        }
        switch word {
        // A member of a group hears each answer, whoever invited (GRP-2).
        case .accepted(let answer):
            noteEarly(.accepted(answer), id)
            if isOverheard(id) { tell(.invite(.accepted(answer))) }
        case .rejected(let answer):
            noteEarly(.rejected(answer), id)
            if isOverheard(id) { tell(.invite(.rejected(answer))) }
        case .timedOut(let users): noteEarly(.timedOut(users), id)
        case .inviteEnded: noteEarly(.endedByService, id)
        case .inviteSent:
            if invites[id] == nil { earlyWords[id] = [] }
        case .hungUp(let news):
            if plainInvites.contains(id) { tell(.invite(.left(id, by: news.from))) }
        case .inviteFailed, .answerConfirmed, .answerFailed, .cancelConfirmed, .cancelFailed, .handledElsewhere,
            .cancelled, .disconnected:
            break  // Over already, or not about an invite.
        }
    }

    /// An invite of ours is answered before ``invite(_:in:data:timeToLive:payload:missedPayload:onlineOnly:idempotencyKey:)``
    /// has come back with its name: the answer waits. At most one batch for each invite under way.
    private func noteEarly(_ word: OutgoingInviteMachine.Input, _ id: InviteID) {
        if let words = earlyWords[id], words.count < 128 { earlyWords[id] = words + [word] }
    }

    private func isOverheard(_ id: InviteID) -> Bool { earlyWords[id] == nil }

    private func armInvite(_ id: InviteID) {
        invites[id]?.timer?.cancel()
        guard let deadline = invites[id]?.machine.nextDeadline else { return }
        let delay = max(.zero, MonotonicClock.now.duration(to: deadline))
        invites[id]?.timer = Task { [weak self] in
            try? await Task.sleep(for: delay)
            if !Task.isCancelled { await self?.wakeInvite(id) }
        }
    }

    private func wakeInvite(_ id: InviteID) {
        switch invites[id]?.machine {
        case .incoming?: feed(incoming: .timerFired, to: id)
        case .outgoing?: feed(outgoing: .timerFired, to: id)
        case nil: break
        }
    }

    private func forgetInvite(_ id: InviteID) { invites.removeValue(forKey: id)?.timer?.cancel() }
}

extension OutgoingInviteMachine.Input {
    /// The part of the service's words that concerns an invite we sent.
    fileprivate init?(_ word: CallMachine.ServiceEvent) {
        switch word {
        case .accepted(let answer): self = .accepted(answer)
        case .rejected(let answer): self = .rejected(answer)
        case .timedOut(let users): self = .timedOut(users)
        case .inviteEnded: self = .endedByService
        case .inviteSent, .inviteFailed, .answerConfirmed, .answerFailed, .cancelConfirmed, .cancelFailed,
            .handledElsewhere, .cancelled, .hungUp, .disconnected:
            return nil
        }
    }
}

extension IncomingInviteMachine.Input {
    /// The part of the service's words that concerns an invite we received.
    fileprivate init?(heard word: CallMachine.ServiceEvent) {
        switch word {
        case .handledElsewhere(let action): self = .handledElsewhere(action)
        case .cancelled: self = .cancelled
        case .timedOut: self = .timedOut
        case .inviteSent, .inviteFailed, .accepted, .rejected, .answerConfirmed, .answerFailed, .cancelConfirmed,
            .cancelFailed, .inviteEnded, .hungUp, .disconnected:
            return nil
        }
    }
}
