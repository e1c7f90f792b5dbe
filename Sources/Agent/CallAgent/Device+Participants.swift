public import AudioPort
internal import BotCalls
internal import Call
internal import CallBridging
internal import CallControl
internal import CallMedia
public import CallParticipation
public import Logging

// What this process provides.
extension Device {
    /// Has calls with the source ``AudioBehaviour/Source/program`` speak with this process, and not with a bot or a program of the
    /// configuration.
    ///
    /// - Parameter lines: Gives each call the worker's side of its ``AudioPort``; nil is silence.
    public func provideLines(_ lines: @escaping @Sendable () -> PortLine?) { participants.provideLines(lines) }

    /// Has this process take part in each call whose source is ``BehaviourConfiguration/Source/program`` or
    /// ``AudioBehaviour/Source/program``: `converse` runs as a task of its own from the moment at which the call's media is
    /// prepared. What it writes is played as soon as the caller can hear it. When it returns and no reference to the port is
    /// left, the caller hears silence; the call continues.
    public func providePorts(
        _ plan: PortPlan = PortPlan(), _ converse: @escaping @Sendable (CallPort) async -> Void
    ) { participants.providePorts(plan, converse) }
}

// What participants ask and report, and what a bot's server asks for besides its calls.
extension Device {
    /// The message under which a program's words are in the log. They may be anything, and secret.
    public static let programWords: Logger.Message = "A program says"

    /// The port at which requests of bots' servers are taken; nil if none are.
    public var botRequestPort: Int? { participants.bots?.port }

    /// Handles what a participant asks or reports.
    func handle(_ input: CallParticipants.Input) {
        if case .event(let event, _) = input, let id = event.call { calls[id]?.observation.note(event) }
        switch input {
        case .event(.noted(let notice, let id), let kind):
            log.write(notice, from: kind, about: id.map { calls.about($0) } ?? [:])
            if case .stored(let message, let path) = notice { publish(.voicemail(id, message, path: path)) }
        case .event(.handover(let id, let request), _): handOver(id, forParticipant: request)
        case .event(.cancelHandover(let id), _):
            do throws(CallSoundError) {
                try cancelHandover(of: id)
            } catch {
                _ = participants.carryOut(.refuse(.cancelHandover, why: error.description), of: id)
            }
        case .event(let event, let kind):
            guard let id = event.call, !isElsewhere(id) || !participants.deferredEnds.keep(event, from: kind) else {
                return
            }
            feed(.participant(event, from: kind), to: id)
        case .flow(let order): handle(order)
        case .bot(.place(let placement)): place(placement)
        case .bot(.leg(let number, let order)):
            participants.carryOut(order, ofLeg: number, with: &media)
            noteUnplaced()
        }
    }

    /// Places a call that the bot's server requests.
    private func place(_ placement: BotPlacement) {
        do throws(CallAdmission.PlacementRefusal) {
            let behaviour = participants.botBehaviour
            // Also where the bot is only attached to other calls.
            var part = placedPart(AudioBehaviour(source: .program), behaviour: behaviour)
            let callee = try admission.callee(of: placement, unless: { obstacle(toCallWith: part) }).get()
            part.audio = files(of: behaviour).audio(to: callee)
            part.audio.source = .program
            let timeToLive = Duration.seconds(placement.timeoutSeconds)
            let id = begin(
                maker.outgoing(to: [callee], audio: part.audio, rules: part.rules, timeToLive: timeToLive))
            guard goesOn(id) else { throw .init(kind: .unavailable, reason: "the call could not be made") }
            let placed = ParticipantCall(
                id, peer: callee, own: signaling.user, isOutgoing: true, isAnswered: true, trace: traceContext(of: id))
            participants.botPlaced(placed, number: placement.number)
        } catch {
            if error.kind == .unlisted { log.botIsRefused(because: error.reason) }
            participants.bots?.refuse(placement.number, error.kind, error.reason)
        }
    }
}
