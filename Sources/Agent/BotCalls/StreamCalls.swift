public import AudioPort
public import BotWire
public import CallParticipation
internal import CallWebhooks
public import ConfigReader
internal import Core
internal import Glibc
internal import HTTPTransport
internal import NIOCore
internal import NIOPosix
internal import Realtime
internal import Synchronization

/// Where streams that participants ask for may lead, and how their servers are addressed.
public struct StreamPlan: Sendable, Equatable {
    /// The hosts of the configuration's own URLs.
    public var own: [String]
    /// Further hosts: names, addresses, and `*.example.org`.
    public var allowedHosts: [String]
    /// The section of the configuration, for messages.
    public var section: String
    /// Signs the request that opens a WebSocket; nil signs nothing.
    public var token: Secret?
    /// A file of certificates to trust in addition to the system's.
    public var trustRoots: String?

    /// Describes where streams may lead.
    public init(
        own: [String], allowedHosts: [String], section: String, token: Secret? = nil, trustRoots: String? = nil
    ) {
        self.own = own
        self.allowedHosts = allowedHosts
        self.section = section
        self.token = token
        self.trustRoots = trustRoots
    }

    var hosts: HostGuard { HostGuard(own: own, allowed: allowedHosts, section: section) }
}

/// Streams of calls whose participant is no bot, such as a flow: one event loop for all of them.
public final class StreamCalls: CallStreams {
    private typealias Tell = @Sendable (CallStreamReport) -> Void

    private let group: MultiThreadedEventLoopGroup
    private let loop: any EventLoop
    private let environment: BotEnvironment
    private let courier: StatusCourier
    private let registry = BotRegistry()
    private let tells: Mutex<[CallID: Tell]>
    private let forks = ForkTable()
    private let work: LoopWork

    /// - Parameter warn: Reports what the operator must know, with the number of reports before it that were left out.
    public init(_ plan: StreamPlan, warn: @escaping @Sendable (_ what: String, _ leftOut: Int) -> Void) {
        let trust = TLSTrust.systemAnd(plan.trustRoots) { warn($0, 0) }
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        loop = group.next()
        work = LoopWork(on: loop)
        tells = Mutex([:])
        let sink = StreamSink(warn: warn)
        environment = BotEnvironment(
            BotPlan(token: plan.token), to: plan.hosts, fallback: nil, trust: trust, loop: loop,
            mayTransfer: { _ in false }, publish: { sink.take($0) }, order: { _ in })
        courier = StatusCourier(environment.webhooks) { warn($0, $1) }
        sink.own(self)
    }

    /// Receives the events of bots, which their environment has before there is this.
    private final class StreamSink: Sendable {
        private struct Owner {
            weak var streams: StreamCalls?
        }

        private let owner = Mutex(Owner())
        private let warn: @Sendable (String, Int) -> Void

        init(warn: @escaping @Sendable (String, Int) -> Void) { self.warn = warn }

        func own(_ streams: StreamCalls) { owner.withLock { $0.streams = streams } }

        func take(_ event: ParticipantEvent) {
            if case .noted(.warned(let what, let leftOut), nil) = event { return warn(what, leftOut) }
            owner.withLock { $0.streams }?.take(event)
        }
    }

    private func take(_ event: ParticipantEvent) {
        switch event {
        case .noted(let notice, let call?): tells.withLock { $0[call] }?(.noted(notice))
        case .done(let call, let failure): finish(call, failure)
        case .failed(let call, let why): finish(call, why)
        case .rejected(let call, _, let why): finish(call, why ?? "the bot has rejected the call")
        // A bot that another participant has asked for decides nothing else about the call.
        case .ready, .press, .transfer, .handover, .cancelHandover, .turn, .speech, .left, .noted: break
        }
    }

    /// Reports the end of a bot's part, once, and forgets it. On the loop.
    private func finish(_ call: CallID, _ failure: String?) {
        let tell = tells.withLock { $0.removeValue(forKey: call) }
        registry.remove(call)?.end(.completed)
        tell?(.ended(failure: failure))
    }

    /// Connects a call with a bot, whose line is returned.
    public func connect(
        _ call: ParticipantCall, to stream: CallStream, tell: @escaping @Sendable (CallStreamReport) -> Void
    ) throws -> PortLine {
        let signal = try PortSignal()
        // The loop has a descriptor of its own, which it closes.
        let wakeup = dup(signal.descriptor)
        guard wakeup >= 0 else { throw RealtimeError(doing: "watching a stream's frames", errno: errno) }
        let pair = AudioPort.pair(rate: .hz8000, signal: signal)
        let box = PortBox(pair.port)
        var details = call
        details.isAnswered = true
        tells.withLock { $0[call.id] = tell }
        let isBegun = work.execute { [registry, environment, courier, details] in
            registry.remove(details.id)?.end(.completed)
            let bot = BotCall(details, environment, courier, given: stream)
            registry.add(bot)
            if let port = box.take() { bot.attach(port, wakeup: wakeup) } else { close(wakeup) }
            bot.begin()
        }
        if !isBegun {
            close(wakeup)
            tells.withLock { $0[call.id] = nil }
            tell(.ended(failure: "streams are ending"))
        }
        return pair.line
    }

    /// Delivers a telephone key to the bot of a call.
    public func sendDigit(_ digit: Character, heldFor time: Duration, to call: CallID) {
        let milliseconds = Int(time.milliseconds)
        work.execute { [registry] in registry[call]?.take(digit: digit, heldMilliseconds: milliseconds) }
    }

    /// Ends the bot's part in a call. No report follows.
    public func disconnect(_ call: CallID) {
        tells.withLock { $0[call] = nil }
        work.execute { [registry] in registry.remove(call)?.end(.completed) }
    }

    /// Forks a call's sound to a server.
    public func fork(
        _ call: ParticipantCall, to stream: CallStream, _ tracks: ForkTracks,
        tell: @escaping @Sendable (CallStreamReport) -> Void
    ) -> any CallFork {
        let fork = ForkedStream(call, to: stream, tracks, environment, on: work, tell: tell) { [forks] in
            forks.remove($0)
        }
        let isBegun = work.execute { [forks] in
            forks.add(fork)
            fork.begin()
        }
        if !isBegun { tell(.ended(failure: "streams are ending")) }
        return fork
    }

    /// Ends all streams and the loop.
    public func finish() async {
        try? await loop.submit { [registry, forks] in
            registry.removeAll()
            forks.endAll()
        }.get()
        // Close frames have a moment to get out.
        try? await loop.flatSubmit { [courier] in courier.finish(within: .milliseconds(100)) }.get()
        guard work.end() else { return }
        try? await loop.submit { [environment] in environment.webhooks.finish() }.get()
        try? await group.shutdownGracefully()
    }
}

/// Brings work to an event loop until its end.
final class LoopWork: Sendable {
    private let loop: any EventLoop
    private let isEnded = Mutex(false)

    init(on loop: any EventLoop) { self.loop = loop }

    /// - Returns: Whether it is carried out: false after the end.
    @discardableResult
    func execute(_ work: @escaping @Sendable () -> Void) -> Bool {
        isEnded.withLock { isEnded in
            if !isEnded { loop.execute(work) }
            return !isEnded
        }
    }

    /// Brings no more work.
    ///
    /// - Returns: False if that is so already.
    func end() -> Bool {
        isEnded.withLock { isEnded in
            defer { isEnded = true }
            return !isEnded
        }
    }
}

/// The forks that run.
final class ForkTable: @unchecked Sendable {
    // Only the event loop uses it.
    private var forks: [ObjectIdentifier: ForkedStream] = [:]

    func add(_ fork: ForkedStream) { forks[ObjectIdentifier(fork)] = fork }
    func remove(_ fork: ForkedStream) { forks[ObjectIdentifier(fork)] = nil }

    func endAll() {
        for fork in Array(forks.values) { fork.stop() }
    }
}
