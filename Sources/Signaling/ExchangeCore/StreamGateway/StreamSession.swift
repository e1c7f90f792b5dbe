package import SDP
package import SignalWire
import Core

/// A session's id: the last part of its URL, random enough to be unguessable.
package typealias StreamID = String

/// Which way a stream's media flows.
package enum StreamKind: String, CaseIterable, Hashable, Sendable {
    /// The client sends and the device listens (RFC 9725).
    case whip
    /// The device sends and the client listens (draft-ietf-wish-whep).
    case whep

    /// Which way media flows, as an offer says it: seen from the client.
    var offered: MediaDirection { self == .whip ? .sendonly : .recvonly }
}

/// What a client asks for with a POST.
package struct StreamOpening: Equatable, Sendable {
    var id: StreamID
    package var kind: StreamKind
    /// Who calls: the account of the client's token.
    package var caller: UserID
    /// Who is called, by any of its ids.
    var callee: UserID
    /// The token of the opening request; its holder may change and end the session, even once it has expired.
    package var token: SecretDigest
    /// Checked already.
    var offer: SessionDescription
    /// A number of the exchange's, not used before.
    var connection: ConnectionID

    /// Gathers what a client asks for.
    package init(
        id: StreamID, kind: StreamKind, caller: UserID, callee: UserID, token: SecretDigest, offer: SessionDescription,
        connection: ConnectionID
    ) {
        self.id = id
        self.kind = kind
        self.caller = caller
        self.callee = callee
        self.token = token
        self.offer = offer
        self.connection = connection
    }
}

/// One client that speaks HTTP, in the role of a device that calls.
package struct StreamSession: Sendable {
    /// A call of a session's.
    struct Accepted: Hashable, Sendable {
        let invite: InviteID
        let at: Instant
    }

    /// Candidates of the device are awaited, so that the answer has them.
    struct Gathering: Sendable {
        var ticket: TraceID
        /// The answer, with what has come so far.
        var answer: SessionDescription
        /// From then on any candidate will do.
        var enough: Instant
        /// From then on none will.
        var limit: Instant
        /// What the answer is to: the first offer, or a restart.
        var isRestart: Bool

        /// When something is to be done unless more comes.
        var due: Instant { answer.hasCandidates ? enough : limit }
    }

    enum State: Sendable {
        /// The invite is on its way to the exchange.
        case inviting(TraceID)
        /// The client went away before the invite had an id.
        case withdrawing
        /// The callee's devices ring.
        case ringing(InviteID, TraceID)
        case gathering(Accepted, Gathering)
        /// The client has its answer.
        case up(Accepted)
        /// The device was sent an offer with the client's new credentials, and has until then.
        case restarting(Accepted, TraceID, SessionDescription, until: Instant)
    }

    package let opening: StreamOpening
    var state: State
    /// The current offer, as sent to devices: a client may offer both directions, and is answered one (RFC 9725 §4.2).
    var offer: SessionDescription
    /// Counts the restarts of ICE, from 1.
    var generation = 1

    init(_ opening: StreamOpening, _ ticket: TraceID) {
        self.opening = opening
        offer = opening.offer.oneWay(opening.kind.offered)
        state = .inviting(ticket)
    }

    /// The device that the client acts as.
    var endpoint: Endpoint {
        // Appears in logs, where the id must not: the id keeps the session's URL secret.
        Endpoint(
            user: opening.caller, device: DeviceID(ours: "\(opening.kind.rawValue)-\(opening.connection.number)"))
    }

    /// Names the ICE session (RFC 9725 §4.3.1).
    var entityTag: String { "\"\(generation)\"" }

    /// The request that waits for an answer.
    var ticket: TraceID? {
        switch state {
        case .inviting(let ticket), .ringing(_, let ticket), .restarting(_, let ticket, _, _): ticket
        case .gathering(_, let gathering): gathering.ticket
        case .withdrawing, .up: nil
        }
    }

    /// The call, if there is one.
    var accepted: Accepted? {
        switch state {
        case .inviting, .withdrawing, .ringing: nil
        case .gathering(let accepted, _), .up(let accepted), .restarting(let accepted, _, _, _): accepted
        }
    }

    /// When it is to be looked at though nothing comes.
    var deadline: Instant? {
        switch state {
        case .inviting, .withdrawing, .ringing, .up: nil
        case .gathering(_, let gathering): gathering.due
        case .restarting(_, _, _, let until): until
        }
    }
}

/// Names one HTTP exchange in the response, in the log and in error messages.
package struct TraceID: Hashable, Sendable, CustomStringConvertible {
    package let description: String

    /// A fresh one, 16 hexadecimal digits.
    package init() { self.init(.random(in: 0...(.max))) }

    /// The name of the request with this number.
    package init(_ number: UInt64) { description = Hexadecimal.text(of: number) }
}
