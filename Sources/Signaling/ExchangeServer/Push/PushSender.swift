import ExchangeCore
import FoundationEssentials
import HTTPTransport
import JSON
import NIOCore
import NIOHTTP1
import SignalWire
import Core
import Realtime

/// Asks webhooks: one request for each attempt at a push. It decides nothing.
final class PushSender: Sendable {
    private let configuration: PushConfiguration
    private let client: HTTPClient

    /// Bytes read of an answer at most.
    private static let answerBytes = 4_096
    /// Connections without a request, to all webhooks together.
    private static let idleConnections = 64

    init(_ configuration: PushConfiguration, on loop: any EventLoop) {
        self.configuration = configuration
        let time = TimeAmount(configuration.requestTime)
        let kept = configuration.parallelRequests * configuration.webhooks.count
        client = HTTPClient(
            trust: .system,
            within: .init(bodyBytes: Self.answerBytes, time: time, connecting: .seconds(5), acceptsPart: true),
            keeping: .init(connections: min(kept, Self.idleConnections)), on: loop)
    }

    /// Makes one attempt.
    ///
    /// - Parameter now: The exchange's clock.
    func send(_ push: StoredPush, at now: Instant) async -> PushAnswer {
        guard let webhook = configuration.webhook(for: push.target.kind) else {
            return .refused("no webhook for this kind of token")
        }
        var destination: HTTPEndpoint?
        do {
            let form = try PushRequest(push, to: webhook, at: now, MonotonicClock.wallTime)
            let endpoint = try HTTPEndpoint(form.url)
            destination = endpoint
            // A webhook handles an id once, so a kept connection that has just ended costs no attempt.
            var request = HTTPFetch.Request(
                .POST, endpoint, target: endpoint.target, body: form.body, isRepeatable: true)
            for header in form.headers { request.headers.add(name: header.name, value: header.value) }
            request.headers.add(name: "user-agent", value: "handset")
            let answer = try await client.send(request)
            let wait = answer.headers.first(name: "retry-after").flatMap {
                RetryAfter.parse($0, now: MonotonicClock.wallTime)
            }
            return PushAnswer(
                answer.status, wait: wait, body: Self.body(of: answer), shape: webhook.shape,
                token: push.target.token.secret)
        } catch {
            return .failed(Self.words(for: error, at: destination), wait: nil, isAboutAll: false)
        }
    }

    /// The answer's body, if it is JSON, short, and there in time.
    private static func body(of answer: HTTPFetch.Answer) -> JSONValue? {
        guard answer.isWhole, !(200..<300).contains(answer.status) else { return nil }
        return try? JSONDecoder().decode(JSONValue.self, from: Data(answer.body))
    }

    /// What went wrong in few words; never the address, in which there may be a key or a token.
    private static func words(for error: any Error, at destination: HTTPEndpoint?) -> String {
        if error is HTTPEndpoint.Malformed { return "the webhook's address is malformed" }
        guard let destination, !(error is CancellationError) else { return "failed (\(type(of: error)))" }
        if error as? HTTPFetch.Failure == .tooLate { return "no answer in time" }
        return switch TransportFailure(error, to: destination).kind {
        case .noServer, .unreachable: "cannot connect"
        case .closed: "the webhook closed the connection"
        case .untrusted, .wrongName: "TLS failed: the webhook's certificate is not trusted"
        case .plainText, .handshake: "TLS failed"
        case .notHTTP: "the answer is not HTTP"
        case .notUpgraded, .fault: "failed (\(type(of: error)))"
        }
    }

    /// Gives up what is under way.
    func stop() async { await client.shutDown() }
}
