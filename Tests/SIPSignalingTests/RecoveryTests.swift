import CallControl
import JSON
import SIP
@testable import SIPSignaling
import Testing

@Suite("Calls of an account whose way to the server changes, or whose peer is silent")
struct RecoveryTests {
    private struct Unexpected: Error {
        let text: String
        init(_ text: String) { self.text = text }
    }

    /// A call of Bob's that stands.
    private func talk(_ run: inout AccountRun, by flow: SIPFlow? = nil) throws -> (invite: InviteID, to: String) {
        let way = try #require(flow ?? run.flow)
        try run.receive(try run.peerRequest("INVITE", 1, body: AccountRun.offer), by: way)
        guard case .inviteReceived(let received)? = run.events.last else { throw Unexpected("an invite") }
        run.ask(.accept(received.id, AccountRun.accept))
        let to = try #require(try run.response(200).headers["To"])
        try run.receive(try run.peerRequest("ACK", 1, to: to, branch: "ack"), by: way)
        return (received.id, to)
    }

    private static let restart = AccountRun.reply.replacing("o=- 2 1", with: "o=- 2 7")

    private func refusals(_ run: AccountRun) -> Int {
        run.outputs.count { if case .note(.offerRefused) = $0 { true } else { false } }
    }

    // MARK: Offers that wait

    @Test("An offer that waited for a new registration is made after the refresh that gives the peer our contact")
    func offerAfterRefresh() throws {
        var run = try AccountRun()
        try run.connect()
        let (invite, _) = try talk(&run)
        run.feed(.failed(try #require(run.flow).id))
        run.ask(.send(CallSignal(invite: invite, .offer(.offer(Self.restart)))))
        run.run(.seconds(1))
        try run.open()
        try run.respond(200, to: try run.request(.register))
        #expect(run.requests(.invite).count == 1)
        run.run(.milliseconds(500))
        try run.respond(200, to: try run.request(.invite), body: Array(AccountRun.offer.utf8))
        run.run(.milliseconds(100))
        #expect(run.requests(.invite).count == 2 && refusals(run) == 0)
        #expect(try run.request(.invite).body == Array(Self.restart.utf8))
        try run.respond(200, to: try run.request(.invite), body: Array(AccountRun.offer.utf8))
        guard case .callSignal(let signal)? = run.events.last else { throw Unexpected("\(run.events)") }
        #expect(signal.kind == .answer)
    }

    @Test("An offer that waits for the peer's is given up with the application's answer, and made if there is none")
    func offerAfterOffer() throws {
        for answers in [true, false] {
            var run = try AccountRun()
            try run.connect()
            let (invite, to) = try talk(&run)
            let other = AccountRun.offer.replacing("m=audio 4000", with: "m=audio 4002")
            try run.receive(try run.peerRequest("INVITE", 2, to: to, body: other))
            run.ask(.send(CallSignal(invite: invite, .offer(.offer(Self.restart)))))
            #expect(run.requests(.invite).isEmpty && refusals(run) == 0)
            if answers {
                run.ask(.send(CallSignal(invite: invite, .answer(.answer(AccountRun.reply)))))
                try run.receive(try run.peerRequest("ACK", 2, to: to, branch: "ack2"))
            }
            run.run(.seconds(5))
            #expect(run.requests(.invite).count == (answers ? 0 : 1))
            #expect(run.statuses.last == (answers ? 200 : 488))
            // The next one goes out at once.
            guard answers else { continue }
            run.ask(.send(CallSignal(invite: invite, .offer(.offer(Self.restart)))))
            #expect(run.requests(.invite).count == 1)
        }
    }

    // MARK: Flows

    @Test("A call that rings while its connection dies is answered by the next one", arguments: [true, false])
    func ringing(_ isAccepted: Bool) throws {
        var run = try AccountRun()
        try run.connect()
        let invite = try run.ring()
        let first = try #require(run.flow)
        run.feed(.failed(first.id))
        #expect(run.events.last == .reconnecting)
        run.run(.milliseconds(100))
        let request: AccountRequest =
            isAccepted ? .accept(invite, AccountRun.accept) : .reject(invite, InviteRejection(.busy))
        let ticket = run.ask(request)
        #expect(run.answer(ticket) == .done)
        run.run(.seconds(1))
        try run.open()
        // By a connection that the server has not taken us by, it would not take our answer.
        #expect(run.statuses.allSatisfy { $0 == 100 })
        try run.respond(200, to: try run.request(.register))
        let flows = run.outputs.compactMap { output -> SIPFlow? in
            guard case .transmit(.response(let response), let flow) = output, response.status > 100 else { return nil }
            return flow
        }
        #expect(run.statuses.filter { $0 > 100 } == (isAccepted ? [180, 200] : [486]))
        #expect(flows.allSatisfy { $0 == run.flow && $0 != first })
        #expect(!run.events.contains { if case .inviteCancelled = $0 { true } else { false } })
    }

    @Test("A call that was accepted and hung up while there was no connection is refused, and not accepted")
    func hungUpBetweenFlows() throws {
        var run = try AccountRun()
        try run.connect()
        let invite = try run.ring()
        run.run(.milliseconds(100))
        run.feed(.failed(try #require(run.flow).id))
        run.ask(.accept(invite, AccountRun.accept))
        run.ask(.hangUp(CallHangUp(invite: invite, reason: .completed, duration: .zero)))
        run.run(.seconds(1))
        try run.open()
        try run.respond(200, to: try run.request(.register))
        #expect(Set(run.statuses) == [180, 603] && run.requests(.bye).isEmpty)
    }

    @Test("The peer of a call that was accepted while our address changed learns the new one after its ACK")
    func acceptedWhileMoving() throws {
        var run = try AccountRun()
        try run.connect()
        let invite = try run.ring()
        run.run(.milliseconds(100))
        run.feed(.networkChanged(source: SIPHost("192.0.2.10")))
        try run.open(from: "192.0.2.10")
        run.ask(.accept(invite, AccountRun.accept))
        #expect(run.statuses == [180])
        try run.respond(200, to: try run.request(.register))
        let to = try #require(try run.response(200).headers["To"])
        try run.receive(try run.peerRequest("ACK", 1, to: to, branch: "ack"))
        run.run(.milliseconds(500))
        #expect(String(decoding: try run.request(.invite).body, as: UTF8.self).contains("c=IN IP4 192.0.2.10\r\n"))
    }

    @Test("A ringing call ends when the connection does not come back for three minutes, and nothing of it is kept")
    func ringingForLong() throws {
        var run = try AccountRun()
        try run.connect()
        let invite = try run.ring()
        run.feed(.failed(try #require(run.flow).id))
        for _ in 0..<181 {
            if run.outputs.last == .resolve { run.feed(.resolved([])) }
            run.run(.seconds(1))
        }
        #expect(run.events.contains(.inviteTimedOut(invite, invitees: ["alice@sip.test"])))
    }

    @Test("A call by another node of the server continues by the server's next flow when the socket is gone")
    func otherNode() throws {
        var run = try AccountRun()
        try run.connect(.udp)
        let host = try #require(SIPHost("192.0.2.9"))
        let other = SIPFlow(id: -1, transport: .udp, localHost: host, localPort: 40_001)
        let (invite, _) = try talk(&run, by: other)
        run.feed(.failed(try #require(run.flow).id))
        run.feed(.failed(other.id))
        #expect(!run.events.contains { if case .callEnded = $0 { true } else { false } })
        run.run(.seconds(1))
        try run.open(.udp)
        try run.respond(200, to: try run.request(.register))
        // The peer learns where we are now.
        let refresh = try run.sent(.invite)
        #expect(refresh.flow == run.flow)
        try run.respond(200, to: refresh.request, body: Array(AccountRun.offer.utf8))
        run.ask(.hangUp(CallHangUp(invite: invite, reason: .completed, duration: .zero)))
        #expect(try run.sent(.bye).flow == run.flow)
    }

    @Test("A call by another node of the server continues from our new address, and its peer learns it")
    func otherNodeFromNewAddress() throws {
        var run = try AccountRun()
        try run.connect(.udp)
        let host = try #require(SIPHost("192.0.2.9"))
        let other = SIPFlow(id: -1, transport: .udp, localHost: host, localPort: 40_001)
        _ = try talk(&run, by: other)
        run.feed(.networkChanged(source: SIPHost("192.0.2.10")))
        try run.open(.udp, from: "192.0.2.10")
        #expect(run.outputs.contains(.close(-1)))
        try run.respond(200, to: try run.request(.register))
        let offer = try run.sent(.invite)
        #expect(offer.flow == run.flow && run.requests(.invite).count == 1)
        #expect(String(decoding: offer.request.body, as: UTF8.self).contains("c=IN IP4 192.0.2.10\r\n"))
    }

    private static let large = AccountRun.offer + String(repeating: "a=x\r\n", count: 200)

    @Test("After a failover what is large goes to the new server, and the connection to the old one is closed")
    func largeAfterFailover() throws {
        var run = try AccountRun()
        try run.connect(.udp)
        run.ask(.invite(AccountRun.options(sdp: Self.large)))
        try run.open(2, .tcp)
        run.feed(.failed(1))
        run.run(.seconds(2))
        run.feed(.resolved([try AccountRun.target(.udp, "192.0.2.2")]))
        try run.open(3, .udp)
        #expect(run.outputs.contains(.close(2)))
        try run.respond(200, to: try run.request(.register))
        run.ask(.invite(AccountRun.options(to: "carol", sdp: Self.large)))
        let target = try AccountRun.target(.tcp, "192.0.2.2")
        #expect(run.outputs.last == .open(4, target))
    }

    // MARK: Transfers

    private func progress(_ run: AccountRun) -> [CallTransfer.Progress] {
        run.events.compactMap { event in
            guard case .callSignal(let signal) = event, case .transferProgress(let progress)? = signal.message else {
                return nil
            }
            return progress
        }
    }

    @Test(
        "CALL-8: A transfer whose call ends before its INVITE was sent is refused, so that its requester knows")
    func transferBeforeInvite() throws {
        var run = try AccountRun()
        try run.connect()
        let (invite, to) = try talk(&run)
        try run.receive(try run.peerRequest("REFER", 2, to: to, "Refer-To: <sip:carol@sip.test>"))
        var options = AccountRun.options(to: "carol", sdp: AccountRun.offer + "a=ice-ufrag:abcd\r\n")
        options.transfer = CallTransfer.Origin(invite: invite)
        let ticket = run.ask(.invite(options))
        guard case .sent(let new, _)? = run.answer(ticket) else { throw Unexpected("an invite") }
        run.ask(.cancel(new, .call(.cancelled)))
        #expect(run.statuses.last == 603 && run.requests(.invite).isEmpty)
        // And the next one is a wish again.
        try run.receive(try run.peerRequest("REFER", 3, to: to, "Refer-To: <sip:dave@sip.test>"))
        guard case .callSignal(let signal)? = run.events.last else { throw Unexpected("\(run.events)") }
        #expect(signal.wish?.target == "dave@sip.test")
    }

    @Test("CALL-8: A peer that says nothing of a transfer for three minutes has not carried it out")
    func silentTransfer() throws {
        var run = try AccountRun()
        try run.connect()
        let (invite, to) = try talk(&run)
        let wish = CallTransfer.Request(target: "carol")
        run.ask(.send(CallSignal(invite: invite, .transfer(wish))))
        try run.respond(202, to: try run.request(.refer))
        run.run(.seconds(100))
        guard
            case .request(var request) = try run.peerRequest(
                "NOTIFY", 2, to: to, "Event: refer", "Subscription-State: active")
        else { throw Unexpected("a NOTIFY") }
        request.headers.append("Content-Type", "message/sipfrag")
        request.body = Array("SIP/2.0 180 Ringing\r\n".utf8)
        try run.receive(.request(request))
        run.run(.seconds(179))
        #expect(progress(run) == [.ringing])
        run.run(.seconds(2))
        #expect(progress(run) == [.ringing, .failed])
        run.run(.seconds(300))
        #expect(progress(run).count == 2)
    }

    @Test("CALL-8: A transfer of which the peer says no more than that it has begun has failed")
    func endlessTransfer() throws {
        var run = try AccountRun()
        try run.connect()
        let (invite, to) = try talk(&run)
        run.ask(.send(CallSignal(invite: invite, .transfer(CallTransfer.Request(target: "carol")))))
        try run.respond(202, to: try run.request(.refer))
        guard
            case .request(var request) = try run.peerRequest(
                "NOTIFY", 2, to: to, "Event: refer", "Subscription-State: terminated;reason=noresource")
        else { throw Unexpected("a NOTIFY") }
        request.headers.append("Content-Type", "message/sipfrag")
        request.body = Array("SIP/2.0 100 Trying\r\n".utf8)
        try run.receive(.request(request))
        #expect(progress(run) == [.failed])
        run.run(.seconds(300))
        #expect(progress(run).count == 1)
    }

    @Test("What is asked for between a flow's loss and the next registration goes by the new flow")
    func betweenFlows() throws {
        var run = try AccountRun()
        try run.connect()
        let (invite, _) = try talk(&run)
        run.feed(.failed(try #require(run.flow).id))
        run.run(.seconds(1))
        try run.open()
        run.ask(.hangUp(CallHangUp(invite: invite, reason: .completed, duration: .zero)))
        #expect(run.requests(.bye).isEmpty)
        try run.respond(200, to: try run.request(.register))
        let bye = try run.sent(.bye)
        #expect(bye.flow == run.flow && run.requests(.bye).count == 1)
    }
}
