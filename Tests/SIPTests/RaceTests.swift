import SIP
import TestSupport
import Testing
import Core

@Suite("Races of RFC 5407, session timers and transfers")
struct RaceTests {
    private let a = CallRun.a
    private let b = CallRun.b
    private let bytes = { (text: String) in Array(text.utf8) }

    // MARK: RFC 5407 §3.1: the callee has sent 200 and has no ACK

    @Test("5407 §3.1.1: the callee gets the INVITE again after its 200; the 200 alone goes again")
    func inviteAgain() throws {
        var run = CallRun()
        // The 100 and the first 200 are lost, so that the caller repeats its INVITE.
        run.losses = [(.bob, "200 INVITE")]
        run.place()
        try run.run(.milliseconds(20))
        run.command(.bob, b, .accept(CallRun.reply))
        try run.run(.seconds(2))
        #expect(run.events(.alice, a) == [.accepted(CallRun.reply)])
        #expect(run.count(.bob, "200 INVITE") == 2)
        #expect(run.events[1].count == 2)
    }

    @Test("5407 §3.1.2: CANCEL crosses 200; the call is acknowledged and ended by BYE")
    func cancelCrosses() throws {
        var run = CallRun()
        run.place()
        try run.run(.milliseconds(250))
        run.command(.bob, b, .accept(CallRun.reply))
        run.command(.alice, a, .end(cause: nil))
        try run.run(.seconds(2))
        #expect(run.count(.alice, "CANCEL") == 1)
        // The INVITE is answered, so the CANCEL finds nothing.
        #expect(run.count(.bob, "481 CANCEL") + run.count(.bob, "200 CANCEL") == 1)
        #expect(run.count(.alice, "ACK") >= 1)
        #expect(run.count(.alice, "BYE") == 1)
        #expect(run.ends(.alice, a) == [.local])
        #expect(run.ends(.bob, b) == [.remote(cause: nil)])
        try run.expectNothingLeft()
    }

    @Test("5407 §3.1.3: a BYE for the early dialog crosses 200; the callee takes it")
    func earlyByeCrosses() throws {
        var run = CallRun()
        run.place()
        try run.run(.milliseconds(50))
        run.command(.bob, b, .ring(answer: nil))
        try run.run(.milliseconds(50))
        run.command(.bob, b, .accept(CallRun.reply))
        guard case .request(let prack) = try run.last(.alice, "PRACK") else { throw TestFailure("a PRACK") }
        var bye = SIPRequest(method: .bye, uri: prack.uri, headers: prack.headers)
        for (name, value) in [("Via", "SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKbye"), ("CSeq", "90000 BYE")] {
            bye.headers.set(SIPHeaderName(name), value)
        }
        bye.headers.set("RAck", nil)
        run.inject(.request(bye), to: .bob)
        #expect(run.count(.bob, "200 BYE") == 1)
        #expect(run.ends(.bob, b) == [.remote(cause: nil)])
        // The 200 is not repeated.
        let count = run.count(.bob, "200 INVITE")
        try run.run(.seconds(40))
        #expect(run.count(.bob, "200 INVITE") == count)
    }

    @Test("A BYE before the call is accepted ends it with 487")
    func earlyBye() throws {
        var run = CallRun()
        run.place()
        try run.run(.milliseconds(50))
        run.command(.bob, b, .ring(answer: nil))
        try run.run(.milliseconds(50))
        guard case .request(let prack) = try run.last(.alice, "PRACK") else { throw TestFailure("a PRACK") }
        var bye = SIPRequest(method: .bye, uri: prack.uri, headers: prack.headers)
        bye.headers.set("Via", "SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKbye")
        bye.headers.set("CSeq", "90000 BYE")
        run.inject(.request(bye), to: .bob)
        #expect(run.count(.bob, "200 BYE") == 1)
        #expect(run.count(.bob, "487 INVITE") == 1)
        #expect(run.ends(.bob, b) == [.remote(cause: nil)])
    }

    @Test("5407 §3.1.4: a re-INVITE comes while the ACK is lost; it is served, and the late ACK harms nothing")
    func reinviteBeforeAck() throws {
        var run = CallRun()
        run.losses = [(.alice, "ACK")]
        run.place()
        try run.run(.milliseconds(50))
        run.command(.bob, b, .accept(CallRun.reply))
        try run.run(.milliseconds(50))
        run.command(.alice, a, .offer(bytes("more")))
        try run.run(.milliseconds(50))
        #expect(run.events(.bob, b).last == .offered(bytes("more")))
        run.command(.bob, b, .answer(bytes("fine")))
        try run.run(.seconds(2))
        #expect(run.events(.alice, a).last == .answered(bytes("fine")))
        #expect(run.events(.bob, b).last == .confirmed(nil))
        run.command(.bob, b, .end(cause: nil))
        try run.expectNothingLeft()
    }

    @Test("5407 §3.1.5: if the lost ACK has the answer, the re-INVITE gets 491")
    func reinviteBeforeAnswer() throws {
        var run = CallRun()
        var invite = Sample.request(.invite, branch: "z9hG4bK1")
        invite.headers.append("Contact", "<sip:alice@192.0.2.9>")
        run.inject(.request(invite), to: .bob)
        run.command(.bob, b, .accept(CallRun.offer))
        let tag = try #require(try run.last(.bob, "200 INVITE").headers.to?.tag)
        var again = Sample.request(.invite, branch: "z9hG4bK2", number: 2, toTag: tag)
        again.headers.append("Content-Type", "application/sdp")
        again.body = bytes("more")
        run.inject(.request(again), to: .bob)
        #expect(run.count(.bob, "491 INVITE") == 1)
    }

    @Test("5407 §3.1.6: a BYE comes while the ACK is lost; the 200 is not repeated any more")
    func byeBeforeAck() throws {
        var run = CallRun()
        run.losses = [(.alice, "ACK")]
        run.place()
        try run.run(.milliseconds(50))
        run.command(.bob, b, .accept(CallRun.reply))
        try run.run(.milliseconds(50))
        run.command(.alice, a, .end(cause: nil))
        try run.run(.seconds(1))
        #expect(run.ends(.bob, b) == [.remote(cause: nil)])
        #expect(run.count(.bob, "200 INVITE") == 1)
        try run.expectNothingLeft()
    }

    @Test("A callee who hangs up before the ACK waits with the BYE for it, and a call without ACK ends after 32 s")
    func calleeEndsEarly() throws {
        var run = CallRun()
        run.losses = [(.alice, "ACK")]
        run.place()
        try run.run(.milliseconds(50))
        run.command(.bob, b, .accept(CallRun.reply))
        run.command(.bob, b, .end(cause: nil))
        try run.run(.milliseconds(100))
        #expect(run.count(.bob, "BYE") == 0)
        #expect(run.ends(.bob, b) == [.local])
        try run.run(.seconds(1))
        #expect(run.count(.bob, "BYE") == 1)
        #expect(run.ends(.alice, a) == [.remote(cause: nil)])
        #expect(run.ends(.bob, b) == [.local])
        try run.expectNothingLeft()
        var lost = CallRun()
        lost.losses = Array(repeating: (.alice, "ACK"), count: 100)
        lost.place()
        try lost.run(.milliseconds(50))
        lost.command(.bob, b, .accept(CallRun.reply))
        try lost.run(.seconds(40))
        #expect(lost.ends(.bob, b) == [.lost])
        #expect(lost.count(.bob, "BYE") == 1)
        // 0, 0.5, 1.5, 3.5, then every 4 s.
        #expect(lost.count(.bob, "200 INVITE") == 11)
        try lost.expectNothingLeft()
    }

    // MARK: RFC 5407 §3.2: a side has sent BYE

    @Test("5407 §3.2.1: both send BYE at once; both are answered with 200")
    func byesCross() throws {
        var run = CallRun()
        try run.connect()
        run.command(.alice, a, .end(cause: nil))
        run.command(.bob, b, .end(cause: nil))
        try run.run(.seconds(1))
        #expect(run.count(.alice, "200 BYE") == 1)
        #expect(run.count(.bob, "200 BYE") == 1)
        #expect(run.ends(.alice, a) == [.local])
        #expect(run.ends(.bob, b) == [.local])
        try run.expectNothingLeft()
    }

    @Test("5407 §3.2.2: a re-INVITE crosses a BYE; it gets 481, and the call ends once")
    func reinviteCrossesBye() throws {
        var run = CallRun()
        try run.connect()
        run.command(.alice, a, .offer(bytes("more")))
        run.command(.bob, b, .end(cause: nil))
        try run.run(.seconds(1))
        #expect(run.count(.bob, "481 INVITE") == 1)
        #expect(run.ends(.alice, a) == [.remote(cause: nil)])
        #expect(run.ends(.bob, b) == [.local])
        try run.expectNothingLeft()
    }

    @Test("5407 §3.2.3: the 200 of a re-INVITE comes after the BYE; it is acknowledged")
    func acceptanceAfterBye() throws {
        var run = CallRun()
        try run.connect()
        run.command(.alice, a, .offer(bytes("more")))
        try run.run(.milliseconds(15))
        run.command(.bob, b, .answer(bytes("fine")))
        run.command(.alice, a, .end(cause: nil))
        let acks = run.count(.alice, "ACK")
        try run.run(.seconds(1))
        #expect(run.count(.alice, "ACK") > acks)
        #expect(run.ends(.bob, b) == [.remote(cause: nil)])
        try run.expectNothingLeft()
    }

    // MARK: RFC 5407 §3.3: glare

    @Test(
        "5407 §3.3.1: offers cross; both get 491, and each is made again, first by the side that does not own the Call-ID"
    )
    func glare() throws {
        var run = CallRun()
        try run.connect()
        run.command(.alice, a, .offer(bytes("from alice")))
        run.command(.bob, b, .offer(bytes("from bob")))
        try run.run(.milliseconds(100))
        #expect(run.count(.alice, "491 INVITE") == 1)
        #expect(run.count(.bob, "491 INVITE") == 1)
        try run.run(.milliseconds(1_990))
        #expect(run.events(.alice, a).last == .offered(bytes("from bob")))
        run.command(.alice, a, .answer(bytes("yes")))
        try run.run(.seconds(3))
        #expect(run.events(.bob, b).contains(.answered(bytes("yes"))))
        #expect(run.events(.bob, b).last == .offered(bytes("from alice")))
        run.command(.bob, b, .answer(bytes("yes too")))
        try run.run(.milliseconds(100))
        #expect(run.events(.alice, a).contains(.answered(bytes("yes too"))))
        run.command(.bob, b, .end(cause: nil))
        try run.expectNothingLeft()
    }

    @Test("5407 §3.3.2: an UPDATE with an offer crosses a re-INVITE and gets 491; a second offer at once gets 500")
    func updateGlare() throws {
        var run = CallRun()
        try run.connect()
        run.command(.alice, a, .offer(bytes("from alice")))
        guard case .request(let invite) = try run.last(.alice, "INVITE") else { throw TestFailure("an INVITE") }
        func update(_ number: Int) -> SIPMessage {
            var update = SIPRequest(method: .update, uri: invite.uri, headers: SIPHeaders(), body: bytes("x"))
            update.headers.append("Via", "SIP/2.0/UDP 192.0.2.2;branch=z9hG4bKu\(number)")
            update.headers.append("From", invite.headers["To"] ?? "")
            update.headers.append("To", invite.headers["From"] ?? "")
            update.headers.append("Call-ID", invite.headers.callID ?? "")
            update.headers.append("CSeq", "\(90_000 + number) UPDATE")
            update.headers.append("Content-Type", "application/sdp")
            return .request(update)
        }
        run.inject(update(1), to: .alice)
        #expect(run.count(.alice, "491 UPDATE") == 1)
        // Bob has Alice's offer now; she sends another one.
        try run.run(.milliseconds(50))
        var second = invite
        second.headers.set("Via", "SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKsecond")
        second.headers.set("CSeq", "\((invite.headers.sequence?.number ?? 0) + 1) INVITE")
        run.inject(.request(second), to: .bob)
        #expect(run.count(.bob, "500 INVITE") == 1)
        #expect(try run.last(.bob, "500 INVITE").headers.retryAfterSeconds ?? 99 <= 10)
    }

    @Test("A request with an old number gets 500, and one for a dialog that the peer forgot ends the call")
    func order() throws {
        var run = CallRun()
        try run.connect()
        run.command(.alice, a, .digit("1", milliseconds: 100))
        run.command(.alice, a, .digit("2", milliseconds: 100))
        try run.run(.milliseconds(50))
        guard case .request(var info) = run.sent.first(where: { $0.line == "INFO" })?.message else {
            throw TestFailure("an INFO")
        }
        info.headers.set("Via", "SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKold")
        run.inject(.request(info), to: .bob)
        #expect(run.count(.bob, "500 INFO") == 1)
        run.command(.alice, a, .offer(bytes("x")))
        guard case .request(let invite) = try run.last(.alice, "INVITE") else { throw TestFailure("an INVITE") }
        run.inject(.response(SIPResponse(481, to: invite)), to: .alice)
        #expect(run.ends(.alice, a) == [.lost])
    }

    // MARK: Session timers

    @Test("The caller refreshes at half the interval by UPDATE, and the session outlives it", arguments: [true, false])
    func refresh(byUpdate: Bool) throws {
        var run = CallRun(
            alice: { $0.sessionSeconds = 100 },
            bob: { if !byUpdate { $0.screen.methods.removeAll { $0 == .update } } })
        try run.connect()
        try run.run(.seconds(49))
        #expect(run.count(.alice, "UPDATE") == 0)
        try run.run(.seconds(2))
        #expect(run.count(.alice, byUpdate ? "UPDATE" : "INVITE") == (byUpdate ? 1 : 2))
        if !byUpdate {
            #expect(run.events(.bob, b).last == .offered(CallRun.offer))
            run.command(.bob, b, .answer(CallRun.reply))
        }
        try run.run(.seconds(49))
        #expect(run.ends(.alice, a).isEmpty)
        #expect(run.ends(.bob, b).isEmpty)
    }

    @Test("A refresh that falls into an offer of the peer's is made when that is refused")
    func refreshAfterOffer() throws {
        var run = CallRun(alice: { $0.sessionSeconds = 100 })
        try run.connect()
        try run.run(.seconds(49))
        run.command(.bob, b, .offer(bytes("other")))
        try run.run(.seconds(3))
        #expect(run.count(.alice, "UPDATE") == 0)
        run.command(.alice, a, .refuseOffer)
        try run.run(.milliseconds(500))
        #expect(run.count(.alice, "UPDATE") == 1)
        try run.run(.seconds(60))
        #expect(run.ends(.alice, a).isEmpty && run.ends(.bob, b).isEmpty)
    }

    @Test("A session that is not refreshed is ended by BYE, by the callee shortly before the end")
    func expiry() throws {
        var run = CallRun(alice: { $0.sessionSeconds = 100 })
        try run.connect()
        run.losses = Array(repeating: (.alice, "UPDATE"), count: 100)
        try run.run(.seconds(66))
        #expect(run.ends(.bob, b).isEmpty)
        try run.run(.seconds(2))
        #expect(run.ends(.bob, b) == [.lost])
        #expect(run.count(.bob, "BYE") == 1)
        #expect(run.ends(.alice, a) == [.remote(cause: nil)])
    }

    @Test("An interval that is too short gets 422, and the call is placed again with the least one")
    func tooShort() throws {
        var run = CallRun(alice: { $0.sessionSeconds = 100 }, bob: { $0.shortestSessionSeconds = 300 })
        try run.connect()
        #expect(run.count(.bob, "422 INVITE") == 1)
        #expect(
            try run.last(.bob, "200 INVITE").headers.sessionExpires == SessionExpires(seconds: 300, refresher: .uac))
        #expect(run.ends(.alice, a).isEmpty)
    }

    @Test("A caller without session timers is refreshed by the callee")
    func calleeRefreshes() throws {
        var run = CallRun(
            alice: {
                $0.sessionSeconds = nil
                $0.screen.options = ["100rel"]
            }, bob: { $0.sessionSeconds = 100 })
        try run.connect()
        #expect(try run.last(.bob, "200 INVITE").headers.sessionExpires?.refresher == .uas)
        #expect(try run.last(.bob, "200 INVITE").headers["Require"] == nil)
        try run.run(.seconds(51))
        #expect(run.count(.bob, "UPDATE") == 1)
    }

    // MARK: Transfers

    @Test("A blind transfer is placed by the peer, which reports its progress")
    func blindTransfer() throws {
        var run = CallRun()
        try run.connect()
        run.command(.alice, a, .transfer(to: Sample.uri("sip:alice@alice.example"), replacing: nil))
        try run.run(.milliseconds(50))
        #expect(run.events(.bob, b).last == .transferRequested(Sample.uri("sip:alice@alice.example"), replaces: nil))
        run.command(.bob, b, .acceptTransfer(placing: 7, offer: bytes("new")))
        try run.run(.milliseconds(50))
        #expect(run.events(.alice, a).last == .transferProgress(100, isFinal: false))
        let new = SIPCall.incoming(1)
        run.command(.alice, new, .ring(answer: nil))
        try run.run(.milliseconds(50))
        run.command(.alice, new, .accept(CallRun.reply))
        try run.run(.milliseconds(100))
        #expect(
            run.events(.alice, a).suffix(2)
                == [.transferProgress(180, isFinal: false), .transferProgress(200, isFinal: true)])
        #expect(run.events(.bob, .outgoing(7)).last == .accepted(CallRun.reply))
        #expect(try run.last(.bob, "INVITE").headers["Referred-By"] == "<sip:alice@alice.example>")
        run.command(.alice, a, .end(cause: nil))
        run.command(.alice, new, .end(cause: nil))
        try run.expectNothingLeft()
    }

    @Test("A transfer that is refused, or whose call fails, is reported")
    func failedTransfer() throws {
        var run = CallRun()
        try run.connect()
        run.command(.alice, a, .transfer(to: Sample.uri("sip:x@x.example"), replacing: nil))
        try run.run(.milliseconds(50))
        run.command(.bob, b, .refuseTransfer)
        try run.run(.milliseconds(50))
        #expect(run.events(.alice, a).last == .transferRefused(603))
        run.command(.alice, a, .transfer(to: Sample.uri("sip:alice@alice.example"), replacing: nil))
        try run.run(.milliseconds(50))
        run.command(.bob, b, .acceptTransfer(placing: 7, offer: bytes("new")))
        try run.run(.milliseconds(50))
        run.command(.alice, .incoming(1), .refuse(486))
        try run.run(.milliseconds(100))
        #expect(run.events(.alice, a).last == .transferProgress(486, isFinal: true))
        #expect(run.ends(.alice, a).isEmpty)
    }

    @Test("An attended transfer: the new call takes the place of the one that it names, which ends")
    func attendedTransfer() throws {
        // Alice calls Bob twice, and asks him to put the first call in the place of the second.
        var run = CallRun()
        try run.connect()
        run.place(2)
        try run.run(.milliseconds(50))
        let second = SIPCall.incoming(2)
        run.command(.bob, second, .accept(CallRun.reply))
        try run.run(.milliseconds(50))
        run.command(.alice, a, .transfer(to: Sample.uri("sip:unused@x.example"), replacing: .outgoing(2)))
        try run.run(.milliseconds(50))
        guard case .transferRequested(let target, let replaces?)? = run.events(.bob, b).last else {
            throw TestFailure("a transfer")
        }
        #expect(target.description == "sip:bob@192.0.2.2")
        // What Bob would send to the third party, here himself by way of Alice's name for him.
        var invite = Sample.request(.invite, branch: "z9hG4bKr")
        invite.headers.append("Contact", "<sip:carol@192.0.2.9>")
        invite.headers.append("Replaces", replaces.description)
        run.inject(.request(invite), to: .bob)
        let third = SIPCall.incoming(3)
        guard case .incoming(_, _, second?)? = run.events(.bob, third).first else { throw TestFailure("a replacement") }
        run.command(.bob, third, .accept(CallRun.reply))
        #expect(run.ends(.bob, second) == [.replaced])
        try run.run(.milliseconds(50))
        #expect(run.ends(.alice, .outgoing(2)) == [.remote(cause: nil)])
    }

    @Test("Replaces of an unknown dialog or tag gets 481, early-only of a confirmed one 486, two or one with Join 400")
    func wrongReplaces() throws {
        var run = CallRun()
        try run.connect()
        let headers = try run.last(.bob, "200 INVITE").headers
        let (callID, mine, theirs) = (
            try #require(headers.callID), try #require(headers.to?.tag), try #require(headers.from?.tag)
        )
        let right = "\(callID);to-tag=\(mine);from-tag=\(theirs)"
        let other = "y;to-tag=1;from-tag=2"
        let cases: [(text: String, more: [(SIPHeaderName, String)], status: Int)] = [
            ("x;to-tag=\(mine);from-tag=\(theirs)", [], 481), ("\(callID);to-tag=\(mine);from-tag=x", [], 481),
            (right + ";early-only", [], 486), ("\(callID);to-tag=\(mine)", [], 400),
            (right + ";to-tag=x", [], 400), (right + ";From-Tag=\(theirs)", [], 400), (right + ", " + other, [], 400),
            (right, [("Replaces", other)], 400), (right, [("Join", other)], 400),
        ]
        for (index, entry) in cases.enumerated() {
            var invite = Sample.request(.invite, branch: "z9hG4bK\(index)")
            invite.headers.set("Call-ID", "other-\(index)")
            invite.headers.append("Contact", "<sip:carol@192.0.2.9>")
            invite.headers.append("Replaces", entry.text)
            for (name, value) in entry.more { invite.headers.append(name, value) }
            run.inject(.request(invite), to: .bob)
            #expect(run.sent.last?.line == "\(entry.status) INVITE")
        }
    }

    @Test("With random loss a call connects or fails at both sides, and leaves nothing", arguments: 0..<30)
    func lossyCall(seed: Int) throws {
        var generator = SeededGenerator(seed: UInt64(seed))
        var run = CallRun()
        let lines: [(CallRun.Side, String)] = [
            (.alice, "INVITE"), (.alice, "ACK"), (.alice, "PRACK"), (.alice, "BYE"), (.bob, "100 INVITE"),
            (.bob, "183 INVITE"), (.bob, "200 INVITE"), (.bob, "200 PRACK"), (.bob, "200 BYE"),
        ]
        for (side, line) in lines {
            for _ in 0..<Int.random(in: 0...3, using: &generator) { run.losses.append((side, line)) }
        }
        run.place()
        try run.run(.seconds(10))
        run.command(.bob, b, .ring(answer: CallRun.reply))
        try run.run(.seconds(15))
        run.command(.bob, b, .accept(CallRun.reply))
        try run.run(.seconds(25))
        run.command(.alice, a, .end(cause: nil))
        try run.run(.seconds(40))
        #expect(run.ends(.alice, a).count == 1)
        #expect(run.ends(.bob, b).count == 1)
        try run.expectNothingLeft()
    }
}
