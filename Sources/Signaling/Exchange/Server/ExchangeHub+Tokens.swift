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
        let refresh = grant.isAnonymous ? nil : RefreshToken()
        handle(
            .tokenIssued(
                SecretDigest(of: access.secret), grant, refresh: refresh?.digest, mark: refresh?.mark))
        counters.logins += 1
        return (access, refresh?.text)
    }

    /// Exchanges a refresh token for a new pair.
    ///
    /// - Throws: `tokenExpired`, `tokenRevoked` or `tokenRejected`.
    func refreshTokens(
        _ old: Redacted<String>
    ) throws(RPCError) -> (grant: Grant, access: Redacted<String>, refresh: Redacted<String>) {
        let (digest, shown) = (SecretDigest(of: old.secret), RefreshToken(old))
        let grant: Grant
        do {
            grant = try core.tokens.refreshGrant(for: digest, mark: shown?.mark, at: now)
        } catch {
            if let login = core.tokens.copied(digest, mark: shown?.mark, at: now) { handle(.tokenCopied(login)) }
            throw error
        }
        let access = FreshSecret.make()
        let refresh = RefreshToken(after: shown, generation: core.tokens.nextGeneration(of: digest))
        handle(
            .tokenRefreshed(
                digest, access: SecretDigest(of: access.secret), refresh: refresh.digest, family: refresh.mark.family))
        return (grant, access, refresh.text)
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

    /// Looks at a request's token if that is a signed one, before the core sees it.
    ///
    /// - Returns: What the core is to be told instead of the request, if the token is not good.
    func refusal(of request: ClientRequest, _ id: RPCID, from connection: ConnectionID) -> ExchangeCore.Input? {
        guard let token = request.token else { return nil }
        do throws(RPCError) {
            try admit(token)
            return nil
        } catch {
            return .badToken(connection, id, error, closes: request.isSessionStart)
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
        let digest = SecretDigest(of: token.secret)
        let login = signed.login(digest: digest)
        guard core.tokens.login(of: digest) != nil || core.tokens.hasRoom(for: grant, issuer: signed.application.text)
        else {
            throw RPCError(
                .internalError, "The exchange has no room for another login with this API key; try again later.")
        }
        guard !core.tokens.isTaken(login, from: grant) else {
            throw RPCError(
                .tokenRejected,
                "The token's id (jti) is that of an earlier token which says something else; each needs its own.")
        }
        let expires = now.advanced(by: .seconds(signed.expires - wall))
        handle(.tokenPresented(digest, grant, login: login, expires: expires))
    }
}
