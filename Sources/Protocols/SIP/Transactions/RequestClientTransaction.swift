internal import Core

/// A request other than INVITE from its sender's side (RFC 3261 §17.1.2).
struct RequestClientTransaction {
    private enum State {
        /// Trying and Proceeding: timers E (`resend`) and F (`timeout`).
        case waiting(resend: Instant?, interval: Duration, timeout: Instant, isProceeding: Bool)
        /// Timer K.
        case completed(until: Instant)
        case terminated
    }

    let request: SIPRequest
    private let isReliable: Bool
    private let timers: TransactionTimers
    private var state: State

    init(_ request: SIPRequest, isReliable: Bool, timers: TransactionTimers, at now: Instant) {
        self.request = request
        self.isReliable = isReliable
        self.timers = timers
        state = .waiting(
            resend: isReliable ? nil : now.advanced(by: timers.t1), interval: timers.t1,
            timeout: now.advanced(by: timers.timeout), isProceeding: false)
    }

    var deadline: Instant? {
        switch state {
        case .waiting(let resend, _, let timeout, _): min(resend ?? timeout, timeout)
        case .completed(let until): until
        case .terminated: nil
        }
    }

    var isTerminated: Bool {
        if case .terminated = state { true } else { false }
    }

    /// Whether a final response has come.
    var isCompleted: Bool {
        if case .waiting = state { false } else { true }
    }

    mutating func receive(_ response: SIPResponse, at now: Instant, into effects: inout [TransactionEffect]) {
        guard case .waiting(let resend, let interval, let timeout, _) = state else { return }
        effects.append(.deliver(response))
        if response.isProvisional {
            state = .waiting(resend: resend, interval: interval, timeout: timeout, isProceeding: true)
        } else {
            state = isReliable ? .terminated : .completed(until: now.advanced(by: timers.t4))
        }
    }

    mutating func fire(at now: Instant, into effects: inout [TransactionEffect]) {
        guard let deadline, deadline <= now else { return }
        switch state {
        case .waiting(_, let interval, let timeout, let isProceeding) where timeout > now:
            effects.append(.transmit(.request(request)))
            let next = isProceeding ? timers.t2 : min(interval * 2, timers.t2)
            state = .waiting(
                resend: now.advanced(by: next), interval: next, timeout: timeout, isProceeding: isProceeding)
        case .waiting:
            state = .terminated
            effects.append(.timedOut)
        case .completed, .terminated: state = .terminated
        }
    }
}
