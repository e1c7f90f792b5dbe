public import AudioPort
internal import BotCalls
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
    /// Begins the participation in an incoming call that waits for its participant; false if it does not wait.
    func summonParticipant(of id: CallID) throws -> Bool {
        guard let call = calls[id], call.hasParticipant, let participant = participant(of: call),
            participant.delaysAnswer
        else { return false }
        try join(participant, id, call, isAttached: false)
        return true
    }

    /// Begins the participation in a call whose media is about to start, or runs.
    ///
    /// - Parameter isAttached: Whether the call's media runs already.
    /// - Returns: The media worker's side; nil is silence.
    func beginParticipation(in id: CallID, isAttached: Bool = false) throws -> PortLine? {
        guard let call = calls[id], let participant = participant(of: call, isAttached: isAttached) else { return nil }
        // A participant that delays the answer of an incoming call has begun with that.
        if call.machine.isOutgoing || isAttached || !participant.delaysAnswer {
            try join(participant, id, call, isAttached: isAttached)
        }
        return try participant.attach(to: id)
    }

    /// The call's own participant, or the one that it gets.
    private func participant(of call: ActiveCall, isAttached: Bool = false) -> (any CallParticipant)? {
        // A call whose bot is asked is that bot's.
        let mayBePort = !isAttached && configuration.behaviour.source.bot == nil
        return call.participant ?? participants.participant(mayBePort: mayBePort)
    }

    private func join(_ participant: any CallParticipant, _ id: CallID, _ call: ActiveCall, isAttached: Bool) throws {
        try participant.begin(
            ParticipantCall(
                id, peer: call.machine.peer, own: user, isOutgoing: call.machine.isOutgoing,
                isAnswered: call.machine.isOutgoing || isAttached))
        calls[id]?.participant = participant
    }

    /// The peer has pressed a key.
    func sendDigit(_ digit: Character, heldFor time: Duration, toParticipantOf id: CallID) {
        calls[id]?.participant?.sendDigit(digit, heldFor: time, to: id)
        pressOnLeg(digit, of: id)
    }

    /// Ends the participation in a call that continues.
    func detachParticipant(of id: CallID) {
        guard let participant = calls[id]?.participant else { return }
        calls[id]?.participant = nil
        calls[id]?.sound.beganToLeave()
        participant.end(id, .detached)
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

    /// The callee is ringing.
    func ringBot(of id: CallID) { bots?.ring(id) }

    /// Places a call that the bot's server requests.
    private func place(_ placement: BotPlacement) {
        guard let callee = try? UserID(placement.to) else {
            bots?.refuse(placement.number, .callee, "nobody can have the callee's name")
            return
        }
        guard mayBeCalledForBot(callee) else {
            let why = "account.callees does not have the callee"
            logger.warning("A bot's call is refused", metadata: ["error": "\(why)"])
            bots?.refuse(placement.number, .unlisted, why)
            return
        }
        if let obstacle = obstacle(toCallPlaying: .program) {
            bots?.refuse(placement.number, .unavailable, "\(obstacle)")
            return
        }
        var audio = configuration.behaviour.audio(named: recordingName(to: callee))
        // Also where the bot is only attached to other calls.
        audio.source = .program
        let id = call([callee], audio: audio, timeToLive: .seconds(placement.timeoutSeconds))
        guard let call = calls[id], call.record == nil else {
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
        case .event(let event, let kind): handle(event, from: kind)
        case .bot(.place(let placement)): place(placement)
        case .bot(.leg(let number, let order)): carryOut(order, ofLeg: number)
        }
    }

    private func handle(_ event: ParticipantEvent, from kind: ParticipantKind) {
        switch event {
        case .ready(let id): answerWithParticipant(in: id)
        case .rejected(let id, let reason, let why):
            if let why { logger.notice("A call is not accepted", metadata: about(id, ["reason": "\(why)"])) }
            feed(.user(.reject(reason)), to: id)
        case .failed(let id, let why): fail(id, kind, why)
        case .press(let id, let keys):
            guard calls[id]?.hasLeft == false else { return }
            do throws(DigitError) {
                try press(keys, on: id)
            } catch {
                calls[id]?.participant?.refuse(.press, of: id, "\(error)")
            }
        case .transfer(let id, let target):
            guard calls[id]?.hasLeft == false else { return }
            if let why = transferForProgram(id, to: target) { refuseTransfer(of: id, why) }
        case .turn(let id, let news, let summary): note(news, summary, in: id, from: kind)
        case .done(let id, let failure):
            // It may say so while it is being detached.
            guard calls[id]?.hasLeft == false else { return }
            if let failure { fail(id, kind, failure) } else { hangUp(id, because: .program) }
        case .left(let id):
            calls[id]?.sound.noteLeft()
            calls[id]?.turns.leave(kind)
        case .noted(let notice, let id): log(notice, from: kind, of: id)
        }
    }

    private func fail(_ id: CallID, _ kind: ParticipantKind, _ why: String) {
        let cause = kind == .bot ? "the call's bot: \(why)" : "the call's program: \(why)"
        feed(.media(.failed(MediaFailure(.deviceFault, cause))), to: id)
    }

    /// Handles a change of the speaker.
    private func note(_ news: TurnNews, _ summary: TurnSummary, in id: CallID, from kind: ParticipantKind) {
        calls[id]?.turns.note(summary, from: kind)
        switch news {
        case .speechBegan(let at): publish(.speech(id, isOver: false, at: at))
        case .speechEnded(let at): publish(.speech(id, isOver: true, at: at))
        case .interrupted(let played): publish(.interrupted(id, played: played))
        case .answered(let time):
            calls[id]?.turns.noteResponse(time)
            publish(.responded(id, after: time))
        }
    }

    private func log(_ notice: ParticipantNotice, from kind: ParticipantKind, of id: CallID?) {
        let isBot = kind == .bot
        func metadata(_ more: Logger.Metadata = [:], leftOut: Int = 0) -> Logger.Metadata {
            let all = leftOut > 0 ? more.merging(["left_out": "\(leftOut)"]) { _, new in new } : more
            return id.map { about($0, all) } ?? all
        }
        switch notice {
        case .fellBack(let why):
            logger.error(
                isBot
                    ? "A bot has failed, and the fallback is played"
                    : "A program has failed, and the fallback is played",
                metadata: metadata(["error": "\(why)"]))
        case .processFailed(let how, let isRestarted):
            logger.error(
                isRestarted ? "A program has failed and is started again" : "A program has failed too often",
                metadata: metadata(["error": "\(how)"]))
        case .said(let text, let leftOut):
            logger.info(Self.programWords, metadata: metadata(["text": "\(text)"], leftOut: leftOut))
        case .misunderstood(let what, let leftOut):
            logger.warning(
                isBot ? "A bot's message cannot be followed" : "A program's command cannot be followed",
                metadata: metadata(["error": "\(what)"], leftOut: leftOut))
        case .refused(let request, let why):
            logger.warning(
                request == .press ? "A bot's keys cannot be pressed" : "A bot's transfer is refused",
                metadata: metadata(["error": "\(why)"]))
        case .behind(let events):
            let message: Logger.Message =
                isBot ? "A bot does not read what the caller says" : "A program does not read what the caller says"
            logger.warning(events ? "A program does not read its events" : message, metadata: metadata())
        case .flooded(let stream):
            logger.warning(
                stream == .log
                    ? "A program writes too much to its log, and it is dropped"
                    : "A program sends commands too fast, and they are dropped",
                metadata: metadata())
        case .dropped(let stream, let bytes):
            logger.warning(
                stream == .log ? "A program's log was dropped in part" : "A program's commands were dropped in part",
                metadata: metadata(["bytes": "\(bytes)"]))
        case .warned(let what, let leftOut):
            logger.warning(
                isBot ? "Something is wrong around the bot" : "Something is wrong around the program",
                metadata: metadata(["error": "\(what)"], leftOut: leftOut))
        }
    }
}
