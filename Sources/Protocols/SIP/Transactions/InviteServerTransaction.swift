internal import Core

/// An INVITE from its receiver's side (RFC 3261 §17.2.1, RFC 6026 §7.1).
struct InviteServerTransaction {
    private enum State {
        case proceeding(last: SIPResponse?, tryingAt: Instant?)
        /// Timers G (`resend`) and H (`timeout`).
        case completed(SIPResponse, resend: Instant?, interval: Duration, timeout: Instant)
        /// Timer I.
        case confirmed(until: Instant)
        /// Timer L.
        case accepted(until: Instant)
        case terminated
    }

    /// The INVITE. Its contents are dropped once it has a final answer, which alone is kept.
    private(set) var request: SIPRequest
    private let isReliable: Bool
    private let timers: TransactionTimers
    /// When it is answered without its user.
    private let limit: Instant
    private var state: State

    init(_ request: SIPRequest, isReliable: Bool, timers: TransactionTimers, at now: Instant) {
        self.request = request
        self.isReliable = isReliable
        self.timers = timers
        limit = now.advanced(by: timers.answerLimit)
        state = .proceeding(last: nil, tryingAt: now.advanced(by: timers.trying))
    }

    var deadline: Instant? {
        switch state {
        case .proceeding(_, let tryingAt): min(tryingAt ?? limit, limit)
        case .completed(_, let resend, _, let timeout): min(resend ?? timeout, timeout)
        case .confirmed(let until), .accepted(let until): until
        case .terminated: nil
        }
    }

    var isTerminated: Bool {
        if case .terminated = state { true } else { false }
    }

    /// The final answer, if it is kept.
    var answer: SIPResponse? {
        guard case .completed(let response, _, _, _) = state else { return nil }
        return response
    }

    /// Whether it has no final answer.
    var isProceeding: Bool {
        if case .proceeding = state { true } else { false }
    }

    /// The same INVITE again.
    func repeated(into effects: inout [TransactionEffect]) {
        switch state {
        case .proceeding(let last?, _): effects.append(.transmit(.response(last)))
        case .completed(let response, _, _, _): effects.append(.transmit(.response(response)))
        case .proceeding(nil, _), .confirmed, .accepted, .terminated: break
        }
    }

    /// An ACK with the INVITE's branch.
    ///
    /// - Returns: Whether it goes to the user, because the INVITE was accepted.
    mutating func acknowledge(at now: Instant) -> Bool {
        switch state {
        case .completed: state = isReliable ? .terminated : .confirmed(until: now.advanced(by: timers.t4))
        case .accepted: return true
        case .proceeding, .confirmed, .terminated: break
        }
        return false
    }

    mutating func respond(_ response: SIPResponse, at now: Instant, into effects: inout [TransactionEffect]) {
        switch state {
        case .proceeding:
            if !response.isProvisional { request = SIPRequest(method: .invite, uri: .other(scheme: "x", rest: "x")) }
            if response.isProvisional {
                state = .proceeding(last: response, tryingAt: nil)
            } else if response.isSuccess {
                state = .accepted(until: now.advanced(by: timers.timeout))
            } else {
                state = .completed(
                    response, resend: isReliable ? nil : now.advanced(by: timers.t1), interval: timers.t1,
                    timeout: now.advanced(by: timers.timeout))
            }
            effects.append(.transmit(.response(response)))
        case .accepted:
            // The user repeats its 2xx until the ACK comes (RFC 3261 §13.3.1.4).
            if response.isSuccess { effects.append(.transmit(.response(response))) }
        case .completed, .confirmed, .terminated: break
        }
    }

    /// - Parameter tag: A new tag for `To`, for an answer to an INVITE that had none yet.
    mutating func fire(at now: Instant, tag: @autoclosure () -> String, into effects: inout [TransactionEffect]) {
        guard let deadline, deadline <= now else { return }
        switch state {
        case .proceeding(let last, _) where limit <= now:
            let known = last?.headers.to?.tag
            respond(SIPResponse(480, to: request, toTag: known ?? tag()), at: now, into: &effects)
        case .proceeding:
            respond(SIPResponse(100, to: request), at: now, into: &effects)
        case .completed(let response, _, let interval, let timeout) where timeout > now:
            let next = min(interval * 2, timers.t2)
            state = .completed(response, resend: now.advanced(by: next), interval: next, timeout: timeout)
            effects.append(.transmit(.response(response)))
        case .completed:
            state = .terminated
            effects.append(.ackMissing)
        case .confirmed, .accepted, .terminated: state = .terminated
        }
    }
}
