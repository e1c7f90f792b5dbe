internal import CallControl
internal import CallMedia
internal import Core
internal import ICE
internal import SDP

/// The media of one call without I/O: sets it up step by step, and changes it as the two ends agree.
///
/// `NegotiatedMedia` decides what is agreed on. This core orders what the media engine does for that, one step at a time, and continues
/// with the engine's report. An order that has a report is carried out, and its report fed, before anything else.
struct MediaControl: Sendable {
    enum Output: Sendable {
        /// What is done with more than the media engine.
        case media(CallSession.MediaOrder)
        /// What the media engine does.
        case engine(CallSession.EngineOrder)
        /// What the call's course takes.
        case news(CallCourse.MediaNotice)
        case note(CallNote)
    }

    /// What is done when the stream runs.
    private enum Goal {
        /// Our answer is sent.
        case answer(CallDescription)
        /// The callee's answer is applied.
        case applied
        /// The call is heard before it is answered.
        case early
    }

    /// A decision that the engine's change confirms.
    private enum Change {
        case early(NegotiatedAudio?)
        case afterEarly
        case answer(NegotiatedMedia.NewAnswer?)
        case restart(CallDescription?)
        case accept
    }

    /// The step whose report is awaited.
    private enum Step {
        case none
        /// Our first offer.
        case preparingOffer, openingForOffer
        /// The answer to the peer's first offer.
        case preparingAnswer(CallDescription)
        case openingToReceive(CallDescription)
        case findingSource(CallDescription)
        case openingToAnswer
        // An answer or an agreement is large.
        indirect case starting(NegotiatedAudio, RemoteConnection?, Goal)
        /// The answer to a new offer.
        case findingNewSource(CallDescription, isInviter: Bool)
        indirect case changing(Change, failure: MediaFailure?)
    }

    /// What the stream plays and records.
    private var audio: AudioBehaviour
    private let traits: SignalingTraits
    /// Whether the caller is this side, so that its sound waits for nothing.
    private let isOutgoing: Bool
    /// What the two ends have agreed on.
    private(set) var negotiated = NegotiatedMedia()
    private var generator: any RandomNumberGenerator & Sendable
    private var step = Step.none

    init(
        _ audio: AudioBehaviour, isOutgoing: Bool, _ traits: SignalingTraits,
        using generator: any RandomNumberGenerator & Sendable
    ) {
        self.audio = audio
        self.isOutgoing = isOutgoing
        self.traits = traits
        self.generator = generator
    }

    // MARK: Orders of the call's course

    /// Does what the call's course orders.
    ///
    /// - Parameter isAcknowledged: Whether the caller has acknowledged our answer.
    mutating func handle(_ order: CallCourse.MediaOrder, isAcknowledged: Bool, into outbox: inout [Output]) {
        switch order {
        case .makeOffer: prepare(.preparingOffer, into: &outbox)
        case .makeAnswer(let offer):
            // The caller leaves the offer to us, and only its answer to that says where media comes from.
            let isWanted = offer.content == .wanted && traits.takesOfferRequests
            prepare(isWanted ? .preparingOffer : .preparingAnswer(offer), into: &outbox)
        case .applyAnswer(let answer): apply(answer, isAcknowledged, into: &outbox)
        case .hearEarly(let answer): hearEarly(answer, into: &outbox)
        case .reportEarly: for report in negotiated.takeEarly() { outbox.append(.news(.report(report))) }
        case .answerOffer(let offer, let isInviter): answer(offer, isInviter: isInviter, into: &outbox)
        case .acceptAnswer(let answer, let mayBeFirst):
            if mayBeFirst, negotiated.awaitsFirstAnswer { return apply(answer, isAcknowledged, into: &outbox) }
            change(.accept, into: &outbox) {
                try $0.accept(newAnswer: answer, into: &$1)
                return .accept
            }
        case .play(let audio): self.audio = audio
        case .offerAgain: offerAgain(into: &outbox)
        case .withdrawOffer: negotiated.offerRefused()
        case .restartICE: restartICE(into: &outbox)
        case .add(let candidates):
            if let connection = negotiated.connection { outbox.append(.engine(.add(candidates, to: connection))) }
        case .liftSoundLimit(let host):
            let reached = negotiated.reached(from: host, takesStrangers: traits.takesStrangers)
            if let reached { outbox.append(.engine(.liftSoundLimit(of: reached))) }
        case .observe: observe(into: &outbox)
        case .checkSound(let time): if !negotiated.hasHeardPeer { outbox.append(.note(.silent(for: time))) }
        case .press(let keys): outbox.append(.media(.press(keys: keys)))
        case .release: release(into: &outbox)
        case .stop:
            outbox.append(negotiated.runningID.map { Output.engine(.stop($0)) } ?? .news(.over))
        }
    }

    // MARK: Reports of the media engine

    /// Takes what the media engine reports.
    mutating func handle(_ report: CallSession.EngineReport, isAcknowledged: Bool, into outbox: inout [Output]) {
        switch report {
        case .prepared(let negotiation):
            negotiated.begin(negotiation)
            proceed(isAcknowledged, into: &outbox)
        case .opened(let link):
            take(link)
            proceed(isAcknowledged, into: &outbox)
        case .source(let source): proceed(isAcknowledged, reachedFrom: source, into: &outbox)
        case .started(let name, let isRecorded): started(as: name, isRecorded: isRecorded, into: &outbox)
        case .changed(let failure): changed(failure, isAcknowledged, into: &outbox)
        case .failed(let failure): fail(failure, into: &outbox)
        case .newestArrival(let time, let guess):
            outbox.append(.news(.observed(.expecting(newest: time, guessed: guess))))
        case .ready: note(.connected(isVerified: negotiated.isConnectedByHandshake), into: &outbox)
        case .pathFound: note(.pathFound, into: &outbox)
        case .flowing: note(.flowing, into: &outbox)
        case .packetReceived:
            negotiated.notePacket()
            outbox.append(.note(.firstPacket))
            if negotiated.isEarly { outbox.append(.media(.hearPeer)) }
        case .playbackEnded: outbox.append(.news(.playbackEnded))
        case .digit(let key, let time): outbox.append(.news(.digit(key, heldFor: time)))
        case .fileFailed(let error): outbox.append(.news(.fileFailed(error)))
        case .candidate(let candidate):
            if let mid = negotiated.mid { outbox.append(.news(.candidate(candidate, mid: mid))) }
        case .connectionFailed(let failure):
            if !negotiated.noteEarlyFailure() { outbox.append(.news(.connectionFailed(failure))) }
        case .quiet: outbox.append(.news(.quiet))
        case .back: outbox.append(.news(.back))
        case .refused:
            negotiated.noteRefused()
            let failure = MediaFailure(.deviceFull, "the media workers have as many calls as they may have")
            // A call that had ended before gets no other report of that.
            outbox += [.news(.report(.failed(failure))), .news(.over)]
        case .ended(let report):
            negotiated.noteEnded(report)
            outbox.append(.news(.over))
        case .deviceEnds: release(into: &outbox)
        }
    }

    /// What the media has found out counts once the call is answered.
    private mutating func note(_ report: CallMachine.MediaReport, into outbox: inout [Output]) {
        if !negotiated.noteEarly(report) { outbox.append(.news(.report(report))) }
    }

    private func observe(into outbox: inout [Output]) {
        switch negotiated.expectation {
        case .covered: outbox.append(.news(.observed(.covered)))
        case .onHold: outbox.append(.news(.observed(.onHold)))
        case .expecting:
            let running = negotiated.runningID
            outbox.append(running.map { Output.media(.observe($0)) } ?? .news(.observed(.expecting(newest: nil))))
        }
    }

    /// Stops the stream, or the connection of a call that has none yet.
    private mutating func release(into outbox: inout [Output]) {
        outbox.append(.engine(.closePort))
        if let running = negotiated.runningID {
            outbox.append(.engine(.stop(running)))
        } else if negotiated.id == nil {
            dropConnection(into: &outbox)
        }
    }

    private mutating func dropConnection(into outbox: inout [Output]) {
        guard let connection = negotiated.connection else { return }
        outbox.append(.engine(.stop(connection)))
        negotiated.noteDisconnected()
    }

    // MARK: Offer and answer before media runs

    private mutating func prepare(_ next: Step, into outbox: inout [Output]) {
        step = next
        guard negotiated.hasBegun else { return outbox.append(.media(.prepare)) }
        proceed(false, into: &outbox)
    }

    private mutating func open(_ link: NegotiatedMedia.Way?, _ next: Step, into outbox: inout [Output]) -> Bool {
        guard let link, link == .port || negotiated.connection == nil else { return false }
        step = next
        outbox.append(.engine(.open(link)))
        return true
    }

    private mutating func take(_ link: CallSession.EngineLink?) {
        switch link {
        case .ice(let name, let credentials, let candidates)?:
            negotiated.connected(by: name, credentials, candidates: candidates)
        case .handshake(let name, let addresses)?: negotiated.connected(by: name, atOneOf: addresses)
        case .port(let addresses)?: negotiated.receives(atOneOf: addresses)
        case nil: break
        }
    }

    /// The awaited step is done: continues until the next one that the media engine must do.
    private mutating func proceed(
        _ isAcknowledged: Bool, reachedFrom source: SocketAddress? = nil, into outbox: inout [Output]
    ) {
        let done = step
        step = .none
        do {
            switch done {
            case .preparingOffer:
                if open(negotiated.wayOfOffer, .openingForOffer, into: &outbox) { return }
                try offer(into: &outbox)
            case .openingForOffer: try offer(into: &outbox)
            case .preparingAnswer(let offer):
                let link = NegotiatedMedia.way(toReceive: offer)
                if open(link, .openingToReceive(offer), into: &outbox) { return }
                try receive(offer, isAcknowledged, into: &outbox)
            case .openingToReceive(let offer): try receive(offer, isAcknowledged, into: &outbox)
            case .findingSource(let offer): try receive(offer, reachedFrom: source, isAcknowledged, into: &outbox)
            case .openingToAnswer: try answer(isAcknowledged, into: &outbox)
            case .findingNewSource(let offer, let isInviter):
                answer(offer, isInviter: isInviter, reachedFrom: source, into: &outbox)
            case .none, .starting, .changing: break
            }
        } catch {
            fail(MediaFailure(error), into: &outbox)
        }
    }

    private mutating func offer(into outbox: inout [Output]) throws {
        if let offer = try negotiated.offer() { outbox.append(.news(.report(.ready(description: offer)))) }
    }

    private mutating func receive(
        _ offer: CallDescription, _ isAcknowledged: Bool, into outbox: inout [Output]
    ) throws {
        guard let host = negotiated.hostToReach(for: offer) else {
            return try receive(offer, reachedFrom: nil, isAcknowledged, into: &outbox)
        }
        step = .findingSource(offer)
        outbox.append(.engine(.findSource(reaching: host)))
    }

    private mutating func receive(
        _ offer: CallDescription, reachedFrom source: SocketAddress?, _ isAcknowledged: Bool,
        into outbox: inout [Output]
    ) throws {
        let link = try negotiated.receive(offer, reachedFrom: source)
        if open(link, .openingToAnswer, into: &outbox) { return }
        try answer(isAcknowledged, into: &outbox)
    }

    /// The answering side takes media from before its accept is sent (contract CALL-1).
    private mutating func answer(_ isAcknowledged: Bool, into outbox: inout [Output]) throws {
        guard let (answer, audio) = try negotiated.answer() else { return }
        try start(
            audio, .withFirstPacket(noLaterThan: .milliseconds(200)), then: .answer(answer), isAcknowledged,
            into: &outbox)
    }

    private mutating func apply(_ answer: CallDescription, _ isAcknowledged: Bool, into outbox: inout [Output]) {
        if negotiated.isEarly {
            guard negotiated.runningID == nil else {
                return change(.afterEarly, into: &outbox) {
                    try $0.acceptAfterEarly(answer, into: &$1)
                    return .afterEarly
                }
            }
            negotiated.forgetEarly()
        }
        do {
            guard let audio = try negotiated.acceptFirst(answer) else { return }
            try start(audio, .atOnce, then: .applied, isAcknowledged, into: &outbox)
        } catch {
            fail(MediaFailure(error), into: &outbox)
        }
    }

    /// The callee lets us hear something before it answers: what it plays while it rings, or an announcement.
    private mutating func hearEarly(_ answer: CallDescription, into outbox: inout [Output]) {
        change(.early(nil), into: &outbox) { .early(try $0.acceptEarly(answer, into: &$1)) }
    }

    // MARK: The stream

    private mutating func start(
        _ agreed: NegotiatedAudio, _ start: MediaCallPlan.Start, then goal: Goal, _ isAcknowledged: Bool,
        into outbox: inout [Output]
    ) throws {
        guard let made = try negotiated.plan(for: agreed, audio, start: start) else { return }
        var plan = made.plan
        if case .early = goal { plan.isEarly = true }
        // A call without ICE needs no connection, though its offer had looked like it.
        if made.remote == nil { dropConnection(into: &outbox) }
        if !isOutgoing {
            plan.soundCondition = negotiated.soundCondition(
                takesStrangers: traits.takesStrangers, isAcknowledged: isAcknowledged)
        }
        step = .starting(agreed, made.remote, goal)
        outbox.append(.media(.start(plan, connection: negotiated.connection)))
    }

    private mutating func started(as name: MediaCallID, isRecorded: Bool, into outbox: inout [Output]) {
        guard case .starting(let agreed, let remote, let goal) = step else { return }
        step = .none
        negotiated.noteStarted(as: name)
        outbox.append(.news(.started(recording: isRecorded ? audio.recording : nil)))
        if agreed.direction != .sendrecv { outbox.append(.engine(.setDirection(name, agreed.direction))) }
        if let remote {
            if let connection = negotiated.connection { outbox.append(.engine(.connect(connection, to: remote))) }
            outbox.append(.news(.peerIsKnown))
            // Without ICE only the handshake is waited for.
            if case .direct = remote.way { note(.pathFound, into: &outbox) }
        }
        switch goal {
        case .answer(let answer): outbox.append(.news(.report(.ready(description: answer))))
        case .applied: outbox.append(.news(.answerApplied))
        case .early: outbox.append(.note(.heardEarly))
        }
    }

    /// A step has failed.
    private mutating func fail(_ failure: MediaFailure, into outbox: inout [Output]) {
        let failed = step
        step = .none
        if case .starting(_, _, .early) = failed { return forgetEarly(failure, into: &outbox) }
        outbox.append(.news(.report(.failed(failure))))
    }

    private mutating func forgetEarly(_ failure: MediaFailure, into outbox: inout [Output]) {
        negotiated.forgetEarly()
        outbox.append(.note(.notHeardEarly(why: failure.detail)))
    }

    // MARK: Offer and answer while media runs

    /// The peer renegotiates: hold, resume, another microphone, an ICE restart.
    ///
    /// - Parameter isInviter: Whether our offer counts if the two have crossed (docs/protocol.md).
    private mutating func answer(_ offer: CallDescription, isInviter: Bool, into outbox: inout [Output]) {
        guard let host = negotiated.hostToReach(for: offer) else {
            return answer(offer, isInviter: isInviter, reachedFrom: nil, into: &outbox)
        }
        step = .findingNewSource(offer, isInviter: isInviter)
        outbox.append(.engine(.findSource(reaching: host)))
    }

    private mutating func answer(
        _ offer: CallDescription, isInviter: Bool, reachedFrom source: SocketAddress?, into outbox: inout [Output]
    ) {
        var generator = generator
        change(.answer(nil), into: &outbox) {
            .answer(
                try $0.answer(
                    newOffer: offer, isInviter: isInviter, reachedFrom: source, using: &generator, into: &$1))
        }
        self.generator = generator
    }

    /// The peer requests an offer: it may choose from all that this device can do from then on.
    private mutating func offerAgain(into outbox: inout [Output]) {
        do throws(NegotiationError) {
            let offer = try negotiated.offerAgain().map { CallCourse.MediaNotice.offered($0, restartsICE: false) }
            outbox.append(.news(offer ?? .nothingOffered(fault: nil)))
        } catch {
            outbox.append(.news(.nothingOffered(fault: "\(error)")))
        }
    }

    /// Offers the peer new ICE credentials; media continues by any path that still works.
    private mutating func restartICE(into outbox: inout [Output]) {
        var generator = generator
        change(.restart(nil), into: &outbox) { .restart(try $0.restartICE(using: &generator, into: &$1)) }
        self.generator = generator
    }

    /// Decides on a change, and has the media engine make it, also if the decision fails half-way.
    ///
    /// - Parameter failed: The change if the decision fails.
    private mutating func change(
        _ failed: Change, into outbox: inout [Output],
        _ decide: (inout NegotiatedMedia, inout [NegotiatedMedia.Order]) throws -> Change
    ) {
        var orders: [NegotiatedMedia.Order] = []
        var decision = failed
        var failure: MediaFailure?
        do {
            decision = try decide(&negotiated, &orders)
        } catch {
            failure = MediaFailure(error)
        }
        step = .changing(decision, failure: failure)
        guard orders.isEmpty else { return outbox.append(.engine(.change(orders))) }
        changed(nil, false, into: &outbox)
    }

    /// The media engine has made a change, or has failed to.
    private mutating func changed(_ fault: MediaFailure?, _ isAcknowledged: Bool, into outbox: inout [Output]) {
        guard case .changing(let change, let earlier) = step else { return }
        step = .none
        let failure = fault ?? earlier
        switch change {
        case .early(let agreed): heard(agreed, failure, isAcknowledged, into: &outbox)
        case .afterEarly:
            outbox.append(.news(failure.map { CallCourse.MediaNotice.report(.failed($0)) } ?? .answerApplied))
        case .answer(let new):
            if let new, failure == nil {
                outbox.append(.news(.answered(new.answer, owesRestart: new.owesRestart)))
            } else {
                outbox.append(.news(.offerNotTaken(fault: failure?.detail)))
            }
        case .restart(let offer):
            if let failure {
                outbox.append(.news(.restartFailed(failure.detail)))
            } else if let offer {
                outbox.append(.news(.offered(offer, restartsICE: true)))
            }
        case .accept:
            guard let failure else { return }
            negotiated.offerRefused()
            outbox.append(.news(.answerNotTaken(fault: failure.detail)))
        }
    }

    /// An early answer is agreed on, and starts the stream, or moves the one that runs.
    private mutating func heard(
        _ agreed: NegotiatedAudio?, _ failure: MediaFailure?, _ isAcknowledged: Bool, into outbox: inout [Output]
    ) {
        if let failure { return forgetEarly(failure, into: &outbox) }
        guard let agreed else { return }
        do {
            try start(agreed, .atOnce, then: .early, isAcknowledged, into: &outbox)
        } catch {
            forgetEarly(MediaFailure(error), into: &outbox)
        }
    }
}
