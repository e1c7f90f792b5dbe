import ExchangeCore
import JSON
import SignalWire
import Core

/// Tokens: issues, exchanges, revokes and verifies them.
extension ExchangeHub {
    /// The current accounts.
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

    /// The current grant of a token.
    ///
    /// - Throws: An error that distinguishes expired, revoked, wrongly signed and unknown tokens.
    func grant(for token: Redacted<String>) throws(RPCError) -> Grant {
        try admit(token)
        let digest = SecretDigest(of: token.secret)
        let grant = try core.grant(for: digest, at: now)
        handle(.tokenUsed(digest))
        return grant
    }

    /// Registers a valid signed token with the core; other tokens need no registration.
    func admit(_ token: Redacted<String>) throws(RPCError) {
        let presentation = try core.presentation(of: token, to: signedTokens, wall: WallClock.now.seconds, at: now)
        if let presentation { handle(presentation) }
    }
}
