import JSON
import SignalWire
import SignedTokens
import Timekeeping

/// Tokens: handed out, exchanged, taken back, and looked at when somebody comes with one.
extension ExchangeHub {
    /// The accounts as they are now.
    var accounts: Accounts { core.accounts }

    /// The accounts of the users file are these from now on.
    func replaceFileUsers(_ users: [Account]) {
        fileUsers = users
        handle(.accountsChanged(configuration.users + users))
    }

    /// Makes an access token, with a refresh token for those who have an account; `nil` if there is no room.
    func issueTokens(_ grant: Grant) -> (access: Redacted<String>, refresh: Redacted<String>?)? {
        guard core.tokens.hasRoom(for: grant), failure == nil else { return nil }
        let access = FreshSecret.make()
        let refresh = grant.isAnonymous ? nil : FreshSecret.make()
        let digest = refresh.map { SecretDigest(of: $0.secret) }
        handle(.tokenIssued(SecretDigest(of: access.secret), grant, refresh: digest))
        counters.logins += 1
        return (access, refresh)
    }

    /// Exchanges a refresh token for a new pair.
    ///
    /// - Throws: `tokenExpired`, `tokenRevoked` or `tokenRejected`.
    func refreshTokens(
        _ old: Redacted<String>
    ) throws(RPCError) -> (grant: Grant, access: Redacted<String>, refresh: Redacted<String>) {
        let digest = SecretDigest(of: old.secret)
        let grant: Grant
        do {
            grant = try core.tokens.refreshGrant(for: digest, at: now)
        } catch {
            if core.tokens.isReused(digest, at: now) { handle(.tokenRevoked(digest)) }
            throw error
        }
        let (access, refresh) = (FreshSecret.make(), FreshSecret.make())
        handle(
            .tokenRefreshed(
                digest, access: SecretDigest(of: access.secret), refresh: SecretDigest(of: refresh.secret)))
        return (grant, access, refresh)
    }

    /// Ends the login that a token belongs to.
    func revoke(_ token: Redacted<String>) { handle(.tokenRevoked(SecretDigest(of: token.secret))) }

    /// What a token is good for at this moment.
    ///
    /// - Throws: An error that says which of expired, taken back, wrongly signed or unknown it is.
    func grant(for token: Redacted<String>) throws(RPCError) -> Grant {
        try admit(token)
        let digest = SecretDigest(of: token.secret)
        let grant = try core.tokens.grant(for: digest, at: now)
        handle(.tokenUsed(digest))
        return grant
    }

    /// Looks at a request's token if that is a signed one, before the core sees it; false if it was answered.
    func admit(_ request: ClientRequest, _ id: RPCID, from connection: ConnectionID) -> Bool {
        guard let token = request.token else { return true }
        do throws(RPCError) {
            try admit(token)
            return true
        } catch {
            handle(.badToken(connection, id, error, closes: request.isSessionStart))
            return false
        }
    }

    /// Tells the core of a signed token that is good; of others there is nothing to tell.
    private func admit(_ token: Redacted<String>) throws(RPCError) {
        guard SignedToken.isSigned(token.secret) else { return }
        let wall = WallClock.now.seconds
        let signed: SignedToken
        do throws(SignedTokenError) {
            signed = try signedTokens.read(token.secret, at: wall)
        } catch {
            throw RPCError(error)
        }
        let grant = try Grant(signed, accounts: accounts)
        guard core.tokens.hasRoom(for: grant) else {
            throw RPCError(.internalError, "The exchange has no room for another login; try again in a minute.")
        }
        let expires = now.advanced(by: .seconds(signed.expires - wall))
        handle(.tokenPresented(SecretDigest(of: token.secret), grant, expires: expires))
    }
}
