public import CallControl
public import Core
public import SIP

/// An account at a SIP server: keeps a flow and a registration, and carries calls.
///
/// The owner of the sockets and the clock carries out its outputs.
public struct AccountMachine: ProtocolCore, Sendable {
    private enum Phase: Sendable {
        case idle
        case connecting
        case connected
        case reconnecting
        /// The registration is being removed, and calls end; the account closes at that time at the latest.
        case closing(until: Instant)
        case failed

        /// Whether a flow is to be kept.
        var isWanted: Bool {
            switch self {
            case .connecting, .connected, .reconnecting: true
            case .idle, .closing, .failed: false
            }
        }
    }

    /// Maximum wait for the answers to BYE, and to the removal of a registration.
    private static let closingTime = Duration.seconds(1)

    private let settings: SIPAccountSettings
    private let key: [UInt8]
    private let domain: SIPHost
    private let own: UserID
    private var phase = Phase.idle
    private var link: LinkMachine
    private var target: SIPTarget?
    /// The server that the registration went to last.
    private var registrar: SIPTarget?
    /// The realms whose challenges are answered.
    private var trust: DigestTrust
    private var contact: AnyURI
    private var registration: RegistrationMachine?
    private var registrations = 0
    private var requests: TransactionTable
    private var requestCount: UInt64 = 0
    private var calls: AccountCalls
    /// Why the last flow failed.
    private var flowFailure: FlowFailure?
    /// The source of a dropped response, since the flow was opened.
    private var misplaced: SocketAddress?
    /// Messages from other addresses, and how often the log reports them.
    private var foreignCount = 0
    private var foreignOfRequests = 0
    private var foreignLimit = LogLimit(burst: 5, perSecond: 1.0 / 60)
    /// Calls that did not come from the server and were ignored, and how often the log reports them.
    private var strangerCount = 0
    private var strangerLimit = LogLimit(burst: 1, perSecond: 1.0 / 60)
    /// Requests that were refused for lack of room, and how often the log reports them.
    private var refusalCount = 0
    private var refusalLimit = LogLimit(burst: 1, perSecond: 1.0 / 60)
    private var connecting: [UInt64] = []
    private var closing: [UInt64] = []

    /// Makes an account that is not connected; `nil` if the address of record is no SIP URI with a user.
    ///
    /// - Parameter key: 16 random bytes or more, used for nothing else.
    public init?(_ settings: SIPAccountSettings, key: [UInt8]) {
        guard let domain = settings.domain, let user = settings.address.uri.sip?.user else { return nil }
        self.settings = settings
        self.key = key
        self.domain = domain
        own = SIPNames.user(of: settings.address)
        var contact = SIPURI(host: domain)
        contact.user = user
        self.contact = .sip(contact)
        let realms = settings.realms.isEmpty ? nil : settings.realms
        trust = DigestTrust(realms: realms)
        // Until the registrar has named a realm, it is the domain.
        let digest = Self.digest(settings, key + [2], DigestTrust(realms: realms ?? [domain.text]))
        let agent = UserAgent(settings.agent, contact: self.contact, key: key + [1], digest: digest)
        calls = AccountCalls(
            agent, domain: domain, own: own, keepalive: settings.keepalive, trust: settings.identityTrust,
            callees: settings.agent.callees, tokens: TokenSource(key: key + [3]))
        requests = TransactionTable(tokens: TokenSource(key: key + [4]))
        var tokens = TokenSource(key: key + [5])
        link = LinkMachine(keepalive: settings.keepalive, seed: tokens.number())
    }

    private static func digest(_ settings: SIPAccountSettings, _ key: [UInt8], _ trust: DigestTrust) -> DigestClient {
        DigestClient(
            username: settings.username, password: settings.password.text, tokens: TokenSource(key: key), trust: trust)
    }

    /// How the connection is.
    public var connectionState: ConnectionState {
        switch phase {
        case .idle: .notConnected
        case .connecting: .connecting
        case .connected: .connected
        case .reconnecting: .reconnecting
        case .closing: .disconnecting
        case .failed: .failed
        }
    }

    /// This device's user at the server; `nil` until it has connected.
    public var session: SessionGrant? {
        switch phase {
        case .connected, .reconnecting:
            SessionGrant(session: "sip", connection: "sip", user: own, keepalive: settings.keepalive)
        case .idle, .connecting, .closing, .failed: nil
        }
    }

    /// Whether a request that did not come from the server is looked at: any if strangers may call, or else one in a call, from where
    /// its peer or its route is.
    ///
    /// - Parameter flow: Of a peer that is not known yet; its number does not count.
    public mutating func admits(
        _ request: SIPRequest, by flow: SIPFlow, at now: Instant, into outbox: inout [AccountOutput]
    ) -> Bool {
        if settings.acceptsStrangers { return true }
        defer { noteForeign(now, &outbox) }
        if calls.agent.admits(request, by: flow, at: now) { return true }
        if request.method == .invite, request.headers.to?.tag == nil {
            strangerCount += 1
            if strangerLimit.admit(at: now) != nil {
                outbox.append(.note(.strangerRefused(flow.remoteHost, count: strangerCount)))
            }
        }
        return false
    }

    /// Whether there are calls.
    public var hasCalls: Bool { calls.agent.callsInMemory > 0 }

    /// How many peers have subscribed to the mailbox.
    public var subscriptions: Int { calls.agent.subscriptionsInMemory }

    /// Bytes that the transactions of peers take up.
    public var transactionBytes: Int { calls.agent.transactionBytes }

    /// Whether messages from that address may be of a call.
    public mutating func expects(_ host: SIPHost) -> Bool { calls.agent.expects(host) }

    /// Whether a call uses the flow of that number, so that the flow must be kept.
    public func isInUse(_ flow: Int) -> Bool { calls.agent.flow(flow) != nil }

    /// When ``handle(_:at:into:)`` must next be called.
    public var nextDeadline: Instant? {
        var deadlines = [link.nextDeadline, registration?.nextDeadline, requests.nextDeadline, calls.nextDeadline]
        if case .closing(let until) = phase { deadlines.append(until) }
        return deadlines.compactMap { $0 }.min()
    }

    /// Takes one input.
    public mutating func handle(_ input: AccountInput, at now: Instant, into outbox: inout [AccountOutput]) {
        switch input {
        case .request(let ticket, let request): handle(request, ticket, now, &outbox)
        case .resolved(let targets):
            calls.identityTrust.resolved(targets)
            calls.agent.locate(servers: calls.identityTrust.servers)
            requests.locate(servers: calls.identityTrust.servers)
            feed(link: .resolved(targets), now, &outbox)
        case .found(let name, let hosts): calls.agent.learn(name, hosts)
        case .opened(let flow):
            if case .opening(flow.id, _) = calls.stream {
                calls.streamOpened(flow, now, &outbox)
            } else {
                feed(link: .opened(flow), now, &outbox)
            }
        case .failed(let number, let failure):
            flowFailure = failure ?? flowFailure
            calls.streamFailed(number, now, &outbox)
            if number < 0, let flow = calls.agent.flow(number) { calls.loseOther(flow, now, &outbox) }
            feed(link: .failed(number), now, &outbox)
        case .ponged(let number):
            calls.ponged(number)
            feed(link: .ponged(number), now, &outbox)
        case .misplaced(let number, let address): if number == link.flow?.id { misplaced = address }
        case .mapped(let number, let address): feed(link: .mapped(number, address), now, &outbox)
        case .networkChanged(let source):
            feed(link: .networkChanged(source: source), now, &outbox)
            if source != nil, link.flow != nil { feed(registration: .networkChanged, now, &outbox) }
        case .received(let message, let flow): receive(message, flow, now, &outbox)
        case .timerFired: fire(now, &outbox)
        }
        openStream(now, &outbox)
        finishIfQuiet(now, &outbox)
    }

    private mutating func openStream(_ now: Instant, _ outbox: inout [AccountOutput]) {
        guard let target else { return }
        var link = self.link
        guard let number = calls.takeStreamNumber({ link.takeNumber() }, now) else { return }
        self.link = link
        outbox.append(.open(number, SIPTarget(transport: .tcp, address: target.address)))
    }

    private mutating func receive(
        _ message: SIPMessage, _ flow: SIPFlow, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        // Every message shows that the flow is alive.
        calls.heard(flow.id)
        feed(link: .heard(flow.id), now, &outbox)
        if case .response(let response) = message, response.headers.sequence?.method == .register {
            feed(requests: .received(message, flow), now, &outbox)
        } else {
            calls.run(.received(message, flow), now, &outbox)
        }
        noteForeign(now, &outbox)
        noteRefusals(now, &outbox)
    }

    private mutating func noteRefusals(_ now: Instant, _ outbox: inout [AccountOutput]) {
        let count = calls.agent.refusals
        guard count > refusalCount else { return }
        refusalCount = count
        if refusalLimit.admit(at: now) != nil { outbox.append(.note(.overloaded(count: count))) }
    }

    /// Reports messages that were refused for their source, and requests lookups of names that could explain it.
    private mutating func noteForeign(_ now: Instant, _ outbox: inout [AccountOutput]) {
        for name in calls.agent.takeUnknownNames() { outbox.append(.lookUp(name)) }
        let (ofCalls, ofRequests) = (calls.agent.foreignMessages, requests.foreign)
        let count = ofCalls.count + ofRequests.count
        guard count > foreignCount else { return }
        let last = ofRequests.count > foreignOfRequests ? ofRequests : ofCalls
        (foreignCount, foreignOfRequests) = (count, ofRequests.count)
        if foreignLimit.admit(at: now) != nil {
            outbox.append(.note(.foreign(last.method, last.host, count: count)))
        }
    }

    private mutating func fire(_ now: Instant, _ outbox: inout [AccountOutput]) {
        if case .closing(let until) = phase, until <= now { finish(&outbox, now) }
        feed(requests: .timerFired, now, &outbox)
        feed(registration: .timerFired, now, &outbox)
        calls.fire(now, &outbox)
        feed(link: .timerFired, now, &outbox)
    }

    // MARK: What the application asks for

    private mutating func handle(
        _ request: AccountRequest, _ ticket: UInt64, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        switch request {
        case .connect: return connect(ticket, now, &outbox)
        case .disconnect: return disconnect(ticket, now, &outbox)
        case .notify(let messages):
            calls.notify(of: messages, settings.address, now, &outbox)
            return outbox.append(.answer(ticket, .done))
        case .invite, .accept, .reject, .cancel, .hangUp, .send, .probe: break
        }
        guard phase.isWanted else {
            let error = SignalingError(
                .notAuthenticated, activity: "ask the SIP server", cause: "the account is not connected")
            return outbox.append(.answer(ticket, .failed(error)))
        }
        switch request {
        case .invite(let options): calls.invite(options, ticket: ticket, now, &outbox)
        case .accept(let id, let acceptance): calls.accept(id, acceptance, ticket: ticket, now, &outbox)
        case .reject(let id, let rejection): calls.reject(id, rejection, ticket: ticket, now, &outbox)
        case .cancel(let id, let withdrawal): calls.cancel(id, withdrawal, ticket: ticket, now, &outbox)
        case .hangUp(let details): calls.hangUp(details, ticket: ticket, now, &outbox)
        case .send(let signal): calls.send(signal, ticket: ticket, now, &outbox)
        case .probe(let id): calls.probe(id, ticket: ticket, now, &outbox)
        case .connect, .disconnect, .notify: break
        }
    }

    private mutating func connect(_ ticket: UInt64, _ now: Instant, _ outbox: inout [AccountOutput]) {
        switch phase {
        case .connected, .reconnecting: return outbox.append(.answer(ticket, .done))
        case .connecting: return connecting.append(ticket)
        case .closing:
            let error = SignalingError(
                .disconnected, activity: Self.activity, cause: "the account is being disconnected")
            return outbox.append(.answer(ticket, .failed(error)))
        case .idle, .failed: break
        }
        phase = .connecting
        connecting.append(ticket)
        registration = makeRegistration()
        feed(link: .begin, now, &outbox)
    }

    private static let activity = "register at the SIP server"

    private mutating func makeRegistration() -> RegistrationMachine? {
        guard settings.registrationSeconds > 0 else { return nil }
        registrations += 1
        let number = UInt8(truncatingIfNeeded: registrations)
        var configuration = RegistrationConfiguration(
            registrar: .sip(SIPURI(host: domain)), address: settings.address, contact: contact)
        configuration.seconds = settings.registrationSeconds
        configuration.instance = settings.instance
        configuration.product = settings.agent.product
        configuration.firstWait = .seconds(4)
        configuration.longestWait = .seconds(300)
        configuration.isQuery = settings.isTrial
        return RegistrationMachine(
            configuration, key: key + [6, number], digest: Self.digest(settings, key + [7, number], trust))
    }

    private mutating func disconnect(_ ticket: UInt64, _ now: Instant, _ outbox: inout [AccountOutput]) {
        switch phase {
        case .idle, .failed: return outbox.append(.answer(ticket, .done))
        case .closing: return closing.append(ticket)
        case .connecting:
            let error = SignalingError(.disconnected, activity: Self.activity, cause: "it was asked to disconnect")
            answerConnecting(.failed(error), &outbox)
        case .connected, .reconnecting: break
        }
        closing.append(ticket)
        calls.endAll(now, &outbox)
        phase = .closing(until: now.advanced(by: Self.closingTime))
        guard registration != nil else { return finishIfQuiet(now, &outbox) }
        feed(registration: .unregister, now, &outbox)
    }

    /// Closes once the registration is removed and each BYE is answered. Before that, an answer would find no account.
    private mutating func finishIfQuiet(_ now: Instant, _ outbox: inout [AccountOutput]) {
        if case .closing = phase, registration == nil, calls.agent.callsInMemory == 0 { finish(&outbox, now) }
    }

    /// The account is closed.
    private mutating func finish(_ outbox: inout [AccountOutput], _ now: Instant) {
        guard case .closing = phase else { return }
        phase = .idle
        close(now, &outbox)
        outbox.append(.event(.disconnected))
        for ticket in closing { outbox.append(.answer(ticket, .done)) }
        closing = []
    }

    private mutating func close(_ now: Instant, _ outbox: inout [AccountOutput]) {
        registration = nil
        calls.closeStream(now, &outbox)
        feed(link: .end, now, &outbox)
        target = nil
    }

    private mutating func answerConnecting(_ answer: AccountAnswer, _ outbox: inout [AccountOutput]) {
        for ticket in connecting { outbox.append(.answer(ticket, answer)) }
        connecting = []
    }

    // MARK: Connection

    private mutating func connected(_ outbox: inout [AccountOutput]) {
        switch phase {
        case .connecting: outbox.append(.event(.connected))
        case .reconnecting: outbox.append(.event(.reconnected))
        case .idle, .connected, .closing, .failed: return
        }
        phase = .connected
        answerConnecting(.done, &outbox)
    }

    private mutating func disconnected(_ outbox: inout [AccountOutput]) {
        guard case .connected = phase else { return }
        phase = .reconnecting
        outbox.append(.event(.reconnecting))
    }

    /// The account has failed for good: a wrong password, or no such account.
    private mutating func fail(_ error: SignalingError, _ now: Instant, _ outbox: inout [AccountOutput]) {
        switch phase {
        case .connecting, .connected, .reconnecting: break
        case .closing: return finish(&outbox, now)
        case .idle, .failed: return
        }
        calls.abandonAll(now, &outbox)
        phase = .failed
        close(now, &outbox)
        outbox += [.event(.error(error)), .event(.disconnected)]
        answerConnecting(.failed(error), &outbox)
    }

    /// With `givesUpAtOnce`, a temporary failure is final.
    private mutating func failIfAtOnce(
        _ code: SignalingError.Code, _ cause: String, _ advice: String, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        guard settings.givesUpAtOnce, case .connecting = phase else { return }
        fail(SignalingError(code, activity: Self.activity, cause: cause, advice: advice), now, &outbox)
    }

    private mutating func feed(link input: LinkMachine.Input, _ now: Instant, _ outbox: inout [AccountOutput]) {
        var outputs: [LinkMachine.Output] = []
        link.handle(input, at: now, into: &outputs)
        for output in outputs {
            switch output {
            case .resolve: outbox.append(.resolve)
            case .open(let number, let target): outbox.append(.open(number, target))
            case .close(let number): outbox.append(.close(number))
            case .ping(let flow, let keepalive): outbox.append(.ping(flow, keepalive))
            case .up(let flow, let target): open(flow, target, now, &outbox)
            case .down(let flow):
                if phase.isWanted { outbox.append(.note(.flowLost(flow.transport))) }
                feed(registration: .flowLost, now, &outbox)
                feed(requests: .flowFailed(flow), now, &outbox)
                calls.lose(flow, now, &outbox)
                disconnected(&outbox)
                failIfAtOnce(orElse: "the connection ended", now, &outbox)
            case .unreachable(let wait, let obstacle):
                let failure = failure(by: obstacle)
                outbox.append(.note(.unreachable(retryAfter: wait, failure)))
                flowFailure = failure
                failIfAtOnce(orElse: failure.text, now, &outbox)
                flowFailure = nil
            }
        }
    }

    /// The obstacle on the path to the server, to be read after its name.
    private func failure(by obstacle: LinkMachine.Obstacle) -> FlowFailure {
        switch obstacle {
        case .noAddress: FlowFailure("its name has no address")
        case .notOpened(let target):
            flowFailure ?? FlowFailure("\(target) takes no connection within \(LinkMachine.openTimeout.text)")
        case .notServed(let target): FlowFailure("\(target) \(silence)")
        }
    }

    /// A server is silent: a response that came from another port is most likely the missing one.
    private var silence: String {
        guard let misplaced else { return "does not answer" }
        return "does not answer; a response came from \(misplaced), and counts only from where the request went"
    }

    /// No flow leads to the server; the cause is the last flow's failure, if it is known.
    private mutating func failIfAtOnce(orElse cause: String, _ now: Instant, _ outbox: inout [AccountOutput]) {
        failIfAtOnce(
            flowFailure?.isUntrusted == true ? .certificateNotTrusted : .serverUnreachable, flowFailure?.text ?? cause,
            "Check account.sip.server and account.sip.transport, and that the server runs.", now, &outbox)
    }

    private mutating func open(
        _ flow: SIPFlow, _ target: SIPTarget, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        self.target = target
        flowFailure = nil
        misplaced = nil
        var uri = SIPURI(host: flow.localHost, port: flow.localPort)
        uri.user = settings.address.uri.sip?.user
        switch flow.transport {
        case .udp: break
        case .tcp, .tls: uri.parameters["transport"] = flow.transport.rawValue.lowercased()
        // The same for both (RFC 7118 §5.2).
        case .ws, .wss: uri.parameters["transport"] = "ws"
        }
        contact = .sip(uri)
        calls.use(flow, to: target, contact: contact, now, &outbox)
        guard registration != nil else {
            feed(link: .inUse, now, &outbox)
            calls.registered(contact: contact, routes: [], now, &outbox)
            return connected(&outbox)
        }
        if let registrar, registrar != target { feed(registration: .serverChanged, now, &outbox) }
        registrar = target
        feed(registration: .contactChanged(contact), now, &outbox)
        feed(registration: .flowOpened, now, &outbox)
    }

    // MARK: Registration

    private mutating func feed(
        requests input: TransactionInput, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        var outputs: [TransactionOutput] = []
        requests.handle(input, at: now, into: &outputs)
        for output in outputs {
            switch output {
            case .transmit(let message, let flow): outbox.append(.transmit(message, flow))
            case .response(let response, _): feed(registration: .response(response), now, &outbox)
            case .timedOut: feed(registration: .failed(408), now, &outbox)
            case .failed: feed(registration: .failed(503), now, &outbox)
            case .request, .cancelled, .ack, .ackMissing: break
            }
        }
    }

    private mutating func feed(
        registration input: RegistrationInput, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        var outputs: [RegistrationOutput] = []
        registration?.handle(input, at: now, into: &outputs)
        for output in outputs {
            switch output {
            case .send(let request):
                guard let flow = link.flow else { continue }
                requestCount += 1
                feed(requests: .start(requestCount, request, flow), now, &outbox)
            case .registered(let update):
                trust = registration?.digestTrust ?? trust
                if trust.realms != nil { calls.agent.hold(to: trust) }
                registered(update, now, &outbox)
            case .failed(let failure): handle(failure, now, &outbox)
            case .lost: disconnected(&outbox)
            case .unregistered:
                registration = nil
                finishIfQuiet(now, &outbox)
            }
        }
    }

    private mutating func registered(
        _ registration: Registration, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        if !settings.isTrial { outbox.append(.note(.registered(seconds: registration.seconds))) }
        let seconds = registration.keepaliveSeconds
        feed(
            link: .served(keepaliveSeconds: seconds, answersPings: registration.usesOutbound || seconds != nil), now,
            &outbox)
        calls.registered(contact: callContact(registration), routes: registration.serviceRoutes, now, &outbox)
        connected(&outbox)
    }

    /// The contact of calls. A GRUU only if the configuration asks for it: proxies whose registrar assigns one may not
    /// route by it within a call (docs/interop.md).
    private func callContact(_ registration: Registration) -> AnyURI {
        if settings.usesGRUU, let own = registration.publicGRUU { return own }
        guard registration.usesOutbound, case .sip(var uri) = contact else { return contact }
        // Requests to us come back on this flow (RFC 5626 §4.3).
        uri.parameters.insertFlag("ob")
        return .sip(uri)
    }

    private mutating func handle(
        _ failure: RegistrationFailure, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        switch failure {
        case .unauthorized:
            let cause =
                "the server does not accept the name and password, or asks for a proof that Handset does not have"
            let advice = "Check account.user, account.password_file and account.sip.realms."
            fail(SignalingError(.loginRefused, activity: Self.activity, cause: cause, advice: advice), now, &outbox)
        case .refused(let status):
            let cause = "the server says \(status) \(SIPResponse(status: status).reason)"
            let advice = "Check account.sip.address: the server may not know it."
            let isUnknown = settings.isTrial && [404, 410, 604].contains(status)
            fail(
                SignalingError(
                    isUnknown ? .unknownUser : .loginRefused, activity: Self.activity, cause: cause, advice: advice),
                now, &outbox)
        case .temporary(let status, let wait):
            outbox.append(.note(.registrationFailed(status: status, retryAfter: wait)))
            failIfAtOnce(
                status == 408 ? .timedOut : .serverError,
                status == 408
                    ? "the server \(silence)" : "the server says \(status) \(SIPResponse(status: status).reason)",
                "Try again later.", now, &outbox)
            // Another of the server's addresses may serve us; one that does not answer is not asked again.
            if status == 408 || status == 503 && link.hasAlternative { feed(link: .notServed, now, &outbox) }
        }
    }
}
