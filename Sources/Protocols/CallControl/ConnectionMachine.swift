public import Timekeeping

/// Keeps one connection to a signaling service up (contract CONN-1 to 4, 9).
///
/// Each attempt at a connection has a number; what a driver reports about an earlier attempt is ignored, so a socket
/// that dies late does no harm.
public struct ConnectionMachine: ProtocolCore, Sendable {
    /// What can happen.
    public enum Input: Hashable, Sendable {
        /// The application wants the connection up. Asking again changes nothing.
        case connect
        /// The application wants it down.
        case disconnect
        /// The service asks to be reached by another connection, at the WebSocket address `to` if it gives one (CONN-12).
        case move(to: String?)
        /// Nothing can come of it any more, such as when the access token has ended and there is no new one. The link is
        /// the driver's to close.
        case giveUp(SignalingError)
        /// Something happened in the attempt numbered `attempt`.
        case link(LinkReport, attempt: Int)
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    /// What can happen to the link that an attempt makes.
    public enum LinkReport: Hashable, Sendable {
        case resourcesFetched(ConnectionResources)
        case resourcesFailed(ServiceFailure)
        case socketOpened
        case socketFailed(ServiceFailure)
        /// The peer closed, or the socket ended; `nil` without a close frame.
        case socketClosed(code: UInt16?)
        case sessionStarted(SessionGrant)
        case sessionRefused(ServiceFailure)
        /// Anything came; the event's number if it was a numbered event.
        case received(sequence: Int64?)
        /// The answer to a ping came.
        case pong
    }

    /// What is to be done.
    public enum Output: Hashable, Sendable {
        case fetchResources(attempt: Int)
        case openSocket(ConnectionResources, attempt: Int)
        case startSession(resume: ResumePoint?, attempt: Int)
        case sendPing
        /// Say goodbye; `closeSocket` follows at once.
        case endSession
        case closeSocket(code: UInt16)
        /// Drop whatever the attempt has going, without ceremony.
        case abandon(attempt: Int)
        case stateChanged(ConnectionState)
        /// The next attempt comes after `delay`; for the log.
        case retrying(after: Duration, because: SignalingError)
        case event(SignalingEvent)
    }

    enum State: Hashable, Sendable {
        case notConnected
        case attempting(Attempt)
        case connected(Link)
        case disconnecting(attempt: Int, deadline: Instant, thenConnects: Bool)
        case failed
    }

    struct Attempt: Hashable, Sendable {
        /// Where an attempt stands. One deadline covers it from the first step to the session's start.
        enum Step: Hashable, Sendable {
            case fetching(deadline: Instant)
            case opening(keepalive: Duration, deadline: Instant)
            case starting(keepalive: Duration, deadline: Instant)
            case waiting(until: Instant)
        }

        var number: Int
        var step: Step
        /// Whether there was a connection before.
        var isReconnection: Bool
        var resume: ResumePoint?
    }

    struct Link: Hashable, Sendable {
        var attempt: Int
        var since: Instant
        var keepalive: Duration
        var lastHeard: Instant
        var pingSentAt: Instant?
        var resume: ResumePoint

        /// Half of the two intervals goes by in silence, the other half waiting for the answer to a ping.
        var deadline: Instant { (pingSentAt ?? lastHeard).advanced(by: keepalive) }
    }

    private enum EventKind { case connected, reconnecting, reconnected, disconnected, error }

    var current = State.notConnected
    private let timings: ConnectionTimings
    private var backoff: Backoff
    private var lastAttempt = 0
    private var lastEvent: EventKind?

    /// Makes a connection that is down; `seed` decides the jitter of its waits.
    public init(timings: ConnectionTimings = ConnectionTimings(), seed: UInt64) {
        self.timings = timings
        backoff = Backoff(seed: seed)
    }

    /// Where the connection stands.
    public var state: ConnectionState {
        switch current {
        case .notConnected: .notConnected
        case .attempting(let attempt): attempt.isReconnection ? .reconnecting : .connecting
        case .connected: .connected
        case .disconnecting: .disconnecting
        case .failed: .failed
        }
    }

    /// When `handle` must next be called even if nothing happens.
    public var nextDeadline: Instant? {
        switch current {
        case .notConnected, .failed: nil
        case .attempting(let attempt):
            switch attempt.step {
            case .fetching(let deadline), .opening(_, let deadline), .starting(_, let deadline): deadline
            case .waiting(let until): until
            }
        case .connected(let link): link.deadline
        case .disconnecting(_, let deadline, _): deadline
        }
    }

    /// Takes one input.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch (current, input) {
        case (.notConnected, .connect), (.failed, .connect):
            backoff.reset()
            startAttempt(isReconnection: false, resume: nil, at: now, into: &outbox)
            outbox.append(.stateChanged(.connecting))

        case (.attempting(let attempt), .disconnect):
            disconnect(attempt, at: now, into: &outbox)
        case (.attempting(let attempt), .link(let report, let number)) where number == attempt.number:
            handle(report, in: attempt, at: now, into: &outbox)
        case (.attempting(let attempt), .timerFired):
            handleTimer(in: attempt, at: now, into: &outbox)

        case (.connected(let link), .disconnect):
            outbox.append(.endSession)
            close(link.attempt, at: now, into: &outbox)
        case (.connected(let link), .move(let address)):
            move(link, to: address, at: now, into: &outbox)
        case (.connected(let link), .link(let report, let number)) where number == link.attempt:
            handle(report, on: link, at: now, into: &outbox)
        case (.connected(let link), .timerFired):
            handleTimer(on: link, at: now, into: &outbox)

        case (.attempting, .giveUp(let error)), (.connected, .giveUp(let error)):
            give(up: error, into: &outbox)

        case (.disconnecting(let attempt, let deadline, _), .connect):
            current = .disconnecting(attempt: attempt, deadline: deadline, thenConnects: true)
        case (.disconnecting(let attempt, let deadline, _), .disconnect):
            current = .disconnecting(attempt: attempt, deadline: deadline, thenConnects: false)
        case (.disconnecting(let attempt, _, let thenConnects), .link(let report, let number)) where number == attempt:
            if report.endsSocket { finishDisconnecting(thenConnects, at: now, into: &outbox) }
        case (.disconnecting(let attempt, let deadline, let thenConnects), .timerFired) where now >= deadline:
            outbox.append(.abandon(attempt: attempt))
            finishDisconnecting(thenConnects, at: now, into: &outbox)

        case (.attempting, .connect), (.connected, .connect):
            break  // It is up or on its way: the same one serves (CONN-1).
        case (.notConnected, .disconnect), (.failed, .disconnect):
            break  // It is down already.
        case (_, .giveUp), (_, .move), (_, .link), (_, .timerFired):
            break  // Down already, on the move as it is, a word about an attempt given up, or woken early.
        }
    }
}

// MARK: Attempts

extension ConnectionMachine {
    private mutating func startAttempt(
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

    private mutating func handle(
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

    private mutating func handleTimer(in attempt: Attempt, at now: Instant, into outbox: inout [Output]) {
        switch attempt.step {
        case .waiting(let until) where now >= until:
            startAttempt(isReconnection: attempt.isReconnection, resume: attempt.resume, at: now, into: &outbox)
        case .fetching(let deadline) where now >= deadline, .opening(_, let deadline) where now >= deadline,
            .starting(_, let deadline) where now >= deadline:
            outbox.append(.abandon(attempt: attempt.number))
            fail(attempt, with: .silent(for: timings.attemptTimeout, during: attempt.step), at: now, into: &outbox)
        case .waiting, .fetching, .opening, .starting:
            break  // Woken early.
        }
    }

    private mutating func disconnect(_ attempt: Attempt, at now: Instant, into outbox: inout [Output]) {
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

    private mutating func fail(
        _ attempt: Attempt, with failure: ServiceFailure, at now: Instant, into outbox: inout [Output]
    ) {
        let limit = attempt.isReconnection ? timings.reconnectAttempts : timings.firstAttempts
        let wait = backoff.next()
        guard case .retry(let after) = failure.remedy, backoff.failures < limit ?? .max else {
            return give(up: failure.error, into: &outbox)
        }
        var attempt = attempt
        let delay = max(wait, after ?? .zero)
        attempt.step = .waiting(until: now.advanced(by: delay))
        current = .attempting(attempt)
        outbox.append(.retrying(after: delay, because: failure.error))
    }

    private mutating func give(up error: SignalingError, into outbox: inout [Output]) {
        current = .failed
        emit(.error, .error(error), into: &outbox)
        outbox.append(.stateChanged(.failed))
        emit(.disconnected, .disconnected, into: &outbox)
    }
}

// MARK: The link that stands

extension ConnectionMachine {
    private mutating func stand(
        _ grant: SessionGrant, after attempt: Attempt, at now: Instant, into outbox: inout [Output]
    ) {
        let resume = ResumePoint(
            session: grant.session, after: grant.isResumed ? attempt.resume?.after ?? 0 : grant.sequence)
        current = .connected(
            Link(
                attempt: attempt.number, since: now, keepalive: max(grant.keepalive, .milliseconds(100)),
                lastHeard: now, pingSentAt: nil, resume: resume))
        outbox.append(.stateChanged(.connected))
        if attempt.isReconnection {
            emit(.reconnected, .reconnected, into: &outbox)
        } else {
            emit(.connected, .connected, into: &outbox)
        }
    }

    private mutating func handle(
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

    private mutating func hear(_ link: Link, at now: Instant) {
        var link = link
        link.lastHeard = now
        link.pingSentAt = nil
        current = .connected(link)
    }

    private mutating func handleTimer(on link: Link, at now: Instant, into outbox: inout [Output]) {
        guard now >= link.deadline else { return }
        guard link.pingSentAt == nil else {
            outbox.append(.abandon(attempt: link.attempt))
            return drop(link, because: .dead(after: link.keepalive), at: now, into: &outbox)
        }
        var link = link
        link.pingSentAt = now
        current = .connected(link)
        outbox.append(.sendPing)
    }

    /// Leaves a link that works for another one, and resumes there: what comes in between is told after that.
    private mutating func move(
        _ link: Link, to address: String?, at now: Instant, into outbox: inout [Output]
    ) {
        outbox.append(.closeSocket(code: 1001))
        outbox.append(.abandon(attempt: link.attempt))
        outbox.append(.stateChanged(.reconnecting))
        emit(.reconnecting, .reconnecting, into: &outbox)
        guard let address else {
            return startAttempt(isReconnection: true, resume: link.resume, at: now, into: &outbox)
        }
        lastAttempt += 1
        let step = Attempt.Step.opening(
            keepalive: link.keepalive, deadline: now.advanced(by: timings.attemptTimeout))
        current = .attempting(Attempt(number: lastAttempt, step: step, isReconnection: true, resume: link.resume))
        let resources = ConnectionResources(
            webSocketURL: address, keepalive: link.keepalive, resumeWindow: .zero)
        outbox.append(.openSocket(resources, attempt: lastAttempt))
    }

    private mutating func drop(
        _ link: Link, because failure: ServiceFailure, at now: Instant, into outbox: inout [Output]
    ) {
        guard case .retry = failure.remedy else { return give(up: failure.error, into: &outbox) }
        // A server that takes a device in and drops it at once is not hammered: the backoff goes on growing.
        if link.since.duration(to: now) >= timings.stableAfter { backoff.reset() }
        outbox.append(.stateChanged(.reconnecting))
        emit(.reconnecting, .reconnecting, into: &outbox)
        let attempt = Attempt(
            number: link.attempt, step: .waiting(until: now), isReconnection: true, resume: link.resume)
        fail(attempt, with: failure, at: now, into: &outbox)
    }
}

// MARK: Going down, and events

extension ConnectionMachine {
    private mutating func close(_ attempt: Int, at now: Instant, into outbox: inout [Output]) {
        current = .disconnecting(
            attempt: attempt, deadline: now.advanced(by: timings.closeTimeout), thenConnects: false)
        outbox.append(.closeSocket(code: 1000))
        outbox.append(.stateChanged(.disconnecting))
    }

    private mutating func finishDisconnecting(
        _ thenConnects: Bool, at now: Instant, into outbox: inout [Output]
    ) {
        current = .notConnected
        outbox.append(.stateChanged(.notConnected))
        emit(.disconnected, .disconnected, into: &outbox)
        if thenConnects { handle(.connect, at: now, into: &outbox) }
    }

    /// Never two of a kind in a row, and no `disconnected` if nothing was ever said (CONN-3).
    private mutating func emit(_ kind: EventKind, _ event: SignalingEvent, into outbox: inout [Output]) {
        guard kind != lastEvent, !(kind == .disconnected && lastEvent == nil) else { return }
        lastEvent = kind
        outbox.append(.event(event))
    }
}

extension ConnectionMachine.LinkReport {
    /// Whether nothing more can come of the socket.
    fileprivate var endsSocket: Bool {
        switch self {
        case .socketClosed, .socketFailed: true
        case .resourcesFetched, .resourcesFailed, .socketOpened, .sessionStarted, .sessionRefused, .received, .pong:
            false
        }
    }
}
