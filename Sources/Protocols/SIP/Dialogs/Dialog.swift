/// The state that two user agents share (RFC 3261 §12): the two parties, the order of requests, and their route.
struct Dialog: Sendable {
    let callID: String
    let localTag: String
    let remoteTag: String
    /// Our address as the peer knows it, with our tag.
    let local: NameAddress
    /// The peer's address, with its tag.
    let remote: NameAddress
    /// The target of requests: the peer's `Contact`.
    private(set) var target: AnyURI
    private let routes: [NameAddress]
    private(set) var flow: SIPFlow
    /// The peer's addresses on earlier flows.
    private var formerHosts: [SIPHost] = []
    private(set) var localSequence: UInt32
    /// The highest `CSeq` of the peer's requests.
    private var remoteSequence: UInt32?
    /// The methods that the peer allows; empty if it has not listed them.
    private(set) var allowed: Set<String> = []

    /// The dialog that a response to our INVITE makes (§12.1.2).
    init?(request: SIPRequest, response: SIPResponse, flow: SIPFlow) {
        guard let local = request.headers.from, let localTag = local.tag, let remote = response.headers.to,
            let callID = request.headers.callID,
            let sequence = request.headers.sequence, let routes = response.headers.addresses("Record-Route")
        else { return nil }
        self.callID = callID
        self.localTag = localTag
        // RFC 2543 knows no tag in To.
        remoteTag = remote.tag ?? ""
        self.local = local
        self.remote = remote
        self.flow = flow
        self.routes = routes.reversed()
        target = response.headers.contacts?.first?.uri ?? request.uri
        localSequence = sequence.number
        note(response.headers)
    }

    /// The dialog of a peer's request (§12.1.1).
    init?(request: SIPRequest, localTag: String, firstSequence: UInt32, flow: SIPFlow) {
        guard let remote = request.headers.from, var local = request.headers.to,
            let callID = request.headers.callID, let sequence = request.headers.sequence,
            let routes = request.headers.addresses("Record-Route"), let contact = request.headers.contacts?.first
        else { return nil }
        local.tag = localTag
        self.callID = callID
        self.localTag = localTag
        // RFC 2543 knows no tag in From.
        remoteTag = remote.tag ?? ""
        self.local = local
        self.remote = remote
        self.flow = flow
        self.routes = routes
        target = contact.uri
        localSequence = firstSequence
        remoteSequence = sequence.number
        note(request.headers)
    }

    /// Whether a request or response of the peer belongs here; its tag is in `From` of a request.
    func isRemote(tag: String?) -> Bool { remoteTag == tag ?? "" }

    func allows(_ method: SIPMethod) -> Bool { allowed.contains(method.rawValue) }

    /// Whether the peer allows a method, or has not listed the methods that it allows.
    func mayAllow(_ method: SIPMethod) -> Bool { allowed.isEmpty || allows(method) }

    /// Makes a request within the dialog (§12.2.1.1), with the next `CSeq`. The table adds the `Via`.
    mutating func request(_ method: SIPMethod) -> SIPRequest {
        localSequence += 1
        return request(method, sequence: localSequence)
    }

    /// Makes the ACK of a 2xx, which has the number of its INVITE (§13.2.2.4).
    func ack(of invite: SIPRequest) -> SIPRequest {
        var ack = request(.ack, sequence: invite.headers.sequence?.number ?? localSequence)
        for name: SIPHeaderName in ["Authorization", "Proxy-Authorization"] {
            for line in invite.headers.lines(name) { ack.headers.append(name, line) }
        }
        return ack
    }

    private func request(_ method: SIPMethod, sequence: UInt32) -> SIPRequest {
        var request = SIPRequest(method: method, uri: target)
        request.headers.append("Max-Forwards", "70")
        var routes = routes
        if let first = routes.first, case .sip(var uri) = first.uri, !uri.parameters.contains("lr") {
            // A strict router of RFC 2543: it takes its own address from the request line.
            routes.removeFirst()
            routes.append(NameAddress(target))
            uri.headers = SIPParameters()
            request.uri = .sip(uri)
        }
        for route in routes { request.headers.append("Route", route.description) }
        request.headers.append("From", local.description)
        request.headers.append("To", remote.description)
        request.headers.append("Call-ID", callID)
        request.headers.append("CSeq", CSeq(sequence, method).description)
        return request
    }

    /// Checks the order of a peer's request. Its target takes effect once the request is served (``refresh(_:)``).
    ///
    /// - Returns: Whether the request is in order; if not it is answered with 500 (§12.2.2).
    mutating func take(_ request: SIPRequest) -> Bool {
        guard let number = request.headers.sequence?.number else { return false }
        if let remoteSequence, number <= remoteSequence { return false }
        remoteSequence = number
        return true
    }

    /// Takes the target that an INVITE, an UPDATE or its 2xx gives.
    mutating func refresh(_ headers: SIPHeaders) {
        if let contact = headers.contacts?.first { target = contact.uri }
        note(headers)
    }

    /// Requests use another flow from now on. The peer's known address may still be the earlier one.
    mutating func move(to flow: SIPFlow) {
        if let host = self.flow.remoteHost, !formerHosts.contains(host) { formerHosts.append(host) }
        if formerHosts.count > Self.mostFormerHosts { formerHosts.removeFirst() }
        self.flow = flow
    }

    private static let mostFormerHosts = 4

    /// Addresses that the peer's messages may come from besides the server: the flow, earlier flows, the route set, and
    /// the target.
    var peerHosts: [SIPHost] {
        let uris = routes.map(\.uri) + [target]
        let named = uris.flatMap { uri -> [SIPHost] in
            guard let uri = uri.sip else { return [] }
            return [uri.host] + [uri.parameters["maddr"].flatMap { SIPHost($0) }].compactMap { $0 }
        }
        return [flow.remoteHost].compactMap { $0 } + formerHosts + named
    }

    /// Whether a message on a flow may come from this dialog's peer. Tags and a Call-ID alone prove nothing: any host
    /// that has read them in transit can send them.
    func isPeer(_ flow: SIPFlow, among known: KnownHosts) -> Bool {
        if known.isSamePeer(flow, as: self.flow) { return true }
        guard let address = flow.remoteHost else { return false }
        return peerHosts.contains { known.isSame($0, as: address) }
    }

    /// Numbers of requests that were sent before the dialog knew of them: of other forks.
    mutating func raiseSequence(to number: UInt32) { localSequence = max(localSequence, number) }

    private mutating func note(_ headers: SIPHeaders) {
        guard let methods = headers.elements("Allow"), !methods.isEmpty else { return }
        allowed = Set(methods)
    }
}
