import ExchangeCore
import HTTPTransport
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import SignalWire
import Core

/// Logging in, renewing a login, and logging out.
extension RESTService {
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
        guard let app = app(of: request) else { return reply(refusal(.unknownAppKey, request)) }
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
            check(password, of: account, request) { [self] isRight in
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
                let message = "Too many logins at once."
                reply(.failure(.tooManyRequests, message, trace: request.trace, retryAfterSeconds: 1))
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

    /// Answers a login whose secret was looked at: `account` is there if it was right.
    func finish(
        _ account: Account?, _ name: UserID?, _ app: ApplicationKey, _ code: RESTErrorCode, _ request: RESTRequest,
        then reply: (HTTPAnswer) -> Void
    ) {
        guard let account else { return reply(refusal(code, request)) }
        guesses.succeeded(name, from: request.client, at: hub.now)
        let grant = Grant(user: account.id, isAnonymous: false, application: app)
        guard let tokens = hub.issueTokens(grant) else { return reply(noRoom(request)) }
        logger.info("Logged in", metadata: ["user": "\(account.id)", "trace": "\(request.trace)"])
        reply(answer(account, access: tokens.access, refresh: tokens.refresh, request))
    }

    private func answer(
        _ account: Account, access: Redacted<String>, refresh: Redacted<String>?, _ request: RESTRequest
    ) -> HTTPAnswer {
        .success(
            LoginResponse(
                token: access, refreshToken: refresh, expiresIn: configuration.tokenLifetime.seconds,
                id: account.id.text,
                idMappingCount: Double(account.publicIDs.count), routingID: account.routingID,
                userData: .init(customerGUID: account.id.text, email: account.email)),
            trace: request.trace)
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
            guard let account = accounts.account(id: pair.grant.user) else { return noRoom(request) }
            return answer(account, access: pair.access, refresh: pair.refresh, request)
        } catch {
            return refusal(of: error, request)
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
        _ password: Redacted<String>, of account: Account?, _ request: RESTRequest,
        then finish: @escaping (Bool) -> Void, orBusy refuse: () -> Void
    ) {
        guard passwordChecks < Self.maximumPasswordChecks else { return refuse() }
        passwordChecks += 1
        let credential = account?.password
        passwordThread.runIfActive(eventLoop: hub.loop) { () -> Bool in
            // As slow for no such user, for one without a password, and for one whose password is no hash.
            if case .hash(let hash) = credential { return hash.matches(password.secret) }
            _ = Self.decoy?.matches(password.secret)
            return credential?.matches(password) ?? false
        }
        .assumeIsolated()
        .whenComplete { [self] result in
            passwordChecks -= 1
            switch result {
            case .success(let matches): finish(matches)
            case .failure: finish(false)
            }
        }
    }

    // MARK: - Refusing

    /// Uses one login attempt; returns the refusal if none is left.
    func refuseGuess(_ name: UserID?, _ request: RESTRequest) -> HTTPAnswer? {
        guard let wait = guesses.begin(name, from: request.client, at: hub.now) else { return nil }
        hub.countRefusedLogin()
        logger.notice("Refused a login", metadata: ["code": "tooManyRequests", "trace": "\(request.trace)"])
        let message = "Too many logins have failed, from this address or for this user; wait a little."
        return .failure(
            .tooManyRequests, message, trace: request.trace, retryAfterSeconds: max(1, Int(wait.seconds.rounded(.up))))
    }

    func noRoom(_ request: RESTRequest) -> HTTPAnswer {
        .failure(
            .unavailable,
            hub.failure == nil
                ? "The exchange has no room for another login." : "The exchange cannot write its database.",
            trace: request.trace, retryAfterSeconds: 60)
    }

    /// The answer to a token that is not good.
    func refusal(of error: RPCError, _ request: RESTRequest) -> HTTPAnswer {
        hub.countRefusedLogin()
        let code = RESTErrorCode(aboutToken: error)
        return .failure(
            code, error.message, trace: request.trace, retryAfterSeconds: code == .unavailable ? 60 : nil)
    }

    func refusal(_ code: RESTErrorCode, _ request: RESTRequest) -> HTTPAnswer {
        hub.countRefusedLogin()
        logger.notice("Refused a login", metadata: ["code": "\(code.rawValue)", "trace": "\(request.trace)"])
        let message =
            switch code {
            case .unknownAppKey: "The Authorization header must be Basic with an application's key and secret."
            case .wrongMediaToken: "No user has this media token."
            case .wrongAccessToken: "Unknown user or wrong access token."
            case .wrongKey: "Unknown user or wrong key."
            case .challengeExpired: "The challenge has expired, was used before, or belongs to another exchange."
            case .enrollmentUnknown: "There is no such code."
            case .enrollmentExpired: "The code is more than ten minutes old."
            case .enrollmentUsed: "Another device has used the code."
            default: "Unknown user or wrong password."
            }
        return .failure(code, message, trace: request.trace)
    }

    /// The key of the application that a request comes from, the page included. The page's secret is public, so it is
    /// accepted for logins of users, and not for logins by a name alone.
    func app(of request: RESTRequest) -> ApplicationKey? {
        guard let given = BasicCredentials(request.headers.first(name: "Authorization")) else { return nil }
        let secret = SecretDigest(of: given.secret)
        let isForPage = request.path == "/v1.1/login"
        let apps = configuration.apps + (isForPage ? page.map { [$0.app] } ?? [] : [])
        return apps.first { $0.key.text == given.name && $0.secret == secret }?.key
    }
}
