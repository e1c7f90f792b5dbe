internal import AudioKit
internal import Call
internal import CallBridging
internal import CallControl
internal import CallFlow
internal import CallFlows
internal import CallMedia
internal import CallMeetings
public import CallParticipation
internal import Core
internal import MediaEngine
internal import Realtime

// Calls that are joined: at a user's request, and by Dial in call flows. `CallBridges` and `CallDials` decide; this carries out.
extension Device {
    /// Joins two calls whose media runs: each hears the other in place of its program and its source, and keys of one are pressed in the
    /// other.
    ///
    /// - Parameter goesBack: Whether a call continues as before when the other one ends; otherwise it is hung up.
    /// - Throws: ``CallSoundError`` if the media of one does not run, it is on the sound card, or it is joined already.
    public func bridge(_ id: CallID, to other: CallID, goesBack: Bool = false) throws(CallSoundError) {
        guard id != other else { throw CallSoundError(.wrongState, "\(id) cannot be joined to itself") }
        for call in [id, other] {
            try checkJoining(call)
        }
        let sequel: CallBridges.Sequel = goesBack ? .goBack : .hangUp
        feed(bridges: .join(id, other, then: sequel, otherThen: sequel))
    }

    /// Parts a call from the one that it was joined to by ``bridge(_:to:goesBack:)``: both continue as before.
    ///
    /// - Returns: The other call.
    @discardableResult
    public func unbridge(_ id: CallID) throws(CallSoundError) -> CallID {
        guard let other = participants.bridges.partner(of: id) else {
            throw CallSoundError(.wrongState, "\(id) is joined to no other call; bridge joins two")
        }
        guard ![id, other].contains(where: participants.isInFlow) else {
            throw CallSoundError(.wrongState, "\(id) and \(other) are joined by a call flow; hang one of them up")
        }
        feed(bridges: .part(id))
        for caller in [id, other] where participants.handovers.isJoined(caller) {
            feed(handovers: .cancel(caller, because: "the calls were parted"))
        }
        return other
    }

    /// The call that a call is joined to; nil if there is none.
    public func bridgedCall(of id: CallID) -> CallID? { participants.bridges.partner(of: id) }

    // MARK: What happens to calls

    /// Notes an event of a call that may be joined, or was placed to be.
    func noteForBridges(_ event: CallEvent, of id: CallID) {
        switch event {
        case .established:
            feed(dials: .answered(id))
            feed(handovers: .answered(id))
            feed(bridges: .established(id))
            feed(parking: .established(id))
            beginWaitingHandover(of: id)
        case .digit(let key, _):
            // A key that joins is not pressed in the other call.
            feed(bridges: .key(key, of: id))
            feed(handovers: .key(key, of: id))
        case .identified, .incoming, .answered, .flowing, .playbackEnded, .recording, .attached, .detached, .speech,
            .interrupted, .responded, .transferRequested, .transferProgress:
            return
        }
    }

    /// Notes the end of a call.
    func noteForBridges(_ record: CallRecord, of id: CallID) {
        // Before the join hangs up the other call, whose end is another reason.
        feed(handovers: .ended(id, HandoverEnd(of: record)))
        feed(bridges: .ended(id))
        feed(dials: .ended(id, DialStatus(of: record)))
        feed(queues: .ended(id))
        feed(parking: .ended(id))
        feed(music: .callEnded(id))
    }

    /// A call takes the place of another one, also in a join.
    func noteForBridges(replaced former: CallID, by call: CallID) {
        feed(bridges: .replaced(former, by: call))
        feed(dials: .replaced(former, by: call))
        feed(queues: .replaced(former, by: call))
        feed(handovers: .replaced(former, by: call))
        feed(parking: .replaced(former, by: call))
    }

    // MARK: Bridges

    func feed(bridges input: CallBridges.Input) {
        var outbox: [CallBridges.Output] = []
        participants.bridges.handle(input, into: &outbox)
        for output in outbox {
            switch output {
            case .connect(let one, let other): connect(one, other)
            case .disconnect(let call): disconnect(call)
            case .playMusic(let call):
                guard let path = configuration.handover.music else { continue }
                feed(music: .play(path, to: call, repeats: true))
            case .stopMusic(let call): feed(music: .stop(call))
            case .hangUp(let call): feed(.user(.hangUp(because: .request)), to: call)
            case .press(let key, let call):
                do throws(DigitError) {
                    try press(String(key), on: call)
                } catch {
                    log.keyIsLost(error, about: calls.about(call))
                }
            }
        }
    }

    /// If the media of one has just ended, the end of its call follows.
    private func connect(_ one: CallID, _ other: CallID) {
        guard let stream = calls[one]?.session.runningStream, let peer = calls[other]?.session.runningStream else {
            return
        }
        engine.bridge(end(stream, of: one), to: end(peer, of: other))
        log.callsAreJoined(other, about: calls.about(one))
    }

    /// Music and whispers last until the other call is heard; a file that a user plays, to its end.
    private func end(_ stream: MediaCallID, of call: CallID) -> MediaEngine.BridgeEnd {
        MediaEngine.BridgeEnd(
            stream, suspendsProgram: participants.standsStill(in: call), endsFile: participants.music.isHeard(in: call))
    }

    private func disconnect(_ call: CallID) {
        guard let stream = calls[call]?.session.runningStream else { return }
        engine.unbridge(stream)
        log.callIsParted(about: calls.about(call))
        releaseDeferredEnd(of: call)
    }

    // MARK: Dial in call flows

    /// Does what a flow orders.
    func handle(_ order: FlowOrder) {
        switch order {
        case .dial(let caller, let dial): self.dial(dial, for: caller)
        case .connect(let caller):
            feed(dials: .join(caller))
            feed(queues: .join(caller))
        case .stopDialling(let caller, let isTimeout):
            feed(dials: .stop(caller, isTimeout: isTimeout))
            feed(queues: .giveUp(caller, isTimeout: isTimeout))
        case .accepted(let callee): feed(dials: .accepted(callee))
        case .enqueue(let caller, let queue, let hasMusic): enqueue(caller, in: queue, hasMusic: hasMusic)
        case .leaveQueue(let caller, let result): feed(queues: .leave(caller, result))
        case .readyToJoin(let caller, let attempt): feed(queues: .ready(caller, attempt: attempt))
        }
    }

    private func dial(_ dial: FlowDialOrder, for caller: CallID) {
        // The end of a call that has ended is no longer noted.
        guard goesOn(caller) else { return }
        guard !isElsewhere(caller) else {
            log.flowCannotCall(
                "a callee", because: "the call is joined to another one, parked or handed over",
                about: calls.about(caller))
            // Nothing was dialled, so nothing is parted at its end.
            return participants.report(.ended(.failed, .zero), to: caller)
        }
        switch dial.destination {
        case .callees(let names, let asking):
            feed(dials: .begin(caller, callees: names.count, asksCallees: asking != nil))
            for name in names {
                do throws(CallAdmission.PlacementRefusal) {
                    try place(name, ringing: dial.timeout, asking: asking, for: caller)
                } catch {
                    log.flowCannotCall(name, because: error.reason, about: calls.about(caller))
                    feed(dials: .notPlaced(for: caller))
                }
            }
        case .room(let name, let most, let hasTones):
            feed(dials: .begin(caller, callees: 1, asksCallees: false))
            enter(name, most: most, hasTones: hasTones, caller)
        case .queue(let name, let whisper): feed(queues: .take(caller, queue: name, .flow(whisper)))
        }
    }

    private func place(
        _ name: String, ringing time: Duration, asking document: FlowAddress?, for caller: CallID
    ) throws(CallAdmission.PlacementRefusal) {
        // The dialled call may have been given up meanwhile.
        guard participants.dials.isDialling(for: caller), let session = calls[caller]?.session else { return }
        let behaviour = session.behaviour
        let callee = try admission.callee(
            ofDial: name, own: signaling.user, dialled: participants.dials.callCount + participants.handovers.callCount,
            after: session.hops,
            unless: { obstacle(toCallWith: placedPart(AudioBehaviour(source: .silence), behaviour: behaviour)) }
        ).get()
        var audio = files(of: behaviour).audio(to: callee)
        audio.source = document == nil ? .silence : .program
        let part = placedPart(audio, behaviour: behaviour)
        let call = maker.outgoing(
            to: [callee], audio: part.audio, rules: part.rules, timeToLive: time,
            after: session.hops.next ?? session.hops)
        add(call)
        if let document { participants.ask(call.id, by: document, for: caller) }
        log.flowCalls(callee, call.id, about: calls.about(caller))
        feed(dials: .placed(call.id, for: caller))
        feed(.begin, to: call.id)
    }

    private func enter(_ room: String, most: Int, hasTones: Bool, _ caller: CallID) {
        do throws(MeetingRefusal) {
            guard let stream = calls[caller]?.session.runningStream else { return feed(dials: .notPlaced(for: caller)) }
            let publish = participants.publish
            let line = try share.media.hall.join(caller.number, room: room, most: most, hasTones: hasTones) { report in
                switch report {
                case .entered(let members): publish(.noted(.met(room: room, members: members), caller), .meeting)
                case .speech(let isOver, let at): publish(.speech(caller, isOver: isOver, at: at), .meeting)
                }
            }
            engine.bridge(stream, to: line)
            feed(dials: .entered(caller))
            participants.report(.answered, to: caller)
        } catch {
            log.flowCannotCall("conference \(room)", because: error.description, about: calls.about(caller))
            feed(dials: .notPlaced(for: caller))
        }
    }

    private func feed(dials input: CallDials.Input) {
        var outbox: [CallDials.Output] = []
        participants.dials.handle(input, at: MonotonicClock.now, into: &outbox)
        for output in outbox {
            switch output {
            case .asks(let caller): participants.report(.asked, to: caller)
            case .won(_, let caller): participants.report(.answered, to: caller)
            case .join(let call, let caller):
                feed(bridges: .join(caller, call, then: .goBack, otherThen: .hangUp))
            case .leaveRoom(let caller):
                share.media.hall.leave(caller.number)
                disconnect(caller)
            case .hangUp(let call): feed(.user(.hangUp(because: .request)), to: call)
            case .ended(let caller, let status, let time):
                // The caller hears its flow again, also if the other call takes time to end.
                feed(bridges: .part(caller))
                log.dialHasEnded(status, after: time, about: calls.about(caller))
                participants.report(.ended(status, time), to: caller)
            }
        }
    }
}
