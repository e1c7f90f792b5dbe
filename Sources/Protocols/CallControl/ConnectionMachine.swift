public import Core

/// Keeps one connection to a signaling service up (contract CONN-1 to 4, 9).
///
/// Each attempt at a connection has a number; what a driver reports about an earlier attempt is ignored, so a socket
/// that dies late does no harm.
public struct ConnectionMachine: ProtocolCore, Sendable {
    /// The inputs.
    public enum Input: Hashable, Sendable {
        /// The application wants the connection up. Asking again changes nothing.
        case connect
        /// The application wants it down.
        case disconnect
        /// The service asks for a new connection, at the WebSocket address `to` if it gives one (CONN-12). It is made
        /// first, and then replaces the present one.
        case move(to: String?)
        /// The machine's network has changed: a link has come up, or an address has come or gone. What was waiting is tried
        /// at once, and an established link is asked for a sign of life.
        case networkChanged
        /// The connection cannot succeed any more, for example because the access token has expired and there is no new
        /// one. The driver closes the link.
        case giveUp(SignalingError)
        /// Something happened in the attempt numbered `attempt`.
        case link(LinkReport, attempt: Int)
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    /// Events of the link that an attempt makes.
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

    /// The outputs.
    public enum Output: Hashable, Sendable {
        case fetchResources(attempt: Int)
        case openSocket(ConnectionResources, attempt: Int)
        case startSession(resume: ResumePoint?, attempt: Int)
        case sendPing
        /// Say goodbye; `closeSocket` follows at once.
        case endSession
        case closeSocket(code: UInt16)
        /// Drop the attempt's socket, without a close handshake.
        case abandon(attempt: Int)
        case stateChanged(ConnectionState)
        /// The link of `attempt` replaces the present one, which is to be closed.
        case moved(attempt: Int)
        /// The present link is kept, because no other could be made; for the log.
        case stayed(because: SignalingError)
        /// The next attempt comes after `delay`; for the log.
        case retrying(after: Duration, because: SignalingError)
        case event(SignalingEvent)
    }

    enum State: Hashable, Sendable {
        case notConnected
        case attempting(Attempt)
        case connected(Link)
        case moving(Move)
        case disconnecting(attempt: Int, deadline: Instant, thenConnects: Bool)
        case failed
    }

    struct Attempt: Hashable, Sendable {
        /// The state of an attempt. One deadline covers it from the first step to the session's start.
        enum Step: Hashable, Sendable {
            case fetching(deadline: Instant)
            case opening(keepalive: Duration, deadline: Instant)
            case starting(keepalive: Duration, deadline: Instant)
            /// Not before the service said; `until` is when the next attempt comes by itself.
            case waiting(until: Instant, notBefore: Instant)

            /// When it has gone on for long enough.
            var deadline: Instant {
                switch self {
                case .fetching(let deadline), .opening(_, let deadline), .starting(_, let deadline): deadline
                case .waiting(let until, _): until
                }
            }
        }

        var number: Int
        var step: Step
        /// Whether there was a connection before.
        var isReconnection: Bool
        var resume: ResumePoint?
        /// The newest event that came on its link.
        var heard: Int64?
    }

    struct Link: Hashable, Sendable {
        var attempt: Int
        var since: Instant
        var keepalive: Duration
        var lastHeard: Instant
        var pingSentAt: Instant?
        /// Whether the ping was sent because the network has changed: then its answer is due soon.
        var isProbed = false
        var resume: ResumePoint

        /// Half of the two intervals goes by in silence, the other half waiting for the answer to a ping.
        var deadline: Instant { (pingSentAt ?? lastHeard).advanced(by: patience) }
        /// How long the link may be silent.
        var patience: Duration { isProbed ? min(keepalive, ConnectionTimings.probeTimeout) : keepalive }
    }

    /// An established link, and the attempt at the one that replaces it (CONN-12).
    struct Move: Hashable, Sendable {
        var from: Link
        var to: Attempt
        /// The first link has ended while the session was being started on the second, as it does when it is replaced.
        var isReplaced = false
    }

    enum EventKind { case connected, reconnecting, reconnected, disconnected, error }

    var current = State.notConnected
    let timings: ConnectionTimings
    var backoff: ReconnectBackoff
    var lastAttempt = 0
    private var lastEvent: EventKind?

    /// Makes a connection that is down; `seed` decides the jitter of its waits.
    public init(timings: ConnectionTimings = ConnectionTimings(), seed: UInt64) {
        self.timings = timings
        backoff = ReconnectBackoff(seed: seed)
    }

    /// The state of the connection.
    public var state: ConnectionState {
        switch current {
        case .notConnected: .notConnected
        case .attempting(let attempt): attempt.isReconnection ? .reconnecting : .connecting
        case .connected, .moving: .connected
        case .disconnecting: .disconnecting
        case .failed: .failed
        }
    }

    /// Whether the session is being started on another link while one is established: requests must wait meanwhile.
    public var isChangingLinks: Bool {
        guard case .moving(let move) = current, case .starting = move.to.step else { return false }
        return true
    }

    /// Whether an attempt is under way while a link is established.
    public func isMoving(by attempt: Int) -> Bool {
        guard case .moving(let move) = current else { return false }
        return move.to.number == attempt
    }

    /// When `handle` must next be called even if nothing happens.
    public var nextDeadline: Instant? {
        switch current {
        case .notConnected, .failed: nil
        case .attempting(let attempt): attempt.step.deadline
        case .connected(let link): link.deadline
        case .moving(let move): move.deadline
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
        case (.attempting(let attempt), .networkChanged):
            hurry(attempt, at: now, into: &outbox)

        case (.connected(let link), .disconnect):
            outbox.append(.endSession)
            close(link.attempt, at: now, into: &outbox)
        case (.connected(let link), .move(let address)):
            move(link, to: address, at: now, into: &outbox)
        case (.connected(let link), .link(let report, let number)) where number == link.attempt:
            handle(report, on: link, at: now, into: &outbox)
        case (.connected(let link), .timerFired):
            handleTimer(on: link, at: now, into: &outbox)
        case (.connected(let link), .networkChanged):
            probe(link, at: now, into: &outbox)

        case (.moving(let move), .disconnect), (.moving(let move), .giveUp), (.moving(let move), .link),
            (.moving(let move), .timerFired):
            whileMoving(input, move, at: now, into: &outbox)

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

        case (.attempting, .connect), (.connected, .connect), (.moving, .connect):
            break  // It is up or on its way: the same one serves (CONN-1).
        case (.notConnected, .disconnect), (.failed, .disconnect):
            break  // It is down already.
        case (_, .giveUp), (_, .move), (_, .link), (_, .timerFired), (_, .networkChanged):
            break  // Down already, on the move as it is, a word about an attempt given up, or woken early.
        }
    }
}

// MARK: Going down, and events

extension ConnectionMachine {
    mutating func close(_ attempt: Int, at now: Instant, into outbox: inout [Output]) {
        current = .disconnecting(
            attempt: attempt, deadline: now.advanced(by: timings.closeTimeout), thenConnects: false)
        outbox.append(.closeSocket(code: 1000))
        outbox.append(.stateChanged(.disconnecting))
    }

    mutating func finishDisconnecting(
        _ thenConnects: Bool, at now: Instant, into outbox: inout [Output]
    ) {
        current = .notConnected
        outbox.append(.stateChanged(.notConnected))
        emit(.disconnected, .disconnected, into: &outbox)
        if thenConnects { handle(.connect, at: now, into: &outbox) }
    }

    /// Never two of a kind in a row, and no `disconnected` if nothing was ever said (CONN-3).
    mutating func emit(_ kind: EventKind, _ event: SignalingEvent, into outbox: inout [Output]) {
        guard kind != lastEvent, !(kind == .disconnected && lastEvent == nil) else { return }
        lastEvent = kind
        outbox.append(.event(event))
    }
}

extension ConnectionMachine.LinkReport {
    /// Whether the socket is of no more use.
    var endsSocket: Bool {
        switch self {
        case .socketClosed, .socketFailed: true
        case .resourcesFetched, .resourcesFailed, .socketOpened, .sessionStarted, .sessionRefused, .received, .pong:
            false
        }
    }
}
