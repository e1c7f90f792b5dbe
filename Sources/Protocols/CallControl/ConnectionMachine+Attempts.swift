import Core

// From the first step of a connection to the session's start, over and over if need be (contract CONN-1, CONN-4).
extension ConnectionMachine {
    mutating func startAttempt(
        isReconnection: Bool, resume: ResumePoint?, at now: Instant, into outbox: inout [Output]
    ) {
        lastAttempt += 1
        let deadline = now.advanced(by: timings.attemptTimeout)
        current = .attempting(
            Attempt(
                number: lastAttempt, step: .fetching(deadline: deadline), isReconnection: isReconnection,
                resume: resume))
        outbox.append(.fetchResources(attempt: lastAttempt))
    }

    mutating func handle(
        _ report: LinkReport, in attempt: Attempt, at now: Instant, into outbox: inout [Output]
    ) {
        var attempt = attempt
        switch (attempt.step, report) {
        case (.fetching(let deadline), .resourcesFetched(let resources)):
            attempt.step = .opening(keepalive: resources.keepalive, deadline: deadline)
            current = .attempting(attempt)
            outbox.append(.openSocket(resources, attempt: attempt.number))

        case (.opening(let keepalive, let deadline), .socketOpened):
            attempt.step = .starting(keepalive: keepalive, deadline: deadline)
            current = .attempting(attempt)
            outbox.append(.startSession(resume: attempt.resume, attempt: attempt.number))

        case (.starting, .sessionStarted(let grant)):
            stand(grant, after: attempt, at: now, into: &outbox)

        case (.starting, .received(let sequence?)):
            attempt.heard = max(attempt.heard ?? sequence, sequence)
            current = .attempting(attempt)

        case (.fetching, .resourcesFailed(let failure)), (.opening, .socketFailed(let failure)),
            (.starting, .socketFailed(let failure)):
            fail(attempt, with: failure, at: now, into: &outbox)

        case (.starting, .sessionRefused(let failure)):
            outbox.append(.abandon(attempt: attempt.number))
            fail(attempt, with: failure, at: now, into: &outbox)

        case (.opening, .socketClosed(let code)), (.starting, .socketClosed(let code)):
            fail(attempt, with: .closed(code), at: now, into: &outbox)

        case (.fetching, _), (.opening, _), (.starting, _), (.waiting, _):
            break  // Out of turn: a driver or a peer can cause it, and nothing depends on it.
        }
    }

    mutating func handleTimer(in attempt: Attempt, at now: Instant, into outbox: inout [Output]) {
        switch attempt.step {
        case .waiting(let until, _) where now >= until:
            startAttempt(isReconnection: attempt.isReconnection, resume: attempt.resume, at: now, into: &outbox)
        case .fetching(let deadline) where now >= deadline, .opening(_, let deadline) where now >= deadline,
            .starting(_, let deadline) where now >= deadline:
            outbox.append(.abandon(attempt: attempt.number))
            fail(attempt, with: .silent(for: timings.attemptTimeout, during: attempt.step), at: now, into: &outbox)
        case .waiting, .fetching, .opening, .starting:
            break  // Woken early.
        }
    }

    /// Tries at once what was waiting, and again what is under way: its path may be gone.
    mutating func hurry(_ attempt: Attempt, at now: Instant, into outbox: inout [Output]) {
        switch attempt.step {
        case .waiting(_, let notBefore) where now < notBefore:
            var attempt = attempt
            attempt.step = .waiting(until: notBefore, notBefore: notBefore)
            current = .attempting(attempt)
            return
        case .waiting: break
        case .fetching, .opening, .starting: outbox.append(.abandon(attempt: attempt.number))
        }
        startAttempt(isReconnection: attempt.isReconnection, resume: attempt.resume, at: now, into: &outbox)
    }

    mutating func disconnect(_ attempt: Attempt, at now: Instant, into outbox: inout [Output]) {
        switch attempt.step {
        case .starting:
            close(attempt.number, at: now, into: &outbox)
        case .fetching, .opening:
            outbox.append(.abandon(attempt: attempt.number))
            finishDisconnecting(false, at: now, into: &outbox)
        case .waiting:
            finishDisconnecting(false, at: now, into: &outbox)
        }
    }

    /// - Parameters:
    ///   - isBurden: Whether it cost the server something, as far as the backoff is concerned.
    ///   - isUrgent: Whether the next attempt comes at once, because the network is another one.
    mutating func fail(
        _ attempt: Attempt, with failure: ServiceFailure, isBurden: Bool? = nil, isUrgent: Bool = false,
        at now: Instant, into outbox: inout [Output]
    ) {
        let limit = attempt.isReconnection ? timings.reconnectAttempts : timings.firstAttempts
        let wait = backoff.next(at: now, isBurden: isBurden ?? failure.isBurden)
        guard case .retry(let after) = failure.remedy, backoff.failures < limit ?? .max else {
            return give(up: failure.error, into: &outbox)
        }
        var attempt = attempt
        let delay = max(isUrgent ? .zero : wait, after ?? .zero)
        attempt.step = .waiting(until: now.advanced(by: delay), notBefore: now.advanced(by: after ?? .zero))
        current = .attempting(attempt)
        outbox.append(.retrying(after: delay, because: failure.error))
    }

    mutating func give(up error: SignalingError, into outbox: inout [Output]) {
        current = .failed
        emit(.error, .error(error), into: &outbox)
        outbox.append(.stateChanged(.failed))
        emit(.disconnected, .disconnected, into: &outbox)
    }
}
