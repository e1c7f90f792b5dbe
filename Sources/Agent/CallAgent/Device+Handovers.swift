internal import BlockingWork
internal import Call
internal import CallBridging
internal import CallControl
internal import CallFlow
internal import CallFlows
internal import CallMedia
public import CallParticipation
internal import Core
internal import Files
internal import MediaEngine
internal import Realtime

// From the bot to a person. `CallHandovers` decides, and `CallMusic` what is heard meanwhile; this carries out.
extension Device {
    /// Calls a person for a call whose media runs, and joins the two when the person accepts. Until then the caller hears music, or what it
    /// heard before; if the person is not joined, the caller is back with what takes part in its call.
    ///
    /// ``DeviceEvent/handover(_:_:)`` reports each step.
    ///
    /// - Returns: The call with the person.
    /// - Throws: ``CallSoundError`` if the call is on the sound card, is joined, is being handed over already, or if the person may not be
    ///   called, or not now.
    @discardableResult
    public func handOver(_ id: CallID, _ request: HandoverRequest) throws(CallSoundError) -> CallID {
        try checkJoining(id)
        if case .text? = request.whisper, configuration.handover.voice.isEmpty {
            throw CallSoundError(
                .notConfigured, "a whisper of text needs handover.say in the configuration, the command that speaks it")
        }
        _ = try judged(request, of: id)
        feed(handovers: .begin(id, request))
        // It may have failed at once, which was reported with the reason.
        guard let person = participants.handovers.person(of: id) else {
            throw CallSoundError(.failed, "the person could not be called")
        }
        return person
    }

    /// Takes back a hand-over: the person stops ringing, or is hung up.
    public func cancelHandover(of id: CallID) throws(CallSoundError) {
        // It may not have begun, before the call is established.
        if let request = participants.waitingHandovers.removeValue(forKey: id) {
            return participants.noteHandover(
                HandoverReport(to: request.target, .cancelled, because: "the hand-over was taken back"), of: id)
        }
        guard participants.handovers.isUnderWay(for: id), !participants.handovers.isJoined(id) else {
            throw CallSoundError(.wrongState, "\(id) is not being handed over; handover begins that")
        }
        feed(handovers: .cancel(id, because: "the hand-over was taken back"))
    }

    /// Checks that a call can be joined to another one, parked, or handed over.
    func checkJoining(_ id: CallID) throws(CallSoundError) {
        try CallSoundControl(calls[id]?.session, id, on: engine).checkBridging()
        if let queue = participants.queues.queue(of: id) {
            throw CallSoundError(.wrongState, "\(id) waits in the queue \"\(queue)\"; queue take joins it to a call")
        }
        guard participants.bridges.partner(of: id) == nil, !participants.queues.isTaking(id),
            !participants.dials.isDialling(for: id),
            !participants.dials.isPlaced(id)
        else {
            throw CallSoundError(
                .wrongState, "\(id) is joined to another call or a room already; unbridge it, or hang that up")
        }
        guard !participants.handovers.isUnderWay(for: id), !participants.handovers.isPerson(id) else {
            throw CallSoundError(.wrongState, "\(id) is being handed over; cancel that with handover_cancel")
        }
        if let slot = participants.parking.slot(of: id) {
            throw CallSoundError(.wrongState, "\(id) is parked in slot \(slot); pick it up")
        }
    }

    /// Whether a call does what it is not its participant's to end: it is joined, parked, or about to be handed over.
    func isElsewhere(_ id: CallID) -> Bool {
        guard !participants.isInFlow(id) else { return false }
        return participants.bridges.partner(of: id) != nil || participants.handovers.isUnderWay(for: id)
            || participants.parking.slot(of: id) != nil
    }

    /// Does what a call's participant has asked for while the call was elsewhere, if it is back.
    func releaseDeferredEnd(of id: CallID) {
        guard !isElsewhere(id), let end = participants.deferredEnds.take(id) else { return }
        feed(.participant(end.event, from: end.kind), to: id)
    }

    /// A participant asks for a hand-over. A program may do so before its call is established; then that is waited for.
    func handOver(_ id: CallID, forParticipant request: HandoverRequest) {
        guard let call = calls[id]?.session, call.record == nil else { return }
        guard call.progress.isEstablished else { return participants.waitingHandovers[id] = request }
        do throws(CallSoundError) {
            try handOver(id, request)
        } catch {
            log.handoverIsRefused(request.target, because: error.description, about: calls.about(id))
            _ = participants.carryOut(.refuse(.handover, why: error.description), of: id)
        }
    }

    // MARK: What happens to calls

    /// A call is established, whose participant may have asked for a hand-over already.
    func beginWaitingHandover(of id: CallID) {
        if let request = participants.waitingHandovers.removeValue(forKey: id) { handOver(id, forParticipant: request) }
    }

    func feed(handovers input: CallHandovers.Input) {
        var outbox: [CallHandovers.Output] = []
        participants.handovers.handle(input, at: MonotonicClock.now, into: &outbox)
        for output in outbox { carryOut(output) }
        setJoiningTimer()
    }

    /// Wakes what spans calls at its next deadline.
    func setJoiningTimer() {
        let deadline = [
            participants.handovers.nextDeadline, participants.parking.nextDeadline, participants.queues.nextDeadline,
        ].compactMap(\.self).min()
        participants.joiningTimer.set(at: deadline) { [weak self] in await self?.joiningIsDue() }
    }

    private func joiningIsDue() {
        feed(handovers: .timerFired)
        feed(parking: .timerFired)
        feed(queues: .timerFired)
    }

    private func carryOut(_ output: CallHandovers.Output) {
        switch output {
        case .place(let request, let caller): place(request, for: caller)
        case .playMusic(let music, let caller):
            guard let path = configuration.handover.path(of: music) else { return }
            feed(music: .play(path, to: caller, repeats: true, isUntilJoined: true))
        case .whisper(.file(let path), let person):
            feed(music: .play(path, to: person, repeats: false, isUntilJoined: true))
        case .whisper(.text(let text), let person): speak(text, to: person)
        case .stopSound(let call):
            // A hold of the other call has put its music in the place of that.
            if !participants.bridges.isPartnerHeld(of: call) { feed(music: .stop(call)) }
        case .join(let person, let caller, let role):
            feed(bridges: .join(caller, person, then: role == .listens ? .goBack : .hangUp, otherThen: .hangUp))
        case .dismissParticipant(let caller): dismissParticipant(of: caller)
        case .hangUp(let person): feed(.user(.hangUp(because: .request)), to: person)
        case .report(let report, let caller): self.report(report, of: caller)
        }
    }

    private func report(_ report: HandoverReport, of caller: CallID) {
        log.handoverIs(report, about: calls.about(caller))
        publish(.handover(caller, report))
        participants.noteHandover(report, of: caller)
        guard report.state.isFinal else { return }
        // After what else the end of a person's call orders, such as the parting of a join.
        Task { self.releaseDeferredEnd(of: caller) }
    }

    private func judged(_ request: HandoverRequest, of caller: CallID) throws(CallSoundError) -> UserID {
        guard let session = calls[caller]?.session else {
            throw CallSoundError(.wrongState, "\(caller) has ended")
        }
        let behaviour = session.behaviour
        let placed = participants.dials.callCount + participants.handovers.callCount
        do throws(CallAdmission.PlacementRefusal) {
            return try admission.callee(
                ofDial: request.target, own: signaling.user, dialled: placed, after: session.hops,
                unless: { obstacle(toCallWith: placedPart(AudioBehaviour(source: .silence), behaviour: behaviour)) }
            ).get()
        } catch {
            throw CallSoundError(.failed, error.reason)
        }
    }

    private func place(_ request: HandoverRequest, for caller: CallID) {
        do throws(CallSoundError) {
            let person = try judged(request, of: caller)
            let session = calls[caller]?.session
            let behaviour = session?.behaviour ?? ""
            var audio = files(of: behaviour).audio(to: person)
            audio.source = .silence
            let part = placedPart(audio, behaviour: behaviour)
            let call = maker.outgoing(
                to: [person], audio: part.audio, rules: part.rules, timeToLive: request.ringing,
                after: session?.hops.next ?? CallHops())
            add(call, for: traceContext(of: caller))
            feed(handovers: .placed(call.id, for: caller))
            feed(.begin, to: call.id)
        } catch {
            feed(handovers: .notPlaced(for: caller, because: error.description))
        }
    }

    private func dismissParticipant(of caller: CallID) {
        guard calls[caller]?.session.isAttended == true else { return }
        _ = participants.deferredEnds.take(caller)
        try? detach(from: caller)
    }

    private func speak(_ text: String, to person: CallID) {
        let voice = configuration.handover
        Task {
            let spoken = await BlockingThreads.programs.run {
                SpokenText.speak(text, by: voice.voice, withholding: voice.withheldVariables)
            }
            switch spoken {
            case .success(let spoken):
                guard participants.handovers.isWhispering(to: person) else { return }
                participants.whispers[person] = spoken
                feed(music: .play(spoken.path, to: person, repeats: false, isUntilJoined: true))
            case .failure(let fault):
                log.whisperFails(because: fault.message, about: calls.about(person))
                feed(handovers: .whispered(person))
            }
        }
    }

    // MARK: What calls hear that wait

    func feed(music input: CallMusic.Input) {
        var outbox: [CallMusic.Output] = []
        participants.music.handle(input, at: MonotonicClock.now, into: &outbox)
        for output in outbox {
            switch output {
            case .play(let path, let call, let isUntilJoined): play(path, toWaiting: call, isUntilJoined: isUntilJoined)
            case .stop(let call): try? stopPlaying(on: call)
            case .finished(let call): feed(handovers: .whispered(call))
            }
        }
    }

    private func play(_ path: String, toWaiting id: CallID, isUntilJoined: Bool) {
        Task {
            do throws(CallSoundError) {
                try await playToWaiting(path, on: id, isUntilJoined: isUntilJoined)
                feed(music: .began(path, in: id))
            } catch {
                log.musicFails(path, because: error.description, about: calls.about(id))
                feed(music: .failed(path, in: id))
            }
        }
    }
}

extension CallProgress {
    fileprivate var isEstablished: Bool { if case .established = self { true } else { false } }
}
