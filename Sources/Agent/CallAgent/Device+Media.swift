internal import AudioDevices
internal import AudioKit
internal import CallControl
internal import JSON
internal import Logging
internal import CallMedia
internal import MediaEngine
internal import Realtime
internal import Files
internal import SDP
internal import SignalingClient
internal import Core

// A call's media: preparation, start and events.
extension Device {
    func prepareOffer(for id: CallID) {
        guard !isDraining else {
            return feed(.media(.failed(MediaFailure(.deviceFull, "the device takes no more calls: it stops"))), to: id)
        }
        makeOffer(for: id)
    }

    private func makeOffer(for id: CallID) {
        do {
            try prepareMedia(of: id)
            let isWebRTC = configuration.media.offers == .webRTC
            guard let offer = try calls[id]?.media.makeOffer(isWebRTC: isWebRTC, with: &media) else { return }
            feed(.media(.ready(description: offer)), to: id)
        } catch {
            feed(.media(.failed(MediaFailure(error))), to: id)
        }
    }

    /// Answers at once, or when the call's program or bot is ready.
    func prepareAnswer(to offer: JSONValue, for id: CallID) {
        do {
            guard try summonParticipant(of: id) else { return answer(offer, for: id) }
            calls[id]?.waitingOffer = offer
        } catch {
            feed(.media(.failed(MediaFailure(error))), to: id)
        }
    }

    /// The program or bot that a call waits for is ready.
    func answerWithParticipant(in id: CallID) {
        guard let offer = calls[id]?.waitingOffer else { return }
        calls[id]?.waitingOffer = nil
        answer(offer, for: id)
    }

    /// The answering side takes media from before its accept is sent (contract CALL-1), unless the caller leaves the offer to us, and
    /// only its answer to that says where from.
    private func answer(_ offer: JSONValue, for id: CallID) {
        if OfferWish.isMade(by: offer), configuration.account.sip != nil { return makeOffer(for: id) }
        do {
            try prepareMedia(of: id)
            guard let (answer, audio) = try calls[id]?.media.makeAnswer(to: offer, with: &media) else { return }
            try start(audio, .withFirstPacket(noLaterThan: .milliseconds(200)), for: id)
            feed(.media(.ready(description: answer)), to: id)
        } catch {
            logFile(error, of: id)
            feed(.media(.failed(MediaFailure(error))), to: id)
        }
    }

    func applyAnswer(_ answer: JSONValue, for id: CallID) {
        do {
            if calls[id]?.media.isEarly == true {
                guard calls[id]?.media.runningID == nil else {
                    try calls[id]?.media.acceptAfterEarly(answer, on: engine)
                    return
                }
                calls[id]?.media.forgetEarly()
            }
            guard let audio = try calls[id]?.media.acceptAnswer(answer) else { return }
            try start(audio, .atOnce, for: id)
        } catch {
            logFile(error, of: id)
            feed(.media(.failed(MediaFailure(error))), to: id)
        }
    }

    /// The one that we call lets us hear something before it answers: what it plays while it rings, or an announcement. A program
    /// begins with the answer, so that a call with one is not heard before.
    private func hearEarly(_ answer: JSONValue, in id: CallID) {
        guard configuration.account.sip != nil, let call = calls[id], call.machine.progress == .calling,
            !call.hasParticipant
        else { return }
        defer { noteUnplaced() }
        do {
            guard let audio = try calls[id]?.media.acceptEarly(answer, on: engine) else { return }
            try start(audio, .atOnce, for: id, isEarly: true)
            logger.debug("A call is heard before it is answered", metadata: ["call": "\(id)"])
        } catch {
            calls[id]?.media.forgetEarly()
            logger.debug(
                "A call is not heard before it is answered", metadata: ["call": "\(id)", "error": "\(error)"])
        }
    }

    func releaseMedia(of id: CallID) { calls[id]?.media.release(on: engine) }

    private func prepareMedia(of id: CallID) throws {
        guard let call = calls[id], !call.media.isPrepared else { return }
        if call.usesCard, isCardTaken(besides: id) {
            throw CardTaken()
        }
        if call.usesCard, let failure = shared.cardFailure { throw CardAbsent(failure, configuration.audio) }
        try calls[id]?.media.prepare(usesCard: call.usesCard, with: &media)
    }

    private func start(
        _ audio: NegotiatedAudio, _ start: MediaCallPlan.Start, for id: CallID, isEarly: Bool = false
    ) throws {
        guard let call = calls[id], let agreed = try call.media.plan(for: audio, call.audio, start: start) else {
            return
        }
        var plan = agreed.plan
        plan.isEarly = isEarly
        if plan.audio.recording != nil { makeRecordingFolder() }
        if agreed.remote == nil { calls[id]?.media.dropConnection(on: engine) }
        plan.soundCondition = soundCondition(of: id)
        plan.capture = nextCapture()
        let line = call.hasParticipant ? try beginParticipation(in: id) : nil
        try calls[id]?.media.start(plan, line: line, on: engine)
        if let known = call.acknowledgement { peerIsThere(in: id, at: known.host) }
        noteStart(of: id)
        if let capture = plan.capture { logger.info("A call is captured", metadata: ["file": "\(capture)"]) }
        if audio.direction != .sendrecv { calls[id]?.media.setDirection(audio.direction, on: engine) }
        guard let remote = agreed.remote else { return }
        calls[id]?.media.connect(to: remote, on: engine)
        // Without ICE only the handshake is waited for.
        if case .direct = remote.way { noteMedia(.pathFound, of: id, at: MonotonicClock.now) }
    }

    /// The file that the next call is captured in; nil if it is not.
    private func nextCapture() -> String? {
        guard let path = media.nextCapture(number: shared.nextCapture) else { return nil }
        do throws(AudioFileError) {
            try AppendedFile.check(path: path)
            return path
        } catch {
            logger.error("A call is not captured: its file cannot be written", metadata: ["error": "\(error)"])
            return nil
        }
    }

    /// Makes the folder that calls are recorded in, if it was removed.
    func makeRecordingFolder() {
        guard let folder = configuration.behaviour.recordingFolder else { return }
        do throws(RegularFileError) {
            try WritableFolder.make(folder)
        } catch {
            logger.error(
                "Calls cannot be recorded: their folder cannot be written to",
                metadata: ["folder": "\(folder)", "error": "\(error.message)"])
        }
    }

    /// A file that cannot be played fails every call, so the device's operator must learn of it.
    private func logFile(_ error: any Error, of id: CallID) {
        guard let error = error as? MediaStartError, error.file != nil else { return }
        logger.error("A call fails because of its file", metadata: about(id, ["error": "\(error)"]))
    }

    /// Presses telephone keys in a call whose media runs, one after the other: `0`…`9`, `*`, `#`, `A`…`D`, and `!` for the
    /// flash of the hook, as far as the peer takes them. More than 32 at once are too many. To a peer at a SIP server that takes no
    /// telephone events they go by INFO.
    ///
    /// - Throws: ``DigitError`` if they cannot be sent; then none is.
    public func press(_ digits: String, on id: CallID) throws(DigitError) {
        guard digits.count <= 32 else { throw DigitError("\(digits.count) keys are too many at once: send 32 at most") }
        guard let call = calls[id], let media = call.media.id else {
            throw DigitError("keys can be sent while a call's media runs: wait until it is established")
        }
        if call.media.sentEvents == nil, configuration.account.sip != nil {
            for key in try DigitError.keys(in: digits) {
                signal(CallKey.signal, CallKey(key, held: .milliseconds(180)).data, of: id)
            }
            return
        }
        try DigitError.check(digits, against: call.media.sentEvents)
        guard engine.press(digits, on: media) else {
            throw DigitError("the call has just ended")
        }
    }

    /// Handles the media side's events.
    func handle(_ event: MediaEvent) {
        if handleLeg(event) { return }
        switch event {
        case .ready(let media, let time):
            with(media) { id in
                guard let isVerified = calls[id]?.media.isConnectedByHandshake else { return }
                noteMedia(.connected(isVerified: isVerified), of: id, at: time)
            }
        case .flowing(let media, let time): with(media) { noteMedia(.flowing, of: $0, at: time) }
        case .mediaReceived(let media, _):
            with(media) { id in
                calls[id]?.media.notePacket()
                logger.debug("The peer's first packet has come", metadata: about(id))
                // What rings there is heard in place of our tone.
                if calls[id]?.media.isEarly == true { note(.talking, of: id) }
            }
        case .playbackEnded(let media):
            with(media) { id in
                publish(.playbackEnded(id))
                fileIsOver(in: id)
            }
        case .announcementEnded(let media, let path, let end):
            with(media) { publish(.playingEnded($0, path: path, end)) }
        case .recordingEnded(let media, let end): with(media) { recordingEnded(in: $0, end) }
        case .digit(let media, let digit, let time):
            with(media) { heard(digit, by: .media, heldFor: time, in: $0) }
        case .sendingStopped(let media, let reason): with(media) { publish(.sendingStopped($0, reason)) }
        case .sendingResumed(let media): with(media) { publish(.sendingResumed($0)) }
        case .fileFailed(let media, let error):
            with(media) { id in
                logger.error("A file of a call has failed", metadata: about(id, ["error": "\(error)"]))
                calls[id]?.sound.failed(error)
                publish(.fileFailed(id, error))
            }
        case .refused(let media):
            with(media) { id in
                calls[id]?.media.noteRefused()
                let failure = MediaFailure(.deviceFull, "the media workers have as many calls as they may have")
                feed(.media(.failed(failure)), to: id)
            }
        case .ended(let media, let report):
            with(media) { id in
                calls[id]?.media.noteEnded(report)
                finishIfOver(id)
            }
        case .candidate(let connection, let candidate): with(connection) { found(candidate, for: $0) }
        case .candidatesComplete(let connection): with(connection) { found(nil, for: $0) }
        case .relayFailed(let connection, let server, let reason):
            with(connection) { id in
                logger.info(
                    "A TURN server is of no use to a call",
                    metadata: about(id, ["server": "\(server)", "reason": "\(reason)"]))
            }
        case .relayOverrun(_, let server, let notSent, let notReceived):
            // The call may be over by now.
            logger.info(
                "The connection to a TURN server was too slow for the media of a call",
                metadata: ["server": "\(server)", "not_sent": "\(notSent)", "not_received": "\(notReceived)"])
        case .connectionFailed(let connection, let failure):
            with(connection) { id in
                logger.info("A call's connection has failed", metadata: about(id, ["reason": "\(failure)"]))
                guard calls[id]?.media.noteEarlyFailure() != true else { return }
                let isEstablished = calls[id]?.machine.isEstablished == true
                feed(.media(isEstablished ? .lost : .failed(MediaFailure(failure))), to: id)
            }
        case .connected(let connection, let path):
            with(connection) { id in
                logger.debug("A call has a path", metadata: about(id, ["path": "\(path)"]))
                noteMedia(.pathFound, of: id, at: MonotonicClock.now)
            }
        case .connectionQuiet(let connection): with(connection) { peerFellSilent(in: $0) }
        case .connectionBack(let connection): with(connection) { peerIsBack(in: $0) }
        case .effortLimited: publish(.loadChanged(load))
        case .loadMeasured: noteLoad()
        case .realtimePriorityRefused(let error): publish(.realtimePriorityRefused(error))
        case .card(let event):
            // How it is doing is asked for when it is wanted.
            if case .report = event { return }
            publish(.card(event))
        // The call ends by signaling; without it, by loss of media.
        case .goodbyeReceived, .pathLost, .secured: break
        }
    }

    /// What the media has found out counts once the call is answered.
    private func noteMedia(_ report: CallMachine.MediaReport, of id: CallID, at time: Instant) {
        if calls[id]?.media.noteEarly(report) != true { feed(.media(report), to: id, at: time) }
    }

    /// How long after a call is established its peer is silent before the log says so.
    private static let soundExpected = Duration.seconds(10)

    /// A peer that sends no sound is reported, and nothing follows from it (contract CALL-2).
    func expectSound(in id: CallID) {
        calls[id]?.timers.expectSound(after: Self.soundExpected) { [weak self] in await self?.noteSilence(in: id) }
    }

    private func noteSilence(in id: CallID) {
        guard let call = calls[id], call.machine.isEstablished, !call.media.hasHeardPeer else { return }
        logger.notice(
            "The peer has sent no sound yet",
            metadata: about(id, ["established_s": "\(Int(Self.soundExpected / .seconds(1)))"]))
    }

    /// The peer has pressed a key.
    private func heard(_ key: Character, by carrier: ReceivedKeys.Carrier, heldFor time: Duration, in id: CallID) {
        guard calls[id]?.keys.isNew(key, by: carrier, heldFor: time, at: MonotonicClock.now) == true else { return }
        publish(.digit(id, key, heldFor: time))
        sendDigit(key, heldFor: time, toParticipantOf: id)
    }

    private func with(_ media: MediaCallID, _ act: (CallID) -> Void) {
        if let id = calls.id(of: media) { act(id) }
    }
}

// What a call's two sides exchange about its media during set-up and in the call: candidates, and new offers and
// answers.
extension Device {
    /// Sends local candidates, because the peer can assign them to the call from now on.
    func peerKnows(_ id: CallID) {
        for data in calls[id]?.media.peerKnowsCall() ?? [] { signal("candidate", data, of: id) }
    }

    func found(_ candidate: String?, for id: CallID) {
        for data in calls[id]?.media.found(candidate) ?? [] { signal("candidate", data, of: id) }
    }

    /// Takes what the peer signals about a call's media; false if it is something else.
    func take(_ signal: CallSignal) -> Bool {
        guard
            [
                "candidate", "offer", "answer", EarlyAnswer.signal, OfferRefusal.signal, CallTransfer.signal,
                CallTransfer.progressSignal,
            ].contains(signal.type) || [CallKey.signal, Acknowledgement.signal].contains(signal.type) && isSIP,
            let id = calls.id(of: signal.invite),
            let call = calls[id]
        else { return false }
        // One of several who were asked, and not the one who got the call.
        guard call.machine.isWith(signal.from) else { return true }
        switch signal.type {
        case "candidate": calls[id]?.media.received(candidate: signal.data, on: engine)
        case "offer" where OfferWish.isMade(by: signal.data) && isSIP: offerAgain(in: id)
        case "offer": answer(newOffer: signal.data, in: id)
        case OfferRefusal.signal: calls[id]?.media.offerRefused()
        case CallKey.signal:
            // Before the answer nothing of the device takes part in the call.
            guard call.machine.isAnswered || call.machine.progress == .connecting, let key = CallKey(data: signal.data)
            else { break }
            heard(key.key, by: .signaling, heldFor: key.held, in: id)
        case Acknowledgement.signal: take(Acknowledgement(data: signal.data), in: id)
        case EarlyAnswer.signal: hearEarly(signal.data, in: id)
        case CallTransfer.signal, CallTransfer.progressSignal: take(transfer: signal, in: id)
        default: accept(newAnswer: signal.data, in: id)
        }
        return true
    }

    /// Whether calls go by a SIP server, which sees to it that offers do not cross.
    var isSIP: Bool { configuration.account.sip != nil }

    /// The peer renegotiates: hold, resume, another microphone, an ICE restart. It is notified of a refusal.
    private func answer(newOffer offer: JSONValue, in id: CallID) {
        do {
            let isInviter = calls[id]?.machine.isOutgoing == true && !isSIP
            guard let new = try calls[id]?.media.answer(newOffer: offer, isInviter: isInviter, with: &media) else {
                if isSIP { signal(OfferRefusal.signal, [:], of: id) }
                return
            }
            signal("answer", new.answer, of: id)
            if new.owesRestart { restartICE(of: id) }
        } catch {
            logger.warning(
                "The peer's new offer cannot be taken; the call goes on as it was",
                metadata: about(id, ["error": "\(error)"]))
            signal(OfferRefusal.signal, [:], of: id)
        }
    }

    /// The peer requests an offer: it may choose from all that this device can do from then on.
    private func offerAgain(in id: CallID) {
        do throws(NegotiationError) {
            guard let offer = try calls[id]?.media.offerAgain() else { return signal(OfferRefusal.signal, [:], of: id) }
            signal("offer", offer, of: id)
        } catch {
            logger.warning("No new offer can be made", metadata: about(id, ["error": "\(error)"]))
            signal(OfferRefusal.signal, [:], of: id)
        }
    }

    /// The peer's answer to an offer that we made in an established call, or when we accepted it.
    private func accept(newAnswer answer: JSONValue, in id: CallID) {
        if let call = calls[id], !call.machine.isOutgoing, call.media.awaitsFirstAnswer {
            return applyAnswer(answer, for: id)
        }
        do {
            try calls[id]?.media.accept(newAnswer: answer, on: engine)
        } catch {
            calls[id]?.media.offerRefused()
            logger.warning(
                "The peer's answer cannot be taken; the call goes on as it was",
                metadata: about(id, ["error": "\(error)"]))
        }
    }

    func signal(_ type: String, _ data: JSONValue, of id: CallID) {
        guard let call = calls[id], let invite = call.invite.id else { return }
        let peer = call.machine.namedPeer
        // In order: candidates come before their end, and a transfer's success before the hang-up that follows it.
        let sending = hand { (service) throws(SignalingError) in
            try await service.send(CallSignal(invite: invite, type: type, data: data, peer: peer))
        }
        Task { [logger] in
            guard let error = await sending.value else { return }
            // The log alone reports a lost key.
            logger.log(
                level: type == CallKey.signal ? .notice : .debug, "A signal did not reach the peer",
                metadata: ["type": "\(type)", "error": "\(error)"])
        }
    }

    // MARK: A peer that has fallen silent (contract CALL-4): ICE is restarted once over signaling, and if that does not help
    // the call ends.

    /// How much later the side that was called restarts ICE, if the other has not by then.
    private static let inviteeDelay = Duration.seconds(4)

    /// The peer does not answer on any path any more.
    func peerFellSilent(in id: CallID) {
        guard let call = calls[id], call.machine.isEstablished, !call.timers.isPeerSilent else { return }
        logger.info("The peer has fallen silent; looking for another path", metadata: about(id))
        calls[id]?.timers.waitForPeer(
            restartAfter: call.machine.isOutgoing ? .zero : Self.inviteeDelay,
            restart: { [weak self] in await self?.restartICE(of: id) },
            end: { [weak self] in await self?.feed(.media(.lost), to: id) })
    }

    /// The peer answers again.
    func peerIsBack(in id: CallID) {
        guard calls[id]?.timers.isPeerSilent == true else { return }
        logger.info("The peer is back", metadata: about(id))
        calls[id]?.timers.stopWaitingForPeer()
    }

    /// Offers the peer new ICE credentials; media continues by any path that still works.
    private func restartICE(of id: CallID) {
        do throws(NegotiationError) {
            guard let offer = try calls[id]?.media.restartICE(with: &media) else { return }
            logger.info("Restarting ICE", metadata: about(id))
            signal("offer", offer, of: id)
        } catch {
            logger.warning("ICE cannot be restarted", metadata: about(id, ["error": "\(error)"]))
        }
    }
}
