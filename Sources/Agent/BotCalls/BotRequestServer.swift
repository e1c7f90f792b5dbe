internal import BotWire
internal import ConfigReader
internal import HTTPTransport
internal import NIOCore
internal import NIOHTTP1
internal import Core
internal import Realtime
internal import TLS

/// Answers the requests with which bots end, redirect or place calls, in the words of the services. On the event loop.
final class BotRequestServer: HTTPService, ConnectionService, OutboundWatch {
    private struct Full: Error {}

    /// Bytes of requests that are not complete, in all.
    static let requestMemory = 4 << 20
    private static let bounds = StrangerBounds(bodyBytes: WireLimits.requestBytes, messageBytes: 1)

    private let environment: BotEnvironment
    private let requests: BotPlan.Requests
    private let registry: BotRegistry
    private var connections = RequestConnections()
    private var channels: [RequestConnections.ID: any Channel] = [:]
    private var guesses = PasswordGuard()
    private var rules: PlacementRules?
    private var refusals = LogLimit(burst: 5, perSecond: 0.2)

    private init(_ environment: BotEnvironment, _ requests: BotPlan.Requests, _ registry: BotRegistry) {
        self.environment = environment
        self.requests = requests
        self.registry = registry
        rules = requests.calls.map { PlacementRules($0) }
    }

    static func listener(
        _ environment: BotEnvironment, _ requests: BotPlan.Requests, _ registry: BotRegistry, _ tls: TLSContext?
    ) -> HTTPListener {
        HTTPListener(
            BotRequestServer(environment, requests, registry), tls: tls, budget: InboundBudget(limit: requestMemory),
            bounds: bounds, messageBytes: 1)
    }

    // MARK: - Requests

    func answer(_ request: HTTPRequest, on channel: any Channel, then reply: @escaping (HTTPAnswer) -> Void) {
        let (address, now) = (Self.address(of: channel), MonotonicClock.now)
        do throws(ServiceFault) {
            let asked = try Self.request(request)
            let rights = try rights(of: asked, from: address, at: now)
            connections.trust(ObjectIdentifier(channel))
            try follow(asked, rights, at: now) { reply(Self.http($0)) }
        } catch {
            if let leftOut = refusals.admit(at: now) {
                environment.warn("a request was refused: \(error.description)", leftOut: leftOut)
            }
            var answer = Self.http(.refused(error))
            if let wait = guesses.wait(address, at: now) {
                answer.headers.add(name: "Retry-After", value: "\(Int(wait.seconds.rounded(.up)))")
                answer.endsConnection = true
            }
            reply(answer)
        }
    }

    private static func address(of channel: any Channel) -> ClientAddress {
        channel.remoteAddress?.ipAddress.flatMap { ClientAddress($0) } ?? .none
    }

    private static func request(_ request: HTTPRequest) throws(ServiceFault) -> BotRequest {
        let headers = request.head.headers
        return try BotRequest(
            ServiceRequest(
                method: request.head.method.rawValue, target: request.head.uri,
                authorization: headers.first(name: "Authorization"), contentType: headers.first(name: "Content-Type"),
                body: request.body))
    }

    /// What the client of a request may do, if its password is right. A wrong one costs its address an attempt.
    ///
    /// - Returns: Whether it may place calls.
    private func rights(
        of request: BotRequest, from address: ClientAddress, at now: Instant
    ) throws(ServiceFault) -> Bool {
        guard !request.credentials.isEmpty else {
            throw ServiceFault(.unauthorized, request.service, "there are no credentials")
        }
        if let wait = guesses.begin(address, at: now) {
            throw ServiceFault(
                .tooMany, request.service,
                "there were too many wrong passwords: try again in \(Int(wait.seconds.rounded(.up))) s")
        }
        let mayPlace = mayPlaceCalls(request)
        guard mayPlace || isKnown(request) else {
            throw ServiceFault(.unauthorized, request.service, "the account or its password is unknown")
        }
        guesses.succeeded(address, at: now)
        return mayPlace
    }

    private func follow(
        _ asked: BotRequest, _ mayPlace: Bool, at now: Instant, _ reply: @escaping Placements.Reply
    ) throws(ServiceFault) {
        let order = try asked.order()
        let isOwn = asked.account == nil || asked.account == environment.plan.account
        switch order {
        case .end(let name, _), .redirect(let name, _), .transfer(let name, _):
            guard let bot = registry[name], isOwn else {
                throw ServiceFault(.noSuchCall, asked.service, "there is no such call, or it has ended")
            }
            try checkTransfers(order, asked.service)
            let (call, status) = try bot.carryOut(order)
            if case .end = order {
                reply(.done(asked.service, call, status))
            } else {
                reply(.redirected(asked.service, call, status))
            }
        case .place(let placed):
            guard isOwn else { throw ServiceFault(.noSuchPath, .twilio, "there is no such account") }
            guard mayPlace else {
                throw ServiceFault(
                    .forbidden, .twilio,
                    rules == nil
                        ? "calls cannot be placed here" : "these credentials may not place calls")
            }
            try checkTransfers(order, .twilio)
            try rules?.check(placed, environment.hosts, at: now)
            environment.order(.place(registry.placements.add(placed, reply)))
        }
    }

    /// Refuses an order to transfer a call to a target that the account's list does not have.
    private func checkTransfers(_ order: BotRequest.Order, _ service: BotService?) throws(ServiceFault) {
        for target in order.transferTargets where !environment.mayTransfer(target) {
            throw ServiceFault(
                .forbidden, service, twilioCode: 21_216, "account.callees does not list the target of the transfer")
        }
    }

    /// Whether the request's sender may place calls.
    private func mayPlaceCalls(_ request: BotRequest) -> Bool {
        guard let calls = requests.calls, request.service == .twilio else { return false }
        return request.credentials.match(user: calls.key, password: calls.password.revealed)
    }

    private func isKnown(_ request: BotRequest) -> Bool {
        let password = requests.password.revealed
        switch request.service {
        case .telnyx: return request.credentials.match(key: password)
        case .twilio, .plivo: return request.credentials.match(user: environment.plan.account, password: password)
        }
    }

    private static func http(_ answer: ServiceAnswer) -> HTTPAnswer {
        HTTPAnswer(
            status: HTTPResponseStatus(statusCode: answer.status),
            headers: answer.status == 401 ? ["WWW-Authenticate": "Basic realm=\"handset\""] : [:],
            contentType: answer.contentType ?? "application/json", body: answer.body)
    }

    // MARK: - Connections

    func accept(_ channel: any Channel) throws -> any ConnectionService {
        let id = ObjectIdentifier(channel)
        switch connections.admit(id, from: Self.address(of: channel), remembered: guesses.known) {
        case .taken: break
        case .refused: throw Full()
        case .takenFor(let idle):
            let former = channels.removeValue(forKey: idle)
            former?.close(promise: nil)
        }
        channels[id] = channel
        channel.closeFuture.assumeIsolated().whenComplete { [self] _ in
            connections.leave(id)
            channels[id] = nil
        }
        return self
    }

    func failedToAccept(_ error: IOError) {
        if let leftOut = refusals.admit(at: MonotonicClock.now) {
            environment.warn("a connection of a bot's server was not accepted: \(error)", leftOut: leftOut)
        }
    }

    func countShed() {}

    var outbound: any OutboundWatch { self }
    func note(_ bytes: Int, of meter: OutboundMeter) {}
    func forget(_ meter: OutboundMeter) {}
    func countDropped() {}

    func bodyLimit(of head: HTTPRequestHead) -> Int { WireLimits.requestBytes }

    func abandon(_ request: HTTPRequest.Number) {}

    func refusal(
        _ refusal: InboundMeter.Refusal, limit: Int, of head: HTTPRequestHead, _ request: HTTPRequest.Number
    ) -> HTTPAnswer {
        Self.http(.refused(ServiceFault(.badRequest, nil, "a request has \(limit) bytes at most")))
    }

    func opensWebSocket(_ head: HTTPRequestHead, on channel: any Channel) -> Bool { false }
    func webSocketHeaders(for head: HTTPRequestHead) -> HTTPHeaders { [:] }

    func makeWebSocket(_ meter: InboundMeter) -> WebSocket {
        WebSocket(WebSocket.Settings(.server, messageBytes: 1), meter: meter) { _ in }
    }
}

/// Bounds how often passwords of requests are guessed: limits the wrong ones from one address, and those from all addresses together
/// that have not given a right one lately. Right ones cost nothing.
///
/// Capacity: 20,000 addresses with wrong passwords, and ``mostKnown`` with right ones.
struct PasswordGuard {
    /// Wrong passwords from one address in ``window``, and from all that are not known.
    static let (perAddress, perStrangers) = (30, 300)
    static let window = Duration.seconds(600)
    static let mostKnown = 16

    private var addresses = TokenBuckets<ClientAddress>(.init(perAddress, within: window))
    private var strangers = TokenBuckets<Int>(.init(perStrangers, within: window))
    /// The last ones that gave a right password, oldest first.
    private(set) var known: [ClientAddress] = []

    /// How long an address has to wait; nil if it may try a password.
    mutating func wait(_ address: ClientAddress, at now: Instant) -> Duration? {
        var wait = addresses.wait(address, at: now)
        if !known.contains(address) { wait = max(wait, strangers.wait(0, at: now)) }
        return wait == .zero ? nil : wait
    }

    /// Takes an attempt, which ``succeeded(_:at:)`` gives back.
    ///
    /// - Returns: How long to wait instead; nil if a password may be tried.
    mutating func begin(_ address: ClientAddress, at now: Instant) -> Duration? {
        if let wait = wait(address, at: now) { return wait }
        addresses.take(address, at: now)
        if !known.contains(address) { strangers.take(0, at: now) }
        return nil
    }

    /// The password was right.
    mutating func succeeded(_ address: ClientAddress, at now: Instant) {
        addresses.putBack(address, at: now)
        if let index = known.firstIndex(of: address) {
            known.remove(at: index)
        } else {
            strangers.putBack(0, at: now)
            if known.count >= Self.mostKnown { known.removeFirst() }
        }
        known.append(address)
    }
}
