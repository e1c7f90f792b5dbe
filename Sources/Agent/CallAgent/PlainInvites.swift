internal import CallControl
internal import Realtime
internal import SignalingClient
internal import Core

/// The invites of a device that are no calls. Their machines are those that calls have inside.
struct PlainInvites {
    /// What is to be done.
    enum Effect: Equatable {
        case publish(InviteEvent)
        /// No decision came in time.
        case sendReject(InviteRejection)
    }

    /// What has happened to an invite.
    enum Input {
        case incoming(IncomingInviteMachine.Input)
        case outgoing(OutgoingInviteMachine.Input)
        /// An event about an invite that no call is about.
        case event(CallMachine.ServiceEvent)
        /// Its deadline has come.
        case timerFired
    }

    private enum Machine {
        case incoming(IncomingInviteMachine)
        case outgoing(OutgoingInviteMachine)

        var nextDeadline: Instant? {
            switch self {
            case .incoming(let machine): machine.nextDeadline
            case .outgoing(let machine): machine.nextDeadline
            }
        }
    }

    private struct Pending {
        var machine: Machine
        var timer = WakeTimer()
    }

    /// Invites that a device takes part in at once: one more is rejected as busy. Of what this device itself sends beyond it
    /// the end is left to the service.
    private static let mostPending = 4_096
    /// Answers to one invite that wait for its name.
    private static let mostEarlyAnswers = 128

    private var pending: [InviteID: Pending] = [:]
    /// Answers that arrived before the service confirmed the id of the invite.
    private var earlyAnswers: [InviteID: [OutgoingInviteMachine.Input]] = [:]
    /// For what peers say after their invites are settled.
    private var seen = SeenInvites()

    /// Whether an invite is, or was lately, one of these.
    func knows(_ id: InviteID) -> Bool { pending[id] != nil || earlyAnswers[id] != nil || seen.contains(id) }

    // MARK: New invites

    /// Takes an invite that asks this user.
    ///
    /// - Returns: False if too many are open.
    mutating func add(received invite: ReceivedInvite, _ timings: InviteTimings, at now: Instant) -> Bool {
        seen.note(invite.id)
        guard pending.count < Self.mostPending else { return false }
        let machine = IncomingInviteMachine(invite.id, remaining: invite.remaining, timings: timings, at: now)
        pending[invite.id] = Pending(machine: .incoming(machine))
        return true
    }

    /// Takes an invite that this device has sent.
    ///
    /// - Returns: Answers that came before the service's confirmation, to be handled now.
    mutating func add(
        sent invite: SentInvite, _ options: InviteOptions, _ timings: InviteTimings, at now: Instant
    ) -> [OutgoingInviteMachine.Input] {
        var machine = OutgoingInviteMachine(options, timings: timings)
        var ignored: [OutgoingInviteMachine.Output] = []
        machine.handle(.send, at: now, into: &ignored)
        machine.handle(.sent(invite.id, invitees: invite.invitees), at: now, into: &ignored)
        seen.note(invite.id)
        let answers = earlyAnswers.removeValue(forKey: invite.id) ?? []
        guard pending.count < Self.mostPending else { return [] }
        pending[invite.id] = Pending(machine: .outgoing(machine))
        return answers
    }

    // MARK: What the application asks for

    /// Notes that an answer is on its way; false if this device does not keep watch over the invite.
    mutating func begin(
        _ answer: IncomingInviteMachine.Input, to id: InviteID, at now: Instant
    ) throws(SignalingError) -> Bool {
        guard case .incoming(var machine)? = pending[id]?.machine else { return false }
        var outbox: [IncomingInviteMachine.Output] = []
        machine.handle(answer, at: now, into: &outbox)
        for case .refused(let error) in outbox { throw error }
        pending[id]?.machine = .incoming(machine)
        return true
    }

    /// Notes that this device cancels its invite.
    mutating func cancel(_ id: InviteID, _ withdrawal: InviteWithdrawal, at now: Instant) throws(SignalingError) {
        guard case .outgoing(var machine)? = pending[id]?.machine else {
            throw SignalingError(.inviteEnded, activity: "cancel the invite", cause: "it has ended")
        }
        var outbox: [OutgoingInviteMachine.Output] = []
        machine.handle(.cancel(withdrawal), at: now, into: &outbox)
        for case .refused(let error) in outbox { throw error }
        pending[id]?.machine = .outgoing(machine)
    }

    // MARK: What happens

    mutating func handle(_ input: Input, for id: InviteID, at now: Instant) -> [Effect] {
        switch input {
        case .incoming(let input): handle(incoming: input, for: id, at: now)
        case .outgoing(let input): handle(outgoing: input, for: id, at: now)
        case .event(let event): handle(event, for: id, at: now)
        case .timerFired: timerFired(for: id, at: now)
        }
    }

    mutating func handle(incoming input: IncomingInviteMachine.Input, for id: InviteID, at now: Instant) -> [Effect] {
        guard case .incoming(var machine)? = pending[id]?.machine else { return [] }
        var outbox: [IncomingInviteMachine.Output] = []
        machine.handle(input, at: now, into: &outbox)
        pending[id]?.machine = .incoming(machine)
        var effects: [Effect] = []
        for output in outbox {
            switch output {
            case .accepted: remove(id)
            case .ended(let end):
                remove(id)
                effects.append(.publish(.withdrawn(id, end)))
            case .sendReject(_, let rejection): effects.append(.sendReject(rejection))
            case .sendAccept, .refused: break  // Done by those who asked for it.
            }
        }
        return effects
    }

    mutating func handle(outgoing input: OutgoingInviteMachine.Input, for id: InviteID, at now: Instant) -> [Effect] {
        guard case .outgoing(var machine)? = pending[id]?.machine else { return [] }
        var outbox: [OutgoingInviteMachine.Output] = []
        machine.handle(input, at: now, into: &outbox)
        pending[id]?.machine = .outgoing(machine)
        var effects: [Effect] = []
        for output in outbox {
            switch output {
            case .accepted(let answer): effects.append(.publish(.accepted(answer)))
            case .rejected(let answer): effects.append(.publish(.rejected(answer)))
            case .timedOut(let users): effects.append(.publish(.timedOut(id, users)))
            case .ended(let end):
                remove(id)
                effects.append(.publish(.finished(id, end)))
            case .sendInvite, .sendCancel, .refused: break  // Done by those who asked for it.
            }
        }
        return effects
    }

    /// Handles an event about an invite that no call is about.
    mutating func handle(_ event: CallMachine.ServiceEvent, for id: InviteID, at now: Instant) -> [Effect] {
        if let input = OutgoingInviteMachine.Input(event), case .outgoing? = pending[id]?.machine {
            return handle(outgoing: input, for: id, at: now)
        }
        if let input = IncomingInviteMachine.Input(event), case .incoming? = pending[id]?.machine {
            return handle(incoming: input, for: id, at: now)
        }
        switch event {
        // A member of a group receives each answer, of any inviter (GRP-2).
        case .accepted(let answer): return keep(.accepted(answer), for: id) ? [] : [.publish(.accepted(answer))]
        case .rejected(let answer): return keep(.rejected(answer), for: id) ? [] : [.publish(.rejected(answer))]
        case .timedOut(let users): _ = keep(.timedOut(users), for: id)
        case .inviteEnded: _ = keep(.endedByService, for: id)
        case .inviteSent: if pending[id] == nil { earlyAnswers[id] = [] }
        case .hungUp(let details):
            if seen.contains(id), let user = details.from { return [.publish(.left(id, by: user))] }
        case .inviteFailed, .answerConfirmed, .answerFailed, .cancelConfirmed, .cancelFailed, .handledElsewhere,
            .cancelled, .acknowledged, .disconnected:
            break  // Over already, or not about an invite.
        }
        return []
    }

    /// Keeps an answer that arrives before the service has confirmed the outgoing invite. At most one batch for each
    /// invite under way.
    ///
    /// - Returns: False if no such outgoing invite is under way.
    private mutating func keep(_ answer: OutgoingInviteMachine.Input, for id: InviteID) -> Bool {
        guard let answers = earlyAnswers[id] else { return false }
        if answers.count < Self.mostEarlyAnswers { earlyAnswers[id] = answers + [answer] }
        return true
    }

    // MARK: Timers

    /// Sleeps until the next deadline of an invite's machine, and then calls `wake`.
    mutating func arm(_ id: InviteID, _ wake: @escaping @Sendable () async -> Void) {
        let deadline = pending[id]?.machine.nextDeadline
        pending[id]?.timer.set(at: deadline, wake)
    }

    /// An invite's deadline has come.
    mutating func timerFired(for id: InviteID, at now: Instant) -> [Effect] {
        switch pending[id]?.machine {
        case .incoming?: handle(incoming: .timerFired, for: id, at: now)
        case .outgoing?: handle(outgoing: .timerFired, for: id, at: now)
        case nil: []
        }
    }

    private mutating func remove(_ id: InviteID) {
        pending[id]?.timer.cancel()
        pending[id] = nil
    }

    mutating func removeAll() {
        for id in pending.keys { pending[id]?.timer.cancel() }
        pending = [:]
    }
}

extension OutgoingInviteMachine.Input {
    /// The events of the service that concern an invite we sent.
    fileprivate init?(_ event: CallMachine.ServiceEvent) {
        switch event {
        case .accepted(let answer): self = .accepted(answer)
        case .rejected(let answer): self = .rejected(answer)
        case .timedOut(let users): self = .timedOut(users)
        case .inviteEnded: self = .endedByService
        case .inviteSent, .inviteFailed, .answerConfirmed, .answerFailed, .cancelConfirmed, .cancelFailed,
            .handledElsewhere, .cancelled, .acknowledged, .hungUp, .disconnected:
            return nil
        }
    }
}

extension IncomingInviteMachine.Input {
    /// The events of the service that concern an invite we received.
    fileprivate init?(_ event: CallMachine.ServiceEvent) {
        switch event {
        case .handledElsewhere(let action): self = .handledElsewhere(action)
        case .cancelled: self = .cancelled
        case .timedOut: self = .timedOut
        case .inviteSent, .inviteFailed, .accepted, .rejected, .answerConfirmed, .answerFailed, .cancelConfirmed,
            .cancelFailed, .inviteEnded, .acknowledged, .hungUp, .disconnected:
            return nil
        }
    }
}
