internal import Core

/// An action that a transaction asks of its table.
enum TransactionEffect {
    case transmit(SIPMessage)
    case deliver(SIPResponse)
    /// Timers B, C and F.
    case timedOut
    /// Timer H.
    case ackMissing
}

/// An INVITE from its sender's side (RFC 3261 §17.1.1, RFC 6026 §7.2).
struct InviteClientTransaction {
    private enum State {
        /// Timers A (`resend`) and B (`timeout`).
        case calling(resend: Instant?, interval: Duration, timeout: Instant)
        /// Timer C, or the end of what a CANCEL waits for.
        case proceeding(limit: Instant, isCancelled: Bool)
        /// Timer D.
        case completed(ack: SIPRequest, until: Instant)
        /// Timer M.
        case accepted(until: Instant)
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
        state = .calling(
            resend: isReliable ? nil : now.advanced(by: timers.t1), interval: timers.t1,
            timeout: now.advanced(by: timers.timeout))
    }

    var deadline: Instant? {
        switch state {
        case .calling(let resend, _, let timeout): min(resend ?? timeout, timeout)
        case .proceeding(let limit, _): limit
        case .completed(_, let until), .accepted(let until): until
        case .terminated: nil
        }
    }

    var isTerminated: Bool {
        if case .terminated = state { true } else { false }
    }

    /// Whether a final response has come.
    var isFinal: Bool {
        switch state {
        case .calling, .proceeding: false
        case .completed, .accepted, .terminated: true
        }
    }

    mutating func receive(_ response: SIPResponse, at now: Instant, into effects: inout [TransactionEffect]) {
        switch state {
        case .calling, .proceeding:
            if response.isProvisional {
                guard case .proceeding(_, true) = state else {
                    state = .proceeding(limit: now.advanced(by: timers.proceedingLimit), isCancelled: false)
                    return effects.append(.deliver(response))
                }
                effects.append(.deliver(response))
            } else if response.isSuccess {
                state = .accepted(until: now.advanced(by: timers.timeout))
                effects.append(.deliver(response))
            } else {
                let ack = Self.ack(of: request, response)
                effects += [.transmit(.request(ack)), .deliver(response)]
                state = isReliable ? .terminated : .completed(ack: ack, until: now.advanced(by: timers.d))
            }
        case .completed(let ack, _):
            if !response.isProvisional, !response.isSuccess { effects.append(.transmit(.request(ack))) }
        case .accepted:
            // Repetitions, and the answers of other forks.
            if response.isSuccess { effects.append(.deliver(response)) }
        case .terminated: break
        }
    }

    /// A CANCEL was sent: a final response is awaited for 64 × T1 from now (RFC 3261 §9.1).
    mutating func cancel(at now: Instant) {
        switch state {
        case .calling, .proceeding: state = .proceeding(limit: now.advanced(by: timers.timeout), isCancelled: true)
        case .completed, .accepted, .terminated: break
        }
    }

    mutating func fire(at now: Instant, into effects: inout [TransactionEffect]) {
        guard let deadline, deadline <= now else { return }
        switch state {
        case .calling(_, let interval, let timeout) where timeout > now:
            effects.append(.transmit(.request(request)))
            state = .calling(
                resend: now.advanced(by: interval * 2), interval: interval * 2, timeout: timeout)
        case .calling, .proceeding:
            state = .terminated
            effects.append(.timedOut)
        case .completed, .accepted, .terminated: state = .terminated
        }
    }

    /// The ACK of a refusal, which belongs to the same transaction (RFC 3261 §17.1.1.3).
    private static func ack(of request: SIPRequest, _ response: SIPResponse) -> SIPRequest {
        var ack = SIPRequest(method: .ack, uri: request.uri)
        if let via = request.headers.topVia { ack.headers.append("Via", via.description) }
        ack.headers.append("Max-Forwards", "70")
        for route in request.headers.lines("Route") { ack.headers.append("Route", route) }
        ack.headers.append("From", request.headers["From"] ?? "")
        ack.headers.append("To", response.headers["To"] ?? "")
        ack.headers.append("Call-ID", request.headers["Call-ID"] ?? "")
        ack.headers.append("CSeq", CSeq(request.headers.sequence?.number ?? 0, .ack).description)
        return ack
    }
}
