internal import AudioPort
internal import BotCalls
internal import Call
internal import CallBridging
internal import CallControl
internal import CallFlow
internal import CallFlows
internal import CallMeetings
internal import CallParticipation
internal import CallPrograms
internal import CallVoicemail
internal import Core
internal import Logging
internal import MediaEngine
internal import Realtime
internal import Synchronization

/// The participants of a device's calls: programs, the bot, flows, rooms, mailboxes, or this process by ports or lines; and which of them takes part in which call.
final class CallParticipants {
    /// What participants ask and report.
    enum Input: Sendable {
        case event(ParticipantEvent, from: ParticipantKind)
        case bot(BotOrder)
        case flow(FlowOrder)
    }

    /// All inputs, those of each participant in their order.
    let inputs: AsyncStream<Input>
    /// The bot of the calls, for what only bots can do; nil without the behaviour `bot`.
    let bots: BotCalls?
    /// The name of the behaviour with the bot.
    let botBehaviour: String
    /// Of behaviours with `exec`, by their names.
    private let programs: [String: CallPrograms]
    /// Of behaviours with `flow`, likewise.
    private let flows: [String: CallFlows]
    /// Of behaviours with `conference`, likewise.
    private let meetings: [String: CallMeetings]
    /// Of behaviours with `voicemail`, likewise.
    private let mailboxes: [String: CallVoicemail]
    private let ports: CallPorts
    private let lines: ProvidedLines
    /// Legs to bots that are offered them by HTTP.
    private(set) var legs = BotLegs()
    /// Whether calls are those of the configured bot, so that no port of this process takes part in them.
    private var areBotsFirst: Bool
    /// Which calls are joined.
    var bridges = CallBridges()
    /// What flows have dialled.
    var dials = CallDials()
    /// Which calls are handed over to persons.
    var handovers = CallHandovers()
    /// What participants have asked for whose calls are not established yet.
    var waitingHandovers: [CallID: HandoverRequest] = [:]
    /// Which callers wait in queues.
    var queues: CallQueues
    /// Which calls are parked.
    var parking = CallParking()
    /// What calls hear that wait.
    var music = CallMusic()
    /// Ends of participants whose calls are elsewhere.
    var deferredEnds = DeferredEnds()
    /// Spoken whispers, until the calls end that hear them.
    var whispers: [CallID: SpokenText] = [:]
    /// Wakes what spans calls.
    var joiningTimer = WakeTimer()
    /// Reports an event in a participant's place.
    let publish: @Sendable (ParticipantEvent, ParticipantKind) -> Void
    /// The participant that has begun in a call, or that has placed it, until it is detached.
    private var present: [CallID: any CallParticipant] = [:]

    init(_ configuration: DeviceConfiguration, in hall: MeetingHall) throws(RealtimeError) {
        // Each participant limits what it reports, and a hang-up must not be lost behind it.
        queues = CallQueues(configuration.queues.limits)
        let (inputs, sink) = AsyncStream.makeStream(of: Input.self, bufferingPolicy: .unbounded)
        self.inputs = inputs
        publish = { sink.yield(.event($0, from: $1)) }
        // The account of a device never changes.
        let account = configuration.account
        var programs: [String: CallPrograms] = [:]
        var flows: [String: CallFlows] = [:]
        var meetings: [String: CallMeetings] = [:]
        var mailboxes: [String: CallVoicemail] = [:]
        for (name, behaviour) in configuration.allBehaviours {
            if let plan = behaviour.participation?.program {
                programs[name] = try CallPrograms(plan) { sink.yield(.event($0, from: .program)) }
            }
            if let plan = behaviour.participation?.flow {
                flows[name] = CallFlows(
                    plan, name: Self.flowNames, publish: { sink.yield(.event($0, from: .flow)) },
                    order: { sink.yield(.flow($0)) },
                    streams: { targets in
                        StreamCalls(StreamPlan(targets)) {
                            sink.yield(.event(.noted(.warned($0, leftOut: $1), nil), from: .flow))
                        }
                    })
            }
            if let plan = behaviour.participation?.meeting {
                meetings[name] = CallMeetings(plan, in: hall) { sink.yield(.event($0, from: .meeting)) }
            }
            if let plan = behaviour.participation?.mailbox {
                mailboxes[name] = CallVoicemail(
                    plan, name: Self.voicemailNames,
                    isOwner: { call, owners in
                        account.callerList(owners).admits(account.caller(call.peer, outside: call.caller))
                    },
                    publish: { sink.yield(.event($0, from: .mailbox)) })
            }
        }
        self.programs = programs
        self.flows = flows
        self.meetings = meetings
        self.mailboxes = mailboxes
        botBehaviour = configuration.allBehaviours.first { $0.behaviour.participation?.bot != nil }?.name ?? ""
        bots = configuration.bot.map { plan in
            BotCalls(
                plan, mayTransfer: { account.mayTransferForBot($0) != nil },
                publish: { sink.yield(.event($0, from: .bot)) }, order: { sink.yield(.bot($0)) })
        }
        ports = CallPorts { sink.yield(.event($0, from: .port)) }
        lines = ProvidedLines { sink.yield(.event($0, from: .line)) }
        areBotsFirst = Self.areBotsFirst(configuration)
    }

    private static func areBotsFirst(_ configuration: DeviceConfiguration) -> Bool {
        configuration.allBehaviours.contains { $0.behaviour.source.bot != nil }
    }

    /// Applies another configuration to calls that begin from now on.
    func adopt(_ configuration: DeviceConfiguration) {
        for (name, behaviour) in configuration.allBehaviours {
            if let plan = behaviour.participation?.program { programs[name]?.adopt(plan) }
            if let plan = behaviour.participation?.flow { flows[name]?.adopt(plan) }
            if let plan = behaviour.participation?.meeting { meetings[name]?.adopt(plan) }
            if let plan = behaviour.participation?.mailbox { mailboxes[name]?.adopt(plan) }
        }
        areBotsFirst = Self.areBotsFirst(configuration)
        queues.adopt(configuration.queues.limits)
    }

    private static func flowNames(_ call: ParticipantCall) -> FlowCallNames {
        let key = CallMaker.newKey()
        let recording = RecordingName(
            peer: call.peer.text, isOutgoing: call.isOutgoing, at: MonotonicClock.wallTime, key: key)
        return FlowCallNames(callSid: "CA\(key)", recording: "\(recording)")
    }

    private static func voicemailNames(_ call: ParticipantCall) -> VoicemailNames {
        let key = CallMaker.newKey()
        let now = MonotonicClock.wallTime
        let name = RecordingName(
            peer: call.caller ?? call.peer.text, isOutgoing: call.isOutgoing, at: now, key: key)
        return VoicemailNames(stem: "\(name)", id: String(key.prefix(RecordingName.keyLength)), received: now.rfc3339)
    }

    /// Makes messages of what killed processes have left in the mailboxes.
    func recoverMessages() -> [Task<Void, Never>] { mailboxes.values.map { box in Task { await box.recover() } } }

    /// Listens for what the bot's server asks for.
    nonisolated(nonsending) func listen(_ logger: Logger) async throws(SignalingError) {
        do {
            guard let port = try await bots?.listen() else { return }
            logger.info("Listening for requests of bots", metadata: ["port": "\(port)"])
        } catch {
            throw SignalingError(.mediaFailed, activity: "listen for requests of bots", cause: "\(error)")
        }
    }

    func provideLines(_ provider: @escaping @Sendable () -> PortLine?) { lines.provide(provider) }

    func providePorts(_ plan: PortPlan, _ converse: @escaping @Sendable (CallPort) async -> Void) {
        ports.provide(plan, converse)
    }

    // MARK: Beginning

    /// Begins the participation in an incoming call whose answer waits for its participant.
    ///
    /// - Parameter user: Who the device is to its service.
    /// - Returns: False if nothing delays the answer.
    func summon(to call: CallSession, own user: UserID?) throws -> Bool {
        guard let participant = participant(of: call, isAttached: false), participant.delaysAnswer else {
            return false
        }
        try join(participant, call, isAttached: false, own: user)
        return true
    }

    /// Begins the participation in a call whose media is about to start, or runs.
    ///
    /// - Parameters:
    ///   - isAttached: Whether the call's media runs already.
    ///   - user: Who the device is to its service.
    /// - Returns: The media worker's side; nil is silence.
    func begin(in call: CallSession, isAttached: Bool = false, own user: UserID?) throws -> PortLine? {
        guard let participant = participant(of: call, isAttached: isAttached) else { return nil }
        // A participant that delays the answer of an incoming call has begun with that.
        if call.isOutgoing || isAttached || !participant.delaysAnswer {
            try join(participant, call, isAttached: isAttached, own: user)
        }
        return try participant.attach(to: call.id)
    }

    /// The call's own participant, or the one that it gets; nil if there is none.
    private func participant(of call: CallSession, isAttached: Bool) -> (any CallParticipant)? {
        if let participant = present[call.id] { return participant }
        if lines.areProvided { return lines }
        if !isAttached, !areBotsFirst, ports.areProvided { return ports }
        // What is attached to calls is that of the section `behaviour`.
        let name = isAttached ? "" : call.behaviour
        if let bots, botBehaviour == name { return bots }
        return programs[name] ?? flows[name] ?? meetings[name] ?? mailboxes[name]
    }

    private func join(
        _ participant: any CallParticipant, _ call: CallSession, isAttached: Bool, own user: UserID?
    ) throws {
        var details = ParticipantCall(
            call.id, peer: call.peer, own: user, isOutgoing: call.isOutgoing,
            isAnswered: call.isOutgoing || isAttached, trace: call.trace?.context)
        details.caller = call.trunk?.caller
        details.callerName = call.trunk?.name
        try participant.begin(details)
        present[call.id] = participant
    }

    /// Opens a port of this process in a call whose media runs.
    ///
    /// - Returns: The port; ``line(ofPortIn:)`` is the media worker's side of it.
    func openPort(_ plan: PortPlan, in call: CallID) throws(RealtimeError) -> CallPort {
        let port = try ports.open(plan, for: call)
        present[call] = ports
        return port
    }

    /// The media worker's side of a port that was just opened.
    func line(ofPortIn call: CallID) -> PortLine? { ports.attach(to: call) }

    /// Whether the call has a port that was closed.
    func hasClosedPort(in call: CallID) -> Bool { ports.isClosed(call) }

    /// The bot's server has placed a call.
    func botPlaced(_ call: ParticipantCall, number: UInt64) {
        present[call.id] = bots
        bots?.placed(number, call)
    }

    // MARK: What flows dial

    /// Reports to a caller's flow what has become of what it has dialled.
    func report(_ report: FlowDialReport, to caller: CallID) {
        (present[caller] as? CallFlows)?.report(report, to: caller)
    }

    /// Reports to a caller's flow what becomes of it in its queue.
    func report(_ report: FlowQueueReport, to caller: CallID) {
        (present[caller] as? CallFlows)?.report(report, to: caller)
    }

    /// A call takes the caller of a queue, which goes through a document of that call's flow first.
    func call(_ caller: CallID, by taker: CallID, through whisper: FlowWhisper?, attempt: Int) {
        (present[caller] as? CallFlows)?.call(
            caller, by: taker, in: present[taker] as? CallFlows, through: whisper, attempt: attempt)
    }

    /// Whether a flow decides what a call is joined to: it has dialled, waits in a queue, or takes a caller from one.
    func isInFlow(_ call: CallID) -> Bool { dials.isDialling(for: call) || queues.isInFlow(call) }

    /// Has the callee of a placed call go through a document of the caller's flow.
    func ask(_ callee: CallID, by document: FlowAddress, for caller: CallID) {
        guard let flows = present[caller] as? CallFlows else { return }
        flows.ask(callee, by: document, for: caller)
        present[callee] = flows
    }

    // MARK: Calls that are elsewhere

    /// Reports a step of a hand-over to the call's participant.
    func noteHandover(_ report: HandoverReport, of call: CallID) { present[call]?.noteHandover(report, of: call) }

    /// Whether what takes part in a call is paused while the call is elsewhere: a flow or a mailbox, which would continue without its
    /// caller. A flow that has dialled the other call does not.
    func standsStill(in call: CallID) -> Bool {
        guard !isInFlow(call), !dials.isPlaced(call) else { return false }
        return switch present[call]?.kind {
        case .flow?, .mailbox?: true
        case .program?, .bot?, .meeting?, .port?, .line?, nil: false
        }
    }

    // MARK: Legs of bots

    /// Does what a bot's leg needs.
    func carryOut(_ order: LegOrder, ofLeg number: UInt64, with resources: inout MediaResources) {
        if let bots { legs.carryOut(order, ofLeg: number, for: bots, with: &resources) }
    }

    /// Handles the media side's events of a leg.
    ///
    /// - Returns: Nil if it is of something else.
    func handle(_ event: MediaEvent) -> BotLegs.Request? { legs.handle(event, for: bots) }

    // MARK: Orders of the call's session

    /// Carries out an order of a call's session; ``summon(to:own:)`` does so for a summons.
    ///
    /// - Returns: What the session takes of it; nil if nothing.
    func carryOut(_ order: CallCourse.ParticipantOrder, of call: CallID) -> ParticipantEvent? {
        let participant = present[call]
        switch order {
        case .summon: break
        case .ring: bots?.ring(call)
        case .sendDigit(let key, let time): participant?.sendDigit(key, heldFor: time, to: call)
        case .noteTransfer(let target, let progress): participant?.noteTransfer(to: target, progress, of: call)
        case .refuse(let request, let why): participant?.refuse(request, of: call, why)
        case .hearOut: participant?.hearOut(call)
        case .end(let end):
            participant?.end(call, end)
            guard case .detached = end else { return nil }
            present[call] = nil
            // No participant reports it.
            if participant == nil { return .left(call) }
        }
        return nil
    }

    /// Whether the keys of a call may be secrets.
    func keepsKeys(of call: CallID) -> Bool { present[call]?.keepsKeys ?? false }

    /// The call is finished.
    func forget(_ call: CallID) {
        present[call] = nil
        whispers[call] = nil
        waitingHandovers[call] = nil
        _ = deferredEnds.take(call)
    }

    /// Ends all participations.
    nonisolated(nonsending) func finish() async {
        let others: [any CallParticipant] = Array(programs.values) + Array(flows.values) + Array(meetings.values)
        let all: [(any CallParticipant)?] = others + [ports, lines, bots]
        // They wait for their disks, so all at the same time.
        let ending = mailboxes.values.map { mailbox in Task { await mailbox.finish() } }
        for participant in all { await participant?.finish() }
        for task in ending { await task.value }
    }
}

extension StreamPlan {
    /// Where a flow's documents may stream calls.
    fileprivate init(_ targets: FlowStreamTargets) {
        self.init(
            own: targets.own, allowedHosts: targets.allowedHosts, section: "behaviour.flow", token: targets.secret,
            trustRoots: targets.trustRoots)
    }
}

extension BehaviourConfiguration {
    /// The program, bot, flow, room or mailbox that calls have, or what can be attached to them; nil if there is none.
    var participation: Source? {
        let takesPart = source.program != nil || source.bot != nil || source.flow != nil || source.meeting != nil
        return takesPart || source.mailbox != nil ? source : attachment
    }
}

extension BehaviourConfiguration.Source {
    /// How long an incoming call waits for who takes part in it.
    fileprivate var answerTimeout: Duration {
        if let timeout = bot?.answerTimeout ?? program?.answerTimeout { return timeout }
        if flow != nil { return FlowPlan.answerTimeout }
        if mailbox != nil { return VoicemailPlan.answerTimeout }
        return meeting != nil ? MeetingPlan.answerTimeout : .zero
    }
}

extension DeviceConfiguration {
    /// All behaviours: that of the section `behaviour`, whose name is empty here, and those that rules name, in the order of their names.
    var allBehaviours: [(name: String, behaviour: BehaviourConfiguration)] {
        [("", behaviour)] + behaviours.sorted { $0.key < $1.key }.map { (name: $0.key, behaviour: $0.value) }
    }

    /// The behaviour of a name.
    func behaviour(named name: String) -> BehaviourConfiguration { behaviours[name] ?? behaviour }

    private var participations: [BehaviourConfiguration.Source] { allBehaviours.compactMap(\.behaviour.participation) }

    /// The bot that calls have, or that can be attached to them; nil if there is none.
    var bot: BotPlan? { participations.lazy.compactMap(\.bot).first }

    /// Whether calls have a program, bot, flow or room, or one can be attached to them.
    var hasParticipant: Bool { !participations.isEmpty }

    /// How long an incoming call waits for its program, bot, flow or room.
    var participantTimeout: Duration {
        participations.map(\.answerTimeout).max() ?? .zero
    }

    /// Whether calls with the bot have a WebRTC leg to it, which takes as much of a worker as the call itself.
    var hasLegs: Bool { behaviourWithLegs != nil }

    /// The name of the behaviour whose calls have such a leg; nil if there is none.
    var behaviourWithLegs: String? { allBehaviours.first { $0.behaviour.participation?.bot?.wire.leg != nil }?.name }
}

/// Lines of this process in the place of ports: the process has the other ends.
final class ProvidedLines: CallParticipant {
    let kind = ParticipantKind.line
    let delaysAnswer = false
    private let publish: @Sendable (ParticipantEvent) -> Void
    private let provider = Mutex<(@Sendable () -> PortLine?)?>(nil)

    init(publish: @escaping @Sendable (ParticipantEvent) -> Void) { self.publish = publish }

    func provide(_ lines: @escaping @Sendable () -> PortLine?) { provider.withLock { $0 = lines } }

    var areProvided: Bool { provider.withLock { $0 != nil } }

    func attach(to call: CallID) -> PortLine? {
        let provider = provider.withLock { $0 }
        return provider?()
    }

    func end(_ call: CallID, _ end: ParticipationEnd) { publish(.left(call)) }

    // The process knows of its lines alone.
    func begin(_ call: ParticipantCall) {}
    func sendDigit(_ digit: Character, heldFor time: Duration, to call: CallID) {}
    func noteTransfer(to target: UserID, _ progress: CallTransfer.Progress, of call: CallID) {}
    func refuse(_ request: ParticipantRequest, of call: CallID, _ why: String) {}
    func hearOut(_ call: CallID) {}
    func finish() {}
}
