import ExchangeCore
import HTTPTransport
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import Core
import SignalWire
import Realtime

/// The REST half of the wire: who may come, whose turn it is, and which service answers.
///
/// Lives on the hub's event loop.
final class RESTService {
    private let hub: ExchangeHub
    private(set) var configuration: ExchangeConfiguration
    private let admission: Admission
    /// The host names that requests to this exchange may carry.
    var hosts: HostRules
    /// The root certificate in PEM form, if the exchange is its own authority.
    var root: [UInt8]?
    private var proxies: [ClientAddress]
    /// `nil` without a web phone.
    private let page: PageService?
    private let logins: LoginService
    private let enrollments: EnrollmentService
    private let streams: StreamService
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
        proxies = configuration.trustedProxies.compactMap { ClientAddress($0) }
        page = PageService(configuration)
        streams = StreamService(hub: hub, configuration: configuration)
        let passwords = PasswordThread(passwordThread, loop: hub.loop)
        logins = LoginService(
            hub: hub, configuration: configuration, passwords: passwords, pageApp: page?.app, logger: logger)
        enrollments = EnrollmentService(
            hub: hub, configuration: configuration, passwords: passwords, logger: logger)
    }

    /// What may change while the exchange runs is as here from now on.
    func adopt(_ configuration: ExchangeConfiguration) {
        self.configuration = configuration
        logins.adopt(configuration)
        enrollments.adopt(configuration)
        proxies = configuration.trustedProxies.compactMap { ClientAddress($0) }
        streams.adopt(configuration)
    }

    /// Answers one request, sooner or later, on the hub's event loop.
    func answer(_ request: RESTRequest, then tell: @escaping (HTTPAnswer) -> Void) {
        // A token that is sent has been stored.
        let reply = { [hub, streams] (answer: HTTPAnswer) in
            hub.afterWriting { isKept in
                tell(isKept ? answer : Self.unwritten(hub.isReplaced ? .givenUp : .failed, request, streams))
            }
        }
        guard !hub.isStopping else { return reply(ending(request)) }
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
            if let refusal = refuseWithoutDisk(request) { return reply(refusal) }
            route(request, then: reply)
        }
        guard !isTaken else { return }
        queued.remove(request.trace)
        reply(
            .failure(
                .tooManyRequests, "Too many requests of this user are waiting.", trace: request.trace,
                retryAfterSeconds: 1))
    }

    private func ending(_ request: RESTRequest) -> HTTPAnswer {
        guard !hub.isReplaced else { return Self.unwritten(.givenUp, trace: request.trace) }
        return .failure(.unavailable, "The exchange is shutting down.", trace: request.trace, retryAfterSeconds: 5)
    }

    /// Whose turn a request takes.
    private func payer(of request: RESTRequest) -> Payer {
        if let token = BearerToken(request.headers.first(name: "Authorization")) {
            if let account = hub.accounts.account(streamToken: token.digest) { return .account(account.id) }
            return hub.payer(with: token.secret)
        }
        guard request.path == "/v1.1/token", WorkCost.reading(request.body) <= WorkCost.littleReading,
            let token = (try? SignalCoding.decode(TokenRequest.self, from: request.body))?.refreshToken
        else { return .strangers }
        return hub.payer(with: token)
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
        case "/v1.1/login": logins.login(request, then: reply)
        case "/v1.1/login/anonymous": reply(logins.anonymousLogin(request))
        case "/v1.1/login/challenge": reply(logins.challenge(request))
        case "/v1.1/enroll": enrollments.enroll(request, then: reply)
        case "/v1.1/token": reply(logins.refresh(request))
        case "/v1.1/logout": reply(logins.logout(request))
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

    // MARK: - While nothing can be stored

    /// When to try again if the database cannot be written: long before the resume window ends.
    static let unwrittenRetrySeconds = 5

    /// Refuses what the hub would not handle: an answer without its effect, such as tokens that are not stored, costs a
    /// device its login.
    private func refuseWithoutDisk(_ request: RESTRequest) -> HTTPAnswer? {
        guard let obstacle = hub.obstacle, request.method != .OPTIONS else { return nil }
        switch obstacle {
        case .failed, .givenUp: break
        // A client that hangs up may not try again, and its end makes room.
        case .behind where request.method == .DELETE: return nil
        case .behind: hub.countCrowdedDisk()
        }
        return Self.unwritten(obstacle, request, streams)
    }

    private static func unwritten(
        _ obstacle: ExchangeHub.Obstacle, _ request: RESTRequest, _ streams: StreamService
    ) -> HTTPAnswer {
        streams.unwritten(request) ?? unwritten(obstacle, trace: request.trace)
    }

    private static func unwritten(_ obstacle: ExchangeHub.Obstacle, trace: TraceID) -> HTTPAnswer {
        func failure(_ message: String) -> HTTPAnswer {
            .failure(.unavailable, message, trace: trace, retryAfterSeconds: unwrittenRetrySeconds)
        }
        return switch obstacle {
        case .failed: failure("The exchange cannot write its database and changed nothing.")
        case .behind: failure("The exchange is waiting for its disk and changed nothing.")
        // A client asks the next exchange at once.
        case .givenUp:
            .failure(
                .standby, "This exchange ends, has given its database up for another one, and changed nothing.",
                trace: trace)
        }
    }

    /// The answer to a body that is too long for a client without a login, unless a login could not be verified.
    func tooLong(limit: Int, trace: TraceID) -> HTTPAnswer {
        let isOfStranger = limit < SignalLimits.messageBytes
        if isOfStranger, hub.failure != nil { return Self.unwritten(.failed, trace: trace) }
        let message = "A body has at most \(limit) bytes" + (isOfStranger ? " without a good Bearer token." : ".")
        return .failure(.tooLarge, message, trace: trace)
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

    // MARK: - With a token

    private func identities(_ request: RESTRequest) -> HTTPAnswer {
        switch logins.bearer(request) {
        case .failure(let refusal): return refusal.answer
        case .success(let grant):
            guard !grant.isAnonymous, grant.room == nil, let account = hub.accounts.account(id: grant.user) else {
                let message = "An anonymous login, or one for a session, has no identities."
                return .failure(.notAllowed, message, trace: request.trace)
            }
            let identities = Identities(publicIDs: account.publicIDs, routingID: account.routingID)
            return .success(identities, trace: request.trace)
        }
    }

    private func resources(_ request: RESTRequest) -> HTTPAnswer {
        switch logins.bearer(request) {
        case .failure(let refusal): return refusal.answer
        case .success(let grant):
            guard let url = webSocketURL(for: request) else {
                return .failure(.badRequest, "The Host header is not a host.", trace: request.trace)
            }
            let user = grant.isAnonymous || grant.room != nil ? nil : grant.user
            let ice = ICEServerOffer(configuration.iceServers, user: user, guest: .guest(), at: MonotonicClock.wallTime)
            return .success(
                ConnectionResources(
                    webSocketURL: url, iceServers: ice.servers,
                    iceServersSeconds: ice.lifetime.map { Int($0.seconds) },
                    keepaliveSeconds: max(1, Int(configuration.core.keepalive.seconds)),
                    resumeWindowSeconds: Int(configuration.core.resumeWindow.seconds)),
                trace: request.trace)
        }
    }

    /// The WebSocket is where the client reached the exchange, unless the configuration knows better.
    private func webSocketURL(for request: RESTRequest) -> String? {
        if let url = configuration.webSocketURL { return url }
        guard let host = WebOrigin.host(of: request.headers) else { return nil }
        return "\(configuration.isEncrypted ? "wss" : "ws")://\(host)\(ExchangeServer.webSocketPath)"
    }
}
