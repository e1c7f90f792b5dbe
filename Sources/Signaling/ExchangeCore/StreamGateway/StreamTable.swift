import JSON
import SDP
package import SignalWire
import Core

/// The streams as a value: clients of WHIP and WHEP, each in the role of a device that calls one of the users.
///
/// ``ExchangeCore`` treats a stream like any other connection, so that the usual rules apply to its invites, calls and
/// signals; the exchange's own time limit applies to its invite.
///
/// Capacity: ``Settings/streams`` in all, ``Settings/streamsPerUser`` for one calling account; past it clients receive
/// an error that asks them to retry.
package struct StreamTable: ProtocolCore, Sendable {
    /// Bytes in an offer: as JSON text within an invite it must fit in a message.
    package static let maximumOfferBytes = 32_768

    package struct Settings: Sendable {
        var streams = 256
        var streamsPerUser = 16
        /// How long devices ring.
        package var ringing = Duration.seconds(30)
        /// How long the answer waits for the device's candidates if there are some, and if there are none.
        var gathering = Duration.seconds(1)
        var gatheringAtMost = Duration.seconds(3)
        /// How long the device has to answer a restart.
        var restarting = Duration.seconds(8)

        /// The defaults.
        package init() {}
    }

    /// What can happen.
    package enum Input: Sendable {
        /// A client offers a stream.
        case offered(StreamOpening, TraceID)
        /// A client sends candidates or restarts ICE; the values are those of `If-Match`.
        case patched(StreamID, ICEFragment, ifMatch: [String], TraceID)
        /// A client hangs up.
        case deleted(StreamID, TraceID)
        /// A client went away before it had its answer.
        case abandoned(TraceID)
        /// The exchange delivered something to one of the streams' connections.
        case delivered(ConnectionID, Delivery)
        /// The exchange is about to end.
        case stopping
        /// ``nextDeadline`` has come. Early calls are harmless.
        case timer
    }

    /// What the exchange delivers to a connection.
    package enum Delivery: Hashable, Sendable {
        case response(RPCID, ClientResponse)
        case refusal(RPCID?, RPCError)
        case event(ExchangeEvent)
        case closed
    }

    /// What is to be done.
    package enum Output: Hashable, Sendable {
        /// Make a connection of the gateway known to the exchange, with a session on it, which ends with the token's login.
        case attach(ConnectionID, Endpoint, token: SecretDigest)
        case request(ConnectionID, RPCID, ClientRequest)
        /// Take it away again.
        case detach(ConnectionID)
        case reply(TraceID, StreamReply)
    }

    /// Ids of requests whose responses matter.
    enum RequestID {
        static let invite = RPCID.string("invite")
        static let offer = RPCID.string("offer")
        static let other = RPCID.string("other")
    }

    let settings: Settings
    package private(set) var sessions: [StreamID: StreamSession] = [:]
    private var byConnection: [ConnectionID: StreamID] = [:]
    private var byTicket: [TraceID: StreamID] = [:]
    /// Candidates of devices that arrived too late to reach the client.
    package private(set) var lateCandidates = 0

    package init(settings: Settings = Settings()) { self.settings = settings }

    var nextDeadline: Instant? { sessions.values.lazy.compactMap(\.deadline).min() }

    mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .offered(let opening, let ticket): open(opening, ticket, into: &outbox)
        case .patched(let id, let fragment, let ifMatch, let ticket):
            patch(id, fragment, ifMatch, ticket, at: now, into: &outbox)
        case .deleted(let id, let ticket): delete(id, ticket, at: now, into: &outbox)
        case .abandoned(let ticket): abandon(ticket, at: now, into: &outbox)
        case .delivered(let connection, let delivery):
            guard let id = byConnection[connection], let session = sessions[id] else { return }
            take(delivery, session, at: now, into: &outbox)
        case .stopping:
            for session in sessions.values { reply(.failed(.goingDown), to: session, into: &outbox) }
        case .timer:
            for session in sessions.values {
                guard let deadline = session.deadline, deadline <= now else { continue }
                expire(session, into: &outbox)
            }
        }
    }

    // MARK: - What clients ask for

    private mutating func open(_ opening: StreamOpening, _ ticket: TraceID, into outbox: inout [Output]) {
        guard sessions.count < settings.streams, sessions[opening.id] == nil else {
            return outbox.append(.reply(ticket, .failed(.full)))
        }
        let others = sessions.values.lazy.filter { $0.opening.caller == opening.caller }.count
        guard others < settings.streamsPerUser else { return outbox.append(.reply(ticket, .failed(.tooManyStreams))) }
        let session = StreamSession(opening, ticket)
        byConnection[opening.connection] = opening.id
        update(session)
        let data: JSONValue = ["offer": ["type": "offer", "sdp": .string(session.offer.serialized())]]
        let invite = InviteSend(
            to: opening.callee, data: data, ttl: settings.ringing.seconds, onlineOnly: true,
            idempotencyKey: IdempotencyKey(ours: session.endpoint.device.text))
        outbox.append(.attach(opening.connection, session.endpoint, token: opening.token))
        outbox.append(.request(opening.connection, RequestID.invite, .inviteSend(invite)))
    }

    private mutating func delete(_ id: StreamID, _ ticket: TraceID, at now: Instant, into outbox: inout [Output]) {
        guard let session = sessions[id] else { return outbox.append(.reply(ticket, .failed(.unknownSession))) }
        reply(.failed(.hungUp), to: session, into: &outbox)
        hangUp(session, reason: "completed", at: now, into: &outbox)
        outbox.append(.reply(ticket, .ended))
    }

    private mutating func abandon(_ ticket: TraceID, at now: Instant, into outbox: inout [Output]) {
        guard let id = byTicket.removeValue(forKey: ticket), var session = sessions[id] else { return }
        switch session.state {
        case .inviting:
            session.state = .withdrawing
            update(session)
        case .ringing(let invite, _):
            cancel(invite, of: session, into: &outbox)
        case .gathering(let accepted, let gathering) where gathering.isRestart:
            // The client has lost the device's new credentials; it may restart once more.
            adopt(accepted, session)
        case .gathering: hangUp(session, reason: "cancelled", at: now, into: &outbox)
        case .restarting(let accepted, _, _, _):
            session.state = .up(accepted)
            update(session)
        case .withdrawing, .up: break
        }
    }

    // MARK: - Ends

    /// Withdraws an unanswered invite.
    mutating func cancel(_ invite: InviteID, of session: StreamSession, into outbox: inout [Output]) {
        let cancel = InviteCancel(invite: invite, data: ["reason": "cancelled"])
        outbox.append(.request(session.opening.connection, RequestID.other, .inviteCancel(cancel)))
        remove(session, into: &outbox)
    }

    /// Ends the session and its call, if there is one.
    mutating func hangUp(_ session: StreamSession, reason: String, at now: Instant, into outbox: inout [Output]) {
        if let accepted = session.accepted {
            let duration = Int64(max(0, accepted.at.duration(to: now).milliseconds))
            let end = CallEnd(invite: accepted.invite, reason: reason, durationMilliseconds: duration)
            outbox.append(.request(session.opening.connection, RequestID.other, .callEnd(end)))
        }
        remove(session, into: &outbox)
    }

    /// Forgets a session; its URL leads nowhere from now on.
    mutating func remove(_ session: StreamSession, into outbox: inout [Output]) {
        sessions[session.opening.id] = nil
        byConnection[session.opening.connection] = nil
        if let ticket = session.ticket { byTicket[ticket] = nil }
        outbox.append(.detach(session.opening.connection))
    }

    /// Ends a session, and reports the failure to the client if it waits for an answer.
    mutating func fail(_ session: StreamSession, _ failure: StreamFailure, into outbox: inout [Output]) {
        reply(.failed(failure), to: session, into: &outbox)
        remove(session, into: &outbox)
    }

    /// Answers the request that waits, unless its client is gone.
    mutating func reply(_ reply: StreamReply, to session: StreamSession, into outbox: inout [Output]) {
        guard let ticket = session.ticket, byTicket.removeValue(forKey: ticket) != nil else { return }
        outbox.append(.reply(ticket, reply))
    }

    // MARK: - Bookkeeping

    /// Stores a session's new state.
    mutating func update(_ session: StreamSession) {
        sessions[session.opening.id] = session
        if let ticket = session.ticket { byTicket[ticket] = session.opening.id }
    }

    mutating func countLateCandidate() { lateCandidates += 1 }
}

/// What a client is answered.
package enum StreamReply: Hashable, Sendable {
    /// 201: the stream is there.
    case created(StreamID, StreamKind, answer: String, entityTag: String)
    /// 204: the candidates were passed on.
    case taken
    /// 200: ICE restarts on both sides.
    case restarted(fragment: String, entityTag: String)
    /// 200: the session has ended.
    case ended
    case failed(StreamFailure)
}
