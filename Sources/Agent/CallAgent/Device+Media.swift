internal import AudioDevices
internal import AudioKit
internal import Call
internal import CallControl
internal import Logging
internal import CallMedia
internal import MediaEngine
internal import Realtime
internal import SDP
internal import SignalingClient
internal import Core

// Has the media of calls do what their sessions order.
extension Device {
    func carryOut(_ order: CallSession.MediaOrder, of id: CallID) {
        switch order {
        case .makeOffer:
            guard !isDraining else {
                return fail(id, MediaFailure(.deviceFull, "the device takes no more calls: it stops"))
            }
            makeOffer(for: id)
        case .makeAnswer(let offer): answer(offer, for: id)
        case .applyAnswer(let answer): applyAnswer(answer, for: id)
        case .hearEarly(let answer): hearEarly(answer, in: id)
        case .reportEarly:
            for report in calls[id]?.media.negotiated.takeEarly() ?? [] { feed(.media(.report(report)), to: id) }
        case .answerOffer(let offer, let isInviter):
            report(calls[id]?.media.answer(newOffer: offer, isInviter: isInviter, with: &media), of: id)
        case .acceptAnswer(let answer, let mayBeFirst):
            if mayBeFirst, calls[id]?.media.negotiated.awaitsFirstAnswer == true { return applyAnswer(answer, for: id) }
            report(calls[id]?.media.accept(newAnswer: answer, on: engine), of: id)
        case .offerAgain: report(calls[id]?.media.offerAgain(), of: id)
        case .withdrawOffer: calls[id]?.media.negotiated.offerRefused()
        case .restartICE: report(calls[id]?.media.restartICE(with: &media), of: id)
        case .add(let candidates): calls[id]?.media.add(candidates, on: engine)
        case .liftSoundLimit(let host):
            let negotiated = calls[id]?.media.negotiated
            guard let media = negotiated?.reached(from: host, takesStrangers: traits.takesStrangers) else { return }
            engine.liftSoundLimit(of: media)
        case .observe: observePeer(of: id)
        case .checkSound(let time):
            if calls[id]?.media.negotiated.hasHeardPeer == false {
                logger.notice(
                    "The peer has sent no sound yet",
                    metadata: about(id, ["established_s": "\(Int(time / .seconds(1)))"]))
            }
        case .press(let keys):
            do throws(DigitError) {
                try press(keys, on: id)
            } catch {
                calls[id]?.participant?.refuse(.press, of: id, "\(error)")
            }
        case .release: calls[id]?.media.release(on: engine)
        case .stop: if calls[id]?.media.stop(on: engine) != true { feed(.media(.over), to: id) }
        }
    }

    private func report(_ news: CallSession.MediaNews?, of id: CallID) {
        if let news { feed(.media(news), to: id) }
    }

    // MARK: Offer and answer before media runs

    private func makeOffer(for id: CallID) {
        do {
            try prepareMedia(of: id)
            guard let offer = try calls[id]?.media.makeOffer(with: &media) else { return }
            feed(.media(.report(.ready(description: offer))), to: id)
        } catch {
            fail(id, MediaFailure(error))
        }
    }

    /// The answering side takes media from before its accept is sent (contract CALL-1), unless the caller leaves the offer to us, and
    /// only its answer to that says where from.
    private func answer(_ offer: CallDescription, for id: CallID) {
        if offer.content == .wanted, traits.takesOfferWishes { return makeOffer(for: id) }
        do {
            try prepareMedia(of: id)
            guard let (answer, audio) = try calls[id]?.media.makeAnswer(to: offer, with: &media) else { return }
            try start(audio, .withFirstPacket(noLaterThan: .milliseconds(200)), for: id)
            feed(.media(.report(.ready(description: answer))), to: id)
        } catch {
            logFile(error, of: id)
            fail(id, MediaFailure(error))
        }
    }

    private func applyAnswer(_ answer: CallDescription, for id: CallID) {
        do {
            if calls[id]?.media.negotiated.isEarly == true {
                guard calls[id]?.media.negotiated.runningID == nil else {
                    try calls[id]?.media.acceptAfterEarly(answer, on: engine)
                    return feed(.media(.answerApplied), to: id)
                }
                calls[id]?.media.negotiated.forgetEarly()
            }
            guard let audio = try calls[id]?.media.negotiated.acceptFirst(answer) else { return }
            try start(audio, .atOnce, for: id)
            feed(.media(.answerApplied), to: id)
        } catch {
            logFile(error, of: id)
            fail(id, MediaFailure(error))
        }
    }

    /// The one that we call lets us hear something before it answers: what it plays while it rings, or an announcement.
    private func hearEarly(_ answer: CallDescription, in id: CallID) {
        do {
            guard let audio = try calls[id]?.media.acceptEarly(answer, on: engine) else { return }
            try start(audio, .atOnce, for: id, isEarly: true)
            logger.debug("A call is heard before it is answered", metadata: ["call": "\(id)"])
        } catch {
            calls[id]?.media.negotiated.forgetEarly()
            logger.debug(
                "A call is not heard before it is answered", metadata: ["call": "\(id)", "error": "\(error)"])
        }
    }

    private func prepareMedia(of id: CallID) throws {
        guard let call = calls[id], !call.media.negotiated.hasBegun else { return }
        try card.check(for: call.session, among: calls)
        try calls[id]?.media.prepare(usesCard: call.session.usesCard, with: &media)
    }

    private func start(
        _ audio: NegotiatedAudio, _ start: MediaCallPlan.Start, for id: CallID, isEarly: Bool = false
    ) throws {
        guard let call = calls[id],
            let agreed = try call.media.negotiated.plan(for: audio, call.session.audio, start: start)
        else { return }
        var plan = agreed.plan
        plan.isEarly = isEarly
        if agreed.remote == nil { calls[id]?.media.dropConnection(on: engine) }
        if !call.session.isOutgoing, let negotiated = calls[id]?.media.negotiated {
            plan.soundCondition = negotiated.soundCondition(
                takesStrangers: traits.takesStrangers, isAcknowledged: call.session.isAcknowledged)
        }
        plan.capture = media.nextCapture(number: shared.nextCapture)
        let line = call.session.hasParticipant ? try beginParticipation(in: id) : nil
        try calls[id]?.media.start(plan, line: line, on: engine)
        feed(.media(.started(recording: recordingAtStart(of: id))), to: id)
        if let capture = plan.capture, let media = calls[id]?.media.negotiated.runningID, engine.isCaptured(media) {
            logger.info("A call is captured", metadata: ["file": "\(capture)"])
        }
        if audio.direction != .sendrecv { calls[id]?.media.setDirection(audio.direction, on: engine) }
        guard let remote = agreed.remote else { return }
        calls[id]?.media.connect(to: remote, on: engine)
        feed(.media(.peerIsKnown), to: id)
        // Without ICE only the handshake is waited for.
        if case .direct = remote.way { noteMedia(.pathFound, of: id, at: MonotonicClock.now) }
    }

    /// The file that the call is recorded to from its start.
    private func recordingAtStart(of id: CallID) -> String? {
        guard let call = calls[id], let media = call.media.negotiated.runningID, engine.isRecording(media) else {
            return nil
        }
        return call.session.audio.recording
    }

    // MARK: Files

    /// A file that cannot be played fails every call, so the device's operator must learn of it.
    private func logFile(_ error: any Error, of id: CallID) {
        guard let error = error as? MediaStartError, error.file != nil else { return }
        logger.error("A call fails because of its file", metadata: about(id, ["error": "\(error)"]))
    }

    // MARK: Keys

    /// Presses telephone keys in a call whose media runs, one after the other: `0`…`9`, `*`, `#`, `A`…`D`, and `!` for the
    /// flash of the hook, as far as the peer takes them. More than 32 at once are too many. To a peer at a SIP server that takes no
    /// telephone events they go by INFO.
    ///
    /// - Throws: ``DigitError`` if they cannot be sent; then none is.
    public func press(_ digits: String, on id: CallID) throws(DigitError) {
        guard digits.count <= 32 else { throw DigitError("\(digits.count) keys are too many at once: send 32 at most") }
        guard let call = calls[id], let media = call.media.negotiated.id else {
            throw DigitError("keys can be sent while a call's media runs: wait until it is established")
        }
        if call.media.negotiated.sentEvents == nil, traits.carriesKeys {
            let keys = try DigitError.keys(in: digits)
            return feed(.user(.sendKeys(keys)), to: id)
        }
        try DigitError.check(digits, against: call.media.negotiated.sentEvents)
        guard engine.press(digits, on: media) else {
            throw DigitError("the call has just ended")
        }
    }

    // MARK: Events

    /// Handles the media side's events.
    func handle(_ event: MediaEvent) {
        if let request = legs.handle(event, for: bots) { return carryOut(request) }
        switch event {
        case .ready(let media, let time):
            with(media) { id in
                guard let isVerified = calls[id]?.media.negotiated.isConnectedByHandshake else { return }
                noteMedia(.connected(isVerified: isVerified), of: id, at: time)
            }
        case .flowing(let media, let time): with(media) { noteMedia(.flowing, of: $0, at: time) }
        case .mediaReceived(let media, _):
            with(media) { id in
                calls[id]?.media.negotiated.notePacket()
                logger.debug("The peer's first packet has come", metadata: about(id))
                // What rings there is heard in place of our tone.
                if calls[id]?.media.negotiated.isEarly == true { note(.talking, of: id) }
            }
        case .playbackEnded(let media): with(media) { feed(.media(.playbackEnded), to: $0) }
        case .announcementEnded(let media, let path, let end):
            with(media) { publish(.playingEnded($0, path: path, end)) }
        case .recordingEnded(let media, let end): recordingEnded(in: media, end)
        case .digit(let media, let digit, let time):
            with(media) { feed(.media(.digit(digit, heldFor: time)), to: $0) }
        case .sendingStopped(let media, let reason): with(media) { publish(.sendingStopped($0, reason)) }
        case .sendingResumed(let media): with(media) { publish(.sendingResumed($0)) }
        case .fileFailed(let media, let error):
            with(media) { id in
                logger.error("A file of a call has failed", metadata: about(id, ["error": "\(error)"]))
                feed(.media(.fileFailed(error)), to: id)
                publish(.fileFailed(id, error))
            }
        case .refused(let media):
            with(media) { id in
                calls[id]?.media.negotiated.noteRefused()
                fail(id, MediaFailure(.deviceFull, "the media workers have as many calls as they may have"))
                // A call that had ended before gets no other report of that.
                feed(.media(.over), to: id)
            }
        case .ended(let media, let report):
            with(media) { id in
                calls[id]?.media.negotiated.noteEnded(report)
                feed(.media(.over), to: id)
            }
        case .candidate(let connection, let candidate): with(connection) { found(candidate, for: $0) }
        case .candidatesComplete(let connection): with(connection) { found(nil, for: $0) }
        case .relayFailed(let connection, let server, let error):
            with(connection) { id in
                logger.info(
                    "A call cannot use a TURN server",
                    metadata: about(id, ["server": "\(server)", "error": "\(error)"]))
            }
        case .relayOverrun(_, let server, let notSent, let notReceived):
            // The call may be over by now.
            logger.info(
                "The connection to a TURN server was too slow for the media of a call",
                metadata: ["server": "\(server)", "not_sent": "\(notSent)", "not_received": "\(notReceived)"])
        case .connectionFailed(let connection, let failure):
            with(connection) { id in
                logger.info("A call's connection has failed", metadata: about(id, ["error": "\(failure)"]))
                guard calls[id]?.media.negotiated.noteEarlyFailure() != true else { return }
                feed(.media(.connectionFailed(MediaFailure(failure))), to: id)
            }
        case .connected(let connection, let path):
            with(connection) { id in
                logger.debug("A call has a path", metadata: about(id, ["path": "\(path)"]))
                noteMedia(.pathFound, of: id, at: MonotonicClock.now)
            }
        case .connectionQuiet(let connection): with(connection) { feed(.media(.quiet), to: $0) }
        case .connectionBack(let connection): with(connection) { feed(.media(.back), to: $0) }
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

    private func carryOut(_ request: BotLegs.Request) {
        switch request {
        case .nothing: break
        // A key that the caller's side does not take is lost.
        case .press(let key, let call): try? press(String(key), on: call)
        case .logRelay(let call, let server, let error):
            logger.info(
                "A bot's leg cannot use a TURN server",
                metadata: about(call, ["server": "\(server)", "error": "\(error)"]))
        }
    }

    /// What the media has found out counts once the call is answered.
    private func noteMedia(_ report: CallMachine.MediaReport, of id: CallID, at time: Instant) {
        if calls[id]?.media.negotiated.noteEarly(report) != true { feed(.media(.report(report)), to: id, at: time) }
    }

    private func found(_ candidate: String?, for id: CallID) {
        guard let mid = calls[id]?.media.negotiated.mid else { return }
        feed(.media(.candidate(candidate, mid: mid)), to: id)
    }

    /// Finds out when the peer's newest packet arrived.
    private func observePeer(of id: CallID) {
        guard let media = calls[id]?.media.negotiated else { return }
        switch media.expectation {
        case .covered: return feed(.media(.observed(.covered)), to: id)
        case .onHold: return feed(.media(.observed(.onHold)), to: id)
        case .expecting: break
        }
        guard let running = media.runningID else {
            return feed(.media(.observed(.expecting(newest: nil))), to: id)
        }
        Task { [engine] in
            let report = await engine.report(on: running)
            feed(
                .media(.observed(.expecting(newest: report?.newestArrival, guessed: report?.newestGuess))), to: id)
        }
    }

    private func with(_ media: MediaCallID, _ act: (CallID) -> Void) {
        if let id = calls.id(of: media) { act(id) }
    }
}
