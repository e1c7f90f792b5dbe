import Core

// From the answer to the end.
extension CallMachine {
    mutating func whileSettingUp(
        _ input: Input, _ invite: InviteID, _ answeredAt: Instant, _ deadline: Instant, at now: Instant,
        into outbox: inout [Output]
    ) {
        switch input {
        case .media(.pathFound), .media(.connected), .media(.flowing), .service(.acknowledged):
            setUp.note(input, at: now)
            proceed(invite, answeredAt: answeredAt, at: now, into: &outbox)
        case .media(.failed(let failure)):
            hangUp(invite, setUpFailure, by: .neither, failure, at: now, into: &outbox)
        case .media(.lost):
            hangUp(invite, setUpFailure, by: .neither, at: now, into: &outbox)
        case .timerFired where now >= deadline:
            giveUpSetUp(invite, at: now, into: &outbox)
        case .user(.hangUp):
            hangUp(invite, .cancelled, by: .local, at: now, into: &outbox)
        case .user(.handOver):
            hangUp(invite, .completed, by: .local, at: now, into: &outbox)
        case .service(.hungUp(let details)):
            finish(details, answeredAt, at: now, into: &outbox)
        case .begin, .user(.answer), .user(.reject), .media(.ready), .service, .timerFired:
            break  // The invite is settled: the service may still speak of it.
        }
    }

    mutating func whileEstablished(
        _ input: Input, _ invite: InviteID, _ answeredAt: Instant, _ since: Instant, at now: Instant,
        into outbox: inout [Output]
    ) {
        let duration = since.duration(to: now)
        switch input {
        case .user(.hangUp), .user(.handOver):
            hangUp(invite, .completed, by: .local, duration: duration, at: now, into: &outbox)
        case .media(.lost):
            hangUp(invite, .connectionLost, by: .neither, duration: duration, at: now, into: &outbox)
        case .media(.failed(let failure)):
            hangUp(invite, .internalError, by: .neither, failure, duration: duration, at: now, into: &outbox)
        case .service(.hungUp(let details)):
            finish(details, answeredAt, at: now, into: &outbox)
        case .media(.flowing):
            flow(at: now, into: &outbox)
        case .begin, .user(.answer), .user(.reject), .media(.ready), .media(.pathFound), .media(.connected), .service,
            .timerFired:
            break  // The invite is settled: the service may still speak of it.
        }
    }

    /// The peer hung up. Its measure of the duration is taken, as far as it can be true, so that both record the same.
    private mutating func finish(
        _ details: CallHangUp, _ answeredAt: Instant, at now: Instant, into outbox: inout [Output]
    ) {
        let longest = answeredAt.duration(to: now) + .seconds(1)
        let duration = min(max(details.duration, .zero), longest)
        note(told: details.cause)
        end(
            details.reason, by: .remote, error: draft.error, duration: duration, at: now,
            into: &outbox)
    }

    /// Establishes an answered call if it can carry media, and else waits for what is missing.
    mutating func proceed(_ invite: InviteID, answeredAt: Instant, at now: Instant, into outbox: inout [Output]) {
        guard setUp.carriesMedia else {
            let deadline =
                setUp.awaitsOnlyAcknowledgement
                ? answeredAt.advanced(by: timings.acknowledgementTimeout)
                : (setUp.begunAt ?? answeredAt).advanced(by: timings.setUpTimeout)
            current = .settingUp(invite, answeredAt: answeredAt, deadline: deadline)
            return
        }
        let time = invitedAt.duration(to: now)
        draft.establishedAfter = time
        current = .established(invite, answeredAt: answeredAt, since: now)
        outbox.append(.established(after: time))
        if setUp.isFlowing { flow(at: now, into: &outbox) }
    }

    /// Media flows both ways in an established call: reported once.
    private mutating func flow(at now: Instant, into outbox: inout [Output]) {
        guard draft.setUpTime == nil, let establishedAfter = draft.establishedAfter else { return }
        let time = max(invitedAt.duration(to: now), establishedAfter)
        draft.setUpTime = time
        outbox.append(.flowing(after: time, establishedAfter: establishedAfter))
    }

    /// The call cannot carry media in time.
    private mutating func giveUpSetUp(_ invite: InviteID, at now: Instant, into outbox: inout [Output]) {
        guard !setUp.awaitsOnlyAcknowledgement else {
            draft.error = SignalingError(
                .timedOut, activity: "set up the call",
                cause: "the caller has not acknowledged the answer within \(timings.acknowledgementTimeout.text)")
            return hangUp(invite, setUpFailure, by: .neither, at: now, into: &outbox)
        }
        let limit = "within \(timings.setUpTimeout.text) of the answer"
        let failure =
            setUp.connection == .path
            ? MediaFailure(.handshakeTimedOut, "the DTLS handshake did not complete \(limit)")
            : MediaFailure(.noPath, "no path to the peer was found \(limit)")
        hangUp(invite, setUpFailure, by: .neither, failure, at: now, into: &outbox)
    }

    /// Notifies the peer, then ends.
    mutating func hangUp(
        _ invite: InviteID, _ reason: CallEndReason, by ender: CallRecord.Ender, _ failure: MediaFailure? = nil,
        duration: Duration = .zero, at now: Instant, into outbox: inout [Output]
    ) {
        if let failure { note(failure) }
        let details = CallHangUp(
            invite: invite, reason: reason, cause: draft.cause, duration: duration, peer: namedPeer)
        outbox.append(.sendHangUp(details))
        end(reason, by: ender, error: draft.error, duration: duration, at: now, into: &outbox)
    }

    /// Keeps what went wrong here for the record, and for the peer.
    mutating func note(_ failure: MediaFailure) {
        draft.cause = failure.cause
        draft.error = failure.error
    }

    /// Keeps what the peer says went wrong.
    mutating func note(told cause: CallFailureCause?) {
        guard let cause else { return }
        draft.cause = cause
        draft.error = cause.toldError
    }

    /// The one way to the end.
    mutating func end(
        _ reason: CallEndReason, by ender: CallRecord.Ender, error: SignalingError? = nil,
        duration told: Duration? = nil, at now: Instant, into outbox: inout [Output]
    ) {
        if current.holdsMedia { outbox.append(.releaseMedia) }
        var record = draft
        record.reason = reason
        record.endedBy = ender
        record.error = error
        record.duration = told ?? current.timeEstablished(until: now)
        current = .ended(record)
        outbox.append(.ended(record))
    }

    /// The reason of a failed set-up on this side.
    private var setUpFailure: CallEndReason {
        switch draft.direction {
        case .outgoing: .dialFailed
        case .incoming: .acceptFailed
        }
    }
}

extension CallMachine.State {
    /// Whether the media side has prepared the call and not yet been asked to release it.
    var holdsMedia: Bool {
        switch self {
        case .new, .ringing, .rejecting, .ended: false
        case .preparingOffer, .inviting, .withdrawing, .preparingAnswer, .accepting, .settingUp, .established: true
        }
    }

    fileprivate func timeEstablished(until now: Instant) -> Duration {
        switch self {
        case .established(_, _, let since): since.duration(to: now)
        case .new, .preparingOffer, .inviting, .withdrawing, .ringing, .preparingAnswer, .accepting, .rejecting,
            .settingUp, .ended:
            .zero
        }
    }
}
