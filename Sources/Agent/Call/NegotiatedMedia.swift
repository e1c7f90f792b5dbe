package import CallControl
package import CallMedia
package import Core
package import ICE
package import SDP
package import SecureTransport

/// The media of one call as its two ends agree on it: offers and answers before media runs and while it does, answers that come early, and
/// what the media engine is to do for them.
///
/// It has no engine: `MediaControl` has what connects the call opened and ``Order``s carried out, in their order, and notes what the engine
/// reports. The names of the connection and of the stream are the engine's.
package struct NegotiatedMedia: Sendable {
    /// What a call has before its first description can be made.
    package enum Way: Equatable, Sendable {
        /// A connection by ICE.
        case ice(isControlling: Bool)
        /// A connection by DTLS, at an address of the call's own.
        case handshake
        /// A port of the call's own, without ICE and DTLS.
        case port
    }

    /// What the media engine is to do with a call that it runs, or connects.
    package enum Order: Sendable {
        case setDirection(MediaCallID, MediaDirection)
        case redirect(MediaCallID, to: SocketAddress, control: SocketAddress?)
        case change(MediaCallID, to: MediaCallPlan)
        case rekey(MediaCallID, send: SRTPKey?, receive: SRTPKey?, endsFormer: Bool)
        /// The media comes from another remote party than before.
        case beginFlow(MediaCallID)
        /// The call is answered, after early media.
        case answered(MediaCallID)
        case connect(MediaCallID, to: RemoteConnection)
        case restart(MediaCallID, with: ICECredentials)
    }

    /// What is expected from the peer while the call is established.
    package enum Expectation: Sendable {
        /// ICE connects the call, whose consent checks notice a peer that vanishes.
        case covered
        /// Nothing: the call is on hold.
        case onHold
        case expecting
    }

    private enum Stream: Sendable {
        case none
        /// A media worker runs it under this name.
        case running(MediaCallID)
        // A report is large, and most calls have not ended.
        indirect case ended(MediaCallID, MediaReport)
    }

    private var negotiation: MediaNegotiation?
    /// While only an early answer is agreed on: the negotiation with our offer out, to which each later answer is one, too.
    private var offered: MediaNegotiation?
    /// The media engine's name for the connection, if ICE or DTLS connects the call; its stream has the same name.
    package private(set) var connection: MediaCallID?
    private var stream = Stream.none
    /// The peer's first packet has come.
    package private(set) var hasHeardPeer = false
    /// What the media has found out before the call was answered.
    private var early: [CallMachine.MediaReport] = []
    /// The connection that an early answer led to has failed.
    private var hasFailedEarly = false

    /// Nothing is negotiated yet.
    package init() {}

    // MARK: What is known

    /// The media worker's name for the call, once it has run there.
    package var id: MediaCallID? {
        switch stream {
        case .none: nil
        case .running(let id), .ended(let id, _): id
        }
    }

    /// The same while it runs.
    package var runningID: MediaCallID? {
        guard case .running(let id) = stream else { return nil }
        return id
    }

    /// What the media saw, once it has ended.
    package var report: MediaReport? {
        guard case .ended(_, let report) = stream else { return nil }
        return report
    }

    /// Whether the media engine knows the stream or the connection by this name.
    package func goes(by name: MediaCallID) -> Bool { id == name || connection == name }

    /// Whether the negotiation has begun.
    package var hasBegun: Bool { negotiation != nil }

    /// Whether ICE or a handshake connects the call, so that media can flow only to a peer that was reached.
    package var isConnectedByHandshake: Bool { connection != nil }

    /// Where the peer's description wants our media without ICE; nil if nowhere.
    package var remote: SocketAddress? { negotiation?.agreed.flatMap(MediaNegotiation.addresses)?.remote }

    /// How telephone events go to the peer; nil if it takes none.
    package var sentEvents: NegotiatedTelephoneEvents? { negotiation?.sentEvents }

    /// The media section that candidates are of; nil before the negotiation has begun.
    package var mid: String? { negotiation?.mid }

    /// What is expected from the peer by what was agreed last.
    package var expectation: Expectation {
        guard let agreed = negotiation?.agreed else { return .expecting }
        if agreed.ice != nil { return .covered }
        return agreed.direction.receives ? .expecting : .onHold
    }

    // MARK: What connects the call

    /// What our first offer needs.
    package var wayOfOffer: Way? {
        guard let negotiation else { return nil }
        if negotiation.offersICE { return .ice(isControlling: true) }
        return negotiation.offersHandshake ? .handshake : .port
    }

    /// The connection by ICE has begun.
    package mutating func connected(
        by name: MediaCallID, _ credentials: ICECredentials, candidates: [String]
    ) {
        connection = name
        negotiation?.bring(credentials, candidates: candidates)
    }

    /// The connection by DTLS has begun.
    ///
    /// - Parameter addresses: What its sockets are bound to, one for each family of addresses.
    package mutating func connected(by name: MediaCallID, atOneOf addresses: [SocketAddress]) {
        connection = name
        negotiation?.receive(atOneOf: addresses)
    }

    /// The call has a port of its own.
    ///
    /// - Parameter addresses: What its sockets are bound to, one for each family of addresses.
    package mutating func receives(atOneOf addresses: [SocketAddress]) { negotiation?.receive(atOneOf: addresses) }

    /// The connection was stopped: a call without ICE needs none, though its offer had looked like it.
    package mutating func noteDisconnected() { connection = nil }

    // MARK: Offer and answer before media runs

    /// Begins to negotiate.
    package mutating func begin(_ negotiation: MediaNegotiation) { self.negotiation = negotiation }

    /// Makes what goes into an invite: our offer.
    package mutating func offer() throws(NegotiationError) -> CallDescription? { try negotiation?.offer() }

    /// What the peer's first offer needs before it is received.
    package static func way(toReceive offer: CallDescription) -> Way? {
        MediaNegotiation.usesICE(offer) ? .ice(isControlling: false) : nil
    }

    /// The host that our address must reach for the peer's offer; nil if our address does not depend on the peer.
    package func hostToReach(for offer: CallDescription) -> SocketAddress? { negotiation?.hostToReach(for: offer) }

    /// Takes the peer's first offer.
    ///
    /// - Parameter source: The address of this machine that reaches ``hostToReach(for:)``.
    /// - Returns: What the answer needs besides.
    package mutating func receive(_ offer: CallDescription, reachedFrom source: SocketAddress?) throws -> Way? {
        _ = try negotiation?.receive(offer, reachedFrom: source)
        if negotiation?.needsDirectConnection == true { return .handshake }
        return negotiation?.needsPort == true ? .port : nil
    }

    /// Answers the peer's first offer.
    ///
    /// - Returns: Our answer, and what was agreed.
    package mutating func answer() throws -> (answer: CallDescription, audio: NegotiatedAudio)? {
        guard var negotiation else { return nil }
        let (answer, audio) = try negotiation.answer()
        self.negotiation = negotiation
        return (answer, audio)
    }

    /// Whether nothing is agreed yet, and our offer is out.
    package var awaitsFirstAnswer: Bool { id == nil && negotiation?.hasOffered == true }

    /// Takes the peer's first answer.
    ///
    /// - Returns: What was agreed.
    package mutating func acceptFirst(_ answer: CallDescription) throws -> NegotiatedAudio? {
        guard var negotiation else { return nil }
        let (audio, _) = try negotiation.accept(answer)
        self.negotiation = negotiation
        return audio
    }

    /// What the media engine needs for what was agreed: the media worker's plan, and the connection's peer.
    package func plan(
        for audio: NegotiatedAudio, _ behaviour: AudioBehaviour, start: MediaCallPlan.Start
    ) throws -> (plan: MediaCallPlan, remote: RemoteConnection?)? {
        guard let negotiation else { return nil }
        return (
            try negotiation.plan(for: audio, audio: behaviour, start: start), try negotiation.remote(for: audio)
        )
    }

    // MARK: The stream

    /// A media worker runs what was agreed.
    package mutating func noteStarted(as name: MediaCallID) { stream = .running(name) }

    /// The media worker has no room for the call.
    package mutating func noteRefused() { stream = .none }

    /// The stream has ended.
    package mutating func noteEnded(_ report: MediaReport) {
        if let id { stream = .ended(id, report) }
    }

    /// The peer's first packet has come.
    package mutating func notePacket() { hasHeardPeer = true }

    // MARK: What is sent to a caller without ICE and DTLS before anything has come from where our sound goes

    /// What the sound of an incoming call waits for.
    ///
    /// - Parameters:
    ///   - takesStrangers: Whether users that the service does not know may call.
    ///   - isAcknowledged: Whether the caller has acknowledged our answer.
    package func soundCondition(takesStrangers: Bool, isAcknowledged: Bool) -> MediaCallPlan.SoundCondition {
        guard connection == nil else { return .none }
        if takesStrangers { return .heard }
        return isAcknowledged ? .none : .confirmed
    }

    /// The stream whose sound needs no limit any more, because the peer has answered by signaling with something that only the receiver
    /// of our message can know; nil if there is none.
    ///
    /// - Parameters:
    ///   - host: The source of the answer, if it is known. If strangers may call, it must be where our sound goes.
    ///   - takesStrangers: Whether users that the service does not know may call.
    package func reached(from host: String?, takesStrangers: Bool) -> MediaCallID? {
        guard takesStrangers else { return runningID }
        guard let remote, let host = host.flatMap({ SocketAddress(host: $0, port: 0) }), host.hasSameHost(as: remote)
        else { return nil }
        return runningID
    }

    // MARK: Early media

    /// Whether media runs before an answer.
    package var isEarly: Bool { offered != nil }

    /// Takes an answer that comes before the call is answered, and with it the way on which something may be heard; only if it is
    /// connected as our offer says, so that another one's answer may follow.
    ///
    /// - Returns: What was agreed, if media is to be started by it; if media runs already it moves.
    package mutating func acceptEarly(
        _ answer: CallDescription, into outbox: inout [Order]
    ) throws -> NegotiatedAudio? {
        guard let before = negotiation, runningID != nil || id == nil else { return nil }
        let offered = offered ?? before
        guard offered.hasOffered else { return nil }
        var negotiation = offered
        let (audio, _) = try negotiation.accept(answer)
        guard try isConnected(audio, by: negotiation) else { return nil }
        self.negotiation = negotiation
        self.offered = offered
        guard runningID != nil else { return audio }
        try follow(before.agreed, audio, into: &outbox)
        return nil
    }

    private func isConnected(_ audio: NegotiatedAudio, by negotiation: MediaNegotiation) throws -> Bool {
        let isByConnection = try negotiation.remote(for: audio) != nil
        return isByConnection == (connection != nil) && negotiation.isConnectedAsOffered(audio)
    }

    /// The connection has failed.
    ///
    /// - Returns: Whether the failure is not reported, because another fork may still answer.
    package mutating func noteEarlyFailure() -> Bool {
        if isEarly { hasFailedEarly = true }
        return isEarly
    }

    /// Media could not be started by an early answer: it starts with the last one.
    package mutating func forgetEarly() {
        guard let offered, id == nil else { return }
        negotiation = offered
        self.offered = nil
    }

    /// Keeps what the media finds out before the call is answered.
    ///
    /// - Returns: Whether the call is not answered yet.
    package mutating func noteEarly(_ report: CallMachine.MediaReport) -> Bool {
        if isEarly, !early.contains(report) { early.append(report) }
        return isEarly
    }

    /// What the media found out before the call was answered, once, after that.
    package mutating func takeEarly() -> [CallMachine.MediaReport] {
        guard !isEarly else { return [] }
        defer { early = [] }
        return early
    }

    /// Takes the answer of the one that answered, which may be another than the one that was heard before.
    package mutating func acceptAfterEarly(_ answer: CallDescription, into outbox: inout [Order]) throws {
        guard let before = negotiation, var negotiation = offered, let id = runningID else { return }
        let (audio, _) = try negotiation.accept(answer)
        guard try isConnected(audio, by: negotiation) else {
            throw DescriptionError("the peer's answer has another way of connecting than its early one")
        }
        self.negotiation = negotiation
        offered = nil
        try follow(before.agreed, audio, into: &outbox)
        outbox.append(.answered(id))
    }

    /// Continues the stream by another answer to the same offer. One with other addresses or keys is most likely of another
    /// remote party, of whose media nothing is known yet.
    private mutating func follow(
        _ before: NegotiatedAudio?, _ audio: NegotiatedAudio, into outbox: inout [Order]
    ) throws {
        let changes = NegotiationChanges(from: before, to: audio)
        if changes.contains(.direction) { setDirection(audio.direction, into: &outbox) }
        try apply(changes, before, audio, isAnother: true, into: &outbox)
        guard hasFailedEarly || !changes.isDisjoint(with: [.address, .keys, .ice]) else { return }
        hasFailedEarly = false
        hasHeardPeer = false
        early = []
        // The worker forgets the former one's path and keys before it can get the new ones.
        if let runningID { outbox.append(.beginFlow(runningID)) }
        guard let connection, var remote = try negotiation?.remote(for: audio) else { return }
        remote.isAnother = true
        outbox.append(.connect(connection, to: remote))
    }

    // MARK: Offer and answer while media runs

    /// What follows from a peer's new offer.
    package struct NewAnswer: Sendable {
        /// Our answer.
        package var answer: CallDescription
        /// Our own offer has given way to the peer's, and is to be made again.
        package var owesRestart: Bool
    }

    /// The peer negotiates again: hold, resume, another microphone, an ICE restart.
    ///
    /// - Parameters:
    ///   - isInviter: Whether our offer counts if the two have crossed (docs/protocol.md).
    ///   - source: The address of this machine that reaches ``hostToReach(for:)``.
    /// - Returns: Nil if there is nothing to answer.
    package mutating func answer(
        newOffer offer: CallDescription, isInviter: Bool, reachedFrom source: SocketAddress?,
        using generator: inout some RandomNumberGenerator, into outbox: inout [Order]
    ) throws -> NewAnswer? {
        guard var negotiation, id != nil else { return nil }
        if negotiation.hasOffered {
            if isInviter { return nil }
            negotiation.yield()
        }
        let before = negotiation.agreed
        let changes = try negotiation.receive(offer, reachedFrom: source)
        if changes.contains(.ice), let connection {
            let credentials = ICECredentials(using: &generator)
            outbox.append(.restart(connection, with: credentials))
            // The candidates follow one by one, as they did not have to the first time.
            negotiation.bring(credentials, candidates: [])
        }
        if changes.contains(.keys) { negotiation.renewAssociation(using: &generator) }
        let (answer, audio) = try negotiation.answer()
        let owesRestart = negotiation.takeOwedRestart(after: changes)
        self.negotiation = negotiation
        try continueAs(audio, before, changes, into: &outbox)
        return NewAnswer(answer: answer, owesRestart: owesRestart)
    }

    /// Makes an offer with new ICE credentials; media continues by any path that still works.
    ///
    /// - Returns: Nil if the call has no connection by ICE, or its last offer has not been answered.
    package mutating func restartICE(
        using generator: inout some RandomNumberGenerator, into outbox: inout [Order]
    ) throws(NegotiationError) -> CallDescription? {
        guard let connection, var negotiation, !negotiation.hasOffered else { return nil }
        let credentials = ICECredentials(using: &generator)
        negotiation.bring(credentials, candidates: [])
        let offer = try negotiation.offer()
        outbox.append(.restart(connection, with: credentials))
        self.negotiation = negotiation
        return offer
    }

    /// Makes an offer that the peer has asked for, with everything that we can do; one that is still out is part of it.
    ///
    /// - Returns: Nil if no media runs.
    package mutating func offerAgain() throws(NegotiationError) -> CallDescription? {
        guard var negotiation, id != nil else { return nil }
        let offer = try negotiation.offerAgain()
        self.negotiation = negotiation
        return offer
    }

    /// The peer does not take our offer: what was agreed before stays.
    package mutating func offerRefused() {
        guard id != nil, negotiation?.hasOffered == true else { return }
        negotiation?.withdraw()
    }

    /// Takes the peer's answer to an offer that we made while media runs.
    package mutating func accept(newAnswer answer: CallDescription, into outbox: inout [Order]) throws {
        guard var negotiation, negotiation.hasOffered, id != nil else { return }
        let before = negotiation.agreed
        let (audio, changes) = try negotiation.accept(answer)
        self.negotiation = negotiation
        try continueAs(audio, before, changes, into: &outbox)
    }

    /// Continues connection and stream as was agreed again.
    private func continueAs(
        _ audio: NegotiatedAudio, _ before: NegotiatedAudio?, _ changes: NegotiationChanges,
        into outbox: inout [Order]
    ) throws {
        if let connection { try renew(connection, changes, audio, into: &outbox) }
        if changes.contains(.direction) { setDirection(audio.direction, into: &outbox) }
        try apply(changes, before, audio, isAnother: false, into: &outbox)
    }

    private func renew(
        _ connection: MediaCallID, _ changes: NegotiationChanges, _ audio: NegotiatedAudio,
        into outbox: inout [Order]
    ) throws {
        // ICE begins again, or a DTLS association does.
        guard changes.contains(.ice) || changes.contains(.keys), var remote = try negotiation?.remote(for: audio)
        else { return }
        // The DTLS association stays, unless there is to be a new one (RFC 8842 §3.1).
        if !changes.contains(.keys) { remote.handshake = nil }
        outbox.append(.connect(connection, to: remote))
    }

    private func setDirection(_ direction: MediaDirection, into outbox: inout [Order]) {
        if let id { outbox.append(.setDirection(id, direction)) }
    }

    /// Continues the stream with the agreed formats, keys of SDES, and address.
    private func apply(
        _ changes: NegotiationChanges, _ before: NegotiatedAudio?, _ audio: NegotiatedAudio, isAnother: Bool,
        into outbox: inout [Order]
    ) throws {
        if changes.contains(.address), let id, let (remote, control) = MediaNegotiation.addresses(of: audio) {
            outbox.append(.redirect(id, to: remote, control: control))
        }
        guard !changes.isDisjoint(with: [.formats, .keys]), let id,
            let plan = try negotiation?.plan(for: audio, audio: AudioBehaviour(source: .silence), start: .atOnce)
        else { return }
        if changes.contains(.formats) { outbox.append(.change(id, to: plan)) }
        if changes.contains(.keys), case .keys(let send, let receive) = plan.peer.protection {
            let new = audio.keying.newKeys(since: before?.keying)
            // Who has another address and other keys is most likely another one.
            outbox.append(
                .rekey(
                    id, send: new.sends ? send : nil, receive: new.receives ? receive : nil,
                    endsFormer: isAnother || changes.contains(.address)))
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
