internal import AudioKit
internal import Call
internal import CallBridging
public import CallControl
internal import CallDiagnosis
internal import CallMedia
internal import CallParticipation
public import JSON
internal import Logging
internal import MediaEngine
internal import Realtime
internal import SignalingClient
internal import Core

// Drives the sessions of calls: feeds them, and carries out what they order.
extension Device {
    /// Gives a call's session an input and does what it orders.
    func feed(_ input: CallSession.Input, to id: CallID, at now: Instant = MonotonicClock.now) {
        var outbox: [CallSession.Output] = []
        calls[id]?.session.handle(input, at: now, into: &outbox)
        carryOut(outbox, of: id)
    }

    /// Carries out orders in order, each to its end. A call may be fed again meanwhile.
    func carryOut(_ outputs: [CallSession.Output], of id: CallID) {
        for output in outputs {
            switch output {
            case .service(let order): carryOut(order, of: id)
            case .media(let order): carryOut(order, of: id)
            case .engine(let order):
                if let isOnHold = order.isOnHold { feed(bridges: .held(id, isOnHold)) }
                calls[id]?.observation.note(order)
                let report = calls[id]?.media.carryOut(order, with: &media)
                if let report { feed(.engine(report), to: id) }
            case .participant(let order): carryOut(order, of: id)
            case .device(let order): carryOut(order, of: id)
            case .event(let event):
                if event == .answered { note(.talking, of: id) }
                calls[id]?.observation.note(event)
                if !isSecret(event, of: id) { publish(DeviceEvent(event, of: id)) }
                noteForBridges(event, of: id)
            case .note(let note):
                calls[id]?.observation.note(note)
                log.write(note, about: calls.about(id))
            }
        }
        let deadline = calls[id]?.session.nextDeadline
        calls[id]?.timer.set(at: deadline) { [weak self] in await self?.feed(.timerFired, to: id) }
        noteUnplaced()
    }

    /// Whether an event may give away a PIN.
    private func isSecret(_ event: CallEvent, of id: CallID) -> Bool {
        if case .digit = event { participants.keepsKeys(of: id) } else { false }
    }

    /// A call has reached another phase: updates the loudspeaker's tone.
    private func note(_ phase: CallTonePolicy.Phase, of id: CallID) {
        if let call = calls[id]?.session { card.note(phase, of: call) }
    }

    private func carryOut(_ order: CallCourse.ServiceOrder, of id: CallID) {
        if case .invite = order { note(.calling, of: id) }
        // The call hinders no other from now on, though the service has not confirmed it.
        if case .reject = order, let call = calls[id]?.session { card.release(call, among: calls) }
        requests.carryOut(order, of: id, for: self)
    }

    // MARK: Media

    private func carryOut(_ order: CallSession.MediaOrder, of id: CallID) {
        guard let call = calls[id]?.session else { return }
        switch order {
        case .prepare:
            if let obstacle = admission.obstacle(toMediaOf: call, card) {
                feed(.engine(.failed(obstacle)), to: id)
            } else if let report = calls[id]?.media.prepare(usesCard: call.usesCard, with: &media) {
                feed(.engine(report), to: id)
            }
        case .start(let plan, let connection): start(plan, connection, of: call)
        case .observe(let stream):
            Task { [engine] in
                let report = await engine.report(on: stream)
                feed(.engine(.newestArrival(report?.newestArrival, guessed: report?.newestGuess)), to: id)
            }
        case .hearPeer: note(.talking, of: id)
        case .press(let keys):
            do throws(DigitError) {
                try press(keys, on: id)
            } catch {
                _ = participants.carryOut(.refuse(.press, why: "\(error)"), of: id)
            }
        }
    }

    private func start(_ plan: MediaCallPlan, _ connection: MediaCallID?, of call: CallSession) {
        do {
            let line = call.hasParticipant ? try participants.begin(in: call, own: signaling.user) : nil
            let capture = media.nextCapture(number: share.media.nextCapture)
            let report = try calls[call.id]?.media.start(
                plan, connection: connection, line: line, capturedIn: capture, on: engine)
            calls[call.id]?.observation.begin(at: MonotonicClock.now)
            observeCalls()
            if let report { feed(.engine(report), to: call.id) }
            if let capture, let stream = calls[call.id]?.session.runningStream, engine.isCaptured(stream) {
                log.callIsCaptured(in: capture)
            }
        } catch {
            if !plan.isEarly { log.write(startError: error, about: calls.about(call.id)) }
            feed(.engine(.failed(MediaFailure(error))), to: call.id)
        }
    }

    /// Presses telephone keys in a call whose media runs, one after the other: `0`…`9`, `*`, `#`, `A`…`D`, and `!` for the
    /// flash of the hook, as far as the peer takes them. More than 32 at once are too many. To a peer at a SIP server that takes no
    /// telephone events they go by INFO.
    ///
    /// - Throws: ``DigitError`` if they cannot be sent; then none is.
    public func press(_ digits: String, on id: CallID) throws(DigitError) {
        guard let call = calls[id]?.session, let stream = call.stream else {
            throw DigitError("keys can be sent while a call's media runs: wait until it is established")
        }
        switch try DigitError.carrier(of: digits, in: call, traits) {
        case .signaling(let keys): feed(.user(.sendKeys(keys)), to: id)
        case .media: guard engine.press(digits, on: stream) else { throw DigitError("the call has just ended") }
        }
    }

    /// Handles the media side's events.
    func handle(_ event: MediaEvent) {
        if let request = participants.handle(event) { return carryOut(request) }
        guard let name = event.call else { return handleShared(event) }
        // The end of a recording may come after that of its call.
        if case .recordingEnded(_, let end) = event {
            let isWhole = end.failure == nil
            calls.noteRecordingEnd(in: name, end.requestedPath, as: end.path)
            if let (id, reason) = calls.recordingEnded(in: name, end.requestedPath, isWhole: isWhole) {
                publish(.recordingEnded(id, end, reason))
            }
        }
        let id = calls.id(of: name)
        log.write(event, about: id.map { calls.about($0) })
        guard let id else { return }
        if case .fileFailed(_, let error) = event { calls[id]?.observation.add(.fileFailed, error.description) }
        if let report = event.report { feed(.engine(report), to: id, at: event.time ?? MonotonicClock.now) }
        if calls[id]?.session.runningStream == nil { keepWaitingRecord(of: id) }
        if case .bridgeHeard = event { feed(handovers: .heard(id)) }
        if case .announcementEnded(_, let path, let end) = event {
            let isMusic = participants.music.isPlaying(path, in: id)
            feed(music: .ended(path, in: id, isPlayed: end == .played))
            if isMusic { return }
        }
        if let event = DeviceEvent(event, of: id) { publish(event) }
    }

    /// Handles what is about the workers or the card.
    private func handleShared(_ event: MediaEvent) {
        // Four times a second: only a device that waits for room wants to know.
        if case .loadMeasured = event, share.media.isFull { _ = hasRoomForCall }
        if let event = share.media.deviceEvent(event) { publish(event) }
    }

    private func carryOut(_ request: BotLegs.Request) {
        switch request {
        case .nothing: break
        // A key that the caller's side does not take is lost.
        case .press(let key, let call): try? press(String(key), on: call)
        case .logRelay(let call, let server, let error):
            log.legCannotUse(server, error, about: calls.about(call))
        }
    }

    // MARK: The participant

    private func carryOut(_ order: CallCourse.ParticipantOrder, of id: CallID) {
        if case .summon = order { return summonParticipant(of: id) }
        if case .ring = order { feed(handovers: .rings(id)) }
        // What is paused is not given keys, which are those of the other call.
        if case .sendDigit = order, isElsewhere(id), participants.standsStill(in: id) { return }
        if case .sendDigit(let key, _) = order { participants.legs.press(key, of: id, on: engine) }
        if let event = participants.carryOut(order, of: id) { feed(.participant(event, from: .line), to: id) }
    }

    /// Begins the participation in an incoming call, which waits for a participant that delays its answer.
    private func summonParticipant(of id: CallID) {
        do {
            guard let call = calls[id]?.session, try !participants.summon(to: call, own: signaling.user) else { return }
            feed(.participant(.ready(id), from: .line), to: id)
        } catch {
            calls[id]?.observation.add(.programFailed, "\(error)")
            feed(.failed(MediaFailure(error)), to: id)
        }
    }

    // MARK: The device

    private func carryOut(_ order: CallCourse.DeviceOrder, of id: CallID) {
        switch order {
        case .decide: decide(id)
        case .consider(let request): consider(request, of: id)
        case .judge(let target):
            feed(.device(.judged(configuration.account.mayTransferForBot(target))), to: id)
        case .placeSuccessor(let target, let origin): placeSuccessor(of: id, to: target, origin)
        case .passedOn: notePassedOn(id)
        case .inform(let other, let news):
            if case .replaced = news { noteForBridges(replaced: other, by: id) }
            feed(.device(news), to: other)
        case .ended(let record):
            guard let call = calls[id]?.session else { return }
            card.noteEnd(of: call, record)
            card.release(call, among: calls)
            noteForBridges(record, of: id)
        case .keep(let record, let turns): keep(record, turns, of: id)
        case .over(let record):
            guard let call = calls[id]?.session else { return }
            endTrace(of: call, record)
            publish(.ended(id, record, call.mediaReport))
            forget(id)
        }
    }

    /// Does with a call that has come in what is decided.
    private func decide(_ id: CallID) {
        guard let call = calls[id]?.session else { return }
        // A change of that is reported even if it does not decide.
        let (rule, later) = (calls[id]?.rule, calls[id]?.laterPart)
        let hasRoom = note(admission.room(for: [call.part] + (later.map { [$0] } ?? []), besides: id, isCall: true))
        let decision = admission.decision(on: call, by: rule, later, hasRoom: hasRoom, card)
        if decision.rings { note(.ringing, of: id) }
        if let (rule, reason) = decision.refusal {
            calls[id]?.decidedBy = rule
            log.write(refusalOf: call, reason, rule, about: calls.about(id))
        } else if let rule {
            calls[id]?.decidedBy = "\(rule)"
            log.write(acceptanceOf: call, by: rule, about: calls.about(id))
        }
        if let input = decision.input { feed(input, to: id) }
    }

    /// No user has taken a call in the time of its rule, so that another behaviour answers it.
    private func notePassedOn(_ id: CallID) {
        guard let call = calls[id], let rule = call.rule, let sequel = rule.outcome.sequel else { return }
        if !call.session.usesCard { card.giveUp(by: call.session) }
        calls[id]?.decidedBy = "\(rule), then \(sequel)"
        log.write(passing: call.session, by: rule, sequel, about: calls.about(id))
    }

    /// Whether a call's peer is transferred as it asks.
    private func consider(_ request: CallTransfer.Request, of id: CallID) {
        guard let call = calls[id]?.session else { return }
        // The last question reserves room, so that the call must begin at once. Until the target answers there are two calls.
        let isAdmitted =
            call.canBeTransferred && call.hops.obstacle == nil && admits(request)
            && participants.bridges.partner(of: id) == nil
            && !participants.handovers.isPerson(id) && calls.takeTransfer(of: call.peer, at: MonotonicClock.now)
            && obstacle(toCallWith: call.part) == nil
        feed(.device(.decided(request, isAdmitted: isAdmitted)), to: id)
    }

    /// Whether a transfer that a peer asks for is carried out.
    func admits(_ request: CallTransfer.Request) -> Bool { admission.admits(request, by: traits) }

    /// Calls the user that the peer of a call has named.
    private func placeSuccessor(of id: CallID, to target: UserID, _ origin: CallTransfer.Origin) {
        guard let call = calls[id]?.session else { return }
        let part = CallFiles.part(continuing: call.part, to: target)
        let new = maker.outgoing(
            to: [target], audio: part.audio, rules: part.rules, after: call.hops.next ?? call.hops, transfer: origin,
            inPlaceOf: (id, call.peer))
        add(new)
        feed(.device(.successorPlaced(new.id, to: target)), to: id)
        // It may fail at once, which is reported to the peer.
        feed(.begin, to: new.id)
    }

    /// Says something to the peer of a call.
    ///
    /// - Throws: ``SignalingError`` with the code `unknownCall` before the call has an invite, and after its end.
    public func signal(
        _ type: String, data: JSONValue = .null, on call: CallID, retryAfterReconnect: Bool = true
    ) async throws(SignalingError) {
        try await service.send(calls.signal(type, data, on: call), retryAfterReconnect: retryAfterReconnect)
    }

    /// Asks the peer of a call to call another user in our place. Once the target has answered that call, this one is hung up.
    ///
    /// - Parameters:
    ///   - target: The user to call.
    ///   - other: Our call with the target, which the new one takes the place of (attended); nil for a blind transfer.
    /// - Throws: ``SignalingError`` if one of the calls is not answered, or the first has a transfer under way.
    public func transfer(_ id: CallID, to target: UserID, replacing other: CallID? = nil) throws(SignalingError) {
        var call = try calls.call(id, toTransfer: id)
        let consulted = try other.map { other throws(SignalingError) in try calls.call(other, toTransfer: id) }
        var outbox: [CallSession.Output] = []
        try call.transfer(to: target, replacing: consulted, at: MonotonicClock.now, into: &outbox)
        calls[id]?.session = call
        carryOut(outbox, of: id)
    }
}
