import Core

// From the invite's arrival to our answer.
extension CallMachine {
    mutating func whileRinging(
        _ input: Input, _ invite: IncomingInviteMachine, at now: Instant, into outbox: inout [Output]
    ) {
        switch input {
        case .user(.answer):
            guard case .received(let received) = origin else { return }
            current = .preparingAnswer(invite, deadline: now.advanced(by: timings.prepareTimeout))
            outbox.append(.prepareAnswer(offer: received.offer ?? CallDescription(.unreadable)))
        case .user(.reject(let reason, let cause)):
            draft.cause = cause ?? draft.cause
            reject(invite, reason, at: now, into: &outbox)
        case .user(.hangUp), .user(.handOver):
            reject(invite, .declined, at: now, into: &outbox)
        case .service(let word):
            guard let told = IncomingInviteMachine.Input(word) else { return }
            var invite = invite
            let steps = invite.steps(told, at: now)
            current = .ringing(invite)
            finish(steps, at: now, into: &outbox)
        case .timerFired:
            var invite = invite
            let steps = invite.steps(.timerFired, at: now)
            current = invite.isRejecting ? .rejecting(invite) : .ringing(invite)
            finish(steps, at: now, into: &outbox)
        case .media(.failed(let failure)):
            // What it needs is known to be missing.
            note(failure)
            reject(invite, .failed, at: now, into: &outbox)
        case .begin, .media(.ready), .media(.pathFound), .media(.connected), .media(.flowing), .media(.lost):
            break  // There is no media yet.
        }
    }

    mutating func whilePreparingAnswer(
        _ input: Input, _ invite: IncomingInviteMachine, _ deadline: Instant, at now: Instant,
        into outbox: inout [Output]
    ) {
        var invite = invite
        switch input {
        case .media(.ready(let description)):
            setUp.offersInAccept = description.isOffer
            let steps = invite.steps(.accept(.call(description)), at: now)
            current = .accepting(invite)
            finish(steps, at: now, into: &outbox)
        case .media(.failed(let failure)):
            note(failure)
            reject(invite, .failed, at: now, into: &outbox)
        case .user(.reject(let reason, let cause)):
            draft.cause = cause ?? draft.cause
            reject(invite, reason, at: now, into: &outbox)
        case .user(.hangUp), .user(.handOver):
            reject(invite, .declined, at: now, into: &outbox)
        case .service(let word):
            guard let told = IncomingInviteMachine.Input(word) else { return }
            finish(invite.steps(told, at: now), at: now, into: &outbox)
        case .timerFired:
            let steps = invite.steps(.timerFired, at: now)
            if invite.isRejecting {
                outbox.append(.releaseMedia)
                current = .rejecting(invite)
            }
            if steps.isEmpty, now >= deadline {
                note(.late("it was not ready within \(timings.prepareTimeout.text)"))
                reject(invite, .failed, at: now, into: &outbox)
            } else {
                finish(steps, at: now, into: &outbox)
            }
        case .media(.pathFound), .media(.connected), .media(.flowing):
            setUp.note(input, at: now)
        case .begin, .user(.answer), .media(.lost):
            break  // Answering already.
        }
    }

    mutating func whileAccepting(
        _ input: Input, _ invite: IncomingInviteMachine, at now: Instant, into outbox: inout [Output]
    ) {
        switch input {
        case .media(.pathFound), .media(.connected), .media(.flowing), .service(.acknowledged):
            setUp.note(input, at: now)  // The peer was quicker than the service's confirmation.
        case .media(.failed(let failure)):
            hangUp(invite.invite, .acceptFailed, by: .neither, failure, at: now, into: &outbox)
        case .media(.lost):
            hangUp(invite.invite, .acceptFailed, by: .neither, at: now, into: &outbox)
        case .user(.hangUp), .user(.handOver), .user(.reject):
            hangUp(invite.invite, .cancelled, by: .local, at: now, into: &outbox)
        case .service(.hungUp(let details)):
            note(told: details.cause)
            end(details.reason, by: .remote, error: draft.error, at: now, into: &outbox)
        case .service(let word):
            guard let told = IncomingInviteMachine.Input(word) else { return }
            follow(told, invite, at: now, into: &outbox)
        case .timerFired:
            follow(.timerFired, invite, at: now, into: &outbox)
        case .begin, .user(.answer), .media(.ready):
            break  // Answered already.
        }
    }

    private mutating func follow(
        _ word: IncomingInviteMachine.Input, _ invite: IncomingInviteMachine, at now: Instant,
        into outbox: inout [Output]
    ) {
        var invite = invite
        let steps = invite.steps(word, at: now)
        guard steps.contains(.accepted) else {
            current = .accepting(invite)
            return finish(steps, at: now, into: &outbox)
        }
        draft.answeredAfter = invitedAt.duration(to: now)
        outbox.append(.answered)
        proceed(invite.invite, answeredAt: now, at: now, into: &outbox)
    }

    mutating func whileRejecting(
        _ input: Input, _ invite: IncomingInviteMachine, at now: Instant, into outbox: inout [Output]
    ) {
        var invite = invite
        switch input {
        case .service(let word):
            guard let told = IncomingInviteMachine.Input(word) else { return }
            let steps = invite.steps(told, at: now)
            current = .rejecting(invite)
            finish(steps, at: now, into: &outbox)
        case .timerFired:
            let steps = invite.steps(.timerFired, at: now)
            current = .rejecting(invite)
            finish(steps, at: now, into: &outbox)
        case .user(.answer):
            // It is too late for any answer.
            finish(invite.steps(.accept(.call(CallDescription(.unreadable))), at: now), at: now, into: &outbox)
        case .begin, .user(.reject), .user(.hangUp), .user(.handOver), .media:
            break  // Rejected already.
        }
    }

    private mutating func reject(
        _ invite: IncomingInviteMachine, _ reason: RejectReason, at now: Instant, into outbox: inout [Output]
    ) {
        var invite = invite
        let steps = invite.steps(.reject(reason, cause: draft.cause), at: now)
        if current.holdsMedia { outbox.append(.releaseMedia) }
        current = .rejecting(invite)
        finish(steps, at: now, into: &outbox)
    }

    /// Does what the invite's machine asks for, short of taking the call.
    private mutating func finish(
        _ steps: [IncomingInviteMachine.Output], at now: Instant, into outbox: inout [Output]
    ) {
        for step in steps {
            switch step {
            case .sendAccept(let id, let acceptance): outbox.append(.sendAccept(id, acceptance))
            case .sendReject(let id, let rejection): outbox.append(.sendReject(id, rejection))
            case .accepted: break
            case .refused(let error): outbox.append(.refused(error))
            case .ended(let end): finish(end, at: now, into: &outbox)
            }
        }
    }

    private mutating func finish(
        _ inviteEnd: IncomingInviteMachine.End, at now: Instant, into outbox: inout [Output]
    ) {
        switch inviteEnd {
        case .rejected(let reason):
            let ender: CallRecord.Ender = reason == .failed || reason == .noAnswer ? .neither : .local
            end(reason.endOfIncomingCall, by: ender, error: draft.error, at: now, into: &outbox)
        case .handledElsewhere(.accepted): end(.acceptedElsewhere, by: .local, at: now, into: &outbox)
        case .handledElsewhere(.rejected): end(.declinedElsewhere, by: .local, at: now, into: &outbox)
        case .cancelled: end(.cancelled, by: .remote, at: now, into: &outbox)
        case .timedOut: end(.noAnswer, by: .neither, at: now, into: &outbox)
        case .failed(let error):
            // The invite is open, and the caller waits: an accept that the service does not carry becomes a reject.
            if let invite = draft.invite, Self.leavesInviteOpen(error.code) {
                draft.cause = error.code == .tooLarge ? .descriptionTooLarge : .deviceFault
                outbox.append(.sendReject(invite, InviteRejection(.failed, cause: draft.cause)))
            }
            end(.acceptFailed, by: .neither, error: error, at: now, into: &outbox)
        }
    }
}

extension CallMachine {
    /// Whether the service refused the accept itself, and not because of the invite's state or because the accept was
    /// lost.
    private static func leavesInviteOpen(_ code: SignalingError.Code) -> Bool {
        [.tooLarge, .invalidRequest, .tooManyRequests, .serverError, .internalError].contains(code)
    }
}

extension IncomingInviteMachine {
    fileprivate mutating func steps(_ input: Input, at now: Instant) -> [Output] {
        var outbox: [Output] = []
        handle(input, at: now, into: &outbox)
        return outbox
    }
}

extension IncomingInviteMachine.Input {
    /// The service's events that concern an invite that we received.
    init?(_ word: CallMachine.ServiceEvent) {
        switch word {
        case .answerConfirmed: self = .answerConfirmed
        case .answerFailed(let error): self = .answerFailed(error)
        case .handledElsewhere(let action): self = .handledElsewhere(action)
        case .cancelled: self = .cancelled
        case .timedOut: self = .timedOut
        case .acknowledged, .inviteSent, .inviteFailed, .accepted, .rejected, .cancelConfirmed, .cancelFailed,
            .inviteEnded, .hungUp, .disconnected:
            return nil
        }
    }
}
