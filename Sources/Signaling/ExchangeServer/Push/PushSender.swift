import AsyncHTTPClient
import ExchangeCore
import FoundationEssentials
import JSON
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import SignalWire
import Timekeeping

/// Asks webhooks: one request for each attempt at a push. It decides nothing.
final class PushSender: Sendable {
    private let configuration: PushConfiguration
    private let client: HTTPClient

    /// Of an answer so much is read.
    private static let answerBytes = 4_096

    init(_ configuration: PushConfiguration, on loop: any EventLoop) {
        self.configuration = configuration
        let time = TimeAmount(configuration.requestTime)
        var settings = HTTPClient.Configuration(
            redirectConfiguration: .disallow, timeout: .init(connect: min(time, .seconds(5)), read: time))
        settings.connectionPool.retryConnectionEstablishment = false  // The queue retries, with its own waits.
        settings.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = configuration.parallelRequests
        client = HTTPClient(eventLoopGroup: loop, configuration: settings)
    }

    /// Makes one attempt.
    ///
    /// - Parameter now: The exchange's clock.
    func send(_ push: StoredPush, at now: Instant) async -> PushAnswer {
        guard let webhook = configuration.webhook(for: push.target.kind) else {
            return .refused("no webhook for this kind of token")
        }
        do {
            let form = try PushRequest(push, to: webhook, at: now, .now)
            var request = HTTPClientRequest(url: form.url)
            request.method = .POST
            for header in form.headers { request.headers.add(name: header.name, value: header.value) }
            request.headers.add(name: "user-agent", value: "handset")
            request.body = .bytes(form.body)
            let response = try await client.execute(request, timeout: TimeAmount(configuration.requestTime))
            let wait = response.headers.first(name: "retry-after").flatMap { RetryAfter.parse($0, now: .now) }
            let body = await body(of: response)
            return PushAnswer(
                Int(response.status.code), wait: wait, body: body, shape: webhook.shape,
                token: push.target.token.secret)
        } catch {
            return .failed(Self.words(for: error), wait: nil, isAboutAll: false)
        }
    }

    /// The answer's body, if it is JSON, short, and there in time.
    private func body(of response: HTTPClientResponse) async -> JSONValue? {
        guard !(200..<300).contains(Int(response.status.code)) else { return nil }
        let bytes = await withTaskGroup(of: ByteBuffer?.self) { group in
            group.addTask { try? await response.body.collect(upTo: Self.answerBytes) }
            group.addTask { [time = configuration.requestTime] in
                try? await Task.sleep(for: time)
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
        guard let bytes else { return nil }
        return try? JSONDecoder().decode(JSONValue.self, from: Data(bytes.readableBytesView))
    }

    /// What went wrong in few words; never the address, in which there may be a key or a token.
    private static func words(for error: any Error) -> String {
        switch error {
        case let error as HTTPClientError: error.shortDescription
        case let error as IOError: "cannot connect (error \(error.errnoCode))"
        case is NIOConnectionError: "cannot connect"
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError: "TLS failed"
        default: "failed (\(type(of: error)))"
        }
    }

    /// Gives up what is under way.
    func stop() async { try? await client.shutdown() }
}
