public import Core

/// Keeps one binding at a registrar (RFC 3261 §10.2; RFC 3327, 3608, 5626, 5627).
public struct RegistrationMachine: ProtocolCore, Sendable {
    private enum State {
        /// Nothing has been asked, or there is no flow.
        case offline
        case requesting(SIPRequest, attempts: Int)
        case registered(refreshAt: Instant)
        /// It failed and is tried again.
        case waiting(until: Instant)
        case unregistering(SIPRequest, attempts: Int)
        /// Refused for good, or unregistered.
        case ended
    }

    /// Challenges and corrections in a row before it counts as a failure.
    private static let attempts = 6
    /// Refusals in a row, of a registration that was granted before, after which they count: servers that restart, or
    /// that lose their database for a while, know no users. With the usual waits the last refusal comes after a quarter
    /// of an hour.
    public static let patience = 10

    private var configuration: RegistrationConfiguration
    private var digest: DigestClient?
    private var tokens: TokenSource
    private let callID: String
    private let tag: String
    private var sequence: UInt32 = 0
    private var seconds: UInt32
    /// Whether the first hop may know of outbound.
    private var asksForOutbound: Bool
    private var state = State.offline
    private var failures = 0
    /// Refusals in a row. The first one ends a registration that was never served.
    private var refusals = 0
    /// A 423 was followed since the last registration that was granted.
    private var hasFollowedInterval = false
    /// Nothing is sent before this time, on any flow: a wait that the server asked for, or our own after a failure.
    private var notBefore: Instant?
    /// Whether the server asked for that wait.
    private var isServersWait = false
    /// Until when the registrar has our binding; `nil` if it has none.
    private var validUntil: Instant?
    /// The server has accepted a registration before.
    private var hasSucceeded = false

    /// Makes a machine that waits for a flow.
    ///
    /// - Parameter key: 16 random bytes or more, used for nothing else.
    public init(_ configuration: RegistrationConfiguration, key: [UInt8], digest: DigestClient? = nil) {
        self.configuration = configuration
        self.digest = digest
        tokens = TokenSource(key: key)
        callID = tokens.next()
        tag = tokens.next()
        seconds = Self.asked(configuration)
        asksForOutbound = configuration.instance != nil
    }

    private static func asked(_ configuration: RegistrationConfiguration) -> UInt32 {
        max(1, min(configuration.seconds, SIPLimits.seconds))
    }

    /// Whether the registrar has our binding, as far as we know.
    public var isRegistered: Bool { validUntil != nil }

    /// Trust that this server's later challenges must satisfy.
    public var digestTrust: DigestTrust { digest?.trust ?? DigestTrust() }

    /// When ``handle(_:at:into:)`` must next be called.
    public var nextDeadline: Instant? {
        let own: Instant? =
            switch state {
            case .registered(let refreshAt): refreshAt
            case .waiting(let until): until
            case .offline, .requesting, .unregistering, .ended: nil
            }
        return [own, validUntil].compactMap { $0 }.min()
    }

    /// Takes one input.
    public mutating func handle(_ input: RegistrationInput, at now: Instant, into outbox: inout [RegistrationOutput]) {
        switch input {
        case .flowOpened: open(now, &outbox)
        case .serverChanged:
            notBefore = nil
            seconds = Self.asked(configuration)
            hasFollowedInterval = false
        case .networkChanged:
            guard !isServersWait else { break }
            notBefore = nil
            if case .waiting = state { request(attempts: 0, &outbox) }
        case .flowLost: loseFlow(&outbox)
        case .contactChanged(let contact):
            configuration.contact = contact
            switch state {
            case .offline, .unregistering, .ended: break
            case .requesting, .registered: request(attempts: 0, &outbox)
            case .waiting: if validUntil != nil { request(attempts: 0, &outbox) }
            }
        case .unregister: unregister(&outbox)
        case .response(let response): receive(response, now, &outbox)
        case .failed(let status): fail(status, nil, now, &outbox)
        case .timerFired: fire(now, &outbox)
        }
    }

    private mutating func open(_ now: Instant, _ outbox: inout [RegistrationOutput]) {
        switch state {
        case .offline, .waiting, .registered:
            // An accepted connection does not show that the server serves us.
            if let notBefore, notBefore > now { return state = .waiting(until: notBefore) }
            request(attempts: 0, &outbox)
        case .requesting, .unregistering, .ended: break
        }
    }

    private mutating func loseFlow(_ outbox: inout [RegistrationOutput]) {
        switch state {
        case .requesting, .registered, .waiting: state = .offline
        case .unregistering: finish(&outbox)
        case .offline, .ended: return
        }
        // By another flow the registrar cannot reach us.
        if validUntil != nil {
            validUntil = nil
            outbox.append(.lost)
        }
    }

    private mutating func fire(_ now: Instant, _ outbox: inout [RegistrationOutput]) {
        if let until = validUntil, until <= now {
            validUntil = nil
            outbox.append(.lost)
        }
        switch state {
        case .registered(let due) where due <= now: request(attempts: 0, &outbox)
        case .waiting(let due) where due <= now: request(attempts: 0, &outbox)
        case .offline, .requesting, .registered, .waiting, .unregistering, .ended: break
        }
    }

    private mutating func unregister(_ outbox: inout [RegistrationOutput]) {
        // A question has left nothing to remove.
        guard !configuration.isQuery else { return finish(&outbox) }
        switch state {
        case .registered, .requesting, .waiting:
            let request = makeRequest(seconds: 0)
            state = .unregistering(request, attempts: 0)
            outbox.append(.send(request))
        case .offline: finish(&outbox)
        case .unregistering, .ended: break
        }
    }

    private mutating func finish(_ outbox: inout [RegistrationOutput]) {
        state = .ended
        validUntil = nil
        outbox.append(.unregistered)
    }

    // MARK: Requests

    private mutating func request(attempts: Int, _ outbox: inout [RegistrationOutput]) {
        let request = makeRequest(seconds: seconds)
        state = .requesting(request, attempts: attempts)
        outbox.append(.send(request))
    }

    private mutating func makeRequest(seconds: UInt32) -> SIPRequest {
        sequence += 1
        var request = SIPRequest(method: .register, uri: configuration.registrar)
        request.headers.append("Max-Forwards", "70")
        for route in configuration.routes { request.headers.append("Route", route.description) }
        var from = configuration.address
        from.tag = tag
        request.headers.append("From", from.description)
        request.headers.append("To", NameAddress(configuration.address.uri).description)
        request.headers.append("Call-ID", callID)
        request.headers.append("CSeq", CSeq(sequence, .register).description)
        if configuration.isQuery {
            if let product = configuration.product { request.headers.append("User-Agent", product) }
            digest?.authorize(&request)
            return request
        }
        var contact = NameAddress(configuration.contact)
        if let instance = configuration.instance {
            contact.parameters.setQuoted("+sip.instance", "<\(instance)>")
            if asksForOutbound { contact.parameters["reg-id"] = String(configuration.flowNumber) }
        }
        contact.parameters["expires"] = String(seconds)
        request.headers.append("Contact", contact.description)
        request.headers.append("Expires", String(seconds))
        let gruu = configuration.instance == nil ? "" : ", gruu"
        request.headers.append("Supported", "path" + (asksForOutbound ? ", outbound" : "") + gruu)
        request.headers.append("Allow", RequestScreen.userAgent.allow)
        if let product = configuration.product { request.headers.append("User-Agent", product) }
        digest?.authorize(&request)
        return request
    }

    // MARK: Responses

    private mutating func receive(_ response: SIPResponse, _ now: Instant, _ outbox: inout [RegistrationOutput]) {
        guard !response.isProvisional, response.headers.callID == callID,
            response.headers.sequence?.number == sequence
        else { return }
        switch state {
        case .requesting(let request, let attempts):
            if response.isSuccess { return succeed(response, now, &outbox) }
            guard attempts < Self.attempts else { return fail(response.status, response, now, &outbox) }
            correct(response, request, attempts, now, &outbox)
        case .unregistering(let request, let attempts):
            guard response.status == 401 || response.status == 407, attempts < Self.attempts,
                digest?.take(response, to: request) == .retry
            else { return finish(&outbox) }
            let again = makeRequest(seconds: 0)
            state = .unregistering(again, attempts: attempts + 1)
            outbox.append(.send(again))
        case .offline, .registered, .waiting, .ended: break
        }
    }

    /// Does what a refusal asks for, at once, or fails.
    private mutating func correct(
        _ response: SIPResponse, _ request: SIPRequest, _ attempts: Int, _ now: Instant,
        _ outbox: inout [RegistrationOutput]
    ) {
        switch response.status {
        case 401, 407:
            switch digest?.take(response, to: request) {
            case .retry?: self.request(attempts: attempts + 1, &outbox)
            // A server that has accepted these credentials before may have a temporary fault.
            case .rejected?, .unsupported?, nil:
                refuse(.unauthorized, response, now, &outbox)
            }
        case 423:
            guard let least = response.headers.number("Min-Expires"), least > seconds,
                least <= SIPLimits.leastRegistration
            else { return fail(423, response, now, &outbox) }
            seconds = least
            // A registrar that asks for more each time waits as long as one that fails.
            if hasFollowedInterval { return fail(423, response, now, &outbox) }
            hasFollowedInterval = true
            self.request(attempts: attempts + 1, &outbox)
        case 420 where asksForOutbound, 439 where asksForOutbound:
            // The first hop has no outbound (RFC 5626 §4.2.1).
            asksForOutbound = false
            self.request(attempts: attempts + 1, &outbox)
        case 403, 404, 405, 410, 501, 604: refuse(.refused(response.status), response, now, &outbox)
        default: fail(response.status, response, now, &outbox)
        }
    }

    /// The server refuses us: final at once if it never served us, else after ``patience`` refusals in a row.
    private mutating func refuse(
        _ failure: RegistrationFailure, _ response: SIPResponse, _ now: Instant, _ outbox: inout [RegistrationOutput]
    ) {
        refusals += 1
        guard hasSucceeded, refusals < Self.patience else { return end(failure, &outbox) }
        fail(response.status, response, now, &outbox)
    }

    private mutating func end(_ failure: RegistrationFailure, _ outbox: inout [RegistrationOutput]) {
        state = .ended
        outbox.append(.failed(failure))
        if validUntil != nil {
            validUntil = nil
            outbox.append(.lost)
        }
    }

    private mutating func fail(
        _ status: Int, _ response: SIPResponse?, _ now: Instant, _ outbox: inout [RegistrationOutput]
    ) {
        switch state {
        case .requesting: break
        case .unregistering: return finish(&outbox)
        case .offline, .registered, .waiting, .ended: return
        }
        let upper = min(configuration.longestWait, configuration.firstWait * (1 << min(failures, 20)))
        let own = upper * (0.5 + 0.5 * Double(tokens.number() % 1_000) / 1_000)
        var wait = own
        let asked = response?.headers.retryAfterSeconds
        if let asked {
            // All devices of a registrar get the same number, and must not come back at once. One that asks for no time, or for all of
            // it, changes little.
            let seconds = min(asked, SIPLimits.retryAfterSeconds)
            let spread = Duration.milliseconds(Int64(tokens.number() % UInt64(100 * seconds + 1_000)))
            wait = max(own, .seconds(Int64(seconds)) + spread)
        }
        failures += 1
        isServersWait = (asked ?? 0) > 0
        state = .waiting(until: now.advanced(by: wait))
        notBefore = now.advanced(by: wait)
        outbox.append(.failed(.temporary(status, retryAfter: wait)))
    }

    private mutating func succeed(_ response: SIPResponse, _ now: Instant, _ outbox: inout [RegistrationOutput]) {
        digest?.succeeded()
        guard !configuration.isQuery else {
            state = .ended
            return outbox.append(.registered(Registration()))
        }
        let binding = ownBinding(response)
        let granted = granted(response, binding)
        guard granted > 0 else {
            // A registrar that keeps nothing has refused.
            return fail(503, response, now, &outbox)
        }
        // No longer than we asked for, neither without end nor without a pause.
        let longest = max(configuration.seconds, SIPLimits.longestRegistration)
        let counted = max(min(granted, seconds, longest), SIPLimits.shortestRegistration)
        let interval = Duration.seconds(Int64(counted))
        validUntil = now.advanced(by: interval)
        hasSucceeded = true
        failures = 0
        refusals = 0
        hasFollowedInterval = false
        notBefore = nil
        digest?.settle()
        // Early enough for a repetition, and spread, so that not all devices register at once.
        let share = 0.80 + 0.1 * Double(tokens.number() % 1_000) / 1_000
        state = .registered(refreshAt: now.advanced(by: counted < 60 ? interval / 2 : interval * share))
        let gruu = { (name: String) in binding?.parameters[name].flatMap { AnyURI($0) } }
        outbox.append(
            .registered(
                Registration(
                    seconds: granted, serviceRoutes: response.headers.addresses("Service-Route") ?? [],
                    publicGRUU: gruu("pub-gruu"), temporaryGRUU: gruu("temp-gruu"),
                    usesOutbound: response.headers.has(option: "outbound", in: "Require"),
                    keepaliveSeconds: response.headers.number("Flow-Timer").map {
                        min(max($0, SIPLimits.keepaliveSeconds.lowerBound), SIPLimits.keepaliveSeconds.upperBound)
                    })))
    }

    /// Our own binding among all the user's: by instance and flow, or by the URI. `nil` if none is certainly ours, as
    /// when a server has rewritten a contact from behind a NAT.
    private func ownBinding(_ response: SIPResponse) -> NameAddress? {
        let contacts = response.headers.readableContacts
        if let instance = configuration.instance {
            let own = contacts.filter { $0.parameters["+sip.instance"]?.isSame(as: "<\(instance)>") ?? false }
            let number = String(configuration.flowNumber)
            if let exact = own.first(where: { $0.parameters["reg-id"] == number }) { return exact }
            if let same = own.first(where: { $0.uri.isEquivalent(to: configuration.contact) }) { return same }
            if own.count == 1 { return own[0] }
        }
        if let same = contacts.first(where: { $0.uri.isEquivalent(to: configuration.contact) }) { return same }
        guard contacts.count == 1, contacts[0].parameters["+sip.instance"] == nil else { return nil }
        return contacts[0]
    }

    /// Seconds that our binding lasts. If it cannot be found among several, the earliest end counts, because it may be
    /// ours.
    private func granted(_ response: SIPResponse, _ binding: NameAddress?) -> UInt32 {
        let common = response.headers.number("Expires").map { min($0, SIPLimits.seconds) } ?? seconds
        if let binding { return binding.expires ?? common }
        let all = response.headers.readableContacts.map { $0.expires ?? common }
        return all.filter { $0 > 0 }.min() ?? common
    }
}
