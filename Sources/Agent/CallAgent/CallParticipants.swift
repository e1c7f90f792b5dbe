internal import AudioPort
internal import BotCalls
internal import BotWire
internal import CallControl
internal import CallPorts
internal import CallPrograms
internal import Realtime
internal import Core

/// What takes part in a device's calls in place of a person: a program, a bot, or this process by ports or lines.
///
/// What they ask for comes in their streams, one for each kind. The device carries it out.
struct CallParticipants {
    /// What is asked to take part in a call.
    struct Invitation {
        let call: CallID
        let peer: UserID
        /// Who the device is to its service; nil if it does not know.
        let own: UserID?
        let isOutgoing: Bool
        /// Whether the call's media runs already.
        let isAttached: Bool
    }

    let programNews: AsyncStream<ProgramNews>
    let botNews: AsyncStream<BotNews>
    /// The bot of the calls, for what only bots can do; nil without the behaviour `bot`.
    let bots: BotCalls?
    /// Nil without the behaviour `exec`.
    private let programs: CallPrograms?
    private var ports = DevicePorts()
    private var lines: (@Sendable () -> PortLine?)?

    init(_ configuration: DeviceConfiguration) throws(RealtimeError) {
        // A program's wishes are few, and a hang-up must not be lost; of its words for the log no more than ten a second come here.
        let (programNews, programSink) = AsyncStream.makeStream(of: ProgramNews.self, bufferingPolicy: .unbounded)
        self.programNews = programNews
        programs = try configuration.program.map { plan throws(RealtimeError) in
            try CallPrograms(plan) { programSink.yield($0) }
        }
        // Each line bounds what it tells; a hang-up must not be lost behind it.
        let (botNews, botSink) = AsyncStream.makeStream(of: BotNews.self, bufferingPolicy: .unbounded)
        self.botNews = botNews
        // The account of a device never changes.
        let account = configuration.account
        bots = configuration.bot.map { plan in
            BotCalls(plan, mayTransfer: { account.mayTransferForBot($0) != nil }) { botSink.yield($0) }
        }
    }

    var portNews: AsyncStream<PortNews> { ports.news }

    // MARK: This process

    /// Has calls speak with lines of this process, and with nothing else.
    mutating func provide(_ lines: @escaping @Sendable () -> PortLine?) { self.lines = lines }

    mutating func provide(_ plan: PortPlan, _ converse: @escaping @Sendable (CallPort) async -> Void) {
        ports.provide(plan, converse)
    }

    mutating func openPort(_ plan: PortPlan, for id: CallID) throws(RealtimeError) -> OpenedPort {
        try ports.open(plan, for: id)
    }

    func isPortClosed(of id: CallID) -> Bool { ports.isClosed(id) }

    // MARK: Begin

    /// Begins a part in a call whose media is about to start, or runs.
    ///
    /// - Parameters:
    ///   - plan: The program of the configuration, if it has one.
    ///   - mayBePort: Whether a port of this process comes before bot and program.
    /// - Returns: What the media worker speaks with it through; nil if nothing takes part, which is silence.
    mutating func begin(
        _ invitation: Invitation, program plan: ProgramPlan?, mayBePort: Bool
    ) throws -> PortLine? {
        if let lines { return lines() }
        if mayBePort, let line = try ports.begin(for: invitation.call) { return line }
        // Whoever takes part in a call that came in stands already.
        if invitation.isOutgoing || invitation.isAttached { _ = try summon(invitation, program: plan) }
        if let bots { return try bots.attach(call: invitation.call.number) }
        return programs?.attach(call: invitation.call.number)
    }

    /// Connects with the bot for a call, or starts its program. If the call came in it waits: their news tell when they stand.
    ///
    /// - Returns: Whether there is a bot or program.
    func summon(_ invitation: Invitation, program plan: ProgramPlan?) throws(ProgramStartError) -> Bool {
        if let bots {
            bots.begin(
                call: invitation.call.number, peer: invitation.peer.text, own: invitation.own?.text ?? "",
                isOutgoing: invitation.isOutgoing, isAnswered: invitation.isAttached)
            return true
        }
        guard let programs, let plan else { return false }
        try programs.begin(
            plan, call: invitation.call.number, peer: invitation.peer.text, isOutgoing: invitation.isOutgoing,
            isAnswered: invitation.isOutgoing || invitation.isAttached)
        return true
    }

    /// Whether this process takes part in calls by itself, so that nothing is waited for.
    func isProcess(mayBePort: Bool) -> Bool { lines != nil || mayBePort && ports.areProvided }

    // MARK: While they take part

    /// The peer has pressed a key.
    func sendDigit(_ digit: Character, heldFor time: Duration, to id: CallID) {
        programs?.sendDigit(digit, heldMilliseconds: Int(time.milliseconds), to: id.number)
        bots?.sendDigit(digit, heldMilliseconds: Int(time.milliseconds), to: id.number)
        ports.sendDigit(digit, heldFor: time, to: id)
    }

    /// What a call's program asked for was not done.
    func refuseProgram(of id: CallID, _ why: String) { programs?.refuse(call: id.number, why) }

    /// Notes how a transfer goes that the peer was asked for.
    func noteTransfer(to target: UserID, _ progress: CallTransfer.Progress, of id: CallID) {
        programs?.sendTransfer(to: target.text, state: progress.rawValue, to: id.number)
        switch progress {
        case .refused, .failed: bots?.transferFailed(call: id.number)
        // An accepted one ends the call.
        case .trying, .ringing, .accepted: break
        }
    }

    /// Plays to the end what a call has of them.
    func hearOut(_ id: CallID) {
        programs?.hearOut(call: id.number)
        bots?.hearOut(call: id.number)
        ports.hearOut(id)
    }

    // MARK: End

    /// A call is over.
    func end(_ id: CallID, _ record: CallRecord) {
        programs?.end(call: id.number, reason: record.reason.rawValue)
        bots?.end(call: id.number, .init(record), seconds: Int(record.duration.seconds))
        ports.end(id)
    }

    /// Ends their part in a call that goes on.
    ///
    /// - Returns: How many of them tell when they have left.
    func detach(_ id: CallID) -> Int {
        programs?.end(call: id.number, reason: "detached")
        bots?.end(call: id.number, .completed, seconds: nil)
        ports.end(id)
        return (programs == nil ? 0 : 1) + (bots == nil ? 0 : 1)
    }

    /// Ends the parts of programs and ports in all calls. The bot's end is awaited by itself.
    func finish() {
        programs?.finish()
        ports.finish()
    }
}
