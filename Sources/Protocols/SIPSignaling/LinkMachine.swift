internal import CallControl
public import Core
public import SIP

/// Keeps one flow to a server: tries the server's addresses in turn, keeps the flow alive, notices its end, and waits longer
/// and longer while there is no server (RFC 5626 §4.4, RFC 3263 §4.3).
public struct LinkMachine: ProtocolCore, Sendable {
    /// An input.
    public enum Input: Sendable {
        /// Open a flow, and keep one.
        case begin
        /// The answer to ``Output/resolve``: the server's addresses, the best first; empty if there is none.
        case resolved([SIPTarget])
        /// The answer to ``Output/open(_:_:)``.
        case opened(SIPFlow)
        /// The flow of that number could not be opened, or has ended.
        case failed(Int)
        /// The peer answered a ping by the flow of that number.
        case ponged(Int)
        /// Something came by the flow of that number.
        case heard(Int)
        /// The flow is good: the server served a request. With the interval of keepalives in seconds that it asks for,
        /// and whether it promises to answer pings (RFC 5626 §5).
        case served(keepaliveSeconds: UInt32?, answersPings: Bool)
        /// The flow is in use without a request that the server must serve first; its first message proves it.
        case inUse
        /// The server at this address does not serve us: use the next one, if there is one.
        case notServed
        /// A server reported, on the flow of that number, the source address of our datagrams (RFC 5389).
        case mapped(Int, SocketAddress)
        /// The network has changed. With the address from which packets to the server leave now; nil if there is no route.
        case networkChanged(source: SIPHost?)
        /// Close the flow, and open none.
        case end
        /// ``LinkMachine/nextDeadline`` has come. Early calls are harmless.
        case timerFired
    }

    /// An output.
    public enum Output: Equatable, Sendable {
        /// Look the server up.
        case resolve
        /// Open a flow of that number.
        case open(Int, SIPTarget)
        /// Close it.
        case close(Int)
        /// Keep the flow alive.
        case ping(SIPFlow, Keepalive)
        /// There is a flow.
        case up(SIPFlow, SIPTarget)
        /// It is gone.
        case down(SIPFlow)
        /// No address of the server is usable; all are tried again after that time.
        case unreachable(retryAfter: Duration, Obstacle)
    }

    /// Why no address of the server is usable; the failure of the last one.
    public enum Obstacle: Hashable, Sendable {
        /// There is none.
        case noAddress
        /// A flow to it could not be opened, or not within ``LinkMachine/openTimeout``.
        case notOpened(SIPTarget)
        /// There was a flow, and no answer on it.
        case notServed(SIPTarget)
    }

    /// How a flow is kept alive.
    public enum Keepalive: Hashable, Sendable {
        /// Two line ends (RFC 5626 §3.5.1).
        case lineEnds
        /// A binding request of STUN (RFC 5626 §3.5.2).
        case binding
        /// A ping of a WebSocket (RFC 6455 §5.5.2).
        case webSocketPing
    }

    private enum State {
        case idle
        case resolving
        case opening(Int, SIPTarget, remaining: [SIPTarget], deadline: Instant)
        case open(Open)
        case waiting(until: Instant)
    }

    private struct Open {
        let flow: SIPFlow
        let target: SIPTarget
        let remaining: [SIPTarget]
        let since: Instant
        var interval: Duration
        var nextPing: Instant
        var keepalive: Keepalive
        /// Until when a ping is to be answered.
        var pongDeadline: Instant?
        /// When a datagram that has no answer yet is repeated, and how often it has been.
        var repeatAt: Instant?
        var repeats = 0
        /// Unanswered pings in a row.
        var unanswered = 0
        /// Whether silence means that the flow is dead.
        var answersPings = false
        /// The server has served us on it. Until then it counts like a flow that could not be opened.
        var isGood = false
        /// Whether any message of the server proves the flow, because no request has to be served first.
        var isInUse = false
        /// The source address of our datagrams, as the server sees it.
        var mapped: SocketAddress?

        init(_ flow: SIPFlow, _ target: SIPTarget, remaining: [SIPTarget], _ interval: Duration, _ now: Instant) {
            self.flow = flow
            self.target = target
            self.remaining = remaining
            self.interval = interval
            since = now
            nextPing = now.advanced(by: interval)
            keepalive = flow.transport.isWebSocket ? .webSocketPing : .lineEnds
            // A WebSocket peer must answer pings.
            answersPings = flow.transport.isWebSocket
        }

        /// The server has sent a message.
        mutating func hear() {
            pongDeadline = nil
            repeatAt = nil
        }
    }

    /// Maximum time for a flow to open.
    public static let openTimeout = Duration.seconds(10)
    /// A flow that lasts for less does not count as good: waits continue to grow.
    private static let briefly = Duration.seconds(10)
    /// Maximum wait for the answer to a ping (RFC 5626 §4.4.1), unless two fifths of the interval are less.
    private static let pongTimeout = Duration.seconds(10)
    /// Until a binding request is repeated for the first time; then twice as long each time.
    private static let repeatAfter = Duration.milliseconds(500)
    private static let mostRepeats = 4
    /// Unanswered binding requests in a row after which line ends replace them.
    private static let mostUnanswered = 2

    private let keepalive: Duration
    private var backoff: ReconnectBackoff
    private var avoidance = TargetAvoidance()
    private var state = State.idle
    private var count = 0

    /// Makes a link that is not begun.
    public init(keepalive: Duration, seed: UInt64) {
        self.keepalive = keepalive
        backoff = ReconnectBackoff(seed: seed)
    }

    /// The flow, if there is one.
    public var flow: SIPFlow? {
        guard case .open(let open) = state else { return nil }
        return open.flow
    }

    /// Whether another address of the server is left to be tried.
    public var hasAlternative: Bool {
        guard case .open(let open) = state else { return false }
        return !open.remaining.isEmpty
    }

    /// The number of the next flow; an owner that opens flows of its own takes one.
    public mutating func takeNumber() -> Int {
        count += 1
        return count
    }

    /// When ``handle(_:at:into:)`` must next be called.
    public var nextDeadline: Instant? {
        switch state {
        case .idle, .resolving: nil
        case .opening(_, _, _, let deadline): deadline
        case .open(let open): min(open.nextPing, open.pongDeadline ?? open.nextPing, open.repeatAt ?? open.nextPing)
        case .waiting(let until): until
        }
    }

    /// Takes one input.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch (state, input) {
        case (.idle, .begin):
            state = .resolving
            outbox.append(.resolve)
        case (.resolving, .resolved(let targets)):
            open(avoidance.ordered(targets, at: now)[...], orElse: .noAddress, now, &outbox)
        case (.opening(let number, let target, let remaining, _), .opened(let flow)) where flow.id == number:
            state = .open(Open(flow, target, remaining: remaining, keepalive, now))
            outbox.append(.up(flow, target))
        case (.opening(let number, let target, let remaining, _), .failed(let failed)) where failed == number:
            avoidance.avoid(target, at: now)
            open(remaining[...], orElse: .notOpened(target), now, &outbox)
        case (.open(let open), .failed(let number)) where number == open.flow.id: lose(open, now, &outbox)
        case (.open(var open), .ponged(let number)) where number == open.flow.id:
            // Line ends in a datagram may be the server's own keepalive.
            open.answersPings = open.answersPings || open.flow.transport.isReliable
            open.hear()
            if open.flow.transport.isReliable { open.unanswered = 0 }
            if open.isInUse { prove(&open) }
            state = .open(open)
        case (.open(var open), .heard(let number)) where number == open.flow.id:
            open.hear()
            if open.isInUse { prove(&open) }
            state = .open(open)
        case (.open(let open), .mapped(let number, let address)) where number == open.flow.id:
            map(open, address, now, &outbox)
        case (.open(var open), .inUse):
            open.isInUse = true
            ping(open, now, &outbox)
        case (.open(let open), .served(let seconds, let answersPings)):
            served(open, seconds, answersPings, now, &outbox)
        case (.open(let old), .notServed):
            avoidance.avoid(old.target, at: now)
            outbox += [.close(old.flow.id), .down(old.flow)]
            leave(old, now)
            open(old.remaining[...], orElse: .notServed(old.target), now, &outbox)
        case (_, .networkChanged(let source)): change(source, now, &outbox)
        case (_, .end): end(&outbox)
        case (_, .timerFired): fire(now, &outbox)
        case (_, .begin), (_, .resolved), (_, .opened), (_, .failed), (_, .ponged), (_, .heard), (_, .mapped),
            (_, .served), (_, .inUse), (_, .notServed):
            // The input belongs to a flow that was given up. A flow that opens late is closed.
            if case .opened(let flow) = input { outbox.append(.close(flow.id)) }
        }
    }

    private mutating func served(
        _ open: Open, _ seconds: UInt32?, _ answersPings: Bool, _ now: Instant, _ outbox: inout [Output]
    ) {
        var open = open
        prove(&open)
        avoidance.forgive(open.target)
        // Between 80 and 100 % of the interval that the server asks for (RFC 5626 §4.4): here 90 %.
        if let seconds {
            let bounds = SIPLimits.keepaliveSeconds
            let asked = Int64(min(max(seconds, bounds.lowerBound), bounds.upperBound))
            open.interval = .seconds(max(Int64(bounds.lowerBound), asked * 9 / 10))
        }
        if open.flow.transport.isReliable {
            open.answersPings = open.answersPings || answersPings
        } else if answersPings, open.unanswered < Self.mostUnanswered {
            // Datagrams may be lost, and a server may promise more than it does, so silence counts only after its first
            // answer.
            open.keepalive = .binding
        }
        state = .open(open)
        ping(open, now, &outbox)
    }

    /// A changed mapped address means that the path back to us has changed: the flow is dead (RFC 5626 §4.4.2).
    private mutating func map(_ open: Open, _ address: SocketAddress, _ now: Instant, _ outbox: inout [Output]) {
        var open = open
        open.answersPings = true
        open.unanswered = 0
        open.hear()
        if open.isInUse { prove(&open) }
        if let mapped = open.mapped, mapped != address { return reopen(open, now, &outbox) }
        open.mapped = address
        state = .open(open)
    }

    /// Reopens a flow from an address that is not ours any more. On any other flow, sends a ping at once. A wait ends.
    private mutating func change(_ source: SIPHost?, _ now: Instant, _ outbox: inout [Output]) {
        guard let source else { return }
        switch state {
        case .idle: break
        case .resolving: outbox.append(.resolve)
        case .opening(let number, _, _, _):
            outbox.append(.close(number))
            state = .resolving
            outbox.append(.resolve)
        case .waiting:
            backoff.reset()
            state = .resolving
            outbox.append(.resolve)
        case .open(let open):
            if open.flow.localHost == source { ping(open, now, &outbox) } else { reopen(open, now, &outbox) }
        }
    }

    /// Replaces a flow that is dead although the server is not.
    private mutating func reopen(_ open: Open, _ now: Instant, _ outbox: inout [Output]) {
        outbox += [.close(open.flow.id), .down(open.flow)]
        leave(open, now)
        backoff.loseLink(at: now)
        state = .resolving
        outbox.append(.resolve)
    }

    /// The server serves us.
    private func prove(_ open: inout Open) { open.isGood = true }

    /// Gives a flow up. If it was good for a while, earlier failures no longer count. A server that serves us and ends
    /// each flow at once is asked ever more rarely, like one that does not serve us.
    private mutating func leave(_ open: Open, _ now: Instant) {
        guard open.isGood else { return }
        if open.since.duration(to: now) >= Self.briefly { backoff.reset() }
        backoff.loseLink(at: now)
    }

    private mutating func open(
        _ targets: ArraySlice<SIPTarget>, orElse obstacle: Obstacle, _ now: Instant, _ outbox: inout [Output]
    ) {
        guard let target = targets.first else {
            let wait = backoff.next(at: now, isBurden: false)
            state = .waiting(until: now.advanced(by: wait))
            return outbox.append(.unreachable(retryAfter: wait, obstacle))
        }
        let number = takeNumber()
        state = .opening(
            number, target, remaining: Array(targets.dropFirst()), deadline: now.advanced(by: Self.openTimeout))
        outbox.append(.open(number, target))
    }

    /// The flow has ended. Not all devices of a server that restarts may come back at once.
    private mutating func lose(_ open: Open, _ now: Instant, _ outbox: inout [Output]) {
        outbox.append(.down(open.flow))
        avoidance.avoid(open.target, at: now)
        leave(open, now)
        let wait = backoff.next(at: now, isBurden: !open.isGood || open.since.duration(to: now) < Self.briefly)
        state = .waiting(until: now.advanced(by: wait))
    }

    private mutating func ping(_ open: Open, _ now: Instant, _ outbox: inout [Output]) {
        var open = open
        // Line ends in datagrams keep a NAT's mapping and get no answer. Where an answer is expected, its absence is
        // known before the interval ends.
        let isAnswered = open.flow.transport.isReliable || open.keepalive == .binding
        open.nextPing = now.advanced(by: isAnswered ? open.interval * 3 / 5 : open.interval)
        if isAnswered, open.pongDeadline == nil {
            open.pongDeadline = now.advanced(by: min(Self.pongTimeout, open.interval * 2 / 5))
        }
        if open.keepalive == .binding {
            open.repeats = 0
            open.repeatAt = now.advanced(by: Self.repeatAfter)
        }
        state = .open(open)
        outbox.append(.ping(open.flow, open.keepalive))
    }

    private mutating func repeatPing(_ open: inout Open, _ now: Instant, _ outbox: inout [Output]) {
        open.repeats += 1
        open.repeatAt =
            open.repeats < Self.mostRepeats ? now.advanced(by: Self.repeatAfter * (1 << open.repeats)) : nil
        outbox.append(.ping(open.flow, open.keepalive))
    }

    private mutating func end(_ outbox: inout [Output]) {
        switch state {
        case .opening(let number, _, _, _): outbox.append(.close(number))
        case .open(let open): outbox += [.close(open.flow.id), .down(open.flow)]
        case .idle, .resolving, .waiting: break
        }
        state = .idle
        backoff.reset()
    }

    private mutating func fire(_ now: Instant, _ outbox: inout [Output]) {
        switch state {
        case .idle, .resolving: break
        case .opening(let number, let target, let remaining, let deadline):
            guard deadline <= now else { return }
            avoidance.avoid(target, at: now)
            outbox.append(.close(number))
            open(remaining[...], orElse: .notOpened(target), now, &outbox)
        case .open(var open):
            if let deadline = open.pongDeadline, deadline <= now {
                guard !open.answersPings else {
                    outbox.append(.close(open.flow.id))
                    return lose(open, now, &outbox)
                }
                // A server that knows nothing of pings.
                open.pongDeadline = nil
                open.repeatAt = nil
                open.unanswered += 1
                if open.keepalive == .binding, open.unanswered >= Self.mostUnanswered { open.keepalive = .lineEnds }
                state = .open(open)
            }
            if let due = open.repeatAt, due <= now {
                repeatPing(&open, now, &outbox)
                state = .open(open)
            }
            if open.nextPing <= now { ping(open, now, &outbox) }
        case .waiting(let until):
            guard until <= now else { return }
            state = .resolving
            outbox.append(.resolve)
        }
    }
}

/// Addresses of a server that failed lately; other addresses are tried before them (RFC 3263 §4.3).
private struct TargetAvoidance: Sendable {
    /// How long an address is tried last.
    static let duration = Duration.seconds(120)
    /// Addresses that are remembered; with more, the one that expires first is dropped.
    static let capacity = ServerLocator.mostTargets

    private var until: [SIPTarget: Instant] = [:]

    mutating func avoid(_ target: SIPTarget, at now: Instant) {
        if until.count >= Self.capacity, let oldest = until.min(by: { $0.value < $1.value })?.key {
            until[oldest] = nil
        }
        until[target] = now.advanced(by: Self.duration)
    }

    /// It works.
    mutating func forgive(_ target: SIPTarget) { until[target] = nil }

    /// The same addresses, those to be avoided at the end; otherwise in their order.
    mutating func ordered(_ targets: [SIPTarget], at now: Instant) -> [SIPTarget] {
        until = until.filter { $0.value > now }
        return targets.filter { until[$0] == nil } + targets.filter { until[$0] != nil }
    }
}
