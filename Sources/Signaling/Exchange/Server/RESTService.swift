import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import SignalWire
import Timekeeping

/// The REST half of the wire: logins, identities, connection resources.
///
/// Lives on the hub's event loop; only passwords are checked elsewhere, on a thread of their own.
final class RESTService {
    /// Password checks that may wait; each takes about a tenth of a second. Past it, logins are told to come back.
    static let maximumPasswordChecks = 32

    private let hub: ExchangeHub
    private let configuration: ExchangeConfiguration
    private let accounts: Accounts
    /// `nil` without a web phone.
    private let page: PageService?
    private let streams: StreamService
    private let passwordThread: NIOThreadPool
    private let logger: Logger
    private var passwordChecks = 0

    init(hub: ExchangeHub, configuration: ExchangeConfiguration, passwordThread: NIOThreadPool, logger: Logger) {
        self.hub = hub
        self.configuration = configuration
        self.accounts = Accounts(configuration.users)
        page = PageService(configuration)
        streams = StreamService(hub: hub, configuration: configuration, accounts: accounts)
        self.passwordThread = passwordThread
        self.logger = logger
    }

    /// Answers one request, sooner or later, on the hub's event loop.
    func answer(_ request: RESTRequest, then tell: @escaping (RESTAnswer) -> Void) {
        // A token that is told has been kept.
        let reply = { [hub] (answer: RESTAnswer) in
            hub.afterWriting { isKept in
                let message = "The exchange cannot write its database."
                tell(isKept ? answer : .failure(.unavailable, message, trace: request.trace, retryAfterSeconds: 5))
            }
        }
        guard !hub.isStopping else {
            return reply(
                .failure(.unavailable, "The exchange is going down.", trace: request.trace, retryAfterSeconds: 5))
        }
        if streams.answer(request, then: reply) { return }
        if let page, request.method == .GET || request.method == .HEAD, let file = page.file(request) {
            return reply(file)
        }
        let expected: HTTPMethod
        switch request.path {
        case PageService.configurationPath where page != nil: expected = .GET
        case "/v1.1/login", "/v1.1/login/anonymous": expected = .POST
        case "/v1/allidentities", "/v1/connection", ExchangeServer.webSocketPath: expected = .GET
        default:
            let refusal = RESTAnswer.failure(.notFound, "There is nothing at this path.", trace: request.trace)
            return reply(page?.notFound(request) ?? refusal)
        }
        guard request.method == expected else {
            var answer = RESTAnswer.failure(
                .methodNotAllowed, "This path takes \(expected.rawValue).", trace: request.trace)
            answer.headers.add(name: "Allow", value: expected.rawValue)
            return reply(answer)
        }
        switch request.path {
        case "/v1.1/login": login(request, then: reply)
        case "/v1.1/login/anonymous": reply(anonymousLogin(request))
        case "/v1/allidentities": reply(identities(request))
        case "/v1/connection": reply(resources(request))
        case PageService.configurationPath: if let page { reply(page.configuration(request)) }
        case _ where !WebOrigin.isAllowed(request.headers, allowed: configuration.allowedOrigins):
            let message = "Pages from that origin may not connect; allowed_origins in the configuration names those."
            reply(.failure(.notAllowed, message, trace: request.trace))
        default:
            let message = "This path is for WebSockets: the first request on a connection, and an upgrade."
            reply(.failure(.badRequest, message, trace: request.trace))
        }
    }

    /// The client of a request is gone before it had its answer.
    func abandon(_ trace: TraceID) { streams.abandon(trace) }

    // MARK: - Logging in

    private func login(_ request: RESTRequest, then reply: @escaping (RESTAnswer) -> Void) {
        guard isFromPage(request) || isFromApp(request) else { return reply(refusal(.unknownAppKey, request)) }
        let body: LoginRequest
        do {
            body = try SignalCoding.decode(LoginRequest.self, from: request.body)
        } catch {
            return reply(.failure(.badRequest, "The body is no login: \(error).", trace: request.trace))
        }
        switch (body.type, body.mediaToken, body.userID, body.password) {
        case (LoginRequest.mediaTokenType, let token?, _, _):
            let account = accounts.account(mediaToken: SecretDigest(of: token.secret))
            reply(account.map { grant($0, request) } ?? refusal(.wrongMediaToken, request))
        case (LoginRequest.passwordType, _, let user?, let password?):
            let account = accounts.account(called: user)
            check(password, of: account, request) { [self] isRight in
                guard let account, isRight else { return reply(refusal(.wrongPassword, request)) }
                reply(grant(account, request))
            } orBusy: {
                let message = "Too many logins at once."
                reply(.failure(.tooManyRequests, message, trace: request.trace, retryAfterSeconds: 1))
            }
        default:
            let message = "A login has the type \"Cima\" with a media_token, or \"Password\" with user_id and password."
            reply(.failure(.badRequest, message, trace: request.trace))
        }
    }

    /// What a password of nobody is compared with, so that a wrong user takes as long as a wrong password.
    private static let decoy = PasswordHash(
        "$scrypt$ln=15,r=8,p=1$aGFuZHNldC1kZWNveQ$\(String(repeating: "A", count: 43))"
    ).map(Credential.hash)

    private func check(
        _ password: Redacted<String>, of account: Account?, _ request: RESTRequest,
        then finish: @escaping (Bool) -> Void, orBusy refuse: () -> Void
    ) {
        guard passwordChecks < Self.maximumPasswordChecks else { return refuse() }
        passwordChecks += 1
        let credential = account?.password ?? Self.decoy
        passwordThread.runIfActive(eventLoop: hub.loop) { credential?.matches(password) ?? false }
            .assumeIsolated()
            .whenComplete { [self] result in
                passwordChecks -= 1
                switch result {
                case .success(let matches): finish(matches && account?.password != nil)
                case .failure: finish(false)
                }
            }
    }

    private func grant(_ account: Account, _ request: RESTRequest) -> RESTAnswer {
        guard let token = hub.issueToken(Grant(user: account.id, isAnonymous: false)) else { return noRoom(request) }
        logger.info("logged in", metadata: ["user": "\(account.id)", "trace": "\(request.trace)"])
        return .success(
            LoginResponse(
                token: token, refreshToken: ExchangeHub.makeSecret(), expiresIn: configuration.tokenLifetime.seconds,
                id: account.id, idMappingCount: Double(account.publicIDs.count), routingID: account.routingID,
                userData: .init(customerGUID: account.id, email: account.email)),
            trace: request.trace)
    }

    private func anonymousLogin(_ request: RESTRequest) -> RESTAnswer {
        guard isFromApp(request) else { return refusal(.unknownAppKey, request) }
        guard configuration.allowsAnonymous else {
            return .failure(.notAllowed, "This exchange takes no anonymous logins.", trace: request.trace)
        }
        let name: String
        do {
            name = try SignalCoding.decode(AnonymousLoginRequest.self, from: request.body).userID
        } catch {
            return .failure(.badRequest, "The body is no anonymous login: \(error).", trace: request.trace)
        }
        guard !name.isEmpty, name.utf8.count <= SignalLimits.nameBytes else {
            let message = "user_id has 1 to \(SignalLimits.nameBytes) bytes."
            return .failure(.badRequest, message, trace: request.trace)
        }
        guard accounts.account(called: name) == nil else {
            return .failure(.notAllowed, "That name belongs to a user; choose another.", trace: request.trace)
        }
        guard let token = hub.issueToken(Grant(user: name, isAnonymous: true)) else { return noRoom(request) }
        logger.info("logged in anonymously", metadata: ["user": "\(name)", "trace": "\(request.trace)"])
        return .success(AnonymousLoginResponse(token: token), trace: request.trace)
    }

    private func noRoom(_ request: RESTRequest) -> RESTAnswer {
        .failure(
            .unavailable,
            hub.failure == nil
                ? "The exchange has no room for another login." : "The exchange cannot write its database.",
            trace: request.trace, retryAfterSeconds: 60)
    }

    private func refusal(_ code: RESTErrorCode, _ request: RESTRequest) -> RESTAnswer {
        hub.countRefusedLogin()
        logger.notice("refused a login", metadata: ["code": "\(code.rawValue)", "trace": "\(request.trace)"])
        let message =
            switch code {
            case .unknownAppKey: "The Authorization header must be Basic with an application's key and secret."
            case .wrongMediaToken: "No user has this media token."
            default: "There is no such user, or the password is another."
            }
        return .failure(code, message, trace: request.trace)
    }

    /// The page logs users in, and nobody by a name alone: its secret is none.
    private func isFromPage(_ request: RESTRequest) -> Bool {
        guard let page, let given = BasicCredentials(request.headers.first(name: "Authorization")) else { return false }
        return page.app.key == given.name && page.app.secret == SecretDigest(of: given.secret)
    }

    private func isFromApp(_ request: RESTRequest) -> Bool {
        guard let given = BasicCredentials(request.headers.first(name: "Authorization")) else { return false }
        return configuration.apps.contains { $0.key == given.name && $0.secret == SecretDigest(of: given.secret) }
    }

    // MARK: - With a token

    private func identities(_ request: RESTRequest) -> RESTAnswer {
        switch bearer(request) {
        case .failure(let refusal): return refusal.answer
        case .success(let grant):
            guard !grant.isAnonymous, let account = accounts.account(id: grant.user) else {
                return .failure(.notAllowed, "An anonymous login has no identities.", trace: request.trace)
            }
            let identities = Identities(publicIDs: account.publicIDs, routingID: account.routingID)
            return .success(identities, trace: request.trace)
        }
    }

    private func resources(_ request: RESTRequest) -> RESTAnswer {
        switch bearer(request) {
        case .failure(let refusal): return refusal.answer
        case .success:
            guard let url = webSocketURL(for: request) else {
                return .failure(.badRequest, "The Host header is no host.", trace: request.trace)
            }
            return .success(
                ConnectionResources(
                    webSocketURL: url, iceServers: configuration.iceServers,
                    keepaliveSeconds: max(1, Int(configuration.keepalive.seconds)),
                    resumeWindowSeconds: Int(configuration.resumeWindow.seconds)),
                trace: request.trace)
        }
    }

    /// The WebSocket is where the client reached the exchange, unless the configuration knows better.
    private func webSocketURL(for request: RESTRequest) -> String? {
        if let url = configuration.webSocketURL { return url }
        guard let host = WebOrigin.host(of: request.headers) else { return nil }
        return "\(configuration.certificate == nil ? "ws" : "wss")://\(host)\(ExchangeServer.webSocketPath)"
    }

    private struct Refusal: Error { var answer: RESTAnswer }

    private func bearer(_ request: RESTRequest) -> Result<Grant, Refusal> {
        let header = request.headers.first(name: "Authorization") ?? ""
        let prefix = "bearer "
        do throws(RPCError) {
            guard header.lowercased().hasPrefix(prefix) else {
                throw RPCError(.tokenRejected, "The Authorization header must be Bearer with an access token.")
            }
            return .success(try hub.grant(for: SecretDigest(of: String(header.dropFirst(prefix.count)))))
        } catch {
            hub.countRefusedLogin()
            let code: RESTErrorCode = error.known == .tokenExpired ? .tokenExpired : .tokenRejected
            return .failure(Refusal(answer: .failure(code, error.message, trace: request.trace)))
        }
    }
}
