internal import AudioPort
internal import BotCalls
internal import CallControl
internal import CallParticipation
internal import CallPrograms
internal import Realtime
internal import Synchronization

/// The participants of a device's calls: programs, the bot, or this process by ports or lines.
struct CallParticipants {
    /// What participants ask and report.
    enum Input: Sendable {
        case event(ParticipantEvent, from: ParticipantKind)
        case bot(BotOrder)
    }

    /// All inputs, those of each participant in their order.
    let inputs: AsyncStream<Input>
    /// The bot of the calls, for what only bots can do; nil without the behaviour `bot`.
    let bots: BotCalls?
    /// Nil without the behaviour `exec`.
    private let programs: CallPrograms?
    let ports: CallPorts
    let lines: ProvidedLines

    init(_ configuration: DeviceConfiguration) throws(RealtimeError) {
        // Each participant limits what it reports, and a hang-up must not be lost behind it.
        let (inputs, sink) = AsyncStream.makeStream(of: Input.self, bufferingPolicy: .unbounded)
        self.inputs = inputs
        programs = try configuration.program.map { plan throws(RealtimeError) in
            try CallPrograms(plan) { sink.yield(.event($0, from: .program)) }
        }
        // The account of a device never changes.
        let account = configuration.account
        bots = configuration.bot.map { plan in
            BotCalls(
                plan, mayTransfer: { account.mayTransferForBot($0) != nil },
                publish: { sink.yield(.event($0, from: .bot)) }, order: { sink.yield(.bot($0)) })
        }
        ports = CallPorts { sink.yield(.event($0, from: .port)) }
        lines = ProvidedLines { sink.yield(.event($0, from: .line)) }
    }

    /// Applies another configuration to calls that begin from now on.
    func adopt(_ configuration: DeviceConfiguration) {
        if let plan = configuration.program { programs?.adopt(plan) }
    }

    /// The participant that a call gets; nil if there is none.
    ///
    /// - Parameter mayBePort: Whether a port of this process comes before bot and program.
    func participant(mayBePort: Bool) -> (any CallParticipant)? {
        if lines.areProvided { return lines }
        if mayBePort, ports.areProvided { return ports }
        return bots ?? programs
    }

    /// Ends all participations.
    func finish() async {
        let all: [(any CallParticipant)?] = [programs, ports, lines, bots]
        for participant in all { await participant?.finish() }
    }
}

extension DeviceConfiguration {
    /// The bot that calls have, or that can be attached to them; nil if there is none.
    var bot: BotPlan? { participation?.bot }

    /// The program that calls have, or that can be attached to them; nil if there is none.
    var program: ProgramPlan? { participation?.program }

    /// Whether calls have a program or bot, or one can be attached to them.
    var hasParticipant: Bool { bot != nil || program != nil }

    /// How long an incoming call waits for its program or bot.
    var participantTimeout: Duration { bot?.answerTimeout ?? program?.answerTimeout ?? .zero }

    /// Whether a call with a bot has a WebRTC leg to it, which takes as much of a worker as the call itself.
    var hasLegs: Bool { bot?.wire.leg != nil }

    private var participation: BehaviourConfiguration.Source? {
        let source = behaviour.source
        return source.program != nil || source.bot != nil ? source : behaviour.attachment
    }
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
