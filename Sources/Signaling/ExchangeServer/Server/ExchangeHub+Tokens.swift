import ExchangeCore
import JSON
import SignalWire
import Core

/// Tokens: handed out, exchanged, taken back, and looked at when somebody comes with one.
extension ExchangeHub {
    /// The accounts as they are now.
    var accounts: AccountDirectory { core.accounts.directory }

    /// The accounts of the users file are these from now on.
    func replaceFileUsers(_ users: [Account]) {
        fileUsers = users
        handle(.accountsChanged(configuration.users + users))
    }

    /// Makes an access token, with a refresh token for those who have an account; `nil` if there is no room.
    func issueTokens(_ grant: Grant) -> (access: Redacted<String>, refresh: Redacted<String>?)? {
        guard core.hasRoomForTokens(of: grant), failure == nil else { return nil }
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
            grant = try core.refreshGrant(for: digest, mark: shown?.mark, at: now)
        } catch {
            if let login = core.copiedLogin(shownBy: digest, mark: shown?.mark, at: now) { handle(.tokenCopied(login)) }
            throw error
        }
        let access = FreshSecret.make()
        let refresh = RefreshToken(after: shown, generation: core.nextGeneration(of: digest))
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
        let grant = try core.grant(for: digest, at: now)
        handle(.tokenUsed(digest))
        return grant
    }

    /// Tells the core of a signed token that is good; of others there is nothing to tell.
    func admit(_ token: Redacted<String>) throws(RPCError) {
        let presentation = try core.presentation(of: token, to: signedTokens, wall: WallClock.now.seconds, at: now)
        if let presentation { handle(presentation) }
    }
}
