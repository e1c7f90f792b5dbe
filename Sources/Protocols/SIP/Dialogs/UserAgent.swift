public import Core

/// The calls of one account (RFC 3261 §8, §12 to §15; RFC 3262, 3311, 3515, 3891, 4028, 6141).
///
/// It holds its transactions and matches messages with dialogs. It knows no media: descriptions pass through as bytes, and
/// each of our INVITEs has an offer.
///
/// Capacity: ``SIPLimits/calls``; an incoming call beyond that is refused with 486, and an outgoing one fails.
public struct UserAgent: ProtocolCore, Sendable {
    var messages: Messenger
    var calls = CallTable()
    private var notifier = MailboxNotifier()

    /// Makes a user agent without calls.
    ///
    /// - Parameter contact: Our `Contact` for requests in dialogs, until ``UserAgentInput/registered(contact:routes:)``.
    /// - Parameter digest: Answers the challenges of our server, to which ``SIPFlow/isToServer`` flows go, and of no
    ///   other host.
    /// - Parameter key: 16 random bytes or more, used for nothing else.
    public init(
        _ configuration: UserAgentConfiguration, contact: AnyURI, key: [UInt8], digest: DigestClient? = nil
    ) {
        messages = Messenger(configuration, contact: contact, key: key, digest: digest)
    }

    var configuration: UserAgentConfiguration { messages.configuration }

    /// The number of calls, including those that wait for the answer to a BYE.
    public var callsInMemory: Int { calls.count }
    /// How many transactions there are.
    public var transactionsInMemory: Int { messages.table.count }
    /// Bytes that the transactions of peers take up.
    public var transactionBytes: Int { messages.table.bytes }
    /// Requests that found no room for their transactions.
    public var refusals: Int { messages.table.refusals }

    /// When ``handle(_:at:into:)`` must next be called.
    public var nextDeadline: Instant? {
        [messages.table.nextDeadline, calls.nextDeadline, notifier.nextDeadline(messages)].compactMap { $0 }.min()
    }

    /// Takes one input.
    public mutating func handle(_ input: UserAgentInput, at now: Instant, into outbox: inout [UserAgentOutput]) {
        messages.forgetOld(at: now)
        switch input {
        case .received(let message, let flow):
            if !flow.isToServer { messages.setCallers(calls.peerHosts(messages.table.known)) }
            pass(.received(message, flow), now, &outbox)
        case .command(let id, let command): handle(command, id, now, &outbox)
        case .registered(let contact, let routes): messages.registered(contact: contact, routes: routes)
        case .flowFailed(let flow): fail(flow, now, &outbox)
        case .moved(let old, let new, let refreshes): move(old, new, refreshes, now, &outbox)
        case .mailbox(let mailbox):
            messages.serveSubscriptions(mailbox != nil)
            feedNotifier(now, &outbox) { $0.set(mailbox, &$1, at: now, into: &$2) }
        case .subscription(let request, let transaction, let flow, let subscriber):
            feedNotifier(now, &outbox) {
                $0.subscribe(request, transaction, by: flow, subscriber: subscriber, &$1, at: now, into: &$2)
            }
        case .served(let flow): feedNotifier(now, &outbox) { $0.registered(by: flow, &$1, at: now, into: &$2) }
        case .endSubscriptions: feedNotifier(now, &outbox) { $0.endAll(&$1, at: now, into: &$2) }
        case .timerFired:
            pass(.timerFired, now, &outbox)
            while let id = calls.popDue(at: now) { fire(id, now, &outbox) }
            feedNotifier(now, &outbox) { $0.notify(&$1, at: now, into: &$2) }
        }
    }

    // MARK: The mailbox

    /// How many subscriptions to the mailbox there are.
    public var subscriptionsInMemory: Int { notifier.subscriptionCount }

    /// Whether a host is our server, or vouches for identities.
    public func isServer(_ flow: SIPFlow) -> Bool { messages.table.known.isServer(flow) }

    private mutating func feedNotifier(
        _ now: Instant, _ outbox: inout [UserAgentOutput],
        _ change: (inout MailboxNotifier, inout Messenger, inout [MailboxNotifier.Effect]) -> Void
    ) {
        var effects: [MailboxNotifier.Effect] = []
        change(&notifier, &messages, &effects)
        for effect in effects {
            switch effect {
            case .respond(let id, let response): respond(id, response, now, &outbox)
            case .send(let number, let request, let flow):
                take(messages.start(number, request, flow, at: now), now, &outbox)
            case .event(let event): outbox.append(.mailbox(event))
            }
        }
    }

    /// A SUBSCRIBE within a dialog.
    ///
    /// - Returns: Whether it belongs to a subscription, and is answered.
    mutating func renewSubscription(
        _ request: SIPRequest, _ transaction: TransactionID, _ flow: SIPFlow, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) -> Bool {
        guard let id = notifier.subscription(of: request) else { return false }
        feedNotifier(now, &outbox) { $0.renew(id, request, transaction, by: flow, &$1, at: now, into: &$2) }
        return true
    }

    /// A response to a NOTIFY of the mailbox, or the failure of one.
    ///
    /// - Returns: Whether the request was one.
    mutating func finishNotice(
        _ number: UInt64, _ status: Int, _ response: SIPResponse?, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) -> Bool {
        guard notifier.hasSent(number) else { return false }
        guard response?.isProvisional != true else { return true }
        feedNotifier(now, &outbox) { $0.finish(number, status, response, &$1, at: now, into: &$2) }
        return true
    }

    /// Whether a peer's request belongs to one of our calls, and comes from its peer, its route or the server.
    public mutating func admits(_ request: SIPRequest, by flow: SIPFlow, at now: Instant) -> Bool {
        if request.method == .subscribe { return notifier.admits(request, by: flow, messages) }
        guard let tag = request.headers.to?.tag, let callID = request.headers.callID,
            let id = calls.call(callID, localTag: tag), let call = calls[id]
        else { return false }
        return messages.isPeer(flow, of: call, with: request.headers.from?.tag, request.method, at: now)
    }

    /// Whether a message from an address may belong to one of our calls.
    public mutating func expects(_ host: SIPHost) -> Bool { calls.peerHosts(messages.table.known).contains(host) }

    /// Messages that name a call or a request of ours, but came from another address.
    public var foreignMessages: ForeignMessages { messages.table.foreign }

    /// The server is at these addresses.
    public mutating func locate(servers: [SIPHost]) { messages.locate(servers: servers) }

    /// The names to look up, because calls have peers there.
    public mutating func takeUnknownNames() -> [String] { messages.takeUnknownNames() }

    /// A name has led to these addresses.
    public mutating func learn(_ name: String, _ hosts: [SIPHost]) {
        messages.learn(name, hosts)
        calls.forgetPeerHosts()
    }

    /// The flow of that number, if a call or a subscription uses it.
    public func flow(_ number: Int) -> SIPFlow? {
        calls.flow(number) ?? notifier.flows.first { $0.id == number }
    }

    /// The INVITE of an incoming call that has not been answered.
    public func invite(of call: SIPCall) -> SIPRequest? {
        guard case .ringing(let ringing)? = calls[call]?.stage else { return nil }
        return ringing.request
    }

    /// Whether the owner's offer waits for an exchange in progress.
    public func hasWaitingOffer(_ call: SIPCall) -> Bool {
        guard case .talking(let talking)? = calls[call]?.stage, let postponed = talking.postponed else { return false }
        return !postponed.isRefresh
    }

    /// By which flows calls and subscriptions go.
    public var flows: [SIPFlow] { notifier.flows.union(calls.flows).sorted { $0.id < $1.id } }

    /// Whether the peer of a call may accept a method; a peer that has not listed its methods may accept any.
    public func mayTake(_ method: SIPMethod, in call: SIPCall) -> Bool {
        guard case .talking(let talking)? = calls[call]?.stage else { return false }
        return talking.dialog.mayAllow(method)
    }

    /// The host that acknowledged our 2xx. It has received the 2xx, because our random tag is in the ACK.
    public func acknowledgingHost(of call: SIPCall) -> SIPHost? {
        guard case .talking(let talking)? = calls[call]?.stage else { return nil }
        return talking.acknowledgedFrom
    }

    /// The flow of a call; `nil` if there is no such call.
    public func flow(of call: SIPCall) -> SIPFlow? { calls[call]?.flow }

    /// The Call-ID of a call; of an outgoing one also before it is placed. `nil` for an incoming call that has ended.
    public func callID(of call: SIPCall) -> String? {
        switch call {
        case .outgoing(let number): messages.callID(ofOutgoing: number)
        case .incoming: calls[call]?.callID
        }
    }

    /// The target of a peer's INVITE that has no final answer: the request's URI, and `To`.
    public func target(of call: SIPCall) -> (uri: AnyURI, to: NameAddress?)? {
        guard case .ringing(let ringing)? = calls[call]?.stage else { return nil }
        return (ringing.request.uri, ringing.request.headers.to)
    }

    /// Sets which challenges are answered from now on.
    public mutating func hold(to trust: DigestTrust) { messages.hold(to: trust) }

    /// Moves calls to another flow: their requests, their retransmissions, and a BYE that was lost with the old flow.
    private mutating func move(
        _ old: SIPFlow, _ new: SIPFlow, _ refreshes: Bool, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        pass(.moved(old, to: new), now, &outbox)
        defer {
            messages.moved(old)
            feedNotifier(now, &outbox) { $0.move(old, to: new, &$1, at: now, into: &$2) }
        }
        for (id, call) in calls.all where call.flow == old {
            switch call.stage {
            case .talking(var talking):
                talking.dialog.move(to: new)
                keep(id, .talking(talking))
                if refreshes { refreshOrPostpone(id, now, &outbox) }
            case .mortal(var mortal):
                mortal.dialog.move(to: new)
                keep(id, .mortal(mortal))
                if let lost = mortal.lost { repeatBye(id, mortal, lost.bye, now, &outbox) }
            case .ringing(var ringing):
                ringing.dialog.move(to: new)
                keep(id, .ringing(ringing))
            case .calling: break
            }
        }
    }

    /// Calls that ring on a flow to our server continue to ring: they are answered on the next flow, or end at their
    /// limit. A peer's flow has no successor, so its callers get a final answer, which may not arrive.
    private mutating func fail(_ flow: SIPFlow, _ now: Instant, _ outbox: inout [UserAgentOutput]) {
        pass(.flowFailed(flow), now, &outbox)
        for (id, call) in calls.all where call.flow == flow {
            guard case .ringing(let ringing) = call.stage, !flow.isToServer else { continue }
            refuse(id, ringing, 480, .failed, now, &outbox)
        }
        notifier.lost(flow)
        messages.lost(flow, used: flows)
    }

    /// Sends our contact to the peer, now or after the exchange in progress.
    private mutating func refreshOrPostpone(_ id: SIPCall, _ now: Instant, _ outbox: inout [UserAgentOutput]) {
        guard case .talking(var talking)? = calls[id]?.stage, talking.endsWithCause == nil,
            !offer(id, talking.description, isRefresh: true, now, &outbox), talking.postponed == nil
        else { return }
        talking.postponed = Call.Talking.PostponedOffer(
            until: now.advanced(by: Call.Talking.PostponedOffer.step), description: talking.description,
            isRefresh: true)
        keep(id, .talking(talking))
    }

    /// Gives the transactions an input, and handles their outputs.
    mutating func pass(_ input: TransactionInput, _ now: Instant, _ outbox: inout [UserAgentOutput]) {
        take(messages.handle(input, at: now), now, &outbox)
    }

    mutating func take(_ outputs: [TransactionOutput], _ now: Instant, _ outbox: inout [UserAgentOutput]) {
        for output in outputs {
            switch output {
            case .transmit(let message, let flow): outbox.append(.transmit(message, flow))
            case .request(let request, let id, let flow): receive(request, id, flow, now, &outbox)
            case .cancelled(let request, let id, _, let invite): cancelled(request, id, invite, now, &outbox)
            case .ack(let request, let flow): acknowledged(request, by: flow, now, &outbox)
            case .response(let response, .client(let number)): receive(response, number, now, &outbox)
            case .timedOut(.client(let number)): failed(number, 408, now, &outbox)
            case .failed(.client(let number)): failed(number, 503, now, &outbox)
            // The peer is gone, and so was the call already.
            case .ackMissing, .response(_, .server), .timedOut(.server), .failed(.server): break
            }
        }
    }

    // MARK: Sending

    /// Sends a request with the headers of all our requests, and tracks it.
    @discardableResult
    mutating func send(
        _ request: SIPRequest, _ kind: RequestUse.Kind, _ call: SIPCall, _ flow: SIPFlow, attempts: Int = 0,
        _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) -> UInt64 {
        let (number, request) = messages.register(request, kind, call, flow, attempts: attempts)
        take(messages.start(number, request, flow, at: now), now, &outbox)
        return number
    }

    /// Answers a request.
    mutating func respond(
        _ id: TransactionID, _ response: SIPResponse, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        take(messages.respond(id, response, at: now), now, &outbox)
    }

    /// Answers a request that belongs to no dialog.
    mutating func refuse(
        _ status: Int, _ request: SIPRequest, _ id: TransactionID, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        respond(id, SIPResponse(status, to: request, toTag: messages.tag()), now, &outbox)
    }

    // MARK: Calls

    mutating func keep(_ id: SIPCall, _ stage: Call.Stage) { calls.keep(id, stage) }

    mutating func forget(_ id: SIPCall) { calls.forget(id) }

    /// Reports an event to the owner. The peer that asked for a transfer also receives the progress and end of its
    /// call.
    mutating func tell(_ id: SIPCall, _ event: CallEvent, _ now: Instant, _ outbox: inout [UserAgentOutput]) {
        outbox.append(.call(id, event))
        guard let origin = calls.transferrer(of: id) else { return }
        switch event {
        case .progress(let status, _): notify(origin, status, isFinal: false, now, &outbox)
        case .accepted:
            calls.endTransfer(by: id)
            notify(origin, 200, isFinal: true, now, &outbox)
        case .ended(let end):
            calls.endTransfer(by: id)
            let status = if case .refused(let status, _) = end { status } else { 503 }
            notify(origin, status, isFinal: true, now, &outbox)
        case .incoming, .confirmed, .offered, .offerWithdrawn, .answered, .offerRefused, .digit, .digitRefused, .info,
            .transferRequested,
            .transferProgress, .transferRefused, .probed:
            break
        }
    }

    /// Ends a confirmed call: with a BYE, unless the peer has ended it or no longer knows it.
    mutating func end(
        _ id: SIPCall, _ talking: Call.Talking, _ end: CallEnd, bye: Bool = true, cause: Int? = nil, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        if case .received(let request, let transaction) = talking.negotiation {
            respond(transaction, SIPResponse(487, to: request), now, &outbox)
        }
        if let referral = talking.referral {
            respond(referral.transaction, SIPResponse(481, to: referral.request), now, &outbox)
        }
        if talking.endsWithCause == nil { tell(id, .ended(end), now, &outbox) }
        guard bye else { return forget(id) }
        leave(id, talking.dialog, cause: cause, now, &outbox)
    }

    /// Sends a BYE and keeps the dialog until it is answered. The owner has the call's end already, or never knew of
    /// the dialog.
    mutating func leave(
        _ id: SIPCall, _ dialog: Dialog, cause: Int? = nil, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        var dialog = dialog
        var request = dialog.request(.bye)
        if let cause { request.headers.append("Reason", "SIP;cause=\(cause)") }
        keep(id, .mortal(Call.Mortal(dialog: dialog)))
        send(request, .bye, id, dialog.flow, now, &outbox)
    }

    /// Sends the BYE again on the dialog's flow, with the next number.
    mutating func repeatBye(
        _ id: SIPCall, _ mortal: Call.Mortal, _ bye: SIPRequest, attempts: Int = 0, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        var mortal = mortal
        mortal.lost = nil
        let request = renumbered(bye, &mortal.dialog)
        keep(id, .mortal(mortal))
        send(request, .bye, id, mortal.dialog.flow, attempts: attempts, now, &outbox)
    }

    // MARK: Time

    private mutating func fire(_ id: SIPCall, _ now: Instant, _ outbox: inout [UserAgentOutput]) {
        guard let call = calls[id] else { return }
        switch call.stage {
        case .calling(let calling):
            if calling.ringLimit <= now { cancel(id, calling, nil, .unanswered, now, &outbox) }
        case .ringing(let ringing): fire(id, ringing, now, &outbox)
        case .talking(let talking): fire(id, talking, now, &outbox)
        case .mortal(let mortal): if let lost = mortal.lost, lost.until <= now { forget(id) }
        }
        // An action that is due and has to wait for another is tried again a little later.
        calls.rearm(id, soonest: now.advanced(by: .milliseconds(100)))
    }

    private mutating func fire(
        _ id: SIPCall, _ talking: Call.Talking, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        var talking = talking
        if var waiting = talking.unacknowledged, waiting.response.deadline <= now {
            // The ACK never came: the session ends (RFC 3261 §13.3.1.4).
            guard waiting.response.limit > now else { return end(id, talking, .lost, now, &outbox) }
            waiting.response.sent(at: now)
            talking.unacknowledged = waiting
            keep(id, .talking(talking))
            pass(.respond(waiting.transaction, waiting.response.response), now, &outbox)
        }
        if var postponed = talking.postponed, postponed.until <= now {
            if case .stable = talking.negotiation, talking.unacknowledged == nil, !messages.isLost(talking.dialog.flow)
            {
                talking.postponed = nil
                keep(id, .talking(talking))
                let description = postponed.isRefresh ? talking.description : postponed.description
                offer(id, description, isRefresh: postponed.isRefresh, now, &outbox)
            } else {
                // Another exchange has begun before, or there is no path to the peer.
                postponed.until = now.advanced(by: Call.Talking.PostponedOffer.step)
                talking.postponed = postponed
                keep(id, .talking(talking))
            }
        }
        guard case .talking(var talking)? = calls[id]?.stage, let timer = talking.timer else { return }
        if timer.isOver(at: now) { return end(id, talking, .lost, now, &outbox) }
        guard timer.isRefreshDue(at: now) else { return }
        // A refresh that fails at once sets the timer again.
        talking.timer = timer.refreshing
        keep(id, .talking(talking))
        guard !offer(id, talking.description, isRefresh: true, now, &outbox) else { return }
        // The exchange in progress may refresh the session, too; if not, this is checked again.
        talking.timer = messages.isLost(talking.dialog.flow) ? timer.refused(least: nil, at: now) : timer
        keep(id, .talking(talking))
    }
}
