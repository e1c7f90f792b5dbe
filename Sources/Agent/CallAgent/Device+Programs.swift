public import AudioPort
internal import BotCalls
internal import BotWire
internal import CallControl
internal import CallPorts
internal import CallPrograms
public import Logging
internal import VoiceActivity

extension Device {
    /// Has calls with the source ``AudioBehaviour/Source/program`` speak with this process, and not with a bot or a program of the
    /// configuration.
    ///
    /// - Parameter lines: Gives each call the worker's side of its ``AudioPort``; nil is silence.
    public func provideLines(_ lines: @escaping @Sendable () -> PortLine?) { participants.provide(lines) }

    /// Starts the program of a call whose media is about to start.
    ///
    /// - Parameter isAttached: Whether the call's media runs already.
    /// - Returns: What the media worker speaks with it through; nil if the device has none, which is silence.
    func beginProgram(for id: CallID, isAttached: Bool = false) throws -> PortLine? {
        guard let call = calls[id] else { return nil }
        return try participants.begin(
            invitation(to: id, call, isAttached: isAttached), program: configuration.program,
            mayBePort: !isAttached && mayBePort(call))
    }

    /// Connects with the bot, or starts the program, of a call that came in and waits for it; false if it waits for nobody.
    func summonProgram(for id: CallID) throws -> Bool {
        guard let call = calls[id], call.audio.source == .program,
            configuration.bot != nil || !participants.isProcess(mayBePort: mayBePort(call))
        else { return false }
        return try participants.summon(
            invitation(to: id, call, isAttached: false), program: configuration.program)
    }

    /// A call that a bot has placed, and one whose bot was asked, is that bot's.
    private func mayBePort(_ call: ActiveCall) -> Bool {
        !call.isPlacedByBot && !configuration.behaviour.source.isBot
    }

    private func invitation(to id: CallID, _ call: ActiveCall, isAttached: Bool) -> CallParticipants.Invitation {
        .init(
            call: id, peer: call.machine.peer, own: user, isOutgoing: call.machine.isOutgoing, isAttached: isAttached)
    }

    /// The peer has pressed a key.
    func sendDigit(_ digit: Character, heldFor time: Duration, toProgramOf id: CallID) {
        participants.sendDigit(digit, heldFor: time, to: id)
        pressOnLeg(digit, of: id)
    }

    /// A call is over, and so is its program's part in it.
    func endProgram(of id: CallID, _ record: CallRecord) { participants.end(id, record) }

    /// A program leaves a call that goes on.
    func detachProgram(of id: CallID) {
        let leaving = participants.detach(id)
        calls[id]?.sound.beganToLeave(leaving)
    }

    /// Has a program heard out, and then hang up.
    func hearOutProgram(of id: CallID) { participants.hearOut(id) }
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

    /// Whoever a call asks for has been asked.
    func ringBot(of id: CallID) { bots?.ring(call: id.number) }

    /// Calls whom the bot's server wants called.
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
        calls[id]?.isPlacedByBot = true
        bots?.placed(placement.number, call: id.number, peer: callee.text, own: user?.text ?? "")
    }
}

// What programs, bots and ports ask for.
extension Device {
    /// The message under which a program's words are in the log. They may be anything, and secret.
    public static let programWords: Logger.Message = "A program says"

    /// Handles what a program says.
    func handle(_ news: ProgramNews) {
        switch news {
        case .stands(let call): answerWithProgram(in: CallID(number: call))
        case .declined(let call): feed(.user(.reject(.declined)), to: CallID(number: call))
        case .refused(let call, let why):
            feed(.media(.failed(MediaFailure(.deviceFault, "the call's program: \(why)"))), to: CallID(number: call))
        case .fellBack(let call, let why):
            logger.error(
                "A program has failed, and the fallback is played",
                metadata: about(CallID(number: call), ["error": "\(why)"]))
        case .warned(let what):
            logger.warning("Something is wrong around the program", metadata: ["error": "\(what)"])
        case .said(let call, let text, let leftOut):
            var metadata = about(CallID(number: call), ["text": "\(text)"])
            if leftOut > 0 { metadata["left_out"] = "\(leftOut)" }
            logger.info(Self.programWords, metadata: metadata)
        case .failed(let call, let how, let isRestarted):
            logger.error(
                isRestarted ? "A program has failed and is started again" : "A program has failed too often",
                metadata: about(CallID(number: call), ["error": "\(how)"]))
        case .misunderstood(let call, let what):
            logger.warning(
                "A program's command cannot be followed", metadata: about(CallID(number: call), ["error": "\(what)"]))
        case .behind(let call, let events):
            logger.warning(
                events ? "A program does not read its events" : "A program does not read what the caller says",
                metadata: about(CallID(number: call)))
        case .flooded(let call, let stream):
            logger.warning(
                stream == .log
                    ? "A program writes too much to its log, and it is dropped"
                    : "A program sends commands too fast, and they are dropped",
                metadata: about(CallID(number: call)))
        case .dropped(let call, let stream, let bytes):
            logger.warning(
                stream == .log ? "A program's log was dropped in part" : "A program's commands were dropped in part",
                metadata: about(CallID(number: call), ["bytes": "\(bytes)"]))
        case .turn(let call, let news, let summary): note(news, summary, in: CallID(number: call))
        case .press(let call, let keys):
            guard calls[CallID(number: call)]?.hasLeft == false else { return }
            do throws(DigitError) {
                try press(keys, on: CallID(number: call))
            } catch {
                participants.refuseProgram(of: CallID(number: call), "\(error)")
            }
        case .transfer(let call, let target):
            let id = CallID(number: call)
            guard calls[id]?.hasLeft == false else { return }
            if let why = transferForProgram(id, to: target) { refuseTransferOfProgram(id, why) }
        case .hangUp(let call, let failure): programIsDone(in: CallID(number: call), failure.map { "program: \($0)" })
        case .left(let call): programHasLeft(CallID(number: call))
        }
    }

    /// A program or bot wants its call to end, or has failed.
    private func programIsDone(in id: CallID, _ failure: String?) {
        // It may say so while it is being detached.
        guard calls[id]?.hasLeft == false else { return }
        if let failure {
            feed(.media(.failed(MediaFailure(.deviceFault, "the call's \(failure)"))), to: id)
        } else {
            hangUp(id, because: .program)
        }
    }

    /// A program or bot that was told to leave a call has left it: what is told from now on is of the next one.
    private func programHasLeft(_ id: CallID) {
        calls[id]?.sound.noteLeft()
        calls[id]?.turns.leave()
    }

    /// Handles what a bot wants and does.
    func handle(_ news: BotNews) {
        switch news {
        case .stands(let call): answerWithProgram(in: CallID(number: call))
        case .refused(let call, let reason?, let why):
            logger.notice("A call is not accepted", metadata: about(CallID(number: call), ["reason": "\(why)"]))
            feed(.user(.reject(reason == .busy ? .busy : .declined)), to: CallID(number: call))
        case .refused(let call, nil, let why):
            feed(.media(.failed(MediaFailure(.deviceFault, "the call's bot: \(why)"))), to: CallID(number: call))
        case .fellBack(let call, let why):
            logger.error(
                "A bot has failed, and the fallback is played",
                metadata: about(CallID(number: call), ["error": "\(why)"]))
        case .misunderstood(let call, let what, let leftOut):
            var metadata = about(CallID(number: call), ["error": "\(what)"])
            if leftOut > 0 { metadata["left_out"] = "\(leftOut)" }
            logger.warning("A bot's message cannot be followed", metadata: metadata)
        case .behind(let call):
            logger.warning("A bot does not read what the caller says", metadata: about(CallID(number: call)))
        case .place(let placement): place(placement)
        case .turn(let call, let news, let summary): note(news, summary, in: CallID(number: call))
        case .press(let call, let keys):
            guard calls[CallID(number: call)]?.hasLeft == false else { return }
            do throws(DigitError) {
                try press(keys, on: CallID(number: call))
            } catch {
                logger.warning(
                    "A bot's keys cannot be pressed", metadata: about(CallID(number: call), ["error": "\(error)"]))
            }
        case .transfer(let call, let target):
            let id = CallID(number: call)
            guard calls[id]?.hasLeft == false else { return }
            if let why = transferForProgram(id, to: target) { refuseTransferOfProgram(id, why) }
        case .hangUp(let call, let failure): programIsDone(in: CallID(number: call), failure.map { "bot: \($0)" })
        case .left(let call): programHasLeft(CallID(number: call))
        case .leg(let number, let order): carryOut(order, ofLeg: number)
        case .warned(let what, let leftOut):
            var metadata: Logger.Metadata = ["error": "\(what)"]
            if leftOut > 0 { metadata["left_out"] = "\(leftOut)" }
            logger.warning("Something is wrong around the bot", metadata: metadata)
        }
    }
}

extension Device {
    /// Handles what happens at ports.
    func handle(_ news: PortNews) {
        switch news {
        case .turn(let call, let port, let news, let summary): note(news, summary, in: CallID(number: call), port: port)
        case .heardOut(let call): programIsDone(in: CallID(number: call), nil)
        }
    }

    /// Handles who speaks in a call with a program.
    private func note(_ news: TurnNews, _ summary: TurnSummary, in call: CallID, port: UInt64? = nil) {
        calls[call]?.turns.note(summary, port: port)
        switch news {
        case .speechBegan(let at): publish(.speech(call, isOver: false, at: at))
        case .speechEnded(let at): publish(.speech(call, isOver: true, at: at))
        case .interrupted(let played): publish(.interrupted(call, played: played))
        case .answered(let time):
            calls[call]?.turns.noteResponse(time)
            publish(.responded(call, after: time))
        }
    }
}

extension TwilioWebhook.Status {
    /// How a call has ended.
    init(_ record: CallRecord) {
        guard record.answeredAfter == nil else {
            self = .completed
            return
        }
        switch record.reason {
        case .busy: self = .busy
        case .noAnswer, .declined: self = .noAnswer
        case .cancelled: self = .canceled
        case .completed, .acceptedElsewhere, .declinedElsewhere, .dialFailed, .acceptFailed, .connectionLost,
            .disconnected,
            .internalError:
            self = .failed
        }
    }
}

extension DeviceConfiguration {
    /// The bot that calls have, or that can be attached to them; nil if there is none.
    var bot: BotPlan? { plans.bot }

    /// The program that calls have, or that can be attached to them; nil if there is none.
    var program: ProgramPlan? { plans.program }

    /// Whether a call with a bot has a WebRTC leg to it, which takes as much of a worker as the call itself.
    var hasLegs: Bool { bot?.wire.leg != nil }

    private var plans: (program: ProgramPlan?, bot: BotPlan?) {
        switch behaviour.source {
        case .exec(let plan): return (plan, nil)
        case .bot(let plan): return (nil, plan)
        case .silence, .echo, .tone, .file, .card, .program: break
        }
        switch behaviour.attachment {
        case .exec(let plan): return (plan, nil)
        case .bot(let plan): return (nil, plan)
        case .silence, .echo, .tone, .file, .card, .program, nil: return (nil, nil)
        }
    }
}
