internal import BotWire
internal import ConfigReader
internal import HTTPTransport
internal import NIOCore
internal import NIOHTTP1
internal import Realtime
internal import Timekeeping

/// Answers the requests with which bots end or redirect their calls, in the words of the services. On the event loop.
final class BotRequestServer: HTTPService, ConnectionService, OutboundWatch {
    private struct Full: Error {}

    /// Connections at a time: bots make one for each request.
    private static let mostConnections = 64
    private static let bounds = StrangerBounds(bodyBytes: WireLimits.requestBytes, messageBytes: 1)

    private let environment: BotEnvironment
    private let requests: BotPlan.Requests
    private let registry: BotRegistry
    private var connections = 0
    private var refusals = LogLimit(burst: 5, perSecond: 0.2)

    private init(_ environment: BotEnvironment, _ requests: BotPlan.Requests, _ registry: BotRegistry) {
        self.environment = environment
        self.requests = requests
        self.registry = registry
    }

    static func listener(
        _ environment: BotEnvironment, _ requests: BotPlan.Requests, _ registry: BotRegistry
    ) -> HTTPListener {
        HTTPListener(
            BotRequestServer(environment, requests, registry), tls: nil, budget: InboundBudget(limit: 4 << 20),
            bounds: bounds, messageBytes: 1)
    }

    // MARK: - Requests

    func answer(_ request: HTTPRequest, on channel: any Channel, then reply: @escaping (HTTPAnswer) -> Void) {
        reply(Self.http(answer(request)))
    }

    private func answer(_ request: HTTPRequest) -> ServiceAnswer {
        let headers = request.head.headers
        do throws(ServiceFault) {
            let asked = try BotRequest(
                ServiceRequest(
                    method: request.head.method.rawValue, target: request.head.uri,
                    authorization: headers.first(name: "Authorization"),
                    contentType: headers.first(name: "Content-Type"), body: request.body))
            guard isKnown(asked) else {
                throw ServiceFault(.unauthorized, asked.service, "the account or its password is unknown")
            }
            let order = try asked.order()
            let name: String
            switch order {
            case .end(let call, _), .redirect(let call, _): name = call
            case .place: throw ServiceFault(.forbidden, asked.service, "calls cannot be placed here")
            }
            guard let bot = registry[name], asked.account == nil || asked.account == environment.plan.account else {
                throw ServiceFault(.noSuchCall, asked.service, "there is no such call, or it is over")
            }
            let (call, status) = try bot.carryOut(order)
            return .done(asked.service, call, status)
        } catch {
            if let leftOut = refusals.admit(at: MonotonicClock.now) {
                environment.publish(.warned("a request was refused: \(error.description)", leftOut: leftOut))
            }
            return .refused(error)
        }
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
        guard connections < Self.mostConnections else { throw Full() }
        connections += 1
        channel.closeFuture.assumeIsolated().whenComplete { [self] _ in connections -= 1 }
        return self
    }

    func failedToAccept(_ error: IOError) {
        if let leftOut = refusals.admit(at: MonotonicClock.now) {
            environment.publish(.warned("a connection of a bot's server was not accepted: \(error)", leftOut: leftOut))
        }
    }

    func countShed() {}

    var outbound: any OutboundWatch { self }
    func note(_ bytes: Int, of meter: OutboundMeter) {}
    func forget(_ meter: OutboundMeter) {}
    func countDropped() {}

    func bodyLimit(of head: HTTPRequestHead) -> Int { WireLimits.requestBytes }

    func abandon(_ request: HTTPRequest.Number) {}

    func refusal(_ refusal: InboundMeter.Refusal, limit: Int, of request: HTTPRequest.Number) -> HTTPAnswer {
        Self.http(.refused(ServiceFault(.badRequest, nil, "a request has \(limit) bytes at most")))
    }

    func opensWebSocket(_ head: HTTPRequestHead, on channel: any Channel) -> Bool { false }
    func webSocketHeaders(for head: HTTPRequestHead) -> HTTPHeaders { [:] }

    func makeWebSocket(_ meter: InboundMeter) -> WebSocket {
        WebSocket(WebSocket.Settings(.server, messageBytes: 1), meter: meter) { _ in }
    }
}
