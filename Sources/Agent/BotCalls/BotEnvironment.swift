internal import BotWire
internal import CallParticipation
internal import CallWebhooks
internal import HTTPTransport
internal import NIOCore
internal import Core

/// What all calls of a device's bot share. On its event loop.
final class BotEnvironment: Sendable {
    let plan: BotPlan
    let loop: any EventLoop
    /// Asks the bot's server.
    let webhooks: WebhookSender
    /// What callers hear without the bot: linear, at 48 kHz. Without a fallback there is none.
    let fallback: [UInt8]?
    /// Whether a call may be transferred to this target.
    let mayTransfer: @Sendable (String) -> Bool
    let publish: @Sendable (ParticipantEvent) -> Void
    let order: @Sendable (BotOrder) -> Void
    /// Legs to bots that are offered them by HTTP.
    let legs = LegTable()
    /// Hang-ups on their way to bots' servers.
    let closingRequests: ClosingRequests

    /// - Parameter hosts: Those that may be connected with.
    init(
        _ plan: BotPlan, to hosts: HostGuard, fallback: [UInt8]?, trust: TLSTrust, loop: any EventLoop,
        mayTransfer: @escaping @Sendable (String) -> Bool, publish: @escaping @Sendable (ParticipantEvent) -> Void,
        order: @escaping @Sendable (BotOrder) -> Void
    ) {
        self.plan = plan
        let time = max(.seconds(10), plan.answerTimeout)
        let bounds = HTTPFetch.Bounds(
            bodyBytes: WireLimits.markupBytes,
            time: .nanoseconds(Instant.zero.nanoseconds(to: .zero.advanced(by: time))))
        self.fallback = fallback
        self.loop = loop
        self.mayTransfer = mayTransfer
        self.publish = publish
        self.order = order
        closingRequests = ClosingRequests(on: loop)
        webhooks = WebhookSender(to: hosts, trust: trust, within: bounds, on: loop)
    }

    var hosts: HostGuard { webhooks.hosts }
    var trust: TLSTrust { webhooks.trust }

    /// Reports something that the operator must know.
    ///
    /// - Parameter leftOut: The number of such reports before it that were dropped.
    func warn(_ what: String, leftOut: Int = 0) { publish(.noted(.warned(what, leftOut: leftOut), nil)) }

    /// Where a host that may be connected with is. ``HostGuard/Refusal`` if it may not.
    func addresses(of address: WebAddress) -> EventLoopFuture<[NIOCore.SocketAddress]> {
        webhooks.addresses(of: address)
    }

    /// Sends a request to a bot's server.
    func send(_ request: TwilioWebhook.Request) -> EventLoopFuture<HTTPFetch.Answer> { webhooks.send(request) }

    func send(
        _ fetch: HTTPFetch.Request, to addresses: ArraySlice<NIOCore.SocketAddress>
    ) -> EventLoopFuture<HTTPFetch.Answer> { webhooks.send(fetch, to: addresses) }

    /// Says why a bot, or its server, cannot be reached.
    func explain(_ error: any Error, _ address: WebAddress) -> String { webhooks.explain(error, address) }
}

/// Requests under way that end something at a bot's server: they get out before the loop ends.
final class ClosingRequests: @unchecked Sendable {
    // Only the event loop uses it.
    private let loop: any EventLoop
    private var count = 0
    private var end: EventLoopPromise<Int>?

    init(on loop: any EventLoop) { self.loop = loop }

    /// A request has been sent, of which this is the answer.
    func add<Answer>(_ answer: EventLoopFuture<Answer>) {
        count += 1
        answer.assumeIsolated().whenComplete { [self] _ in
            count -= 1
            guard count == 0 else { return }
            end?.succeed(0)
            end = nil
        }
    }

    /// Completes once all are answered or have failed, after this time at the latest: with the number of those that are cut off.
    func finish(within limit: TimeAmount) -> EventLoopFuture<Int> {
        guard count > 0 else { return loop.makeSucceededFuture(0) }
        let promise = loop.makePromise(of: Int.self)
        end = promise
        let patience = loop.assumeIsolated().scheduleTask(in: limit) { [self] in
            end?.succeed(count)
            end = nil
        }
        promise.futureResult.whenComplete { _ in patience.cancel() }
        return promise.futureResult
    }
}
