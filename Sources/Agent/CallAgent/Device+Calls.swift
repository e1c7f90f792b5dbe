internal import CallControl
internal import JSON
internal import Logging
internal import MediaEngine
internal import Realtime
internal import SignalingClient
internal import Core

// Carries out what the calls' machines ask for.
extension Device {
    /// Gives a call's machine an input and does what it says.
    func feed(_ input: CallMachine.Input, to id: CallID, at now: Instant = MonotonicClock.now) {
        guard var call = calls[id] else { return }
        var outbox: [CallMachine.Output] = []
        call.machine.handle(input, at: now, into: &outbox)
        calls[id] = call
        for output in outbox { carryOut(output, of: id) }
        arm(id)
        noteUnplaced()
    }

    private func carryOut(_ output: CallMachine.Output, of id: CallID) {
        switch output {
        case .prepareOffer: prepareOffer(for: id)
        case .prepareAnswer(let offer): prepareAnswer(to: offer, for: id)
        case .applyAnswer(let answer): applyAnswer(answer, for: id)
        case .releaseMedia: releaseMedia(of: id)
        case .sendInvite(let options):
            note(.calling, of: id)
            sendInvite(options, for: id)
        case .sendCancel(let invite, let data):
            request(for: id, .cancelConfirmed, orElse: { .cancelFailed($0) }) { (service) throws(SignalingError) in
                try await service.cancel(invite, data: data)
            }
        case .sendAccept(let invite, let data):
            request(
                for: id, .answerConfirmed, isAccept: true, orElse: { .answerFailed($0) }
            ) { (service) throws(SignalingError) in
                try await service.accept(invite, data: data)
            }
        case .sendReject(let invite, let data):
            request(for: id, .answerConfirmed, orElse: { .answerFailed($0) }) { (service) throws(SignalingError) in
                try await service.reject(invite, data: data)
            }
        case .sendHangUp(let news): sendHangUp(news)
        case .ringing: ring(id)
        case .answered:
            note(.talking, of: id)
            publish(.answered(id))
            // On an exchange the accept is confirmed with that; over SIP by the ACK.
            if !isSIP { peerIsThere(in: id, at: nil) }
            noteTransfer(of: id, .accepted)
            if let call = calls[id], let replaced = call.replaces {
                calls[replaced]?.transferredTo = call.machine.peer
                handOver(replaced)
            }
            for report in calls[id]?.media.takeEarly() ?? [] { feed(.media(report), to: id) }
            carryOutWaitingTransfer(of: id)
        case .established(let time):
            publish(.established(id, after: time))
            beginDuration(of: id)
            watchPeer(of: id)
            expectSound(in: id)
        case .flowing(let time, let establishedAfter):
            publish(.flowing(id, after: time, establishedAfter: establishedAfter))
        case .ended(var record):
            if record.endedBy == .local { record.hangUpCause = calls[id]?.hangUpCause }
            noteTransfer(of: id, .failed)
            record.transferredBy = calls[id]?.transferredBy
            // The service may end a call that is replaced before it confirms the accept of the one that replaces it.
            record.transferredTo = calls[id]?.transferredTo ?? calls.successor(of: id)?.machine.peer
            let key = calls[id]?.end(record)
            logFailure(of: id, record)
            noteEnd(of: id, record)
            releaseCard(of: id)
            calls[id]?.participant?.end(id, .callEnded(record))
            keep(record, of: id, journalKey: key)
            finishIfOver(id)
        case .refused(let error):
            logger.info("A wish came too late for its call", metadata: about(id, ["error": "\(error)"]))
        }
    }

    /// Sleeps until the machine's next deadline, and then wakes it.
    private func arm(_ id: CallID) {
        let deadline = calls[id]?.machine.nextDeadline
        calls[id]?.timers.wakeMachine(at: deadline) { [weak self] in await self?.feed(.timerFired, to: id) }
    }

    private func ring(_ id: CallID) {
        guard let call = calls[id] else { return }
        let status = AnswerPolicy.Status(
            caller: call.machine.peer, activeCalls: calls.ongoingCount(besides: id), isDraining: isDraining,
            hasRoom: hasRoom(for: id))
        if let invite = call.invite.id { publish(.identified(id, invite)) }
        publish(.incoming(id, from: status.caller))
        if call.replaces != nil, !isDraining {
            // The transferred peer replaces a call that we have answered already.
            return feed(.user(.answer), to: id)
        }
        var refusal = configuration.answer.refusal(of: status).map { (reason: $0.reason, rule: "\($0)") }
        if call.usesCard, isCardTaken(besides: id), refusal?.reason != .declined {
            // Who may not get through learns nothing of it.
            refusal = (.busy, "audio.several_calls: refuse, and another call has the sound card")
        }
        if let (reason, rule) = refusal {
            logger.info(
                "A call is refused",
                metadata: about(id, ["from": "\(status.caller)", "reason": "\(reason.rawValue)", "rule": "\(rule)"]))
            return feed(.user(.reject(reason)), to: id)
        }
        if call.usesCard, let failure = shared.cardFailure {
            // Instead of ringing, or being answered in silence.
            return feed(.media(.failed(MediaFailure(CardAbsent(failure, configuration.audio)))), to: id)
        }
        switch configuration.answer.decide(status) {
        case .answer(let delay) where delay == .zero: feed(.user(.answer), to: id)
        case .answer(let delay):
            note(.ringing, of: id)
            calls[id]?.timers.answer(after: delay) { [weak self] in await self?.feed(.user(.answer), to: id) }
        case .ring: note(.ringing, of: id)
        case .reject(let reason): feed(.user(.reject(reason)), to: id)
        }
    }

    private func sendInvite(_ options: InviteOptions, for id: CallID) {
        // The id comes with the event `inviteSent`, ahead of everything else about the invite.
        let sending = hand { (service) throws(SignalingError) in _ = try await service.invite(options) }
        Task { if let error = await sending.value { feed(.service(.inviteFailed(error)), to: id) } }
    }

    /// Hands a request to the service before this returns, so that requests leave in the order in which they are made: an invite
    /// that overtakes a hang-up would find the peer busy.
    ///
    /// - Returns: What becomes of it, which must not be waited for by what hands it over: a call's machine is not called again
    ///   before all of its outputs are carried out.
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
            if let error = await asking.value { return feed(.service(failure(error)), to: id) }
            if isAccept { hangUpIfOver(id) }
            feed(.service(confirmation), to: id)
            if confirmation == .answerConfirmed { peerKnows(id) }
        }
    }

    /// The service has taken an accept that this side had given up waiting for: the caller is not left with it.
    private func hangUpIfOver(_ id: CallID) {
        guard let call = calls[id], let record = call.record, let invite = call.invite.id,
            record.reason == .acceptFailed
        else { return }
        sendHangUp(CallHangUp(invite: invite, reason: CallEndReason.acceptFailed.rawValue, duration: .zero))
    }

    /// Says why a call has failed; loudly if it is this device's fault.
    private func logFailure(of id: CallID, _ record: CallRecord) {
        guard let cause = record.cause, !record.reason.isSuccess else { return }
        let isOurs = record.endedBy != .remote && (cause == .fileUnusable || cause == .deviceFault)
        logger.log(
            level: isOurs ? .error : .notice, "A call has failed",
            metadata: about(
                id,
                [
                    "reason": "\(record.reason.rawValue)", "cause": "\(cause.rawValue)",
                    "error": "\(record.error.map { "\($0)" } ?? cause.sentence)",
                ]))
    }

    /// Reports the end of a call once its machine and its media have ended.
    func finishIfOver(_ id: CallID) {
        guard var call = calls[id], let record = call.keptRecord else { return }
        if call.media.stop(on: engine) { return }
        call.timers.cancelAll()
        publish(.ended(id, record, call.media.report))
        forget(id)
    }
}
