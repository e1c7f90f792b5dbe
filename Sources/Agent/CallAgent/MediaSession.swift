internal import AudioPort
internal import Call
internal import CallControl
internal import CallMedia
internal import Core
internal import MediaEngine
internal import Realtime
internal import SDP

/// The media of one call at its device: what is agreed on, where it runs, and the media engine, which does what the agreement says.
struct MediaSession {
    /// What the two ends have agreed on. It decides; what it orders is carried out here.
    var negotiated = NegotiatedMedia()
    private var placement: MediaPlacement?
    /// The port of a call without ICE and DTLS, until its stream takes it over.
    private var port: MediaPort?

    // MARK: Offer and answer before media runs

    /// Finds a place for the call's media, and begins to negotiate it.
    mutating func prepare(usesCard: Bool, with resources: inout MediaResources) throws {
        let (placement, negotiation) = try resources.prepareCall(usesCard: usesCard)
        self.placement = placement
        negotiated.begin(negotiation)
    }

    /// What goes into an invite: our offer.
    mutating func makeOffer(with resources: inout MediaResources) throws -> CallDescription? {
        try open(negotiated.wayOfOffer, with: &resources)
        return try negotiated.offer()
    }

    /// Takes the peer's offer.
    ///
    /// - Returns: Our answer, and what was agreed.
    mutating func makeAnswer(
        to offer: CallDescription, with resources: inout MediaResources
    ) throws -> (answer: CallDescription, audio: NegotiatedAudio)? {
        try open(NegotiatedMedia.way(toReceive: offer), with: &resources)
        let way = try negotiated.receive(offer, reachedFrom: source(for: offer))
        try open(way, with: &resources)
        return try negotiated.answer()
    }

    /// The address of this machine that an offer's sender can reach.
    private func source(for offer: CallDescription) -> SocketAddress? {
        negotiated.hostToReach(for: offer).flatMap { $0.localSource() }
    }

    /// Opens what connects the call, if it is not there yet.
    private mutating func open(_ way: NegotiatedMedia.Way?, with resources: inout MediaResources) throws {
        guard let way, let placement else { return }
        let engine = resources.engine
        switch way {
        case .ice(let isControlling):
            guard negotiated.connection == nil else { return }
            let credentials = resources.makeCredentials()
            let plan = try resources.connectionPlan(credentials, isControlling: isControlling)
            let (connection, candidates) = try engine.connect(plan, at: placement)
            negotiated.connected(by: connection, credentials, candidates: candidates)
        case .handshake:
            guard negotiated.connection == nil else { return }
            let plan = try resources.connectionPlan(resources.makeCredentials(), isControlling: false)
            let (connection, addresses) = try engine.connectDirectly(plan, at: placement)
            negotiated.connected(by: connection, atOneOf: addresses)
        case .port:
            guard port == nil else { return }
            let port = try engine.openPort(at: placement)
            self.port = port
            negotiated.receives(atOneOf: port.addresses)
        }
    }

    /// Closes a port that no stream has taken over.
    private mutating func closePort(on engine: MediaEngine) {
        guard let port else { return }
        engine.close(port)
        self.port = nil
    }

    // MARK: Early media

    /// Takes an answer that comes before the call is answered.
    ///
    /// - Returns: What was agreed, if media is to be started by it.
    mutating func acceptEarly(_ answer: CallDescription, on engine: MediaEngine) throws -> NegotiatedAudio? {
        try carryOut(on: engine) { try $0.acceptEarly(answer, into: &$1) }
    }

    /// Takes the answer of the one that answered, after early media.
    mutating func acceptAfterEarly(_ answer: CallDescription, on engine: MediaEngine) throws {
        try carryOut(on: engine) { try $0.acceptAfterEarly(answer, into: &$1) }
    }

    // MARK: The stream

    /// Has a media worker run what was agreed.
    mutating func start(_ plan: MediaCallPlan, line: consuming PortLine?, on engine: MediaEngine) throws {
        guard let placement else { return }
        let connection = negotiated.connection
        // A call that is connected after all has the connection's sockets.
        if connection != nil { closePort(on: engine) }
        negotiated.noteStarted(
            as: try engine.start(plan, at: placement, connection: connection, port: port, line: line))
        port = nil
    }

    /// Gives the connection what was agreed.
    func connect(to remote: RemoteConnection, on engine: MediaEngine) {
        if let connection = negotiated.connection { engine.connect(connection, to: remote) }
    }

    /// A call without ICE needs no connection, though its offer had looked like it.
    mutating func dropConnection(on engine: MediaEngine) {
        guard let connection = negotiated.connection else { return }
        engine.stop(connection)
        negotiated.noteDisconnected()
    }

    /// Sends and receives only as the direction says.
    func setDirection(_ direction: MediaDirection, on engine: MediaEngine) {
        guard let id = negotiated.id else { return }
        engine.setDirection(id, sends: direction.sends, receives: direction.receives)
    }

    /// Gives candidates of the peer to the connection, if there is one.
    func add(_ candidates: [CallCandidate], on engine: MediaEngine) {
        guard let connection = negotiated.connection else { return }
        for candidate in candidates {
            switch candidate {
            case .candidate(let text, _): engine.addCandidate(text, to: connection)
            case .end: engine.endCandidates(of: connection)
            }
        }
    }

    /// Stops the stream, or the connection of a call that has none yet.
    mutating func release(on engine: MediaEngine) {
        closePort(on: engine)
        if negotiated.id == nil {
            dropConnection(on: engine)
        } else {
            stop(on: engine)
        }
    }

    /// Stops the stream.
    ///
    /// - Returns: Whether it was running, so that its report is still to come.
    @discardableResult
    func stop(on engine: MediaEngine) -> Bool {
        guard let runningID = negotiated.runningID else { return false }
        engine.stop(runningID)
        return true
    }

    // MARK: Offer and answer while media runs

    /// The peer renegotiates: hold, resume, another microphone, an ICE restart.
    ///
    /// - Parameter isInviter: Whether our offer counts if the two have crossed (docs/protocol.md).
    mutating func answer(
        newOffer offer: CallDescription, isInviter: Bool, with resources: inout MediaResources
    ) -> CallSession.MediaNews {
        let source = source(for: offer)
        do {
            let new = try carryOut(on: resources.engine) {
                try $0.answer(
                    newOffer: offer, isInviter: isInviter, reachedFrom: source, using: &resources.generator, into: &$1)
            }
            return new.map { .answered($0.answer, owesRestart: $0.owesRestart) } ?? .offerNotTaken(fault: nil)
        } catch {
            return .offerNotTaken(fault: "\(error)")
        }
    }

    /// The peer requests an offer: it may choose from all that this device can do from then on.
    mutating func offerAgain() -> CallSession.MediaNews {
        do throws(NegotiationError) {
            return try negotiated.offerAgain().map { .offered($0, restartsICE: false) } ?? .nothingOffered(fault: nil)
        } catch {
            return .nothingOffered(fault: "\(error)")
        }
    }

    /// Offers the peer new ICE credentials; media continues by any path that still works.
    ///
    /// - Returns: Nil if the call has no connection by ICE, or its last offer has not been answered.
    mutating func restartICE(with resources: inout MediaResources) -> CallSession.MediaNews? {
        do {
            let offer = try carryOut(on: resources.engine) {
                try $0.restartICE(using: &resources.generator, into: &$1)
            }
            return offer.map { .offered($0, restartsICE: true) }
        } catch {
            return .restartFailed("\(error)")
        }
    }

    /// The peer's answer to an offer that we made while media runs.
    ///
    /// - Returns: Nil if it was taken.
    mutating func accept(newAnswer answer: CallDescription, on engine: MediaEngine) -> CallSession.MediaNews? {
        do {
            try carryOut(on: engine) { try $0.accept(newAnswer: answer, into: &$1) }
            return nil
        } catch {
            negotiated.offerRefused()
            return .answerNotTaken(fault: "\(error)")
        }
    }

    // MARK: Orders

    /// Has the agreement decide, and carries out what it orders, also before its error is thrown.
    private mutating func carryOut<Decision>(
        on engine: MediaEngine, _ decide: (inout NegotiatedMedia, inout [NegotiatedMedia.Order]) throws -> Decision
    ) throws -> Decision {
        var outbox: [NegotiatedMedia.Order] = []
        let decision = Result { try decide(&negotiated, &outbox) }
        for order in outbox { try Self.carryOut(order, on: engine) }
        return try decision.get()
    }

    private static func carryOut(_ order: NegotiatedMedia.Order, on engine: MediaEngine) throws {
        switch order {
        case .setDirection(let id, let direction):
            engine.setDirection(id, sends: direction.sends, receives: direction.receives)
        case .redirect(let id, let remote, let control): engine.redirect(id, to: remote, control: control)
        case .change(let id, let plan): try engine.change(id, to: plan)
        case .rekey(let id, let send, let receive, let endsFormer):
            try engine.rekey(id, send: send, receive: receive, endsFormer: endsFormer)
        case .beginFlow(let id): engine.beginFlow(id)
        case .answered(let id): engine.answered(id)
        case .connect(let connection, let remote): engine.connect(connection, to: remote)
        case .restart(let connection, let credentials): engine.restart(connection, with: credentials)
        }
    }
}
