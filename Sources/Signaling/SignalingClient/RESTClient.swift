internal import Core
internal import CallControl
internal import FoundationEssentials
internal import HTTPTransport
internal import NIOCore
internal import NIOHTTP1
internal import SignalWire

/// The calls made before there is a WebSocket: login, identities, resources (contract AUTH-1 to 3, CONN-1).
///
/// A client lives as long as a few calls belong together and is then shut down: between logins nothing is kept.
struct RESTClient: Sendable {
    let configuration: HandsetServiceConfiguration
    let trust: TLSTrust
    let loop: any EventLoop
    /// For one call, connecting included.
    var timeout: TimeAmount = .seconds(10)

    /// Asks the event manager for the connection's resources.
    func resources(token: Redacted<String>) async throws(ServiceFailure) -> SignalWire.ConnectionResources {
        try await withClient { client async throws(ServiceFailure) in
            let base = configuration.addresses.events
            let question = Question(
                method: .GET, base: base, path: "/v1/connection", authorization: "Bearer \(token.secret)",
                activity: "ask \(base) for the connection's resources")
            return try await ask(question, of: client, for: SignalWire.ConnectionResources.self)
        }
    }

    /// Base64 of `key:secret` (AUTH-1).
    var appToken: String {
        Base64.text(Array("\(configuration.application.key):\(configuration.application.secret)".utf8))
    }

    func withClient<Result: Sendable>(
        _ body: (HTTPClient) async throws(ServiceFailure) -> Result
    ) async throws(ServiceFailure) -> Result {
        let client = HTTPClient(
            trust: trust,
            within: .init(bodyBytes: SignalLimits.messageBytes, time: timeout, connecting: .seconds(5)),
            // At most one for each of the three services.
            keeping: .init(connections: 3), on: loop)
        let result: Swift.Result<Result, ServiceFailure>
        do throws(ServiceFailure) {
            result = .success(try await body(client))
        } catch {
            result = .failure(error)
        }
        await client.shutDown()
        return try result.get()
    }
}

// MARK: One question and its answer

extension RESTClient {
    struct Question {
        let method: HTTPMethod
        let base: String
        let path: String
        let authorization: String
        /// It may have a token or a password.
        var body: WipedBytes?
        /// To be read after "cannot".
        let activity: String
    }

    func ask<Answer: Decodable>(
        _ question: Question, of client: HTTPClient, for type: Answer.Type
    ) async throws(ServiceFailure) -> Answer {
        let endpoint = try checked(question)
        let base = endpoint.path.hasSuffix("/") ? String(endpoint.path.dropLast()) : endpoint.path
        var request = HTTPFetch.Request(
            question.method, endpoint, target: base + question.path)
        request.secretBody = question.body
        request.headers.add(name: "User-Agent", value: configuration.application.userAgent)
        request.headers.add(name: "Authorization", value: question.authorization)
        request.headers.add(name: "Accept", value: "application/json")
        if question.body != nil {
            request.headers.add(name: "Content-Type", value: "application/json; charset=utf-8")
        }
        let answer: HTTPFetch.Answer
        do {
            answer = try await client.send(request)
        } catch HTTPFetch.Failure.tooLong(let limit) {
            throw notAnExchange(question, "its answer is longer than \(limit) bytes", nil)
        } catch {
            throw .transport(error, to: endpoint, doing: question.activity)
        }
        let traceID = answer.headers.first(name: "Trace-Id")
        guard (200..<300).contains(answer.status) else {
            let wait = answer.headers.first(name: "Retry-After").flatMap { RetryAfter.parse($0, now: .now) }
            throw .rest(
                status: answer.status, body: try? SignalCoding.decode(RESTFailure.self, from: answer.body),
                retryAfter: wait, traceID: traceID, doing: question.activity)
        }
        do throws(SignalCodingError) {
            return try SignalCoding.decode(type, from: answer.body)
        } catch {
            throw notAnExchange(question, "its answer is not that of an exchange: \(error)", traceID)
        }
    }

    private func checked(_ question: Question) throws(ServiceFailure) -> HTTPEndpoint {
        do throws(SignalingError) {
            let endpoint = try HTTPEndpoint.of(question.base)
            try endpoint.check(configuration.plainText, for: question.activity)
            return endpoint
        } catch {
            throw ServiceFailure(error, remedy: .none)
        }
    }

    private func notAnExchange(_ question: Question, _ cause: String, _ traceID: String?) -> ServiceFailure {
        ServiceFailure(
            SignalingError(
                .notAnExchange, activity: question.activity, cause: cause,
                advice: "Check the address: it should be that of an exchange.", traceID: traceID),
            remedy: .none)
    }
}

extension WallClock {
    /// The machine's time of day.
    static var now: WallClock {
        WallClock(unixMilliseconds: Int64((Date().timeIntervalSince1970 * 1_000).rounded()))
    }
}
