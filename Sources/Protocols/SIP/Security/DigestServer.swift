internal import Cryptography
public import Core

/// Challenges requests and checks their credentials (RFC 3261 §22, RFC 8760). Nonces carry their time under an HMAC, so
/// that challenges need no memory; only nonces in use are kept, to refuse repeated counts.
public struct DigestServer: Sendable {
    /// The credentials in a request; the caller looks up the user's key and passes it to
    /// ``DigestServer/verify(_:key:at:)``.
    public struct Claim: Sendable {
        /// The user name that the sender gives.
        public let username: String
        /// The algorithm that the key must be for.
        public let algorithm: DigestAlgorithm
        let computation: DigestComputation
        let response: String
    }

    /// What is known of a request's sender.
    public enum Credentials: Sendable {
        /// There are no usable credentials for our realm: challenge.
        case missing
        /// The nonce is too old or unknown: challenge with `stale`.
        case stale
        /// To be verified.
        case claimed(Claim)
    }

    /// Nonces in use that are kept; with more, the oldest one becomes stale.
    private static let capacity = 4_096

    /// The realm.
    public let realm: String
    private let key: [UInt8]
    private let algorithms: [DigestAlgorithm]
    private let lifetime: Duration
    private var counts: [String: UInt32] = [:]
    private var order: [String] = []
    /// Nonces up to this time that are not in `counts` are stale.
    private var horizon = Instant(nanoseconds: .min)

    /// Makes a server.
    ///
    /// - Parameters:
    ///   - key: 16 random bytes or more.
    ///   - algorithms: Those that are offered, the preferred one first.
    ///   - lifetime: How long a nonce is good.
    public init(
        realm: String, key: [UInt8], algorithms: [DigestAlgorithm] = [.sha512With256, .sha256],
        lifetime: Duration = .seconds(300)
    ) {
        precondition(key.count >= 16, "a digest server needs 16 random bytes or more")
        self.realm = realm
        self.key = key
        self.algorithms = algorithms
        self.lifetime = lifetime
    }

    /// The key of a user, to be stored instead of the password.
    public func key(_ algorithm: DigestAlgorithm, username: String, password: String) -> String {
        DigestComputation.key(algorithm, username: username, realm: realm, password: password)
    }

    /// A 401 or 407 with one challenge for each algorithm, in the order of preference (RFC 8760 §2.3).
    public func challenge(
        _ request: SIPRequest, isProxy: Bool = false, isStale: Bool = false, toTag: String, at now: Instant
    ) -> SIPResponse {
        var response = SIPResponse(isProxy ? 407 : 401, to: request, toTag: toTag)
        for algorithm in algorithms where algorithm.isAllowed {
            var value = AuthenticationValue(scheme: "Digest")
            value.parameters.setQuoted("realm", realm)
            value.parameters.setQuoted("nonce", nonce(at: now))
            value.parameters["algorithm"] = algorithm.rawValue
            value.parameters.setQuoted("qop", "auth,auth-int")
            if isStale { value.parameters["stale"] = "true" }
            response.headers.append(isProxy ? "Proxy-Authenticate" : "WWW-Authenticate", value.description)
        }
        return response
    }

    /// Reads a request's credentials for our realm.
    public func credentials(_ request: SIPRequest, isProxy: Bool = false, at now: Instant) -> Credentials {
        for line in request.headers.lines(isProxy ? "Proxy-Authorization" : "Authorization") {
            guard let value = AuthenticationValue(line), value.scheme.isSame(as: "Digest") else { continue }
            let fields = value.parameters
            guard fields["realm"] == realm, let username = fields["username"], let nonce = fields["nonce"],
                let response = fields["response"], let uri = fields["uri"], let clientNonce = fields["cnonce"],
                let quality = fields["qop"].flatMap({ DigestComputation.Quality(rawValue: $0.lowercased()) }),
                let count = fields["nc"].flatMap({ $0.utf8.count == 8 ? UInt32($0, radix: 16) : nil }),
                let algorithm = DigestAlgorithm(rawValue: (fields["algorithm"] ?? "MD5").uppercased()),
                algorithms.contains(algorithm), AnyURI(uri)?.isEquivalent(to: request.uri) == true
            else { continue }
            guard isFresh(nonce, count: count, at: now) else { return .stale }
            let computation = DigestComputation(
                algorithm: algorithm, isSession: false, realm: realm, nonce: nonce, quality: quality,
                clientNonce: clientNonce, count: count, method: request.method.rawValue, uri: uri, body: request.body)
            return .claimed(
                Claim(username: username, algorithm: algorithm, computation: computation, response: response))
        }
        return .missing
    }

    /// Whether the claim is true. Each count of a nonce is good once.
    ///
    /// - Parameter key: The user's key for the claim's algorithm; for a user that there is not, any text, so that the answer
    ///   takes as long.
    public mutating func verify(_ claim: Claim, key: String, at now: Instant) -> Bool {
        let expected = claim.computation.response(key: key)
        guard !expected.isEmpty, Digest.areEqual(Array(expected.utf8), Array(claim.response.lowercased().utf8)),
            isFresh(claim.computation.nonce, count: claim.computation.count, at: now)
        else { return false }
        let nonce = claim.computation.nonce
        if counts.updateValue(claim.computation.count, forKey: nonce) == nil {
            order.append(nonce)
            if order.count > Self.capacity {
                let oldest = order.removeFirst()
                counts[oldest] = nil
                horizon = max(horizon, issued(oldest) ?? horizon)
            }
        }
        return true
    }

    private func isFresh(_ nonce: String, count: UInt32, at now: Instant) -> Bool {
        guard let issued = issued(nonce), issued <= now, issued.duration(to: now) <= lifetime else { return false }
        if let last = counts[nonce] { return count > last }
        return issued > horizon && count >= 1
    }

    private func nonce(at now: Instant) -> String {
        let time = (0..<8).map { UInt8(truncatingIfNeeded: now.nanoseconds >> (56 - 8 * Int64($0))) }
        return Hexadecimal.text(time + Digest.hmacSHA256(key, time).prefix(16))
    }

    /// When our nonce was issued.
    private func issued(_ nonce: String) -> Instant? {
        guard nonce.utf8.count == 48, let bits = UInt64(nonce.prefix(16), radix: 16) else { return nil }
        let issued = Instant(nanoseconds: Int64(bitPattern: bits))
        return Digest.areEqual(Array(self.nonce(at: issued).utf8), Array(nonce.utf8)) ? issued : nil
    }
}
