internal import Call
internal import CallControl
internal import CallParticipation
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
            case .participant(let order): carryOut(order, of: id)
            case .device(let order): carryOut(order, of: id)
            case .event(let event): report(event, of: id)
            case .note(let note): log.write(note, about: about(id))
            }
        }
        let deadline = calls[id]?.session.nextDeadline
        calls[id]?.timer.set(at: deadline) { [weak self] in await self?.feed(.timerFired, to: id) }
        noteUnplaced()
    }

    /// A call has reached another phase: updates the loudspeaker's tone.
    func note(_ phase: CallTonePolicy.Phase, of id: CallID) {
        if let call = calls[id]?.session { card.note(phase, of: call) }
    }

    private func report(_ event: CallEvent, of id: CallID) {
        if event == .answered { note(.talking, of: id) }
        publish(DeviceEvent(event, of: id))
    }

    // MARK: The service

    private func carryOut(_ order: CallSession.ServiceOrder, of id: CallID) {
        switch order {
        case .invite(let options):
            note(.calling, of: id)
            // The id comes with the event `inviteSent`, ahead of everything else about the invite.
            let sending = hand { (service) throws(SignalingError) in _ = try await service.invite(options) }
            Task { if let error = await sending.value { feed(.service(.event(.inviteFailed(error))), to: id) } }
        case .cancel(let invite, let withdrawal):
            request(for: id, .cancelConfirmed, orElse: { .cancelFailed($0) }) { (service) throws(SignalingError) in
                try await service.cancel(invite, withdrawal)
            }
        case .accept(let invite, let acceptance):
            request(
                for: id, .answerConfirmed, isAccept: true, orElse: { .answerFailed($0) }
            ) { (service) throws(SignalingError) in
                try await service.accept(invite, acceptance)
            }
        case .reject(let invite, let rejection):
            // The call hinders no other from now on, though the service has not confirmed it.
            if let call = calls[id]?.session { card.release(call, among: calls) }
            request(for: id, .answerConfirmed, orElse: { .answerFailed($0) }) { (service) throws(SignalingError) in
                try await service.reject(invite, rejection)
            }
        case .hangUp(let news): sendHangUp(news)
        case .signal(let signal): send(signal)
        case .probe(let invite, let peer): probe(invite, peer, of: id)
        }
    }

    /// Hands a request to the service before this returns, so that requests leave in the order in which they are made: an invite
    /// that overtakes a hang-up would find the peer busy.
    ///
    /// - Returns: What becomes of it, which must not be waited for by what hands it over: a call is not fed again before that
    ///   order is carried out.
    func hand(
        _ request:
            nonisolated(nonsending) @escaping @Sendable (any SignalingService) async throws(SignalingError) -> Void
    ) -> Task<SignalingError?, Never> {
        Task.immediate {
            do throws(SignalingError) {
                try await request(service)
                return nil
            } catch {
                return error
            }
        }
    }

    private func request(
        for id: CallID, _ confirmation: CallMachine.ServiceEvent, isAccept: Bool = false,
        orElse failure: @escaping @Sendable (SignalingError) -> CallMachine.ServiceEvent,
        _ ask: nonisolated(nonsending) @escaping @Sendable (any SignalingService) async throws(SignalingError) -> Void
    ) {
        let asking = hand(ask)
        Task {
            if let error = await asking.value { return feed(.service(.event(failure(error))), to: id) }
            if isAccept { feed(.service(.acceptTaken), to: id) }
            feed(.service(.event(confirmation)), to: id)
        }
    }

    private func send(_ signal: CallSignal) {
        // In order: candidates come before their end, and a transfer's success before the hang-up that follows it.
        let sending = hand { (service) throws(SignalingError) in try await service.send(signal) }
        Task { [logger] in
            guard let error = await sending.value else { return }
            // The log alone reports a lost key.
            logger.log(
                level: signal.kind == .key ? .notice : .debug, "A signal did not reach the peer",
                metadata: ["type": "\(signal.type)", "error": "\(error)"])
        }
    }

    private func probe(_ invite: InviteID, _ peer: UserID?, of id: CallID) {
        Task { [service, logger] in
            do throws(SignalingError) {
                let probe = try await service.probe(invite, peer: peer)
                feed(.service(.probed(probe)), to: id)
            } catch {
                logger.debug(
                    "The peer of a call could not be probed", metadata: ["call": "\(id)", "error": "\(error)"])
                feed(.service(.probed(nil)), to: id)
            }
        }
    }

    /// The peer of a call probes this device, which may not know the call any more because it was started again: then it hangs up,
    /// so that the peer does not wait for it.
    func answerProbe(_ signal: CallSignal) {
        guard calls.id(of: signal.invite) == nil, !invites.knows(signal.invite) else { return }
        logger.info("A peer probes a call that is not known here; hanging up", metadata: ["invite": "\(signal.invite)"])
        sendHangUp(
            CallHangUp(invite: signal.invite, reason: .connectionLost, duration: .zero, peer: signal.from))
    }

    // MARK: The device

    private func carryOut(_ order: CallSession.DeviceOrder, of id: CallID) {
        switch order {
        case .decide: decide(id)
        case .consider(let wish): consider(wish, of: id)
        case .judge(let target):
            feed(.device(.judged(configuration.account.mayTransferForBot(target))), to: id)
        case .placeSuccessor(let target, let origin): placeSuccessor(of: id, to: target, origin)
        case .inform(let other, let news): feed(.device(news), to: other)
        case .ended(let record):
            guard let call = calls[id]?.session else { return }
            card.noteEnd(of: call, record)
            card.release(call, among: calls)
        case .keep(let record, let turns): keep(record, turns, of: id)
        case .over(let record):
            guard let call = calls[id] else { return }
            publish(.ended(id, record, call.media.negotiated.report))
            forget(id)
        }
    }

    /// Decides whether a call that has come in is answered, and when.
    private func decide(_ id: CallID) {
        guard let call = calls[id]?.session else { return }
        let status = AnswerPolicy.Status(
            caller: call.peer, activeCalls: calls.ongoingCount(besides: id), isDraining: isDraining,
            hasRoom: hasRoom(for: id))
        if call.replaces != nil, !isDraining, configuration.answer.callers.refusal(of: call.peer) == nil {
            // The transferred peer replaces a call that we have answered already (RFC 3891 §3).
            return answer(id)
        }
        var refusal = configuration.answer.refusal(of: status).map { (reason: $0.reason, rule: "\($0)") }
        if call.usesCard, card.isTaken(for: call, among: calls), refusal?.reason != .declined {
            // Who may not get through learns nothing of it.
            refusal = (.busy, "audio.several_calls: refuse, and another call has the sound card")
        }
        if let (reason, rule) = refusal {
            logger.info(
                "A call is refused",
                metadata: about(id, ["from": "\(status.caller)", "reason": "\(reason.rawValue)", "rule": "\(rule)"]))
            return reject(id, reason)
        }
        if call.usesCard, let absence = card.absence {
            // Instead of ringing, or being answered in silence.
            return fail(id, MediaFailure(absence))
        }
        switch configuration.answer.decide(status) {
        case .answer(let delay):
            if delay > .zero { note(.ringing, of: id) }
            feed(.user(.answer(after: delay)), to: id)
        case .ring: note(.ringing, of: id)
        case .reject(let reason): reject(id, reason)
        }
    }

    /// The call cannot be set up, or cannot continue.
    func fail(_ id: CallID, _ failure: MediaFailure) { feed(.media(.report(.failed(failure))), to: id) }
}
