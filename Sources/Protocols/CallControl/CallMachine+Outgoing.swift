import Core

// From dialling to the invitee's answer.
extension CallMachine {
    mutating func whilePreparingOffer(
        _ input: Input, _ deadline: Instant, at now: Instant, into outbox: inout [Output]
    ) {
        switch input {
        case .media(.ready(let offer)):
            guard case .dialled(var options) = origin else { return }
            options.offer = offer
            invitedAt = now
            let invite = OutgoingInviteMachine(options, timings: timings.invite)
            tell(.send, to: invite, nil, at: now, into: &outbox)
        case .media(.failed(let failure)):
            note(failure)
            end(.dialFailed, by: .neither, error: draft.error, at: now, into: &outbox)
        case .timerFired where now >= deadline:
            note(.late("it was not ready within \(timings.prepareTimeout.text)"))
            end(.dialFailed, by: .neither, error: draft.error, at: now, into: &outbox)
        case .user(.hangUp), .user(.handOver):
            end(.cancelled, by: .local, at: now, into: &outbox)
        case .begin, .user(.answer), .user(.reject), .media(.pathFound), .media(.connected), .media(.flowing),
            .media(.lost), .service, .timerFired:
            break  // Out of turn, or woken early.
        }
    }

    mutating func whileInviting(
        _ input: Input, _ invite: OutgoingInviteMachine, _ rejection: RejectReason?, at now: Instant,
        into outbox: inout [Output]
    ) {
        switch input {
        case .user(.hangUp), .user(.handOver):
            withdraw(invite, reason: .cancelled, at: now, into: &outbox)
        case .media(.failed(let failure)):
            note(failure)
            withdraw(invite, reason: .dialFailed, at: now, into: &outbox)
        case .service(let word):
            if case .inviteSent(let id, _) = word { draft.invite = id }
            guard let told = OutgoingInviteMachine.Input(word) else { return }
            tell(told, to: invite, rejection, at: now, into: &outbox)
        case .timerFired:
            tell(.timerFired, to: invite, rejection, at: now, into: &outbox)
        case .begin, .user(.answer), .user(.reject), .media(.ready), .media(.pathFound), .media(.connected),
            .media(.flowing), .media(.lost):
            break  // Out of turn.
        }
    }

    /// Feeds the invite's machine and carries out its outputs, until the call enters its next state.
    private mutating func tell(
        _ word: OutgoingInviteMachine.Input, to invite: OutgoingInviteMachine, _ rejection: RejectReason?,
        at now: Instant, into outbox: inout [Output]
    ) {
        var invite = invite
        var rejection = rejection
        var steps: [OutgoingInviteMachine.Output] = []
        invite.handle(word, at: now, into: &steps)
        for step in steps {
            switch step {
            case .sendInvite(let options): outbox.append(.sendInvite(options))
            case .sendCancel(let id, let withdrawal): outbox.append(.sendCancel(id, withdrawal))
            case .accepted(let answer): return take(answer, at: now, into: &outbox)
            case .rejected(let answer):
                rejection = answer.rejection?.reason ?? .declined
                draft.cause = answer.rejection?.cause
                draft.error = draft.cause?.toldError
            case .timedOut, .refused: break
            case .ended(.done):
                let ender: CallRecord.Ender = rejection == nil ? .neither : .remote
                return end(
                    rejection?.endOfOutgoingCall ?? .noAnswer, by: ender, error: draft.error, at: now, into: &outbox)
            case .ended(.cancelled): return end(.cancelled, by: .local, at: now, into: &outbox)
            case .ended(.failed(let error)):
                draft.cause = draft.cause ?? CallFailureCause(error)
                return end(.dialFailed, by: .neither, error: error, at: now, into: &outbox)
            }
        }
        current = .inviting(invite, rejection: rejection)
    }

    /// The invitee accepted: its answer goes to the media side.
    private mutating func take(_ accepted: InviteAnswer, at now: Instant, into outbox: inout [Output]) {
        draft.answeredAfter = invitedAt.duration(to: now)
        // Another invitee may have said why it could not.
        (draft.cause, draft.error) = (nil, nil)
        if case .dialled(let options) = origin, options.invitees.count > 1 {
            draft.peer = accepted.invitee
            // The others stop ringing; an invitee that accepts before it knows this is hung up.
            outbox.append(.sendCancel(accepted.invite, .call(.acceptedElsewhere)))
        }
        guard let answer = accepted.answer else {
            let failure = MediaFailure(.descriptionUnreadable, "the accept carries no answer")
            hangUp(accepted.invite, .dialFailed, by: .neither, failure, at: now, into: &outbox)
            return
        }
        outbox.append(.applyAnswer(answer))
        outbox.append(.answered)
        proceed(accepted.invite, answeredAt: now, at: now, into: &outbox)
    }

    /// Another invitee was first.
    func letGo(_ answer: InviteAnswer, into outbox: inout [Output]) {
        outbox.append(
            .sendHangUp(
                CallHangUp(
                    invite: answer.invite, reason: .acceptedElsewhere, duration: .zero,
                    peer: answer.invitee)))
    }

    private mutating func withdraw(
        _ invite: OutgoingInviteMachine, reason: CallEndReason, at now: Instant, into outbox: inout [Output]
    ) {
        draft.reason = reason
        follow(.cancel(.call(reason)), invite, at: now, into: &outbox)
    }

    mutating func whileWithdrawing(
        _ input: Input, _ invite: OutgoingInviteMachine, at now: Instant, into outbox: inout [Output]
    ) {
        switch input {
        case .service(let word):
            if case .inviteSent(let id, _) = word { draft.invite = id }
            guard let told = OutgoingInviteMachine.Input(word) else { return }
            follow(told, invite, at: now, into: &outbox)
        case .timerFired:
            follow(.timerFired, invite, at: now, into: &outbox)
        case .begin, .user, .media:
            break  // Being hung up already.
        }
    }

    /// Feeds the machine of an invite that is being taken back; `draft.reason` says why it is.
    private mutating func follow(
        _ word: OutgoingInviteMachine.Input, _ invite: OutgoingInviteMachine, at now: Instant,
        into outbox: inout [Output]
    ) {
        var invite = invite
        var steps: [OutgoingInviteMachine.Output] = []
        invite.handle(word, at: now, into: &steps)
        let ender: CallRecord.Ender = draft.error == nil ? .local : .neither
        for step in steps {
            switch step {
            case .sendCancel(let id, let withdrawal): outbox.append(.sendCancel(id, withdrawal))
            case .accepted(let answer):  // It crossed our cancel, and the exchange saw it first.
                if case .dialled(let options) = origin, options.invitees.count > 1 {
                    draft.peer = answer.invitee
                    draft.answeredAfter = invitedAt.duration(to: now)
                }
                return hangUp(answer.invite, draft.reason, by: ender, at: now, into: &outbox)
            case .ended, .refused: return end(draft.reason, by: ender, error: draft.error, at: now, into: &outbox)
            case .sendInvite, .rejected, .timedOut: break
            }
        }
        current = .withdrawing(invite)
    }
}

extension OutgoingInviteMachine.Input {
    /// The service's events that concern an invite that we sent.
    init?(_ word: CallMachine.ServiceEvent) {
        switch word {
        case .inviteSent(let id, let invitees): self = .sent(id, invitees: invitees)
        case .inviteFailed(let error): self = .sendFailed(error)
        case .accepted(let answer): self = .accepted(answer)
        case .rejected(let answer): self = .rejected(answer)
        case .timedOut(let invitees): self = .timedOut(invitees)
        case .cancelConfirmed: self = .cancelConfirmed
        case .cancelFailed(let error): self = .cancelFailed(error)
        case .inviteEnded: self = .endedByService
        case .answerConfirmed, .answerFailed, .handledElsewhere, .cancelled, .acknowledged, .hungUp, .disconnected:
            return nil
        }
    }
}
