package import SignalWire
package import Core

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
