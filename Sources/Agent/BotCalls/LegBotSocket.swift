public import AudioPort
internal import BotWire
internal import CallParticipation
internal import CallWebhooks
internal import ConfigReader
internal import Glibc
internal import HTTPTransport
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
public import Realtime
internal import Core

/// A WebRTC leg to a bot, whose messages are its sound: linear, at 48 kHz. The media runs at the device, which carries out
/// ``LegOrder``s; the offer is sent from here. On its event loop.
final class LegBotSocket: BotSocket {
    private let environment: BotEnvironment
    private let call: CallID
    /// The value of `traceparent` in requests; nil if calls are not traced.
    private let trace: String?
    private var number: UInt64 = 0
    private var exchange: OfferExchange
    private var tell: ((BotSocketEvent) -> Void)?
    /// Samples at 48 kHz of the bot's that wait for the caller.
    private let waiting: () -> Int
    private var port: AudioPort?
    private var frames: (any Channel)?
    private var timer: Scheduled<Void>?
    // Before the call's media runs a whole greeting may wait; the leg's queue holds 0.68 s.
    private var (toBot, toCaller) = (LegPacing(most: 24_000), LegPacing(most: 480_000))
    private let format = PortFormat(rate: .hz48000)
    private var isPaused = false

    /// Offers a leg. Events come on the loop, also that there is none.
    ///
    /// - Parameter waiting: Returns the number of the bot's samples at 48 kHz that wait for the caller.
    init(
        _ form: OfferForm, to address: WebAddress, call: CallID, trace: String?, _ environment: BotEnvironment,
        waiting: @escaping () -> Int, _ tell: @escaping (BotSocketEvent) -> Void
    ) {
        self.environment = environment
        self.call = call
        self.trace = trace
        self.waiting = waiting
        self.tell = tell
        exchange = OfferExchange(form, to: address, token: environment.plan.token?.revealed)
        number = environment.legs.add(self)
        feed(.begin)
    }

    // MARK: - The device's side

    /// Something has happened to the leg.
    func take(_ event: LegEvent) { feed(event.input) }

    /// The leg's media is about to run.
    ///
    /// - Parameter wakeup: A descriptor of this leg's own that is readable with each frame.
    func attach(_ port: consuming AudioPort, wakeup: Int32) {
        self.port = consume port
        FrameHandler.watch(wakeup, on: environment.loop) { [weak self] in
            self?.runFrame()
        } then: { [weak self] result in
            switch result {
            case .success(let channel):
                guard let self, self.port != nil else { return channel.close(promise: nil) }
                frames = channel
            case .failure(let error): self?.feed(.failed("its frames cannot be watched: \(error)"))
            }
        }
    }

    /// A frame of the leg has run.
    private func runFrame() {
        var (samples, events): ([Int16], [PlaybackEvent]) = ([], [])
        port?.read(into: &samples)
        port?.update(at: MonotonicClock.now, isFinal: false, into: &events)
        guard !isPaused else { return }
        let sound = toCaller.take(samples, waiting: waiting())
        guard !sound.isEmpty else { return }
        var bytes: [UInt8] = []
        format.append(sound, to: &bytes)
        tell?(.message(.binary(bytes)))
    }

    // MARK: - The call's side

    func send(_ message: WireMessage) {
        guard let queued = port?.waiting else { return }
        let samples = toBot.take(format.samples(of: message.bytes), waiting: queued)
        _ = port?.write(samples.span, at: MonotonicClock.now)
    }

    /// The bot sends in real time, and does not wait: what it says meanwhile is lost.
    func pause() { isPaused = true }
    func resume() { isPaused = false }

    /// A leg is notified of a lost connection; what waits for it is bounded here.
    var waitingBytes: Int { 0 }

    func close() {
        tell = nil
        feed(.end)
    }

    func abandon() { close() }

    // MARK: - The exchange

    private func feed(_ input: OfferExchange.Input) {
        for output in exchange.handle(input, at: MonotonicClock.now) { carryOut(output) }
        timer?.cancel()
        timer = exchange.nextDeadline.map { deadline in
            let wait = max(0, MonotonicClock.now.nanoseconds(to: deadline))
            return environment.loop.assumeIsolated().scheduleTask(in: .nanoseconds(wait)) { [weak self] in
                self?.feed(.timerFired)
            }
        }
    }

    private func carryOut(_ output: OfferExchange.Output) {
        switch output {
        case .open: order(.open(call))
        case .describe: order(.describe)
        case .send(let request): send(request)
        case .connect(let answer): order(.connect(answer: answer))
        case .opened: tell?(.opened(self))
        case .hangUp(let request): environment.tell(request, trace)
        case .release:
            order(.close)
            environment.legs.remove(number)
            frames?.close(promise: nil)
            frames = nil
            port = nil
        case .closed(let failure):
            let report = tell
            tell = nil
            report?(.closed(failure: failure))
        }
    }

    private func order(_ order: LegOrder) { environment.order(.leg(number, order)) }

    private func send(_ request: OfferRequest) {
        environment.send(request, trace).assumeIsolated().whenComplete { [self] result in
            switch result {
            case .success(let answer):
                feed(
                    .answered(
                        OfferResponse(
                            status: answer.status, location: answer.headers.first(name: "Location"), body: answer.body))
                )
            case .failure(let error): feed(.failed(environment.explain(error, request.address)))
            }
        }
    }
}

extension BotEnvironment {
    /// Sends an offer to a bot's server.
    fileprivate func send(_ request: OfferRequest, _ trace: String?) -> EventLoopFuture<HTTPFetch.Answer> {
        let endpoint: HTTPEndpoint
        do { endpoint = try HTTPEndpoint(request.address) } catch { return loop.makeFailedFuture(error) }
        var fetch = HTTPFetch.Request(.POST, endpoint, target: request.address.target, body: request.body)
        fetch.headers.add(name: "User-Agent", value: "Handset")
        if let type = request.contentType { fetch.headers.add(name: "Content-Type", value: type) }
        if let authorization = request.authorization { fetch.headers.add(name: "Authorization", value: authorization) }
        if let trace { fetch.headers.add(name: "traceparent", value: trace) }
        return addresses(of: request.address).flatMap { [fetch, self] found in send(fetch, to: found[...]) }
    }

    /// Reports the end of a call to a bot's server; a failure is only logged.
    fileprivate func tell(_ request: OfferRequest, _ trace: String?) {
        let answer = send(request, trace)
        closingRequests.add(answer)
        answer.whenComplete { [self] result in
            switch result {
            // It may have ended it by itself.
            case .success(let answer) where (200..<300).contains(answer.status) || answer.status == 404: break
            case .success(let answer):
                warn("the bot's server answers a hang-up with status \(answer.status)")
            case .failure(let error): warn("a hang-up failed: \(explain(error, request.address))")
            }
        }
    }
}

// Between the device and the legs.
extension BotCalls {
    /// Gives a leg that is to run its line for the media worker.
    public func attach(leg number: UInt64) throws(RealtimeError) -> PortLine {
        let signal = try PortSignal()
        // The loop has a descriptor of its own, which it closes.
        let wakeup = dup(signal.descriptor)
        guard wakeup >= 0 else { throw RealtimeError(doing: "watching a leg's frames", errno: errno) }
        let pair = AudioPort.pair(rate: .hz48000, signal: signal)
        let box = PortBox(pair.port)
        environment.loop.execute { [environment] in
            guard let leg = environment.legs[number], let port = box.take() else {
                Glibc.close(wakeup)
                return
            }
            leg.attach(port, wakeup: wakeup)
        }
        return pair.line
    }

    /// Reports an event of a leg. Does nothing if the leg has ended.
    public func tell(leg number: UInt64, _ event: LegEvent) {
        environment.loop.execute { [environment] in environment.legs[number]?.take(event) }
    }
}
