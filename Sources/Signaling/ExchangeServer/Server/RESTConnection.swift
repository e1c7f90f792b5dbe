import ExchangeCore
import HTTPTransport
import NIOCore
import NIOHTTP1
import SignalWire

/// One connection to the exchange: its requests, and the WebSocket that it may become. Lives on the hub's event loop.
final class RESTConnection: ConnectionService {
    private let counted: CountedConnection
    private let hub: ExchangeHub
    private let service: RESTService
    private let sockets: WebSocket.Settings
    private let share: SendBufferShare

    init(_ counted: CountedConnection, hub: ExchangeHub, service: RESTService, sockets: WebSocket.Settings) {
        self.counted = counted
        self.hub = hub
        self.service = service
        self.sockets = sockets
        share = SendBufferShare(hub.sendBuffers)
    }

    var outbound: any OutboundWatch { share }

    // MARK: - Requests

    /// Only those who have logged in send descriptions.
    func bodyLimit(of head: HTTPRequestHead) -> Int { service.bodyLimit(of: head) }

    func answer(_ request: HTTPRequest, on channel: any Channel, then reply: @escaping (HTTPAnswer) -> Void) {
        let head = request.head
        let trace = TraceID(request.number.value)
        let asked = RESTRequest(
            method: head.method, path: request.path, headers: head.headers, body: request.body,
            client: service.client(of: head, on: counted), isForUs: service.isForUs(head, channel),
            hasRoom: service.hasRoom(for: counted, head), trace: trace)
        service.answer(asked) { [self] in reply(sealed($0, trace)) }
    }

    func abandon(_ request: HTTPRequest.Number) { service.abandon(TraceID(request.value)) }

    func refusal(
        _ refusal: InboundMeter.Refusal, limit: Int, of head: HTTPRequestHead, _ request: HTTPRequest.Number
    ) -> HTTPAnswer {
        let trace = TraceID(request.value)
        let answer: HTTPAnswer
        switch refusal {
        case .tooLong:
            answer = service.tooLong(limit: limit, trace: trace)
        case .crowded:
            let message = "Too many clients send requests that are not complete."
            answer = .failure(.unavailable, message, trace: trace, retryAfterSeconds: InboundBudget.retrySeconds)
        }
        return sealed(answer, trace)
    }

    /// The answer with the name of its request, so that it is found in the log, and the ownership under which it is given.
    private func sealed(_ answer: HTTPAnswer, _ trace: TraceID) -> HTTPAnswer {
        var answer = answer
        answer.headers.add(contentsOf: headers(trace))
        return answer
    }

    private func headers(_ trace: TraceID) -> HTTPHeaders {
        var headers = HTTPHeaders([("Trace-Id", trace.description)])
        if let epoch = hub.journal?.epoch { headers.add(name: OwnerEpoch.header, value: epoch.description) }
        return headers
    }

    // MARK: - The WebSocket

    func opensWebSocket(_ head: HTTPRequestHead, on channel: any Channel) -> Bool {
        head.uri.prefix { $0 != "?" } == ExchangeServer.webSocketPath
            && WebOrigin.isAllowed(head.headers, allowed: service.configuration.allowedOrigins)
            && service.isForUs(head, channel) && service.hasRoom(for: counted, head)
    }

    func webSocketHeaders(for head: HTTPRequestHead) -> HTTPHeaders { headers(TraceID()) }

    func makeWebSocket(_ meter: InboundMeter) -> WebSocket {
        SocketSession.makeWebSocket(sockets, hub: hub, meter: meter, share: share)
    }
}
