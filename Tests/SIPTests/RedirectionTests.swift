import Identifiers
import SIP
import TestSupport
import Testing

/// Calls that are told to go elsewhere (RFC 3261 §8.1.3.4).
@Suite struct RedirectionTests {
    private let call = CallRun.a

    /// A call of Alice's that nobody has answered: the test answers in Bob's place.
    private func placed(
        to uri: String = "sip:bob@bob.example", alice: @escaping CallRun.Change = { _ in }
    ) -> CallRun {
        var run = CallRun(
            transport: .tcp,
            alice: {
                $0.callees = Self.callees("*@bob.example", "+49*")
                alice(&$0)
            })
        run.losses = Array(repeating: (.alice, "INVITE"), count: 64)
        run.place(to: uri)
        return run
    }

    private static func callees(_ patterns: String...) -> CalleeList {
        CalleeList(patterns.compactMap { CalleePattern($0) })
    }

    private func invites(_ run: CallRun) -> [SIPRequest] {
        run.sent.compactMap {
            if $0.from == .alice, $0.line == "INVITE", case .request(let request) = $0.message { request } else { nil }
        }
    }

    private func targets(_ run: CallRun) -> [String] { invites(run).map { "\($0.uri)" } }

    /// Answers the newest INVITE.
    private func answer(_ run: inout CallRun, _ status: Int, _ contacts: String...) throws {
        var response = SIPResponse(status, to: try #require(invites(run).last), toTag: "t\(invites(run).count)")
        for contact in contacts { response.headers.append("Contact", contact) }
        run.inject(.response(response), to: .alice)
    }

    @Test("A call follows a redirection to the callee's new address, as the same call with the next number")
    func followed() throws {
        var run = placed()
        try answer(&run, 302, "<sip:carol@bob.example;method=BYE?Subject=x&Call-ID=y>")
        let (first, second) = (invites(run)[0], invites(run)[1])
        #expect("\(second.uri)" == "sip:carol@bob.example")
        #expect(second.headers.callID == first.headers.callID && second.headers.from == first.headers.from)
        #expect(second.headers.to == first.headers.to && second.body == first.body)
        let numbers = [first, second].map { $0.headers.sequence?.number ?? 0 }
        #expect(numbers[1] == numbers[0] + 1)
        #expect(second.headers.vias?.first?.branch != first.headers.vias?.first?.branch)
        #expect(run.count(.alice, "ACK") == 1 && run.events(.alice, call).isEmpty)
        // From here on the redirected call is like any other.
        var ringing = SIPResponse(180, to: second, toTag: "carol")
        ringing.headers.append("Contact", "<sip:carol@192.0.2.9>")
        run.inject(.response(ringing), to: .alice)
        var accepted = SIPResponse(200, to: second, toTag: "carol")
        accepted.headers.append("Contact", "<sip:carol@192.0.2.9>")
        accepted.headers.append("Content-Type", "application/sdp")
        accepted.body = CallRun.reply
        run.inject(.response(accepted), to: .alice)
        #expect(run.events(.alice, call) == [.progress(180, early: nil), .accepted(CallRun.reply)])
        run.command(.alice, call, .end(cause: nil))
        #expect(run.count(.alice, "BYE") == 1)
    }

    @Test(
        "Of several addresses the preferred is first, the next one is called when that fails, and the last failure counts"
    )
    func several() throws {
        var run = placed()
        try answer(
            &run, 300, "<sip:low@bob.example>;q=0.1, <sip:high@bob.example>;q=0.9", "<sip:middle@bob.example>;q=0.5")
        try answer(&run, 480)
        // A redirection of a redirection comes before what is left of the first.
        try answer(&run, 301, "<sip:new@bob.example>")
        try answer(&run, 486)
        #expect(
            targets(run) == [
                "sip:bob@bob.example", "sip:high@bob.example", "sip:middle@bob.example", "sip:new@bob.example",
                "sip:low@bob.example",
            ])
        #expect(run.ends(.alice, call).isEmpty)
        try answer(&run, 404)
        #expect(run.ends(.alice, call) == [.refused(404, contacts: [])])
        try run.run(.seconds(40))
        try run.expectNothingLeft()
    }

    @Test("A busy everywhere (6xx) ends a call that has addresses left")
    func everywhere() throws {
        var run = placed()
        try answer(&run, 302, "<sip:one@bob.example>, <sip:two@bob.example>")
        try answer(&run, 603)
        #expect(run.ends(.alice, call) == [.refused(603, contacts: [])] && targets(run).count == 2)
    }

    @Test("Redirections in a circle end: no address is called twice, however it is written")
    func circle() throws {
        var run = placed()
        try answer(&run, 302, "<sip:carol@bob.example>")
        try answer(&run, 302, "<sip:bob@BOB.example>, <sip:c%61rol@bob.example>")
        let contacts = ["sip:bob@BOB.example", "sip:c%61rol@bob.example"].compactMap { AnyURI($0) }
        #expect(run.ends(.alice, call) == [.refused(302, contacts: contacts)] && targets(run).count == 2)
    }

    @Test(
        "What is no address of a callee is reported, not followed",
        arguments: [
            (302, "<http://bob.example/>"), (302, "<mailto:bob@bob.example>"), (305, "<sip:proxy.example>"),
            (380, "<sip:other@bob.example>"), (302, "*"),
        ])
    func notFollowed(status: Int, contact: String) throws {
        var run = placed()
        try answer(&run, status, contact)
        #expect(targets(run).count == 1 && run.ends(.alice, call).count == 1)
    }

    @Test("A call by sips: is not redirected to where it would not be protected")
    func downgrade() throws {
        var run = placed(to: "sips:bob@bob.example")
        try answer(&run, 302, "<sip:carol@bob.example>, <tel:+4930123>, <sips:dave@bob.example>")
        #expect(targets(run) == ["sips:bob@bob.example", "sips:dave@bob.example"])
    }

    @Test("An account that follows none reports the addresses")
    func closed() throws {
        var run = placed { $0.callees = CalleeList() }
        try answer(&run, 302, "<sip:carol@bob.example>")
        let contact = try #require(AnyURI("sip:carol@bob.example"))
        #expect(run.ends(.alice, call) == [.refused(302, contacts: [contact])] && targets(run).count == 1)
    }

    @Test("Each address of each redirection must be listed: none is called that only looks like one that is")
    func judged() throws {
        var run = placed { $0.callees = Self.callees("carol@bob.example", "dave@bob.example", "200") }
        try answer(
            &run, 302, "<sip:11880@bob.example>;q=1, <sip:carol@bob.example:5070>;q=0.9, <sip:*72@alice.example>;q=0.8",
            "<sip:carol@bob.example;maddr=192.0.2.1>;q=0.7, <sip:carol@BOB.example.;transport=tcp>;q=0.2")
        #expect(targets(run) == ["sip:bob@bob.example", "sip:carol@BOB.example.;transport=tcp"])
        // The next hop is judged like the first.
        try answer(&run, 302, "<tel:0900123456>, <sip:0900123456@bob.example>, <sip:dave@bob.example>")
        #expect(targets(run).last == "sip:dave@bob.example" && targets(run).count == 3)
        try answer(&run, 302, "<tel:+4990012>, <sip:eve@bob.example>")
        #expect(run.ends(.alice, call).count == 1 && targets(run).count == 3)
    }

    @Test("A caller who hangs up while a call is redirected calls no other address")
    func hungUp() throws {
        var run = placed()
        run.command(.alice, call, .end(cause: nil))
        try answer(&run, 302, "<sip:carol@bob.example>")
        #expect(targets(run).count == 1 && run.ends(.alice, call) == [.local])
    }

    @Test("For any answers, each address is called once, at most five more than the first, and the call ends once")
    func random() throws {
        for seed in UInt64(0)..<200 {
            var generator = SeededGenerator(seed: seed)
            var run = placed()
            for _ in 0..<30 where run.ends(.alice, call).isEmpty {
                let names = (0..<Int.random(in: 0...4, using: &generator)).map { _ in
                    "<sip:\(Int.random(in: 0...20, using: &generator))@bob.example>;q=0.\(Int.random(in: 0...9, using: &generator))"
                }
                let status = [300, 301, 302, 404, 480, 486].randomElement(using: &generator) ?? 302
                try answer(&run, status, names.joined(separator: ", "))
            }
            #expect(Set(targets(run)).count == targets(run).count)
            #expect(targets(run).count <= 1 + SIPLimits.redirections)
            #expect(run.ends(.alice, call).count == 1)
        }
    }
}
