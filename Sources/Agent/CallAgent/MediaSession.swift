internal import AudioPort
internal import Call
internal import CallControl
internal import CallMedia
internal import Core
internal import MediaEngine
internal import Realtime
internal import SDP

/// What one call has of the media engine: a place, and a port that no stream has taken over. Has the engine do what the call's session
/// orders.
struct MediaSession {
    private var placement: MediaPlacement?
    /// The port of a call without ICE and DTLS, until its stream takes it over.
    private var port: MediaPort?

    /// Finds a place for the call's media.
    mutating func prepare(usesCard: Bool, with resources: inout MediaResources) -> CallSession.EngineReport {
        do {
            let (placement, negotiation) = try resources.prepareCall(usesCard: usesCard)
            self.placement = placement
            return .prepared(negotiation)
        } catch {
            return .failed(MediaFailure(error))
        }
    }

    /// Has a media worker run the stream.
    ///
    /// - Parameter capture: The file that its packets are captured in; nil if they are not.
    /// - Returns: Nil before the call has a place.
    mutating func start(
        _ agreed: MediaCallPlan, connection: MediaCallID?, line: consuming PortLine?, capturedIn capture: String?,
        on engine: MediaEngine
    ) throws -> CallSession.EngineReport? {
        guard let placement else { return nil }
        var plan = agreed
        plan.capture = capture
        // A call that is connected after all has the connection's sockets.
        if connection != nil { closePort(on: engine) }
        let stream = try engine.start(plan, at: placement, connection: connection, port: port, line: line)
        port = nil
        return .started(stream, isRecorded: engine.isRecording(stream))
    }

    /// Carries out an order of the session.
    ///
    /// - Returns: What is reported of it; nil if nothing is.
    mutating func carryOut(
        _ order: CallSession.EngineOrder, with resources: inout MediaResources
    ) -> CallSession.EngineReport? {
        let engine = resources.engine
        switch order {
        case .open(let link):
            do {
                return .opened(try open(link, with: &resources))
            } catch {
                return .failed(MediaFailure(error))
            }
        case .findSource(let host): return .source(host.localSource())
        case .change(let orders):
            do {
                for order in orders { try Self.carryOut(order, on: engine) }
                return .changed(nil)
            } catch {
                return .changed(MediaFailure(error))
            }
        case .setDirection(let id, let direction):
            engine.setDirection(id, sends: direction.sends, receives: direction.receives)
        case .connect(let connection, let remote): engine.connect(connection, to: remote)
        case .add(let candidates, let connection):
            for candidate in candidates {
                switch candidate {
                case .candidate(let text, _): engine.addCandidate(text, to: connection)
                case .end: engine.endCandidates(of: connection)
                }
            }
        case .liftSoundLimit(let id): engine.liftSoundLimit(of: id)
        case .closePort: closePort(on: engine)
        case .stop(let id): engine.stop(id)
        }
        return nil
    }

    /// Opens what connects the call.
    ///
    /// - Returns: Nil if that is open, or the call has no place.
    private mutating func open(
        _ link: NegotiatedMedia.Way, with resources: inout MediaResources
    ) throws -> CallSession.EngineLink? {
        guard let placement else { return nil }
        let engine = resources.engine
        switch link {
        case .ice(let isControlling):
            let credentials = resources.makeCredentials()
            let plan = try resources.connectionPlan(credentials, isControlling: isControlling)
            let (connection, candidates) = try engine.connect(plan, at: placement)
            return .ice(connection, credentials, candidates: candidates)
        case .handshake:
            let plan = try resources.connectionPlan(resources.makeCredentials(), isControlling: false)
            let (connection, addresses) = try engine.connectDirectly(plan, at: placement)
            return .handshake(connection, atOneOf: addresses)
        case .port:
            guard port == nil else { return nil }
            let port = try engine.openPort(at: placement)
            self.port = port
            return .port(atOneOf: port.addresses)
        }
    }

    private mutating func closePort(on engine: MediaEngine) {
        guard let port else { return }
        engine.close(port)
        self.port = nil
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
