package import JSON
package import SignalWire
package import Core

/// The inputs and outputs of the core.
extension ExchangeCore {
    /// What can happen.
    package enum Input: Sendable {
        /// A login succeeded and was given an access token, and perhaps a refresh token.
        case tokenIssued(SecretDigest, Grant, refresh: SecretDigest? = nil, mark: RefreshToken.Mark? = nil)
        /// A good refresh token was exchanged for a new pair.
        case tokenRefreshed(
            SecretDigest, access: SecretDigest, refresh: SecretDigest, family: SecretDigest? = nil)
        /// A signed token was shown and found to be good until then; `login` is given by its issuer and `jti`.
        case tokenPresented(SecretDigest, Grant, login: SecretDigest? = nil, expires: Instant)
        /// A token has reached its bearer.
        case tokenUsed(SecretDigest)
        /// The login of a token ends: the client logged out.
        case tokenRevoked(SecretDigest)
        /// A superseded refresh token of a login was presented, so a copy of it exists.
        case tokenCopied(SecretDigest)
        /// All logins of a user end.
        case userRevoked(UserID)
        /// There are other accounts from now on; who has none any more is logged out.
        case accountsChanged([Account])
        /// A WebSocket was opened.
        case connected(ConnectionID)
        /// The exchange itself acts as a device, whose user it has authenticated by `token`.
        case attached(ConnectionID, Endpoint, token: SecretDigest? = nil)
        /// A well-formed request came in.
        case request(ConnectionID, RPCID, ClientRequest)
        /// A request came in with a signed token that is not good, or cannot be read.
        case badToken(ConnectionID, RPCID, RPCError, closes: Bool)
        /// Something came in that is no request.
        case malformed(ConnectionID, RPCMessage.Malformed)
        /// The socket is gone, for any reason.
        case disconnected(ConnectionID)
        /// The operator sends a notification to a user's devices (CONN-11).
        case notify(UserID, JSONValue)
        /// Every device is to connect again within a time, at the address that is given if there is one (CONN-12).
        case move(within: Duration, to: String?)
        /// An attempt at a push ended.
        case pushAnswered(PushID, attempt: Int, PushAnswer)
        /// The exchange closes all connections; their devices will be back, and need no pushes for it.
        case goingDown
        /// One of the deadlines has come that ``takeDue(at:atMost:)`` has taken out.
        case due(Deadline)
        /// It is time to try pushes. Early calls are harmless.
        case pushesAreDue
        /// ``nextDeadline`` has come: what is due is done, whosever turn it takes. Early calls are harmless.
        case timer
    }

    /// What is to be done.
    package enum Output: Hashable, Sendable {
        case respond(ConnectionID, RPCID, ClientResponse)
        case refuse(ConnectionID, RPCID?, RPCError)
        /// Send one event to several devices of one user.
        case event([ConnectionID], ToldEvent)
        case close(ConnectionID, CloseReason)
        case note(ExchangeNote)
        /// Send the push to the webhook of its kind, and report the result with ``Input/pushAnswered(_:attempt:_:)``.
        case push(StoredPush)
        /// Write this to disk before anything else that the input caused is done.
        case persist(Change)
    }

    /// What the core will have to look at later.
    package enum Deadline: Hashable, Sendable {
        case inviteTimesOut(InviteID)
        case inviteIsForgotten(InviteID)
        case accountIsMissed(UserID)
        case sessionIsForgotten(SessionID)
        case callMayBeOrphaned(CallKey)
        case loginIsDue(ConnectionID)
        case tokensAreSwept
        case tokenIsChecked(ConnectionID)
        case pruningIsDue
        case eventsExpire(Principal)
        case eventsArePruned
    }
}
