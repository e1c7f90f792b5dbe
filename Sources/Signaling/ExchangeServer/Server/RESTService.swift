import ExchangeCore
import HTTPTransport
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import Core
import SignalWire

/// The REST half of the wire: logins, identities, connection resources.
///
/// Lives on the hub's event loop; only passwords are checked elsewhere, on a thread of their own.
final class RESTService {
    /// Password checks that may wait; each takes about a tenth of a second. Past it, logins are refused with a time to
    /// retry.
    static let maximumPasswordChecks = 32

    let hub: ExchangeHub
    private(set) var configuration: ExchangeConfiguration
    private let admission: Admission
    /// The host names that requests to this exchange may carry.
    var hosts: HostRules
    /// The root certificate in PEM form, if the exchange is its own authority.
    var root: [UInt8]?
    var accounts: AccountDirectory { hub.accounts }
    var guesses: LoginGuard
    var enrollmentGuesses = EnrollmentGuard()
    var challenges = LoginChallenges(secret: FreshSecret.bytes(32))
    private var proxies: [ClientAddress]
    /// `nil` without a web phone.
    let page: PageService?
    private let streams: StreamService
    let passwordThread: NIOThreadPool
    let logger: Logger
    var passwordChecks = 0
    /// Requests that wait for their turn; the hub's limits bound them.
    private var queued: Set<TraceID> = []

    init(
        hub: ExchangeHub, configuration: ExchangeConfiguration, admission: Admission, hosts: HostRules,
        passwordThread: NIOThreadPool, logger: Logger
    ) {
        self.hub = hub
        self.configuration = configuration
        self.admission = admission
        self.hosts = hosts
        guesses = LoginGuard(configuration.failedLogins)
        proxies = configuration.trustedProxies.compactMap { ClientAddress($0) }
        page = PageService(configuration)
        streams = StreamService(hub: hub, configuration: configuration)
        self.passwordThread = passwordThread
        self.logger = logger
    }

    /// What may change while the exchange runs is as here from now on.
    func adopt(_ configuration: ExchangeConfiguration) {
        if configuration.failedLogins != self.configuration.failedLogins {
            guesses = LoginGuard(configuration.failedLogins)
        }
        self.configuration = configuration
        proxies = configuration.trustedProxies.compactMap { ClientAddress($0) }
        streams.adopt(configuration)
    }

    /// Answers one request, sooner or later, on the hub's event loop.
    func answer(_ request: RESTRequest, then tell: @escaping (HTTPAnswer) -> Void) {
        // A token that is sent has been stored.
        let reply = { [hub, trace = request.trace] (answer: HTTPAnswer) in
            hub.afterWriting { isKept in
                let message = "The exchange cannot write its database."
                tell(isKept ? answer : .failure(.unavailable, message, trace: trace, retryAfterSeconds: 5))
            }
        }
        guard !hub.isStopping else {
            return reply(
                .failure(.unavailable, "The exchange is shutting down.", trace: request.trace, retryAfterSeconds: 5))
        }
        if let refusal = refuseComing(request) { return reply(refusal) }
        if let page, request.method == .GET || request.method == .HEAD, let file = page.file(request) {
            return reply(file)
        }
        if let root, let page = RootPage(root).answer(request) { return reply(page) }
        queued.insert(request.trace)
        let began = hub.now
        let payer = payer(of: request)
        let isTaken = hub.inTurn(of: payer, bytes: request.body.count, since: began) { [weak self] in
            guard let self, queued.remove(request.trace) != nil else { return }
            route(request, then: reply)
        }
        guard !isTaken else { return }
        queued.remove(request.trace)
        reply(
            .failure(
                .tooManyRequests, "Too many requests of this user are waiting.", trace: request.trace,
                retryAfterSeconds: 1))
    }

    /// Whose turn a request takes.
    private func payer(of request: RESTRequest) -> Payer {
        if let token = BearerToken(request.headers.first(name: "Authorization")) {
            if let account = accounts.account(streamToken: token.digest) { return .account(account.id) }
            return hub.core.payer(with: token.secret, at: hub.now) ?? .strangers
        }
        guard request.path == "/v1.1/token", WorkCost.reading(request.body) <= WorkCost.littleReading,
            let token = (try? SignalCoding.decode(TokenRequest.self, from: request.body))?.refreshToken
        else { return .strangers }
        return hub.core.payer(with: token, at: hub.now) ?? .strangers
    }

    /// Answers a request that has its turn.
    private func route(_ request: RESTRequest, then reply: @escaping (HTTPAnswer) -> Void) {
        if streams.answer(request, then: reply) { return }
        let expected: HTTPMethod
        switch request.path {
        case PageService.configurationPath where page != nil: expected = .GET
        case "/v1.1/login", "/v1.1/login/anonymous", "/v1.1/login/challenge", "/v1.1/token", "/v1.1/logout",
            "/v1.1/enroll":
            expected = .POST
        case "/v1/allidentities", "/v1/connection", ExchangeServer.webSocketPath: expected = .GET
        default:
            let refusal = HTTPAnswer.failure(.notFound, "There is nothing at this path.", trace: request.trace)
            return reply(page?.notFound(request) ?? refusal)
        }
        guard request.method == expected else {
            var answer = HTTPAnswer.failure(
                .methodNotAllowed, "This path accepts \(expected.rawValue) only.", trace: request.trace)
            answer.headers.add(name: "Allow", value: expected.rawValue)
            return reply(answer)
        }
        switch request.path {
        case "/v1.1/login": login(request, then: reply)
        case "/v1.1/login/anonymous": reply(anonymousLogin(request))
        case "/v1.1/login/challenge": reply(challenge(request))
        case "/v1.1/enroll": enroll(request, then: reply)
        case "/v1.1/token": reply(refresh(request))
        case "/v1.1/logout": reply(logout(request))
        case "/v1/allidentities": reply(identities(request))
        case "/v1/connection": reply(resources(request))
        case PageService.configurationPath: if let page { reply(page.configuration(request)) }
        case _ where !WebOrigin.isAllowed(request.headers, allowed: configuration.allowedOrigins):
            let message = "Pages from that origin may not connect; allowed_origins in the configuration names those."
            reply(.failure(.notAllowed, message, trace: request.trace))
        default:
            let message = "This path accepts only a WebSocket upgrade, as the first request of a connection."
            reply(.failure(.badRequest, message, trace: request.trace))
        }
    }

    /// The client of a request is gone before it had its answer.
    func abandon(_ trace: TraceID) {
        if queued.remove(trace) == nil { streams.abandon(trace) }
    }

    // MARK: - Who may come

    /// Whether a request names this exchange, and not another name that an attacker has resolve to it.
    func isForUs(_ head: HTTPRequestHead, _ channel: any Channel) -> Bool {
        hosts.admit(head.headers, head.version, reached: channel.localAddress?.ipAddress)
    }

    /// Where a request comes from.
    func client(of head: HTTPRequestHead, on connection: CountedConnection) -> ClientAddress {
        .of(
            peer: connection.peer, forwarded: head.headers[canonicalForm: "X-Forwarded-For"].map(String.init),
            proxies: proxies)
    }

    /// Counts a connection for the client that it speaks for; false if that one has too many.
    func hasRoom(for connection: CountedConnection, _ head: HTTPRequestHead) -> Bool {
        admission.move(connection, to: client(of: head, on: connection))
    }

    private func refuseComing(_ request: RESTRequest) -> HTTPAnswer? {
        if !request.isForUs {
            let message =
                "The Host header must name this exchange: \(hosts.summary), or the address that it is reached at; "
                + "allowed_hosts in the configuration adds others."
            return .failure(.misdirected, message, trace: request.trace)
        }
        guard !request.hasRoom else { return nil }
        let message = "There are too many connections from this address."
        return .failure(
            .tooManyRequests, message, trace: request.trace, retryAfterSeconds: InboundBudget.retrySeconds)
    }

    /// How long the body of a request may be: only those who have logged in send descriptions.
    func bodyLimit(of head: HTTPRequestHead) -> Int {
        streams.isOfUser(head) ? SignalLimits.messageBytes : SignalLimits.loginBytes
    }

    func anonymousLogin(_ request: RESTRequest) -> HTTPAnswer {
        if let refusal = refuseGuess(nil, request) { return refusal }
        guard let app = app(of: request) else { return refusal(.unknownAppKey, request) }
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
        guard let tokens = hub.issueTokens(grant) else { return noRoom(request) }
        logger.info("Logged in anonymously", metadata: ["user": "\(name)", "trace": "\(request.trace)"])
        return .success(AnonymousLoginResponse(token: tokens.access), trace: request.trace)
    }

    // MARK: - With a token

    private func identities(_ request: RESTRequest) -> HTTPAnswer {
        switch bearer(request) {
        case .failure(let refusal): return refusal.answer
        case .success(let grant):
            guard !grant.isAnonymous, grant.room == nil, let account = accounts.account(id: grant.user) else {
                let message = "An anonymous login, or one for a session, has no identities."
                return .failure(.notAllowed, message, trace: request.trace)
            }
            let identities = Identities(publicIDs: account.publicIDs, routingID: account.routingID)
            return .success(identities, trace: request.trace)
        }
    }

    private func resources(_ request: RESTRequest) -> HTTPAnswer {
        switch bearer(request) {
        case .failure(let refusal): return refusal.answer
        case .success(let grant):
            guard let url = webSocketURL(for: request) else {
                return .failure(.badRequest, "The Host header is not a host.", trace: request.trace)
            }
            let user = grant.isAnonymous || grant.room != nil ? nil : grant.user
            let ice = ICEServerOffer(configuration.iceServers, user: user, guest: .guest(), at: .now)
            return .success(
                ConnectionResources(
                    webSocketURL: url, iceServers: ice.servers,
                    iceServersSeconds: ice.lifetime.map { Int($0.seconds) },
                    keepaliveSeconds: max(1, Int(configuration.keepalive.seconds)),
                    resumeWindowSeconds: Int(configuration.resumeWindow.seconds)),
                trace: request.trace)
        }
    }

    /// The WebSocket is where the client reached the exchange, unless the configuration knows better.
    private func webSocketURL(for request: RESTRequest) -> String? {
        if let url = configuration.webSocketURL { return url }
        guard let host = WebOrigin.host(of: request.headers) else { return nil }
        return "\(configuration.isEncrypted ? "wss" : "ws")://\(host)\(ExchangeServer.webSocketPath)"
    }

    struct Refusal: Error { var answer: HTTPAnswer }

    func bearer(_ request: RESTRequest) -> Result<Grant, Refusal> {
        do throws(RPCError) {
            guard let token = BearerToken(request.headers.first(name: "Authorization")) else {
                throw RPCError(.tokenRejected, "The Authorization header must be Bearer with an access token.")
            }
            return .success(try hub.grant(for: token.secret))
        } catch {
            return .failure(Refusal(answer: refusal(of: error, request)))
        }
    }
}
