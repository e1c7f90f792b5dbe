internal import Core
internal import Identifiers

/// Notifies peers of what waits in the account's mailbox: those that have subscribed (RFC 6665, the notifier's role; RFC 3842), and those
/// that the configuration names.
///
/// A peer may subscribe if the mailbox lists it and our server, or a host that vouches for identities, has sent the request. Others get 403
/// for any package. Capacity: ``SIPLimits/subscriptions``, of which one peer has ``SIPLimits/subscriptionsOfPeer``; further ones get
/// 503. A recipient gets one NOTIFY a second at most, and none while another has no answer.
struct MailboxNotifier: Sendable {
    /// What the user agent is to do.
    enum Effect: Sendable {
        case respond(TransactionID, SIPResponse)
        case send(UInt64, SIPRequest, SIPFlow)
        case event(MailboxEvent)
    }

    /// Why the last NOTIFY is sent (RFC 6665 §4.1.3).
    private enum End: String, Sendable {
        /// Its time is up, or the peer has ended it.
        case timeout
        /// The mailbox does not list the peer any more.
        case rejected
        /// There is no mailbox any more.
        case noresource
        /// The device ends, or starts again: the peer may subscribe again after a minute.
        case probation

        var text: String { "terminated;reason=\(rawValue)" + (self == .probation ? ";retry-after=60" : "") }
    }

    /// A NOTIFY without an answer.
    private struct Notice: Sendable {
        let number: UInt64
        let request: SIPRequest
        let flow: SIPFlow
        let attempts: Int
        /// It says that the subscription has ended.
        var isFinal = false
    }

    /// When a recipient gets its next NOTIFY.
    private struct Pace: Sendable {
        /// What it was notified of last.
        var sent: MessageSummary?
        /// Whether it gets a NOTIFY although nothing has changed.
        var isDue = true
        var pending: Notice?
        var earliest: Instant

        func due(_ summary: MessageSummary) -> Instant? {
            pending == nil && (isDue || sent != summary) ? earliest : nil
        }

        mutating func begin(_ notice: Notice, _ summary: MessageSummary, at now: Instant) {
            pending = notice
            sent = summary
            isDue = false
            earliest = now.advanced(by: MailboxNotifier.gap)
        }

        mutating func retry(after wait: Duration, at now: Instant) {
            pending = nil
            isDue = true
            earliest = now.advanced(by: wait)
        }
    }

    private struct Subscription: Sendable {
        let subscriber: Callee
        /// `Event`, with the peer's `id`.
        let event: TokenWithParameters
        var dialog: Dialog
        var until: Instant
        /// Its last NOTIFY is to be sent, or on its way.
        var end: End?
        var pace: Pace
    }

    private struct Target: Sendable {
        let uri: AnyURI
        let callID: String
        let tag: String
        var sequence: UInt32 = 0
        var pace: Pace
    }

    /// The shortest time between two NOTIFYs (RFC 3842 §3.9).
    static let gap = Duration.seconds(1)
    /// How long a NOTIFY waits that could not be sent.
    private static let retryTime = Duration.seconds(4)
    /// The time of a subscription that names none (RFC 3842 §3.4), and the longest.
    private static let usualSeconds: UInt32 = 3_600
    private static let shortestSeconds: UInt32 = 60
    /// Bytes of a SUBSCRIBE, whose routes are kept.
    private static let mostBytes = 8_192

    private var mailbox: SIPMailbox?
    private var subscriptions: [UInt64: Subscription] = [:]
    private var targets: [Target] = []
    /// The flow to the server over which the account is registered.
    private var serverFlow: SIPFlow?
    private var count: UInt64 = 0
    private(set) var refusals = 0

    /// How many subscriptions there are.
    var subscriptionCount: Int { subscriptions.count }

    /// The flows of subscriptions.
    var flows: Set<SIPFlow> { Set(subscriptions.values.map(\.dialog.flow)) }

    /// When ``notify(_:at:into:)`` is due.
    func nextDeadline(_ messages: Messenger) -> Instant? {
        guard let summary = mailbox?.summary ?? lastSummary else { return nil }
        let ofPeers = subscriptions.values.compactMap { subscription -> Instant? in
            guard subscription.pace.pending == nil else { return nil }
            if messages.isLost(subscription.dialog.flow) { return subscription.until }
            if subscription.end != nil { return subscription.pace.earliest }
            return [subscription.until, subscription.pace.due(summary)].compactMap(\.self).min()
        }
        let ofTargets = serverFlow == nil ? [] : targets.compactMap { $0.pace.due(summary) }
        return (ofPeers + ofTargets).min()
    }

    /// What subscriptions end with whose mailbox is gone.
    private var lastSummary: MessageSummary? { subscriptions.isEmpty ? nil : MessageSummary(new: 0, old: 0) }

    // MARK: The mailbox

    /// The mailbox has changed, is new, or (nil) is gone.
    mutating func set(
        _ mailbox: SIPMailbox?, _ messages: inout Messenger, at now: Instant, into effects: inout [Effect]
    ) {
        self.mailbox = mailbox
        for (id, subscription) in subscriptions where subscription.end == nil {
            guard let mailbox else {
                subscriptions[id]?.end = .noresource
                continue
            }
            if !mailbox.subscribers.admits(subscription.subscriber) { subscriptions[id]?.end = .rejected }
        }
        let uris = (mailbox?.targets ?? []).prefix(SIPLimits.mailboxTargets)
        targets.removeAll { !uris.contains($0.uri) }
        for uri in uris where !targets.contains(where: { $0.uri == uri }) {
            targets.append(
                Target(uri: uri, callID: messages.tag(), tag: messages.tag(), pace: Pace(earliest: now)))
        }
        notify(&messages, at: now, into: &effects)
    }

    /// The account is registered over that flow: addresses without a subscription are notified again, because the server may have
    /// forgotten what it knew.
    mutating func registered(
        by flow: SIPFlow, _ messages: inout Messenger, at now: Instant, into effects: inout [Effect]
    ) {
        serverFlow = flow
        for index in targets.indices { targets[index].pace.isDue = true }
        notify(&messages, at: now, into: &effects)
    }

    mutating func lost(_ flow: SIPFlow) { if serverFlow == flow { serverFlow = nil } }

    /// Subscriptions of a flow that is gone continue over another one, and their peers get our new contact.
    mutating func move(
        _ old: SIPFlow, to new: SIPFlow, _ messages: inout Messenger, at now: Instant, into effects: inout [Effect]
    ) {
        for id in subscriptions.keys where subscriptions[id]?.dialog.flow == old {
            subscriptions[id]?.dialog.move(to: new)
            subscriptions[id]?.pace.isDue = true
        }
        notify(&messages, at: now, into: &effects)
    }

    /// The account ends: each peer gets its last NOTIFY at once.
    mutating func endAll(_ messages: inout Messenger, at now: Instant, into effects: inout [Effect]) {
        for id in subscriptions.keys.sorted() {
            guard var subscription = subscriptions[id], !messages.isLost(subscription.dialog.flow) else { continue }
            subscription.end = .probation
            send(&subscription, mailbox?.summary, attempts: 0, &messages, at: now, into: &effects)
        }
        subscriptions = [:]
        targets = []
        serverFlow = nil
    }

    // MARK: SUBSCRIBE

    /// The subscription that a request within a dialog belongs to.
    func subscription(of request: SIPRequest) -> UInt64? {
        guard let callID = request.headers.callID, let tag = request.headers.to?.tag else { return nil }
        return subscriptions.first { _, subscription in
            subscription.dialog.callID == callID && subscription.dialog.localTag == tag
                && subscription.dialog.isRemote(tag: request.headers.from?.tag)
        }?.key
    }

    /// Whether a request belongs to a subscription, and comes from its peer or the server.
    func admits(_ request: SIPRequest, by flow: SIPFlow, _ messages: Messenger) -> Bool {
        guard let id = subscription(of: request), let dialog = subscriptions[id]?.dialog else { return false }
        return dialog.isPeer(flow, among: messages.table.known)
    }

    /// A peer asks to subscribe.
    ///
    /// - Parameter subscriber: Who it is; nil if no host that is trusted says so.
    mutating func subscribe(
        _ request: SIPRequest, _ transaction: TransactionID, by flow: SIPFlow, subscriber: Callee?,
        _ messages: inout Messenger, at now: Instant, into effects: inout [Effect]
    ) {
        let tag = messages.tag()
        guard let mailbox, let subscriber, mailbox.subscribers.admits(subscriber) else {
            refusals += 1
            effects.append(.event(.refused(request.headers.topVia?.source ?? flow.remoteHost, count: refusals)))
            return effects.append(.respond(transaction, SIPResponse(403, to: request, toTag: tag)))
        }
        guard let event = Self.event(of: request) else {
            return effects.append(.respond(transaction, Self.badEvent(request, tag)))
        }
        guard let seconds = granted(request, transaction, tag, into: &effects) else { return }
        guard request.footprint <= Self.mostBytes else {
            return effects.append(.respond(transaction, SIPResponse(513, to: request, toTag: tag)))
        }
        let first = UInt32(truncatingIfNeeded: messages.number() & 0xFFFF) + 1
        guard let dialog = Dialog(request: request, localTag: tag, firstSequence: first, flow: flow) else {
            return effects.append(.respond(transaction, SIPResponse(400, to: request, toTag: tag)))
        }
        forgetEarlier(of: subscriber, at: dialog.target)
        let own = subscriptions.values.count { $0.subscriber.description == subscriber.description }
        guard subscriptions.count < SIPLimits.subscriptions, own < SIPLimits.subscriptionsOfPeer else {
            var response = SIPResponse(503, to: request, toTag: tag)
            response.headers.append("Retry-After", "60")
            return effects.append(.respond(transaction, response))
        }
        count += 1
        subscriptions[count] = Subscription(
            subscriber: subscriber, event: event, dialog: dialog, until: now.advanced(by: .seconds(Int64(seconds))),
            end: seconds == 0 ? .timeout : nil, pace: Pace(earliest: now))
        accept(request, transaction, tag, seconds, flow, messages, into: &effects)
        if seconds > 0 { effects.append(.event(.subscribed(subscriber.description, seconds: seconds))) }
        notify(&messages, at: now, into: &effects)
    }

    /// A telephone that has started again subscribes again, and does not know of its earlier subscription.
    private mutating func forgetEarlier(of subscriber: Callee, at target: AnyURI) {
        for (id, other) in subscriptions
        where other.subscriber.description == subscriber.description && other.dialog.target == target {
            subscriptions[id] = nil
        }
    }

    /// A SUBSCRIBE within a dialog: the peer renews its subscription, or ends it.
    mutating func renew(
        _ id: UInt64, _ request: SIPRequest, _ transaction: TransactionID, by flow: SIPFlow,
        _ messages: inout Messenger, at now: Instant, into effects: inout [Effect]
    ) {
        guard var subscription = subscriptions[id], subscription.end == nil,
            subscription.dialog.isPeer(flow, among: messages.table.known)
        else { return effects.append(.respond(transaction, SIPResponse(481, to: request))) }
        guard subscription.dialog.take(request) else {
            return effects.append(.respond(transaction, SIPResponse(500, to: request)))
        }
        subscriptions[id] = subscription
        guard Self.event(of: request) == subscription.event else {
            return effects.append(.respond(transaction, Self.badEvent(request, nil)))
        }
        guard let seconds = granted(request, transaction, nil, into: &effects) else { return }
        subscription.dialog.refresh(request.headers)
        subscription.until = now.advanced(by: .seconds(Int64(seconds)))
        subscription.pace.isDue = true
        if seconds == 0 { subscription.end = .timeout }
        subscriptions[id] = subscription
        accept(request, transaction, nil, seconds, flow, messages, into: &effects)
        notify(&messages, at: now, into: &effects)
    }

    /// The event that a peer asks for, if it is ours.
    private static func event(of request: SIPRequest) -> TokenWithParameters? {
        guard request.headers.count("Event") == 1, let event = request.headers.event,
            event.token == MessageSummary.event
        else { return nil }
        return event
    }

    private static func badEvent(_ request: SIPRequest, _ tag: String?) -> SIPResponse {
        var response = SIPResponse(489, to: request, toTag: tag)
        response.headers.append("Allow-Events", MessageSummary.event)
        return response
    }

    /// The time of a subscription, in seconds; nil if the request is answered with a refusal.
    private func granted(
        _ request: SIPRequest, _ transaction: TransactionID, _ tag: String?, into effects: inout [Effect]
    ) -> UInt32? {
        guard Self.accepts(request) else {
            var response = SIPResponse(406, to: request, toTag: tag)
            response.headers.append("Accept", MediaType.messageSummary.description)
            effects.append(.respond(transaction, response))
            return nil
        }
        guard request.headers.count("Expires") > 0 else { return Self.usualSeconds }
        guard let seconds = request.headers.number("Expires") else {
            effects.append(.respond(transaction, SIPResponse(400, to: request, toTag: tag)))
            return nil
        }
        guard seconds == 0 || seconds >= Self.shortestSeconds else {
            var response = SIPResponse(423, to: request, toTag: tag)
            response.headers.append("Min-Expires", String(Self.shortestSeconds))
            effects.append(.respond(transaction, response))
            return nil
        }
        return min(seconds, Self.usualSeconds)
    }

    private static func accepts(_ request: SIPRequest) -> Bool {
        guard request.headers.count("Accept") > 0 else { return true }
        let types = (request.headers.elements("Accept") ?? []).compactMap { MediaType($0)?.name }
        return types.contains { [MediaType.messageSummary.name, "application/*", "*/*"].contains($0) }
    }

    private func accept(
        _ request: SIPRequest, _ transaction: TransactionID, _ tag: String?, _ seconds: UInt32, _ flow: SIPFlow,
        _ messages: Messenger, into effects: inout [Effect]
    ) {
        var response = SIPResponse(200, to: request, toTag: tag)
        for line in request.headers.lines("Record-Route") { response.headers.append("Record-Route", line) }
        messages.addContact(&response.headers, as: response.headers.to, by: flow)
        response.headers.append("Expires", String(seconds))
        effects.append(.respond(transaction, response))
    }

    // MARK: NOTIFY

    /// Sends what is due.
    mutating func notify(_ messages: inout Messenger, at now: Instant, into effects: inout [Effect]) {
        for id in subscriptions.keys.sorted() {
            guard var subscription = subscriptions[id], subscription.pace.pending == nil else { continue }
            let isLost = messages.isLost(subscription.dialog.flow)
            if subscription.end == nil, subscription.until <= now {
                subscription.end = .timeout
                effects.append(.event(.unsubscribed(subscription.subscriber.description)))
            }
            subscriptions[id] = isLost && subscription.end != nil ? nil : subscription
            guard !isLost, isDue(subscription, at: now) else { continue }
            send(&subscription, mailbox?.summary, attempts: 0, &messages, at: now, into: &effects)
            subscriptions[id] = subscription
        }
        guard let mailbox, let serverFlow, !messages.isLost(serverFlow) else { return }
        for index in targets.indices {
            guard let due = targets[index].pace.due(mailbox.summary), due <= now else { continue }
            send(toTarget: index, mailbox.summary, by: serverFlow, &messages, at: now, into: &effects)
        }
    }

    private func isDue(_ subscription: Subscription, at now: Instant) -> Bool {
        if subscription.end != nil { return true }
        guard let summary = mailbox?.summary, let due = subscription.pace.due(summary) else { return false }
        return due <= now
    }

    private func send(
        _ subscription: inout Subscription, _ summary: MessageSummary?, attempts: Int, _ messages: inout Messenger,
        at now: Instant, into effects: inout [Effect]
    ) {
        let left = max(0, Int64(now.duration(to: subscription.until).seconds.rounded(.up)))
        let state = subscription.end?.text ?? "active;expires=\(left)"
        var request = subscription.dialog.request(.notify)
        // A peer that may not know of the mailbox gets no counts.
        let isTold = subscription.end != .rejected && subscription.end != .noresource
        let known = isTold ? summary : nil
        Self.fill(&request, subscription.event.description, state, known)
        let flow = subscription.dialog.flow
        let (number, prepared) = messages.prepare(request, by: flow)
        let notice = Notice(
            number: number, request: prepared, flow: flow, attempts: attempts, isFinal: subscription.end != nil)
        subscription.pace.begin(notice, summary ?? MessageSummary(new: 0, old: 0), at: now)
        effects.append(.send(number, prepared, flow))
    }

    private mutating func send(
        toTarget index: Int, _ summary: MessageSummary, by flow: SIPFlow, attempts: Int = 0,
        _ messages: inout Messenger, at now: Instant, into effects: inout [Effect]
    ) {
        targets[index].sequence += 1
        let target = targets[index]
        var request = SIPRequest(method: .notify, uri: target.uri)
        request.headers.append("Max-Forwards", "70")
        for route in messages.routes { request.headers.append("Route", route.description) }
        var from = messages.configuration.address
        from.tag = target.tag
        request.headers.append("From", from.description)
        request.headers.append("To", NameAddress(target.uri).description)
        request.headers.append("Call-ID", target.callID)
        request.headers.append("CSeq", CSeq(target.sequence, .notify).description)
        // There is no subscription, and nothing follows in this dialog.
        Self.fill(&request, MessageSummary.event, "terminated", summary)
        let (number, prepared) = messages.prepare(request, by: flow)
        targets[index].pace.begin(
            Notice(number: number, request: prepared, flow: flow, attempts: attempts), summary, at: now)
        effects.append(.send(number, prepared, flow))
    }

    private static func fill(_ request: inout SIPRequest, _ event: String, _ state: String, _ summary: MessageSummary?)
    {
        request.headers.append("Event", event)
        request.headers.append("Subscription-State", state)
        guard let summary else { return }
        request.headers.append("Content-Type", MediaType.messageSummary.description)
        request.body = summary.body
    }

    // MARK: Answers

    /// Whether a request of ours is a NOTIFY of the mailbox.
    func hasSent(_ number: UInt64) -> Bool { subscription(awaiting: number) != nil || target(awaiting: number) != nil }

    private func subscription(awaiting number: UInt64) -> UInt64? {
        subscriptions.first { $0.value.pace.pending?.number == number }?.key
    }

    private func target(awaiting number: UInt64) -> Int? {
        targets.firstIndex { $0.pace.pending?.number == number }
    }

    /// A NOTIFY has its final response, or (nil) will get none, with a status for the cause.
    mutating func finish(
        _ number: UInt64, _ status: Int, _ response: SIPResponse?, _ messages: inout Messenger, at now: Instant,
        into effects: inout [Effect]
    ) {
        if let id = subscription(awaiting: number) {
            finish(subscription: id, status, response, &messages, at: now, into: &effects)
        } else if let index = target(awaiting: number) {
            finish(target: index, status, response, &messages, at: now, into: &effects)
        }
        notify(&messages, at: now, into: &effects)
    }

    private mutating func finish(
        subscription id: UInt64, _ status: Int, _ response: SIPResponse?, _ messages: inout Messenger,
        at now: Instant, into effects: inout [Effect]
    ) {
        guard var subscription = subscriptions[id], let notice = subscription.pace.pending else { return }
        subscription.pace.pending = nil
        let outcome = Self.outcome(notice, status, response, &messages)
        switch outcome {
        case .again:
            send(&subscription, mailbox?.summary, attempts: notice.attempts + 1, &messages, at: now, into: &effects)
        case .delivered, .later:
            // One that was on its way when the subscription ended does not say so; the last one follows.
            if notice.isFinal { return subscriptions[id] = nil }
            if case .later(let wait) = outcome { subscription.pace.retry(after: wait, at: now) }
        case .refused:
            // The peer does not know the subscription, or is gone (RFC 6665 §4.2.2).
            subscriptions[id] = nil
            if subscription.end == nil {
                effects.append(.event(.lost(subscription.subscriber.description, status: status)))
            }
            return
        }
        subscriptions[id] = subscription
    }

    private mutating func finish(
        target index: Int, _ status: Int, _ response: SIPResponse?, _ messages: inout Messenger, at now: Instant,
        into effects: inout [Effect]
    ) {
        guard let notice = targets[index].pace.pending else { return }
        targets[index].pace.pending = nil
        switch Self.outcome(notice, status, response, &messages) {
        case .again:
            guard let mailbox, let serverFlow else { return }
            send(
                toTarget: index, mailbox.summary, by: serverFlow, attempts: notice.attempts + 1, &messages, at: now,
                into: &effects)
        case .later(let wait): targets[index].pace.retry(after: wait, at: now)
        case .delivered: break
        // The next change, or the next registration, tries again.
        case .refused: effects.append(.event(.undelivered("\(targets[index].uri)", status: status)))
        }
    }

    private enum Outcome {
        case delivered
        /// Send it again, with credentials.
        case again
        case later(Duration)
        case refused
    }

    private static func outcome(
        _ notice: Notice, _ status: Int, _ response: SIPResponse?, _ messages: inout Messenger
    ) -> Outcome {
        guard let response else { return status == 503 ? .later(retryTime) : .refused }
        if response.isSuccess {
            messages.succeeded(by: notice.flow)
            return .delivered
        }
        if status == 401 || status == 407, notice.attempts < 5,
            messages.takeChallenge(response, to: notice.request, by: notice.flow)
        {
            return .again
        }
        guard status != 481, let seconds = response.headers.retryAfterSeconds else { return .refused }
        return .later(.seconds(Int64(min(max(1, seconds), SIPLimits.retryAfterSeconds))))
    }
}
