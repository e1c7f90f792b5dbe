internal import Core

/// The requests to a TURN server that wait for their answers.
///
/// Repeats them, sends them again with the credentials that the server asks for, and takes only answers that are
/// protected as they must be (RFC 8489 §6.2, §9.2).
struct TURNTransactions: Sendable {
    enum Purpose: Equatable, Sendable {
        case allocate(TURNAllocation.Families)
        case refresh
        case release
        case permission(SocketAddress)
        case channel(SocketAddress, UInt16)
    }

    /// The meaning of a response.
    enum Verdict {
        /// It answers no open request, or is not protected.
        case dropped
        case granted(Purpose)
        case refused(Purpose, STUNErrorCode, serverText: String)
        /// The server does not accept name or password.
        case unauthorized(Purpose, STUNErrorCode, serverText: String)
        /// The server asks for other credentials: the request is to be sent again, in these bytes.
        case challenged([UInt8])
    }

    private struct Request: Sendable {
        let purpose: Purpose
        var id: TransactionID
        var bytes: [UInt8]
        var credentials: TURNCredentials?
        /// How often the server has asked for other credentials.
        var challenges = 0
        var nextSend: Instant
        var interval: Duration
        let end: Instant
    }

    private static let firstInterval = Duration.milliseconds(250)
    private static let allocateTimeout = Duration.seconds(8)
    private static let requestTimeout = Duration.seconds(10)
    private static let releaseTimeout = Duration.seconds(2)
    /// With more challenges than this to one request, the server is considered broken.
    private static let maximumChallenges = 4

    let username: String
    let password: String
    /// The connection is a byte stream, so nothing is repeated.
    let isStream: Bool
    private var generator: any RandomNumberGenerator & Sendable
    private var credentials: TURNCredentials?
    private var requests: [Request] = []

    init(
        username: String, password: String, isStream: Bool, generator: some RandomNumberGenerator & Sendable
    ) {
        self.username = username
        self.password = password
        self.isStream = isStream
        self.generator = generator
    }

    var nextDeadline: Instant? { requests.lazy.map { min($0.nextSend, $0.end) }.min() }

    /// An ID for an indication, which has no answer.
    mutating func transactionID() -> TransactionID { TransactionID(using: &generator) }

    /// Begins a transaction.
    ///
    /// - Returns: The request, to be sent.
    mutating func begin(_ purpose: Purpose, at now: Instant) -> [UInt8] {
        let timeout: Duration =
            switch purpose {
            case .allocate: Self.allocateTimeout
            case .refresh, .permission, .channel: Self.requestTimeout
            case .release: Self.releaseTimeout
            }
        let id = transactionID()
        let end = now.advanced(by: timeout)
        let request = Request(
            purpose: purpose, id: id, bytes: encode(purpose, id), credentials: credentials,
            nextSend: isStream ? end : now.advanced(by: Self.firstInterval), interval: Self.firstInterval, end: end)
        requests.append(request)
        return request.bytes
    }

    private func encode(_ purpose: Purpose, _ id: TransactionID) -> [UInt8] {
        var builder: STUNBuilder
        switch purpose {
        case .allocate(let families):
            builder = STUNBuilder(.request, .allocate, id)
            builder.append(.requestedTransport, [17, 0, 0, 0])  // UDP, by its IP protocol number.
            // A family is written as 1 or 2, with three bytes of padding (RFC 8656 §18.6). A server that does not know
            // the additional one ignores it, and one that does not know the requested one refuses.
            switch families {
            case .both: builder.append(.additionalAddressFamily, [2, 0, 0, 0])
            case .ipv6: builder.append(.requestedAddressFamily, [2, 0, 0, 0])
            case .unsaid: break
            }
        case .refresh, .release:
            builder = STUNBuilder(.request, .refresh, id)
            builder.append(.lifetime, (purpose == .release ? 0 : 600) as UInt32)
        case .permission(let peer):
            builder = STUNBuilder(.request, .createPermission, id)
            builder.append(.xorPeerAddress, peer)
        case .channel(let peer, let number):
            builder = STUNBuilder(.request, .channelBind, id)
            builder.append(.channelNumber, UInt32(number) << 16)
            builder.append(.xorPeerAddress, peer)
        }
        guard let credentials else { return builder.finish() }
        credentials.append(to: &builder)
        return builder.finish(key: credentials.key, integrity: credentials.integrity)
    }

    /// The requests to send again now, and the purposes of those that were unanswered for too long and are given up.
    mutating func takeDue(at now: Instant) -> (repeats: [[UInt8]], overdue: [Purpose]) {
        let overdue = requests.filter { $0.end <= now }.map(\.purpose)
        requests.removeAll { $0.end <= now }
        var repeats: [[UInt8]] = []
        for index in requests.indices where requests[index].nextSend <= now {
            requests[index].interval = min(requests[index].interval * 2, .seconds(2))
            requests[index].nextSend = now.advanced(by: requests[index].interval)
            repeats.append(requests[index].bytes)
        }
        return (repeats, overdue)
    }

    /// No answer is awaited any more.
    mutating func abandonAll() { requests = [] }

    /// Takes a response; it ends the request that it answers.
    mutating func take(_ message: STUNMessage, at now: Instant) -> Verdict {
        guard let index = requests.firstIndex(where: { $0.id == message.transactionID }) else { return .dropped }
        let request = requests[index]
        let integrity = request.credentials.map { message.integrity($0.key) }
        // Success must be protected if the request was; refusals often are not, and only report a failure.
        guard
            integrity != .invalid, message.messageClass == .failure || integrity == .valid || integrity == nil
        else { return .dropped }
        requests.remove(at: index)
        if message.messageClass == .success { return .granted(request.purpose) }
        let (code, text) = message.failure ?? (.badRequest, "")
        guard code == .unauthenticated || code == .staleNonce else {
            return .refused(request.purpose, code, serverText: text)
        }
        guard let bytes = answer(message, code, to: request, at: now) else {
            return .unauthorized(request.purpose, code, serverText: text)
        }
        return .challenged(bytes)
    }

    /// Makes a request again with what the server asks for (RFC 8489 §9.2.5).
    ///
    /// - Returns: nil if the server does not accept name or password, or asks too often.
    private mutating func answer(
        _ challenge: STUNMessage, _ code: STUNErrorCode, to request: Request, at now: Instant
    ) -> [UInt8]? {
        // A 401 to a request with this very realm and nonce means that name or password are wrong.
        let isWrong =
            code == .unauthenticated && request.credentials != nil
            && request.credentials?.nonce == challenge.text(.nonce)
        guard !isWrong, request.challenges < Self.maximumChallenges,
            let answer = TURNCredentials(
                challenge: challenge, username: username, password: password, realm: request.credentials?.realm)
        else { return nil }
        // A 401 with another nonce may mean either; a second one decides.
        credentials = answer
        var again = request
        again.id = transactionID()
        again.bytes = encode(request.purpose, again.id)
        again.credentials = answer
        again.challenges += code == .unauthenticated && request.credentials != nil ? 2 : 1
        again.interval = Self.firstInterval
        again.nextSend = isStream ? again.end : now.advanced(by: Self.firstInterval)
        requests.append(again)
        return again.bytes
    }
}
