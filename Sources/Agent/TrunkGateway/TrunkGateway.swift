public import CallAgent
public import Logging
internal import CallControl
internal import Realtime
internal import Tracing

/// Two devices, whose calls are joined in pairs: one at an exchange, one at a telephone network's server.
public actor TrunkGateway {
    /// How long the other half of a call may ring; the caller has its own limit.
    private static let ringing = Duration.seconds(180)

    private let exchange: Device
    private let network: Device
    private let logger: Logger
    private let note: @Sendable (DeviceEvent, TrunkSide) -> Void
    /// Receives what has happened, in order.
    private var report: (@Sendable (TrunkReport) -> Void)?
    private let events: AsyncStream<(TrunkSide, DeviceEvent)>
    private let sink: AsyncStream<(TrunkSide, DeviceEvent)>.Continuation
    private var core: TrunkCore
    private var calls: [TrunkLeg: CallID] = [:]
    private var listeners: [Task<Void, Never>] = []

    /// - Parameters:
    ///   - exchange: A device made of ``TrunkConfiguration/exchange``.
    ///   - network: One made of ``TrunkConfiguration/network``.
    ///   - note: Is called with each event of the devices, in order.
    public init(
        _ configuration: TrunkConfiguration, exchange: Device, network: Device, logger: Logger,
        noting note: @escaping @Sendable (DeviceEvent, TrunkSide) -> Void = { _, _ in }
    ) {
        self.exchange = exchange
        self.network = network
        self.logger = logger
        self.note = note
        core = TrunkCore(routes: configuration.routes, limit: configuration.callLimit)
        // The devices bound their events, and the end of a call must not be lost behind them.
        (events, sink) = AsyncStream.makeStream(of: (TrunkSide, DeviceEvent).self, bufferingPolicy: .unbounded)
    }

    /// Calls `report` for everything that happens from now on, in order. It must not block.
    func observe(_ report: @escaping @Sendable (TrunkReport) -> Void) { self.report = report }

    /// Connects both devices, and carries calls from then on. If one cannot be connected for good, both are shut down.
    public func connect() async throws(SignalingError) {
        for side in TrunkSide.allCases {
            let events = device(side).events
            listeners.append(Task { [sink] in for await event in events { sink.yield((side, event)) } })
        }
        // One after the other, so that no call meets a half that is not there.
        listeners.append(Task { for await (side, event) in events { await self.hear(event, side) } })
        do throws(SignalingError) {
            try await exchange.connect()
            try await network.connect()
        } catch {
            await shutDown()
            throw error
        }
    }

    /// Takes no more calls, and returns when those that there are have ended, or after `limit`.
    public func finishCalls(within limit: Duration) async {
        async let other: Void = network.finishCalls(within: limit)
        await exchange.finishCalls(within: limit)
        await other
    }

    /// Ends all calls, and both devices.
    public func shutDown() async {
        async let other: Void = network.shutDown()
        await exchange.shutDown()
        await other
        sink.finish()
        for listener in listeners { _ = await listener.value }
        listeners = []
    }

    /// Notifies both services that the machine's network has changed.
    public func networkChanged() async {
        await exchange.networkChanged()
        await network.networkChanged()
    }

    /// Whether the trunk has as many calls as it takes; a further one is refused as busy.
    public var isFull: Bool { core.isFull }

    /// Whether it refuses new calls at the operator's request.
    public var isDraining: Bool { core.isDraining }

    /// What it has counted since it began.
    var counters: TrunkCounters { core.counters }

    /// The calls that it carries, the oldest first.
    var carriedCalls: [TrunkCallState] { core.calls(at: MonotonicClock.now) }

    /// Ends a call on both sides.
    ///
    /// - Returns: Whether there is one of that number.
    func hangUp(_ number: UInt64) async -> Bool {
        guard carriedCalls.contains(where: { $0.number == number }) else { return false }
        await feed(.hangUp(number))
        return true
    }

    /// Refuses new calls as busy while present ones continue, or takes them again.
    func setDraining(_ isDraining: Bool) async { await feed(.drain(isDraining)) }

    /// Whether it is about to end, and so takes no more calls.
    var isEnding: Bool {
        get async {
            let isExchangeEnding = await exchange.isDraining
            return await network.isDraining || isExchangeEnding
        }
    }

    /// The state of a side's account.
    func status(of side: TrunkSide) async -> DeviceStatus { await device(side).status }

    /// Whether both devices work, for a watchdog.
    public func isAlive() async -> Bool {
        let isExchangeAlive = await exchange.isAlive()
        return await network.isAlive() && isExchangeAlive
    }

    private func device(_ side: TrunkSide) -> Device { side == .exchange ? exchange : network }

    // MARK: What happens

    private func hear(_ event: DeviceEvent, _ side: TrunkSide) async {
        note(event, side)
        switch event {
        case .incoming(let call, let caller):
            let leg = TrunkLeg(side, call)
            calls[leg] = call
            let said = await device(side).trunkCall(of: call)
            logger.info(
                "A call comes in",
                metadata: [
                    "side": "\(side.rawValue)", "call": "\(call)", "from": "\(caller)",
                    "dialled": "\(said?.dialled ?? "nothing")",
                ])
            if core.isFull { await noteCallsThatAreOver() }
            // Not one that the device has refused, because it is ending, is full, or does not take that caller.
            guard await device(side).isRinging(call) else { break }
            if let obstacle = await device(side).hops(of: call)?.obstacle {
                logger.notice("A call is not carried on", metadata: ["call": "\(leg)", "error": "\(obstacle)"])
                await device(side).reject(call, .failed, cause: .tooManyHops)
                break
            }
            await feed(.incoming(leg, said, from: caller))
        case .answered(let call): await feed(.answered(TrunkLeg(side, call)))
        case .established(let call, _): await feed(.established(TrunkLeg(side, call)))
        case .digit(let call, let digit, _): await feed(.digit(TrunkLeg(side, call), digit))
        case .ended(let call, let record, _):
            let leg = TrunkLeg(side, call)
            calls[leg] = nil
            logger.info(
                "A call has ended",
                metadata: [
                    "side": "\(side.rawValue)", "call": "\(call)", "peer": "\(record.peer)",
                    "reason": "\(record.reason.rawValue)",
                    "duration_ms": "\(Int(record.duration / .milliseconds(1)))",
                ])
            await feed(.ended(leg, record.reason, record.cause))
        case .signaling(let event): log(event, side)
        case .identified, .invited, .invite, .flowing, .playbackEnded, .playing, .playingEnded, .recording,
            .recordingEnded, .roomRecording, .roomRecordingEnded, .voicemail,
            .attached,
            .detached,
            .speech, .interrupted, .responded, .transferRequested, .transferProgress, .handover, .parking, .queued,
            .leftQueue,
            .sendingStopped, .sendingResumed,
            .fileFailed, .card, .loadChanged, .realtimePriorityRefused:
            break
        }
    }

    /// A call that has ended while its device puts its sound away, or whose end waits in our queue, hinders no other.
    private func noteCallsThatAreOver() async {
        for (leg, call) in calls where await !device(leg.side).goesOn(call) { await feed(.over(leg)) }
    }

    private func log(_ event: SignalingEvent, _ side: TrunkSide) {
        let metadata: Logger.Metadata = ["side": "\(side.rawValue)"]
        switch event {
        case .connected:
            logger.info("Connected", metadata: metadata)
            report?(.connection(side, "connected"))
        case .reconnecting:
            logger.warning("The connection is lost; connecting again", metadata: metadata)
            report?(.connection(side, "reconnecting"))
        case .reconnected:
            logger.info("Connected again", metadata: metadata)
            report?(.connection(side, "connected"))
        case .disconnected:
            logger.info("Disconnected", metadata: metadata)
            report?(.connection(side, "disconnected"))
        case .error(let error): logger.error("\(error)", metadata: metadata)
        case .inviteReceived, .inviteHandled, .inviteModified, .inviteCancelled, .inviteMissed, .inviteSent,
            .inviteAccepted,
            .inviteRejected, .inviteEnded, .inviteTimedOut, .callSignal, .callEnded, .connectionCreated,
            .connectionDestroyed, .roomSignal, .streamDropped, .streamResumed, .groupChanged, .roomLost, .moveRequested,
            .iceServersChanged, .notification, .unknown:
            break
        }
    }

    private func feed(_ input: TrunkCore.Input) async {
        var outbox: [TrunkCore.Output] = []
        core.handle(input, at: MonotonicClock.now, into: &outbox)
        for output in outbox { await carryOut(output) }
    }

    private func carryOut(_ output: TrunkCore.Output) async {
        switch output {
        case .place(let origin, let callee, let caller):
            let side = origin.side.other
            // The two halves of a call are one trace.
            var cause: TraceContext?
            var hops = CallHops()
            if let half = calls[origin] {
                cause = await device(origin.side).traceContext(of: half)
                hops = await device(origin.side).hops(of: half)?.next ?? hops
            }
            let call = await device(side).call(
                callee, audio: AudioBehaviour(source: .silence), for: caller, timeToLive: .some(Self.ringing),
                within: cause, after: hops)
            let target = TrunkLeg(side, call)
            calls[target] = call
            logger.info(
                "Its other half is placed", metadata: ["call": "\(origin)", "half": "\(target)", "to": "\(callee)"])
            await feed(.placed(target, for: origin))
        case .answer(let leg): await act(on: leg) { device, call in await device.answer(call) }
        case .reject(let leg, let reason, let cause):
            await act(on: leg) { device, call in await device.reject(call, reason, cause: cause) }
        case .hangUp(let leg): await act(on: leg) { device, call in await device.hangUp(call) }
        case .press(let digit, let leg):
            await act(on: leg) { [logger] device, call in
                do {
                    try await device.press(String(digit), on: call)
                } catch {
                    logger.info("A key is not passed on", metadata: ["call": "\(leg)", "error": "\(error)"])
                }
            }
        case .join(let first, let second): await join(first, second)
        case .report(let report): self.report?(report)
        }
    }

    private func act(on leg: TrunkLeg, _ action: (Device, CallID) async -> Void) async {
        if let call = calls[leg] { await action(device(leg.side), call) }
    }

    // MARK: Sound

    private func join(_ first: TrunkLeg, _ second: TrunkLeg) async {
        guard let one = calls[first], let other = calls[second] else { return }
        do {
            let plan = PortPlan(rate: .hz48000)
            let near = try await device(first.side).attachPort(plan, to: one)
            let far = try await device(second.side).attachPort(plan, to: other)
            Task { await Self.carry(from: near, to: far) }
            Task { await Self.carry(from: far, to: near) }
            logger.info("Two calls are joined", metadata: ["call": "\(first)", "half": "\(second)"])
        } catch {
            // The end of either, if it has just ended, is on its way.
            logger.warning(
                "Two calls cannot be joined, and are ended",
                metadata: ["call": "\(first)", "half": "\(second)", "error": "\(error)"])
            for leg in [first, second] { await act(on: leg) { device, call in await device.hangUp(call) } }
        }
    }

    /// Until either call ends.
    private static func carry(from source: CallPort, to target: CallPort) async {
        var policy = BridgeQueuePolicy(rate: target.rate.rawValue)
        for await frame in source.frames {
            switch policy.decide(frame: frame.samples.count, waiting: target.waitingSamples) {
            case .send(let silence):
                if silence > 0 { _ = target.offer([Int16](repeating: 0, count: silence)) }
                _ = target.offer(frame.samples)
            case .drop: break
            }
        }
    }
}

/// How much of a call's sound waits to be sent to the other half of its pair.
///
/// Both halves run by one clock, so that what waits does not grow by itself. It grows when this process is late: then the other half
/// plays silence meanwhile, and all that follows would be late for the rest of the call. What is beyond ``most`` is left out.
struct BridgeQueuePolicy {
    /// What is to be done with a frame.
    enum Decision: Equatable {
        /// Send it, after this number of samples of silence.
        case send(after: Int)
        /// Leave it out.
        case drop
    }

    /// Silence before the first frame, and after what waited was used up.
    let start: Int
    let most: Int
    /// Frames that were left out.
    private(set) var dropped = 0

    init(rate: Int) {
        start = rate * 40 / 1_000
        most = rate * 120 / 1_000
    }

    /// - Parameter waiting: Samples that wait now.
    mutating func decide(frame: Int, waiting: Int) -> Decision {
        if waiting == 0 { return .send(after: start) }
        guard waiting + frame > most else { return .send(after: 0) }
        dropped += 1
        return .drop
    }
}
