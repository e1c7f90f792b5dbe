internal import AudioDevices
internal import AudioKit
internal import CallControl
internal import JSON
internal import Logging
internal import MediaEngine
internal import NetworkAddress
internal import Peering
internal import RegularFiles
internal import SDP
internal import SecureTransport

// A call's media: prepared, started, and what it tells.
extension Device {
    func prepareOffer(for id: CallID) {
        do {
            try beginNegotiation(for: id)
            if configuration.media.offers == .webRTC { try connect(id, isControlling: true) }
            guard let offer = try calls[id]?.negotiation?.offer() else { return }
            feed(.media(.ready(description: offer)), to: id)
        } catch {
            feed(.media(.failed(MediaFailure(error))), to: id)
        }
    }

    /// The answering side takes media from before its accept is sent (contract CALL-1).
    func prepareAnswer(to offer: JSONValue, for id: CallID) {
        do {
            try beginNegotiation(for: id)
            if MediaNegotiation.usesICE(offer) { try connect(id, isControlling: false) }
            _ = try calls[id]?.negotiation?.receive(offer)
            if calls[id]?.negotiation?.needsDirectConnection == true { try connectDirectly(id) }
            guard var negotiation = calls[id]?.negotiation, let behaviour = calls[id]?.audio else { return }
            let (answer, audio) = try negotiation.answer()
            calls[id]?.negotiation = negotiation
            let plan = try negotiation.plan(
                for: audio, audio: behaviour, start: .withFirstPacket(noLaterThan: .milliseconds(200)))
            try start(plan, negotiation.remote(for: audio), audio.direction, for: id)
            feed(.media(.ready(description: answer)), to: id)
        } catch {
            logFile(error, of: id)
            feed(.media(.failed(MediaFailure(error))), to: id)
        }
    }

    func applyAnswer(_ answer: JSONValue, for id: CallID) {
        do {
            guard var negotiation = calls[id]?.negotiation, let behaviour = calls[id]?.audio else { return }
            let (audio, _) = try negotiation.accept(answer)
            calls[id]?.negotiation = negotiation
            try start(
                try negotiation.plan(for: audio, audio: behaviour, start: .atOnce), negotiation.remote(for: audio),
                audio.direction, for: id)
        } catch {
            logFile(error, of: id)
            feed(.media(.failed(MediaFailure(error))), to: id)
        }
    }

    func releaseMedia(of id: CallID) {
        guard let call = calls[id] else { return }
        if let media = call.media {
            if call.report == nil { engine.stop(media) }
        } else {
            dropConnection(of: id)
        }
    }

    private func beginNegotiation(for id: CallID) throws {
        guard calls[id]?.negotiation == nil else { return }
        let usesCard = calls[id]?.usesCard == true
        if usesCard, configuration.audio.severalCalls == .refuse, isCardTaken(besides: id) { throw CardTaken() }
        let placement = engine.place(usesCard: usesCard)
        let bound = placement.localAddress
        let address = bound.isUnspecified ? mediaAddress.withPort(bound.port) : bound
        let means = MediaNegotiation.Means(
            address: address, isBoundToAll: bound.isUnspecified, keysAllowed: keysAllowed,
            identity: try currentIdentity())
        calls[id]?.placement = placement
        calls[id]?.negotiation = MediaNegotiation(configuration.media, means, using: &generator)
    }

    private func start(
        _ plan: MediaCallPlan, _ remote: RemoteConnection?, _ direction: MediaDirection, for id: CallID
    ) throws {
        guard let placement = calls[id]?.placement else { return }
        if plan.audio.recording != nil { makeRecordingFolder() }
        if remote == nil { dropConnection(of: id) }
        var plan = plan
        plan.capture = nextCapture()
        let line = plan.audio.source == .program ? try beginProgram(for: id) : nil
        let media = try engine.start(plan, at: placement, connection: calls[id]?.connection, line: line)
        calls[id]?.media = media
        if let capture = plan.capture { logger.info("A call is captured", metadata: ["file": "\(capture)"]) }
        if direction != .sendrecv {
            engine.setDirection(media, sends: direction.sends, receives: direction.receives)
        }
        if let remote { connect(id, to: remote) }
    }

    /// The file that the next call is captured in; nil if it is not.
    private func nextCapture() -> String? {
        guard let file = configuration.behaviour.capture, captures < BehaviourConfiguration.maximumCaptures else {
            return nil
        }
        captures += 1
        let path = configuration.behaviour.capture(number: captures) ?? file
        do throws(AudioFileError) {
            try AppendedFile.check(path: path)
            return path
        } catch {
            logger.error("A call is not captured: its file cannot be written", metadata: ["error": "\(error)"])
            return nil
        }
    }

    /// Makes the folder that calls are recorded in, which somebody may have removed.
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

    /// A file that cannot be played fails every call, and whoever runs the device must learn of it.
    private func logFile(_ error: any Error, of id: CallID) {
        guard let error = error as? MediaStartError, error.file != nil else { return }
        logger.error("A call fails because of its file", metadata: ["call": "\(id)", "error": "\(error)"])
    }

    /// Lets a call's media go on with the formats, and with the keys of SDES, that were agreed on anew.
    func apply(_ changes: NegotiationChanges, _ audio: NegotiatedAudio, to id: CallID) throws {
        guard !changes.isDisjoint(with: [.formats, .keys]), let call = calls[id], let media = call.media,
            let plan = try call.negotiation?.plan(
                for: audio, audio: AudioBehaviour(source: .silence), start: .atOnce)
        else { return }
        if changes.contains(.formats) { try engine.change(media, to: plan) }
        if changes.contains(.keys), case .keys(let send, let receive) = plan.peer.protection {
            try engine.rekey(media, send: send, receive: receive)
        }
    }

    /// Presses telephone keys in a call whose media runs, one after the other: `0`…`9`, `*`, `#`, `A`…`D`, and `!` for the
    /// flash of the hook, as far as the peer takes them. More than 32 at once are too many.
    ///
    /// - Throws: ``DigitError`` if they cannot be sent; then none is.
    public func press(_ digits: String, on id: CallID) throws(DigitError) {
        guard digits.count <= 32 else { throw DigitError("\(digits.count) keys are too many at once: send 32 at most") }
        guard let call = calls[id], let media = call.media else {
            throw DigitError("keys can be sent while a call's media runs: wait until it is established")
        }
        try DigitError.check(digits, against: call.negotiation?.sentEvents)
        guard engine.press(digits, on: media) else {
            throw DigitError("the call has just ended")
        }
    }

    /// Keys may be written into descriptions only where nobody else can read them.
    private var keysAllowed: Bool { configuration.account.isSignalingPrivate }

    /// Takes what the media side tells.
    func hear(_ event: MediaEvent) {
        switch event {
        case .established(let media, let time):
            with(media) { feed(.media(.flowing), to: $0, at: time) }
        case .playbackEnded(let media): with(media) { tell(.playbackEnded($0)) }
        case .digit(let media, let digit, let time):
            with(media) { id in
                tell(.digit(id, digit, heldFor: time))
                tellProgram(of: id, digit, heldFor: time)
            }
        case .sendingStopped(let media, let reason): with(media) { tell(.sendingStopped($0, reason)) }
        case .sendingResumed(let media): with(media) { tell(.sendingResumed($0)) }
        case .fileFailed(let media, let error):
            with(media) { id in
                logger.error("A file of a call has failed", metadata: ["call": "\(id)", "error": "\(error)"])
                tell(.fileFailed(id, error))
            }
        case .refused(let media):
            with(media) { id in
                calls[id]?.media = nil
                let failure = MediaFailure(.deviceFull, "the media workers have as many calls as they may have")
                feed(.media(.failed(failure)), to: id)
            }
        case .ended(let media, let report):
            with(media) { id in
                calls[id]?.report = report
                finishIfOver(id)
            }
        case .candidate(let connection, let candidate): with(connection) { found(candidate, for: $0) }
        case .candidatesComplete(let connection): with(connection) { found(nil, for: $0) }
        case .relayFailed(let connection, let server, let reason):
            with(connection) { id in
                logger.info(
                    "A TURN server is of no use to a call",
                    metadata: ["call": "\(id)", "server": "\(server)", "reason": "\(reason)"])
            }
        case .relayOverrun(_, let server, let notSent, let notReceived):
            // The call may be over by now.
            logger.info(
                "The connection to a TURN server was too slow for the media of a call",
                metadata: ["server": "\(server)", "not_sent": "\(notSent)", "not_received": "\(notReceived)"])
        case .connectionFailed(let connection, let failure):
            with(connection) { id in
                logger.info("A call's connection has failed", metadata: ["call": "\(id)", "reason": "\(failure)"])
                let isEstablished = calls[id]?.machine.isEstablished == true
                feed(.media(isEstablished ? .lost : .failed(MediaFailure(failure))), to: id)
            }
        case .connected(let connection, let path):
            with(connection) { id in
                logger.debug("A call has a path", metadata: ["call": "\(id)", "path": "\(path)"])
            }
        case .connectionQuiet(let connection): with(connection) { hearNothing(of: $0) }
        case .connectionBack(let connection): with(connection) { hearAgain(of: $0) }
        case .effortLimited: tell(.loadChanged(load))
        case .loadMeasured: noteLoad()
        case .realtimePriorityRefused(let error): tell(.realtimePriorityRefused(error))
        case .card(let event):
            // How it is doing is asked for when it is wanted.
            if case .report = event { return }
            tell(.card(event))
        // The call ends by signaling; without it, by loss of media.
        case .mediaReceived, .goodbyeReceived, .pathLost: break
        }
    }

    private func with(_ media: MediaCallID, _ act: (CallID) -> Void) {
        // A few calls at most end or begin at once; a scan is as good as an index.
        if let id = calls.first(where: { $0.value.media == media || $0.value.connection == media })?.key { act(id) }
    }
}
