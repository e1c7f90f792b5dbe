import Enrollment
import ExchangeCore
import HTTPTransport
import Logging
import NIOHTTP1
import SignalWire
import Core

/// Logging in, renewing a login, and logging out.
///
/// Lives on the hub's event loop; only passwords are checked elsewhere.
final class LoginService {
    private let hub: ExchangeHub
    private var configuration: ExchangeConfiguration
    private var guesses: LoginGuard
    private var challenges = LoginChallenges(secret: FreshSecret.bytes(32))
    private let passwords: PasswordThread
    /// The web phone's application.
    private let pageApp: RegisteredApp?
    private let refusals: LoginRefusals
    private let logger: Logger

    init(
        hub: ExchangeHub, configuration: ExchangeConfiguration, passwords: PasswordThread, pageApp: RegisteredApp?,
        logger: Logger
    ) {
        self.hub = hub
        self.configuration = configuration
        guesses = LoginGuard(configuration.failedLogins)
        self.passwords = passwords
        self.pageApp = pageApp
        refusals = LoginRefusals(hub: hub, logger: logger)
        self.logger = logger
    }

    /// What may change while the exchange runs is as here from now on.
    func adopt(_ configuration: ExchangeConfiguration) {
        if configuration.failedLogins != self.configuration.failedLogins {
            guesses = LoginGuard(configuration.failedLogins)
        }
        self.configuration = configuration
    }

    private var accounts: AccountDirectory { hub.accounts }

    // MARK: - Logging in

    func login(_ request: RESTRequest, then reply: @escaping (HTTPAnswer) -> Void) {
        let body: LoginRequest
        do {
            body = try SignalCoding.decode(LoginRequest.self, from: request.body)
        } catch {
            return reply(.failure(.badRequest, "The body is not a login: \(error).", trace: request.trace))
        }
        // All attempts at one user are counted under one name, whether the user exists or not. Signatures cannot be
        // guessed: attempts by key count for their address alone, and lock no user out.
        let isCounted = body.mediaToken == nil && body.type != LoginRequest.keyType
        let name = isCounted ? body.userID.map { accounts.account(called: $0)?.id ?? $0 } : nil
        if let refusal = refuseGuess(name, request) { return reply(refusal) }
        guard let app = app(of: request) else { return reply(refusals.answer(.unknownAppKey, request)) }
        if body.type == LoginRequest.keyType { return login(byKey: body, app, request, then: reply) }
        switch (body.type, body.mediaToken, body.userID, body.password, body.accessToken) {
        case (LoginRequest.mediaTokenType, let token?, _, _, _):
            let account = accounts.account(mediaToken: SecretDigest(of: token.secret))
            finish(account, name, app, .wrongMediaToken, request, then: reply)
        case (LoginRequest.accessTokenType, _, let user?, _, let token?):
            let digest = SecretDigest(of: token.secret)
            let account = accounts.account(called: user).flatMap { $0.accessTokens.contains(digest) ? $0 : nil }
            finish(account, name, app, .wrongAccessToken, request, then: reply)
        case (LoginRequest.passwordType, _, let user?, let password?, _):
            let account = accounts.account(called: user)
            check(password, of: account) { [self] isRight in
                // The account may have gone while its password was looked at.
                let found = isRight ? account.flatMap { accounts.account(id: $0.id) } : nil
                if let found, PasswordRule.problem(with: password.secret) != nil {
                    logger.warning(
                        "Logged in with a password that is too short or too common; set another",
                        metadata: ["user": "\(found.id)", "trace": "\(request.trace)"])
                }
                finish(found, name, app, .wrongPassword, request, then: reply)
            } orBusy: {
                guesses.abandoned(name, from: request.client, at: hub.now)
                reply(refusals.busy(request))
            }
        default:
            guesses.abandoned(name, from: request.client, at: hub.now)
            let message =
                "A login has the type \"Cima\" with a media_token, \"Password\" with user_id and password, "
                + "\"AccessToken\" with user_id and access_token, or \"Key\" with user_id, public_key, challenge and "
                + "signature."
            reply(.failure(.badRequest, message, trace: request.trace))
        }
    }

    func anonymousLogin(_ request: RESTRequest) -> HTTPAnswer {
        if let refusal = refuseGuess(nil, request) { return refusal }
        guard let app = app(of: request) else { return refusals.answer(.unknownAppKey, request) }
        guesses.succeeded(nil, from: request.client, at: hub.now)
        guard configuration.allowsAnonymous else {
            return .failure(.notAllowed, "This exchange does not allow anonymous logins.", trace: request.trace)
        }
        let name: UserID
        do {
            name = try SignalCoding.decode(AnonymousLoginRequest.self, from: request.body).userID
        } catch {
            return .failure(.badRequest, "The body is not an anonymous login: \(error).", trace: request.trace)
        }
        guard accounts.account(called: name) == nil else {
            return .failure(.notAllowed, "That name belongs to a user; choose another.", trace: request.trace)
        }
        let grant = Grant(user: name, isAnonymous: true, application: app)
        guard let tokens = hub.issueTokens(grant) else { return refusals.noRoom(request) }
        logger.info("Logged in anonymously", metadata: ["user": "\(name)", "trace": "\(request.trace)"])
        return .success(AnonymousLoginResponse(token: tokens.access), trace: request.trace)
    }

    /// Answers a login whose secret was looked at: `account` is there if it was right.
    private func finish(
        _ account: Account?, _ name: UserID?, _ app: ApplicationKey, _ code: RESTErrorCode, _ request: RESTRequest,
        then reply: (HTTPAnswer) -> Void
    ) {
        guard let account else { return reply(refusals.answer(code, request)) }
        guesses.succeeded(name, from: request.client, at: hub.now)
        let grant = Grant(user: account.id, isAnonymous: false, application: app)
        guard let tokens = hub.issueTokens(grant) else { return reply(refusals.noRoom(request)) }
        logger.info("Logged in", metadata: ["user": "\(account.id)", "trace": "\(request.trace)"])
        reply(answer(account, access: tokens.access, refresh: tokens.refresh, request))
    }

    private func answer(
        _ account: Account, access: Redacted<String>, refresh: Redacted<String>?, _ request: RESTRequest
    ) -> HTTPAnswer {
        .success(
            LoginResponse(
                token: access, refreshToken: refresh, expiresIn: configuration.core.tokenLifetime.seconds,
                id: account.id.text,
                idMappingCount: Double(account.publicIDs.count), routingID: account.routingID,
                userData: .init(customerGUID: account.id.text, email: account.email)),
            trace: request.trace)
    }

    // MARK: - By key (contract AUTH-13)

    /// What a login by key has to sign. Everybody gets one, whether there is such a user or not.
    func challenge(_ request: RESTRequest) -> HTTPAnswer {
        let (body, key): (ChallengeRequest, DeviceKeyText)
        do {
            body = try SignalCoding.decode(ChallengeRequest.self, from: request.body)
        } catch {
            return .failure(.badRequest, "The body is not a request for a challenge: \(error).", trace: request.trace)
        }
        guard let given = DeviceKeyText(body.publicKey) else { return refusals.noKey(request) }
        key = given
        let challenge = challenges.make(for: body.userID, key: key, random: FreshSecret.bytes(16), at: hub.now)
        return .success(
            ChallengeResponse(challenge: challenge, expiresIn: LoginChallenges.lifetime.seconds), trace: request.trace)
    }

    /// A login whose attempt was taken from the address.
    private func login(
        byKey body: LoginRequest, _ app: ApplicationKey, _ request: RESTRequest, then reply: (HTTPAnswer) -> Void
    ) {
        guard let user = body.userID, let text = body.publicKey, let challenge = body.challenge,
            let signature = body.signature
        else {
            guesses.abandoned(nil, from: request.client, at: hub.now)
            let message = "A login of type \"Key\" needs user_id, public_key, challenge and signature."
            return reply(.failure(.badRequest, message, trace: request.trace))
        }
        guard let key = DeviceKeyText(text) else {
            guesses.abandoned(nil, from: request.client, at: hub.now)
            return reply(refusals.noKey(request))
        }
        let account = accounts.account(called: user)
        guard
            Account.isLogin(
                of: account, as: user.text, key: key, challenge: challenge, signature: signature.secret)
        else { return reply(refusals.answer(.wrongKey, request)) }
        do throws(LoginChallenges.Refusal) {
            try challenges.take(challenge, of: user, key: key, at: hub.now)
        } catch {
            guesses.abandoned(nil, from: request.client, at: hub.now)
            switch error {
            case .notGood: return reply(refusals.answer(.challengeExpired, request))
            case .full: return reply(refusals.busy(request, retryAfterSeconds: 60))
            }
        }
        finish(account, nil, app, .wrongKey, request, then: reply)
    }

    // MARK: - With a token

    struct Refusal: Error { var answer: HTTPAnswer }

    func bearer(_ request: RESTRequest) -> Result<Grant, Refusal> {
        do throws(RPCError) {
            guard let token = BearerToken(request.headers.first(name: "Authorization")) else {
                throw RPCError(.tokenRejected, "The Authorization header must be Bearer with an access token.")
            }
            return .success(try hub.grant(for: token.secret))
        } catch {
            return .failure(Refusal(answer: refusals.answer(to: error, request)))
        }
    }

    /// A new pair of tokens for a refresh token.
    func refresh(_ request: RESTRequest) -> HTTPAnswer {
        let token: Redacted<String>
        do {
            token = try SignalCoding.decode(TokenRequest.self, from: request.body).refreshToken
        } catch {
            return .failure(.badRequest, "The body is not a request for a token: \(error).", trace: request.trace)
        }
        do throws(RPCError) {
            let pair = try hub.refreshTokens(token)
            guard let account = accounts.account(id: pair.grant.user) else { return refusals.noRoom(request) }
            return answer(account, access: pair.access, refresh: pair.refresh, request)
        } catch {
            return refusals.answer(to: error, request)
        }
    }

    /// Ends the login of the bearer (AUTH-9).
    func logout(_ request: RESTRequest) -> HTTPAnswer {
        switch bearer(request) {
        case .failure(let refusal): return refusal.answer
        case .success:
            if let token = BearerToken(request.headers.first(name: "Authorization")) { hub.revoke(token.secret) }
            return .success(Empty(), trace: request.trace)
        }
    }

    // MARK: - Passwords

    /// The hash that an unknown user's password is compared with, so that a wrong user takes as long as a wrong
    /// password.
    private static let decoy = PasswordHash(
        "$scrypt$ln=15,r=8,p=1$aGFuZHNldC1kZWNveQ$\(String(repeating: "A", count: 43))")

    private func check(
        _ password: Redacted<String>, of account: Account?,
        then finish: @escaping (Bool) -> Void, orBusy refuse: () -> Void
    ) {
        guard passwords.begin() else { return refuse() }
        let credential = account?.password
        passwords.run { () -> Bool in
            // As slow for no such user, for one without a password, and for one whose password is no hash.
            if case .hash(let hash) = credential { return hash.matches(password.secret) }
            _ = Self.decoy?.matches(password.secret)
            return credential?.matches(password) ?? false
        } then: { [passwords] result in
            passwords.end()
            switch result {
            case .success(let matches): finish(matches)
            case .failure: finish(false)
            }
        }
    }

    // MARK: - What is checked first

    /// Uses one login attempt; returns the refusal if none is left.
    private func refuseGuess(_ name: UserID?, _ request: RESTRequest) -> HTTPAnswer? {
        guard let wait = guesses.begin(name, from: request.client, at: hub.now) else { return nil }
        let message = "Too many logins have failed, from this address or for this user; wait a little."
        return refusals.tooMany("Refused a login", message, wait: wait, request)
    }

    /// The key of the application that a request comes from, the page included. The page's secret is public, so it is
    /// accepted for logins of users, and not for logins by a name alone.
    private func app(of request: RESTRequest) -> ApplicationKey? {
        guard let given = BasicCredentials(request.headers.first(name: "Authorization")) else { return nil }
        let secret = SecretDigest(of: given.secret)
        let isForPage = request.path == "/v1.1/login"
        let apps = configuration.apps + (isForPage ? pageApp.map { [$0] } ?? [] : [])
        return apps.first { $0.key.text == given.name && $0.secret == secret }?.key
    }
}

/// What a `Basic` authorization header holds (RFC 7617 §2).
private struct BasicCredentials {
    let name: String
    let secret: String

    /// - Parameter header: The header's value; `nil` or anything else than `Basic BASE64` gives `nil`.
    init?(_ header: String?) {
        guard let parts = header?.split(separator: " ", maxSplits: 1), parts.count == 2,
            parts[0].lowercased() == "basic", let bytes = Base64.unpaddedBytes(of: parts[1].utf8),
            let text = String(validating: bytes, as: UTF8.self), let colon = text.firstIndex(of: ":")
        else { return nil }
        name = String(text[..<colon])
        secret = String(text[text.index(after: colon)...])
    }
}
