import CallControl
import JSON
import SIP
@testable import SIPSignaling
import Testing

@Suite("An account whose address changes")
struct AddressChangeTests {
    /// An account with a call of Bob's that stands, and 192.0.2.9 as address.
    private func talking(_ change: (inout SIPAccountSettings) -> Void = { _ in }) throws -> AccountRun {
        var run = try AccountRun(change)
        try run.connect()
        let invite = try run.ring()
        run.ask(.accept(invite, AccountRun.accept))
        let to = try #require(try run.response(200).headers["To"])
        try run.receive(try run.peerRequest("ACK", 1, to: to, branch: "ack"))
        return run
    }

    @Test("It registers from the new address at once, and sends the peer of a call the new address of its sound")
    func repairs() throws {
        var run = try talking()
        run.feed(.networkChanged(source: SIPHost("192.0.2.10")))
        #expect(run.events.last == .reconnecting && run.outputs.last == .resolve)
        try run.open(from: "192.0.2.10")
        try run.respond(200, to: try run.request(.register))
        #expect(run.events.contains(.reconnected))
        let offer = try run.request(.invite)
        #expect(offer.headers["Contact"]?.contains("sip:alice@192.0.2.10:") == true)
        let text = String(decoding: offer.body, as: UTF8.self)
        #expect(text.contains("c=IN IP4 192.0.2.10\r\n") && text.contains("o=- 2 2 IN"))
    }

    @Test(
        "A peer's answer to our new address is reported to the application if its media is elsewhere now",
        arguments: [true, false])
    func answered(_ isMoved: Bool) throws {
        var run = try talking()
        run.feed(.networkChanged(source: SIPHost("192.0.2.10")))
        try run.open(from: "192.0.2.10")
        try run.respond(200, to: try run.request(.register))
        // The version rises in any case.
        var answer = AccountRun.offer.replacing("o=- 1 1 IN", with: "o=- 1 2 IN")
        if isMoved { answer = answer.replacing("m=audio 4000", with: "m=audio 4002") }
        try run.respond(200, to: try run.request(.invite), body: Array(answer.utf8))
        #expect(run.requests(.ack).count == 1)
        let offers = run.events.compactMap { event -> String? in
            guard case .callSignal(let signal) = event, signal.kind == .offer else { return nil }
            return signal.sdp
        }
        #expect(offers == (isMoved ? [answer] : []))
        guard isMoved, case .callSignal(let signal)? = run.events.last else { return }
        // Its answer is nobody's: the exchange is over.
        run.ask(.send(CallSignal(invite: signal.invite, .answer(.answer(AccountRun.reply)))))
        #expect(run.requests(.invite).count == 1 && !run.statuses.contains(488))
    }

    @Test("A peer that refuses an offer with our new address gets it again, until it answers one")
    func refused() throws {
        var run = try talking()
        run.feed(.networkChanged(source: SIPHost("192.0.2.10")))
        try run.open(from: "192.0.2.10")
        try run.respond(200, to: try run.request(.register))
        for count in 1...2 {
            #expect(run.requests(.invite).count == count)
            try run.respond(500, to: try run.request(.invite))
            run.run(.seconds(count == 1 ? 5 : 9))
        }
        let offer = try run.request(.invite)
        #expect(run.requests(.invite).count == 3)
        #expect(String(decoding: offer.body, as: UTF8.self).contains("c=IN IP4 192.0.2.10\r\n"))
        try run.respond(200, to: offer, body: Array(AccountRun.offer.utf8))
        run.run(.seconds(100))
        #expect(run.requests(.invite).count == 3)
    }

    @Test("A peer that never takes our new address is asked a few times, and again with each registration")
    func neverTaken() throws {
        var run = try talking()
        run.feed(.networkChanged(source: SIPHost("192.0.2.10")))
        try run.open(from: "192.0.2.10")
        try run.respond(200, to: try run.request(.register))
        for attempt in 0..<7 {
            try run.respond(488, to: try run.request(.invite))
            run.run(.seconds(attempt < 6 ? (4 << attempt) + 1 : 200))
        }
        #expect(run.requests(.invite).count == 7)
        run.feed(.failed(try #require(run.flow).id))
        run.run(.seconds(1))
        try run.open(from: "192.0.2.10")
        try run.respond(200, to: try run.request(.register))
        // The refresh for the new flow is first.
        try run.respond(200, to: try run.request(.invite), body: Array(AccountRun.offer.utf8))
        run.run(.seconds(1))
        #expect(
            String(decoding: try run.request(.invite).body, as: UTF8.self).contains("c=IN IP4 192.0.2.10\r\n"))
    }

    @Test("After two changes of address before it is registered the peer gets one offer, with the last")
    func twice() throws {
        var run = try talking()
        for host in ["192.0.2.10", "192.0.2.11"] {
            run.feed(.networkChanged(source: SIPHost(host)))
            try run.open(from: host)
        }
        try run.respond(200, to: try run.request(.register))
        let offer = try run.request(.invite)
        #expect(String(decoding: offer.body, as: UTF8.self).contains("c=IN IP4 192.0.2.11\r\n"))
        try run.respond(200, to: offer, body: Array(AccountRun.offer.utf8))
        run.run(.seconds(10))
        #expect(run.requests(.invite).count == 1)
    }

    @Test("The same address again only shows whether the flow lives")
    func same() throws {
        var run = try talking()
        let flow = try #require(run.flow)
        run.feed(.networkChanged(source: SIPHost("192.0.2.9")))
        #expect(run.outputs.last == .ping(flow, .lineEnds))
        #expect(!run.events.contains(.reconnecting))
    }

    @Test("A description with ICE, of another family, or of another address stays as it is")
    func stays() throws {
        let (old, new) = (try #require(SIPHost("192.0.2.9")), try #require(SIPHost("192.0.2.10")))
        let plain = "v=0\r\no=- 2 1 IN IP4 192.0.2.9\r\nc=IN IP4 192.0.2.9\r\n"
        #expect(DescriptionText.readdressed(Array(plain.utf8), from: old, to: new) != nil)
        let six = try #require(SIPHost("2001:db8::1"))
        #expect(DescriptionText.readdressed(Array(plain.utf8), from: old, to: six) == nil)
        #expect(DescriptionText.readdressed(Array((plain + "a=ice-ufrag:x\r\n").utf8), from: old, to: new) == nil)
        #expect(DescriptionText.readdressed(Array(plain.utf8), from: new, to: old) == nil)
    }

    @Test("With outbound the contact of calls says so, and with a GRUU it is that one if it is asked for")
    func contacts() throws {
        let gruu = "sip:alice@sip.test;gr=urn:uuid:1"
        for (usesGRUU, expected) in [(false, ";ob>"), (true, "<\(gruu)>")] {
            var run = try AccountRun {
                $0.instance = "urn:uuid:1"
                $0.usesGRUU = usesGRUU
            }
            run.ask(.connect)
            try run.open()
            try run.respond(200, to: try run.request(.register)) { headers in
                let contact = headers["Contact"] ?? ""
                headers.set("Contact", contact + ";pub-gruu=\"\(gruu)\"")
                headers.append("Require", "outbound")
            }
            run.ask(.invite(AccountRun.options()))
            #expect(try run.request(.invite).headers["Contact"]?.hasSuffix(expected) == true)
        }
    }
}
