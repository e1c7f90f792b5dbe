import CallControl
import JSON
import Core
import SIP
@testable import SIPSignaling
import Testing

/// An account on virtual time, and a server that a test plays by hand.
struct AccountRun {
    private(set) var account: AccountMachine
    private(set) var now = Instant.zero
    private(set) var outputs: [AccountOutput] = []
    private var ticket: UInt64 = 0
    /// The flow that the account has, once a test has opened it.
    private(set) var flow: SIPFlow?

    init(_ change: (inout SIPAccountSettings) -> Void = { _ in }) throws {
        let uri = try #require(AnyURI("sip:alice@sip.test"))
        var settings = SIPAccountSettings(address: NameAddress(uri), username: "alice", password: "secret")
        change(&settings)
        account = try #require(AccountMachine(settings, key: [UInt8](repeating: 7, count: 16)))
    }

    static func target(_ transport: SIPTransport, _ host: String = "192.0.2.1") throws -> SIPTarget {
        SIPTarget(transport: transport, address: try #require(SocketAddress(host: host, port: 5_060)))
    }

    mutating func feed(_ input: AccountInput) {
        var outbox: [AccountOutput] = []
        account.handle(input, at: now, into: &outbox)
        outputs += outbox
    }

    @discardableResult
    mutating func ask(_ request: AccountRequest) -> UInt64 {
        ticket += 1
        feed(.request(ticket, request))
        return ticket
    }

    mutating func run(_ duration: Duration) {
        let end = now.advanced(by: duration)
        while let next = account.nextDeadline, next <= end {
            now = max(now, next)
            feed(.timerFired)
        }
        now = end
    }

    // MARK: The server's part

    /// Resolves and opens what the account asks for.
    mutating func open(_ transport: SIPTransport = .tcp, from address: String = "192.0.2.9") throws {
        #expect(outputs.last == .resolve)
        feed(.resolved([try Self.target(transport)]))
        let number = try #require(lastOpened)
        try open(number, transport, from: address)
    }

    mutating func open(_ number: Int, _ transport: SIPTransport, from address: String = "192.0.2.9") throws {
        let host = try #require(SIPHost(address))
        let opened = SIPFlow(
            id: number, transport: transport, localHost: host, localPort: 40_000 + UInt16(number),
            remoteHost: SIPHost("192.0.2.1"))
        if flow == nil || transport == flow?.transport { flow = opened }
        feed(.opened(opened))
    }

    var lastOpened: Int? {
        outputs.compactMap { if case .open(let number, _) = $0 { number } else { nil } }.last
    }

    /// The last request of that method that was sent.
    func request(_ method: SIPMethod) throws -> SIPRequest {
        try #require(requests(method).last)
    }

    func requests(_ method: SIPMethod) -> [SIPRequest] {
        outputs.compactMap {
            if case .transmit(.request(let request), _) = $0, request.method == method { request } else { nil }
        }
    }

    /// The flows that requests of that method went by.
    func flows(_ method: SIPMethod) -> [SIPTransport] {
        outputs.compactMap {
            if case .transmit(.request(let request), let flow) = $0, request.method == method {
                flow.transport
            } else {
                nil
            }
        }
    }

    var statuses: [Int] {
        outputs.compactMap { if case .transmit(.response(let response), _) = $0 { response.status } else { nil } }
    }

    var events: [SignalingEvent] { outputs.compactMap { if case .event(let event) = $0 { event } else { nil } } }

    /// The last invite that came.
    func received() throws -> ReceivedInvite {
        try #require(events.compactMap { if case .inviteReceived(let invite) = $0 { invite } else { nil } }.last)
    }

    /// The last signal of a peer.
    func signal() throws -> CallSignal {
        try #require(events.compactMap { if case .callSignal(let signal) = $0 { signal } else { nil } }.last)
    }

    func answer(_ ticket: UInt64) -> AccountAnswer? {
        outputs.lazy.compactMap { if case .answer(ticket, let answer) = $0 { answer } else { nil } }.first
    }

    mutating func respond(
        _ status: Int, to request: SIPRequest, body: [UInt8] = [], _ change: (inout SIPHeaders) -> Void = { _ in }
    ) throws {
        var response = SIPResponse(status, to: request, toTag: "peer")
        if request.method == .register, status == 200, let contact = request.headers["Contact"] {
            response.headers.append("Contact", contact)
        }
        if request.method == .invite, status > 100, status < 300 {
            response.headers.append("Contact", "<sip:bob@192.0.2.77:5070>")
        }
        if !body.isEmpty { response.headers.append("Content-Type", "application/sdp") }
        change(&response.headers)
        response.body = body
        try receive(.response(response))
    }

    mutating func receive(_ message: SIPMessage) throws {
        let flow = try #require(flow)
        // Everything passes the parser and the writer.
        feed(.received(try SIPMessage(parsing: message.bytes), flow))
    }

    /// Whether a request of a peer that is not known yet is looked at.
    mutating func admits(_ request: SIPRequest, by flow: SIPFlow) -> Bool {
        account.admits(request, by: flow, at: now, into: &outputs)
    }

    /// A message by another flow than the account's own.
    mutating func receive(_ message: SIPMessage, by flow: SIPFlow) throws {
        feed(.received(try SIPMessage(parsing: message.bytes), flow))
    }

    /// The last request of that method that was sent, and by which flow.
    func sent(_ method: SIPMethod) throws -> (request: SIPRequest, flow: SIPFlow) {
        let all = outputs.compactMap { output -> (SIPRequest, SIPFlow)? in
            guard case .transmit(.request(let request), let flow) = output, request.method == method else { return nil }
            return (request, flow)
        }
        return try #require(all.last)
    }

    /// Connects over that transport, with a registration that is granted at once.
    mutating func connect(_ transport: SIPTransport = .tcp) throws {
        let ticket = ask(.connect)
        try open(transport)
        try respond(200, to: try request(.register))
        #expect(answer(ticket) == .done)
        #expect(events.last == .connected)
    }

    /// A request of the peer's.
    func peerRequest(
        _ method: String, _ sequence: Int, to: String = "<sip:alice@sip.test>", body: String = "",
        branch: String? = nil,
        _ headers: String...
    ) throws -> SIPMessage {
        let uri = method == "INVITE" && !to.contains("tag=") ? "sip:alice@192.0.2.9" : "sip:alice@192.0.2.9:40001"
        var text =
            "\(method) \(uri) SIP/2.0\r\nVia: SIP/2.0/TCP 192.0.2.1;branch=z9hG4bK\(branch ?? "\(method)\(sequence)")\r\n"
        text += "From: \"Bob\" <sip:bob@sip.test:5070>;tag=peer\r\nTo: \(to)\r\nCall-ID: from-bob\r\n"
        text += "CSeq: \(sequence) \(method)\r\nMax-Forwards: 70\r\nContact: <sip:bob@192.0.2.77:5070>\r\n"
        for header in headers { text += header + "\r\n" }
        if !body.isEmpty { text += "Content-Type: application/sdp\r\n" }
        text += "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        return try SIPMessage(parsing: Array(text.utf8))
    }

    static let offer = "v=0\r\no=- 1 1 IN IP4 192.0.2.77\r\ns=-\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n"
    static let reply =
        "v=0\r\no=- 2 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\nm=audio 5000 RTP/AVP 0\r\n"

    /// A call of Bob's that rings.
    mutating func ring() throws -> InviteID {
        try receive(try peerRequest("INVITE", 1, body: Self.offer))
        return try received().id
    }

    /// The last response of that status.
    func response(_ status: Int) throws -> SIPResponse {
        try #require(
            outputs.compactMap {
                if case .transmit(.response(let response), _) = $0, response.status == status { response } else { nil }
            }.last)
    }

    static func options(to: UserID = "bob", timeToLive: Duration? = .seconds(30), sdp: String = offer) -> InviteOptions
    {
        var options = InviteOptions(to: to, timeToLive: timeToLive, idempotencyKey: "key")
        options.offer = .offer(sdp)
        return options
    }

    static var accept: InviteAcceptance { .call(.answer(reply)) }
}

extension CallSignal {
    /// The text of the description that it carries.
    var sdp: String? {
        switch message {
        case .offer(let description)?, .answer(let description)?, .earlyAnswer(let description)?: description.sdp
        case .candidate, .offerRefused, .transfer, .transferProgress, .key, .acknowledged, .probe, nil: nil
        }
    }

    /// The transfer that it requests.
    var wish: CallTransfer.Request? { if case .transfer(let wish)? = message { wish } else { nil } }
}
