internal import AudioPort
internal import Call
internal import CallControl
internal import CallMedia
internal import MediaEngine
internal import Core
internal import SDP

/// The media of one call at its device: where it runs, what is negotiated, its connection, and what it saw.
struct MediaSession {
    private struct Preparation {
        let placement: MediaPlacement
        var negotiation: MediaNegotiation
        /// While only an early answer is agreed on: the negotiation with our offer out, to which each later answer is one, too.
        var offered: MediaNegotiation?
    }

    private enum Stream {
        case none
        /// A media worker runs it under this name.
        case running(MediaCallID)
        // A report is large, and most calls have not ended.
        indirect case ended(MediaCallID, MediaReport)
    }

    private var preparation: Preparation?
    /// The media engine's name for the connection, if ICE or DTLS connects the call; its stream has the same name.
    private var connection: MediaCallID?
    /// The port of a call without ICE and DTLS, until its stream takes it over.
    private var port: MediaPort?
    private var stream = Stream.none
    /// The peer's first packet has come.
    private(set) var hasHeardPeer = false
    /// What the media has found out before the call was answered.
    private var early: [CallMachine.MediaReport] = []
    /// The connection that an early answer led to has failed.
    private var hasFailedEarly = false

    /// The media worker's name for the call, once it has run there.
    var id: MediaCallID? {
        switch stream {
        case .none: nil
        case .running(let id), .ended(let id, _): id
        }
    }

    /// The same while it runs.
    var runningID: MediaCallID? {
        guard case .running(let id) = stream else { return nil }
        return id
    }

    /// What the media saw, once it has ended.
    var report: MediaReport? {
        guard case .ended(_, let report) = stream else { return nil }
        return report
    }

    /// Whether the media engine knows the stream or the connection by this name.
    func goes(by name: MediaCallID) -> Bool { id == name || connection == name }

    var isPrepared: Bool { preparation != nil }

    /// Whether ICE or a handshake connects the call, so that media can flow only to a peer that was reached.
    var isConnectedByHandshake: Bool { connection != nil }

    /// Where the peer's description wants our media without ICE; nil if nowhere.
    var remote: SocketAddress? {
        preparation?.negotiation.agreed.flatMap(MediaNegotiation.addresses)?.remote
    }

    /// How telephone events go to the peer; nil if it takes none.
    var sentEvents: NegotiatedTelephoneEvents? { preparation?.negotiation.sentEvents }

    /// What is expected from the peer while the call is established.
    enum Expectation {
        /// ICE connects the call, whose consent checks notice a peer that vanishes.
        case covered
        /// Nothing: the call is on hold.
        case onHold
        case expecting
    }

    /// What is expected from the peer by what was agreed last.
    var expectation: Expectation {
        guard let agreed = preparation?.negotiation.agreed else { return .expecting }
        if agreed.ice != nil { return .covered }
        return agreed.direction.receives ? .expecting : .onHold
    }

    // MARK: Offer and answer before media runs

    /// Finds a place for the call's media, and begins to negotiate it.
    mutating func prepare(usesCard: Bool, with resources: inout MediaResources) throws {
        let (placement, negotiation) = try resources.prepareCall(usesCard: usesCard)
        preparation = Preparation(placement: placement, negotiation: negotiation)
    }

    /// What goes into an invite: our offer.
    mutating func makeOffer(isWebRTC: Bool, with resources: inout MediaResources) throws -> CallDescription? {
        if isWebRTC {
            try connect(isControlling: true, with: &resources)
        } else if preparation?.negotiation.offersHandshake == true {
            try connectDirectly(with: &resources)
        } else {
            try openPort(with: resources)
        }
        return try preparation?.negotiation.offer()
    }

    /// Takes the peer's offer.
    ///
    /// - Returns: Our answer, and what was agreed.
    mutating func makeAnswer(
        to offer: CallDescription, with resources: inout MediaResources
    ) throws -> (answer: CallDescription, audio: NegotiatedAudio)? {
        if MediaNegotiation.usesICE(offer) { try connect(isControlling: false, with: &resources) }
        _ = try preparation?.negotiation.receive(offer)
        if preparation?.negotiation.needsDirectConnection == true { try connectDirectly(with: &resources) }
        if preparation?.negotiation.needsPort == true { try openPort(with: resources) }
        guard var negotiation = preparation?.negotiation else { return nil }
        let (answer, audio) = try negotiation.answer()
        preparation?.negotiation = negotiation
        return (answer, audio)
    }

    /// Whether nothing is agreed yet, and our offer is out.
    var awaitsFirstAnswer: Bool { id == nil && preparation?.negotiation.hasOffered == true }

    /// Takes the peer's first answer.
    ///
    /// - Returns: What was agreed.
    mutating func acceptAnswer(_ answer: CallDescription) throws -> NegotiatedAudio? {
        guard var negotiation = preparation?.negotiation else { return nil }
        let (audio, _) = try negotiation.accept(answer)
        preparation?.negotiation = negotiation
        return audio
    }

    /// What the media engine needs for what was agreed: the media worker's plan, and the connection's peer.
    func plan(
        for audio: NegotiatedAudio, _ behaviour: AudioBehaviour, start: MediaCallPlan.Start
    ) throws -> (plan: MediaCallPlan, remote: RemoteConnection?)? {
        guard let negotiation = preparation?.negotiation else { return nil }
        return (
            try negotiation.plan(for: audio, audio: behaviour, start: start), try negotiation.remote(for: audio)
        )
    }

    // MARK: Early media

    /// Whether media runs before an answer.
    var isEarly: Bool { preparation?.offered != nil }

    /// Takes an answer that comes before the call is answered, and with it the way on which something may be heard; only if it is
    /// connected as our offer says, so that another one's answer may follow.
    ///
    /// - Returns: What was agreed, if media is to be started by it; if media runs already it has moved.
    mutating func acceptEarly(_ answer: CallDescription, on engine: MediaEngine) throws -> NegotiatedAudio? {
        guard let preparation, runningID != nil || id == nil else { return nil }
        let before = preparation.negotiation
        let offered = preparation.offered ?? before
        guard offered.hasOffered else { return nil }
        var negotiation = offered
        let (audio, _) = try negotiation.accept(answer)
        guard try isConnected(audio, by: negotiation) else { return nil }
        self.preparation?.negotiation = negotiation
        self.preparation?.offered = offered
        guard runningID != nil else { return audio }
        try follow(before.agreed, audio, on: engine)
        return nil
    }

    private func isConnected(_ audio: NegotiatedAudio, by negotiation: MediaNegotiation) throws -> Bool {
        let isByConnection = try negotiation.remote(for: audio) != nil
        return isByConnection == (connection != nil) && negotiation.isConnectedAsOffered(audio)
    }

    /// The connection has failed.
    ///
    /// - Returns: Whether the failure is not reported, because another fork may still answer.
    mutating func noteEarlyFailure() -> Bool {
        if isEarly { hasFailedEarly = true }
        return isEarly
    }

    /// Media could not be started by an early answer: it starts with the last one.
    mutating func forgetEarly() {
        guard let offered = preparation?.offered, id == nil else { return }
        preparation?.negotiation = offered
        preparation?.offered = nil
    }

    mutating func notePacket() { hasHeardPeer = true }

    /// Keeps what the media finds out before the call is answered.
    ///
    /// - Returns: Whether the call is not answered yet.
    mutating func noteEarly(_ report: CallMachine.MediaReport) -> Bool {
        if isEarly, !early.contains(report) { early.append(report) }
        return isEarly
    }

    /// What the media found out before the call was answered, once, after that.
    mutating func takeEarly() -> [CallMachine.MediaReport] {
        guard !isEarly else { return [] }
        defer { early = [] }
        return early
    }

    /// Takes the answer of the one that answered, which may be another than the one that was heard before.
    mutating func acceptAfterEarly(_ answer: CallDescription, on engine: MediaEngine) throws {
        guard let before = preparation?.negotiation, var negotiation = preparation?.offered, let id = runningID else {
            return
        }
        let (audio, _) = try negotiation.accept(answer)
        guard try isConnected(audio, by: negotiation) else {
            throw DescriptionError("the peer's answer has another way of connecting than its early one")
        }
        preparation?.negotiation = negotiation
        preparation?.offered = nil
        try follow(before.agreed, audio, on: engine)
        engine.answered(id)
    }

    /// Continues the stream by another answer to the same offer. One with other addresses or keys is most likely of another
    /// remote party, of whose media nothing is known yet.
    private mutating func follow(_ before: NegotiatedAudio?, _ audio: NegotiatedAudio, on engine: MediaEngine) throws {
        let changes = NegotiationChanges(from: before, to: audio)
        if changes.contains(.direction) { setDirection(audio.direction, on: engine) }
        try apply(changes, before, audio, isAnother: true, on: engine)
        guard hasFailedEarly || !changes.isDisjoint(with: [.address, .keys, .ice]) else { return }
        hasFailedEarly = false
        hasHeardPeer = false
        early = []
        // The worker forgets the former one's path and keys before it can get the new ones.
        if let runningID { engine.beginFlow(runningID) }
        guard let connection, var remote = try preparation?.negotiation.remote(for: audio) else { return }
        remote.isAnother = true
        engine.connect(connection, to: remote)
    }

    // MARK: The connection

    /// Begins the connection, and lets the negotiation bring it.
    private mutating func connect(isControlling: Bool, with resources: inout MediaResources) throws {
        guard connection == nil, let placement = preparation?.placement else { return }
        let credentials = resources.makeCredentials()
        let plan = try resources.connectionPlan(credentials, isControlling: isControlling)
        let (connection, candidates) = try resources.engine.connect(plan, at: placement)
        self.connection = connection
        preparation?.negotiation.bring(credentials, candidates: candidates)
    }

    /// Begins the connection of a call with DTLS and without ICE, at an address of the call's own.
    private mutating func connectDirectly(with resources: inout MediaResources) throws {
        guard connection == nil, let placement = preparation?.placement else { return }
        let plan = try resources.connectionPlan(resources.makeCredentials(), isControlling: false)
        let (connection, addresses) = try resources.engine.connectDirectly(plan, at: placement)
        self.connection = connection
        preparation?.negotiation.receive(atOneOf: addresses)
    }

    /// Opens a port of the call's own, for a call that neither ICE nor DTLS connects.
    private mutating func openPort(with resources: MediaResources) throws {
        guard port == nil, let placement = preparation?.placement else { return }
        let port = try resources.engine.openPort(at: placement)
        self.port = port
        preparation?.negotiation.receive(atOneOf: port.addresses)
    }

    /// Closes a port that no stream has taken over.
    private mutating func closePort(on engine: MediaEngine) {
        guard let port else { return }
        engine.close(port)
        self.port = nil
    }

    /// Gives the connection what was agreed.
    func connect(to remote: RemoteConnection, on engine: MediaEngine) {
        if let connection { engine.connect(connection, to: remote) }
    }

    /// A call without ICE needs no connection, though its offer had looked like it.
    mutating func dropConnection(on engine: MediaEngine) {
        guard let connection else { return }
        engine.stop(connection)
        self.connection = nil
    }

    /// The media section that candidates are of; nil before the negotiation has begun.
    var mid: String? { preparation?.negotiation.mid }

    /// Gives candidates of the peer to the connection, if there is one.
    func add(_ candidates: [CallCandidate], on engine: MediaEngine) {
        guard let connection else { return }
        for candidate in candidates {
            switch candidate {
            case .candidate(let text, _): engine.addCandidate(text, to: connection)
            case .end: engine.endCandidates(of: connection)
            }
        }
    }

    // MARK: The stream

    /// Has a media worker run what was agreed.
    mutating func start(_ plan: MediaCallPlan, line: consuming PortLine?, on engine: MediaEngine) throws {
        guard let placement = preparation?.placement else { return }
        // A call that is connected after all has the connection's sockets.
        if connection != nil { closePort(on: engine) }
        stream = .running(try engine.start(plan, at: placement, connection: connection, port: port, line: line))
        port = nil
    }

    /// Sends and receives only as the direction says.
    func setDirection(_ direction: MediaDirection, on engine: MediaEngine) {
        if let id { engine.setDirection(id, sends: direction.sends, receives: direction.receives) }
    }

    /// The media worker has no room for the call.
    mutating func noteRefused() { stream = .none }

    mutating func noteEnded(_ report: MediaReport) {
        if let id { stream = .ended(id, report) }
    }

    /// Stops the stream, or the connection of a call that has none yet.
    mutating func release(on engine: MediaEngine) {
        closePort(on: engine)
        if id == nil {
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
        guard let runningID else { return false }
        engine.stop(runningID)
        return true
    }

    // MARK: Offer and answer while media runs

    /// What follows from a peer's new offer.
    struct NewAnswer {
        var answer: CallDescription
        /// Our own offer has given way to the peer's, and is to be made again.
        var owesRestart: Bool
    }

    /// The peer negotiates again: hold, resume, another microphone, an ICE restart.
    ///
    /// - Parameter isInviter: Whether our offer counts if the two have crossed (docs/protocol.md).
    /// - Returns: Nil if there is nothing to answer.
    mutating func answer(
        newOffer offer: CallDescription, isInviter: Bool, with resources: inout MediaResources
    ) throws -> NewAnswer? {
        guard var negotiation = preparation?.negotiation, id != nil else { return nil }
        let engine = resources.engine
        if negotiation.hasOffered {
            if isInviter { return nil }
            negotiation.yield()
        }
        let before = negotiation.agreed
        let changes = try negotiation.receive(offer)
        if changes.contains(.ice), let connection {
            let credentials = resources.makeCredentials()
            engine.restart(connection, with: credentials)
            // The candidates follow one by one, as they did not have to the first time.
            negotiation.bring(credentials, candidates: [])
        }
        if changes.contains(.keys) { resources.renewAssociation(of: &negotiation) }
        let (answer, audio) = try negotiation.answer()
        let owesRestart = negotiation.takeOwedRestart(after: changes)
        preparation?.negotiation = negotiation
        if let connection { try renew(connection, changes, audio, on: engine) }
        if changes.contains(.direction) { setDirection(audio.direction, on: engine) }
        try apply(changes, before, audio, on: engine)
        return NewAnswer(answer: answer, owesRestart: owesRestart)
    }

    /// Makes an offer with new ICE credentials; media continues by any path that still works.
    ///
    /// - Returns: Nil if the call has no connection by ICE, or its last offer has not been answered.
    mutating func restartICE(with resources: inout MediaResources) throws(NegotiationError) -> CallDescription? {
        guard let connection, var negotiation = preparation?.negotiation, !negotiation.hasOffered else { return nil }
        let credentials = resources.makeCredentials()
        negotiation.bring(credentials, candidates: [])
        let offer = try negotiation.offer()
        resources.engine.restart(connection, with: credentials)
        preparation?.negotiation = negotiation
        return offer
    }

    /// Makes an offer that the peer has asked for, with everything that we can do; one that is still out is part of it.
    ///
    /// - Returns: Nil if no media runs.
    mutating func offerAgain() throws(NegotiationError) -> CallDescription? {
        guard var negotiation = preparation?.negotiation, id != nil else { return nil }
        let offer = try negotiation.offerAgain()
        preparation?.negotiation = negotiation
        return offer
    }

    /// The peer does not take our offer: what was agreed before stays.
    mutating func offerRefused() {
        guard id != nil, preparation?.negotiation.hasOffered == true else { return }
        preparation?.negotiation.withdraw()
    }

    /// Takes the peer's answer to an offer that we made while media runs.
    mutating func accept(newAnswer answer: CallDescription, on engine: MediaEngine) throws {
        guard var negotiation = preparation?.negotiation, negotiation.hasOffered, id != nil else { return }
        let before = negotiation.agreed
        let (audio, changes) = try negotiation.accept(answer)
        preparation?.negotiation = negotiation
        if let connection { try renew(connection, changes, audio, on: engine) }
        if changes.contains(.direction) { setDirection(audio.direction, on: engine) }
        try apply(changes, before, audio, on: engine)
    }

    private func renew(
        _ connection: MediaCallID, _ changes: NegotiationChanges, _ audio: NegotiatedAudio, on engine: MediaEngine
    ) throws {
        // ICE begins again, or a DTLS association does.
        guard changes.contains(.ice) || changes.contains(.keys),
            var remote = try preparation?.negotiation.remote(for: audio)
        else { return }
        // The DTLS association stays, unless there is to be a new one (RFC 8842 §3.1).
        if !changes.contains(.keys) { remote.handshake = nil }
        engine.connect(connection, to: remote)
    }

    /// Continues the stream with the agreed formats, keys of SDES, and address.
    private func apply(
        _ changes: NegotiationChanges, _ before: NegotiatedAudio?, _ audio: NegotiatedAudio, isAnother: Bool = false,
        on engine: MediaEngine
    ) throws {
        if changes.contains(.address), let id, let (remote, control) = MediaNegotiation.addresses(of: audio) {
            engine.redirect(id, to: remote, control: control)
        }
        guard !changes.isDisjoint(with: [.formats, .keys]), let id,
            let plan = try preparation?.negotiation.plan(
                for: audio, audio: AudioBehaviour(source: .silence), start: .atOnce)
        else { return }
        if changes.contains(.formats) { try engine.change(id, to: plan) }
        if changes.contains(.keys), case .keys(let send, let receive) = plan.peer.protection {
            let new = audio.keying.newKeys(since: before?.keying)
            // Who has another address and other keys is most likely another one.
            try engine.rekey(
                id, send: new.sends ? send : nil, receive: new.receives ? receive : nil,
                endsFormer: isAnother || changes.contains(.address))
        }
    }
}

extension NegotiatedKeying {
    /// Which keys of SDES are others than before.
    fileprivate func newKeys(since before: NegotiatedKeying?) -> (sends: Bool, receives: Bool) {
        guard case .sdes(let send, let receive) = self, case .sdes(let oldSend, let oldReceive)? = before else {
            return (true, true)
        }
        return (send != oldSend, receive != oldReceive)
    }
}
