internal import Core
internal import CallControl
internal import FoundationEssentials
internal import HTTPTransport
internal import NIOCore
internal import NIOHTTP1
internal import SignalWire
internal import Enrollment
internal import Realtime

/// The calls made before there is a WebSocket: login, identities, resources (contract AUTH-1 to 3, CONN-1).
///
/// A client lives as long as a few calls belong together and is then shut down: between logins nothing is kept.
struct RESTClient: Sendable {
    let configuration: HandsetServiceConfiguration
    let trust: TLSTrust
    let loop: any EventLoop
    /// For one call, connecting included.
    var timeout: TimeAmount = .seconds(10)
    /// Shared by all copies of this client.
    private let servers: ServerChoice
    /// Base URLs of the server that is asked.
    private(set) var addresses: HandsetServiceConfiguration.Addresses

    init(configuration: HandsetServiceConfiguration, trust: TLSTrust, loop: any EventLoop) {
        self.configuration = configuration
        self.trust = trust
        self.loop = loop
        servers = ServerChoice(configuration)
        addresses = configuration.addresses
    }

    /// Asks one server after the other, until one serves.
    func anywhere<Answer>(
        _ ask: (RESTClient) async throws(ServiceFailure) -> Answer
    ) async throws(ServiceFailure) -> Answer {
        var round = servers.round()
        while true {
            var client = self
            client.addresses = round.server
            if let patience = round.patience { client.timeout = min(timeout, .nanoseconds(patience.nanoseconds)) }
            let beginning = MonotonicClock.now
            do throws(ServiceFailure) {
                let answer = try await ask(client)
                servers.note(served: round.server)
                return answer
            } catch {
                if case .end(let failure) = round.step(after: error, took: beginning.duration(to: MonotonicClock.now)) {
                    servers.note(ended: round)
                    throw failure
                }
            }
        }
    }

    /// Asks the event manager for the connection's resources.
    func resources(token: Redacted<String>) async throws(ServiceFailure) -> SignalWire.ConnectionResources {
        try await withClient { client async throws(ServiceFailure) in
            let base = addresses.events
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
        if let epoch = answer.headers.first(name: OwnerEpoch.header).flatMap({ OwnerEpoch($0) }),
            !servers.admits(epoch, at: MonotonicClock.now)
        {
            throw replaced(question, traceID)
        }
        guard (200..<300).contains(answer.status) else {
            let wait = answer.headers.first(name: "Retry-After").flatMap {
                RetryAfter.parse($0, now: MonotonicClock.wallTime)
            }
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

    private func replaced(_ question: Question, _ traceID: String?) -> ServiceFailure {
        ServiceFailure(
            SignalingError(
                .serverUnreachable, activity: question.activity,
                cause: "another exchange has taken over from the one that answered", traceID: traceID),
            remedy: .retry(after: nil))
    }

    private func notAnExchange(_ question: Question, _ cause: String, _ traceID: String?) -> ServiceFailure {
        ServiceFailure(
            SignalingError(
                .notAnExchange, activity: question.activity, cause: cause,
                advice: "Check the address: it should be that of an exchange.", traceID: traceID),
            remedy: .none)
    }
}

// Who this device is: logging in, renewing the token, logging out (contract AUTH-1 to 4, AUTH-9).
extension RESTClient {
    /// What a login gives.
    struct Login: Hashable, Sendable {
        let token: Redacted<String>
        var refreshToken: Redacted<String>?
        /// How long the token is good; `nil` until it is refused.
        var lifetime: Duration?
        var user: String?
        var publicIDs: [String] = []
    }

    /// Logs in with the configured credentials, and requests the user's id.
    func login() async throws(ServiceFailure) -> Login {
        switch configuration.credentials {
        case .mediaToken(let token):
            try await login(LoginRequest(mediaToken: Redacted(token)))
        case .password(let user, let password):
            try await login(LoginRequest(userID: Self.name(user), password: Redacted(password)))
        case .accessToken(let user, let source):
            try await login(LoginRequest(userID: Self.name(user), accessToken: try await source.read()))
        case .sessionToken(let user, let source):
            Self.login(with: try await source.read(), of: user)
        case .key(let user, let key):
            try await login(as: user, by: key)
        case .anonymous(let name):
            try await login(anonymously: name)
        case .kept:
            throw ServiceFailure(
                SignalingError(
                    .notAuthenticated, activity: "log in at \(addresses.authentication)",
                    cause: "no login is kept from earlier, and nothing else to log in with is configured",
                    advice: "Configure a media token, a password, an access token or a session token."),
                remedy: .none)
        }
    }

    /// Gets a new token in place of `old`: from where it came, by its refresh token, or by another login.
    ///
    /// - Parameter isRefused: Whether the service refuses the old one already.
    func renew(_ old: Login, isRefused: Bool) async throws(ServiceFailure) -> Login {
        if case .sessionToken(let user, let source) = configuration.credentials {
            let token = try await source.read()
            guard token == old.token else { return Self.login(with: token, of: user) }
            // The program that writes the file may be a little late.
            throw ServiceFailure(
                SignalingError(
                    .tokenExpired, activity: "renew the access token", cause: "\(source) still gives the old one",
                    advice: "Make it give a new token before the old one expires."),
                remedy: isRefused || source.isFixed ? .none : .retry(after: .seconds(2)))
        }
        if let refreshToken = old.refreshToken {
            do throws(ServiceFailure) {
                return try await refresh(refreshToken, old)
            } catch {
                // A service that is unwell is asked again; one that refuses may yet take the credentials.
                if case .retry = error.remedy { throw error }
                if case .kept = configuration.credentials { throw error }
            }
        }
        return try await login()
    }

    /// Makes the token, and what it was renewed with, worthless (AUTH-9).
    ///
    /// A token that has ended meanwhile is renewed for that: what it is renewed with is still good, and is to end too.
    func logOut(_ login: Login) async throws(ServiceFailure) {
        do throws(ServiceFailure) {
            try await end(login)
        } catch {
            guard error.error.isAboutToken, let refreshToken = login.refreshToken else { throw error }
            try await end(try await refresh(refreshToken, login))
        }
    }

    private func end(_ login: Login) async throws(ServiceFailure) {
        try await withClient { client async throws(ServiceFailure) in try await end(login.token, by: client) }
    }

    private func end(_ token: Redacted<String>, by client: HTTPClient) async throws(ServiceFailure) {
        let base = addresses.authentication
        let question = Question(
            method: .POST, base: base, path: "/v1.1/logout", authorization: "Bearer \(token.secret)",
            activity: "log out at \(base)")
        _ = try await ask(question, of: client, for: Ignored.self)
    }

    private struct Ignored: Decodable {}

    private func refresh(_ token: Redacted<String>, _ old: Login) async throws(ServiceFailure) -> Login {
        let base = addresses.authentication
        let activity = "renew the access token at \(base)"
        let question = Question(
            method: .POST, base: base, path: "/v1.1/token", authorization: "Basic \(appToken)",
            body: try Self.encode(TokenRequest(refreshToken: token), doing: activity), activity: activity)
        let answer = try await withClient { client async throws(ServiceFailure) in
            try await ask(question, of: client, for: LoginResponse.self)
        }
        return Login(
            token: answer.token, refreshToken: answer.refreshToken ?? token, lifetime: answer.lifetime,
            user: answer.id ?? old.user, publicIDs: old.publicIDs)
    }

    /// Signs a challenge (AUTH-13). One that was too old when it came back is asked for once more.
    private func login(as user: String, by key: DeviceLoginKey) async throws(ServiceFailure) -> Login {
        do throws(ServiceFailure) {
            return try await login(try await signedChallenge(as: user, by: key))
        } catch {
            guard error.error.code == .challengeExpired else { throw error }
            return try await login(try await signedChallenge(as: user, by: key))
        }
    }

    private func signedChallenge(as user: String, by key: DeviceLoginKey) async throws(ServiceFailure) -> LoginRequest {
        let base = addresses.authentication
        let activity = "log in at \(base)"
        let id = try Self.name(user)
        guard let publicKey = key.publicKey else {
            throw ServiceFailure(
                SignalingError(.badConfiguration, activity: activity, cause: "the key is not an Ed25519 key"),
                remedy: .none
            )
        }
        let question = Question(
            method: .POST, base: base, path: "/v1.1/login/challenge", authorization: "Basic \(appToken)",
            body: try Self.encode(ChallengeRequest(userID: id, publicKey: publicKey.text), doing: activity),
            activity: activity)
        let answer = try await withClient { client async throws(ServiceFailure) in
            try await ask(question, of: client, for: ChallengeResponse.self)
        }
        let proof = KeyProof.loggingIn(
            user: id.text, enrollment: key.enrollment, key: publicKey, challenge: answer.challenge)
        return LoginRequest(
            userID: id, publicKey: publicKey.text, challenge: answer.challenge, signature: Redacted(key.sign(proof)))
    }

    private func login(_ body: LoginRequest) async throws(ServiceFailure) -> Login {
        let addresses = addresses
        let activity = "log in at \(addresses.authentication)"
        let question = Question(
            method: .POST, base: addresses.authentication, path: "/v1.1/login", authorization: "Basic \(appToken)",
            body: try Self.encode(body, doing: activity), activity: activity)
        return try await withClient { client async throws(ServiceFailure) in
            let answer = try await ask(question, of: client, for: LoginResponse.self)
            let identities: Identities
            do throws(ServiceFailure) {
                identities = try await ask(
                    Question(
                        method: .GET, base: addresses.identity, path: "/v1/allidentities",
                        authorization: "Bearer \(answer.token.secret)",
                        activity: "ask \(addresses.identity) who this user is"),
                    of: client, for: Identities.self)
            } catch {
                // Each attempt makes a login, of which a user has few, and nothing else would end this one. Without an answer
                // the service is not asked again.
                if error.error.traceID != nil { try? await end(answer.token, by: client) }
                throw error
            }
            return Login(
                token: answer.token, refreshToken: answer.refreshToken, lifetime: answer.lifetime, user: answer.id,
                publicIDs: identities.publicIDs.map(\.text))
        }
    }

    private func login(anonymously name: String) async throws(ServiceFailure) -> Login {
        let base = addresses.authentication
        let activity = "log in at \(base)"
        let question = Question(
            method: .POST, base: base, path: "/v1.1/login/anonymous", authorization: "Basic \(appToken)",
            body: try Self.encode(AnonymousLoginRequest(userID: Self.name(name)), doing: activity), activity: activity)
        return try await withClient { client async throws(ServiceFailure) in
            let answer = try await ask(question, of: client, for: AnonymousLoginResponse.self)
            return Login(token: answer.token)
        }
    }

    private static func login(with token: Redacted<String>, of user: String?) -> Login {
        let claims = TokenClaims(token)
        return Login(
            token: token, lifetime: claims?.lifetime(now: Date().timeIntervalSince1970), user: user ?? claims?.user)
    }

    private static func name(_ user: String) throws(ServiceFailure) -> UserID {
        do throws(SignalingError) {
            return try UserID(user, of: "the user's id", doing: "log in")
        } catch {
            throw ServiceFailure(error, remedy: .none)
        }
    }

    /// Writes a request's body, which is overwritten in memory once it was sent.
    static func encode(_ body: some Encodable, doing activity: String) throws(ServiceFailure) -> WipedBytes {
        do throws(SignalCodingError) {
            var text = try SignalCoding.encode(body)
            return WipedBytes(wiping: &text)
        } catch {
            throw ServiceFailure(
                SignalingError(.internalError, activity: activity, cause: "\(error)"), remedy: .none)
        }
    }
}

extension LoginResponse {
    /// How long the token is good. What no clock could hold counts as unknown.
    fileprivate var lifetime: Duration? {
        guard let expiresIn, expiresIn > 0, expiresIn < 1e10 else { return nil }
        return .milliseconds(Int64(expiresIn * 1_000))
    }
}
