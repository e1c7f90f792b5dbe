// BotCalls: voice bots that take part in calls over the wires of telephone services: connections, webhooks, requests.

public import AudioPort
public import BotWire
internal import ConfigReader
internal import Glibc
internal import HTTPTransport
internal import NIOCore
internal import NIOPosix
public import Realtime
internal import Synchronization

/// The bot of a device's calls, with a connection for each call, and one event loop for all of them.
///
/// Nothing that a bot does makes another, or a media worker, wait. All methods may be called from any thread.
public final class BotCalls: Sendable {
    private let group: MultiThreadedEventLoopGroup
    private let loop: any EventLoop
    let environment: BotEnvironment
    private let courier: StatusCourier
    private let registry: BotRegistry
    private let server = Mutex<(any Channel)?>(nil)

    /// Prepares for calls, and reads the fallback. Files that cannot be read are told as ``BotNews/warned(_:leftOut:)``.
    ///
    /// - Parameters:
    ///   - mayTransfer: Whether a call may be transferred to this target. The device judges it again.
    ///   - publish: Is told what bots want and do, on the loop.
    public init(
        _ plan: BotPlan, mayTransfer: @escaping @Sendable (String) -> Bool,
        publish: @escaping @Sendable (BotNews) -> Void
    ) {
        let trust: TLSTrust
        do throws(TLSTrust.Unreadable) {
            trust = try TLSTrust(trustRootFile: plan.trustRoots)
        } catch {
            publish(.warned("the certificates in \(error.path) are not trusted: \(error.cause)", leftOut: 0))
            trust = .system
        }
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        loop = group.next()
        environment = BotEnvironment(
            plan, fallback: Self.fallback(of: plan, publish), trust: trust, loop: loop, mayTransfer: mayTransfer,
            publish: publish)
        courier = StatusCourier(environment)
        registry = BotRegistry()
    }

    private static func fallback(of plan: BotPlan, _ publish: (BotNews) -> Void) -> [UInt8]? {
        guard let path = plan.fallback else { return nil }
        do throws(FallbackSound.Unusable) {
            var bytes: [UInt8] = []
            PortFormat(rate: .hz48000).append(try FallbackSound(path: path).samples, to: &bytes)
            return bytes
        } catch {
            publish(.warned("\(error)", leftOut: 0))
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

    /// Asks the webhook, or connects with the bot, for a call. ``BotNews/stands(call:)`` or ``BotNews/refused(call:_:_:)`` follows;
    /// nothing does if the call stands already.
    ///
    /// - Parameters:
    ///   - call: The unique number of the call.
    ///   - peer: Who is at the other end.
    ///   - own: Who this device is.
    ///   - isOutgoing: Whether this side called; the call then stands already.
    ///   - isAnswered: Whether it stands already though it came in.
    public func begin(call: UInt64, peer: String, own: String, isOutgoing: Bool, isAnswered: Bool = false) {
        let parties = BotCall.Parties(
            call: call, peer: peer, own: own, isOutgoing: isOutgoing, isAnswered: isOutgoing || isAnswered)
        loop.execute { [registry, environment, courier] in
            // A call that a bot's server has placed is there already.
            let bot = registry[call] ?? BotCall(parties, environment, courier)
            registry.add(bot)
            bot.begin()
        }
    }

    /// The device makes a call that the bot's server has placed. ``begin(call:peer:own:isOutgoing:)`` follows when it is
    /// answered.
    public func placed(_ number: UInt64, call: UInt64, peer: String, own: String) {
        let parties = BotCall.Parties(call: call, peer: peer, own: own, isOutgoing: true, isAnswered: true)
        loop.execute { [registry, environment, courier] in
            guard let (placed, reply) = registry.placements.take(number) else { return }
            let bot = BotCall(parties, environment, courier, placed)
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

    /// A transfer that a call's bot has asked for did not come about. One that did ends the call.
    public func transferFailed(call: UInt64) {
        loop.execute { [registry] in registry[call]?.transferFailed() }
    }

    /// Whoever this device calls is being asked.
    public func ring(call: UInt64) {
        loop.execute { [registry] in registry[call]?.ring() }
    }

    /// Gives a call that stands its line for the media worker.
    public func attach(call: UInt64) throws(RealtimeError) -> PortLine {
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

    /// The caller has pressed a telephone key.
    public func sendDigit(_ digit: Character, heldMilliseconds: Int, to call: UInt64) {
        loop.execute { [registry] in registry[call]?.take(digit: digit, heldMilliseconds: heldMilliseconds) }
    }

    /// What a call's bot has said so far is played, and then ``BotNews/hangUp(call:failure:)`` follows.
    public func hearOut(call: UInt64) { loop.execute { [registry] in registry[call]?.hearOut() } }

    /// The call is over, or its bot leaves it; ``BotNews/left(call:)`` follows, also if the call has no bot.
    ///
    /// - Parameter seconds: How long the call was; nil for a call that goes on.
    public func end(call: UInt64, _ status: TwilioWebhook.Status, seconds: Int?) {
        loop.execute { [registry, environment] in
            registry.remove(call)?.end(status, seconds: seconds ?? .max)
            environment.publish(.left(call: call))
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
            return courier.finish(within: Self.lastNews).and(environment.farewells.finish(within: Self.lastNews))
                .map { _, cutOff in
                    guard cutOff > 0 else { return }
                    environment.publish(.warned("\(cutOff) hang-ups are not told: the device stops", leftOut: 0))
                }
        }.get()
        try? await loop.submit { [environment] in environment.lookup.finish() }.get()
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
    private var calls: [UInt64: BotCall] = [:]
    private var numbers: [String: UInt64] = [:]
    let placements = Placements()

    subscript(call: UInt64) -> BotCall? { calls[call] }

    /// The call that requests name so.
    subscript(name: String) -> BotCall? { numbers[name].flatMap { calls[$0] } }

    func add(_ bot: BotCall) {
        calls[bot.parties.call] = bot
        numbers[bot.name] = bot.parties.call
    }

    func remove(_ call: UInt64) -> BotCall? {
        let bot = calls.removeValue(forKey: call)
        if let bot { numbers[bot.name] = nil }
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
