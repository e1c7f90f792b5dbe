public import Timekeeping

/// The calls of one account (RFC 3261 §8, §12 to §15; RFC 3262, 3311, 3515, 3891, 4028, 6141).
///
/// It holds its transactions and matches messages with dialogs. It knows no media: descriptions pass through as bytes, and
/// each of our INVITEs has an offer.
///
/// Capacity: ``SIPLimits/calls``; an incoming call beyond that is refused with 486, and an outgoing one fails.
public struct UserAgent: ProtocolCore, Sendable {
    private(set) var configuration: UserAgentConfiguration
    var table: TransactionTable
    var tokens: TokenSource
    var digest: DigestClient?
    var calls: [SIPCall: Call] = [:]
    /// Calls by the Call-ID and our tag.
    var dialogs: [String: SIPCall] = [:]
    var uses: [UInt64: RequestUse] = [:]
    /// INVITEs that were accepted, for the 2xx of other forks, in the order of their end.
    var accepted: [(until: Instant, number: UInt64)] = []
    /// Calls that we place because a peer asked for it, and the call in which it did.
    var transfers: [SIPCall: SIPCall] = [:]
    private var deadlines = DeadlineQueue<SIPCall>()
    private var useCount: UInt64 = 0
    private var callCount: UInt64 = 0

    /// Makes a user agent without calls.
    ///
    /// - Parameter key: 16 random bytes or more, of its own.
    public init(_ configuration: UserAgentConfiguration, key: [UInt8], digest: DigestClient? = nil) {
        self.configuration = configuration
        self.digest = digest
        tokens = TokenSource(key: key)
        table = TransactionTable(tokens: TokenSource(key: key.reversed() + [1]), timers: configuration.timers)
    }

    /// How many calls there are, with those that wait for the answer to a BYE.
    public var callsInMemory: Int { calls.count }
    /// How many transactions there are.
    public var transactionsInMemory: Int { table.count }

    /// When ``handle(_:at:into:)`` must next be called.
    public var nextDeadline: Instant? { [table.nextDeadline, deadlines.next].compactMap { $0 }.min() }

    /// Takes one input.
    public mutating func handle(_ input: UserAgentInput, at now: Instant, into outbox: inout [UserAgentOutput]) {
        while let first = accepted.first, first.until <= now { uses[accepted.removeFirst().number] = nil }
        switch input {
        case .received(let message, let flow): pass(.received(message, flow), now, &outbox)
        case .command(let id, let command): handle(command, id, now, &outbox)
        case .registered(let contact, let routes):
            configuration.contact = contact
            configuration.routes = routes
        case .flowFailed(let flow): pass(.flowFailed(flow), now, &outbox)
        case .moved(let old, let new, let refreshes): move(old, new, refreshes, now, &outbox)
        case .timerFired:
            pass(.timerFired, now, &outbox)
            while let id = deadlines.popDue(at: now) { fire(id, now, &outbox) }
        }
    }

    /// Whether a peer's request belongs to one of our calls.
    public func knowsDialog(of request: SIPRequest) -> Bool {
        guard let tag = request.headers.to?.tag, let callID = request.headers.callID else { return false }
        return dialogs[Self.dialogKey(callID, tag)] != nil
    }

    private mutating func move(
        _ old: SIPFlow, _ new: SIPFlow, _ refreshes: Bool, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        for id in calls.filter({ $0.value.flow == old }).keys.sorted(by: { $0.order < $1.order }) {
            guard case .talking(var talking)? = calls[id]?.stage else { continue }
            talking.dialog.move(to: new)
            keep(id, .talking(talking))
            if refreshes, case .stable = talking.negotiation {
                offer(id, talking.description, isRefresh: true, now, &outbox)
            }
        }
    }

    /// Gives the table an input, and acts on what it says.
    mutating func pass(_ input: TransactionInput, _ now: Instant, _ outbox: inout [UserAgentOutput]) {
        var outputs: [TransactionOutput] = []
        table.handle(input, at: now, into: &outputs)
        for output in outputs {
            switch output {
            case .transmit(let message, let flow): outbox.append(.transmit(message, flow))
            case .request(let request, let id, let flow): receive(request, id, flow, now, &outbox)
            case .cancelled(let request, let id, _, let invite): cancelled(request, id, invite, now, &outbox)
            case .ack(let request, _): acknowledged(request, now, &outbox)
            case .response(let response, .client(let number)): receive(response, number, now, &outbox)
            case .timedOut(.client(let number)): failed(number, 408, now, &outbox)
            case .failed(.client(let number)): failed(number, 503, now, &outbox)
            // The peer is gone, and so was the call already.
            case .ackMissing, .response(_, .server), .timedOut(.server), .failed(.server): break
            }
        }
    }

    // MARK: Sending

    /// Sends a request with the headers that all our requests have, and follows it.
    @discardableResult
    mutating func send(
        _ request: SIPRequest, _ kind: RequestUse.Kind, _ call: SIPCall, _ flow: SIPFlow, attempts: Int = 0,
        _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) -> UInt64 {
        var request = request
        if [.invite, .update, .refer, .notify, .options].contains(request.method) { addContact(&request.headers) }
        if request.method == .invite || request.method == .update { addAbilities(&request.headers) }
        if let product = configuration.product { request.headers.set("User-Agent", product) }
        digest?.authorize(&request)
        useCount += 1
        uses[useCount] = RequestUse(kind: kind, call: call, request: request, flow: flow, attempts: attempts)
        let number = useCount
        pass(.start(number, request, flow), now, &outbox)
        return number
    }

    mutating func nextNumber(_ kind: RequestUse.Kind, _ call: SIPCall, _ request: SIPRequest, _ flow: SIPFlow) -> UInt64
    {
        useCount += 1
        uses[useCount] = RequestUse(kind: kind, call: call, request: request, flow: flow)
        return useCount
    }

    func addContact(_ headers: inout SIPHeaders) { headers.set("Contact", "<\(configuration.contact)>") }

    func addAbilities(_ headers: inout SIPHeaders) {
        headers.set("Allow", configuration.screen.allow)
        headers.set("Supported", configuration.screen.supported)
    }

    /// Answers a request; 2xx and 1xx of an INVITE or UPDATE carry our contact and abilities.
    mutating func respond(
        _ id: TransactionID, _ response: SIPResponse, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        var response = response
        let method = response.headers.sequence?.method
        if response.status > 100, response.status < 300, method == .invite || method == .update {
            addContact(&response.headers)
            addAbilities(&response.headers)
        }
        if let product = configuration.product { response.headers.set("Server", product) }
        pass(.respond(id, response), now, &outbox)
    }

    /// Answers a request that belongs to no dialog.
    mutating func refuse(
        _ status: Int, _ request: SIPRequest, _ id: TransactionID, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        respond(id, SIPResponse(status, to: request, toTag: tokens.next()), now, &outbox)
    }

    // MARK: Calls

    static func dialogKey(_ callID: String, _ localTag: String) -> String { callID + " " + localTag }

    mutating func newIncoming() -> SIPCall {
        callCount += 1
        return .incoming(callCount)
    }

    /// Keeps a call, with its new deadline.
    mutating func keep(_ id: SIPCall, _ stage: Call.Stage) {
        let call = Call(stage: stage)
        calls[id] = call
        deadlines.set(id, call.deadline)
    }

    /// Forgets a call.
    mutating func forget(_ id: SIPCall) {
        guard let call = calls.removeValue(forKey: id) else { return }
        deadlines.set(id, nil)
        switch call.stage {
        case .calling(let calling):
            if let callID = calling.request.headers.callID, let tag = calling.request.headers.from?.tag {
                dialogs[Self.dialogKey(callID, tag)] = nil
            }
        case .ringing(let ringing): forget(ringing.dialog)
        case .talking(let talking): forget(talking.dialog)
        case .mortal(let dialog): forget(dialog)
        }
        transfers[id] = nil
    }

    private mutating func forget(_ dialog: Dialog) { dialogs[Self.dialogKey(dialog.callID, dialog.localTag)] = nil }

    /// Tells the owner; the end of a transfer's call is told to whoever asked for it, too.
    mutating func tell(_ id: SIPCall, _ event: CallEvent, _ now: Instant, _ outbox: inout [UserAgentOutput]) {
        outbox.append(.call(id, event))
        guard let origin = transfers[id] else { return }
        switch event {
        case .progress(let status, _): notify(origin, status, isFinal: false, now, &outbox)
        case .accepted:
            transfers[id] = nil
            notify(origin, 200, isFinal: true, now, &outbox)
        case .ended(let end):
            transfers[id] = nil
            let status = if case .refused(let status, _) = end { status } else { 503 }
            notify(origin, status, isFinal: true, now, &outbox)
        case .incoming, .confirmed, .offered, .answered, .offerRefused, .digit, .info, .transferRequested,
            .transferProgress, .transferRefused:
            break
        }
    }

    /// Ends a confirmed call: with a BYE, unless the peer has ended it or does not know it any more.
    mutating func end(
        _ id: SIPCall, _ talking: Call.Talking, _ end: CallEnd, bye: Bool = true, cause: Int? = nil, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        var talking = talking
        if case .received(let request, let transaction) = talking.negotiation {
            respond(transaction, SIPResponse(487, to: request), now, &outbox)
        }
        if let referral = talking.referral {
            respond(referral.transaction, SIPResponse(481, to: referral.request), now, &outbox)
        }
        if talking.endsWithCause == nil { tell(id, .ended(end), now, &outbox) }
        guard bye else { return forget(id) }
        var request = talking.dialog.request(.bye)
        if let cause { request.headers.append("Reason", "SIP;cause=\(cause)") }
        keep(id, .mortal(talking.dialog))
        send(request, .bye, id, talking.dialog.flow, now, &outbox)
    }

    // MARK: Time

    private mutating func fire(_ id: SIPCall, _ now: Instant, _ outbox: inout [UserAgentOutput]) {
        guard let call = calls[id] else { return }
        switch call.stage {
        case .calling(let calling):
            if calling.ringLimit <= now { cancel(id, calling, nil, .unanswered, now, &outbox) }
        case .ringing(let ringing): fire(id, ringing, now, &outbox)
        case .talking(let talking): fire(id, talking, now, &outbox)
        case .mortal: break
        }
        // What is due and has to wait for something else is looked at again a little later.
        let soonest = now.advanced(by: .milliseconds(100))
        if let call = calls[id] { deadlines.set(id, call.deadline.map { max($0, soonest) }) }
    }

    private mutating func fire(
        _ id: SIPCall, _ talking: Call.Talking, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        var talking = talking
        if var waiting = talking.unacknowledged, waiting.response.deadline <= now {
            // Nobody acknowledges: the session is over (RFC 3261 §13.3.1.4).
            guard waiting.response.limit > now else { return end(id, talking, .lost, now, &outbox) }
            waiting.response.sent(at: now)
            talking.unacknowledged = waiting
            keep(id, .talking(talking))
            pass(.respond(waiting.transaction, waiting.response.response), now, &outbox)
        }
        if var postponed = talking.postponed, postponed.until <= now {
            if case .stable = talking.negotiation, talking.unacknowledged == nil {
                talking.postponed = nil
                keep(id, .talking(talking))
                offer(id, postponed.description, isRefresh: postponed.isRefresh, now, &outbox)
            } else {
                // The peer's offer came first, and is not done with.
                postponed.until = now.advanced(by: .seconds(1))
                talking.postponed = postponed
                keep(id, .talking(talking))
            }
        }
        guard case .talking(var talking)? = calls[id]?.stage, let timer = talking.timer else { return }
        if timer.isOver(at: now) { return end(id, talking, .lost, now, &outbox) }
        guard timer.isRefreshDue(at: now), talking.unacknowledged == nil else { return }
        talking.timer = timer.refreshing
        keep(id, .talking(talking))
        if case .stable = talking.negotiation {
            offer(id, talking.description, isRefresh: true, now, &outbox)
        }
    }
}
