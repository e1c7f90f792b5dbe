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
        /// The operator has the exchange do something. The answer is ``Output/obeyed(_:_:)``.
        case ordered(OrderNumber, OperatorOrder)
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
        case event([ConnectionID], DeliveredEvent)
        case close(ConnectionID, CloseReason)
        /// What became of an order of the operator.
        case obeyed(OrderNumber, OperatorResult)
        case note(ExchangeNote)
        /// A step of an invite, if invites are traced.
        case traced(InviteStep)
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
        case namesakesAreDue
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

/// What a driver asks the core, beside giving it inputs. Nothing here changes anything.
///
/// What is asked for each message or login is `mutating` all the same. The driver holds the core in an object; to let another module
/// look at it without changing it the compiler (Swift 6.3) copies all of it, which costs two reference counts for each
/// table.
extension ExchangeCore {
    /// Sessions that are open or may be resumed.
    package var openSessions: Int { sessions.count }
    /// Calls under way.
    package var openCalls: Int { invites.calls.count }
    /// Bytes kept for all principals.
    package var keptBytes: Int { effects.budget.quota.total }
    /// What it has counted.
    package var counters: CoreCounters { effects.counters }

    /// When pushes are to be tried next, by ``Input/pushesAreDue``; `nil` is never.
    package var nextPush: Instant? { mutating get { pushes.nextDeadline } }

    /// Which shard it is of several; its tokens begin with it.
    package var shard: Shard? { mutating get { effects.shard } }

    /// Whether there is room for the tokens of another login.
    package mutating func hasRoomForTokens(of grant: Grant) -> Bool { accounts.hasRoom(for: grant) }

    /// What an access token is good for at `now`.
    ///
    /// - Throws: `tokenExpired`, `tokenRevoked` or `tokenRejected`.
    package mutating func grant(for token: SecretDigest, at now: Instant) throws(RPCError) -> Grant {
        try accounts.grant(for: token, at: now)
    }

    /// What new tokens for a refresh token would be good for at `now`.
    ///
    /// - Throws: `tokenExpired`, `tokenRevoked` or `tokenRejected`.
    package mutating func refreshGrant(
        for token: SecretDigest, mark: RefreshToken.Mark?, at now: Instant
    ) throws(RPCError) -> Grant {
        try accounts.refreshGrant(for: token, mark: mark, at: now)
    }

    /// The login whose refresh token was copied, if the presented token proves that; used with
    /// ``Input/tokenCopied(_:)``.
    package mutating func copiedLogin(shownBy token: SecretDigest, mark: RefreshToken.Mark?, at now: Instant)
        -> SecretDigest?
    {
        accounts.copied(token, mark: mark, at: now)
    }

    /// The generation of the pair that a refresh token would be exchanged for.
    package mutating func nextGeneration(of token: SecretDigest) -> UInt64 { accounts.nextGeneration(of: token) }
}

/// Converts wire messages to inputs of the core.
extension ExchangeCore {
    /// Reads one text message.
    ///
    /// - Parameters:
    ///   - bytes: Any bytes.
    ///   - admit: Registers a signed token that the message presents with the core; throws if the token is invalid.
    package static func input(
        reading bytes: [UInt8], from connection: ConnectionID, admit: (Redacted<String>) throws(RPCError) -> Void
    ) -> Input {
        do throws(RPCMessage.Malformed) {
            let message = try RPCMessage(decoding: bytes)
            guard case .request(let id, let method) = message.kind else {
                let error = RPCError(.invalidRequest, "The exchange accepts only requests, and a request has an id.")
                throw RPCMessage.Malformed(id: nil, error: error)
            }
            let request: ClientRequest
            do throws(RPCError) {
                request = try ClientRequest(method: method, in: message)
            } catch {
                throw RPCMessage.Malformed(id: id, error: error)
            }
            do throws(RPCError) {
                if let token = request.token { try admit(token) }
                return .request(connection, id, request)
            } catch {
                return .badToken(connection, id, error, closes: request.isSessionStart)
            }
        } catch {
            return .malformed(connection, error)
        }
    }

    /// The input that registers a token with the core before its grant is looked up.
    ///
    /// - Parameter wall: The time of day, in seconds since 1970.
    /// - Returns: `nil` for a token of the exchange's own.
    /// - Throws: An error that says what is wrong with a signed token.
    package mutating func presentation(
        of token: Redacted<String>, to reader: SignedTokenReader, wall: Double, at now: Instant
    ) throws(RPCError) -> Input? {
        guard SignedToken.isSigned(token.secret) else { return nil }
        let signed: SignedToken
        do throws(SignedTokenError) {
            signed = try reader.read(token.secret, at: wall)
        } catch {
            throw RPCError(error)
        }
        let grant = try Grant(signed, accounts: accounts.directory)
        let digest = SecretDigest(of: token.secret)
        let login = signed.login(digest: digest)
        guard accounts.login(of: digest) != nil || accounts.hasRoom(for: grant, issuer: signed.application.text) else {
            throw RPCError(
                .internalError, "The exchange has no room for another login with this API key; try again later.")
        }
        guard !accounts.isTaken(login, from: grant) else {
            throw RPCError(
                .tokenRejected,
                "An earlier token with other claims has the same id (jti); each token needs its own.")
        }
        let expires = now.advanced(by: .seconds(signed.expires - wall))
        return .tokenPresented(digest, grant, login: login, expires: expires)
    }
}
