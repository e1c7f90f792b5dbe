public import Core

/// Renews an access token before it ends, one renewal at a time however many need it (contract AUTH-4).
///
/// It knows nothing of the token itself: only until when it is good.
public struct TokenMachine: ProtocolCore, Sendable {
    /// The inputs.
    public enum Input: Hashable, Sendable {
        /// There is a token, valid for `lifetime`; `nil` until it is refused.
        case granted(lifetime: Duration?)
        /// The service says that it ends soon.
        case endsSoon
        /// The service refused it.
        case refused
        /// There is no new one.
        case renewalFailed(ServiceFailure)
        /// There is no token any more, and none is needed.
        case forget
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    /// The outputs.
    public enum Output: Hashable, Sendable {
        /// Get a new token: a `granted` or `renewalFailed` is to follow.
        case renew
        /// The next attempt comes after `delay`; for the log.
        case retrying(after: Duration, because: SignalingError)
        /// The token has expired, or was refused, and there is no new one. Emitted once.
        case expired(SignalingError)
    }

    enum State: Hashable, Sendable {
        case none
        case good(until: Instant?, renewal: Instant?)
        /// `isRefused`: the service has refused the old one already.
        case renewing(until: Instant?, isRefused: Bool)
        case waiting(until: Instant?, retry: Instant, isRefused: Bool)
        /// Nothing helps, but the token is good for some time yet.
        case ending(until: Instant, SignalingError)
        case expired
    }

    var current = State.none
    private var backoff: Backoff

    /// Makes a machine without a token; `seed` decides the jitter of its waits.
    public init(seed: UInt64) { backoff = Backoff(floor: .seconds(1), ceiling: .seconds(60), seed: seed) }

    /// How long before its end a token of this lifetime is renewed: a fifth of it, and no more than five minutes.
    public static func lead(for lifetime: Duration) -> Duration { min(max(lifetime, .zero) * 0.2, .seconds(300)) }

    /// Whether a renewal is under way.
    public var isRenewing: Bool {
        guard case .renewing = current else { return false }
        return true
    }

    /// Whether the token has expired and there is no new one.
    public var isExpired: Bool { current == .expired }

    /// When `handle` must next be called even if nothing happens.
    public var nextDeadline: Instant? {
        switch current {
        case .none, .renewing, .expired: nil
        case .good(_, let renewal): renewal
        case .waiting(_, let retry, _): retry
        case .ending(let until, _): until
        }
    }

    /// Takes one input.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch (current, input) {
        case (_, .granted(let lifetime)):
            backoff.reset()
            let until = lifetime.map { now.advanced(by: max($0, .zero)) }
            let renewal = lifetime.map { now.advanced(by: max($0 - Self.lead(for: $0), .seconds(1))) }
            current = .good(until: until, renewal: renewal)
        case (_, .forget):
            current = .none

        case (.good(let until, let renewal?), .timerFired) where now >= renewal:
            current = .renewing(until: until, isRefused: false)
            outbox.append(.renew)
        case (.good(let until, _), .endsSoon):
            current = .renewing(until: until, isRefused: false)
            outbox.append(.renew)
        case (.good(let until, _), .refused):
            current = .renewing(until: until, isRefused: true)
            outbox.append(.renew)
        case (.ending(_, let error), .refused):
            expire(error, into: &outbox)
        case (.renewing(let until, _), .refused):
            current = .renewing(until: until, isRefused: true)
        case (.waiting(let until, let retry, _), .refused):
            current = .waiting(until: until, retry: retry, isRefused: true)

        case (.renewing(let until, let isRefused), .renewalFailed(let failure)):
            fail(failure, until, isRefused, at: now, into: &outbox)
        case (.waiting(let until, let retry, let isRefused), .timerFired) where now >= retry:
            current = .renewing(until: until, isRefused: isRefused)
            outbox.append(.renew)
        case (.ending(let until, let error), .timerFired) where now >= until:
            expire(error, into: &outbox)

        case (.none, _), (.expired, _), (_, .renewalFailed), (_, .endsSoon), (_, .timerFired):
            break  // Nothing to renew, out of turn, or woken early.
        }
    }

    private mutating func fail(
        _ failure: ServiceFailure, _ until: Instant?, _ isRefused: Bool, at now: Instant, into outbox: inout [Output]
    ) {
        if case .retry(let after) = failure.remedy {
            let delay = max(backoff.next(), after ?? .zero)
            current = .waiting(until: until, retry: now.advanced(by: delay), isRefused: isRefused)
            outbox.append(.retrying(after: delay, because: failure.error))
        } else if let until, now < until, !isRefused {
            current = .ending(until: until, failure.error)
        } else {
            expire(failure.error, into: &outbox)
        }
    }

    private mutating func expire(_ error: SignalingError, into outbox: inout [Output]) {
        current = .expired
        outbox.append(
            .expired(
                SignalingError(
                    .tokenExpired, activity: "stay logged in",
                    cause: "the access token has expired and there is no new one: \(error)",
                    advice: "Log in again.", traceID: error.traceID)))
    }
}
