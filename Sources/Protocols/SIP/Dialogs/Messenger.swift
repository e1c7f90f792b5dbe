internal import Core

/// Sends the requests and responses of a user agent (RFC 3261 §8): gives them the headers that all of a kind have, our
/// credentials and a transaction, and remembers each request until it is answered.
///
/// Only our server receives our credentials, our product and the account's user.
struct Messenger: Sendable {
    private(set) var configuration: UserAgentConfiguration
    /// Our `Contact` for requests in dialogs: with `transport`, or a GRUU.
    private var contact: AnyURI
    /// Proxies that requests outside of dialogs pass: an outbound proxy, then the `Service-Route`.
    private(set) var routes: [NameAddress] = []
    private(set) var table: TransactionTable
    private var tokens: TokenSource
    private var credentials: ServerCredentials
    private var requests = RequestLedger()
    /// Lost flows, whose calls wait to be moved.
    private var lostFlows: [SIPFlow] = []

    init(_ configuration: UserAgentConfiguration, contact: AnyURI, key: [UInt8], digest: DigestClient?) {
        self.configuration = configuration
        self.contact = contact
        credentials = ServerCredentials(digest)
        tokens = TokenSource(key: key)
        table = TransactionTable(
            tokens: TokenSource(key: key.reversed() + [1]), timers: configuration.timers,
            memory: configuration.transactionMemory)
    }

    /// The registrar has given us this contact, and the way to it.
    mutating func registered(contact: AnyURI, routes: [NameAddress]) {
        self.contact = contact
        self.routes = routes
    }

    /// A new tag.
    mutating func tag() -> String { tokens.next() }

    /// A new random number.
    mutating func number() -> UInt64 { tokens.number() }

    /// The Call-ID of an outgoing call.
    func callID(ofOutgoing number: UInt64) -> String { tokens.token(of: number) }

    /// Gives the transactions an input.
    mutating func handle(_ input: TransactionInput, at now: Instant) -> [TransactionOutput] {
        var outputs: [TransactionOutput] = []
        table.handle(input, at: now, into: &outputs)
        return outputs
    }

    // MARK: Hosts

    /// Messages of these hosts may belong to calls.
    mutating func setCallers(_ hosts: HostSet) { table.callers = hosts }

    mutating func locate(servers: [SIPHost]) { table.locate(servers: servers) }

    mutating func takeUnknownNames() -> [String] { table.known.takeWanted() }

    mutating func learn(_ name: String, _ hosts: [SIPHost]) { table.known.learn(name, hosts) }

    /// Whether a message on a flow comes from a call's peer. If not, it is counted, and names of the call are looked up
    /// for the next time.
    mutating func isPeer(
        _ flow: SIPFlow, of call: Call, with tag: String?, _ method: SIPMethod, at now: Instant
    ) -> Bool {
        let dialog = call.dialog(with: tag)
        if dialog?.isPeer(flow, among: table.known) ?? table.known.isSamePeer(flow, as: call.flow) { return true }
        table.foreign.note(method, by: flow)
        if let dialog { table.known.want(dialog.peerHosts, at: now) }
        return false
    }

    // MARK: Flows

    /// Whether a flow is gone, and its calls have not been moved to another one.
    func isLost(_ flow: SIPFlow) -> Bool { lostFlows.contains(flow) }

    /// A flow is gone; calls go by those that are `used`.
    mutating func lost(_ flow: SIPFlow, used: [SIPFlow]) {
        lostFlows.removeAll { !used.contains($0) }
        if used.contains(flow), !lostFlows.contains(flow) { lostFlows.append(flow) }
    }

    /// The calls of a flow have been moved to another one.
    mutating func moved(_ flow: SIPFlow) { lostFlows.removeAll { $0 == flow } }

    // MARK: Requests

    /// Gives a request the headers that all of its kind have, and a number by which its call can know it before it is
    /// sent.
    mutating func register(
        _ request: SIPRequest, _ kind: RequestUse.Kind, _ call: SIPCall, _ flow: SIPFlow, attempts: Int
    ) -> (UInt64, SIPRequest) {
        var request = request
        complete(&request, by: flow)
        let use = RequestUse(kind: kind, call: call, request: request, flow: flow, attempts: attempts)
        return (requests.add(use), request)
    }

    /// Gives a NOTIFY of the mailbox the same headers, and a number of its own.
    mutating func prepare(_ request: SIPRequest, by flow: SIPFlow) -> (UInt64, SIPRequest) {
        var request = request
        complete(&request, by: flow)
        return (requests.takeNumber(), request)
    }

    private mutating func complete(_ request: inout SIPRequest, by flow: SIPFlow) {
        if [.invite, .update, .refer, .notify, .options].contains(request.method) {
            addContact(&request.headers, as: request.headers.from, by: flow)
        }
        if request.method == .invite || request.method == .update { addAbilities(&request.headers) }
        if let product = configuration.product, table.known.isServer(flow) {
            request.headers.set("User-Agent", product)
        }
        credentials.authorize(&request, by: flow)
    }

    /// Sends a request that ``register(_:_:_:_:attempts:)`` has made.
    mutating func start(
        _ number: UInt64, _ request: SIPRequest, _ flow: SIPFlow, at now: Instant
    ) -> [TransactionOutput] {
        // On a lost flow nothing can be sent, and no failure would be reported.
        if isLost(flow) { return [.failed(.client(number))] }
        return handle(.start(number, request, flow), at: now)
    }

    /// Cancels an INVITE.
    mutating func cancel(
        _ invite: UInt64, _ use: RequestUse, _ headers: SIPHeaders, at now: Instant
    ) -> [TransactionOutput] {
        let number = requests.add(use)
        return handle(.cancel(invite, by: number, headers), at: now)
    }

    /// The request of that number, unless it is answered.
    func request(_ number: UInt64) -> RequestUse? { requests[number] }

    /// The request has its final response, or will have none.
    @discardableResult
    mutating func forget(_ number: UInt64) -> RequestUse? { requests.remove(number) }

    /// Forgets accepted INVITEs whose time is up.
    mutating func forgetOld(at now: Instant) { requests.forgetOld(at: now) }

    /// Sends the ACK of a 2xx, and keeps it for repetitions of that 2xx.
    mutating func acknowledge(
        _ number: UInt64, by tag: String, _ ack: SIPRequest, _ flow: SIPFlow, at now: Instant
    ) -> [TransactionOutput] {
        requests.accept(number, by: tag, ack: ack, until: now.advanced(by: configuration.timers.timeout))
        return handle(.sendWithoutTransaction(ack, flow), at: now)
    }

    // MARK: Credentials

    /// Sets which challenges are answered from now on.
    mutating func hold(to trust: DigestTrust) { credentials.hold(to: trust) }

    /// Handles the challenge to a request, and says whether the request is to be sent again.
    mutating func takeChallenge(_ response: SIPResponse, to use: RequestUse) -> Bool {
        takeChallenge(response, to: use.request, by: use.flow)
    }

    mutating func takeChallenge(_ response: SIPResponse, to request: SIPRequest, by flow: SIPFlow) -> Bool {
        credentials.take(response, to: request, by: flow)
    }

    /// A request that went by that flow was served.
    mutating func succeeded(by flow: SIPFlow) { credentials.succeeded(by: flow) }

    // MARK: Responses

    /// Answers a request; 2xx and 1xx of an INVITE or UPDATE carry our contact and abilities. Only responses to the
    /// server carry our product, so that strangers cannot look for a version with a known fault.
    mutating func respond(_ id: TransactionID, _ response: SIPResponse, at now: Instant) -> [TransactionOutput] {
        var response = response
        let flow = table.flow(of: id)
        let method = response.headers.sequence?.method
        if response.status > 100, response.status < 300, method == .invite || method == .update {
            if let flow { addContact(&response.headers, as: response.headers.to, by: flow) }
            addAbilities(&response.headers)
        }
        if let product = configuration.product, let flow, table.known.isServer(flow) {
            response.headers.set("Server", product)
        }
        return handle(.respond(id, response), at: now)
    }

    // MARK: Headers

    /// Sets the contact for requests in the call: with the account's user to our server, and to other hosts with the
    /// name that they already have for us, so that they do not learn the user.
    func addContact(_ headers: inout SIPHeaders, as name: NameAddress?, by flow: SIPFlow) {
        var contact = contact
        if !table.known.isServer(flow), case .sip(var uri) = contact {
            uri.user = name?.uri.sip?.user
            contact = .sip(uri)
        }
        headers.set("Contact", "<\(contact)>")
    }

    func addAbilities(_ headers: inout SIPHeaders) {
        headers.set("Allow", configuration.screen.allow)
        headers.set("Supported", configuration.screen.supported)
        if configuration.screen.methods.contains(.subscribe) { headers.set("Allow-Events", MessageSummary.event) }
    }

    /// Serves SUBSCRIBE, or refuses it like other methods that are not served.
    mutating func serveSubscriptions(_ areServed: Bool) {
        configuration.screen.methods.removeAll { $0 == .subscribe }
        if areServed { configuration.screen.methods.append(.subscribe) }
    }
}

/// Our requests that wait for a response, and accepted INVITEs, for 2xx that are repeated or come from other forks.
private struct RequestLedger: Sendable {
    private var uses: [UInt64: RequestUse] = [:]
    /// Accepted INVITEs in the order of their end.
    private var accepted: [(until: Instant, number: UInt64)] = []
    private var count: UInt64 = 0

    subscript(number: UInt64) -> RequestUse? { uses[number] }

    mutating func add(_ use: RequestUse) -> UInt64 {
        let number = takeNumber()
        uses[number] = use
        return number
    }

    mutating func takeNumber() -> UInt64 {
        count += 1
        return count
    }

    @discardableResult
    mutating func remove(_ number: UInt64) -> RequestUse? { uses.removeValue(forKey: number) }

    /// The INVITE was accepted by the fork with that tag, and this is the ACK.
    mutating func accept(_ number: UInt64, by tag: String, ack: SIPRequest, until: Instant) {
        guard let use = uses[number] else { return }
        if use.acks.isEmpty { accepted.append((until, number)) }
        uses[number]?.acks[tag] = ack
    }

    /// Forgets accepted INVITEs whose time is up.
    mutating func forgetOld(at now: Instant) {
        while let first = accepted.first, first.until <= now { uses[accepted.removeFirst().number] = nil }
    }
}

/// The account's credentials, which are sent to its server only. No other challenger gets a digest, because it could
/// guess the password from it, or send requests to the server in our name.
private struct ServerCredentials: Sendable {
    private var digest: DigestClient?

    init(_ digest: DigestClient?) { self.digest = digest }

    /// Sets which challenges are answered.
    mutating func hold(to trust: DigestTrust) { digest?.hold(to: trust) }

    /// Replaces a request's credentials by new ones, or removes them if it does not go to the server.
    mutating func authorize(_ request: inout SIPRequest, by flow: SIPFlow) {
        request.headers.removeAll("Authorization")
        request.headers.removeAll("Proxy-Authorization")
        if flow.isToServer { digest?.authorize(&request) }
    }

    /// Handles the challenge to a request that was sent on that flow.
    ///
    /// - Returns: Whether the request is to be sent again.
    mutating func take(_ response: SIPResponse, to request: SIPRequest, by flow: SIPFlow) -> Bool {
        flow.isToServer && digest?.take(response, to: request) == .retry
    }

    /// A request that went by that flow was served.
    mutating func succeeded(by flow: SIPFlow) { if flow.isToServer { digest?.succeeded() } }
}
