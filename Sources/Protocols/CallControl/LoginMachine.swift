public import Core

/// Logs in: once if it is refused, again and again if the service is only unwell (contract AUTH-11).
public struct LoginMachine: ProtocolCore, Sendable {
    /// The inputs.
    public enum Input: Hashable, Sendable {
        /// The application wants to be logged in.
        case login
        /// The application wants to be logged out, or to stop trying.
        case logout
        /// The service took us in.
        case succeeded
        /// It did not, or was not there.
        case failed(ServiceFailure)
        /// The machine's network has changed: what was waiting is tried at once, and what is under way is tried again.
        case networkChanged
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    /// The outputs.
    public enum Output: Hashable, Sendable {
        /// Ask the service; `attempt` counts from 1 for each login.
        case sendLogin(attempt: Int)
        /// The next attempt comes after `delay`; for the log.
        case retrying(after: Duration, because: SignalingError)
        case loggedIn
        /// Reported once; nothing more is tried.
        case loginFailed(SignalingError)
        case loggedOut
    }

    enum State: Hashable, Sendable {
        case loggedOut
        case asking(attempt: Int, giveUpAt: Instant?)
        /// Not before the service said; `until` is when the next attempt comes by itself.
        case waiting(attempt: Int, until: Instant, notBefore: Instant, giveUpAt: Instant?)
        case loggedIn
        case refused
    }

    var current = State.loggedOut
    private let patience: Duration?
    private var backoff: ReconnectBackoff

    /// Makes a machine that is logged out.
    ///
    /// - Parameters:
    ///   - patience: How long to retry while the service fails; `nil` for ever.
    ///   - seed: Decides the jitter of the waits.
    public init(patience: Duration? = nil, seed: UInt64) {
        self.patience = patience
        backoff = ReconnectBackoff(seed: seed)
    }

    /// Whether the service knows us.
    public var isLoggedIn: Bool { current == .loggedIn }

    /// When `handle` must next be called even if nothing happens.
    public var nextDeadline: Instant? {
        switch current {
        case .waiting(_, let until, _, _): until
        case .loggedOut, .asking, .loggedIn, .refused: nil
        }
    }

    /// Takes one input.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch (current, input) {
        case (.loggedOut, .login), (.refused, .login):
            backoff.reset()
            ask(attempt: 1, giveUpAt: patience.map(now.advanced(by:)), into: &outbox)

        case (.asking, .succeeded):
            current = .loggedIn
            outbox.append(.loggedIn)
        case (.asking(let attempt, let giveUpAt), .failed(let failure)):
            retry(attempt: attempt, giveUpAt: giveUpAt, after: failure, at: now, into: &outbox)

        case (.waiting(let attempt, let until, _, let giveUpAt), .timerFired) where now >= until:
            ask(attempt: attempt + 1, giveUpAt: giveUpAt, into: &outbox)

        case (.asking(let attempt, let giveUpAt), .networkChanged):
            ask(attempt: attempt + 1, giveUpAt: giveUpAt, into: &outbox)
        case (.waiting(let attempt, _, let notBefore, let giveUpAt), .networkChanged):
            guard now < notBefore else { return ask(attempt: attempt + 1, giveUpAt: giveUpAt, into: &outbox) }
            current = .waiting(attempt: attempt, until: notBefore, notBefore: notBefore, giveUpAt: giveUpAt)

        case (.asking, .logout), (.waiting, .logout), (.loggedIn, .logout):
            current = .loggedOut
            outbox.append(.loggedOut)

        case (.asking, .login), (.waiting, .login), (.loggedIn, .login):
            break  // Done, or on its way.
        case (.loggedOut, .logout), (.refused, .logout):
            current = .loggedOut
        case (_, .succeeded), (_, .failed), (_, .timerFired), (_, .networkChanged):
            break  // A late answer, woken early, or nothing is under way.
        }
    }

    private mutating func ask(attempt: Int, giveUpAt: Instant?, into outbox: inout [Output]) {
        current = .asking(attempt: attempt, giveUpAt: giveUpAt)
        outbox.append(.sendLogin(attempt: attempt))
    }

    private mutating func retry(
        attempt: Int, giveUpAt: Instant?, after failure: ServiceFailure, at now: Instant, into outbox: inout [Output]
    ) {
        if case .retry(let after) = failure.remedy {
            let delay = max(backoff.next(at: now, isBurden: failure.isBurden), after ?? .zero)
            let until = now.advanced(by: delay)
            if giveUpAt.map({ until <= $0 }) ?? true {
                current = .waiting(
                    attempt: attempt, until: until, notBefore: now.advanced(by: after ?? .zero), giveUpAt: giveUpAt)
                outbox.append(.retrying(after: delay, because: failure.error))
                return
            }
        }
        current = .refused
        outbox.append(.loginFailed(failure.error))
    }
}
