internal import AudioPort
internal import BotWire
internal import CallParticipation
internal import CallWebhooks
internal import Core
internal import HTTPTransport
internal import NIOCore
internal import Synchronization
internal import Tracing

/// A call's sound that is forked to a server: what the server does not read in time is left out, and what it sends does not count.
final class ForkedStream: CallFork, @unchecked Sendable {
    // `give` and `end` may be called from any thread; everything else is used by the event loop alone.

    /// Pieces of sound that may wait for the event loop: a second of frames. Further ones are left out.
    static let mostWaiting = 50
    /// How long the server may take to open the WebSocket.
    private static let openingTime = TimeAmount.seconds(5)

    let rate = PortRate.hz8000
    private let call: ParticipantCall
    private let stream: CallStream
    private let environment: BotEnvironment
    private let work: LoopWork
    private let waiting = Atomic<Int>(0)
    /// Samples that were left out because the event loop was late.
    private let lost = Atomic<Int>(0)
    private let format = PortFormat(rate: .hz8000, encoding: .muLaw)
    private var wire: ForkWire
    private var socket: WebBotSocket?
    private var isOpen = false
    private var isBehind = false
    private var isOver = false
    private var timer: Scheduled<Void>?
    private var tell: (@Sendable (CallStreamReport) -> Void)?
    private let forget: (ForkedStream) -> Void

    /// - Parameter forget: Is called once, at the end.
    init(
        _ call: ParticipantCall, to stream: CallStream, _ tracks: ForkTracks, _ environment: BotEnvironment,
        on work: LoopWork,
        tell: @escaping @Sendable (CallStreamReport) -> Void, forget: @escaping (ForkedStream) -> Void
    ) {
        self.call = call
        self.stream = stream
        self.environment = environment
        self.work = work
        self.tell = tell
        self.forget = forget
        wire = ForkWire(tracks)
    }

    func give(inbound: [Int16], outbound: [Int16]) {
        guard waiting.load(ordering: .relaxed) < Self.mostWaiting else {
            lost.add(max(inbound.count, outbound.count), ordering: .relaxed)
            return
        }
        waiting.add(1, ordering: .relaxed)
        work.execute { [self] in
            waiting.subtract(1, ordering: .relaxed)
            take(inbound, outbound)
        }
    }

    func end() { work.execute { [self] in stop() } }

    // MARK: - On the loop

    /// Connects.
    func begin() {
        timer = environment.loop.assumeIsolated().scheduleTask(in: Self.openingTime) { [weak self] in
            self?.report(
                "the server did not open the WebSocket within \(Self.openingTime.nanoseconds / 1_000_000_000) s")
        }
        environment.addresses(of: stream.address).assumeIsolated().whenComplete { [self] result in
            guard !isOver else { return }
            switch result {
            case .success(let addresses): connect(to: addresses[...])
            case .failure(let error): report(environment.explain(error, stream.address))
            }
        }
    }

    /// Ends it without a report.
    func stop() {
        guard !isOver else { return }
        tell = nil
        for message in wire.close() { socket?.send(message) }
        finish()
    }

    private func connect(to addresses: ArraySlice<NIOCore.SocketAddress>) {
        guard let address = addresses.first else { return report("the server's host has no address") }
        guard let endpoint = try? HTTPEndpoint(stream.address) else { return report("the server's URL is unusable") }
        let credentials = environment.plan.token.map { environment.plan.wire.credentials($0, at: stream.address) }
        let rest = addresses.dropFirst()
        socket = WebBotSocket(
            endpoint, at: address, subprotocols: [], headers: credentials ?? [], trace: call.trace?.description,
            trust: environment.trust, on: environment.loop
        ) { [weak self] event in self?.take(event, rest) }
    }

    private func take(_ event: BotSocketEvent, _ rest: ArraySlice<NIOCore.SocketAddress>) {
        guard !isOver else { return }
        switch event {
        case .opened:
            isOpen = true
            timer?.cancel()
            let opening = wire.open(
                call.wireCall(
                    stream.callSid, stream: stream.streamSid, account: environment.plan.account, stream.parameters))
            for message in opening { socket?.send(message) }
        case .message: break
        case .closed(let failure):
            socket = nil
            if !isOpen, !rest.isEmpty { return connect(to: rest) }
            report(isOpen ? failure : failure ?? "the server has closed it at once")
        }
    }

    private func take(_ inbound: [Int16], _ outbound: [Int16]) {
        let lost = lost.exchange(0, ordering: .relaxed)
        guard isOpen, !isOver else { return }
        wire.skip(samples: lost)
        guard (socket?.waitingBytes ?? 0) <= WireLimits.outboundBytes else {
            wire.skip(samples: max(inbound.count, outbound.count))
            if !isBehind { tell?(.noted(.behind(events: false))) }
            isBehind = true
            return
        }
        var (heard, said): ([UInt8], [UInt8]) = ([], [])
        format.append(inbound, to: &heard)
        format.append(outbound, to: &said)
        for message in wire.take(inbound: heard, outbound: said) { socket?.send(message) }
    }

    /// Ends it, and reports why; nil if the server has closed it in order.
    private func report(_ failure: String?) {
        guard !isOver else { return }
        let tell = tell
        finish()
        tell?(.ended(failure: failure))
    }

    private func finish() {
        isOver = true
        tell = nil
        timer?.cancel()
        socket?.close()
        socket = nil
        forget(self)
    }
}
