internal import CallControl
internal import Core
internal import SIP
internal import Tracing

extension SIPHeaderName {
    /// Our own header, with the value of HTTP's (W3C Trace Context §3.2): no standard names one for SIP.
    static let traceparent = SIPHeaderName("Traceparent")
    /// Our own header. `Max-Forwards` counts servers, not calls, and providers judge callers by `Diversion` and `History-Info`.
    static let hops = SIPHeaderName("Handset-Hops")
}

extension SIPHeaders {
    /// Adds the count of the calls that led to a call, and `Max-Forwards` where another than that of a new request applies.
    fileprivate mutating func append(_ hops: CallHops) {
        if hops.count > 0 { append(.hops, String(hops.count)) }
        if let forwards = hops.forwards { append("Max-Forwards", String(forwards)) }
    }
}

extension CallHops {
    /// Reads those of an INVITE. A count that is no number is none; without `Max-Forwards` each `Via` counts (RFC 7332 §4).
    fileprivate init(_ headers: SIPHeaders) {
        self.init(
            headers.number(.hops).map { Int($0) } ?? 0,
            forwards: headers.number("Max-Forwards").map { Int($0) } ?? Self.mostForwards - headers.count("Via"))
    }
}

/// The calls of an account: turns the application's requests into commands for the user agent, and the user agent's
/// events into events of the contract (docs/sip.md).
struct AccountCalls: Sendable {
    /// A connection for requests that are too large for datagrams (RFC 3261 §18.1.1).
    enum Stream: Sendable {
        case none
        case opening(Int, until: Instant)
        case open(SIPFlow, StreamKeepalive)
        /// The server accepts no connection; it is not tried again before that time.
        case refused(until: Instant)
    }

    /// The longest request that is sent as a datagram (RFC 3261 §18.1.1).
    private static let datagramBytes = 1_300
    /// Bytes of an INVITE besides its description, with credentials and routes.
    private static let headerBytes = 1_000
    /// Delay from an INVITE's arrival to 180, so that a device that refuses at once does not ring.
    private static let ringDelay = Duration.milliseconds(50)
    /// Time after which an invite counts as under way although the server is silent.
    private static let takenAfter = Duration.seconds(1)
    static let gatheringTime = Duration.milliseconds(500)
    static let answerTime = Duration.seconds(4)
    /// A peer that sends no report on a transfer for this duration does not carry it out. It equals the longest ringing
    /// time.
    private static let transferTime = Duration.seconds(180)
    private static let streamTime = Duration.seconds(3)
    private static let refusedFor = Duration.seconds(600)
    /// Commands that wait while there is no flow.
    private static let mostWaiting = 512

    var agent: UserAgent
    let names: SIPNames
    var identityTrust: IdentityTrust
    /// The callees that a third party may name.
    private let callees: CalleeList
    private let own: UserID
    private let keepalive: Duration
    private var tokens: TokenSource
    private(set) var calls: [InviteID: AccountCall] = [:]
    private var invites: [SIPCall: InviteID] = [:]
    private var callCount: UInt64 = 0
    /// As many as a device remembers.
    private var known = SeenInvites()
    /// The flow to the server, and lost flows that calls may still use.
    private var flow: SIPFlow?
    private var lostFlows: [SIPFlow] = []
    /// The server's address at the end of the flow.
    private var server: SIPTarget?
    private(set) var stream = Stream.none
    private var waiting: [(SIPCall, CallCommand)] = []
    /// Notes of peers' offers that were refused, of which a peer may send any number: twenty at once, and ten a minute.
    private var refusedOffers = LogLimit(burst: 20, perSecond: 1.0 / 6)
    /// Notes of notifications that were refused.
    private var mailboxNotes = LogLimit(burst: 5, perSecond: 1.0 / 60)

    init(
        _ agent: UserAgent, domain: SIPHost, own: UserID, keepalive: Duration, trust: IdentityTrust,
        callees: CalleeList, tokens: TokenSource
    ) {
        self.agent = agent
        identityTrust = trust
        self.callees = callees
        self.own = own
        self.keepalive = keepalive
        self.tokens = tokens
        names = SIPNames(domain: domain)
    }

    var nextDeadline: Instant? {
        var deadlines = calls.values.compactMap(\.deadline)
        if let next = agent.nextDeadline { deadlines.append(next) }
        switch stream {
        case .opening(_, let until): deadlines.append(until)
        case .open(_, let keepalive): deadlines.append(keepalive.deadline)
        case .none, .refused: break
        }
        return deadlines.min()
    }

    // MARK: Flows

    /// There is a flow to the server, or another one.
    mutating func use(
        _ flow: SIPFlow, to target: SIPTarget, contact: AnyURI, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        self.flow = flow
        let isOther = server.map { !$0.address.isSame(as: target.address) } ?? false
        server = target
        leaveStream(isOther: isOther, for: flow, now, &outbox)
        for other in agent.flows where !other.isToServer && other.localHost != flow.localHost {
            // Before it closes, callers that ring on it are answered.
            run(.flowFailed(other), now, &outbox)
            outbox.append(.close(other.id))
            if agent.flow(other.id) != nil { noteLost(other) }
        }
        run(.registered(contact: contact, routes: []), now, &outbox)
    }

    /// Closes the connection for large requests if it is unusable: it comes from an address that is no longer ours, or
    /// leads to the previous server, which does not know us any more.
    private mutating func leaveStream(
        isOther: Bool, for flow: SIPFlow, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        switch stream {
        case .open(let old, _):
            guard isOther || old.localHost != flow.localHost else { return }
            outbox.append(.close(old.id))
            lose(old, now, &outbox)
        case .opening(let number, _):
            guard isOther else { return }
            outbox.append(.close(number))
            stream = .none
        // Another server may take connections.
        case .refused: if isOther { stream = .none }
        case .none: break
        }
    }

    /// The account is registered, so established calls can continue on the new flow.
    mutating func registered(
        contact: AnyURI, routes: [NameAddress], _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        run(.registered(contact: contact, routes: routes), now, &outbox)
        guard let flow else { return }
        let lost = lostFlows
        lostFlows = []
        var former: [SIPHost] = []
        for lost in lost {
            let isSameHost = lost.localHost == flow.localHost
            run(.moved(lost, to: flow, refreshes: isSameHost), now, &outbox)
            if !isSameHost, !former.contains(lost.localHost) { former.append(lost.localHost) }
        }
        let commands = waiting
        waiting = []
        // A call that was accepted meanwhile gets its dialog only now, with our address.
        for (call, command) in commands where command.answersInvite { run(.command(call, command), now, &outbox) }
        readdress(from: former, to: flow.localHost, now, &outbox)
        for (call, command) in commands where !command.answersInvite { run(.command(call, command), now, &outbox) }
        run(.served(flow), now, &outbox)
    }

    /// Our address changed: sends peers the new address for media, and our new contact. Peers that have not confirmed
    /// an earlier change get the offer again.
    private mutating func readdress(
        from former: [SIPHost], to new: SIPHost, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        for (id, call) in calls.sorted(by: { $0.key < $1.key }) where call.isTalking {
            guard !former.isEmpty || call.pendingAddress != nil else { continue }
            var pendingAddress = call.pendingAddress ?? AccountCall.PendingAddress()
            pendingAddress.add(former)
            calls[id]?.ours = pendingAddress.readdressed(call.ours, to: new) ?? call.ours
            calls[id]?.pendingAddress = pendingAddress
            tellAddress(of: id, now, &outbox)
        }
    }

    /// Offers our description with our new address, unless an offer is in progress. It follows that
    /// offer if that one has another address.
    private mutating func tellAddress(of id: InviteID, _ now: Instant, _ outbox: inout [AccountOutput]) {
        guard let call = calls[id], call.ourOffer == nil, let pendingAddress = call.pendingAddress,
            !pendingAddress.isOut,
            let way = agent.flow(of: call.sip), !lostFlows.contains(way)
        else { return }
        calls[id]?.pendingAddress?.isOut = true
        calls[id]?.pendingAddress?.retryAt = nil
        run(.command(call.sip, .offer(call.ours)), now, &outbox)
    }

    /// An offer was refused, so that the peer may not know our address.
    private mutating func tellAddressAgain(_ id: InviteID, _ now: Instant) {
        guard var pendingAddress = calls[id]?.pendingAddress else { return }
        pendingAddress.refused(at: now)
        calls[id]?.pendingAddress = pendingAddress
    }

    /// A flow is gone: the server's, the one for large requests, or a stranger's.
    mutating func lose(_ lost: SIPFlow, _ now: Instant, _ outbox: inout [AccountOutput]) {
        if flow == lost {
            flow = nil
            noteLost(lost)
        }
        if case .open(lost, _) = stream {
            stream = .none
            if let flow {
                run(.moved(lost, to: flow, refreshes: false), now, &outbox)
            } else {
                noteLost(lost)
            }
        }
        run(.flowFailed(lost), now, &outbox)
    }

    private mutating func noteLost(_ flow: SIPFlow) {
        if !lostFlows.contains(flow) { lostFlows.append(flow) }
    }

    /// The flow to another node of the server, or to a stranger, is gone: its calls continue on the flow to the server.
    /// Calls that ring on the lost flow end, because their callers can be answered on no other flow.
    mutating func loseOther(_ lost: SIPFlow, _ now: Instant, _ outbox: inout [AccountOutput]) {
        run(.flowFailed(lost), now, &outbox)
        guard agent.flow(lost.id) != nil else { return }
        guard let flow else { return noteLost(lost) }
        run(.moved(lost, to: flow, refreshes: false), now, &outbox)
        if flow.localHost != lost.localHost { readdress(from: [lost.localHost], to: flow.localHost, now, &outbox) }
    }

    /// The connection for large requests is open.
    mutating func streamOpened(_ opened: SIPFlow, _ now: Instant, _ outbox: inout [AccountOutput]) {
        guard case .opening(opened.id, _) = stream else { return outbox.append(.close(opened.id)) }
        stream = .open(opened, StreamKeepalive(interval: keepalive, at: now))
        placeWaiting(now, &outbox)
    }

    /// Data came on that flow.
    mutating func heard(_ number: Int) {
        guard case .open(let open, var keepalive) = stream, open.id == number else { return }
        keepalive.heard()
        stream = .open(open, keepalive)
    }

    /// A ping by that flow was answered.
    mutating func ponged(_ number: Int) {
        guard case .open(let open, var keepalive) = stream, open.id == number else { return }
        keepalive.ponged()
        stream = .open(open, keepalive)
    }

    private mutating func keepStreamAlive(_ now: Instant, _ outbox: inout [AccountOutput]) {
        guard case .open(let open, var keepalive) = stream else { return }
        let due = keepalive.fire(at: now)
        stream = .open(open, keepalive)
        switch due {
        case .nothing: break
        case .ping: outbox.append(.ping(open, .lineEnds))
        case .dead:
            outbox.append(.close(open.id))
            lose(open, now, &outbox)
        }
    }

    /// The connection of that number cannot be opened, or has ended.
    mutating func streamFailed(_ number: Int, _ now: Instant, _ outbox: inout [AccountOutput]) {
        switch stream {
        case .opening(number, _):
            stream = .refused(until: now.advanced(by: Self.refusedFor))
            placeWaiting(now, &outbox)
        case .open(let open, _) where open.id == number: lose(open, now, &outbox)
        case .none, .opening, .open, .refused: break
        }
    }

    /// The account is closed.
    mutating func closeStream(_ now: Instant, _ outbox: inout [AccountOutput]) {
        switch stream {
        case .opening(let number, _): outbox.append(.close(number))
        case .open(let open, _):
            outbox.append(.close(open.id))
            run(.flowFailed(open), now, &outbox)
        case .none, .refused: break
        }
        stream = .none
        lostFlows = []
    }

    private mutating func placeWaiting(_ now: Instant, _ outbox: inout [AccountOutput]) {
        for call in calls.values.sorted(by: { $0.sip.order < $1.sip.order }) {
            if case .preparing(nil) = call.phase { place(call.invite, now, &outbox) }
        }
    }

    /// Begins to open the connection that a call waits for.
    ///
    /// - Returns: Whether a connection is needed and is not being opened yet.
    mutating func takeStreamNumber(_ number: () -> Int, _ now: Instant) -> Int? {
        guard case .none = stream, flow?.transport == .udp,
            calls.values.contains(where: { if case .preparing(nil) = $0.phase { true } else { false } })
        else { return nil }
        let number = number()
        stream = .opening(number, until: now.advanced(by: Self.streamTime))
        return number
    }

    /// The flow for a request of that many bytes; `nil` while a connection for it is being opened.
    private mutating func flow(forBytes count: Int, _ now: Instant) -> SIPFlow? {
        guard let flow else { return nil }
        guard flow.transport == .udp, count > Self.datagramBytes else { return flow }
        switch stream {
        case .open(let stream, _): return stream
        case .none, .opening: return nil
        case .refused(let until):
            if until <= now { stream = .none }
            return until <= now ? nil : flow
        }
    }

    // MARK: Messages and time

    mutating func run(_ input: UserAgentInput, _ now: Instant, _ outbox: inout [AccountOutput]) {
        var outputs: [UserAgentOutput] = []
        agent.handle(input, at: now, into: &outputs)
        for output in outputs {
            switch output {
            case .transmit(let message, let flow): outbox.append(.transmit(message, flow))
            case .call(let call, let event): handle(event, of: call, now, &outbox)
            case .subscription(let request, let transaction, let flow):
                let name = subscriber(request, by: flow)
                run(.subscription(request, transaction, flow, subscriber: name), now, &outbox)
            case .mailbox(let event): note(event, now, &outbox)
            }
        }
    }

    // MARK: The mailbox

    /// What waits in the mailbox of this address, and who is notified of it.
    mutating func notify(
        of messages: WaitingMessages?, _ address: NameAddress, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        let mailbox = messages.map { messages in
            SIPMailbox(
                summary: MessageSummary(new: messages.new, old: messages.old, account: "\(address.uri)"),
                subscribers: messages.subscribers, targets: messages.targets.compactMap { names.uri(of: $0) })
        }
        run(.mailbox(mailbox), now, &outbox)
    }

    /// Who asks to subscribe: as a peer asserts that the configuration names, or else as our server has let it pass in `From`. The word of
    /// any other host does not count, because our NOTIFYs, repeated ten times, could go to a third party.
    private func subscriber(_ request: SIPRequest, by flow: SIPFlow) -> Callee? {
        guard agent.isServer(flow) else { return nil }
        guard identityTrust.vouches(for: request, by: flow) else {
            return CallerIdentity(request.headers, isTrusted: false)?.address.uri.callee(of: names.domain)
        }
        // Also if the peer wants `From` to be shown: that may be any name.
        return request.headers.assertedIdentities.first?.uri.callee(of: names.domain)
    }

    private mutating func note(_ event: MailboxEvent, _ now: Instant, _ outbox: inout [AccountOutput]) {
        switch event {
        case .subscribed, .unsubscribed, .lost: break
        case .refused, .undelivered: guard mailboxNotes.admit(at: now) != nil else { return }
        }
        outbox.append(.note(.mailbox(event)))
    }

    /// Gives a call a command, now or once it has another flow than the one that is gone.
    private mutating func command(
        _ call: SIPCall, _ command: CallCommand, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        guard let way = agent.flow(of: call), lostFlows.contains(way), waiting.count < Self.mostWaiting else {
            return run(.command(call, command), now, &outbox)
        }
        // After an end no other command matters.
        if command.isEnd { waiting.removeAll { $0.0 == call } }
        waiting.append((call, command))
    }

    mutating func fire(_ now: Instant, _ outbox: inout [AccountOutput]) {
        run(.timerFired, now, &outbox)
        if case .opening(let number, let until) = stream, until <= now {
            outbox.append(.close(number))
            streamFailed(number, now, &outbox)
        }
        keepStreamAlive(now, &outbox)
        let due = calls.values.filter { $0.deadline.map { $0 <= now } ?? false }
        for call in due.sorted(by: { $0.sip.order < $1.sip.order }) { fire(call, now, &outbox) }
    }

    private mutating func fire(_ due: AccountCall, _ now: Instant, _ outbox: inout [AccountOutput]) {
        let id = due.invite
        if case .waits(let until, _, _) = due.peerOffer, until <= now {
            calls[id]?.dropOffer(at: now)
            noteRefusedOffer(in: due, now, &outbox)
            run(.command(due.sip, .refuseOffer), now, &outbox)
        }
        if case .wantsOurs(let until) = due.peerOffer, until <= now { offerAgain(due, now, &outbox) }
        if let until = due.transferUntil, until <= now {
            calls[id]?.transferUntil = nil
            tell(.transferProgress(.failed), of: due, &outbox)
        }
        if let retryAt = due.pendingAddress?.retryAt, retryAt <= now {
            calls[id]?.pendingAddress?.retryAt = nil
            tellAddress(of: id, now, &outbox)
        }
        switch due.phase {
        case .preparing, .calling:
            if let expires = due.dial?.expires, expires <= now {
                take(id, now, &outbox)
                outbox.append(.event(.inviteTimedOut(id, invitees: [due.peer])))
                return end(id, cause: nil, now, &outbox)
            }
        case .ringing, .accepting, .talking: break
        }
        switch due.phase {
        case .preparing(let gathering?):
            guard gathering.until <= now else { return }
            gathered(id, gathering, now, &outbox)
        case .calling(let takenAt): if takenAt <= now { take(id, now, &outbox) }
        case .ringing(let ringAt?):
            guard ringAt <= now else { return }
            ringIfDue(id, now, &outbox)
        case .accepting(let gathering, _):
            guard gathering.until <= now else { return }
            gathered(id, gathering, now, &outbox)
        case .preparing(nil), .ringing(nil), .talking: break
        }
    }

    // MARK: Our calls

    mutating func invite(
        _ options: InviteOptions, ticket: UInt64, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        let activity = "invite \(options.to)"
        func refuse(_ code: SignalingError.Code, _ cause: String, _ advice: String = "") {
            let error = SignalingError(code, activity: activity, cause: cause, advice: advice)
            outbox.append(.answer(ticket, .failed(error)))
        }
        guard options.group == nil, options.others.isEmpty else {
            return refuse(.invalidRequest, "a SIP server takes an invite to one user only")
        }
        guard let offer = options.offer?.sdp else {
            return refuse(.invalidRequest, "SIP carries calls only, and the invite has no offer of media")
        }
        guard let uri = names.uri(of: options.to) else {
            return refuse(
                .unknownUser, "this is not an address for SIP", "It should look like alice, or alice@example.org.")
        }
        guard flow != nil else { return refuse(.disconnected, "there is no connection to the server") }
        guard calls.count < SIPLimits.calls else {
            return refuse(.tooManyRequests, "there are as many calls as there may be")
        }
        callCount += 1
        let sip = SIPCall.outgoing(callCount)
        let id = newInvite(for: sip)
        let gathers = DescriptionText.awaitsCandidates(offer)
        var call = AccountCall(
            invite: id, sip: sip, peer: options.to,
            phase: .preparing(gathers ? AccountCall.Gathering(until: now.advanced(by: Self.gatheringTime)) : nil),
            ours: Array(offer.utf8))
        call.dial = AccountCall.Dial(
            uri: uri, key: options.idempotencyKey, ticket: ticket,
            expires: options.timeToLive.map { now.advanced(by: $0) })
        if let trace = options.trace { call.dial?.headers.append(.traceparent, "\(trace)") }
        call.dial?.headers.append(options.hops)
        if let origin = options.transfer?.invite {
            guard let asked = calls[origin], asked.referral != nil else {
                return refuse(.inviteEnded, "no peer requests this transfer any more")
            }
            calls[origin]?.referral = nil
            call.dial?.origin = asked.sip
        }
        calls[id] = call
        invites[sip] = id
        // The application sends no candidates before it has the invite's id.
        if gathers { take(id, now, &outbox) } else { place(id, now, &outbox) }
    }

    /// Sends the INVITE of a prepared call, if there is a flow for it.
    private mutating func place(_ id: InviteID, _ now: Instant, _ outbox: inout [AccountOutput]) {
        guard var call = calls[id], let dial = call.dial else { return }
        call.phase = .preparing(nil)
        calls[id] = call
        guard flow != nil else { return ended(id, .failed, now, &outbox) }
        guard let flow = flow(forBytes: call.ours.count + Self.headerBytes, now) else { return }
        calls[id]?.phase = .calling(takenAt: now.advanced(by: Self.takenAfter))
        guard let origin = dial.origin, case .outgoing(let number) = call.sip else {
            let command = CallCommand.place(
                to: dial.uri, offer: call.ours, flow, replacing: nil, headers: dial.headers)
            return run(.command(call.sip, command), now, &outbox)
        }
        let command = CallCommand.acceptTransfer(
            placing: number, offer: call.ours, by: flow, headers: dial.headers)
        run(.command(origin, command), now, &outbox)
        // The call whose peer asked for this one may have ended meanwhile.
        if calls[id] != nil, agent.flow(of: call.sip) == nil { ended(id, .failed, now, &outbox) }
    }

    /// The invite is under way: its event comes before all others.
    private mutating func take(_ id: InviteID, _ now: Instant, _ outbox: inout [AccountOutput]) {
        guard let call = calls[id], let dial = call.dial, let ticket = dial.ticket else { return }
        calls[id]?.dial?.ticket = nil
        outbox.append(.event(.inviteSent(id, idempotencyKey: dial.key)))
        outbox.append(.answer(ticket, .sent(id, invitees: [call.peer])))
    }

    /// Candidates are complete, or have taken too long.
    private mutating func gathered(
        _ id: InviteID, _ gathering: AccountCall.Gathering, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        guard let call = calls[id] else { return }
        let text = String(decoding: call.ours, as: UTF8.self)
        calls[id]?.ours = Array(DescriptionText.adding(gathering.candidates, to: text).utf8)
        if case .accepting(_, let ticket) = call.phase {
            acceptNow(id, ticket, now, &outbox)
        } else {
            place(id, now, &outbox)
        }
    }

    // MARK: Calls of peers

    mutating func accept(
        _ id: InviteID, _ acceptance: InviteAcceptance, ticket: UInt64, _ now: Instant,
        _ outbox: inout [AccountOutput]
    ) {
        let activity = "accept the invite"
        guard let call = calls[id], case .ringing = call.phase else {
            return outbox.append(.answer(ticket, .failed(Self.over(id, calls[id], activity))))
        }
        guard case .call(let ours) = acceptance, ours.isOffer == (call.theirs == nil), let description = ours.sdp else {
            let error = SignalingError(
                .invalidRequest, activity: activity,
                cause: call.theirs == nil
                    ? "it has no offer of media, which the caller asks for" : "it has no answer to the offer of media")
            return outbox.append(.answer(ticket, .failed(error)))
        }
        calls[id]?.ours = Array(description.utf8)
        if DescriptionText.awaitsCandidates(description) {
            ringIfDue(id, now, &outbox)
            let gathering = AccountCall.Gathering(until: now.advanced(by: Self.gatheringTime))
            calls[id]?.phase = .accepting(gathering, ticket: ticket)
        } else {
            acceptNow(id, ticket, now, &outbox)
        }
    }

    /// Sends our answer. The application knows of it first, because its call may end at once.
    private mutating func acceptNow(
        _ id: InviteID, _ ticket: UInt64, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        guard let call = calls[id] else { return }
        outbox.append(.answer(ticket, .done))
        ringIfDue(id, now, &outbox)
        calls[id]?.phase = .talking(since: now)
        if call.theirs == nil { calls[id]?.ourOffer = call.ours }
        command(call.sip, .accept(call.ours), now, &outbox)
    }

    /// Sends ringing to the caller, if that is due.
    private mutating func ringIfDue(_ id: InviteID, _ now: Instant, _ outbox: inout [AccountOutput]) {
        guard let call = calls[id], case .ringing(.some) = call.phase else { return }
        calls[id]?.phase = .ringing(ringAt: nil)
        command(call.sip, .ring(answer: nil), now, &outbox)
    }

    mutating func reject(
        _ id: InviteID, _ rejection: InviteRejection, ticket: UInt64, _ now: Instant,
        _ outbox: inout [AccountOutput]
    ) {
        guard let call = calls[id], call.dial == nil, !call.isTalking else {
            return outbox.append(.answer(ticket, .failed(Self.over(id, calls[id], "reject the invite"))))
        }
        answerAccept(of: call, .inviteEnded, &outbox)
        forget(id)
        command(call.sip, .refuse(SIPStatus.refusal(rejection)), now, &outbox)
        outbox.append(.answer(ticket, .done))
    }

    // MARK: Both

    mutating func cancel(
        _ id: InviteID, _ withdrawal: InviteWithdrawal, ticket: UInt64, _ now: Instant,
        _ outbox: inout [AccountOutput]
    ) {
        guard let call = calls[id], call.dial != nil, !call.isTalking else {
            return outbox.append(.answer(ticket, .failed(Self.over(id, calls[id], "cancel the invite"))))
        }
        end(id, cause: withdrawal == .call(.acceptedElsewhere) ? 200 : nil, now, &outbox)
        outbox.append(.answer(ticket, .done))
    }

    mutating func hangUp(
        _ details: CallHangUp, ticket: UInt64, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        end(details.invite, cause: nil, now, &outbox)
        outbox.append(.answer(ticket, .done))
    }

    mutating func send(
        _ signal: CallSignal, ticket: UInt64, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        let activity = "send a signal to the peer"
        guard let call = calls[signal.invite] else {
            return outbox.append(.answer(ticket, .failed(Self.over(signal.invite, nil, activity))))
        }
        func refuse() {
            let cause = "SIP carries no signal of the type \"\(signal.type.prefix(40))\" in this state of a call"
            let error = SignalingError(.invalidRequest, activity: activity, cause: cause)
            outbox.append(.answer(ticket, .failed(error)))
        }
        switch signal.message {
        case .candidate(let candidate)?: add(candidate, to: call, now, &outbox)
        case .transfer(let request)? where call.isTalking:
            guard let failure = transfer(request, in: call, activity, now, &outbox) else { break }
            return outbox.append(.answer(ticket, .failed(failure)))
        case .transferProgress(let progress)? where call.isTalking:
            note(progress, ofReferralTo: call, now, &outbox)
        case .key(let key)? where call.isTalking:
            guard let failure = press(key, in: call, now, &outbox) else { break }
            return outbox.append(.answer(ticket, .failed(failure)))
        case .offerRefused?: refuseOffer(in: call, now, &outbox)
        case .answer(let description)?:
            guard let sdp = description.sdp else { return refuse() }
            answer(Array(sdp.utf8), in: call, now, &outbox)
        case .offer(let description)? where call.isTalking:
            guard let sdp = description.sdp else { return refuse() }
            offer(Array(sdp.utf8), in: call, now, &outbox)
        case .offer, .earlyAnswer, .transfer, .transferProgress, .key, .acknowledged, .probe, nil: return refuse()
        }
        outbox.append(.answer(ticket, .done))
    }

    /// The application's offer in an established call.
    private mutating func offer(
        _ bytes: [UInt8], in call: AccountCall, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        if case .wantsOurs = call.peerOffer {
            offerWanted(bytes, in: call, now, &outbox)
        } else if call.ourOffer != nil {
            outbox.append(.note(.offerRefused(call.invite, 491)))
        } else {
            calls[call.invite]?.ourOffer = bytes
            command(call.sip, .offer(bytes), now, &outbox)
        }
    }

    /// Probes the peer of a call (contract CALL-4). Another probe replaces one that has no answer.
    mutating func probe(_ id: InviteID, ticket: UInt64, _ now: Instant, _ outbox: inout [AccountOutput]) {
        func refuse(_ code: SignalingError.Code, _ cause: String) {
            outbox.append(.answer(ticket, .failed(Self.notProbed(code, cause))))
        }
        guard let call = calls[id], call.isTalking else {
            return refuse(.inviteEnded, "the call is not answered, or has ended")
        }
        guard let way = agent.flow(of: call.sip), !lostFlows.contains(way) else {
            return refuse(.disconnected, "the connection to the server is down")
        }
        answerProbe(of: call, &outbox)
        calls[id]?.probe = ticket
        run(.command(call.sip, .probe), now, &outbox)
    }

    /// Whether an answer to a request in a dialog says that the dialog is no more (RFC 5057 §5.1).
    private static func endsDialog(_ status: Int) -> Bool {
        [404, 410, 416, 481, 482, 483, 484, 485, 502, 604].contains(status)
    }

    /// A probe has ended.
    ///
    /// - Parameter status: The answer's; 408 if there was none; nil if the probe was not sent.
    private mutating func probed(_ call: AccountCall, _ status: Int?, _ outbox: inout [AccountOutput]) {
        guard let ticket = call.probe else { return }
        calls[call.invite]?.probe = nil
        switch status {
        case 408?: outbox.append(.answer(ticket, .probed(.failed(.noAnswer))))
        case .some(let status) where Self.endsDialog(status):
            outbox.append(.answer(ticket, .probed(.failed(.unknownCall))))
        case .some:
            // Only the receiver of the question can answer it, and an answer counts only from the address that the
            // question went to.
            let host = agent.flow(of: call.sip)?.remoteHost
            outbox.append(.answer(ticket, .probed(.answered(from: host?.text))))
        case nil:
            let failure = Self.notProbed(.disconnected, "the connection to the server failed")
            outbox.append(.answer(ticket, .failed(failure)))
        }
    }

    /// A probe gets no result, because the call ends or another probe replaces it.
    private func answerProbe(of call: AccountCall, _ outbox: inout [AccountOutput]) {
        guard let ticket = call.probe else { return }
        let failure = Self.notProbed(.inviteEnded, "the call has ended, or is probed again")
        outbox.append(.answer(ticket, .failed(failure)))
    }

    private static func notProbed(_ code: SignalingError.Code, _ cause: String) -> SignalingError {
        SignalingError(code, activity: "probe the peer", cause: cause)
    }

    /// Sends a key by INFO.
    private mutating func press(
        _ key: CallKey, in call: AccountCall, _ now: Instant, _ outbox: inout [AccountOutput]
    ) -> SignalingError? {
        let activity = "send a key to the peer"
        guard agent.mayTake(.info, in: call.sip) else {
            return SignalingError(
                .invalidRequest, activity: activity,
                cause: "the peer takes neither telephone events (RFC 4733) nor INFO")
        }
        command(call.sip, .digit(key.key, milliseconds: Int(key.held.milliseconds)), now, &outbox)
        return nil
    }

    /// Asks a call's peer to call another party.
    private mutating func transfer(
        _ request: CallTransfer.Request, in call: AccountCall, _ activity: String, _ now: Instant,
        _ outbox: inout [AccountOutput]
    ) -> SignalingError? {
        guard let uri = names.uri(of: request.target) else {
            return SignalingError(.invalidRequest, activity: activity, cause: "it does not name the user to call")
        }
        var other: SIPCall?
        if let replaces = request.replaces {
            guard let consulted = calls[replaces], consulted.isTalking, replaces != call.invite else {
                return Self.over(replaces, nil, activity)
            }
            other = consulted.sip
        }
        calls[call.invite]?.transferUntil = now.advanced(by: Self.transferTime)
        command(call.sip, .transfer(to: uri, replacing: other), now, &outbox)
        return nil
    }

    /// The peer asks us to call another party. The application decides whether to do so.
    private mutating func asked(
        _ call: AccountCall, _ uri: AnyURI, _ outbox: inout [AccountOutput]
    ) {
        calls[call.invite]?.referral = .asked
        var request = CallTransfer.Request(target: SIPNames.user(of: NameAddress(uri)))
        request.isOutside = !names.isOwn(uri)
        request.isUnlisted = uri.callee(of: names.domain).map(callees.admits) != true
        tell(.transfer(request), of: call, &outbox)
    }

    /// The application reports the progress of a transfer that the peer has asked for. The user agent does so itself once the call to the
    /// target is placed, so only a refusal counts, and a failure before that. The failure of the transfer before may come when the
    /// peer has asked for the next one, which the application has not admitted then.
    private mutating func note(
        _ progress: CallTransfer.Progress, ofReferralTo call: AccountCall, _ now: Instant,
        _ outbox: inout [AccountOutput]
    ) {
        switch (call.referral, progress) {
        case (.asked?, .trying): calls[call.invite]?.referral = .admitted
        case (.asked?, .refused), (.admitted?, .refused), (.admitted?, .failed):
            calls[call.invite]?.referral = nil
            run(.command(call.sip, .refuseTransfer), now, &outbox)
        case (_, .accepted), (_, .failed), (_, .refused), (_, .ringing), (_, .trying): break
        }
    }

    private func tell(_ message: CallMessage, of call: AccountCall, _ outbox: inout [AccountOutput]) {
        outbox.append(.event(.callSignal(CallSignal(invite: call.invite, message, from: call.peer))))
    }

    private mutating func add(
        _ candidate: CallCandidate, to call: AccountCall, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        let id = call.invite
        switch (call.phase, candidate) {
        case (.preparing(let gathering?), .end), (.accepting(let gathering, _), .end):
            gathered(id, gathering, now, &outbox)
        case (.preparing(var gathering?), .candidate(let text, _)):
            gathering.add(text)
            calls[id]?.phase = .preparing(gathering)
        case (.accepting(var gathering, let ticket), .candidate(let text, _)):
            gathering.add(text)
            calls[id]?.phase = .accepting(gathering, ticket: ticket)
        case (.preparing(nil), _), (.calling, _), (.ringing, _), (.talking, _):
            break  // Too late for a description that is out.
        }
    }

    private mutating func answer(
        _ bytes: [UInt8], in call: AccountCall, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        switch call.peerOffer {
        case .waits(let until, let offer, let late) where late > 0:
            calls[call.invite]?.peerOffer = .waits(until: until, offer, lateAnswers: late - 1)
        case .waits(_, let offer, _):
            if call.ourOffer != nil {
                // By its answer, the application has given up its own offer.
                calls[call.invite]?.ourOffer = nil
                command(call.sip, .withdrawOffer, now, &outbox)
            }
            calls[call.invite]?.peerOffer = .none
            calls[call.invite]?.ours = bytes
            calls[call.invite]?.theirs = offer
            command(call.sip, .answer(bytes), now, &outbox)
        case .dropped(let until, let late) where late > 1:
            calls[call.invite]?.peerOffer = .dropped(until: until, lateAnswers: late - 1)
        case .dropped:
            // The application has taken an offer that is none any more.
            calls[call.invite]?.peerOffer = .settled
            if let theirs = call.theirs { tell(offer: DescriptionRole.asOffer(theirs), of: call, &outbox) }
        case .settled: calls[call.invite]?.peerOffer = .none
        case .none, .wantsOurs, .askedForOurs: break
        }
    }

    private mutating func noteRefusedOffer(
        in call: AccountCall, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        if refusedOffers.admit(at: now) != nil { outbox.append(.note(.offerUnanswered(call.invite))) }
    }

    /// The application cannot accept the peer's offer, or make the one that the peer requests.
    private mutating func refuseOffer(in call: AccountCall, _ now: Instant, _ outbox: inout [AccountOutput]) {
        switch call.peerOffer {
        case .waits(let until, let offer, let late) where late > 0:
            calls[call.invite]?.peerOffer = .waits(until: until, offer, lateAnswers: late - 1)
        case .waits:
            calls[call.invite]?.peerOffer = .none
            noteRefusedOffer(in: call, now, &outbox)
            command(call.sip, .refuseOffer, now, &outbox)
        // An earlier offer may have been accepted: the application receives the valid description in any case.
        case .dropped: answer([], in: call, now, &outbox)
        case .wantsOurs: offerAgain(call, now, &outbox)
        case .settled: calls[call.invite]?.peerOffer = .none
        case .none, .askedForOurs: break
        }
    }

    /// The application's offer, which the peer has requested: it has all that we support, not only what is in use (RFC
    /// 3261 §14.2).
    private mutating func offerWanted(
        _ bytes: [UInt8], in call: AccountCall, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        if call.ourOffer != nil { command(call.sip, .withdrawOffer, now, &outbox) }
        let offer = DescriptionText.continuing(bytes, after: call.ours)
        calls[call.invite]?.ourOffer = offer
        calls[call.invite]?.peerOffer = .askedForOurs
        command(call.sip, .answer(offer), now, &outbox)
    }

    /// Without an offer of the application the peer gets the present description.
    private mutating func offerAgain(_ call: AccountCall, _ now: Instant, _ outbox: inout [AccountOutput]) {
        calls[call.invite]?.peerOffer = .askedForOurs
        run(.command(call.sip, .answer(DescriptionRole.asOffer(call.ours))), now, &outbox)
    }

    /// Ends every call.
    mutating func endAll(_ now: Instant, _ outbox: inout [AccountOutput]) {
        for id in calls.keys.sorted() { end(id, cause: nil, now, &outbox) }
        for (call, command) in waiting { run(.command(call, command), now, &outbox) }
        waiting = []
        run(.endSubscriptions, now, &outbox)
    }

    /// Ends every call, and notifies the application, which did not ask for it.
    mutating func abandonAll(_ now: Instant, _ outbox: inout [AccountOutput]) {
        for (id, call) in calls.sorted(by: { $0.key < $1.key }) {
            ended(id, .failed, now, &outbox)
            run(.command(call.sip, .end(cause: nil)), now, &outbox)
        }
        waiting = []
    }

    /// The call that a peer asked for ends before its INVITE was sent: refuses that peer's transfer.
    private mutating func answerReferral(
        of call: AccountCall, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        guard case .preparing = call.phase, let origin = call.dial?.origin else { return }
        command(origin, .refuseTransfer, now, &outbox)
    }

    private mutating func end(_ id: InviteID, cause: Int?, _ now: Instant, _ outbox: inout [AccountOutput]) {
        guard let call = calls[id] else { return }
        answerReferral(of: call, now, &outbox)
        answerProbe(of: call, &outbox)
        answerAccept(of: call, .inviteEnded, &outbox)
        take(id, now, &outbox)
        forget(id)
        command(call.sip, .end(cause: cause), now, &outbox)
    }

    private mutating func forget(_ id: InviteID) {
        if let call = calls.removeValue(forKey: id) { invites[call.sip] = nil }
    }

    /// A call ends whose accept has not been sent.
    private func answerAccept(of call: AccountCall, _ code: SignalingError.Code, _ outbox: inout [AccountOutput]) {
        guard case .accepting(_, let ticket) = call.phase else { return }
        let error = SignalingError(
            code, activity: "accept the invite", cause: "the call ended before our answer was sent")
        outbox.append(.answer(ticket, .failed(error)))
    }

    /// Why an invite cannot be accepted any more.
    private static func refusal(of end: CallEnd) -> SignalingError.Code {
        switch end {
        case .remote(cause: 200?), .remote(cause: 603?): .alreadyHandled
        case .unanswered: .inviteTimedOut
        case .remote, .lost, .failed, .refused, .unauthorized, .replaced: .inviteCancelled
        case .local: .inviteEnded
        }
    }

    private static func over(_ id: InviteID, _ call: AccountCall?, _ activity: String) -> SignalingError {
        call == nil
            ? SignalingError(.inviteEnded, activity: activity, cause: "the call has ended")
            : SignalingError(.alreadyHandled, activity: activity, cause: "this device has answered it already")
    }

    /// A call is known by its Call-ID, as at its other end and at servers between. One that comes up again, as when a server asks
    /// one phone after the other, or when we call ourselves, has more after it: what was known before is no new call.
    private mutating func newInvite(for sip: SIPCall) -> InviteID {
        let callID = agent.callID(of: sip) ?? "sip-" + tokens.next()
        for text in [callID, callID + ";" + tokens.next()] {
            if let id = try? InviteID(text), calls[id] == nil, known.note(id) { return id }
        }
        let id = InviteID(ours: "sip-" + tokens.next())
        known.note(id)
        return id
    }

    // MARK: What happens

    private mutating func handle(
        _ event: CallEvent, of sip: SIPCall, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        if case .incoming(let from, let offer, let replacing) = event {
            return receive(sip, from, offer, replacing, now, &outbox)
        }
        guard let id = invites[sip], let call = calls[id] else { return }
        switch event {
        case .incoming: break
        case .progress(_, let early):
            take(id, now, &outbox)
            // A limit on early answers, because each one changes the media.
            guard let early, early != call.theirs, call.earlyAnswers < SIPLimits.forks else { return }
            calls[id]?.theirs = early
            calls[id]?.earlyAnswers += 1
            tell(.earlyAnswer(description(.answer(text(early)), in: sip)), of: call, &outbox)
        case .accepted(let answer): accepted(call, answer, now, &outbox)
        case .confirmed(let answer): confirmed(call, answer, now, &outbox)
        case .offered(let offer): offered(call, offer, now, &outbox)
        case .answered(let answer): answered(call, answer, now, &outbox)
        case .offerRefused(let status):
            // While the application's offer waits, the refusal is of the offer before it; 491 may also be for an offer
            // that cannot wait.
            if call.ourOffer != nil, status == 491 || !agent.hasWaitingOffer(sip) {
                calls[id]?.ourOffer = nil
                tell(.offerRefused, of: call, &outbox)
            }
            if status != 491 || call.ourOffer == nil { tellAddressAgain(id, now) }
            outbox.append(.note(.offerRefused(id, status)))
        case .offerWithdrawn:
            if case .wantsOurs = call.peerOffer { calls[id]?.peerOffer = .none }
            calls[id]?.dropOffer(at: now)
            outbox.append(.note(.offerWithdrawn(id)))
        case .digit(let digit, let milliseconds):
            guard let key = CallKey(digit, held: .milliseconds(milliseconds)) else { return }
            tell(.key(key), of: call, &outbox)
        case .digitRefused(let status): outbox.append(.note(.keyRefused(id, status)))
        case .transferRequested(let uri, _): asked(call, uri, &outbox)
        case .transferProgress(let status, let isFinal):
            let progress: CallTransfer.Progress =
                switch status {
                case ...100: .trying
                case 101..<200: .ringing
                case 200..<300: .accepted
                default: .failed
                }
            let until = now.advanced(by: Self.transferTime)
            calls[id]?.transferUntil = call.transferUntil == nil || isFinal ? nil : until
            if progress.isFinal == isFinal { tell(.transferProgress(progress), of: call, &outbox) }
        case .transferRefused:
            calls[id]?.transferUntil = nil
            tell(.transferProgress(.refused), of: call, &outbox)
        case .probed(let status): probed(call, status, &outbox)
        case .info: break
        case .ended(let end): ended(id, end, now, &outbox)
        }
    }

    private mutating func receive(
        _ sip: SIPCall, _ from: NameAddress, _ offer: [UInt8]?, _ replacing: SIPCall?, _ now: Instant,
        _ outbox: inout [AccountOutput]
    ) {
        let who = caller(sip) ?? from
        let peer = SIPNames.caller(who)
        let id = newInvite(for: sip)
        var call = AccountCall(
            invite: id, sip: sip, peer: peer, phase: .ringing(ringAt: now.advanced(by: Self.ringDelay)), ours: [])
        call.theirs = offer
        call.isAcknowledged = false
        calls[id] = call
        invites[sip] = id
        let invite = ReceivedInvite(
            id: id, inviter: peer, invitees: [own],
            offer: offer.map { description(.offer(text($0)), in: sip) } ?? CallDescription(.wanted),
            trunk: names.trunkCall(from: who, agent.target(of: sip), own: own),
            transfer: replacing.flatMap { invites[$0] }.map { CallTransfer.Origin(replaces: $0) },
            trace: agent.invite(of: sip)?.headers[.traceparent].flatMap { TraceContext($0) },
            hops: agent.invite(of: sip).map { CallHops($0.headers) } ?? CallHops(), remaining: nil)
        outbox.append(.event(.inviteReceived(invite)))
    }

    /// The caller, if a peer that the configuration names asserts its identity.
    private func caller(_ sip: SIPCall) -> NameAddress? {
        guard let request = agent.invite(of: sip) else { return nil }
        let isTrusted = identityTrust.vouches(for: request, by: agent.flow(of: sip))
        return CallerIdentity(request.headers, isTrusted: isTrusted)?.address
    }

    private mutating func accepted(
        _ call: AccountCall, _ answer: [UInt8]?, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        let id = call.invite
        take(id, now, &outbox)
        // An early answer may have come from another fork.
        calls[id]?.theirs = answer
        calls[id]?.phase = .talking(since: now)
        let theirs = answer.map { description(.answer(text($0)), in: call.sip) }
        outbox.append(
            .event(.inviteAccepted(InviteAnswer(invite: id, invitee: call.peer, device: "sip", answer: theirs))))
    }

    /// The answer to an offer that a caller had asked for. In an established call the application gets it as the peer's
    /// offer.
    private mutating func confirmed(
        _ call: AccountCall, _ answer: [UInt8]?, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        if !call.isAcknowledged {
            calls[call.invite]?.isAcknowledged = true
            let host = agent.acknowledgingHost(of: call.sip)
            tell(.acknowledged(host: host?.text), of: call, &outbox)
        }
        if call.theirs == nil, call.ourOffer != nil {
            calls[call.invite]?.ourOffer = nil
            guard let answer else {
                outbox.append(.note(.answerMissing(call.invite, from: call.peer)))
                ended(call.invite, .failed, now, &outbox)
                return run(.command(call.sip, .end(cause: 488)), now, &outbox)
            }
            calls[call.invite]?.theirs = answer
            return tell(answer: answer, of: call, &outbox)
        }
        guard case .askedForOurs = call.peerOffer else { return }
        calls[call.invite]?.peerOffer = .none
        // An offer that waits belongs to a later exchange: the peer has confirmed our present description.
        if let offer = call.ourOffer, !agent.hasWaitingOffer(call.sip) {
            return confirmed(call, offer, answer, now, &outbox)
        }
        guard let answer, answer != call.theirs else { return }
        calls[call.invite]?.theirs = answer
        calls[call.invite]?.ours = DescriptionRole.asOffer(call.ours)
        calls[call.invite]?.peerOffer = .settled
        tell(offer: DescriptionRole.asOffer(answer), of: call, &outbox)
    }

    /// The same of an offer that the application has made for it.
    private mutating func confirmed(
        _ call: AccountCall, _ offer: [UInt8], _ answer: [UInt8]?, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        calls[call.invite]?.ourOffer = nil
        guard let answer else { return tell(.offerRefused, of: call, &outbox) }
        calls[call.invite]?.ours = offer
        calls[call.invite]?.theirs = answer
        noteTold(call.invite, now)
        tell(answer: answer, of: call, &outbox)
    }

    /// The peer has answered an offer, and so has our address, unless that offer was made before the change.
    private mutating func noteTold(_ id: InviteID, _ now: Instant) {
        guard let call = calls[id], var pendingAddress = call.pendingAddress, let host = flow?.localHost else { return }
        let ours = pendingAddress.readdressed(call.ours, to: host)
        if let ours {
            calls[id]?.ours = ours
            pendingAddress.refused(at: now)
        }
        calls[id]?.pendingAddress = ours == nil ? nil : pendingAddress
    }

    /// The answer to the application's offer goes to the application. The answer to an offer that we made ourselves (a
    /// new address, or a refresh) goes to it as an offer if the peer's media has moved.
    private mutating func answered(
        _ call: AccountCall, _ answer: [UInt8]?, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        let id = call.invite
        // While the application's offer waits, the answer is to the offer before it.
        let isOtherWaiting = agent.hasWaitingOffer(call.sip)
        let offer = isOtherWaiting ? nil : call.ourOffer
        if let offer {
            calls[id]?.ours = offer
            calls[id]?.ourOffer = nil
        }
        // The answer to a refresh with the earlier description does not confirm our new address.
        if offer != nil || call.pendingAddress?.isOut == true && !isOtherWaiting { noteTold(id, now) }
        guard let answer else { return }
        calls[id]?.theirs = answer
        guard offer == nil else { return tell(answer: answer, of: call, &outbox) }
        guard DescriptionText.isMoved(from: call.theirs ?? [], to: answer) else { return }
        // The application first answers the offer that it received before, and then receives the valid description.
        if case .dropped = call.peerOffer { return }
        calls[id]?.peerOffer = .settled
        tell(offer: DescriptionRole.asOffer(answer), of: call, &outbox)
    }

    private mutating func offered(
        _ call: AccountCall, _ offer: [UInt8]?, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        guard let offer else {
            calls[call.invite]?.peerOffer = .wantsOurs(until: now.advanced(by: Self.answerTime))
            return tell(.offer(CallDescription(.wanted)), of: call, &outbox)
        }
        // The same description again refreshes the session, and changes nothing (RFC 4028 §7.4).
        guard offer != call.theirs else {
            return run(
                .command(call.sip, .answer(DescriptionRole.asAnswer(call.ours, to: offer))), now, &outbox)
        }
        var late = 0
        if case .dropped(let until, let count) = call.peerOffer, until > now { late = count }
        calls[call.invite]?.peerOffer = .waits(
            until: now.advanced(by: Self.answerTime), offer, lateAnswers: late)
        tell(offer: offer, of: call, &outbox)
    }

    private func tell(offer bytes: [UInt8], of call: AccountCall, _ outbox: inout [AccountOutput]) {
        tell(.offer(description(.offer(text(bytes)), in: call.sip)), of: call, &outbox)
    }

    private func tell(answer bytes: [UInt8], of call: AccountCall, _ outbox: inout [AccountOutput]) {
        tell(.answer(description(.answer(text(bytes)), in: call.sip)), of: call, &outbox)
    }

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    /// A description of the peer's, with the host that it came from: media without protection may come from there, too.
    private func description(_ content: CallDescription.Content, in call: SIPCall) -> CallDescription {
        let host = agent.invite(of: call)?.headers.topVia?.source ?? agent.flow(of: call)?.remoteHost
        return CallDescription(content, source: host?.text)
    }

    private mutating func ended(_ id: InviteID, _ end: CallEnd, _ now: Instant, _ outbox: inout [AccountOutput]) {
        guard let call = calls[id] else { return }
        answerReferral(of: call, now, &outbox)
        answerProbe(of: call, &outbox)
        switch call.phase {
        case .preparing, .calling: refused(call, end, now, &outbox)
        case .ringing: outbox += Self.withdrawn(call, end, own).map { .event($0) }
        case .accepting:
            // Before the answer to the accept, which may not say why.
            outbox += Self.withdrawn(call, end, own).map { .event($0) }
            answerAccept(of: call, Self.refusal(of: end), &outbox)
        case .talking(let since):
            let reason: CallEndReason =
                switch end {
                case .local, .remote, .replaced: .completed
                // No ACK came.
                case .lost where !call.isAcknowledged: .acceptFailed
                case .refused, .unanswered, .unauthorized, .lost, .failed: .connectionLost
                }
            let details = CallHangUp(invite: id, reason: reason, duration: since.duration(to: now), from: call.peer)
            outbox.append(.event(.callEnded(details)))
        }
        forget(id)
    }

    /// Our invite has no call.
    private mutating func refused(
        _ call: AccountCall, _ end: CallEnd, _ now: Instant, _ outbox: inout [AccountOutput]
    ) {
        let id = call.invite
        let activity = "invite \(call.peer)"
        if let ticket = call.dial?.ticket, let error = Self.failure(end, activity) {
            return outbox.append(.answer(ticket, .failed(error)))
        }
        take(id, now, &outbox)
        let reason: RejectReason
        var cause: CallFailureCause?
        switch end {
        case .refused(let status, _):
            reason = SIPStatus.reason(status)
            cause = SIPStatus.cause(status)
        case .remote, .local, .replaced: reason = .declined
        case .unauthorized, .lost, .failed: reason = .failed
        case .unanswered: return outbox.append(.event(.inviteTimedOut(id, invitees: [call.peer])))
        }
        let answer = InviteAnswer(
            invite: id, invitee: call.peer, device: "sip", rejection: InviteRejection(reason, cause: cause))
        outbox += [.event(.inviteRejected(answer)), .event(.inviteEnded(id))]
    }

    /// Why an invite failed that reached no invitee; `nil` if an invitee refused it.
    private static func failure(_ end: CallEnd, _ activity: String) -> SignalingError? {
        switch end {
        case .refused(let status, _): SIPStatus.failure(status, activity)
        case .unauthorized:
            SignalingError(
                .notAllowed, activity: activity, cause: "the server does not take the account's password for calls")
        case .unanswered: SignalingError(.timedOut, activity: activity, cause: "the server does not answer")
        case .failed, .lost:
            SignalingError(.disconnected, activity: activity, cause: "the connection to the server failed")
        case .local, .remote, .replaced: nil
        }
    }

    /// The events for a ringing device when its invite ends.
    private static func withdrawn(_ call: AccountCall, _ end: CallEnd, _ own: UserID) -> [SignalingEvent] {
        switch end {
        case .remote(cause: 200?):
            [.inviteHandled(InviteHandling(invite: call.invite, device: "another", action: .accepted))]
        case .remote(cause: 603?):
            [.inviteHandled(InviteHandling(invite: call.invite, device: "another", action: .rejected))]
        case .unanswered: [.inviteTimedOut(call.invite, invitees: [own])]
        case .local: []
        case .remote, .lost, .failed, .refused, .unauthorized, .replaced: [.inviteCancelled(call.invite)]
        }
    }
}

extension CallCommand {
    /// Whether it answers a peer's INVITE.
    fileprivate var answersInvite: Bool {
        switch self {
        case .ring, .accept, .refuse: true
        case .place, .end, .offer, .withdrawOffer, .answer, .refuseOffer, .digit, .transfer, .acceptTransfer,
            .refuseTransfer, .probe:
            false
        }
    }

    /// Whether nothing comes after it.
    fileprivate var isEnd: Bool {
        switch self {
        case .end, .refuse: true
        case .place, .ring, .accept, .offer, .withdrawOffer, .answer, .refuseOffer, .digit, .transfer, .acceptTransfer,
            .refuseTransfer, .probe:
            false
        }
    }
}

extension AccountCall {
    /// The peer's offer has no answer and wants none any more.
    fileprivate mutating func dropOffer(at now: Instant) {
        guard case .waits(_, _, let late) = peerOffer else { return }
        peerOffer = .dropped(until: now.advanced(by: AccountCalls.answerTime), lateAnswers: late + 1)
    }

    var isTalking: Bool {
        guard case .talking = phase else { return false }
        return true
    }
}

extension AccountCall.Gathering {
    // Candidates beyond the limit of a description are dropped.
    fileprivate mutating func add(_ candidate: String) {
        if candidates.count < 64 { candidates.append(candidate) }
    }
}
