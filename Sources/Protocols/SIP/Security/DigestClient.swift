/// Realms and algorithms that a server has used, which its later challenges must keep to.
public struct DigestTrust: Equatable, Sendable {
    /// The realms whose challenges are answered; `nil` for any.
    public var realms: Set<String>?
    /// Realms that have offered more than MD5. Weaker challenges are not answered there, so that an attacker gains
    /// nothing by removing the better offers.
    fileprivate var strong: Set<String> = []

    /// Makes a trust that knows nothing of algorithms.
    public init(realms: Set<String>? = nil) { self.realms = realms }
}

/// Answers the challenges of servers and proxies for one account, and keeps the nonces for later requests
/// (RFC 3261 §22, RFC 8760, RFC 7616).
public struct DigestClient: Sendable, CustomStringConvertible {
    /// The result of a challenge.
    public enum Verdict: Equatable, Sendable {
        /// Send the request again, with a higher `CSeq`: ``authorize(_:)`` adds the credentials.
        case retry
        /// User or password are wrong: the server checked them, and does not only ask for a new nonce.
        case rejected
        /// There is no challenge of a supported scheme and algorithm.
        case unsupported
    }

    private struct Session: Sendable {
        var challenge: DigestChallenge
        var clientNonce: String
        /// The last nonce count that was sent.
        var count: UInt32 = 0
        /// Challenges in a row that called the nonce stale.
        var staleAnswers = 0
    }

    private struct Protection: Hashable, Sendable {
        let realm: String
        let isProxy: Bool
    }

    /// Realms whose challenges are kept. With more, the account is not served.
    private static let realms = 8
    /// Stale nonces in a row after which the server is given up.
    private static let staleAnswers = 3

    private let username: String
    private let password: String
    private let weakest: DigestAlgorithm
    private var tokens: TokenSource
    private var sessions: [Protection: Session] = [:]
    /// Realms and algorithms that the server has used so far.
    public private(set) var trust: DigestTrust

    /// Makes one that has seen no challenge.
    ///
    /// - Parameter weakest: Challenges with weaker algorithms are not answered.
    public init(
        username: String, password: String, tokens: TokenSource, weakest: DigestAlgorithm = .md5,
        trust: DigestTrust = DigestTrust()
    ) {
        self.trust = trust
        self.username = username
        self.password = password
        self.weakest = weakest
        self.tokens = tokens
    }

    /// Without the password.
    public var description: String { "digest credentials of \(username)" }

    /// Answers only challenges that the trust allows from now on, and forgets the challenges of other realms.
    public mutating func hold(to trust: DigestTrust) {
        // A new trust does not remove strong algorithms that the server has offered before.
        let strong = self.trust.strong
        self.trust = trust
        self.trust.strong.formUnion(strong)
        if let realms = trust.realms { sessions = sessions.filter { realms.contains($0.key.realm) } }
    }

    /// The server has accepted us: only the realms that it asked for are answered from now on.
    public mutating func settle() {
        if trust.realms == nil, !sessions.isEmpty { trust.realms = Set(sessions.keys.map(\.realm)) }
    }

    /// Handles the challenges of a 401 or 407 to `request`, which is given as it was sent.
    public mutating func take(_ response: SIPResponse, to request: SIPRequest) -> Verdict {
        let isProxy = response.status == 407
        let best = bestChallenges(response, isProxy: isProxy)
        guard !best.isEmpty else { return .unsupported }
        trust.strong.formUnion(best.filter { $0.algorithm > .md5 }.map(\.realm))
        for challenge in best {
            let protection = Protection(realm: challenge.realm, isProxy: isProxy)
            var session = Session(challenge: challenge, clientNonce: tokens.next())
            if let sent = credentials(in: request, protection), let known = sessions[protection] {
                // A nonce that was accepted before may have expired without `stale`.
                let isFirstUse = known.count <= 1 && sent.parameters["nonce"] == known.challenge.nonce
                if !challenge.isStale, isFirstUse || challenge.nonce == known.challenge.nonce { return .rejected }
                session.staleAnswers = known.staleAnswers + 1
                guard session.staleAnswers <= Self.staleAnswers else { return .rejected }
            }
            guard sessions[protection] != nil || sessions.count < Self.realms else { return .unsupported }
            sessions[protection] = session
        }
        return .retry
    }

    /// A request was served: its nonces are good.
    public mutating func succeeded() {
        for protection in sessions.keys { sessions[protection]?.staleAnswers = 0 }
    }

    /// Replaces a request's credentials by new ones for every realm that is known.
    public mutating func authorize(_ request: inout SIPRequest) {
        request.headers.removeAll("Authorization")
        request.headers.removeAll("Proxy-Authorization")
        for protection in sessions.keys.sorted(by: { $0.realm < $1.realm }) {
            guard var session = sessions[protection] else { continue }
            session.count += 1
            sessions[protection] = session
            request.headers.append(
                protection.isProxy ? "Proxy-Authorization" : "Authorization", text(session, request))
        }
    }

    private func text(_ session: Session, _ request: SIPRequest) -> String {
        let challenge = session.challenge
        let uri = request.uri.description
        let computation = DigestComputation(
            algorithm: challenge.algorithm, isSession: challenge.isSession, realm: challenge.realm,
            nonce: challenge.nonce, quality: challenge.quality, clientNonce: session.clientNonce,
            count: session.count, method: request.method.rawValue, uri: uri, body: request.body)
        let key = DigestComputation.key(
            challenge.algorithm, username: username, realm: challenge.realm, password: password)
        var value = AuthenticationValue(scheme: "Digest")
        value.parameters.setQuoted("username", username)
        value.parameters.setQuoted("realm", challenge.realm)
        value.parameters.setQuoted("nonce", challenge.nonce)
        value.parameters.setQuoted("uri", uri)
        value.parameters.setQuoted("response", computation.response(key: key))
        value.parameters["algorithm"] = challenge.algorithm.rawValue + (challenge.isSession ? "-sess" : "")
        if challenge.quality != nil || challenge.isSession {
            value.parameters.setQuoted("cnonce", session.clientNonce)
        }
        if let quality = challenge.quality {
            value.parameters["qop"] = quality.rawValue
            value.parameters["nc"] = computation.countText
        }
        if let opaque = challenge.opaque { value.parameters.setQuoted("opaque", opaque) }
        return value.description
    }

    /// The strongest challenge of each realm; of equals the first.
    private func bestChallenges(_ response: SIPResponse, isProxy: Bool) -> [DigestChallenge] {
        var best: [DigestChallenge] = []
        for line in response.headers.lines(isProxy ? "Proxy-Authenticate" : "WWW-Authenticate") {
            guard let value = AuthenticationValue(line), let challenge = DigestChallenge(value),
                challenge.algorithm >= weakest, trust.realms?.contains(challenge.realm) ?? true
            else { continue }
            if let index = best.firstIndex(where: { $0.realm == challenge.realm }) {
                if best[index].algorithm < challenge.algorithm { best[index] = challenge }
            } else {
                best.append(challenge)
            }
        }
        return best.filter { $0.algorithm > .md5 || !trust.strong.contains($0.realm) }
    }

    private func credentials(in request: SIPRequest, _ protection: Protection) -> AuthenticationValue? {
        request.headers.lines(protection.isProxy ? "Proxy-Authorization" : "Authorization")
            .compactMap(AuthenticationValue.init).first { $0.parameters["realm"] == protection.realm }
    }
}

/// A challenge that we can meet.
private struct DigestChallenge: Equatable, Sendable {
    let realm: String
    let nonce: String
    let opaque: String?
    let algorithm: DigestAlgorithm
    let isSession: Bool
    let quality: DigestComputation.Quality?
    let isStale: Bool

    /// Reads a challenge; `nil` if its scheme, algorithm or quality of protection is not supported.
    init?(_ value: AuthenticationValue) {
        guard value.scheme.isSame(as: "Digest"), let realm = value.parameters["realm"],
            let nonce = value.parameters["nonce"], !nonce.isEmpty
        else { return nil }
        var name = (value.parameters["algorithm"] ?? DigestAlgorithm.md5.rawValue).uppercased()
        isSession = name.hasSuffix("-SESS")
        if isSession { name.removeLast(5) }
        guard let algorithm = DigestAlgorithm(rawValue: name), algorithm.isAllowed else { return nil }
        self.realm = realm
        self.nonce = nonce
        self.algorithm = algorithm
        opaque = value.parameters["opaque"]
        isStale = value.parameters["stale"]?.isSame(as: "true") ?? false
        guard let qualities = value.parameters["qop"] else {
            quality = nil
            return
        }
        // The body may be changed in transit, so `auth-int` is used only if it is demanded.
        let offered = qualities.split(separator: ",").map { TextScanner.trimmed(Array($0.utf8)[...]).lowercased() }
        guard let quality = [DigestComputation.Quality.auth, .authInt].first(where: { offered.contains($0.rawValue) })
        else { return nil }
        self.quality = quality
    }
}
