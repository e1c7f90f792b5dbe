package import SignalWire
package import Timekeeping

/// What a driver asks the core, beside giving it inputs. Nothing here changes anything.
///
/// What is asked for each message or login is `mutating` all the same. The driver holds the core in an object; to let another module
/// look at it without changing it the compiler (Swift 6.3) copies all of it, which costs two reference counts for each
/// table.
extension ExchangeCore {
    /// Sessions that are open or may be resumed.
    package var openSessions: Int { sessions.count }
    /// Calls under way.
    package var openCalls: Int { calls.count }
    /// Bytes of all that is kept for somebody.
    package var keptBytes: Int { ledger.total }

    /// When pushes are to be tried next, by ``Input/pushesAreDue``; `nil` is never.
    package var nextPush: Instant? { mutating get { pushQueue.nextDeadline } }
    /// When ``takeDue(at:atMost:)`` has something next; `nil` is never.
    package var nextDue: Instant? { mutating get { deadlines.earliest } }

    /// Whether there is room for the tokens of another login.
    package mutating func hasRoomForTokens(of grant: Grant) -> Bool { tokens.hasRoom(for: grant) }

    /// What an access token is good for at `now`.
    ///
    /// - Throws: `tokenExpired`, `tokenRevoked` or `tokenRejected`.
    package mutating func grant(for token: SecretDigest, at now: Instant) throws(RPCError) -> Grant {
        try tokens.grant(for: token, at: now)
    }

    /// What new tokens for a refresh token would be good for at `now`.
    ///
    /// - Throws: `tokenExpired`, `tokenRevoked` or `tokenRejected`.
    package mutating func refreshGrant(
        for token: SecretDigest, mark: RefreshToken.Mark?, at now: Instant
    ) throws(RPCError) -> Grant {
        try tokens.refreshGrant(for: token, mark: mark, at: now)
    }

    /// The login of which somebody has a copy, if a refresh token shows that; for ``Input/tokenCopied(_:)``.
    package mutating func copiedLogin(shownBy token: SecretDigest, mark: RefreshToken.Mark?, at now: Instant)
        -> SecretDigest?
    {
        tokens.copied(token, mark: mark, at: now)
    }

    /// The generation of the pair that a refresh token would be exchanged for.
    package mutating func nextGeneration(of token: SecretDigest) -> UInt64 { tokens.nextGeneration(of: token) }
}
