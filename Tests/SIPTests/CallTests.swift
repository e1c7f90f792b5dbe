import SIP
import TestSupport
import Testing
import Core

@Suite("Calls")
struct CallTests {
    private let a = CallRun.a
    private let b = CallRun.b
    private let bytes = { (text: String) in Array(text.utf8) }

    @Test("A call rings, is accepted, confirmed and ended, and leaves nothing", arguments: [SIPTransport.udp, .tcp])
    func wholeCall(transport: SIPTransport) throws {
        var run = CallRun(transport: transport)
        run.place()
        try run.run(.milliseconds(50))
        run.command(.bob, b, .ring(answer: nil))
        try run.run(.seconds(3))
        run.command(.bob, b, .accept(CallRun.reply))
        try run.run(.seconds(1))
        #expect(run.events(.alice, a) == [.progress(180, early: nil), .accepted(CallRun.reply)])
        guard case .incoming(let from, CallRun.offer?, nil)? = run.events(.bob, b).first else {
            throw TestFailure("an incoming call")
        }
        #expect(from.displayName == "alice")
        #expect(run.events(.bob, b).last == .confirmed(nil))
        // 100rel is on both sides, so the 180 is acknowledged.
        #expect(run.count(.alice, "PRACK") == 1)
        #expect(run.count(.bob, "200 INVITE") == 1)
        run.command(.bob, b, .end(cause: nil))
        try run.run(.seconds(1))
        #expect(run.ends(.bob, b) == [.local])
        #expect(run.ends(.alice, a) == [.remote(cause: nil)])
        #expect(run.count(.bob, "BYE") == 1)
        try run.expectNothingLeft()
    }

    @Test("A refusal reaches the caller with its status, and is acknowledged")
    func refusal() throws {
        var run = CallRun()
        run.place()
        try run.run(.milliseconds(50))
        run.command(.bob, b, .refuse(486))
        try run.run(.seconds(1))
        #expect(run.ends(.alice, a) == [.refused(486, contacts: [])])
        #expect(run.ends(.bob, b) == [.local])
        #expect(run.count(.alice, "ACK") == 1)
        try run.expectNothingLeft()
    }

    @Test("A caller who hangs up cancels; the CANCEL waits for a provisional response")
    func cancel() throws {
        var run = CallRun()
        run.place()
        run.command(.alice, a, .end(cause: 200))
        #expect(run.ends(.alice, a) == [.local])
        #expect(run.count(.alice, "CANCEL") == 0)
        try run.run(.seconds(1))
        #expect(run.count(.alice, "CANCEL") == 1)
        #expect(run.ends(.bob, b) == [.remote(cause: 200)])
        #expect(run.count(.bob, "487 INVITE") == 1)
        #expect(run.events(.alice, a).count == 1)
        try run.expectNothingLeft()
    }

    @Test("A call that is not answered ends after 32 s, and one that only rings after three minutes")
    func unanswered() throws {
        var run = CallRun()
        run.losses = Array(repeating: (.alice, "INVITE"), count: 7)
        run.place()
        try run.run(.seconds(33))
        #expect(run.ends(.alice, a) == [.unanswered])
        var ringing = CallRun()
        ringing.place()
        try ringing.run(.seconds(179))
        #expect(ringing.ends(.alice, a).isEmpty)
        try ringing.run(.seconds(5))
        #expect(ringing.ends(.alice, a) == [.unanswered])
        #expect(ringing.ends(.bob, b).count == 1)
        try ringing.expectNothingLeft()
    }

    @Test("Early media comes reliably, and the answer is not given twice")
    func earlyMedia() throws {
        var run = CallRun()
        run.losses = [(.bob, "183 INVITE")]
        run.place()
        try run.run(.milliseconds(50))
        run.command(.bob, b, .ring(answer: CallRun.reply))
        // The 200 waits for the PRACK of the description.
        run.command(.bob, b, .accept(self.bytes("other")))
        #expect(run.count(.bob, "200 INVITE") == 0)
        try run.run(.seconds(1))
        #expect(run.count(.bob, "183 INVITE") == 2)
        #expect(run.events(.alice, a) == [.progress(183, early: CallRun.reply), .accepted(CallRun.reply)])
        #expect(try run.last(.bob, "200 INVITE").body.isEmpty)
    }

    @Test("Without 100rel at the caller, early media is repeated in the 200")
    func unreliableEarlyMedia() throws {
        var run = CallRun(alice: { $0.screen.options = [] })
        run.place()
        try run.run(.milliseconds(50))
        run.command(.bob, b, .ring(answer: CallRun.reply))
        run.command(.bob, b, .accept(self.bytes("other")))
        try run.run(.seconds(1))
        #expect(run.count(.alice, "PRACK") == 0)
        #expect(run.events(.alice, a) == [.progress(183, early: CallRun.reply), .accepted(CallRun.reply)])
    }

    @Test("A reliable response that is never acknowledged ends the call with 504 after 32 s")
    func missingPrack() throws {
        var run = CallRun()
        run.losses = Array(repeating: (.alice, "PRACK"), count: 20)
        run.place()
        try run.run(.milliseconds(50))
        run.command(.bob, b, .ring(answer: CallRun.reply))
        try run.run(.seconds(33))
        #expect(run.ends(.bob, b) == [.lost])
        #expect(run.count(.bob, "183 INVITE") == 7)
        #expect(run.ends(.alice, a) == [.refused(504, contacts: [])])
    }

    @Test("An INVITE without an offer gets one in the 200, and the ACK answers it")
    func lateOffer() throws {
        var run = CallRun()
        var invite = Sample.request(.invite, branch: "z9hG4bK1")
        invite.headers.append("Contact", "<sip:alice@192.0.2.9>")
        run.inject(.request(invite), to: .bob)
        run.command(.bob, b, .accept(CallRun.offer))
        let ok = try run.last(.bob, "200 INVITE")
        #expect(ok.body == CallRun.offer)
        var ack = Sample.request(.ack, branch: "z9hG4bK2", toTag: try #require(ok.headers.to?.tag))
        ack.headers.append("Content-Type", "application/sdp")
        ack.body = CallRun.reply
        run.inject(.request(ack), to: .bob)
        #expect(run.events(.bob, b).last == .confirmed(CallRun.reply))
    }

    @Test("A caller whose PRACK of the ringing is lost gets its 200 at once, and its PRACK is still answered")
    func acceptanceBeforePrack() throws {
        var run = CallRun()
        run.losses = [(.alice, "PRACK")]
        run.place()
        try run.run(.milliseconds(50))
        run.command(.bob, b, .ring(answer: nil))
        try run.run(.milliseconds(50))
        run.command(.bob, b, .accept(CallRun.reply))
        #expect(run.count(.bob, "200 INVITE") == 1)
        try run.run(.seconds(2))
        #expect(run.count(.bob, "180 INVITE") == 1)
        #expect(run.count(.bob, "200 INVITE") == 1)
        #expect(run.count(.bob, "200 PRACK") == 1)
        #expect(run.events(.bob, b).last == .confirmed(nil))
    }

    @Test("Ringing is not reported reliably to a caller without an offer, because that would have to be the offer")
    func ringingWithoutOffer() throws {
        for (header, told) in [("Supported" as SIPHeaderName, 1), ("Require", 0)] {
            var run = CallRun()
            var invite = Sample.request(.invite, branch: "z9hG4bK1")
            invite.headers.append("Contact", "<sip:alice@192.0.2.9>")
            invite.headers.append(header, "100rel")
            run.inject(.request(invite), to: .bob)
            run.command(.bob, b, .ring(answer: nil))
            #expect(run.count(.bob, "180 INVITE") == told)
            if told > 0 { #expect(try run.last(.bob, "180 INVITE").headers["RSeq"] == nil) }
            run.command(.bob, b, .accept(CallRun.offer))
            #expect(try run.last(.bob, "200 INVITE").body == CallRun.offer)
        }
    }

    @Test(
        "Of two phones that accept, the second is acknowledged and ended, and 2xx that come again are acknowledged again"
    )
    func forks() throws {
        var run = CallRun()
        run.place()
        guard case .request(let invite) = try run.last(.alice, "INVITE") else { throw TestFailure("an INVITE") }
        func ok(_ tag: String) -> SIPMessage {
            var response = SIPResponse(200, to: invite, toTag: tag)
            response.headers.append("Contact", "<sip:\(tag)@192.0.2.7>")
            response.headers.append("Content-Type", "application/sdp")
            response.body = CallRun.reply
            return .response(response)
        }
        run.inject(ok("one"), to: .alice)
        run.inject(ok("two"), to: .alice)
        run.inject(ok("one"), to: .alice)
        run.inject(ok("two"), to: .alice)
        #expect(run.count(.alice, "ACK") == 4)
        #expect(run.count(.alice, "BYE") == 1)
        let bye = try run.last(.alice, "BYE")
        #expect(bye.headers.to?.tag == "two")
        guard case .request(let request) = bye else { throw TestFailure("a request") }
        #expect(request.uri.description == "sip:two@192.0.2.7")
        #expect(run.events(.alice, a) == [.accepted(CallRun.reply)])
        for tag in (0..<40).map({ "more\($0)" }) { run.inject(ok(tag), to: .alice) }
        #expect(run.count(.alice, "BYE") == SIPLimits.forks - 1)
    }

    @Test("A 2xx without a tag in To is acknowledged: RFC 2543 knows none")
    func acceptanceWithoutTag() throws {
        var run = CallRun()
        run.losses = [(.alice, "INVITE")]
        run.place()
        guard case .request(let invite) = try run.last(.alice, "INVITE") else { throw TestFailure("an INVITE") }
        run.inject(.response(SIPResponse(200, to: invite)), to: .alice)
        #expect(run.ends(.alice, a).isEmpty)
        guard case .request(let ack) = try run.last(.alice, "ACK") else { throw TestFailure("an ACK") }
        #expect(ack.headers.to != nil && ack.headers.to?.tag == nil)
    }

    @Test("A 2xx that makes no dialog ends the call, and leaves nothing")
    func acceptanceWithoutDialog() throws {
        var run = CallRun()
        run.losses = [(.alice, "INVITE")]
        run.place()
        guard case .request(let invite) = try run.last(.alice, "INVITE") else { throw TestFailure("an INVITE") }
        var answer = SIPResponse(200, to: invite, toTag: "b")
        answer.headers.append("Record-Route", "<<broken")
        run.inject(.response(answer), to: .alice)
        #expect(run.ends(.alice, a) == [.failed])
        try run.expectNothingLeft()
    }

    @Test("The route set is the Record-Route, reversed for the caller, and a strict router gets the request line")
    func routes() throws {
        var run = CallRun()
        run.place()
        guard case .request(let invite) = try run.last(.alice, "INVITE") else { throw TestFailure("an INVITE") }
        for (last, uri, expected) in [
            ("<sip:p1.example;lr>", "sip:bob@192.0.2.7", ["<sip:p1.example;lr>", "<sip:p2.example;lr>"]),
            ("<sip:p1.example>", "sip:p1.example", ["<sip:p2.example;lr>", "<sip:bob@192.0.2.7>"]),
        ] {
            var response = SIPResponse(200, to: invite, toTag: last)
            response.headers.set("To", "<sip:bob@bob.example>;tag=\(expected.count)\(uri.utf8.count)")
            response.headers.append("Record-Route", "<sip:p2.example;lr>, " + last)
            response.headers.append("Contact", "<sip:bob@192.0.2.7>")
            run.inject(.response(response), to: .alice)
            guard case .request(let ack) = try run.last(.alice, "ACK") else { throw TestFailure("an ACK") }
            #expect(ack.uri.description == uri)
            #expect(ack.headers.lines("Route") == expected)
        }
    }

    @Test("Hold: an offer in the call is answered, refused with 488, or asked for")
    func modify() throws {
        var run = CallRun()
        try run.connect()
        run.command(.bob, b, .offer(bytes("hold")))
        try run.run(.milliseconds(50))
        #expect(run.events(.alice, a).last == .offered(bytes("hold")))
        run.command(.alice, a, .answer(bytes("held")))
        try run.run(.milliseconds(50))
        #expect(run.events(.bob, b).last == .answered(bytes("held")))
        #expect(run.events(.alice, a).last == .confirmed(nil))
        run.command(.alice, a, .offer(bytes("video")))
        try run.run(.milliseconds(50))
        run.command(.bob, b, .refuseOffer)
        try run.run(.milliseconds(50))
        #expect(run.events(.alice, a).last == .offerRefused(488))
        #expect(run.ends(.alice, a).isEmpty)
        run.command(.alice, a, .end(cause: nil))
        try run.expectNothingLeft()
    }

    @Test("Digits go by INFO, and other INFO is passed on")
    func digits() throws {
        var run = CallRun()
        try run.connect()
        run.command(.alice, a, .digit("5", milliseconds: 200))
        run.command(.alice, a, .digit("x", milliseconds: 200))
        try run.run(.milliseconds(50))
        #expect(run.events(.bob, b).last == .digit("5", milliseconds: 200))
        #expect(run.count(.alice, "INFO") == 1)
    }

    @Test("A digit waits for the answer to the one before, and one that is refused is reported and holds up none")
    func digitsInOrder() throws {
        var run = CallRun(bob: { $0.screen.bodies = [.sdp] })
        try run.connect()
        for digit in "12!" { run.command(.alice, a, .digit(digit, milliseconds: 100)) }
        #expect(run.count(.alice, "INFO") == 1)
        try run.run(.milliseconds(200))
        #expect(run.count(.alice, "INFO") == 3)
        guard case .request(let last) = try run.last(.alice, "INFO") else { throw TestFailure("a request") }
        #expect(last.body == bytes("Signal=16\r\nDuration=100\r\n"))
        #expect(run.events(.alice, a).suffix(3) == Array(repeating: .digitRefused(415), count: 3))
        run.command(.alice, a, .digit("4", milliseconds: 100))
        #expect(run.count(.alice, "INFO") == 4)
    }

    @Test("RFC 3261 §12.2.1.2: A digit that is answered with 408 ends the call, and one without an answer does not")
    func digitsToNoPeer() throws {
        var run = CallRun()
        try run.connect()
        run.losses = Array(repeating: (.alice, "INFO"), count: 20)
        run.command(.alice, a, .digit("1", milliseconds: 100))
        try run.run(.seconds(33))
        #expect(run.events(.alice, a).last == .digitRefused(408) && run.ends(.alice, a).isEmpty)
        run.command(.alice, a, .digit("2", milliseconds: 100))
        guard case .request(let info) = try run.last(.alice, "INFO") else { throw TestFailure("a request") }
        run.inject(.response(SIPResponse(408, to: info)), to: .alice)
        #expect(run.ends(.alice, a) == [.lost] && run.count(.alice, "BYE") == 1)
    }

    @Test(
        "A digit is read from either type of INFO, by its character or its number",
        arguments: [
            ("application/dtmf-relay", "Signal=7\r\nDuration=250\r\n", "7", 250),
            ("application/dtmf-relay", "Signal = *\nDuration=1\n", "*", 40), ("application/dtmf", "8", "8", 160),
            ("application/dtmf", " d \r\n", "D", 160), ("application/dtmf", "11", "#", 160),
            ("application/dtmf", "Signal=5", "5", 160), ("application/dtmf-relay", "Signal=16\r\n", "!", 160),
            ("multipart/mixed;boundary=x", "--x\r\nContent-Type: application/dtmf\r\n\r\n3\r\n--x--\r\n", "3", 160),
            ("application/dtmf", "17", nil, 0), ("application/dtmf", "", nil, 0), ("application/dtmf", "hello", nil, 0),
        ] as [(String, String, Character?, Int)])
    func digitForms(_ type: String, _ body: String, _ digit: Character?, _ milliseconds: Int) throws {
        var run = CallRun()
        try run.connect()
        guard case .request(var request) = try run.last(.alice, "ACK") else { throw TestFailure("a request") }
        request.method = .info
        request.headers.set("CSeq", "2000000000 INFO")
        request.headers.set("Via", "SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKinfo")
        request.headers.append("Content-Type", type)
        request.body = bytes(body)
        run.inject(.request(request), to: .bob)
        #expect(run.count(.bob, "200 INFO") == 1)
        guard let digit else {
            guard case .info? = run.events(.bob, b).last else { throw TestFailure("no digit") }
            return
        }
        #expect(run.events(.bob, b).last == .digit(digit, milliseconds: milliseconds))
    }

    @Test(
        "Beside a description other parts are passed over, unless they must be understood",
        arguments: [
            ("", false), ("Content-Disposition: render\r\n", false),
            ("Content-Disposition: by-reference;handling=required\r\n", true),
        ])
    func otherParts(_ disposition: String, _ isRefused: Bool) throws {
        func part(_ type: String, _ headers: String, _ body: String) -> String {
            "--x\r\nContent-Type: \(type)\r\n\(headers)\r\n\(body)\r\n"
        }
        let location = part("application/pidf+xml", disposition, "<presence/>")
        let early = part("application/sdp", "Content-Disposition: early-session\r\n", "early")
        let inner = "--y\r\nContent-Type: application/sdp\r\n\r\noffer\r\n--y--\r\n"
        for description in [
            part("application/sdp", "", "offer"), part("multipart/alternative;boundary=y", "", inner),
            early + part("application/sdp", "Content-Disposition: session\r\n", "offer"),
        ] {
            var run = CallRun()
            var invite = Sample.request(.invite, branch: "z9hG4bK1")
            invite.headers.append("Contact", "<sip:alice@192.0.2.9>")
            invite.headers.append("Content-Type", "multipart/mixed;boundary=x")
            invite.body = bytes(location + description + "--x--\r\n")
            run.inject(.request(invite), to: .bob)
            #expect(run.count(.bob, "415 INVITE") == (isRefused ? 1 : 0))
            guard !isRefused else { continue }
            guard case .incoming(_, CallRun.offer?, nil)? = run.events(.bob, b).first else {
                throw TestFailure("the description")
            }
        }
        var run = CallRun()
        var alone = Sample.request(.invite, branch: "z9hG4bK2")
        alone.headers.append("Content-Type", "application/pidf+xml")
        alone.body = bytes("<presence/>")
        run.inject(.request(alone), to: .bob)
        #expect(run.count(.bob, "415 INVITE") == 1)
    }

    @Test("OPTIONS is answered with what is served; strangers' requests for dialogs that there are not get 481")
    func strangers() throws {
        var run = CallRun()
        run.inject(.request(Sample.request(.options, branch: "z9hG4bK1")), to: .bob)
        let ok = try run.last(.bob, "200 OPTIONS")
        #expect(ok.headers.tokens("Allow").contains("invite"))
        #expect(ok.headers["Accept"]?.contains("application/sdp") == true)
        #expect(ok.headers.to?.tag != nil)
        for (index, method) in [SIPMethod.bye, .info, .notify, .update].enumerated() {
            run.inject(.request(Sample.request(method, branch: "z9hG4bKx\(index)")), to: .bob)
            #expect(run.count(.bob, "481 \(method)") == 1)
        }
        run.inject(.request(Sample.request(.bye, branch: "z9hG4bKy", toTag: "t")), to: .bob)
        #expect(run.count(.bob, "481 BYE") == 2)
        var bad = Sample.request(.invite, branch: "z9hG4bKz")
        bad.headers.append("Require", "teleport")
        run.inject(.request(bad), to: .bob)
        #expect(try run.last(.bob, "420 INVITE").headers["Unsupported"] == "teleport")
    }

    @Test("The same INVITE by two ways rings once; the second way gets 482")
    func merged() throws {
        var run = CallRun()
        for branch in ["z9hG4bK1", "z9hG4bK2"] {
            var invite = Sample.request(.invite, branch: branch)
            invite.headers.append("Contact", "<sip:alice@192.0.2.9>")
            run.inject(.request(invite), to: .bob)
        }
        #expect(run.count(.bob, "482 INVITE") == 1)
        #expect(run.events[1].count == 1)
    }

    @Test(
        "A proxy refuses calls that have passed too much (483), replace another (603), or are its own (482)"
    )
    func passingOn() throws {
        func invite(_ number: Int, _ change: (inout SIPHeaders) -> Void) -> SIPMessage {
            var invite = Sample.request(.invite, branch: "z9hG4bKp\(number)")
            invite.headers.set("Call-ID", "passed-\(number)")
            invite.headers.append("Contact", "<sip:alice@192.0.2.9>")
            change(&invite.headers)
            return .request(invite)
        }
        for isTrunk in [false, true] {
            var run = CallRun(bob: { $0.passesOn = isTrunk })
            run.inject(invite(1) { $0.set("Max-Forwards", "0") }, to: .bob)
            run.inject(invite(2) { $0.set("Max-Forwards", "1") }, to: .bob)
            #expect(run.count(.bob, "483 INVITE") == (isTrunk ? 1 : 0))
            #expect(run.events[1].count == (isTrunk ? 1 : 2))
            run.inject(invite(3) { $0.append("Replaces", "x;to-tag=a;from-tag=b") }, to: .bob)
            #expect(run.count(.bob, "603 INVITE") == (isTrunk ? 1 : 0))
            // Bob's own INVITE comes back to him by way of somebody who has sent it on.
            run.command(
                .bob, .outgoing(1), .place(to: Sample.uri("sip:201@bob.example"), offer: [1], run.flow, replacing: nil))
            guard case .request(var sent) = try run.last(.bob, "INVITE") else { return #expect(Bool(false)) }
            sent.headers.set("Via", "SIP/2.0/UDP 192.0.2.50;branch=z9hG4bKback, " + (sent.headers["Via"] ?? ""))
            sent.headers.set("Max-Forwards", "69")
            run.inject(.request(sent), to: .bob)
            #expect(run.count(.bob, "482 INVITE") == (isTrunk ? 1 : 0))
        }
    }

    @Test("Calls beyond the bound are refused with 486")
    func tooManyCalls() throws {
        var run = CallRun()
        for number in 0...SIPLimits.calls {
            var invite = Sample.request(.invite, branch: "z9hG4bK\(number)")
            invite.headers.set("Call-ID", "call-\(number)")
            invite.headers.append("Contact", "<sip:alice@192.0.2.9>")
            run.inject(.request(invite), to: .bob)
        }
        #expect(run.events[1].count == SIPLimits.calls)
        #expect(run.count(.bob, "486 INVITE") == 1)
    }

    @Test("A flow that fails ends a call that is being placed")
    func flowFailure() throws {
        var run = CallRun(transport: .tcp)
        run.place()
        run.failFlow(.alice)
        #expect(run.ends(.alice, a) == [.failed])
    }

    @Test("Challenges of the INVITE and of a BYE are met with the next number")
    func challenges() throws {
        var configuration = UserAgentConfiguration(address: NameAddress(Sample.uri("sip:alice@alice.example")))
        configuration.sessionSeconds = nil
        let digest = DigestClient(username: "alice", password: "secret", tokens: Sample.tokens(3))
        var agent = Timeline(
            UserAgent(
                configuration, contact: Sample.uri("sip:alice@192.0.2.1"), key: [UInt8](repeating: 4, count: 16),
                digest: digest))
        let server = DigestServer(realm: "r", key: [UInt8](repeating: 5, count: 16))
        func sent() throws -> SIPRequest {
            try #require(
                agent.outputs.reversed().lazy.compactMap { output -> SIPRequest? in
                    guard case .transmit(.request(let request), _) = output, request.method != .ack else { return nil }
                    return request
                }.first)
        }
        agent.feed(
            .command(a, .place(to: Sample.uri("sip:bob@b.example"), offer: CallRun.offer, Sample.udp, replacing: nil)))
        let first = try sent()
        agent.feed(.received(.response(server.challenge(first, toTag: "x", at: .zero)), Sample.udp))
        let second = try sent()
        #expect(second.headers.sequence?.number == (first.headers.sequence?.number ?? 0) + 1)
        #expect(second.headers.callID == first.headers.callID)
        #expect(second.headers.from?.tag == first.headers.from?.tag)
        #expect(second.headers.count("Contact") == 1)
        #expect(second.headers.count("Authorization") == 1)
        var ok = SIPResponse(200, to: second, toTag: "b")
        ok.headers.append("Contact", "<sip:bob@192.0.2.2>")
        agent.feed(.received(.response(ok), Sample.udp))
        agent.feed(.command(a, .end(cause: nil)))
        let bye = try sent()
        #expect(bye.method == .bye)
        agent.feed(.received(.response(server.challenge(bye, isStale: true, toTag: "b", at: .zero)), Sample.udp))
        let again = try sent()
        #expect(again.headers.sequence == CSeq((bye.headers.sequence?.number ?? 0) + 1, .bye))
        // A wrong password is not tried again and again.
        var wrong = Timeline(
            UserAgent(
                configuration, contact: Sample.uri("sip:alice@192.0.2.1"), key: [UInt8](repeating: 4, count: 16),
                digest: digest))
        agent = wrong
        agent.feed(
            .command(a, .place(to: Sample.uri("sip:bob@b.example"), offer: CallRun.offer, Sample.udp, replacing: nil)))
        for _ in 0..<2 {
            agent.feed(.received(.response(server.challenge(try sent(), toTag: "x", at: .zero)), Sample.udp))
        }
        wrong = agent
        #expect(wrong.outputs.last == .call(a, .ended(.unauthorized)))
    }

    @Test("A user agent takes each torture message, and leaves nothing of it", arguments: TortureTests.accepted)
    func torture(name: String) throws {
        var run = CallRun()
        let message = try SIPMessage(parsing: try vector(name))
        for _ in 0..<2 { run.inject(message, to: .bob) }
        run.command(.bob, b, .ring(answer: CallRun.reply))
        run.command(.bob, b, .accept(CallRun.reply))
        try run.expectNothingLeft()
    }

    @Test("After a registration new calls go by the Service-Route, from the GRUU")
    func registered() throws {
        var run = CallRun()
        let gruu = Sample.uri("sip:alice@alice.example;gr=urn:uuid:1")
        let route = try #require(NameAddress("<sip:s1.example;lr>"))
        run.register(.alice, gruu, [route])
        run.place()
        let invite = try run.last(.alice, "INVITE")
        #expect(invite.headers["Route"] == "<sip:s1.example;lr>")
        #expect(invite.headers["Contact"] == "<sip:alice@alice.example;gr=urn:uuid:1>")
    }
}
