internal import AudioPort
internal import BotWire
internal import CallControl
internal import CallParticipation
internal import CallWebhooks
internal import ConfigReader
internal import Glibc
internal import HTTPTransport
internal import NIOCore
internal import NIOPosix
internal import Realtime
internal import Core
internal import Tracing

/// One call's bot: carries out what its course and its line ask for.
final class BotCall: @unchecked Sendable {
    // Only its event loop uses it.

    let call: ParticipantCall
    /// The name by which the bot's requests name the call.
    let name: String
    private let environment: BotEnvironment
    private let courier: StatusCourier
    /// What the bot's server has placed the call with.
    private let placed: BotRequest.PlacedCall?
    /// The stream that the call's participant has asked for; nil for a bot that is the participant.
    private let given: CallStream?
    /// How a call goes that was placed and is not answered yet.
    private var waits: TwilioWebhook.Status?
    /// Status callbacks so far.
    private var told = 0
    /// When the bot's call was answered.
    private var answeredAt: Instant?
    /// The stream that is being opened, or is open, whose events its webhook wants reported.
    private var followed: FollowedStream?
    private var course: BotCourse
    private var handover = BotHandover()
    private var line: BotLine?
    private var socket: (any BotSocket)?
    private var port: AudioPort?
    private var format = PortFormat(rate: .hz8000)
    /// Wakes the loop for each frame of the call.
    private var frames: (any Channel)?
    /// The line has ended what it says.
    private var isFinal = false
    /// Count connections and questions, so that a late event of an earlier one is recognised. Each has its own: a connection may
    /// end while something is asked.
    private var connection = 0
    private var question = 0
    private var timer: Scheduled<Void>?
    private var isOver = false

    init(
        _ call: ParticipantCall, _ environment: BotEnvironment, _ courier: StatusCourier,
        _ placed: BotRequest.PlacedCall? = nil, given: CallStream? = nil
    ) {
        self.placed = placed
        self.given = given
        waits = placed == nil ? nil : .queued
        self.call = call
        self.environment = environment
        self.courier = courier
        name = given?.callSid ?? environment.plan.wire.callName(Self.random())
        course = BotCourse(
            isAnswered: call.isAnswered, hasFallback: environment.fallback != nil,
            timeout: environment.plan.answerTimeout)
    }

    /// A stream whose webhook wants its events.
    private struct FollowedStream {
        let stream: String
        let name: String?
        let webhook: Webhook
        /// Whether its beginning has been reported to its server.
        var hasStarted = false
    }

    private static func random() -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<WireName.randomBytes).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }

    // MARK: - The device's side

    /// The call is being made.
    func wasPlaced() -> ServiceAnswer {
        tell(.initiated)
        return .placed(wireCall(stream: ""))
    }

    /// The callee is ringing: reports that to the bot's server.
    func ring() {
        guard waits == .queued else { return }
        waits = .ringing
        tell(.ringing)
    }

    /// Asks the webhook, or connects.
    func begin() {
        waits = nil
        if call.isAnswered { answeredAt = MonotonicClock.now }
        tell(call.isAnswered ? .inProgress : .ringing)
        switch placed?.instructions {
        case .markup(let markup): return feed(.told(markup))
        case .ask(let webhook): return feed(.ask(webhook))
        case nil: break
        }
        let plan = environment.plan
        if let given {
            return feed(.connect(BotCourse.Stream(address: given.address, parameters: given.parameters)))
        }
        guard let address = plan.address else { return environment.publish(.done(call.id, failure: "there is no bot")) }
        if WebAddress.Scheme.requests.contains(address.scheme), plan.wire.leg == nil {
            feed(.ask(Webhook(address)))
        } else {
            feed(.connect(BotCourse.Stream(address: address, parameters: plan.parameters)))
        }
    }

    /// The call's media is about to run.
    ///
    /// - Parameter wakeup: A descriptor of this call's own that is readable with each frame.
    func attach(_ port: consuming AudioPort, wakeup: Int32) {
        guard !isOver else {
            close(wakeup)
            return
        }
        self.port = consume port
        watch(wakeup)
        tellRoom()
    }

    func take(digit: Character, heldMilliseconds: Int) {
        feed(line: .digit(digit, heldMilliseconds: heldMilliseconds))
    }

    /// The call has ended, or never came about, or continues without its bot.
    ///
    /// - Parameter seconds: How long the call was; its bot has part in it for no longer than that.
    func end(_ status: TwilioWebhook.Status, seconds: Int = .max) {
        guard !isOver else { return }
        feed(line: .end(.callOver))
        closeSocket()
        tellStream(.stopped)
        let own = answeredAt.map { Int($0.duration(to: MonotonicClock.now).components.seconds) } ?? 0
        let seconds = min(seconds, own)
        _ = course.handle(.callOver, at: MonotonicClock.now)
        isOver = true
        question += 1
        line = nil
        timer?.cancel()
        frames?.close(promise: nil)
        frames = nil
        port = nil
        let names = environment.plan.wire.dialect == .plivo ? ["CallDuration", "Duration"] : ["CallDuration"]
        tell(status, event: "Hangup", names.map { FormFields.Field($0, "\(seconds)") })
    }

    /// Ends the call when the bot is heard out.
    func hearOut() { feed(.end) }

    /// A transfer that the bot has asked for did not come about.
    func transferFailed() { feed(.transferFailed) }

    /// The device reports a step of a hand-over.
    func noteHandover(_ state: HandoverState) {
        if handover.note(state) { transferFailed() }
    }

    /// The device refuses a hand-over that the bot has asked for.
    func handoverRefused() {
        if handover.noteRefusal() { transferFailed() }
    }

    /// The device has no hand-over to take back.
    func nothingTakenBack() { handover.noteNothingTakenBack() }

    /// Carries out a request of the bot's server.
    func carryOut(_ order: BotRequest.Order) throws(ServiceFault) -> (WireCall, TwilioWebhook.Status) {
        let before = waits ?? course.status
        switch order {
        case .end where waits != nil:
            environment.publish(.done(call.id, failure: nil))
            return (wireCall(stream: ""), .canceled)
        case .redirect where waits != nil:
            throw ServiceFault(.callOver, .twilio, "the call is not answered yet: it cannot be redirected")
        case .end(_, onlyUnanswered: true) where before != .ringing:
            throw ServiceFault(.callOver, .twilio, "the call is already answered; end it with the status completed")
        case .end:
            takeBackHandover()
            feed(.end)
            return (wireCall(stream: ""), .completed)
        case .redirect(_, let instructions):
            takeBackHandover()
            feed(.redirect(instructions))
            return (wireCall(stream: ""), before)
        case .transfer(_, let transfer):
            guard waits == nil, course.status == .inProgress else {
                throw ServiceFault(.callOver, .telnyx, "the call is not answered yet: it cannot be transferred")
            }
            self.transfer(to: transfer.target)
            return (wireCall(stream: ""), before)
        case .place: throw ServiceFault(.forbidden, .twilio, "calls cannot be placed here")
        }
    }

    // MARK: - Its course

    private func feed(_ input: BotCourse.Input) {
        guard !isOver else { return }
        for output in course.handle(input, at: MonotonicClock.now) { carryOut(output) }
        arm()
    }

    private func carryOut(_ output: BotCourse.Output) {
        switch output {
        case .ask(let webhook, let dialFailed): ask(webhook, dialFailed: dialFailed)
        case .open(let stream): open(stream)
        case .finishStream: feed(line: .finish)
        case .abandon:
            question += 1
            connection += 1
            socket?.abandon()
            socket = nil
            line = nil
            tellStream(.failed("the connection was given up before it was established"))
        case .accept:
            answeredAt = MonotonicClock.now
            tell(.inProgress)
            environment.publish(.ready(call.id))
        case .reject(let reason?, let why):
            environment.publish(.rejected(call.id, reason == .busy ? .busy : .declined, why))
        case .reject(nil, let why): environment.publish(.failed(call.id, why))
        case .fallBack(let why):
            note(.fellBack(why))
            begin(BotLine(saying: environment.fallback ?? [], .linear(48_000)))
        case .stopFallback:
            line = nil
            port?.abandon()
        case .hangUp(let failure): environment.publish(.done(call.id, failure: failure))
        case .transfer(let target): transfer(to: target)
        }
    }

    private func transfer(to target: String) {
        switch environment.plan.transferBy {
        case .refer: environment.publish(.transfer(call.id, to: target))
        case .handover:
            handover.begin()
            environment.publish(.handover(call.id, HandoverRequest(to: target)))
        }
    }

    /// The bot's server wants something else for its caller than the person that is being called.
    private func takeBackHandover() {
        if handover.takeBack() { environment.publish(.cancelHandover(call.id)) }
    }

    private func ask(_ webhook: Webhook, dialFailed: Bool) {
        question += 1
        let (number, plan) = (question, environment.plan)
        let asked = TwilioWebhook(
            wireCall(stream: ""), course.status,
            more: plan.wire.moreFields(name, event: "StartApp")
                + (dialFailed ? [plan.wire.failedDial] : []))
        guard let request = traced(asked.request(to: webhook, token: plan.token?.revealed)) else {
            return feed(.failed("the request cannot be signed: this system's OpenSSL refuses HMAC-SHA1"))
        }
        environment.send(request).assumeIsolated().whenComplete { [self] result in
            guard number == question else { return }
            switch result {
            case .success(let answer): take(answer, from: webhook.address)
            case .failure(let error): feed(.failed(environment.explain(error, webhook.address)))
            }
        }
    }

    private func take(_ answer: HTTPFetch.Answer, from address: WebAddress) {
        guard (200..<300).contains(answer.status) else {
            let hint = (300..<400).contains(answer.status) ? "; redirects are not followed" : ""
            return feed(.failed("the webhook answers with status \(answer.status)\(hint)"))
        }
        do throws(MarkupFault) {
            feed(.told(try CallMarkup(answer.body, environment.plan.wire.dialect, from: address)))
        } catch {
            feed(.failed("the webhook's answer, line \(error.line): \(error)"))
        }
    }

    // MARK: - Its connection

    private func open(_ stream: BotCourse.Stream) {
        connection += 1
        let (number, wire) = (connection, environment.plan.wire.makeWire(stream.callerFormat))
        let name = given?.streamSid ?? environment.plan.wire.streamName(Self.random())
        // Plivo has other words for it.
        followed =
            environment.plan.wire.dialect == .plivo
            ? nil
            : stream.statusCallback.map {
                FollowedStream(stream: name, name: stream.name, webhook: $0)
            }
        guard let rate = PortRate(rawValue: wire.callerFormat.rateHz), rate == environment.plan.wire.portRate else {
            let why = "the stream's sound has another rate than the call's"
            tellStream(.failed(why))
            return feed(.failed(why))
        }
        format = PortFormat(rate: rate, encoding: PortFormat.Encoding(wire.callerFormat.encoding))
        begin(BotLine(wire))
        environment.addresses(of: stream.address).assumeIsolated().whenComplete { [self] result in
            guard number == connection else { return }
            switch result {
            // An offer tries all addresses itself.
            case .success(let addresses):
                connect(to: environment.plan.wire.leg == nil ? addresses[...] : addresses.prefix(1), stream, name)
            case .failure(let error): fail(environment.explain(error, stream.address))
            }
        }
    }

    private func connect(to addresses: ArraySlice<NIOCore.SocketAddress>, _ stream: BotCourse.Stream, _ name: String) {
        guard let address = addresses.first else { return fail("the bot's host has no address") }
        let (number, rest) = (connection, addresses.dropFirst())
        var (hasOpened, hasBegun) = (false, false)
        let tell: (BotSocketEvent) -> Void = { [self] event in
            guard number == connection else { return }
            switch event {
            case .opened(let socket):
                hasOpened = true
                self.socket = socket
                tellStream(.started)
                feed(line: .opened(wireCall(stream: name, parameters: stream.parameters)))
                hasBegun = noteBeginning()
            case .message(let message):
                feed(line: .message(message))
                if !hasBegun, number == connection { hasBegun = noteBeginning() }
            case .closed(let failure):
                socket = nil
                if hasOpened { return feed(line: .closed(failure: failure)) }
                if !rest.isEmpty { return connect(to: rest, stream, name) }
                fail(failure ?? "the bot has closed the connection at once")
            }
        }
        switch environment.plan.wire.makeWire(nil).transport {
        case .webSocket:
            guard let endpoint = try? HTTPEndpoint(stream.address) else { return fail("the bot's URL is unusable") }
            let credentials = environment.plan.token.map { environment.plan.wire.credentials($0, at: stream.address) }
            socket = WebBotSocket(
                endpoint, at: address, subprotocols: environment.plan.wire.makeWire(nil).subprotocols,
                headers: environment.plan.wire.headers + (credentials ?? []), trace: call.trace?.description,
                trust: environment.trust, on: environment.loop, tell)
        case .tcp:
            socket = StreamBotSocket(
                "\(stream.address.host):\(stream.address.port)", at: address, on: environment.loop, tell)
        case .offer:
            guard let leg = environment.plan.wire.leg else { return fail("the bot's wire has no legs") }
            socket = LegBotSocket(
                leg.form(stream.parameters), to: stream.address, call: call.id, trace: call.trace?.description,
                environment,
                waiting: { [weak self] in self?.waitingSamples ?? 0 }, tell)
        }
    }

    /// The call can be answered once the bot takes part.
    ///
    /// - Returns: Whether it does.
    private func noteBeginning() -> Bool {
        guard line?.hasBegun == true else { return false }
        feed(.opened)
        return true
    }

    /// Samples at 48 kHz of the bot's that wait for the caller.
    private var waitingSamples: Int {
        let backlog = line.map { Instant.zero.nanoseconds(to: .zero.advanced(by: $0.waiting)) } ?? 0
        return Int(backlog * 48 / 1_000_000) + (port?.waiting ?? 0) * 48_000 / environment.plan.wire.portRate.rawValue
    }

    /// There is no connection.
    private func fail(_ why: String) {
        line = nil
        socket = nil
        tellStream(.failed(why))
        feed(.failed(why))
    }

    private func closeSocket() {
        // Late events of it are ignored.
        connection += 1
        socket?.close()
        socket = nil
    }

    // MARK: - Its line

    private func begin(_ line: BotLine) {
        self.line = line
        isFinal = false
        tellRoom()
    }

    private func tellRoom() {
        guard let room = port?.roomAt48kHz, let missed = port?.missedSamples, let played = port?.played else { return }
        feed(line: .attached(room: room, missedAt48kHz: missed, played: played))
    }

    private func feed(line input: BotLine.Input) {
        guard !isOver, let outputs = line?.handle(input, at: MonotonicClock.now) else { return }
        for output in outputs { carryOut(output) }
        arm()
    }

    private func carryOut(_ output: BotLine.Output) {
        switch output {
        case .send(let message): socket?.send(message)
        case .write(let sound, let written): write(sound, written)
        case .mark(let name):
            guard port?.mark(name) != true else { return }
            // The bot gets it back as one that was cleared, so that it does not wait for it.
            note(.misunderstood("a mark is not set, because too many wait to be played", leftOut: 0))
            feed(line: .playback(.discarded(mark: name)))
        case .clear: port?.clear()
        case .endPlayback:
            isFinal = true
            port?.end()
        case .pause: socket?.pause()
        case .resume: socket?.resume()
        case .close: closeSocket()
        case .press(let keys): environment.publish(.press(call.id, keys: keys))
        case .fault(let what, let leftOut): note(.misunderstood(what, leftOut: leftOut))
        case .behind: note(.behind(events: false))
        case .over(let failure):
            line = nil
            closeSocket()
            // What was not heard in time is not the next bot's, and neither are its marks.
            if let waiting = port?.waiting, waiting > 0 { port?.abandon() }
            tellStream(failure.map { .failed($0) } ?? .stopped)
            feed(failure.map { .failed($0) } ?? .streamOver)
        }
    }

    private func write(_ sound: [UInt8], _ written: WireFormat) {
        guard let rate = PortRate(rawValue: written.rateHz) else { return }
        let samples = PortFormat(rate: rate, encoding: PortFormat.Encoding(written.encoding)).samples(of: sound)
        _ = port?.write(samples.span, rate: rate, at: MonotonicClock.now)
    }

    /// A frame of the call has run.
    private func runFrame() {
        var (samples, events): ([Int16], [PlaybackEvent]) = ([], [])
        port?.read(into: &samples)
        port?.update(at: MonotonicClock.now, isFinal: isFinal, into: &events)
        for event in events {
            switch event {
            case .played(let mark, _): feed(line: .playback(.played(mark: mark)))
            case .discarded(let mark): feed(line: .playback(.discarded(mark: mark)))
            case .cleared(let played): feed(line: .playback(.cleared(played: played)))
            case .interrupted(let played):
                feed(line: .playback(.interrupted))
                tell(.interrupted(played: format.rate.duration(of: played)))
            case .ended: feed(line: .playback(.ended))
            }
        }
        var turns: [TurnEvent] = []
        port?.takeTurns(into: &turns)
        for turn in turns { if let notice = TurnNotice(turn, format.rate) { tell(notice) } }
        guard let room = port?.roomAt48kHz else { return }
        var frame = BotLine.Frame(room: room, outboundBytes: socket?.waitingBytes ?? 0)
        frame.missedAt48kHz = port?.missedSamples ?? 0
        frame.isSuspended = port?.isSuspended ?? false
        format.append(samples, to: &frame.sound)
        feed(line: .frame(frame))
    }

    private func note(_ notice: ParticipantNotice) { environment.publish(.noted(notice, call.id)) }

    private func tell(_ notice: TurnNotice) {
        guard let summary = port?.turns else { return }
        environment.publish(.turn(call.id, notice, summary))
    }

    private func watch(_ wakeup: Int32) {
        FrameHandler.watch(wakeup, on: environment.loop) { [weak self] in
            self?.runFrame()
        } then: { [self] result in
            switch result {
            case .success(let channel):
                if isOver { channel.close(promise: nil) } else { frames = channel }
            case .failure(let error):
                guard !isOver else { return }
                environment.publish(.done(call.id, failure: "its frames cannot be watched: \(error)"))
            }
        }
    }

    private func arm() {
        timer?.cancel()
        timer = nil
        let deadlines = [course.nextDeadline, line?.nextDeadline].compactMap { $0 }.filter { $0.nanoseconds < .max }
        guard !isOver, let deadline = deadlines.min() else { return }
        let wait = max(0, MonotonicClock.now.nanoseconds(to: deadline))
        timer = environment.loop.scheduleTask(in: .nanoseconds(wait)) { [weak self] in
            self?.feed(line: .timerFired)
            self?.feed(.timerFired)
        }
    }

    // MARK: - What the bot learns of the call

    private func wireCall(stream: String, parameters: [String: String] = [:]) -> WireCall {
        call.wireCall(name, stream: stream, account: environment.plan.account, parameters)
    }

    /// The request with the call's span, if calls are traced.
    private func traced(_ request: TwilioWebhook.Request?) -> TwilioWebhook.Request? {
        var request = request
        request?.trace = call.trace?.description
        return request
    }

    /// Reports the call's status if that was requested: of a placed call, by the request, else by the configuration.
    private func tell(_ status: TwilioWebhook.Status, event: String = "StartApp", _ more: [FormFields.Field] = []) {
        let plan = environment.plan
        let configured = (plan.statusCallback.map { Webhook($0) }, Set(plan.statusEvents.map(\.rawValue)))
        let (webhook, events) = placed.map { ($0.statusCallback, $0.statusEvents) } ?? configured
        guard let webhook, events.contains(BotPlan.StatusEvent(status).rawValue) else { return }
        let fields = [
            FormFields.Field("CallbackSource", "call-progress-events"), FormFields.Field("SequenceNumber", "\(told)"),
        ]
        told += 1
        let notice = TwilioWebhook(
            wireCall(stream: ""), status, more: fields + more + plan.wire.moreFields(name, event: event))
        guard let request = traced(notice.request(to: webhook, token: plan.token?.revealed)) else { return }
        courier.report(StatusQueue.Report(call: call.id, what: status.rawValue, request: request))
    }

    /// Reports what happens to a stream, if its answer requested that. The end is reported once.
    private func tellStream(_ event: StreamWebhook.Event) {
        guard let stream = followed else { return }
        let event =
            event == .stopped && !stream.hasStarted ? .failed("the call ended before the stream was open") : event
        if event == .started { followed?.hasStarted = true } else { followed = nil }
        let notice = StreamWebhook(
            wireCall(stream: stream.stream), name: stream.name, event,
            unixMilliseconds: MonotonicClock.wallTime.unixMilliseconds)
        let token = environment.plan.token?.revealed
        guard let request = traced(notice.request(to: stream.webhook, token: token)) else { return }
        courier.report(StatusQueue.Report(call: call.id, what: event.name, request: request))
    }
}

extension ParticipantCall {
    /// What a bot learns of the call, whose stream begins now.
    func wireCall(_ name: String, stream: String, account: String, _ parameters: [String: String]) -> WireCall {
        let own = own?.text ?? ""
        return WireCall(
            call: name, stream: stream, account: account, from: isOutgoing ? own : peer.text,
            to: isOutgoing ? peer.text : own, direction: isOutgoing ? .outgoing : .incoming, parameters: parameters,
            startMilliseconds: MonotonicClock.wallTime.unixMilliseconds)
    }
}

/// Reports frames: what is read is the count of a wake-up, which does not matter.
final class FrameHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let tell: () -> Void

    init(_ tell: @escaping () -> Void) { self.tell = tell }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { tell() }

    /// Reports each frame that is signalled on a descriptor, which is closed with the channel, or if there is none.
    static func watch(
        _ wakeup: Int32, on loop: any EventLoop, _ tell: @escaping () -> Void,
        then: @escaping (Result<any Channel, any Error>) -> Void
    ) {
        let tell = NIOLoopBound(tell, eventLoop: loop)
        NIOPipeBootstrap(group: loop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(FrameHandler(tell.value))
                }
            }
            .takingOwnershipOfDescriptor(input: wakeup)
            .assumeIsolated()
            .whenComplete(then)
    }
}

extension BotPlan.StatusEvent {
    /// The event of a status.
    init(_ status: TwilioWebhook.Status) {
        switch status {
        case .queued, .initiated: self = .initiated
        case .ringing: self = .ringing
        case .inProgress: self = .answered
        case .completed, .busy, .failed, .noAnswer, .canceled: self = .completed
        }
    }
}

extension BotProtocol {
    /// A call's name as the service makes them.
    func callName(_ random: [UInt8]) -> String {
        switch self {
        case .twilio: WireName.sid("CA", random)
        case .exotel: WireName.sid("", random)
        case .telnyx, .plivo, .vonage, .jambonz, .asterisk, .realtime, .audioSocket, .leg: WireName.uuid(random)
        }
    }

    func streamName(_ random: [UInt8]) -> String {
        switch self {
        case .twilio: WireName.sid("MZ", random)
        case .exotel: WireName.sid("", random)
        case .telnyx, .plivo, .vonage, .jambonz, .asterisk, .realtime, .audioSocket, .leg: WireName.uuid(random)
        }
    }

    /// The headers with which a WebSocket is opened.
    var headers: [(String, String)] {
        switch self {
        case .realtime(let settings) where settings.version == .beta: [("OpenAI-Beta", "realtime=v1")]
        case .realtime, .twilio, .telnyx, .plivo, .exotel, .vonage, .jambonz, .asterisk, .audioSocket, .leg: []
        }
    }

    /// The headers that show the token when a WebSocket is opened.
    func credentials(_ token: Secret, at address: WebAddress) -> [(String, String)] {
        switch self {
        case .realtime: [("Authorization", "Bearer \(token.revealed)")]
        case .twilio, .telnyx, .plivo, .exotel, .vonage, .jambonz, .asterisk, .audioSocket, .leg:
            TwilioSignature.text(of: address.text, token: token.revealed).map { [("X-Twilio-Signature", $0)] } ?? []
        }
    }

    /// The fields with the outcome of a transfer, for the webhook that is asked after it.
    var failedDial: FormFields.Field {
        switch self {
        case .plivo: FormFields.Field("DialStatus", "failed")
        case .twilio, .telnyx, .exotel, .vonage, .jambonz, .asterisk, .realtime, .audioSocket, .leg:
            FormFields.Field("DialCallStatus", "failed")
        }
    }

    /// The service's own fields of a webhook, beyond Twilio's.
    ///
    /// - Parameter event: Plivo's name of what has happened.
    func moreFields(_ call: String, event: String) -> [FormFields.Field] {
        switch self {
        case .plivo: [FormFields.Field("CallUUID", call), FormFields.Field("Event", event)]
        case .twilio, .telnyx, .exotel, .vonage, .jambonz, .asterisk, .realtime, .audioSocket, .leg: []
        }
    }
}
