// BotCalls: voice bots that take part in calls over the wires of telephone services: connections, webhooks, requests.

public import AudioPort
internal import BotWire
public import CallControl
public import CallParticipation
internal import CallWebhooks
internal import ConfigReader
internal import Core
internal import Glibc
internal import HTTPTransport
internal import NIOCore
internal import NIOPosix
public import Realtime
internal import Synchronization

/// The bot of a device's calls, with a connection for each call, and one event loop for all of them.
///
/// Nothing that a bot does makes another, or a media worker, wait. All methods may be called from any thread.
public final class BotCalls: CallParticipant {
    /// A bot.
    public let kind = ParticipantKind.bot
    /// Until it is connected.
    public let delaysAnswer = true
    private let group: MultiThreadedEventLoopGroup
    private let loop: any EventLoop
    let environment: BotEnvironment
    private let courier: StatusCourier
    private let registry: BotRegistry
    private let server = Mutex<(any Channel)?>(nil)

    /// Prepares for calls, and reads the fallback. Files that cannot be read are reported as
    /// ``ParticipantNotice/warned(_:leftOut:)``.
    ///
    /// - Parameters:
    ///   - mayTransfer: Whether a call may be transferred to this target. The device judges it again.
    ///   - publish: Receives the events of calls, on the loop.
    ///   - order: Receives the other requests of bots and their servers, on the loop.
    public init(
        _ plan: BotPlan, mayTransfer: @escaping @Sendable (String) -> Bool,
        publish: @escaping @Sendable (ParticipantEvent) -> Void, order: @escaping @Sendable (BotOrder) -> Void
    ) {
        let trust = TLSTrust.systemAnd(plan.trustRoots) { publish(.noted(.warned($0, leftOut: 0), nil)) }
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        loop = group.next()
        let own = [plan.address, plan.statusCallback].compactMap { $0?.host }
        let hosts = HostGuard(own: own, allowed: plan.allowedHosts, section: "behaviour.bot")
        environment = BotEnvironment(
            plan, to: hosts, fallback: Self.fallback(of: plan, publish), trust: trust, loop: loop,
            mayTransfer: mayTransfer, publish: publish, order: order)
        courier = StatusCourier(environment.webhooks) { [environment] in environment.warn($0, leftOut: $1) }
        registry = BotRegistry()
    }

    private static func fallback(of plan: BotPlan, _ publish: (ParticipantEvent) -> Void) -> [UInt8]? {
        guard let path = plan.fallback else { return nil }
        do throws(FallbackSound.Unusable) {
            var bytes: [UInt8] = []
            PortFormat(rate: .hz48000).append(try FallbackSound(path: path).samples, to: &bytes)
            return bytes
        } catch {
            publish(.noted(.warned("\(error)", leftOut: 0), nil))
            return nil
        }
    }

    /// Listens for what the bot's server asks, if the plan says where.
    ///
    /// - Returns: The port, if it listens.
    /// - Throws: An error that says what was tried and what to try.
    @discardableResult
    public func listen() async throws -> Int? {
        guard let requests = environment.plan.requests else { return nil }
        let address = ListenAddress(host: requests.listen.host, port: requests.listen.port)
        let place = try address.resolve()
        let tls = try requests.certificate?.load()
        let listener = try await loop.submit { [environment, registry, loop] in
            NIOLoopBound(BotRequestServer.listener(environment, requests, registry, tls), eventLoop: loop)
        }.get()
        do {
            let channel = try await HTTPListener.listen(at: place, with: listener, on: loop)
            server.withLock { $0 = channel }
            return channel.localAddress?.port
        } catch {
            throw address.explain(error)
        }
    }

    /// The port at which requests are taken; nil if this does not listen.
    public var port: Int? { server.withLock { $0?.localAddress?.port } }

    /// Asks the webhook, or connects with the bot, for a call.
    public func begin(_ call: ParticipantCall) {
        loop.execute { [registry, environment, courier] in
            // A call that a bot's server has placed is there already.
            let bot = registry[call.id] ?? BotCall(call, environment, courier)
            registry.add(bot)
            bot.begin()
        }
    }

    /// The device makes a call that the bot's server has placed. ``begin(_:)`` follows when it is answered.
    public func placed(_ number: UInt64, _ call: ParticipantCall) {
        loop.execute { [registry, environment, courier] in
            guard let (placed, reply) = registry.placements.take(number) else { return }
            let bot = BotCall(call, environment, courier, placed)
            registry.add(bot)
            reply(bot.wasPlaced())
        }
    }

    /// The device does not make a call that the bot's server has placed.
    public func refuse(_ number: UInt64, _ refusal: BotPlacement.Refusal, _ why: String) {
        loop.execute { [registry] in
            let fault =
                switch refusal {
                case .callee: ServiceFault(.badRequest, .twilio, twilioCode: 21_211, why)
                case .unlisted: ServiceFault(.forbidden, .twilio, twilioCode: 21_216, why)
                case .unavailable: ServiceFault(.unavailable, .twilio, why)
                }
            registry.placements.take(number)?.reply(.refused(fault))
        }
    }

    /// Reports a refusal to the log, and the failure of a transfer to the bot's server.
    public func refuse(_ request: ParticipantRequest, of call: CallID, _ why: String) {
        switch request {
        case .press: break
        case .transfer: transferFailed(call)
        case .handover: loop.execute { [registry] in registry[call]?.handoverRefused() }
        case .cancelHandover:
            // It has ended or come about before, which was reported.
            return loop.execute { [registry] in registry[call]?.nothingTakenBack() }
        }
        environment.publish(.noted(.refused(request, why), call))
    }

    /// Reports a hand-over that has failed to the bot's server, as a transfer that has failed.
    public func noteHandover(_ report: HandoverReport, of call: CallID) {
        loop.execute { [registry] in registry[call]?.noteHandover(report.state) }
    }

    /// Reports a transfer that has failed to the bot's server. One that is accepted ends the call.
    public func noteTransfer(to target: UserID, _ progress: CallTransfer.Progress, of call: CallID) {
        switch progress {
        case .refused, .failed: transferFailed(call)
        case .trying, .ringing, .accepted: break
        }
    }

    private func transferFailed(_ call: CallID) {
        loop.execute { [registry] in registry[call]?.transferFailed() }
    }

    /// The callee of a call that the bot's server has placed is ringing.
    public func ring(_ call: CallID) {
        loop.execute { [registry] in registry[call]?.ring() }
    }

    /// Makes the line of a call for its media worker.
    public func attach(to call: CallID) throws(RealtimeError) -> PortLine? {
        let signal = try PortSignal()
        // The loop has a descriptor of its own, which it closes.
        let wakeup = dup(signal.descriptor)
        guard wakeup >= 0 else { throw RealtimeError(doing: "watching a call's frames", errno: errno) }
        let pair = AudioPort.pair(
            rate: environment.plan.wire.portRate, signal: signal, turns: environment.plan.bargeIn.map(TurnPlan.init))
        let box = PortBox(pair.port)
        loop.execute { [registry] in
            guard let bot = registry[call], let port = box.take() else {
                close(wakeup)
                return
            }
            bot.attach(port, wakeup: wakeup)
        }
        return pair.line
    }

    /// Sends a telephone key in the words of the bot's service.
    public func sendDigit(_ digit: Character, heldFor time: Duration, to call: CallID) {
        let milliseconds = Int(time.milliseconds)
        loop.execute { [registry] in registry[call]?.take(digit: digit, heldMilliseconds: milliseconds) }
    }

    /// Plays what a call's bot has said so far.
    public func hearOut(_ call: CallID) { loop.execute { [registry] in registry[call]?.hearOut() } }

    /// Ends a call's connection, and reports the end to the bot's server.
    public func end(_ call: CallID, _ end: ParticipationEnd) {
        let (status, seconds) =
            switch end {
            case .callEnded(let record): (TwilioWebhook.Status(record), Int(record.duration.seconds))
            case .detached: (TwilioWebhook.Status.completed, Int.max)
            }
        loop.execute { [registry, environment] in
            registry.remove(call)?.end(status, seconds: seconds)
            environment.publish(.left(call))
        }
    }

    /// How long status callbacks may take when everything ends.
    private static let lastNews = TimeAmount.seconds(1)

    /// Ends all connections and the loop. What was sent before goes out; status callbacks and hang-ups have a second for it.
    public func finish() async {
        let listening = server.withLock { server in
            defer { server = nil }
            return server
        }
        try? await listening?.close()
        try? await loop.flatSubmit { [registry, courier, environment] in
            registry.removeAll()
            return courier.finish(within: Self.lastNews).and(environment.closingRequests.finish(within: Self.lastNews))
                .map { _, cutOff in
                    guard cutOff > 0 else { return }
                    environment.warn("\(cutOff) hang-ups were not reported: the device stops")
                }
        }.get()
        try? await loop.submit { [environment] in environment.webhooks.finish() }.get()
        try? await group.shutdownGracefully()
    }
}

/// Hands a port to the loop's thread.
final class PortBox: @unchecked Sendable {
    // Written by the thread that makes it, and taken by the loop, which gets it through its queue.
    private var port: AudioPort?

    init(_ port: consuming AudioPort) { self.port = consume port }

    func take() -> AudioPort? { port.take() }
}

/// The calls that have a bot.
final class BotRegistry: @unchecked Sendable {
    // Only the event loop uses it.
    private var calls: [CallID: BotCall] = [:]
    private var names: [String: CallID] = [:]
    let placements = Placements()

    subscript(call: CallID) -> BotCall? { calls[call] }

    /// The call that requests name so.
    subscript(name: String) -> BotCall? { names[name].flatMap { calls[$0] } }

    func add(_ bot: BotCall) {
        calls[bot.call.id] = bot
        names[bot.name] = bot.call.id
    }

    func remove(_ call: CallID) -> BotCall? {
        let bot = calls.removeValue(forKey: call)
        if let bot { names[bot.name] = nil }
        return bot
    }

    func removeAll() {
        for call in Array(calls.keys) { remove(call)?.end(.completed) }
    }
}

extension BotProtocol {
    /// The rate of calls' ports.
    var portRate: PortRate { PortRate(rawValue: makeWire(nil).callerFormat.rateHz) ?? .hz8000 }
}
