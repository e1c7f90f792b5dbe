internal import ConfigReader
internal import Core
internal import HTTPTransport
package import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Realtime
internal import Synchronization
package import Tracing

/// Sends traces to a collector by OTLP over HTTP.
///
/// A call hands its trace over at its end and waits for nothing. What becomes of it is decided by ``TraceQueue``; traces are encoded, and the
/// requests made, on a thread of their own, so that neither a large trace nor a collector that hangs holds up anything else.
///
/// Capacity, besides the queue's: ``mostUnencoded`` traces that wait for that thread. Further ones are dropped, and counted as overflowed.
package final class TraceExporter: Sendable {
    /// How long the collector has for an answer, the connection included.
    package static let patience = Duration.seconds(10)
    /// How long the end of the process waits for the traces of its last calls.
    package static let lastPatience = Duration.milliseconds(500)
    private static let answerBytes = 64 << 10
    /// Traces that are not encoded yet: as many as an exchange may put out at once, at its end.
    package static let mostUnencoded = 10_000

    private struct Unencoded {
        var traces: [Trace] = []
        var overflowed = 0
    }

    private let unencoded = Mutex(Unencoded())
    private let queue: Mutex<TraceQueue>
    private let encoding: TraceEncoding
    private let request: HTTPFetch.Request
    private let client: HTTPClient
    private let group: MultiThreadedEventLoopGroup
    private let loop: any EventLoop
    /// To ``loop``. It is closed before that ends.
    private let door: LoopDoor
    private let timer: NIOLoopBoundBox<DeadlineTimer?>
    private let outage = Mutex((warnings: OutageLimit(), cause: ""))
    /// Nothing is left in the queue.
    private let finished = Gate()
    /// The same, or the end waits no longer.
    private let ended = Gate()
    private let logger: Logger

    /// Starts to wait for traces.
    ///
    /// - Parameters:
    ///   - version: Of the program.
    ///   - patience: How long the collector has for an answer.
    /// - Throws: What is wrong with the address or the trusted certificates.
    package convenience init(
        _ configuration: TraceConfiguration, version: String, limits: TraceQueue.Limits = TraceQueue.Limits(),
        patience: Duration = TraceExporter.patience, logger: Logger
    ) throws {
        guard let (endpoint, target) = configuration.endpoint else {
            throw TraceExporterError("traces.url is no address of a collector")
        }
        let trust: TLSTrust
        do throws(TLSTrust.Unreadable) {
            trust = try TLSTrust(trustRootFile: configuration.trustRoots)
        } catch {
            throw TraceExporterError("traces.trust_roots \"\(error.path)\": \(error.cause)")
        }
        var generator = SystemRandomNumberGenerator()
        let encoding = TraceEncoding(
            service: configuration.service, version: version, instance: "\(TraceID(using: &generator))")
        var request = HTTPFetch.Request(.POST, endpoint, target: target)
        request.headers.add(name: "Content-Type", value: TraceEncoding.contentType)
        request.headers.add(name: "User-Agent", value: "handset/\(version)")
        if let token = configuration.token {
            let isBearer = configuration.tokenHeader.lowercased() == "authorization"
            request.headers.add(
                name: configuration.tokenHeader, value: (isBearer ? "Bearer " : "") + token.revealed)
        }
        self.init(request, encoding, trust, limits, patience, seed: generator.next(), logger)
        // The rest of the address may have a key.
        logger.info("Sending traces of calls", metadata: ["collector": "\(endpoint.authority)"])
    }

    private init(
        _ request: HTTPFetch.Request, _ encoding: TraceEncoding, _ trust: TLSTrust, _ limits: TraceQueue.Limits,
        _ patience: Duration, seed: UInt64, _ logger: Logger
    ) {
        self.request = request
        self.encoding = encoding
        self.logger = logger
        queue = Mutex(TraceQueue(limits, seed: seed))
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        loop = group.next()
        door = LoopDoor(to: loop)
        timer = .makeEmptyBox(valueType: DeadlineTimer.self, eventLoop: loop)
        let bounds = HTTPFetch.Bounds(
            bodyBytes: Self.answerBytes, time: TimeAmount(patience), acceptsPart: true)
        client = HTTPClient(trust: trust, within: bounds, keeping: .init(connections: 1), on: loop)
    }

    /// What became of traces, since the start.
    package var counts: TraceQueue.Counts {
        var counts = queue.withLock { $0.counts }
        counts.overflowed += unencoded.withLock { $0.overflowed }
        return counts
    }

    /// Takes the trace of a call that has ended. Returns at once.
    package func take(_ trace: Trace) {
        let isFirst = unencoded.withLock { waiting in
            guard waiting.traces.count < Self.mostUnencoded else {
                waiting.overflowed += 1
                return false
            }
            waiting.traces.append(trace)
            return waiting.traces.count == 1
        }
        if isFirst { door.execute { self.encode() } }
    }

    /// Moves what waits to the queue. On the exporter's thread.
    private func encode() {
        let traces = unencoded.withLock { waiting in
            defer { waiting.traces = [] }
            return waiting.traces
        }
        for trace in traces { feed(.add(TraceEncoding.spans(of: trace))) }
    }

    /// Sends what waits, and ends. What a collector has not taken by then is dropped, and logged.
    package func stop(within limit: Duration = TraceExporter.lastPatience) async {
        door.execute {
            self.encode()
            self.feed(.finish)
        }
        let patience = loop.scheduleTask(in: TimeAmount(limit)) { self.ended.open() }
        await ended.wait()
        patience.cancel()
        let left = queue.withLock { $0.count }
        if left > 0 {
            logger.warning("Traces of calls are lost: the process ends", metadata: ["traces": "\(left)"])
        }
        // From now on each request fails at once.
        await client.shutDown()
        await finished.wait()
        door.close()
        try? await group.shutdownGracefully()
    }

    // MARK: The queue

    private func feed(_ input: TraceQueue.Input) {
        var outbox: [TraceQueue.Output] = []
        let deadline = queue.withLock { queue in
            queue.handle(input, at: MonotonicClock.now, into: &outbox)
            return queue.nextDeadline
        }
        // There is none after the end, when the loop does not run any more.
        if deadline != nil { loop.execute { self.arm() } }
        for output in outbox {
            switch output {
            case .send(let traces): send(traces)
            case .gaveUp(let count): warn(count)
            case .finished:
                finished.open()
                ended.open()
            }
        }
    }

    private func arm() {
        let timer = timer.value ?? DeadlineTimer(on: loop)
        self.timer.value = timer
        timer.set(queue.withLock { $0.nextDeadline }) { self.feed(.timerFired) }
    }

    // MARK: Requests

    private func send(_ traces: [[UInt8]]) {
        var request = request
        request.body = encoding.request(traces)
        Task { [client, request] in
            do {
                take(try await client.send(request))
            } catch {
                note(TransportFailure(error, to: request.endpoint).description)
                feed(.answered(.unreachable))
            }
        }
    }

    private func take(_ answer: HTTPFetch.Answer) {
        let wait = answer.headers.first(name: "Retry-After").flatMap {
            RetryAfter.parse($0, now: MonotonicClock.wallTime)
        }
        let result = TraceQueue.Answer(status: answer.status, retryAfter: wait)
        if result == .accepted {
            outage.withLock { $0.warnings.end() }
        } else {
            note("the collector answers with status \(answer.status)")
        }
        feed(.answered(result))
    }

    private func note(_ cause: String) { outage.withLock { $0.cause = cause } }

    private func warn(_ count: Int) {
        let (leftOut, cause) = outage.withLock { ($0.warnings.admit(at: MonotonicClock.now), $0.cause) }
        guard let leftOut else { return }
        logger.warning(
            "Traces of calls are dropped",
            metadata: [
                "traces": "\(count)", "error": "\(cause)", "collector": "\(request.endpoint.authority)",
                "left_out": "\(leftOut)",
            ])
    }
}

/// Why no traces can be sent.
package struct TraceExporterError: Error, CustomStringConvertible {
    /// What is wrong, and with what.
    package let description: String

    init(_ description: String) { self.description = description }
}

/// Opens once.
private final class Gate: Sendable {
    private let state = Mutex<(isOpen: Bool, waiting: CheckedContinuation<Void, Never>?)>((false, nil))

    func open() {
        let waiting = state.withLock { state in
            defer { state = (true, nil) }
            return state.waiting
        }
        waiting?.resume()
    }

    /// For one waiter.
    func wait() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting = continuation }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }
}
