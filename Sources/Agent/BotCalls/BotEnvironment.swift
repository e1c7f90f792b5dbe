internal import BotWire
internal import CallParticipation
internal import HTTPTransport
internal import NIOCore
internal import NIOHTTP1
internal import Core

/// What all calls of a device's bot share. On its event loop.
final class BotEnvironment: Sendable {
    let plan: BotPlan
    let loop: any EventLoop
    let hosts: HostGuard
    let trust: TLSTrust
    /// What callers hear without the bot: linear, at 48 kHz. Without a fallback there is none.
    let fallback: [UInt8]?
    /// Whether a call may be transferred to this target.
    let mayTransfer: @Sendable (String) -> Bool
    let publish: @Sendable (ParticipantEvent) -> Void
    let order: @Sendable (BotOrder) -> Void
    let lookup: BotLookup

    private let bounds: HTTPFetch.Bounds
    /// Legs to bots that are offered them by HTTP.
    let legs = LegTable()
    /// Hang-ups on their way to bots' servers.
    let closingRequests: ClosingRequests

    init(
        _ plan: BotPlan, fallback: [UInt8]?, trust: TLSTrust, loop: any EventLoop,
        mayTransfer: @escaping @Sendable (String) -> Bool, publish: @escaping @Sendable (ParticipantEvent) -> Void,
        order: @escaping @Sendable (BotOrder) -> Void
    ) {
        self.plan = plan
        let time = max(.seconds(10), plan.answerTimeout)
        bounds = HTTPFetch.Bounds(
            bodyBytes: WireLimits.markupBytes,
            time: .nanoseconds(Instant.zero.nanoseconds(to: .zero.advanced(by: time))))
        self.fallback = fallback
        self.trust = trust
        self.loop = loop
        self.mayTransfer = mayTransfer
        self.publish = publish
        self.order = order
        lookup = BotLookup(on: loop)
        closingRequests = ClosingRequests(on: loop)
        let own = [plan.address] + [plan.statusCallback].compactMap { $0 }
        hosts = HostGuard(own: own.map(\.host), allowed: plan.allowedHosts)
    }

    /// Reports something that the operator must know.
    ///
    /// - Parameter leftOut: The number of such reports before it that were dropped.
    func warn(_ what: String, leftOut: Int = 0) { publish(.noted(.warned(what, leftOut: leftOut), nil)) }

    /// Where a host that may be connected with is. ``HostGuard/Refusal`` if it may not.
    func addresses(of address: WebAddress) -> EventLoopFuture<[NIOCore.SocketAddress]> {
        let host = address.host
        do throws(HostGuard.Refusal) {
            try hosts.check(host)
        } catch {
            return loop.makeFailedFuture(error)
        }
        return lookup.addresses(of: host, port: address.port).flatMapThrowing { [hosts] found in
            for one in found { try hosts.check(host, at: one.ipAddress ?? "") }
            return found
        }
    }

    /// Sends a request to a bot's server.
    func send(_ request: TwilioWebhook.Request) -> EventLoopFuture<HTTPFetch.Answer> {
        let address = request.webhook.address
        let endpoint: HTTPEndpoint
        do { endpoint = try HTTPEndpoint(address) } catch { return loop.makeFailedFuture(error) }
        var fetch = HTTPFetch.Request(
            request.webhook.method == .get ? .GET : .POST, endpoint, target: request.target, body: request.body)
        fetch.headers.add(name: "User-Agent", value: "Handset")
        if let type = request.contentType { fetch.headers.add(name: "Content-Type", value: type) }
        if let signature = request.signature { fetch.headers.add(name: "X-Twilio-Signature", value: signature) }
        if let trace = request.trace { fetch.headers.add(name: "traceparent", value: trace) }
        return addresses(of: address).flatMap { [fetch, self] found in send(fetch, to: found[...]) }
    }

    func send(
        _ fetch: HTTPFetch.Request, to addresses: ArraySlice<NIOCore.SocketAddress>
    ) -> EventLoopFuture<HTTPFetch.Answer> {
        guard let address = addresses.first else { return loop.makeFailedFuture(HTTPFetch.Failure.closed) }
        let answer = HTTPFetch.send(fetch, to: address, trust: trust, within: bounds, on: loop)
        let rest = addresses.dropFirst()
        guard !rest.isEmpty else { return answer }
        return answer.flatMapError { [self] error in
            TransportFailure(error, to: fetch.endpoint).kind == .noServer
                ? send(fetch, to: rest) : loop.makeFailedFuture(error)
        }
    }

    /// Says why a bot, or its server, cannot be reached.
    func explain(_ error: any Error, _ address: WebAddress) -> String {
        switch error {
        case let refusal as HostGuard.Refusal: return refusal.description
        case let refusal as LookupQueue.Refusal: return "the name \"\(address.host)\" \(refusal.description)"
        case is SocketAddressError: return "the name \"\(address.host)\" is not known"
        default:
            guard let endpoint = try? HTTPEndpoint(address) else { return "\(error)" }
            return TransportFailure(error, to: endpoint).description
        }
    }
}

extension HTTPEndpoint {
    /// The endpoint of an address, which has the same parts.
    init(_ address: WebAddress) throws(Malformed) {
        let host = address.host.contains(":") ? "[\(address.host)]" : address.host
        try self.init("\(address.scheme.isSecure ? "https" : "http")://\(host):\(address.port)\(address.target)")
    }
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
