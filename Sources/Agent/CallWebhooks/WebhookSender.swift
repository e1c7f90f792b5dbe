// CallWebhooks: requests about calls to the servers of bots and flows: which hosts may be asked, how they are looked up, and reports of status.

package import BotWire
internal import Core
package import HTTPTransport
package import NIOCore
internal import NIOHTTP1
internal import Realtime

/// Sends requests to servers that the configuration, or a server of it, names. On its event loop.
package final class WebhookSender: Sendable {
    package let loop: any EventLoop
    package let hosts: HostGuard
    package let trust: TLSTrust
    private let lookup: HostLookup
    private let bounds: HTTPFetch.Bounds
    private let keys: [[UInt8]]

    /// - Parameters:
    ///   - bounds: Of each answer.
    ///   - keys: Sign requests that have an id, as ``WebhookSignature`` has it.
    package init(
        to hosts: HostGuard, trust: TLSTrust, within bounds: HTTPFetch.Bounds, keys: [[UInt8]] = [],
        on loop: any EventLoop
    ) {
        self.hosts = hosts
        self.trust = trust
        self.bounds = bounds
        self.keys = keys
        self.loop = loop
        lookup = HostLookup(on: loop)
    }

    /// Where a host that may be connected with is. ``HostGuard/Refusal`` if it may not.
    package func addresses(of address: WebAddress) -> EventLoopFuture<[NIOCore.SocketAddress]> {
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

    /// Sends a request.
    ///
    /// - Parameter bounds: Of the answer; nil for the usual ones.
    package func send(
        _ request: TwilioWebhook.Request, within bounds: HTTPFetch.Bounds? = nil
    ) -> EventLoopFuture<HTTPFetch.Answer> {
        let address = request.webhook.address
        let endpoint: HTTPEndpoint
        do { endpoint = try HTTPEndpoint(address) } catch { return loop.makeFailedFuture(error) }
        var fetch = HTTPFetch.Request(
            request.webhook.method == .get ? .GET : .POST, endpoint, target: request.target, body: request.body)
        fetch.headers.add(name: "User-Agent", value: "Handset")
        if let type = request.contentType { fetch.headers.add(name: "Content-Type", value: type) }
        if let signature = request.signature { fetch.headers.add(name: "X-Twilio-Signature", value: signature) }
        if let trace = request.trace { fetch.headers.add(name: "traceparent", value: trace) }
        for field in signed(request) { fetch.headers.add(name: field.name, value: field.value) }
        return addresses(of: address).flatMap { [fetch, self] found in send(fetch, to: found[...], within: bounds) }
    }

    /// A request without a body is signed by its query.
    private func signed(_ request: TwilioWebhook.Request) -> [(name: String, value: String)] {
        guard let id = request.id, !keys.isEmpty else { return [] }
        let query = request.target.split(separator: "?", maxSplits: 1).dropFirst().first ?? ""
        return WebhookSignature.fields(
            id, at: MonotonicClock.wallTime.unixMilliseconds / 1_000,
            request.webhook.method == .get ? Array(query.utf8) : request.body, keys: keys)
    }

    /// Sends a request to the first of these addresses at which a server listens.
    package func send(
        _ fetch: HTTPFetch.Request, to addresses: ArraySlice<NIOCore.SocketAddress>,
        within bounds: HTTPFetch.Bounds? = nil
    ) -> EventLoopFuture<HTTPFetch.Answer> {
        guard let address = addresses.first else { return loop.makeFailedFuture(HTTPFetch.Failure.closed) }
        let answer = HTTPFetch.send(fetch, to: address, trust: trust, within: bounds ?? self.bounds, on: loop)
        let rest = addresses.dropFirst()
        guard !rest.isEmpty else { return answer }
        return answer.flatMapError { [self] error in
            TransportFailure(error, to: fetch.endpoint).kind == .noServer
                ? send(fetch, to: rest, within: bounds) : loop.makeFailedFuture(error)
        }
    }

    /// Says why a server cannot be reached.
    package func explain(_ error: any Error, _ address: WebAddress) -> String {
        switch error {
        case let refusal as HostGuard.Refusal: return refusal.description
        case let refusal as LookupQueue.Refusal: return "the name \"\(address.host)\" \(refusal.description)"
        case is SocketAddressError: return "the name \"\(address.host)\" is not known"
        default:
            guard let endpoint = try? HTTPEndpoint(address) else { return "\(error)" }
            return TransportFailure(error, to: endpoint).description
        }
    }

    /// Ends look-ups.
    package func finish() { lookup.finish() }
}

extension HTTPEndpoint {
    /// The endpoint of an address, which has the same parts.
    package init(_ address: WebAddress) throws(Malformed) {
        let host = address.host.contains(":") ? "[\(address.host)]" : address.host
        try self.init("\(address.scheme.isSecure ? "https" : "http")://\(host):\(address.port)\(address.target)")
    }
}
