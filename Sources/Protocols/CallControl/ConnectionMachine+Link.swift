import Core

// The established link: received data, and silence (contract CONN-4).
extension ConnectionMachine {
    mutating func stand(
        _ grant: SessionGrant, after attempt: Attempt, at now: Instant, into outbox: inout [Output]
    ) {
        current = .connected(Link(grant, by: attempt, at: now))
        outbox.append(.stateChanged(.connected))
        if attempt.isReconnection {
            emit(.reconnected, .reconnected, into: &outbox)
        } else {
            emit(.connected, .connected, into: &outbox)
        }
    }

    mutating func handle(
        _ report: LinkReport, on link: Link, at now: Instant, into outbox: inout [Output]
    ) {
        switch report {
        case .received(let sequence):
            var link = link
            if let sequence { link.resume.after = max(link.resume.after, sequence) }
            hear(link, at: now)
        case .pong:
            hear(link, at: now)
        case .socketClosed(let code):
            drop(link, because: .closed(code), at: now, into: &outbox)
        case .socketFailed(let failure):
            drop(link, because: failure, at: now, into: &outbox)
        case .resourcesFetched, .resourcesFailed, .socketOpened, .sessionStarted, .sessionRefused:
            break  // Out of turn.
        }
    }

    mutating func hear(_ link: Link, at now: Instant) {
        var link = link
        link.lastHeard = now
        link.pingSentAt = nil
        link.isProbed = false
        current = .connected(link)
    }

    /// Asks for a sign of life that is due soon.
    mutating func probe(_ link: Link, at now: Instant, into outbox: inout [Output]) {
        guard !link.isProbed else { return }
        var link = link
        link.pingSentAt = now
        link.isProbed = true
        current = .connected(link)
        outbox.append(.sendPing)
    }

    mutating func handleTimer(on link: Link, at now: Instant, into outbox: inout [Output]) {
        guard now >= link.deadline else { return }
        guard link.pingSentAt == nil else {
            outbox.append(.abandon(attempt: link.attempt))
            return drop(link, because: .dead(after: link.patience), at: now, into: &outbox)
        }
        var link = link
        link.pingSentAt = now
        current = .connected(link)
        outbox.append(.sendPing)
    }

    mutating func drop(
        _ link: Link, because failure: ServiceFailure, at now: Instant, into outbox: inout [Output]
    ) {
        guard case .retry = failure.remedy else { return give(up: failure.error, into: &outbox) }
        // A server that accepts a device and drops it at once is not hammered: the backoff continues to grow.
        let isStable = link.since.duration(to: now) >= timings.stableAfter
        if isStable { backoff.reset() }
        backoff.loseLink(at: now)
        outbox.append(.stateChanged(.reconnecting))
        emit(.reconnecting, .reconnecting, into: &outbox)
        let attempt = Attempt(
            number: link.attempt, step: .waiting(until: now, notBefore: now), isReconnection: true, resume: link.resume)
        fail(attempt, with: failure, isBurden: !isStable, isUrgent: link.isProbed, at: now, into: &outbox)
    }
}

extension ConnectionMachine.Link {
    /// The link on which an attempt has started a session. Events may have come on it already.
    init(_ grant: SessionGrant, by attempt: ConnectionMachine.Attempt, at now: Instant) {
        let base = grant.isResumed ? attempt.resume?.after ?? 0 : grant.sequence
        self.init(
            attempt: attempt.number, since: now, keepalive: max(grant.keepalive, .milliseconds(100)), lastHeard: now,
            pingSentAt: nil, resume: ResumePoint(session: grant.session, after: max(base, attempt.heard ?? base)))
    }
}
