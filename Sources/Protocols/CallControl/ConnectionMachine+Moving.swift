import Core

// Moving from one link to another without a gap (contract CONN-12): the second is made while the first is established,
// and replaces it when the session continues there. The service closes the first.
extension ConnectionMachine {
    mutating func move(_ link: Link, to address: String?, at now: Instant, into outbox: inout [Output]) {
        lastAttempt += 1
        let deadline = now.advanced(by: timings.attemptTimeout)
        let step: Attempt.Step =
            if address == nil { .fetching(deadline: deadline) } else {
                .opening(keepalive: link.keepalive, deadline: deadline)
            }
        let attempt = Attempt(number: lastAttempt, step: step, isReconnection: true, resume: link.resume)
        current = .moving(Move(from: link, to: attempt))
        if let address {
            let resources = ConnectionResources(
                webSocketURL: address, keepalive: link.keepalive, resumeWindow: .zero)
            outbox.append(.openSocket(resources, attempt: lastAttempt))
        } else {
            outbox.append(.fetchResources(attempt: lastAttempt))
        }
    }

    mutating func whileMoving(_ input: Input, _ move: Move, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .disconnect:
            if move.isReplaced { return disconnect(move.to, at: now, into: &outbox) }
            outbox.append(.abandon(attempt: move.to.number))
            outbox.append(.endSession)
            close(move.from.attempt, at: now, into: &outbox)
        case .giveUp(let error):
            outbox.append(.abandon(attempt: move.to.number))
            give(up: error, into: &outbox)
        case .link(let report, let number) where number == move.to.number:
            advance(report, move, at: now, into: &outbox)
        case .link(let report, let number) where number == move.from.attempt && !move.isReplaced:
            hear(report, beforeLeaving: move, at: now, into: &outbox)
        case .timerFired:
            handleTimer(in: move, at: now, into: &outbox)
        case .connect, .move, .link, .networkChanged:
            break  // It is up, on the move as it is, or a word about an attempt given up.
        }
    }

    /// Events of the new link.
    private mutating func advance(_ report: LinkReport, _ move: Move, at now: Instant, into outbox: inout [Output]) {
        var move = move
        switch (move.to.step, report) {
        case (.fetching(let deadline), .resourcesFetched(let resources)):
            move.to.step = .opening(keepalive: resources.keepalive, deadline: deadline)
            current = .moving(move)
            outbox.append(.openSocket(resources, attempt: move.to.number))

        case (.opening(let keepalive, let deadline), .socketOpened):
            move.to.step = .starting(keepalive: keepalive, deadline: deadline)
            move.to.resume = move.from.resume
            current = .moving(move)
            outbox.append(.startSession(resume: move.to.resume, attempt: move.to.number))

        case (.starting, .sessionStarted(let grant)):
            arrive(grant, move, at: now, into: &outbox)

        case (.starting, .received(let sequence?)):
            move.to.heard = max(move.to.heard ?? sequence, sequence)
            current = .moving(move)

        case (.fetching, .resourcesFailed(let failure)), (.opening, .socketFailed(let failure)),
            (.starting, .socketFailed(let failure)), (.starting, .sessionRefused(let failure)):
            fail(move, with: failure, at: now, into: &outbox)
        case (.opening, .socketClosed(let code)), (.starting, .socketClosed(let code)):
            fail(move, with: .closed(code), at: now, into: &outbox)

        case (.fetching, _), (.opening, _), (.starting, _), (.waiting, _):
            break  // Out of turn.
        }
    }

    private mutating func arrive(_ grant: SessionGrant, _ move: Move, at now: Instant, into outbox: inout [Output]) {
        var link = Link(grant, by: move.to, at: now)
        if grant.isResumed {
            link.resume.after = max(link.resume.after, move.from.resume.after)
        } else {
            // The service does not continue the session: this is reported like a drop.
            emit(.reconnecting, .reconnecting, into: &outbox)
        }
        current = .connected(link)
        outbox.append(.moved(attempt: link.attempt))
        outbox.append(.stateChanged(.connected))
        if !grant.isResumed { emit(.reconnected, .reconnected, into: &outbox) }
    }

    /// Events of the established link.
    private mutating func hear(
        _ report: LinkReport, beforeLeaving move: Move, at now: Instant, into outbox: inout [Output]
    ) {
        var move = move
        switch report {
        case .received(let sequence):
            if let sequence { move.from.resume.after = max(move.from.resume.after, sequence) }
            move.from.lastHeard = now
            move.from.pingSentAt = nil
            move.from.isProbed = false
            current = .moving(move)
        case .pong:
            move.from.lastHeard = now
            move.from.pingSentAt = nil
            move.from.isProbed = false
            current = .moving(move)
        case .socketClosed(let code):
            lose(move, because: .closed(code), into: &outbox)
        case .socketFailed(let failure):
            lose(move, because: failure, into: &outbox)
        case .resourcesFetched, .resourcesFailed, .socketOpened, .sessionStarted, .sessionRefused:
            break  // Out of turn.
        }
    }

    /// The first link is gone: replaced, if the session is being started on the second; else this is a drop as any.
    private mutating func lose(_ move: Move, because failure: ServiceFailure, into outbox: inout [Output]) {
        var move = move
        if case .starting = move.to.step {
            move.isReplaced = true
            current = .moving(move)
        } else if case .retry = failure.remedy {
            move.to.resume = move.from.resume
            current = .attempting(move.to)
            outbox.append(.stateChanged(.reconnecting))
            emit(.reconnecting, .reconnecting, into: &outbox)
        } else {
            outbox.append(.abandon(attempt: move.to.number))
            give(up: failure.error, into: &outbox)
        }
    }

    private mutating func handleTimer(in move: Move, at now: Instant, into outbox: inout [Output]) {
        if now >= move.to.step.deadline {
            return fail(
                move, with: .silent(for: timings.attemptTimeout, during: move.to.step), at: now, into: &outbox)
        }
        guard !move.isReplaced, now >= move.from.deadline else { return }
        guard move.from.pingSentAt == nil else {
            outbox.append(.abandon(attempt: move.from.attempt))
            return lose(move, because: .dead(after: move.from.keepalive), into: &outbox)
        }
        var move = move
        move.from.pingSentAt = now
        current = .moving(move)
        outbox.append(.sendPing)
    }

    /// The second link failed. If the session was not requested there yet, the first one stays in use. Otherwise it is
    /// unknown which of the two the service uses for the session, so a third link is made.
    private mutating func fail(
        _ move: Move, with failure: ServiceFailure, at now: Instant, into outbox: inout [Output]
    ) {
        outbox.append(.abandon(attempt: move.to.number))
        guard case .starting = move.to.step else {
            current = .connected(move.from)
            outbox.append(.stayed(because: failure.error))
            return
        }
        if !move.isReplaced { outbox.append(.abandon(attempt: move.from.attempt)) }
        outbox.append(.stateChanged(.reconnecting))
        emit(.reconnecting, .reconnecting, into: &outbox)
        var move = move
        move.to.resume = move.from.resume
        fail(move.to, with: failure, at: now, into: &outbox)
    }
}

extension ConnectionMachine.Move {
    /// When something is to be done about either link.
    var deadline: Instant { isReplaced ? to.step.deadline : min(from.deadline, to.step.deadline) }
}
