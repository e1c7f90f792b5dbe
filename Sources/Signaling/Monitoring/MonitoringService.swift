internal import ConfigReader
internal import Core
internal import Cryptography
internal import HTTPTransport
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import Realtime

/// Answers requests for metrics and health. On its server's event loop.
final class MonitoringService: PlainService {
    /// Connections at a time. A watching program has one or two.
    static let mostConnections = 32

    private let configuration: MonitoringConfiguration
    private let version: String
    /// The process begins with its servers.
    private let started: Double
    let acceptLog: AcceptLog
    private let metrics: Inquiry<MetricPage>
    private let liveness: Inquiry<Bool>
    private let readiness: Inquiry<[String]>
    private let connections = OpenChannels(most: MonitoringService.mostConnections)

    init(
        _ configuration: MonitoringConfiguration, _ process: MonitoredProcess, version: String, patience: Duration,
        loop: any EventLoop, logger: Logger
    ) {
        self.configuration = configuration
        self.version = version
        acceptLog = AcceptLog(logger, for: "metrics")
        started = MonotonicClock.wallTime.seconds
        metrics = Inquiry(on: loop, patience) {
            var page = MetricPage()
            await process.measure(&page)
            return page
        }
        liveness = Inquiry(on: loop, patience, process.isAlive)
        readiness = Inquiry(on: loop, patience, process.obstacles)
    }

    // MARK: - Requests

    func answer(_ request: HTTPRequest, on channel: any Channel, then reply: @escaping (HTTPAnswer) -> Void) {
        guard isOwnHost(request.head.headers) else {
            return reply(.text(.misdirectedRequest, "This server is asked by its address, not by another host's name."))
        }
        guard [.GET, .HEAD].contains(request.head.method) else {
            var answer = HTTPAnswer.text(.methodNotAllowed, "Ask with GET.")
            answer.headers.add(name: "Allow", value: "GET, HEAD")
            return reply(answer)
        }
        switch request.path {
        case "/metrics": showMetrics(to: request.head.headers, reply)
        case "/livez": liveness.ask { reply(.health($0 == true ? [] : ["a thread of the process does not work"])) }
        case "/readyz": readiness.ask { reply(.health($0 ?? ["the process does not answer"])) }
        default: reply(.text(.notFound, "There are /metrics, /livez and /readyz."))
        }
    }

    private func showMetrics(to headers: HTTPHeaders, _ reply: @escaping (HTTPAnswer) -> Void) {
        guard mayRead(headers) else {
            var answer = HTTPAnswer.text(
                .unauthorized, "Present the token of the section monitoring as a bearer token.")
            answer.headers.add(name: "WWW-Authenticate", value: "Bearer")
            return reply(answer)
        }
        metrics.ask { [version, started] page in
            guard var page else { return reply(.text(.serviceUnavailable, "The process does not answer.")) }
            ProcessMetrics.add(to: &page, version: version, started: started)
            reply(HTTPAnswer(status: .ok, contentType: MetricPage.contentType, body: Array(page.text.utf8)))
        }
    }

    private func mayRead(_ headers: HTTPHeaders) -> Bool {
        guard let token = configuration.token else { return true }
        guard let given = headers.first(name: "Authorization"), given.lowercased().hasPrefix("bearer ") else {
            return false
        }
        return Digest.areEqual(Array(given.dropFirst(7).utf8), Array(token.revealed.utf8))
    }

    /// A foreign page can make its own name resolve to this machine's address (DNS rebinding), and then read what is answered.
    private func isOwnHost(_ headers: HTTPHeaders) -> Bool {
        guard let header = headers.first(name: "Host"), let host = HostName(header: header) else { return false }
        if case .address = host { return true }
        return host.isLoopback || host == HostName(configuration.listen.host) || configuration.token != nil
    }

    // MARK: - Connections

    func accept(_ channel: any Channel) throws -> any ConnectionService {
        connections.track(channel)
        return self
    }

    func refusal(
        _ refusal: InboundMeter.Refusal, limit: Int, of head: HTTPRequestHead, _ request: HTTPRequest.Number
    ) -> HTTPAnswer {
        .text(.payloadTooLarge, "A request has no body here.")
    }
}

/// A question to the process that several clients may ask at once: it is asked once for all of them, and while it has no answer not again,
/// so that a process that does not answer collects no questions. On an event loop.
private final class Inquiry<Answer: Sendable> {
    private let loop: any EventLoop
    private let patience: TimeAmount
    private let ask: @Sendable () async -> Answer
    private var waiting: [(Answer?) -> Void] = []
    private var isAsked = false
    /// Whether who waits now has waited long enough.
    private var limit: Scheduled<Void>?

    init(on loop: any EventLoop, _ patience: Duration, _ ask: @escaping @Sendable () async -> Answer) {
        self.loop = loop
        self.patience = TimeAmount(patience)
        self.ask = ask
    }

    /// Asks, and passes on the answer, or nil if there is none in time.
    func ask(_ reply: @escaping (Answer?) -> Void) {
        waiting.append(reply)
        if limit == nil {
            limit = loop.assumeIsolated().scheduleTask(in: patience) { [self] in settle(nil) }
        }
        guard !isAsked else { return }
        isAsked = true
        let own = NIOLoopBound(self, eventLoop: loop)
        Task { [loop, ask] in
            let answer = await ask()
            loop.execute {
                own.value.isAsked = false
                own.value.settle(answer)
            }
        }
    }

    private func settle(_ answer: Answer?) {
        limit?.cancel()
        limit = nil
        let replies = waiting
        waiting = []
        for reply in replies { reply(answer) }
    }
}

extension HTTPAnswer {
    fileprivate static func text(_ status: HTTPResponseStatus, _ text: String) -> HTTPAnswer {
        HTTPAnswer(status: status, contentType: "text/plain; charset=utf-8", body: Array("\(text)\n".utf8))
    }

    /// 200 and "ok", or 503 and what is in the way, a line each.
    fileprivate static func health(_ obstacles: [String]) -> HTTPAnswer {
        obstacles.isEmpty
            ? text(.ok, "ok") : text(.serviceUnavailable, obstacles.joined(separator: "\n"))
    }
}
