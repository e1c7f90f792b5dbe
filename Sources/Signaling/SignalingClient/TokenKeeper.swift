internal import CallControl
internal import SignalWire
internal import Core

/// The login that the device has: its access token is renewed before it ends, and replaced when the exchange refuses it
/// (contract AUTH-4, AUTH-11).
///
/// However many attempts at a connection need another token, one renewal is made.
struct TokenKeeper {
    enum Output: Hashable {
        /// Get a token in place of this login's. ``renewed(from:_:at:into:)`` is to follow.
        case renew(RESTClient.Login, isRefused: Bool)
        /// The next attempt comes after `delay`; for the log.
        case retrying(after: Duration, because: SignalingError)
        /// These attempts asked for another token.
        case replaced(attempts: [Int], Result<RESTClient.Login, ServiceFailure>)
        /// The token has ended and there is no other one. The login is gone.
        case lost(ServiceFailure)
    }

    /// A token that the exchange refused on an established connection, and when.
    private struct Rejection {
        /// Which of the tokens that this device has had; a renewal may give the same text again.
        let generation: Int
        let at: Instant
    }

    private var held: RESTClient.Login?
    private var machine: TokenMachine
    /// Counts the tokens that this device has had.
    private var generation = 0
    /// Whether the newest one has opened a session, or was kept from a run in which it had.
    private var wasGood = false
    /// Attempts at a connection that wait for another token.
    private var waiting: [Int] = []
    private var lastFailure: ServiceFailure?
    private var rejection: Rejection?

    /// Whether there can be another token than the present one.
    let canRenew: Bool
    /// A token that is refused again within this time is not renewed again.
    private let stableAfter: Duration

    init(canRenew: Bool, stableAfter: Duration, seed: UInt64) {
        self.canRenew = canRenew
        self.stableAfter = stableAfter
        machine = TokenMachine(seed: seed)
    }

    /// The login; nil while the device is logged out.
    var login: RESTClient.Login? { held }

    /// Why there is no login.
    var absence: ServiceFailure { lastFailure ?? Self.notLoggedIn }

    /// Whether the exchange has refused the token on an established connection.
    var isRejected: Bool { rejection?.generation == generation }

    /// When ``wake(at:into:)`` must next be called.
    var nextDeadline: Instant? { machine.nextDeadline }

    /// There is a login.
    ///
    /// - Parameter isKept: Whether it is from an earlier run.
    mutating func take(_ login: RESTClient.Login, isKept: Bool, at now: Instant, into outbox: inout [Output]) {
        held = login
        generation += 1
        wasGood = isKept
        handle(.granted(lifetime: login.lifetime), at: now, into: &outbox)
        answer(.success(login), into: &outbox)
    }

    /// The present token has opened a session.
    mutating func confirm() { wasGood = true }

    /// An attempt found that the exchange refuses `token`.
    mutating func replace(_ token: Redacted<String>, for attempt: Int, at now: Instant, into outbox: inout [Output]) {
        guard let held else { return outbox.append(.replaced(attempts: [attempt], .failure(Self.notLoggedIn))) }
        guard held.token == token else {
            return outbox.append(.replaced(attempts: [attempt], .success(held)))  // It has been replaced meanwhile.
        }
        waiting.append(attempt)
        handle(.refused, at: now, into: &outbox)
        if machine.isExpired { answer(.failure(absence), into: &outbox) }
    }

    /// Whether the outcome of a renewal of `old` still matters: the device has not logged out, or in again, meanwhile.
    func isRenewing(_ old: RESTClient.Login) -> Bool { held?.token == old.token }

    /// There is no token in place of the present one.
    mutating func renewalFailed(_ failure: ServiceFailure, at now: Instant, into outbox: inout [Output]) {
        lastFailure = failure
        handle(.renewalFailed(failure), at: now, into: &outbox)
        answer(.failure(failure), into: &outbox)
    }

    /// The exchange reports that the token expires soon.
    mutating func expire(soonAt now: Instant, into outbox: inout [Output]) { handle(.endsSoon, at: now, into: &outbox) }

    /// `nextDeadline` has come. Early calls are harmless.
    mutating func wake(at now: Instant, into outbox: inout [Output]) { handle(.timerFired, at: now, into: &outbox) }

    /// There is no login any more.
    mutating func forget(at now: Instant, into outbox: inout [Output]) {
        held = nil
        handle(.forget, at: now, into: &outbox)
    }

    /// Whether a connection that was closed because of its token is worth another one with a new token.
    ///
    /// Not if the token is fresh from a login or a renewal and has never been good: that would never end (AUTH-11).
    mutating func isWorthReplacing(at now: Instant) -> Bool {
        guard held != nil, canRenew, wasGood else { return false }
        defer { rejection = Rejection(generation: generation, at: now) }
        guard let rejection, rejection.generation != generation else { return true }
        return rejection.at.duration(to: now) > stableAfter
    }

    private mutating func handle(_ input: TokenMachine.Input, at now: Instant, into outbox: inout [Output]) {
        var outputs: [TokenMachine.Output] = []
        machine.handle(input, at: now, into: &outputs)
        for output in outputs {
            switch output {
            case .renew:
                if let held { outbox.append(.renew(held, isRefused: !waiting.isEmpty)) }
            case .retrying(let delay, let error):
                outbox.append(.retrying(after: delay, because: error))
            case .expired(let error):
                let failure = ServiceFailure(error, remedy: .none)
                lastFailure = failure
                held = nil
                answer(.failure(failure), into: &outbox)
                outbox.append(.lost(failure))
            }
        }
    }

    private mutating func answer(_ outcome: Result<RESTClient.Login, ServiceFailure>, into outbox: inout [Output]) {
        guard !waiting.isEmpty else { return }
        outbox.append(.replaced(attempts: waiting, outcome))
        waiting = []
    }

    private static let notLoggedIn = ServiceFailure(
        SignalingError(
            .notAuthenticated, activity: "connect", cause: "this device is not logged in", advice: "Log in first."),
        remedy: .none)
}

extension SignalingError {
    /// Whether the token was refused, so that another one may help.
    var isAboutToken: Bool { code == .tokenExpired || code == .tokenRejected }
}
