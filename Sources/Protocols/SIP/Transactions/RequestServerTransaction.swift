internal import Core

/// A request other than INVITE and ACK from its receiver's side (RFC 3261 §17.2.2).
struct RequestServerTransaction {
    private enum State {
        /// Trying and Proceeding. The user's answer is awaited for 64 × T1; after that the sender has given up.
        case waiting(last: SIPResponse?, limit: Instant)
        /// Timer J.
        case completed(SIPResponse, until: Instant)
        case terminated
    }

    private let isReliable: Bool
    private let timers: TransactionTimers
    private var state: State

    init(isReliable: Bool, timers: TransactionTimers, at now: Instant) {
        self.isReliable = isReliable
        self.timers = timers
        state = .waiting(last: nil, limit: now.advanced(by: timers.timeout))
    }

    var deadline: Instant? {
        switch state {
        case .waiting(_, let limit): limit
        case .completed(_, let until): until
        case .terminated: nil
        }
    }

    var isTerminated: Bool {
        if case .terminated = state { true } else { false }
    }

    /// The final answer, once there is one.
    var answer: SIPResponse? {
        guard case .completed(let response, _) = state else { return nil }
        return response
    }

    /// Whether the user has not answered.
    var isWaiting: Bool {
        if case .waiting = state { true } else { false }
    }

    func repeated(into effects: inout [TransactionEffect]) {
        switch state {
        case .waiting(let last?, _), .completed(let last, _): effects.append(.transmit(.response(last)))
        case .waiting(nil, _), .terminated: break
        }
    }

    mutating func respond(_ response: SIPResponse, at now: Instant, into effects: inout [TransactionEffect]) {
        guard case .waiting(_, let limit) = state else { return }
        effects.append(.transmit(.response(response)))
        if response.isProvisional {
            state = .waiting(last: response, limit: limit)
        } else {
            state = isReliable ? .terminated : .completed(response, until: now.advanced(by: timers.timeout))
        }
    }

    mutating func fire(at now: Instant) {
        if let deadline, deadline <= now { state = .terminated }
    }
}
