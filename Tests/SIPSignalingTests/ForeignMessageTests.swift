import CallControl
import JSON
import Core
import SIP
@testable import SIPSignaling
import Testing

@Suite("Messages that name a call, from where neither the call nor the server is")
struct ForeignMessageTests {
    /// A flow of a peer that is not the account's flow to its server.
    private func flow(_ number: Int, at host: String) throws -> SIPFlow {
        SIPFlow(
            id: number, transport: .udp, localHost: try #require(SIPHost("192.0.2.9")), localPort: 40_001,
            remoteHost: SIPHost(host))
    }

    private static let elsewhere = "198.51.100.66"

    /// A connected account whose calls may come from anybody.
    private func connected(_ change: (inout SIPAccountSettings) -> Void = { _ in }) throws -> AccountRun {
        var run = try AccountRun {
            $0.acceptsStrangers = true
            change(&$0)
        }
        try run.connect(.udp)
        return run
    }

    /// A call of Bob's that is established.
    private func talk(_ run: inout AccountRun, by flow: SIPFlow? = nil, route: String? = nil) throws -> String {
        let way = try #require(flow ?? run.flow)
        let headers = route.map { "Record-Route: <\($0);lr>" } ?? "X-None: 1"
        try run.receive(try run.peerRequest("INVITE", 1, body: AccountRun.offer, headers), by: way)
        run.ask(.accept(try run.received().id, AccountRun.accept))
        let to = try #require(try run.response(200).headers["To"])
        try run.receive(try run.peerRequest("ACK", 1, to: to, branch: "ack"), by: way)
        return to
    }

    private func hasEnded(_ run: AccountRun) -> Bool {
        run.events.contains { if case .callEnded = $0 { true } else { false } }
    }

    private func foreign(_ run: AccountRun) -> Int {
        run.outputs.compactMap { if case .note(.foreign(_, _, let count)) = $0 { count } else { nil } }.last ?? 0
    }

    @Test(
        "A stranger who has read a dialog's ids changes nothing from another host: 481, counted and logged",
        arguments: ["BYE", "INVITE", "UPDATE", "INFO", "REFER", "OPTIONS", "NOTIFY"])
    func inDialog(_ method: String) throws {
        var run = try connected()
        let to = try talk(&run)
        let (before, statuses) = (run.events.count, run.statuses.count)
        let stranger = try flow(-1, at: Self.elsewhere)
        let moved = AccountRun.offer.replacing("192.0.2.77", with: Self.elsewhere)
        let body = method == "INVITE" || method == "UPDATE" ? moved : ""
        let request = try run.peerRequest(method, 2, to: to, body: body, "Refer-To: <sip:0900@sip.test>")
        try run.receive(request, by: stranger)
        #expect(run.statuses.dropFirst(statuses) == [481])
        #expect(run.events.count == before && foreign(run) == 1)
        // The peer's own request of that number is still in order.
        try run.receive(try run.peerRequest("BYE", 2, to: to, branch: "own"))
        #expect(hasEnded(run))
    }

    @Test(
        "A call's requests come from its route, its peer's contact, another node of the server, or where it came from",
        arguments: [("198.51.100.7", true), ("192.0.2.77", true), ("192.0.2.2", true), (elsewhere, false)])
    func ownSources(_ host: String, _ isPeer: Bool) throws {
        for acceptsStrangers in [true, false] {
            var run = try connected { $0.acceptsStrangers = acceptsStrangers }
            run.feed(.resolved([try AccountRun.target(.udp), try AccountRun.target(.udp, "192.0.2.2")]))
            let to = try talk(&run, route: "sip:198.51.100.7:5062")
            let source = try flow(-3, at: host)
            let bye = try run.peerRequest("BYE", 2, to: to)
            guard case .request(let request) = bye else { return }
            #expect(run.admits(request, by: source) == (acceptsStrangers || isPeer))
            #expect(acceptsStrangers || (foreign(run) == 0) == isPeer)
            var account = run.account
            #expect(account.expects(try #require(SIPHost(host))) == (isPeer && host != "192.0.2.2"))
            try run.receive(bye, by: source)
            #expect(hasEnded(run) == isPeer)
        }
    }

    @Test("A call that came from a stranger is ended from the stranger's host alone, from any port there")
    func ofStranger() throws {
        var run = try connected()
        let to = try talk(&run, by: try flow(-1, at: "203.0.113.5"))
        try run.receive(try run.peerRequest("BYE", 2, to: to), by: try flow(-2, at: Self.elsewhere))
        #expect(!hasEnded(run))
        try run.receive(try run.peerRequest("BYE", 2, to: to, branch: "own"), by: try flow(-3, at: "203.0.113.5"))
        #expect(hasEnded(run))
    }

    @Test("After a failover both the node before and the one after it speak in the call")
    func failover() throws {
        for host in ["192.0.2.1", "192.0.2.2", Self.elsewhere] {
            var run = try connected()
            let to = try talk(&run)
            run.feed(.failed(try #require(run.flow).id))
            run.run(.seconds(2))
            run.feed(.resolved([try AccountRun.target(.udp, "192.0.2.2")]))
            let number = try #require(run.lastOpened)
            run.feed(.opened(try flow(number, at: "192.0.2.2")))
            try run.receive(
                .response(registered(try run.request(.register))), by: try flow(number, at: "192.0.2.2"))
            try run.receive(try run.peerRequest("BYE", 2, to: to), by: try flow(-1, at: host))
            #expect(hasEnded(run) == (host != Self.elsewhere), "\(host)")
        }
    }

    private func registered(_ request: SIPRequest) -> SIPResponse {
        var response = SIPResponse(200, to: request, toTag: "peer")
        response.headers.append("Contact", request.headers["Contact"] ?? "")
        return response
    }

    @Test("A name in the route is looked up when a message comes from an unknown address, which counts from then on")
    func names() throws {
        var run = try connected()
        let to = try talk(&run, route: "sip:Node1.sip.test")
        let node = try flow(-1, at: "198.51.100.7")
        try run.receive(try run.peerRequest("BYE", 2, to: to), by: node)
        #expect(!hasEnded(run))
        #expect(run.outputs.filter { if case .lookUp = $0 { true } else { false } } == [.lookUp("node1.sip.test")])
        // Once for a minute, however many come.
        try run.receive(try run.peerRequest("BYE", 2, to: to, branch: "again"), by: node)
        #expect(run.outputs.count { if case .lookUp = $0 { true } else { false } } == 1)
        run.feed(.found("node1.sip.test", [try #require(SIPHost("198.51.100.7"))]))
        try run.receive(
            try run.peerRequest("BYE", 2, to: to, branch: "third"), by: try flow(-2, at: Self.elsewhere))
        #expect(!hasEnded(run))
        try run.receive(try run.peerRequest("BYE", 2, to: to, branch: "fourth"), by: node)
        #expect(hasEnded(run))
    }

    @Test("A CANCEL counts from the caller's host and the server's, and from nowhere else")
    func cancel() throws {
        for (host, counts) in [(Self.elsewhere, false), ("192.0.2.77", false), ("192.0.2.2", true)] {
            var run = try connected()
            run.feed(.resolved([try AccountRun.target(.udp), try AccountRun.target(.udp, "192.0.2.2")]))
            _ = try run.ring()
            try run.receive(try run.peerRequest("CANCEL", 1, branch: "INVITE1"), by: try flow(-1, at: host))
            #expect(run.statuses.contains(487) == counts && run.statuses.contains(481) == !counts, "\(host)")
        }
    }

    @Test("A response counts from where the request went and from the server's hosts, and from nowhere else")
    func responses() throws {
        for (host, counts) in [(Self.elsewhere, false), ("192.0.2.2", true)] {
            var run = try connected()
            run.feed(.resolved([try AccountRun.target(.udp), try AccountRun.target(.udp, "192.0.2.2")]))
            run.ask(.invite(AccountRun.options()))
            var response = SIPResponse(200, to: try run.request(.invite), toTag: "peer")
            response.headers.append("Contact", "<sip:bob@\(host)>")
            response.headers.append("Content-Type", "application/sdp")
            response.body = Array(AccountRun.reply.utf8)
            try run.receive(.response(response), by: try flow(-1, at: host))
            let isAccepted = run.events.contains { if case .inviteAccepted = $0 { true } else { false } }
            #expect(isAccepted == counts && (foreign(run) == 0) == counts, "\(host)")
        }
    }

    @Test("A registration is neither granted nor refused from elsewhere")
    func registration() throws {
        var run = try AccountRun { $0.acceptsStrangers = true }
        let ticket = run.ask(.connect)
        try run.open(.udp)
        let request = try run.request(.register)
        try run.receive(.response(SIPResponse(403, to: request, toTag: "x")), by: try flow(-1, at: Self.elsewhere))
        try run.receive(.response(registered(request)), by: try flow(-1, at: Self.elsewhere))
        #expect(run.answer(ticket) == nil && foreign(run) > 0)
        try run.respond(200, to: request)
        #expect(run.answer(ticket) == .done)
    }

    @Test("The answer in an ACK counts from the caller, and does not move the call from elsewhere")
    func acknowledgement() throws {
        var run = try connected()
        try run.receive(try run.peerRequest("INVITE", 1))
        run.ask(.accept(try run.received().id, .call(.offer(AccountRun.reply))))
        let to = try #require(try run.response(200).headers["To"])
        let moved = AccountRun.offer.replacing("192.0.2.77", with: Self.elsewhere)
        for branch in ["ack", "INVITE1"] {
            try run.receive(
                try run.peerRequest("ACK", 1, to: to, body: moved, branch: branch), by: try flow(-1, at: Self.elsewhere)
            )
        }
        #expect(!run.events.contains { if case .callSignal = $0 { true } else { false } })
        try run.receive(try run.peerRequest("ACK", 1, to: to, body: AccountRun.offer, branch: "ack"))
        #expect(try run.signal().sdp == AccountRun.offer)
    }

    @Test("An ACK from elsewhere does not stop the repetition of a refusal")
    func refusal() throws {
        var run = try connected()
        let invite = try run.ring()
        run.ask(.reject(invite, InviteRejection(.declined)))
        let to = try #require(try run.response(603).headers["To"])
        try run.receive(
            try run.peerRequest("ACK", 1, to: to, branch: "INVITE1"), by: try flow(-1, at: Self.elsewhere))
        run.run(.seconds(1))
        #expect(run.statuses.count { $0 == 603 } > 1)
        let sent = run.statuses.count
        try run.receive(try run.peerRequest("ACK", 1, to: to, branch: "INVITE1"))
        run.run(.seconds(5))
        #expect(run.statuses.count == sent)
    }

    @Test("An INVITE with Replaces takes a call's place only from where the call's own requests may come")
    func replaces() throws {
        for (host, replaces) in [(Self.elsewhere, false), ("192.0.2.77", true)] {
            var run = try connected()
            let to = try talk(&run)
            let tag = try #require(to.split(separator: "tag=").last)
            guard case .request(var request) = try run.peerRequest("INVITE", 7, body: AccountRun.offer, branch: "taker")
            else { return }
            request.headers.set("Call-ID", "taker")
            request.headers.append("Replaces", "from-bob;to-tag=\(tag);from-tag=peer")
            try run.receive(.request(request), by: try flow(-1, at: host))
            let invites = run.events.count { if case .inviteReceived = $0 { true } else { false } }
            #expect(invites == (replaces ? 2 : 1) && (run.statuses.last == 481) == !replaces, "\(host)")
        }
    }

    @Test(
        "A request to any name shows a stranger neither the account's user nor the version, and the server both",
        arguments: ["OPTIONS", "INVITE", "SUBSCRIBE", "BYE"])
    func secrets(_ method: String) throws {
        for (host, isServer) in [(Self.elsewhere, false), ("192.0.2.1", true)] {
            var run = try connected { $0.agent.product = "Handset/9.9.9" }
            guard
                case .request(var request) = try run.peerRequest(
                    method, 1, to: "<sip:nobody@192.0.2.9>", body: method == "INVITE" ? AccountRun.offer : "")
            else { return }
            request.uri = try #require(AnyURI("sip:nobody@192.0.2.9"))
            let start = run.outputs.count
            try run.receive(.request(request), by: try flow(-1, at: host))
            if method == "INVITE" { run.ask(.accept(try run.received().id, AccountRun.accept)) }
            let sent = run.outputs.dropFirst(start).compactMap { output -> String? in
                guard case .transmit(let message, _) = output else { return nil }
                return String(decoding: message.bytes, as: UTF8.self)
            }
            #expect(!sent.isEmpty)
            for text in sent {
                #expect(text.contains("Handset/9.9.9") == isServer, "\(text)")
                #expect(isServer || !text.contains("alice"), "\(text)")
            }
            if method == "INVITE" || method == "OPTIONS" {
                let name = isServer ? "alice" : "nobody"
                #expect(sent.last?.contains("Contact: <sip:\(name)@192.0.2.9:40001>") == true)
            }
            guard method == "INVITE" else { continue }
            // What we send in the call tells no more.
            run.ask(.hangUp(CallHangUp(invite: try run.received().id, reason: .completed, duration: .zero)))
            let to = try #require(try run.response(200).headers["To"])
            try run.receive(try run.peerRequest("ACK", 1, to: to, branch: "ack"), by: try flow(-1, at: host))
            let bye = String(decoding: SIPMessage.request(try run.request(.bye)).bytes, as: UTF8.self)
            #expect(bye.contains("Handset/9.9.9") == isServer && (isServer || !bye.contains("alice")))
        }
    }

    @Test("The log has few of many such messages, and how many there were")
    func limit() throws {
        var run = try connected()
        let to = try talk(&run)
        let stranger = try flow(-1, at: Self.elsewhere)
        for number in 0..<200 {
            try run.receive(try run.peerRequest("BYE", 2, to: to, branch: "b\(number)"), by: stranger)
        }
        run.run(.seconds(61))
        try run.receive(try run.peerRequest("BYE", 2, to: to, branch: "last"), by: stranger)
        let notes = run.outputs.compactMap { if case .note(.foreign(_, _, let count)) = $0 { count } else { nil } }
        #expect(notes.count <= 7 && notes.last == 201, "\(notes)")
        #expect(!hasEnded(run))
    }
}
