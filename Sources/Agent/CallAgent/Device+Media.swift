internal import CallControl
internal import JSON
internal import Logging
internal import MediaEngine

// A call's media: prepared, started, and what it tells.
extension Device {
    func prepareOffer(for id: CallID) {
        do {
            let offer = try negotiate(for: id) { negotiation in try negotiation.offer() }
            feed(.media(.ready(description: offer)), to: id)
        } catch {
            feed(.media(.failed("\(error)")), to: id)
        }
    }

    /// The answering side takes media from before its accept is sent (contract CALL-1).
    func prepareAnswer(to offer: JSONValue, for id: CallID) {
        do {
            let (answer, audio) = try negotiate(for: id) { negotiation in try negotiation.answer(to: offer) }
            guard let call = calls[id], let negotiation = call.negotiation else { return }
            let plan = try negotiation.plan(
                for: audio, audio: call.audio, start: .withFirstPacket(noLaterThan: .milliseconds(200)))
            try start(plan, for: id)
            feed(.media(.ready(description: answer)), to: id)
        } catch {
            feed(.media(.failed("\(error)")), to: id)
        }
    }

    func applyAnswer(_ answer: JSONValue, for id: CallID) {
        do {
            guard var negotiation = calls[id]?.negotiation, let call = calls[id] else { return }
            let audio = try negotiation.accept(answer)
            calls[id]?.negotiation = negotiation
            try start(try negotiation.plan(for: audio, audio: call.audio, start: .atOnce), for: id)
        } catch {
            feed(.media(.failed("\(error)")), to: id)
        }
    }

    func releaseMedia(of id: CallID) {
        if let media = calls[id]?.media, calls[id]?.report == nil { engine.stop(media) }
    }

    /// Lets the call's negotiation take a step, beginning it if this is the first.
    private func negotiate<Result>(
        for id: CallID, _ step: (inout MediaNegotiation) throws -> Result
    ) throws -> Result {
        let placement = calls[id]?.placement ?? engine.place()
        var negotiation =
            calls[id]?.negotiation
            ?? MediaNegotiation(
                configuration.media, address: placement.localAddress, keysAllowed: keysAllowed, using: &generator)
        let result = try step(&negotiation)
        calls[id]?.placement = placement
        calls[id]?.negotiation = negotiation
        return result
    }

    private func start(_ plan: MediaCallPlan, for id: CallID) throws(MediaStartError) {
        guard let placement = calls[id]?.placement else { return }
        calls[id]?.media = try engine.start(plan, at: placement)
    }

    /// Keys may be written into descriptions only where nobody else can read them.
    private var keysAllowed: Bool { configuration.account.isSignalingPrivate }

    /// Takes what the media side tells.
    func hear(_ event: MediaEvent) {
        switch event {
        case .established(let media, let time):
            with(media) { feed(.media(.flowing), to: $0, at: time) }
        case .playbackEnded(let media): with(media) { tell(.playbackEnded($0)) }
        case .fileFailed(let media, let error):
            with(media) { id in
                logger.error("A file of a call has failed", metadata: ["call": "\(id)", "error": "\(error)"])
                tell(.fileFailed(id, error))
            }
        case .refused(let media):
            with(media) { id in
                calls[id]?.media = nil
                feed(.media(.failed("the media workers have as many calls as they may have")), to: id)
            }
        case .ended(let media, let report):
            with(media) { id in
                calls[id]?.report = report
                finishIfOver(id)
            }
        case .realtimePriorityRefused(let error): tell(.realtimePriorityRefused(error))
        case .mediaReceived, .goodbyeReceived: break  // The call ends by signaling; without it, by loss of media.
        }
    }

    private func with(_ media: MediaCallID, _ act: (CallID) -> Void) {
        // A few calls at most end or begin at once; a scan is as good as an index.
        if let id = calls.first(where: { $0.value.media == media })?.key { act(id) }
    }
}
