public import Core

/// Traces on their way to a collector: in batches, one request at a time, with retries that end. What does not fit is dropped, the
/// oldest first, and counted.
///
/// A request is repeated if the collector asks for that (429, 502, 503, 504) or was not reached (OTLP 1, "OTLP/HTTP Response"); any other
/// answer is final.
public struct TraceQueue: ProtocolCore, Sendable {
    /// The limits.
    public struct Limits: Hashable, Sendable {
        /// Traces that wait or are being sent.
        public var traces = 1_000
        /// Their bytes.
        public var bytes = 4 << 20
        /// Traces of one request.
        public var batchTraces = 100
        /// Bytes of one request, unless one trace alone has more.
        public var batchBytes = 512 << 10
        /// How long the first trace of a request waits for others.
        public var delay = Duration.seconds(1)
        /// Requests for one batch.
        public var attempts = 5
        /// The wait after the first request in vain, which doubles each time; half of each is random.
        public var wait = Duration.seconds(1)

        /// Makes the usual ones.
        public init() {}
    }

    /// What became of a request.
    public enum Answer: Hashable, Sendable {
        case accepted
        /// The collector cannot take it now, and says how long to wait, if it does.
        case busy(Duration?)
        /// It does not take it.
        case refused
        /// It was not reached, or did not answer in time.
        case unreachable

        /// What an HTTP status says.
        public init(status: Int, retryAfter: Duration?) {
            switch status {
            case 200..<300: self = .accepted
            case 429, 502, 503, 504: self = .busy(retryAfter)
            default: self = .refused
            }
        }
    }

    /// The inputs.
    public enum Input: Sendable {
        /// A call has ended: the spans of its trace, encoded.
        case add([UInt8])
        /// The answer to what was sent last.
        case answered(Answer)
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
        /// The process ends: everything is sent at once, and nothing twice. What is added later is dropped.
        case finish
    }

    /// The outputs.
    public enum Output: Hashable, Sendable {
        /// Send a request with these traces. ``Input/answered(_:)`` follows.
        case send([[UInt8]])
        /// Traces were dropped: their collector refuses them, or was tried in vain.
        case gaveUp(traces: Int)
        /// After ``Input/finish``: nothing is left.
        case finished
    }

    /// What became of traces, since the start.
    public struct Counts: Hashable, Sendable {
        /// The collector has taken them.
        public var exported = 0
        /// There was no room for them.
        public var overflowed = 0
        /// The collector has refused them.
        public var refused = 0
        /// The collector was tried in vain.
        public var unreachable = 0
    }

    private enum State {
        /// Nothing is sent before this time; nil if nothing waits.
        case collecting(until: Instant?)
        case sending([[UInt8]], attempts: Int)
        case pausing([[UInt8]], attempts: Int, until: Instant)
        case finished
    }

    private let limits: Limits
    private var state = State.collecting(until: nil)
    private var waiting: [[UInt8]] = []
    private var waitingBytes = 0
    private var isFinishing = false
    private var generator: SplitMix64
    /// What became of traces.
    public private(set) var counts = Counts()

    /// Makes an empty queue; the same seed gives the same waits.
    public init(_ limits: Limits = Limits(), seed: UInt64) {
        self.limits = limits
        generator = SplitMix64(seed: seed)
    }

    /// Traces that wait or are being sent.
    public var count: Int { waiting.count + batch.count }

    /// When `handle` must next be called even if nothing happens.
    public var nextDeadline: Instant? {
        switch state {
        case .collecting(let until): until
        case .pausing(_, _, let until): until
        case .sending, .finished: nil
        }
    }

    /// Takes one input.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .add(let trace): add(trace, at: now, into: &outbox)
        case .answered(let answer): take(answer, at: now, into: &outbox)
        case .timerFired:
            guard let deadline = nextDeadline, deadline <= now else { return }
            send(into: &outbox)
        case .finish:
            guard !isFinishing else { return }
            isFinishing = true
            if case .sending = state { return }
            send(into: &outbox)
        }
    }

    // MARK: Waiting

    private var batch: [[UInt8]] {
        switch state {
        case .sending(let batch, _), .pausing(let batch, _, _): batch
        case .collecting, .finished: []
        }
    }

    private mutating func add(_ trace: [UInt8], at now: Instant, into outbox: inout [Output]) {
        let sent = batch
        let sentBytes = sent.reduce(0) { $0 + $1.count }
        guard !isFinishing, trace.count <= limits.bytes - sentBytes, sent.count < limits.traces else {
            counts.overflowed += 1
            return
        }
        waiting.append(trace)
        waitingBytes += trace.count
        while waiting.count + sent.count > limits.traces || waitingBytes + sentBytes > limits.bytes { dropOldest() }
        guard case .collecting(let until) = state else { return }
        state = .collecting(until: until ?? now.advanced(by: limits.delay))
        if waiting.count >= limits.batchTraces || waitingBytes >= limits.batchBytes { send(into: &outbox) }
    }

    private mutating func dropOldest() {
        waitingBytes -= waiting.removeFirst().count
        counts.overflowed += 1
    }

    // MARK: Sending

    /// Sends what was sent in vain, or else what waits.
    private mutating func send(into outbox: inout [Output]) {
        switch state {
        case .pausing(let batch, let attempts, _):
            state = .sending(batch, attempts: attempts + 1)
            outbox.append(.send(batch))
        case .collecting:
            let batch = takeBatch()
            guard !batch.isEmpty else { return rest(into: &outbox) }
            state = .sending(batch, attempts: 1)
            outbox.append(.send(batch))
        case .sending, .finished: break
        }
    }

    private mutating func takeBatch() -> [[UInt8]] {
        var (count, bytes) = (0, 0)
        for trace in waiting.prefix(limits.batchTraces) {
            guard count == 0 || bytes + trace.count <= limits.batchBytes else { break }
            count += 1
            bytes += trace.count
        }
        let batch = Array(waiting.prefix(count))
        waiting.removeFirst(count)
        waitingBytes -= bytes
        return batch
    }

    private mutating func take(_ answer: Answer, at now: Instant, into outbox: inout [Output]) {
        guard case .sending(let batch, let attempts) = state else { return }
        let isLast = attempts >= limits.attempts || isFinishing
        switch answer {
        case .accepted:
            counts.exported += batch.count
            sendNext(into: &outbox)
        case .refused:
            counts.refused += batch.count
            giveUp(batch, into: &outbox)
        case .busy where isLast:
            counts.refused += batch.count
            giveUp(batch, into: &outbox)
        case .unreachable where isLast:
            counts.unreachable += batch.count
            giveUp(batch, into: &outbox)
        case .busy(let wait?):
            state = .pausing(batch, attempts: attempts, until: now.advanced(by: max(wait, .zero)))
        case .busy(nil), .unreachable:
            state = .pausing(batch, attempts: attempts, until: now.advanced(by: pause(after: attempts)))
        }
    }

    private mutating func giveUp(_ batch: [[UInt8]], into outbox: inout [Output]) {
        outbox.append(.gaveUp(traces: batch.count))
        sendNext(into: &outbox)
    }

    /// Sends what has gathered meanwhile: it has waited for long enough.
    private mutating func sendNext(into outbox: inout [Output]) {
        state = .collecting(until: nil)
        send(into: &outbox)
    }

    /// Nothing waits.
    private mutating func rest(into outbox: inout [Output]) {
        state = isFinishing ? .finished : .collecting(until: nil)
        if isFinishing { outbox.append(.finished) }
    }

    private mutating func pause(after attempts: Int) -> Duration {
        let longest = limits.wait * (1 << min(attempts - 1, 10))
        return longest * Double.random(in: 0.5...1, using: &generator)
    }
}
