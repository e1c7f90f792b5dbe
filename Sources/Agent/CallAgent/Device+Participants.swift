public import AudioPort
internal import BotCalls
internal import Call
internal import CallControl
public import CallParticipation
public import Logging
internal import VoiceActivity

// What this process provides.
extension Device {
    /// Has calls with the source ``AudioBehaviour/Source/program`` speak with this process, and not with a bot or a program of the
    /// configuration.
    ///
    /// - Parameter lines: Gives each call the worker's side of its ``AudioPort``; nil is silence.
    public func provideLines(_ lines: @escaping @Sendable () -> PortLine?) { participants.lines.provide(lines) }

    /// Has this process take part in each call whose source is ``BehaviourConfiguration/Source/program`` or
    /// ``AudioBehaviour/Source/program``: `converse` runs as a task of its own from the moment at which the call's media is
    /// prepared. What it writes is played as soon as the caller can hear it. When it returns and no reference to the port is
    /// left, the caller hears silence; the call continues.
    public func providePorts(
        _ plan: PortPlan = PortPlan(), _ converse: @escaping @Sendable (CallPort) async -> Void
    ) { participants.ports.provide(plan, converse) }
}

// The participant of a call, from its beginning to its end.
extension Device {
    func carryOut(_ order: CallSession.ParticipantOrder, of id: CallID) {
        let participant = calls[id]?.participant
        switch order {
        case .summon: summonParticipant(of: id)
        case .ring: bots?.ring(id)
        case .sendDigit(let key, let time):
            participant?.sendDigit(key, heldFor: time, to: id)
            legs.press(key, of: id, on: engine)
        case .noteTransfer(let target, let progress): participant?.noteTransfer(to: target, progress, of: id)
        case .refuse(let request, let why): participant?.refuse(request, of: id, why)
        case .hearOut: participant?.hearOut(id)
        case .end(let end):
            if case .detached = end {
                calls[id]?.participant = nil
                // No participant reports it.
                if participant == nil { feed(.participant(.left(id), from: .line), to: id) }
            }
            participant?.end(id, end)
        }
    }

    /// Begins the participation in an incoming call, which waits for a participant that delays its answer.
    private func summonParticipant(of id: CallID) {
        do {
            guard let call = calls[id], let participant = participant(of: call), participant.delaysAnswer else {
                return feed(.participant(.ready(id), from: .line), to: id)
            }
            try join(participant, call.session, isAttached: false)
        } catch {
            fail(id, MediaFailure(error))
        }
    }

    /// Begins the participation in a call whose media is about to start, or runs.
    ///
    /// - Parameter isAttached: Whether the call's media runs already.
    /// - Returns: The media worker's side; nil is silence.
    func beginParticipation(in id: CallID, isAttached: Bool = false) throws -> PortLine? {
        guard let call = calls[id], let participant = participant(of: call, isAttached: isAttached) else { return nil }
        // A participant that delays the answer of an incoming call has begun with that.
        if call.session.isOutgoing || isAttached || !participant.delaysAnswer {
            try join(participant, call.session, isAttached: isAttached)
        }
        return try participant.attach(to: id)
    }

    /// The call's own participant, or the one that it gets.
    private func participant(of call: ActiveCall, isAttached: Bool = false) -> (any CallParticipant)? {
        // A call whose bot is asked is that bot's.
        let mayBePort = !isAttached && configuration.behaviour.source.bot == nil
        return call.participant ?? participants.participant(mayBePort: mayBePort)
    }

    private func join(_ participant: any CallParticipant, _ call: CallSession, isAttached: Bool) throws {
        try participant.begin(
            ParticipantCall(
                call.id, peer: call.peer, own: user, isOutgoing: call.isOutgoing,
                isAnswered: call.isOutgoing || isAttached))
        calls[call.id]?.participant = participant
    }
}

// What a bot's server asks for besides its calls.
extension Device {
    /// The bot that takes part in calls; nil without the behaviour `bot`.
    var bots: BotCalls? { participants.bots }

    /// The port at which requests of bots' servers are taken; nil if none are.
    public var botRequestPort: Int? { bots?.port }

    /// Listens for what the bot's server asks for.
    func listenForBots() async throws(SignalingError) {
        do {
            if let port = try await bots?.listen() {
                logger.info("Listening for requests of bots", metadata: ["port": "\(port)"])
            }
        } catch {
            throw SignalingError(.mediaFailed, activity: "listen for requests of bots", cause: "\(error)")
        }
    }

    /// Places a call that the bot's server requests.
    private func place(_ placement: BotPlacement) {
        guard let callee = try? UserID(placement.to) else {
            bots?.refuse(placement.number, .callee, "no user can have the callee's name")
            return
        }
        guard configuration.account.lists(callee) else {
            let why = "account.callees does not have the callee"
            logger.warning("A bot's call is refused", metadata: ["error": "\(why)"])
            bots?.refuse(placement.number, .unlisted, why)
            return
        }
        if let obstacle = obstacle(toCallPlaying: .program) {
            bots?.refuse(placement.number, .unavailable, "\(obstacle)")
            return
        }
        var audio = files.audio(to: callee, key: newKey())
        // Also where the bot is only attached to other calls.
        audio.source = .program
        let id = call([callee], audio: audio, timeToLive: .seconds(placement.timeoutSeconds))
        guard goesOn(id) else {
            bots?.refuse(placement.number, .unavailable, "the call could not be made")
            return
        }
        calls[id]?.participant = bots
        bots?.placed(
            placement.number, ParticipantCall(id, peer: callee, own: user, isOutgoing: true, isAnswered: true))
    }
}

// What participants ask and report.
extension Device {
    /// The message under which a program's words are in the log. They may be anything, and secret.
    public static let programWords: Logger.Message = "A program says"

    /// Handles what a participant asks or reports.
    func handle(_ input: CallParticipants.Input) {
        switch input {
        case .event(.noted(let notice, let id), let kind):
            log.write(notice, from: kind, about: id.map { about($0) } ?? [:])
        case .event(let event, let kind): if let id = event.call { feed(.participant(event, from: kind), to: id) }
        case .bot(.place(let placement)): place(placement)
        case .bot(.leg(let number, let order)):
            guard let bots else { return }
            legs.carryOut(order, ofLeg: number, for: bots, with: &media)
            noteUnplaced()
        }
    }
}
