import CallControl
import JSON
import SIP
@testable import SIPSignaling
import Testing
import Tracing

@Suite("Calls of an account")
struct AccountCallTests {
    // MARK: A peer calls

    @Test("A peer's INVITE becomes an invite with its offer; 180 goes out before 200, and BYE ends the call")
    func incoming() throws {
        var run = try AccountRun()
        try run.connect()
        let invite = try run.ring()
        #expect(invite == "from-bob", "its Call-ID")
        let received = run.events.compactMap { if case .inviteReceived(let invite) = $0 { invite } else { nil } }
        #expect(received.first?.inviter == "bob@sip.test")
        #expect(received.first?.offer?.sdp == AccountRun.offer)
        let ticket = run.ask(.accept(invite, AccountRun.accept))
        #expect(run.answer(ticket) == .done)
        #expect(run.statuses == [180, 200])
        let accepted = try run.response(200)
        #expect(accepted.body == Array(AccountRun.reply.utf8))
        #expect(accepted.headers["Contact"]?.contains("sip:alice@192.0.2.9:40001") == true)
        let to = try #require(accepted.headers["To"])
        try run.receive(try run.peerRequest("ACK", 1, to: to, branch: "ack"))
        run.run(.seconds(5))
        try run.receive(try run.peerRequest("BYE", 2, to: to))
        guard case .callEnded(let news)? = run.events.last else { return #expect(Bool(false), "\(run.events)") }
        #expect(news.invite == invite && news.reason == .completed && news.duration == .seconds(5))
        #expect(run.statuses.last == 200)
    }

    @Test("CALL-2: The ACK of an accept is reported once, with the host that it came from")
    func acknowledged() throws {
        var run = try AccountRun()
        try run.connect()
        let invite = try run.ring()
        run.ask(.accept(invite, AccountRun.accept))
        let to = try #require(try run.response(200).headers["To"])
        func acknowledgements(_ run: AccountRun) -> [String?] {
            var hosts: [String?] = []
            for case .callSignal(let signal) in run.events where signal.invite == invite {
                if case .acknowledged(let host)? = signal.message { hosts.append(host) }
            }
            return hosts
        }
        #expect(acknowledgements(run).isEmpty)
        for branch in ["ack", "again"] { try run.receive(try run.peerRequest("ACK", 1, to: to, branch: branch)) }
        #expect(acknowledgements(run).count == 1)
        #expect(acknowledgements(run).compactMap(\.self).count == 1)
    }

    @Test("CALL-2: A re-INVITE that comes in place of a lost ACK acknowledges the answer, too")
    func acknowledgedByNewOffer() throws {
        var run = try AccountRun()
        try run.connect()
        let invite = try run.ring()
        run.ask(.accept(invite, AccountRun.accept))
        let to = try #require(try run.response(200).headers["To"])
        try run.receive(
            try run.peerRequest("INVITE", 2, to: to, body: AccountRun.offer + "a=sendonly\r\n", branch: "second"))
        let kinds = run.events.compactMap { if case .callSignal(let signal) = $0 { signal.kind } else { nil } }
        #expect(kinds == [.acknowledged, .offer])
    }

    @Test("CALL-5: A call whose accept is never acknowledged ends as acceptFailed")
    func neverAcknowledged() throws {
        var run = try AccountRun()
        try run.connect()
        let invite = try run.ring()
        run.ask(.accept(invite, AccountRun.accept))
        run.run(.seconds(33))
        guard case .callEnded(let news)? = run.events.last else { return #expect(Bool(false), "\(run.events)") }
        #expect(news.invite == invite && news.reason == .acceptFailed)
    }

    @Test("A caller's description carries the host that it came from")
    func source() throws {
        var run = try AccountRun()
        try run.connect()
        var invite = try run.peerRequest("INVITE", 1, body: AccountRun.offer)
        guard case .request(var request) = invite else { return #expect(Bool(false), "\(invite)") }
        request.headers.set("Via", "SIP/2.0/TCP 192.168.0.7;received=203.0.113.5;branch=z9hG4bKfirst")
        invite = .request(request)
        try run.receive(invite)
        #expect(try run.received().offer == CallDescription(.offer(AccountRun.offer), source: "203.0.113.5"))
    }

    @Test("A Call-ID that comes up again is another call, by whose id the first is found, too")
    func sameCallID() throws {
        var run = try AccountRun()
        try run.connect()
        let first = try run.ring()
        run.ask(.reject(first, InviteRejection(.declined)))
        run.run(.seconds(64))
        try run.receive(try run.peerRequest("INVITE", 5, body: AccountRun.offer, branch: "again"))
        let invites = run.events.compactMap { if case .inviteReceived(let invite) = $0 { invite.id } else { nil } }
        #expect(invites.count == 2 && Set(invites).count == 2)
        #expect(invites.last?.text.hasPrefix("from-bob;") == true, "\(invites)")
    }

    @Test("An invite says what was dialled and who calls; what is no name there is left out")
    func dialled() throws {
        // By a fixed route the address says it; a registered contact is the account's, and `To` has the number.
        for (uri, to, expected) in [
            ("sip:201@192.0.2.9", "<sip:alice@sip.test>", "201"), ("sip:alice@192.0.2.9", "<sip:202@sip.test>", "202"),
            ("sip:%2B4930@192.0.2.9", "<sip:203@sip.test>", "+4930"), ("tel:+49-40", "<tel:+4940>", "+4940"),
        ] {
            var run = try AccountRun()
            try run.connect()
            guard case .request(var request) = try run.peerRequest("INVITE", 1, to: to, body: AccountRun.offer) else {
                return #expect(Bool(false))
            }
            request.uri = try #require(AnyURI(uri))
            try run.receive(.request(request))
            guard case .inviteReceived(let invite)? = run.events.last else { return #expect(Bool(false)) }
            #expect(
                invite.trunk
                    == TrunkCall(dialled: expected, caller: "bob@sip.test", name: "Bob"))
        }
        var run = try AccountRun()
        try run.connect()
        guard case .request(var request) = try run.peerRequest("INVITE", 1, body: AccountRun.offer) else {
            return #expect(Bool(false))
        }
        request.headers.set("From", "\"Bo\u{202E}b\" <sip:+4930@sip.test;user=phone>;tag=peer")
        try run.receive(.request(request))
        guard case .inviteReceived(let invite)? = run.events.last else { return #expect(Bool(false)) }
        #expect(invite.trunk == TrunkCall(dialled: "alice", caller: "+4930"))
    }

    @Test("Record-Route comes back in 180 and 200, in its order")
    func recordRoute() throws {
        var run = try AccountRun()
        try run.connect()
        try run.receive(
            try run.peerRequest(
                "INVITE", 1, body: AccountRun.offer, "Record-Route: <sip:p2;lr>, <sip:p1;lr>",
                "Record-Route: <sip:p0;lr>"))
        guard case .inviteReceived(let invite)? = run.events.last else { return #expect(Bool(false)) }
        run.ask(.accept(invite.id, AccountRun.accept))
        for status in [180, 200] {
            #expect(
                try run.response(status).headers.addresses("Record-Route")?.map { "\($0)" } == [
                    "<sip:p2;lr>", "<sip:p1;lr>", "<sip:p0;lr>",
                ])
        }
        let to = try #require(try run.response(200).headers["To"])
        try run.receive(try run.peerRequest("ACK", 1, to: to, branch: "ack"))
        run.ask(.hangUp(CallHangUp(invite: invite.id, reason: .completed, duration: .zero)))
        let bye = try run.request(.bye)
        #expect(bye.headers.lines("Route") == ["<sip:p2;lr>", "<sip:p1;lr>", "<sip:p0;lr>"])
        #expect("\(bye.uri)" == "sip:bob@192.0.2.77:5070")
    }

    @Test("A caller hears that it rings unless the device decides at once")
    func ringing() throws {
        var run = try AccountRun()
        try run.connect()
        _ = try run.ring()
        #expect(run.statuses == [])
        run.run(.milliseconds(50))
        #expect(run.statuses == [180])
    }

    @Test(
        "Each reason of a refusal has its status",
        arguments: [
            (InviteRejection(.busy), 486), (InviteRejection(.declined), 603), (InviteRejection(.noAnswer), 480),
            (InviteRejection(.failed, cause: .noCommonCodec), 488),
            (InviteRejection(.failed, cause: .deviceFault), 500),
            (InviteRejection(.failed, cause: .noSuchNumber), 404),
            (InviteRejection(.failed, cause: .notReachable), 480), (InviteRejection(.failed), 500),
            (InviteRejection(.failed, cause: .tooManyHops), 483),
        ])
    func refusals(_ rejection: InviteRejection, _ status: Int) throws {
        var run = try AccountRun()
        try run.connect()
        let invite = try run.ring()
        let ticket = run.ask(.reject(invite, rejection))
        #expect(run.answer(ticket) == .done)
        #expect(run.statuses == [status])
        #expect(run.events.count == 2)
    }

    @Test(
        "A CANCEL shows by its Reason whether another device answered",
        arguments: [
            (nil, nil), ("SIP;cause=200;text=\"Call completed elsewhere\"", InviteHandling.Action.accepted),
            ("SIP;cause=603", .rejected),
        ] as [(String?, InviteHandling.Action?)])
    func cancelled(_ reason: String?, _ action: InviteHandling.Action?) throws {
        var run = try AccountRun()
        try run.connect()
        let invite = try run.ring()
        let cancel =
            if let reason {
                try run.peerRequest("CANCEL", 1, branch: "INVITE1", "Reason: \(reason)")
            } else {
                try run.peerRequest("CANCEL", 1, branch: "INVITE1")
            }
        try run.receive(cancel)
        #expect(run.statuses == [200, 487])
        let expected: SignalingEvent =
            action.map { .inviteHandled(InviteHandling(invite: invite, device: "another", action: $0)) }
            ?? .inviteCancelled(invite, data: [:])
        #expect(run.events.last == expected)
        let late = run.ask(.accept(invite, AccountRun.accept))
        guard case .failed(let error)? = run.answer(late) else { return #expect(Bool(false)) }
        #expect(error.code == .inviteEnded)
    }

    @Test("A CANCEL while our answer waits for its candidates ends the call: the accept fails, and nothing is answered")
    func cancelledWhileGathering() throws {
        var run = try AccountRun()
        try run.connect()
        let invite = try run.ring()
        let accept = run.ask(.accept(invite, .call(.answer(AccountRun.reply + "a=ice-ufrag:u\r\n"))))
        #expect(run.answer(accept) == nil, "not before the answer leaves")
        try run.receive(try run.peerRequest("CANCEL", 1, branch: "INVITE1"))
        #expect(run.statuses.suffix(2) == [200, 487])
        #expect(run.events.last == .inviteCancelled(invite, data: [:]))
        guard case .failed(let error)? = run.answer(accept) else { return #expect(Bool(false)) }
        #expect(error.code == .inviteCancelled)
        let statuses = run.statuses
        run.run(.milliseconds(500))
        #expect(run.statuses == statuses, "no answer follows")
    }

    @Test("An answer with ICE waits for its candidates, has them all, and is confirmed as it leaves")
    func answerCandidates() throws {
        var run = try AccountRun()
        try run.connect()
        let invite = try run.ring()
        let sdp = AccountRun.reply + "a=ice-ufrag:u\r\n"
        let accept = run.ask(.accept(invite, .call(.answer(sdp))))
        for candidate in [CallCandidate.candidate("candidate:1 1 udp 1 192.0.2.9 9 typ host"), .end()] {
            #expect(run.answer(accept) == nil)
            run.ask(.send(CallSignal(invite: invite, .candidate(candidate))))
        }
        #expect(run.answer(accept) == .done)
        let body = String(decoding: try run.response(200).body, as: UTF8.self)
        #expect(body == sdp + "a=candidate:1 1 udp 1 192.0.2.9 9 typ host\r\na=end-of-candidates\r\n")
    }

    /// A call whose INVITE had no offer, and the tagged address that our 200, which has one, gave us.
    private func acceptWithOffer(_ run: inout AccountRun) throws -> (invite: InviteID, us: String) {
        try run.connect()
        try run.receive(try run.peerRequest("INVITE", 1))
        let invite = try run.received()
        #expect(invite.offer == CallDescription(.wanted))
        let refused = run.ask(.accept(invite.id, AccountRun.accept))
        #expect(run.answer(refused) != .done)
        let accepted = run.ask(.accept(invite.id, .call(.offer(AccountRun.reply))))
        #expect(run.answer(accepted) == .done)
        let ok = try run.response(200)
        #expect(ok.body == Array(AccountRun.reply.utf8))
        return (invite.id, "<sip:alice@sip.test>;tag=\(try #require(ok.headers.to?.tag))")
    }

    @Test("CALL-1: An INVITE without an offer is an invite that wants one; the 200 makes it, and the ACK answers")
    func noOffer() throws {
        var run = try AccountRun()
        let (id, us) = try acceptWithOffer(&run)
        try run.receive(try run.peerRequest("ACK", 1, to: us, body: AccountRun.offer))
        let signal = try run.signal()
        #expect(signal.invite == id)
        #expect(signal.kind == .answer)
        #expect(signal.sdp == AccountRun.offer)
        // The session is one like others from now on.
        let other = AccountRun.offer.replacing("1 1", with: "1 2")
        try run.receive(try run.peerRequest("INVITE", 2, to: us, body: other))
        #expect(try run.signal().kind == .offer)
    }

    @Test("A caller that wants an offer and does not answer it has no call")
    func offerWithoutAnswer() throws {
        var run = try AccountRun()
        let (id, us) = try acceptWithOffer(&run)
        try run.receive(try run.peerRequest("ACK", 1, to: us))
        #expect(run.outputs.contains(.note(.answerMissing(id, from: "bob@sip.test"))))
        #expect(run.events.contains { if case .callEnded(let end) = $0 { end.invite == id } else { false } })
        #expect(try run.request(.bye).headers["Reason"] == "SIP;cause=488")
    }

    @Test("Who calls is hostile text, and never more than a name")
    func hostileNames() throws {
        for (from, user) in [
            ("sip:%e2%80%ae@sip.test", "%e2%80%ae@sip.test"),
            ("sip:a%40evil.example@sip.test", "a%40evil.example@sip.test"),
            ("sip:anonymous@anonymous.invalid", "anonymous"), ("tel:+49-30-123", "+4930123"),
            ("sip:sip.test", "sip.test"), ("mailto:x@y", "anonymous"),
            ("sip:al%20ice@sip.test", "al ice@sip.test"),
        ] {
            let uri = try #require(AnyURI(from))
            #expect(SIPNames.user(of: NameAddress(uri)).text == user)
            #expect(SIPNames.caller(NameAddress(uri)).text == user)
        }
    }

    @Test(
        "RFC 3261 §19.1.6: A caller's telephone number counts by its digits, and what may be a user's name does not",
        arguments: [
            ("sip:+49-30-124@sip.test;user=phone", "+4930124@sip.test"),
            ("sip:+49(30)1.24@sip.test", "+4930124@sip.test"),
            ("sip:+4930124;cpc=ordinary@sip.test", "+4930124@sip.test"),
            ("sip:%2B4930124;npdi@sip.test", "+4930124@sip.test"),
            ("sip:030-124@sip.test;user=phone", "030124@sip.test"), ("sip:200-1@sip.test", "200-1@sip.test"),
            ("sip:200;phone-context=x@sip.test;user=phone", "200;phone-context=x@sip.test"),
            ("sip:+49-30x@sip.test", "+49-30x@sip.test"), ("sip:+4930124%3Bx@sip.test", "+4930124;x@sip.test"),
            ("sip:bob;x=y@sip.test", "bob;x=y@sip.test"), ("sip:+49-30-124@[2001:DB8:0::1]", "+4930124@[2001:db8::1]"),
        ])
    func numbers(from: String, user: String) throws {
        let address = NameAddress(try #require(AnyURI(from)))
        #expect(SIPNames.caller(address).text == user)
        // What is called keeps its form, because the list of callees has judged it so.
        #expect(SIPNames.user(of: address).text.hasPrefix(try #require(address.uri.sip?.plainUser) + "@"))
    }

    @Test("RFC 5952: A caller at an IPv6 address has one name, which can be called with brackets and without")
    func addresses() throws {
        let names = SIPNames(domain: try #require(SIPHost("sip.test")))
        for host in ["[2001:db8::1]", "[2001:DB8:0::1]", "[2001:db8::0.0.0.1]"] {
            #expect(SIPNames.caller(NameAddress(try #require(AnyURI("sip:eve@\(host):5070")))) == "eve@[2001:db8::1]")
            #expect(SIPName.caller(try UserID("eve@\(host)")) == "eve@[2001:db8::1]")
        }
        #expect(SIPName.caller("eve@2001:DB8::1") == "eve@[2001:db8::1]")
        #expect(names.uri(of: "eve@[2001:db8::1]")?.description == "sip:eve@[2001:db8::1]")
        #expect(names.uri(of: "eve@2001:db8::1")?.description == "sip:eve@[2001:db8::1]")
        #expect(names.uri(of: "eve@[2001:db8::1]:5070")?.description == "sip:eve@[2001:db8::1]:5070")
    }

    @Test(
        "A number in a list of callers is that of the account's own server and of a tel: URI, however it is written",
        arguments: [
            ("+49-30-124", ["+4930124", "+4930124@sip.test"]), ("tel:+49-30-124", ["+4930124", "+4930124@sip.test"]),
            ("+49-30-124@SIP.test", ["+4930124", "+4930124@sip.test"]),
            ("sip:+4930124;cpc=ordinary@sip.test", ["+4930124", "+4930124@sip.test"]),
            ("200", ["200", "200@sip.test"]), ("200@sip.test", ["200@sip.test"]), ("200-1", ["200-1"]),
            ("+4930124@other.example", ["+4930124@other.example"]), ("bob", ["bob"]),
            ("bob@sip.test:5070", ["bob@sip.test:5070"]),
        ] as [(UserID, Set<UserID>)])
    func listedCallers(entry: UserID, names: Set<UserID>) throws {
        #expect(SIPName.callers(entry, at: try #require(SIPHost("sip.test"))) == names)
    }

    private func caller(
        _ trust: (inout IdentityTrust) throws -> Void, by flow: SIPFlow? = nil, from source: String = "192.0.2.1",
        _ headers: [String]
    ) throws -> String { try received(trust, by: flow, from: source, headers)?.inviter.text ?? "none" }

    private func received(
        _ trust: (inout IdentityTrust) throws -> Void, by flow: SIPFlow? = nil, from source: String = "192.0.2.1",
        _ headers: [String]
    ) throws -> ReceivedInvite? {
        var settings = IdentityTrust()
        try trust(&settings)
        var run = try AccountRun {
            $0.acceptsStrangers = true
            $0.identityTrust = settings
        }
        try run.connect(.udp)
        guard case .request(var request) = try run.peerRequest("INVITE", 1, body: AccountRun.offer),
            var via = request.headers.topVia
        else { return nil }
        for line in headers {
            let parts = line.split(separator: ":", maxSplits: 1)
            request.headers.append(SIPHeaderName(String(parts[0])), parts[1].trimmingPrefix(" ").description)
        }
        // The sender says that it is the server.
        via.parameters["received"] = "192.0.2.1"
        via.stamp(sourceHost: source, sourcePort: 5_060)
        request.headers.setTopVia(via)
        try run.receive(.request(request), by: try #require(flow ?? run.flow))
        guard case .inviteReceived(let invite)? = run.events.last else { return nil }
        return invite
    }

    @Test("A trunk's caller is the one that the trusted peer vouches for, and not the From of the same INVITE")
    func assertedCaller() throws {
        let asserted = ["P-Asserted-Identity: \"Carol\" <tel:+49301234>"]
        let trusted = try #require(try received({ $0.includesServer = true }, asserted))
        #expect(trusted.trunk == TrunkCall(dialled: "alice", caller: "+49301234", name: "Carol"))
        let nameless = try received({ $0.includesServer = true }, ["P-Asserted-Identity: <tel:+49301234>"])
        #expect(nameless?.trunk?.name == nil)
        let unknown = try #require(try received({ _ in }, asserted))
        #expect(
            unknown.trunk == TrunkCall(dialled: "alice", caller: "bob@sip.test", name: "Bob"))
    }

    @Test("RFC 3325: Only a peer that the configuration names says who calls; others are not believed")
    func assertedIdentity() throws {
        let asserted = ["P-Asserted-Identity: \"\u{202E}<b>root\" <sip:carol@sip.test>"]
        let host = try #require(SIPHost("192.0.2.9"))
        let stranger = SIPFlow(id: -1, transport: .udp, localHost: host, localPort: 40_001)
        #expect(try caller({ _ in }, asserted) == "bob@sip.test")
        #expect(try caller({ $0.includesServer = true }, asserted) == "carol@sip.test")
        // Another node of the server, at an address that its name has led to.
        #expect(try caller({ $0.includesServer = true }, by: stranger, asserted) == "carol@sip.test")
        #expect(
            try caller({ $0.includesServer = true }, by: stranger, from: "198.51.100.7", asserted) == "bob@sip.test")
        let named = { (trust: inout IdentityTrust) in trust.hosts = [try #require(SIPHost("198.51.100.7"))] }
        #expect(try caller(named, by: stranger, from: "198.51.100.7", asserted) == "carol@sip.test")
        #expect(try caller(named, by: stranger, from: "198.51.100.8", asserted) == "bob@sip.test")
        #expect(try caller(named, asserted) == "bob@sip.test")
    }

    @Test(
        "RFC 3325: Who asks for privacy keeps what From says, and what is no identity counts for nothing",
        arguments: [
            (["P-Asserted-Identity: <tel:+49301234>, <sip:carol@sip.test>"], "carol@sip.test"),
            (["P-Asserted-Identity: <tel:+49301234>"], "+49301234"),
            (["P-Asserted-Identity: <sip:carol@sip.test>", "Privacy: critical;id"], "bob@sip.test"),
            (["P-Asserted-Identity: <sip:carol@sip.test>", "Privacy: none"], "carol@sip.test"),
            (["P-Asserted-Identity: <sip:a@sip.test>, <sip:b@sip.test>"], "bob@sip.test"),
            (["P-Asserted-Identity: <sip:a@sip.test>, <tel:+1>, <tel:+2>"], "bob@sip.test"),
            (["P-Asserted-Identity: <mailto:a@sip.test>"], "bob@sip.test"),
            (["P-Asserted-Identity: <sip:a@sip.test"], "bob@sip.test"),
            (["P-Preferred-Identity: <sip:carol@sip.test>"], "bob@sip.test"),
        ])
    func identities(_ headers: [String], _ user: String) throws {
        #expect(try caller({ $0.includesServer = true }, headers) == user)
    }

    // MARK: We call

    @Test(
        "The callee may be written in several ways",
        arguments: [
            ("bob", "sip:bob@sip.test"), ("bob@other.example", "sip:bob@other.example"),
            ("bob@192.0.2.5:5070", "sip:bob@192.0.2.5:5070"), ("+49 30", "sip:+49%2030@sip.test"),
            ("sips:bob@other.example", "sips:bob@other.example"), ("tel:+4930123", "tel:+4930123"), ("bob@", nil),
            ("@sip.test", nil), ("bob@a b", nil),
        ] as [(UserID, String?)])
    func callees(_ user: UserID, _ uri: String?) throws {
        let names = SIPNames(domain: try #require(SIPHost("sip.test")))
        #expect(names.uri(of: user).map { "\($0)" } == uri)
    }

    @Test("An invite rings, is accepted with the answer, and BYE ends the call")
    func outgoing() throws {
        var run = try AccountRun()
        try run.connect()
        let ticket = run.ask(.invite(AccountRun.options()))
        let invite = try run.request(.invite)
        #expect("\(invite.uri)" == "sip:bob@sip.test")
        #expect(run.answer(ticket) == nil)
        try run.respond(100, to: invite)
        #expect(run.answer(ticket) == nil)
        try run.respond(180, to: invite)
        guard case .sent(let id, ["bob"])? = run.answer(ticket) else { return #expect(Bool(false)) }
        #expect(run.events.last == .inviteSent(id, idempotencyKey: "key"))
        #expect(invite.headers.callID == id.text)
        try run.respond(200, to: invite, body: Array(AccountRun.reply.utf8))
        guard case .inviteAccepted(let answer)? = run.events.last else { return #expect(Bool(false)) }
        #expect(answer.answer?.sdp == AccountRun.reply && answer.invitee == "bob")
        #expect(answer.answer?.source == "192.0.2.1", "where signaling came from")
        #expect(run.requests(.ack).count == 1)
        let hangUp = run.ask(.hangUp(CallHangUp(invite: id, reason: .completed, duration: .zero)))
        #expect(run.answer(hangUp) == .done)
        #expect(run.requests(.bye).count == 1)
    }

    @Test("The span of a call is in the header Traceparent of its INVITE, also after a challenge, and a peer's is read")
    func traced() throws {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        var run = try AccountRun()
        try run.connect()
        var options = AccountRun.options()
        options.trace = TraceContext(text)
        run.ask(.invite(options))
        #expect(try run.request(.invite).headers["Traceparent"] == text)
        try run.respond(407, to: try run.request(.invite)) {
            $0.append("Proxy-Authenticate", "Digest realm=\"sip.test\", nonce=\"n\", qop=\"auth\"")
        }
        #expect(run.requests(.invite).count == 2)
        #expect(try run.request(.invite).headers["Traceparent"] == text)

        for (header, expected) in [(text, TraceContext(text)), ("none", nil)] {
            var called = try AccountRun()
            try called.connect()
            try called.receive(
                try called.peerRequest("INVITE", 1, body: AccountRun.offer, "Traceparent: \(header)"))
            #expect(try called.received().trace == expected)
        }
    }

    @Test("The count of calls that led to a call is in an INVITE, also after a challenge, with the peer's Max-Forwards")
    func hops() throws {
        var run = try AccountRun()
        try run.connect()
        run.ask(.invite(AccountRun.options()))
        #expect(try run.request(.invite).headers["Handset-Hops"] == nil)
        #expect(try run.request(.invite).headers["Max-Forwards"] == "70")
        var other = try AccountRun()
        try other.connect()
        var options = AccountRun.options()
        options.hops = CallHops(3, forwards: 20)
        other.ask(.invite(options))
        try other.respond(407, to: try other.request(.invite)) {
            $0.append("Proxy-Authenticate", "Digest realm=\"sip.test\", nonce=\"n\", qop=\"auth\"")
        }
        #expect(other.requests(.invite).count == 2)
        for invite in other.requests(.invite) {
            #expect(invite.headers["Handset-Hops"] == "3" && invite.headers["Max-Forwards"] == "20")
            #expect(invite.headers.count("Max-Forwards") == 1)
        }
    }

    @Test(
        "What an INVITE says of the calls that led to it is read, and what is no number counts as nothing",
        arguments: [
            ("4", 4), ("0", 0), ("99999999999999999999", 6), ("-1", 0), ("", 0), ("many", 0),
        ] as [(String, Int)])
    func toldHops(_ text: String, _ count: Int) throws {
        var run = try AccountRun()
        try run.connect()
        try run.receive(try run.peerRequest("INVITE", 1, body: AccountRun.offer, "Handset-Hops: \(text)"))
        let hops = try run.received().hops
        #expect(hops.count == count && hops.forwards == 70)
    }

    @Test("A call with credentials carries them after the challenge")
    func challenged() throws {
        var run = try AccountRun()
        try run.connect()
        run.ask(.invite(AccountRun.options()))
        try run.respond(407, to: try run.request(.invite)) {
            $0.append("Proxy-Authenticate", "Digest realm=\"sip.test\", nonce=\"n\", qop=\"auth\"")
        }
        #expect(try run.request(.invite).headers["Proxy-Authorization"]?.contains("username=\"alice\"") == true)
    }

    @Test(
        "A refusal before it rang anywhere is a failure of the invite",
        arguments: [
            (404, SignalingError.Code.unknownUser), (403, .notAllowed), (480, .noDeviceOnline), (500, .serverError),
        ])
    func failures(_ status: Int, _ code: SignalingError.Code) throws {
        var run = try AccountRun()
        try run.connect()
        let ticket = run.ask(.invite(AccountRun.options()))
        try run.respond(status, to: try run.request(.invite))
        guard case .failed(let error)? = run.answer(ticket) else { return #expect(Bool(false)) }
        #expect(error.code == code)
        #expect(run.events == [.connected])
    }

    @Test(
        "A peer's refusal is an answer with a reason",
        arguments: [(486, RejectReason.busy), (600, .busy), (603, .declined), (488, .failed)])
    func rejections(_ status: Int, _ reason: RejectReason) throws {
        var run = try AccountRun()
        try run.connect()
        run.ask(.invite(AccountRun.options()))
        let invite = try run.request(.invite)
        try run.respond(180, to: invite)
        try run.respond(status, to: invite)
        let rejected = run.events.compactMap { if case .inviteRejected(let answer) = $0 { answer } else { nil } }
        #expect(rejected.map { $0.rejection?.reason } == [reason])
        guard case .inviteEnded? = run.events.last else { return #expect(Bool(false)) }
    }

    @Test(
        "A refusal after it rang has a cause if it says that the callee cannot be had",
        arguments: [
            (404, CallFailureCause.noSuchNumber), (484, .noSuchNumber), (503, .notReachable), (502, .notReachable),
            (483, .tooManyHops), (488, nil), (486, nil),
        ] as [(Int, CallFailureCause?)])
    func causes(_ status: Int, _ cause: CallFailureCause?) throws {
        var run = try AccountRun()
        try run.connect()
        run.ask(.invite(AccountRun.options()))
        let invite = try run.request(.invite)
        try run.respond(180, to: invite)
        try run.respond(status, to: invite)
        let rejected = run.events.compactMap { if case .inviteRejected(let answer) = $0 { answer } else { nil } }
        #expect(rejected.map { $0.rejection?.cause } == [cause])
    }

    @Test("An invite that is taken back is cancelled once the peer has been heard of")
    func cancels() throws {
        var run = try AccountRun()
        try run.connect()
        let ticket = run.ask(.invite(AccountRun.options()))
        let invite = try run.request(.invite)
        run.run(.seconds(1))
        guard case .sent(let id, _)? = run.answer(ticket) else { return #expect(Bool(false)) }
        let cancel = run.ask(.cancel(id, .call(.cancelled)))
        #expect(run.answer(cancel) == .done)
        #expect(run.requests(.cancel).isEmpty)
        try run.respond(180, to: invite)
        #expect(run.requests(.cancel).count == 1)
        let events = run.events.count
        try run.respond(487, to: invite)
        #expect(run.events.count == events)
    }

    @Test("An acceptance that crosses the CANCEL is acknowledged and ended")
    func crossing() throws {
        var run = try AccountRun()
        try run.connect()
        let ticket = run.ask(.invite(AccountRun.options()))
        let invite = try run.request(.invite)
        try run.respond(180, to: invite)
        guard case .sent(let id, _)? = run.answer(ticket) else { return #expect(Bool(false)) }
        run.ask(.cancel(id, .call(.cancelled)))
        try run.respond(200, to: invite, body: Array(AccountRun.reply.utf8))
        #expect(run.requests(.ack).count == 1 && run.requests(.bye).count == 1)
    }

    @Test("A second acceptance, of another fork, is acknowledged and ended; the call continues")
    func secondFork() throws {
        var run = try AccountRun()
        try run.connect()
        run.ask(.invite(AccountRun.options()))
        let invite = try run.request(.invite)
        try run.respond(200, to: invite, body: Array(AccountRun.reply.utf8))
        let events = run.events.count
        try run.respond(200, to: invite, body: Array(AccountRun.reply.utf8)) {
            $0.set("To", "<sip:bob@sip.test>;tag=other")
        }
        #expect(run.requests(.ack).count == 2)
        #expect(run.requests(.bye).map { $0.headers.to?.tag } == ["other"])
        #expect(run.events.count == events)
    }

    @Test("Without an answer the invite times out and is cancelled")
    func timesOut() throws {
        var run = try AccountRun()
        try run.connect()
        run.ask(.invite(AccountRun.options(timeToLive: .seconds(5))))
        try run.respond(180, to: try run.request(.invite))
        run.run(.seconds(5))
        guard case .inviteTimedOut(_, ["bob"])? = run.events.last else { return #expect(Bool(false), "\(run.events)") }
        #expect(run.requests(.cancel).count == 1)
    }

    @Test("An invite to several, or without an offer, is none for SIP")
    func notForSIP() throws {
        var run = try AccountRun()
        try run.connect()
        let several = run.ask(.invite(InviteOptions(to: ["bob", "carol"], idempotencyKey: "k")))
        let plain = run.ask(.invite(InviteOptions(to: "bob", idempotencyKey: "k")))
        for ticket in [several, plain] {
            guard case .failed(let error)? = run.answer(ticket) else { return #expect(Bool(false)) }
            #expect(error.code == .invalidRequest)
        }
    }

    // MARK: Offers in a call

    /// A call of Bob's that stands, and our `To`.
    private func talking(_ run: inout AccountRun) throws -> (InviteID, String) {
        try run.connect()
        let invite = try run.ring()
        run.ask(.accept(invite, AccountRun.accept))
        let to = try #require(try run.response(200).headers["To"])
        try run.receive(try run.peerRequest("ACK", 1, to: to, branch: "ack"))
        return (invite, to)
    }

    @Test("A re-INVITE is an offer for the device, and its answer goes back")
    func reinvite() throws {
        var run = try AccountRun()
        let (invite, to) = try talking(&run)
        let hold = AccountRun.offer + "a=sendonly\r\n"
        try run.receive(try run.peerRequest("INVITE", 2, to: to, body: hold))
        guard case .callSignal(let signal)? = run.events.last else { return #expect(Bool(false)) }
        #expect(signal.kind == .offer && signal.sdp == hold)
        run.ask(.send(CallSignal(invite: invite, .answer(.answer("v=0 held")))))
        #expect(try run.response(200).body == Array("v=0 held".utf8))
    }

    @Test("An offer that the device does not answer is refused, and the call continues")
    func unanswered() throws {
        var run = try AccountRun()
        let (_, to) = try talking(&run)
        try run.receive(try run.peerRequest("INVITE", 2, to: to, body: AccountRun.offer + "a=x\r\n"))
        run.run(.seconds(4))
        #expect(run.statuses.last == 488)
        try run.receive(try run.peerRequest("BYE", 3, to: to))
        guard case .callEnded? = run.events.last else { return #expect(Bool(false)) }
    }

    @Test("The same offer again refreshes the session without the device")
    func refresh() throws {
        var run = try AccountRun()
        let (_, to) = try talking(&run)
        let events = run.events.count
        try run.receive(try run.peerRequest("INVITE", 2, to: to, body: AccountRun.offer))
        #expect(run.events.count == events)
        #expect(try run.response(200).body == Array(AccountRun.reply.utf8))
    }

    @Test("A peer that asks for an offer gets one that the device makes for it, and its answer goes to the device")
    func askedForOffer() throws {
        var run = try AccountRun()
        let (invite, to) = try talking(&run)
        try run.receive(try run.peerRequest("INVITE", 2, to: to))
        let wish = try run.signal()
        #expect(wish.kind == .offer && wish.message == .offer(CallDescription(.wanted)))
        let all = AccountRun.reply.replacing("RTP/AVP 0", with: "RTP/AVP 111 0")
        run.ask(.send(CallSignal(invite: invite, .offer(.offer(all)))))
        // It is newer than what holds, and the account has other words for that.
        #expect(try run.response(200).body == Array(all.replacing("o=- 2 1 ", with: "o=- 2 2 ").utf8))
        let answer = AccountRun.offer + "a=recvonly\r\n"
        try run.receive(try run.peerRequest("ACK", 2, to: to, body: answer, branch: "ack2"))
        let signal = try run.signal()
        #expect(signal.kind == .answer && signal.sdp == answer)
        // What was agreed is what a refresh repeats.
        let events = run.events.count
        try run.receive(try run.peerRequest("INVITE", 3, to: to, body: answer))
        #expect(run.events.count == events)
        #expect(String(decoding: try run.response(200).body, as: UTF8.self).contains("RTP/AVP 111 0"))
    }

    @Test(
        "A peer that asks for an offer gets the description that holds if the device makes none, and what it answers is an offer",
        arguments: [true, false])
    func askedForOfferInVain(isRefused: Bool) throws {
        var run = try AccountRun()
        let (invite, to) = try talking(&run)
        try run.receive(try run.peerRequest("INVITE", 2, to: to))
        if isRefused {
            run.ask(.send(CallSignal(invite: invite, .offerRefused)))
        } else {
            run.run(.seconds(4))
        }
        #expect(try run.response(200).body == Array(AccountRun.reply.utf8))
        let answer = AccountRun.offer + "a=recvonly\r\n"
        try run.receive(try run.peerRequest("ACK", 2, to: to, body: answer, branch: "ack2"))
        let signal = try run.signal()
        #expect(signal.kind == .offer && signal.sdp == answer)
        let statuses = run.statuses
        run.ask(.send(CallSignal(invite: invite, .answer(.answer("v=0")))))
        #expect(run.statuses == statuses)
    }

    @Test("An ACK answers the description that the 200 had, and not an offer of the device's that waits for the ACK")
    func confirmedWithWaitingOffer() throws {
        var run = try AccountRun()
        let (invite, to) = try talking(&run)
        try run.receive(try run.peerRequest("INVITE", 2, to: to))
        run.run(.seconds(4))
        #expect(try run.response(200).body == Array(AccountRun.reply.utf8))
        let before = run.requests(.invite).count
        let held = AccountRun.reply + "a=sendonly\r\n"
        run.ask(.send(CallSignal(invite: invite, .offer(.offer(held)))))
        #expect(run.requests(.invite).count == before, "an offer of ours waits for the ACK")
        let answer = AccountRun.offer + "a=recvonly\r\n"
        try run.receive(try run.peerRequest("ACK", 2, to: to, body: answer, branch: "ack2"))
        let signal = try run.signal()
        #expect(signal.kind == .offer && signal.sdp == answer)
        run.ask(.send(CallSignal(invite: invite, .answer(.answer("v=0")))))
        run.run(.seconds(3))
        #expect(run.requests(.invite).count > before)
        let body = String(decoding: try run.request(.invite).body, as: UTF8.self)
        #expect(body.hasSuffix("a=sendonly\r\n"), "\(body)")
        // Its answer is the device's own.
        try run.respond(200, to: try run.request(.invite), body: Array(AccountRun.offer.utf8))
        #expect(try run.signal().kind == .answer)
    }

    @Test("A peer that asks for an offer and answers nothing has refused it")
    func askedForOfferWithoutAnswer() throws {
        var run = try AccountRun()
        let (invite, to) = try talking(&run)
        try run.receive(try run.peerRequest("INVITE", 2, to: to))
        run.ask(.send(CallSignal(invite: invite, .offer(.offer("v=0 all")))))
        try run.receive(try run.peerRequest("ACK", 2, to: to, branch: "ack2"))
        #expect(try run.signal().kind == .offerRefused)
    }

    @Test("An offer that the device refuses gets 488 at once, and its answer to the next one goes to that")
    func refusedByDevice() throws {
        var run = try AccountRun()
        let (invite, to) = try talking(&run)
        let refusal = CallSignal(invite: invite, .offerRefused)
        for sequence in 2...3 {
            try run.receive(try run.peerRequest("INVITE", sequence, to: to, body: "m=image \(sequence)"))
            run.ask(.send(refusal))
            #expect(run.statuses.last == 488)
            try run.receive(try run.peerRequest("ACK", sequence, to: to, branch: "INVITE\(sequence)"))
        }
        try run.receive(try run.peerRequest("INVITE", 4, to: to, body: AccountRun.offer + "a=sendonly\r\n"))
        run.ask(.send(CallSignal(invite: invite, .answer(.answer("v=0 held")))))
        #expect(try run.response(200).body == Array("v=0 held".utf8))
    }

    @Test("A refusal that comes too late is of the offer before, not of the one that waits")
    func lateRefusal() throws {
        var run = try AccountRun()
        let (invite, to) = try talking(&run)
        try run.receive(try run.peerRequest("INVITE", 2, to: to, body: "m=image"))
        run.run(.seconds(4))
        #expect(run.statuses.last == 488)
        try run.receive(try run.peerRequest("INVITE", 3, to: to, body: AccountRun.offer + "a=sendonly\r\n"))
        run.ask(.send(CallSignal(invite: invite, .offerRefused)))
        #expect(run.statuses.last != 488 || run.statuses.count { $0 == 488 } == 1)
        run.ask(.send(CallSignal(invite: invite, .answer(.answer("v=0 held")))))
        #expect(try run.response(200).body == Array("v=0 held".utf8))
    }

    @Test("The device learns that the peer has refused its offer, and may make the next one")
    func refusedByPeer() throws {
        var run = try AccountRun()
        let (invite, _) = try talking(&run)
        for number in 1...2 {
            run.ask(.send(CallSignal(invite: invite, .offer(.offer("v=0 offer \(number)")))))
            #expect(try run.request(.invite).body == Array("v=0 offer \(number)".utf8))
            try run.respond(488, to: try run.request(.invite))
            #expect(try run.signal().kind == .offerRefused)
        }
        #expect(run.outputs.filter { $0 == .note(.offerRefused(invite, 488)) }.count == 2)
    }

    @Test("A key of the peer's by INFO is reported as a signal, and the device's goes by INFO, if the peer takes that")
    func keys() throws {
        var run = try AccountRun()
        let (invite, to) = try talking(&run)
        guard case .request(var info) = try run.peerRequest("INFO", 2, to: to, body: "8") else { return }
        info.headers.set("Content-Type", "application/dtmf")
        try run.receive(.request(info))
        #expect(run.statuses.last == 200)
        let signal = try run.signal()
        let (eight, hash) = (CallKey("8", held: .milliseconds(160)), CallKey("#", held: .milliseconds(180)))
        #expect(eight != nil && signal.message == eight.map(CallMessage.key))
        let key = CallSignal(invite: invite, .key(try #require(hash)))
        let sent = run.ask(.send(key))
        #expect(run.answer(sent) == .done)
        #expect(try run.request(.info).body == Array("Signal=#\r\nDuration=180\r\n".utf8))
        try run.respond(405, to: try run.request(.info))
        #expect(run.outputs.last == .note(.keyRefused(invite, 405)))
        // A peer that says what it takes, and INFO is not among it.
        try run.receive(try run.peerRequest("UPDATE", 3, to: to, "Allow: INVITE, ACK, BYE"))
        let refused = run.ask(.send(key))
        guard case .failed(let error)? = run.answer(refused) else { return #expect(Bool(false)) }
        #expect(error.code == .invalidRequest && run.requests(.info).count == 1)
    }

    @Test("An offer that was refused is no part of the session: the same one again goes to the device")
    func refusedOffer() throws {
        var run = try AccountRun()
        let (_, to) = try talking(&run)
        let hold = AccountRun.offer + "a=sendonly\r\n"
        let offers = { (run: AccountRun) in
            run.events.filter { if case .callSignal(let signal) = $0 { signal.kind == .offer } else { false } }.count
        }
        try run.receive(try run.peerRequest("INVITE", 2, to: to, body: hold))
        run.run(.seconds(4))
        #expect(run.statuses.last == 488)
        try run.receive(try run.peerRequest("INVITE", 3, to: to, body: hold))
        #expect(offers(run) == 2)
        // What holds is still what was agreed at first.
        try run.receive(try run.peerRequest("CANCEL", 3, to: to, branch: "INVITE3"))
        try run.receive(try run.peerRequest("INVITE", 4, to: to, body: AccountRun.offer))
        #expect(offers(run) == 2)
        #expect(try run.response(200).body == Array(AccountRun.reply.utf8))
    }

    @Test("A device that answers an offer which was taken back learns what holds")
    func withdrawnOffer() throws {
        var run = try AccountRun()
        let (invite, to) = try talking(&run)
        try run.receive(try run.peerRequest("INVITE", 2, to: to, body: AccountRun.offer + "a=sendonly\r\n"))
        try run.receive(try run.peerRequest("CANCEL", 2, to: to, branch: "INVITE2"))
        #expect(run.statuses.suffix(2) == [200, 487])
        let statuses = run.statuses
        run.ask(.send(CallSignal(invite: invite, .answer(.answer("v=0 held")))))
        guard case .callSignal(let signal)? = run.events.last else { return #expect(Bool(false), "\(run.events)") }
        #expect(signal.kind == .offer && signal.sdp == AccountRun.offer)
        run.ask(.send(CallSignal(invite: invite, .answer(.answer("v=0 back")))))
        #expect(run.statuses == statuses)
        // The session is what it was.
        try run.receive(try run.peerRequest("INVITE", 3, to: to, body: AccountRun.offer))
        #expect(try run.response(200).body == Array(AccountRun.reply.utf8))
    }

    @Test("Our offer counts when the peer has taken it: a refused one is not what a refresh repeats")
    func ourRefusedOffer() throws {
        var run = try AccountRun()
        let (invite, to) = try talking(&run)
        run.ask(.send(CallSignal(invite: invite, .offer(.offer("v=0 held")))))
        try run.respond(488, to: try run.request(.invite))
        try run.receive(try run.peerRequest("INVITE", 2, to: to, body: AccountRun.offer))
        #expect(try run.response(200).body == Array(AccountRun.reply.utf8))
    }

    // MARK: Candidates and sizes

    @Test("A description with ICE waits for its candidates, and has them all")
    func candidates() throws {
        var run = try AccountRun()
        try run.connect()
        let sdp = AccountRun.offer + "a=ice-ufrag:u\r\n"
        let ticket = run.ask(.invite(AccountRun.options(sdp: sdp)))
        guard case .sent(let id, _)? = run.answer(ticket) else { return #expect(Bool(false)) }
        #expect(run.requests(.invite).isEmpty)
        for candidate in [CallCandidate.candidate("candidate:1 1 udp 1 192.0.2.9 9 typ host"), .end()] {
            run.ask(.send(CallSignal(invite: id, .candidate(candidate))))
        }
        let body = String(decoding: try run.request(.invite).body, as: UTF8.self)
        #expect(body == sdp + "a=candidate:1 1 udp 1 192.0.2.9 9 typ host\r\na=end-of-candidates\r\n")
    }

    @Test("Candidates that do not come are not waited for")
    func lateCandidates() throws {
        var run = try AccountRun()
        try run.connect()
        run.ask(.invite(AccountRun.options(sdp: AccountRun.offer + "a=ice-ufrag:u\r\n")))
        run.run(.milliseconds(500))
        #expect(run.requests(.invite).count == 1)
    }

    private static func early(_ invite: SIPRequest, tag: String, port: Int) -> SIPMessage {
        var response = SIPResponse(183, to: invite, toTag: tag)
        response.headers.append("Contact", "<sip:\(tag)@192.0.2.77:5070>")
        response.headers.append("Require", "100rel")
        response.headers.append("RSeq", "1")
        response.headers.append("Content-Type", "application/sdp")
        response.body = Array(AccountRun.reply.replacing("audio 5000", with: "audio \(port)").utf8)
        return .response(response)
    }

    @Test("What each fork plays before the call is answered is reported, and the answer is of the fork that answers")
    func earlyMedia() throws {
        var run = try AccountRun()
        try run.connect()
        run.ask(.invite(AccountRun.options()))
        let invite = try run.request(.invite)
        try run.receive(Self.early(invite, tag: "one", port: 5_002))
        try run.receive(Self.early(invite, tag: "two", port: 5_004))
        #expect(run.requests(.prack).count == 2)
        let early = run.events.compactMap { event -> String? in
            guard case .callSignal(let signal) = event, case .earlyAnswer(let answer)? = signal.message else {
                return nil
            }
            guard case .answer(let sdp) = answer.content else { return nil }
            return sdp
        }
        #expect(early.map { $0.contains("audio 5002") } == [true, false] && early.count == 2)
        // What a fork says reliably holds, and one that says something else again and again without that is heard so often and no more.
        for sequence in 2...40 {
            for tag in ["two", "three"] {
                guard case .response(var response) = Self.early(invite, tag: tag, port: 5_004 + sequence) else {
                    continue
                }
                if tag == "three" { response.headers.set("Require", "timer") }
                response.headers.set("RSeq", "\(sequence)")
                try run.receive(.response(response))
                let told = run.events.count { if case .callSignal = $0 { true } else { false } }
                #expect(told == min(tag == "two" ? sequence : sequence + 1, SIPLimits.forks))
            }
        }
        #expect(run.events.count { if case .callSignal = $0 { true } else { false } } == SIPLimits.forks)
        // Its description came reliably, so that the 200 has none.
        var accepted = SIPResponse(200, to: invite, toTag: "one")
        accepted.headers.append("Contact", "<sip:one@192.0.2.77:5070>")
        try run.receive(.response(accepted))
        guard case .inviteAccepted(let answer)? = run.events.last else { return #expect(Bool(false)) }
        #expect(answer.answer?.sdp?.contains("audio 5002") == true)
    }

    private static let large = AccountRun.offer + String(repeating: "a=x\r\n", count: 200)

    @Test("What is too large for a datagram goes by TCP")
    func large() throws {
        var run = try AccountRun()
        try run.connect(.udp)
        run.ask(.invite(AccountRun.options(sdp: Self.large)))
        #expect(run.requests(.invite).isEmpty)
        #expect(try run.outputs.last == .open(2, AccountRun.target(.tcp)))
        try run.open(2, .tcp)
        #expect(run.flows(.invite) == [.tcp])
        run.ask(.invite(AccountRun.options(to: "carol", sdp: Self.large)))
        #expect(run.flows(.invite) == [.tcp, .tcp])
        #expect(run.flows(.register) == [.udp])
    }

    @Test("The connection for what is large is kept alive, and is given up when its pings are answered no more")
    func largeKeptAlive() throws {
        var run = try AccountRun { $0.keepalive = .seconds(20) }
        try run.connect(.udp)
        run.ask(.invite(AccountRun.options(sdp: Self.large)))
        try run.open(2, .tcp)
        let pings = { (run: AccountRun) in
            run.outputs.filter { if case .ping(let flow, _) = $0 { flow.id == 2 } else { false } }.count
        }
        run.run(.milliseconds(1))
        #expect(pings(run) == 1)
        run.feed(.ponged(2))
        run.run(.seconds(25))
        #expect(pings(run) == 2)
        run.run(.seconds(10))
        #expect(run.outputs.contains(.close(2)))
        run.ask(.invite(AccountRun.options(to: "carol", sdp: Self.large)))
        #expect(run.lastOpened == 3)
    }

    @Test("A server that never answers pings by the connection for what is large costs few wake-ups")
    func largeUnanswered() throws {
        var run = try AccountRun { $0.keepalive = .seconds(20) }
        try run.connect(.udp)
        run.ask(.invite(AccountRun.options(sdp: Self.large)))
        try run.open(2, .tcp)
        // Past the time for the answer to the first ping, nothing is due in the past.
        run.run(.seconds(12))
        let deadline = try #require(run.account.nextDeadline)
        #expect(deadline > run.now)
    }

    @Test("A name at our own server, and no address that leads elsewhere, is of our domain, whether a user or a number")
    func ownNumbers() throws {
        let names = SIPNames(domain: try #require(SIPHost("sip.test")))
        for text in ["sip:carol@sip.test", "sip:9005551234@sip.test", "sip:carol@sip.test;user=phone", "tel:+4930"] {
            #expect(names.isOwn(try #require(AnyURI(text))), "\(text)")
        }
        for text in [
            "sip:carol@sip.test;maddr=192.0.2.1", "sip:carol@other.example", "sip:carol@sip.test:5070", "sip:sip.test",
            "sip:carol:x@sip.test", "tel:30;phone-context=+49",
        ] {
            #expect(!names.isOwn(try #require(AnyURI(text))), "\(text)")
        }
    }

    @Test("A server without TCP gets it as a datagram, and is not asked for TCP again for a while")
    func largeWithoutTCP() throws {
        var run = try AccountRun()
        try run.connect(.udp)
        run.ask(.invite(AccountRun.options(sdp: Self.large)))
        run.feed(.failed(2))
        #expect(run.flows(.invite) == [.udp])
        run.ask(.invite(AccountRun.options(to: "carol", sdp: Self.large)))
        #expect(run.flows(.invite) == [.udp, .udp])
    }

    @Test(
        "A caller has one name, however its address is written",
        arguments: [
            "sip:bob@SIP.test", "sip:bob@sip.test.", "sips:b%6Fb@Sip.Test:5061;transport=tls", "sip:bob@sip.test",
        ])
    func oneForm(uri: String) throws {
        #expect(SIPNames.user(of: NameAddress(try #require(AnyURI(uri)))) == "bob@sip.test")
        #expect(SIPName.caller(try UserID(uri)) == "bob@sip.test")
    }

    // MARK: Transfers

    private func refer(_ run: AccountRun, _ number: Int, _ to: String, _ target: String) throws -> SIPMessage {
        try run.peerRequest("REFER", number, to: to, "Refer-To: <\(target)>")
    }

    private func progress(_ run: AccountRun) -> [CallTransfer.Progress] {
        run.events.compactMap { event in
            guard case .callSignal(let signal) = event, case .transferProgress(let progress)? = signal.message else {
                return nil
            }
            return progress
        }
    }

    @Test(
        "CALL-8: A peer's REFER becomes a request, the invite that names the call is its INVITE, and NOTIFY reports how it goes"
    )
    func transferee() throws {
        var run = try AccountRun()
        let (invite, to) = try talking(&run)
        try run.receive(try refer(run, 2, to, "sip:carol@sip.test"))
        guard case .callSignal(let signal)? = run.events.last else { return #expect(Bool(false), "\(run.events)") }
        let wish = try #require(signal.wish)
        #expect(signal.kind == .transfer && wish.target == "carol@sip.test" && !wish.isOutside)
        #expect(run.statuses.last == 200)
        var options = AccountRun.options(to: wish.target)
        options.transfer = CallTransfer.Origin(invite: invite)
        let ticket = run.ask(.invite(options))
        #expect(run.statuses.last == 202)
        let call = try run.request(.invite)
        #expect("\(call.uri)" == "sip:carol@sip.test")
        try run.respond(200, to: try run.request(.notify))
        try run.respond(180, to: call)
        try run.respond(200, to: call, body: Array(AccountRun.reply.utf8))
        guard case .sent? = run.answer(ticket) else { return #expect(Bool(false)) }
        let bodies = run.requests(.notify).map { String(decoding: $0.body, as: UTF8.self) }
        #expect(bodies.map { $0.prefix(11) } == ["SIP/2.0 100", "SIP/2.0 180", "SIP/2.0 200"])
        // The same wish is not carried out twice.
        guard
            case .failed(let error)? = run.answer(run.ask(.invite(options)))
                ?? .failed(
                    SignalingError(.inviteEnded, activity: "", cause: ""))
        else { return #expect(Bool(false)) }
        #expect(error.code == .inviteEnded)
    }

    @Test(
        "CALL-8: A target that is no user of the account's own server is marked, and a request can be refused",
        arguments: [
            ("sip:carol@other.example", true), ("sip:+491234567@sip.test", false), ("tel:+491234567", false),
            ("sip:carol@sip.test:5070", true), ("sip:17@sip.test", false), ("sip:carol@sip.test;maddr=192.0.2.1", true),
        ])
    func outside(_ target: String, _ isOutside: Bool) throws {
        var run = try AccountRun()
        let (invite, to) = try talking(&run)
        try run.receive(try refer(run, 2, to, target))
        guard case .callSignal(let signal)? = run.events.last else { return #expect(Bool(false)) }
        #expect(signal.wish?.isOutside == isOutside)
        run.ask(.send(CallSignal(invite: invite, .transferProgress(.refused))))
        #expect(run.statuses.last == 603)
        #expect(run.requests(.invite).isEmpty)
    }

    @Test("CALL-8: A transfer's failure that comes late does not refuse the next, which is refused if it fails itself")
    func lateFailure() throws {
        var run = try AccountRun()
        let (invite, to) = try talking(&run)
        try run.receive(try refer(run, 2, to, "sip:carol@sip.test"))
        let answers = run.statuses.count
        run.ask(.send(CallSignal(invite: invite, .transferProgress(.failed))))
        #expect(run.statuses.count == answers)
        run.ask(.send(CallSignal(invite: invite, .transferProgress(.trying))))
        #expect(run.statuses.count == answers)
        run.ask(.send(CallSignal(invite: invite, .transferProgress(.failed))))
        #expect(run.statuses.last == 603 && run.statuses.count == answers + 1)
    }

    @Test(
        "CALL-8: A target that the account's list of callees has not is marked, however a number is written",
        arguments: [
            ("sip:carol@sip.test", false), ("sip:c%61rol@SIP.test.", false),
            ("sip:carol@sip.test;transport=tcp", false),
            ("sip:carol@sip.test?Replaces=a%3Bto-tag%3Db%3Bfrom-tag%3Dc", false), ("sip:200@sip.test", false),
            ("tel:+4930-123", false), ("sip:dave@partner.example", false), ("sip:dave@sip.test", true),
            ("sip:carol@other.example", true), ("sip:carol@sip.test:5070", true), ("sip:carol:x@sip.test", true),
            ("sip:carol@sip.test;maddr=192.0.2.1", true), ("sip:11880@sip.test", true), ("sip:*72@sip.test", true),
            ("sip:0900123456x@sip.test", true), ("sip:900!123!456@sip.test", true), ("sip:p900123456@sip.test", true),
            ("sip:0900123456@sip.test?Replaces=a%3Bto-tag%3Db%3Bfrom-tag%3Dc", true), ("tel:0900123456", true),
            ("sip:200;phone-context=+49900@sip.test", true), ("tel:200;phone-context=+49900", true),
            ("sip:2%2A0@sip.test", true), ("sip:carol@sip.test?Route=%3Csip:192.0.2.9%3Blr%3E", true),
            ("sip:carol@sip.test?Replaces=a%3Bto-tag%3Db%3Bfrom-tag%3Dc&Require=replaces", false),
            ("sip:carol@sip.test?Require=replaces", true),
            ("sip:+49-30-123@sip.test;user=phone", true), ("sip:+4930123;npdi@sip.test", true),
        ])
    func unlisted(_ target: String, _ isUnlisted: Bool) throws {
        let patterns = ["carol", "2??", "+4930*", "dave@partner.example"].compactMap { CalleePattern($0) }
        var run = try AccountRun { $0.agent.callees = CalleeList(patterns, ownHost: "sip.test") }
        let (_, to) = try talking(&run)
        try run.receive(try refer(run, 2, to, target))
        guard case .callSignal(let signal)? = run.events.last else { return #expect(Bool(false)) }
        let wish = try #require(signal.wish)
        #expect(wish.isUnlisted == isUnlisted)
        #expect(AnswerPolicy.Transfers.anywhere.admits(wish) == !isUnlisted)
        #expect(!AnswerPolicy.Transfers.refuse.admits(wish))
        #expect(
            !AnswerPolicy.Transfers.service.admits(wish) || !target.contains("other") && !target.contains("partner"))
    }

    @Test("RFC 3891 §3: A REFER with two Replaces gets 400, and is no request of the application's")
    func twoReplaces() throws {
        var run = try AccountRun()
        let (_, to) = try talking(&run)
        let replaces = "Replaces=a%3Bto-tag%3Db%3Bfrom-tag%3Dc"
        let before = run.events.count
        try run.receive(try refer(run, 2, to, "sip:carol@sip.test?\(replaces)&\(replaces)"))
        #expect(run.statuses.last == 400 && run.events.count == before)
    }

    @Test("CALL-8: An account with an empty list places no call for a peer, and follows no redirection")
    func listsNobody() throws {
        var run = try AccountRun()
        let (_, to) = try talking(&run)
        try run.receive(try refer(run, 2, to, "sip:carol@sip.test"))
        guard case .callSignal(let signal)? = run.events.last else { return #expect(Bool(false)) }
        #expect(try #require(signal.wish).isUnlisted)
        run.ask(.invite(AccountRun.options(to: "bob")))
        var response = SIPResponse(302, to: try run.request(.invite), toTag: "x")
        response.headers.append("Contact", "<sip:carol@sip.test>")
        try run.receive(.response(response))
        #expect(run.requests(.invite).count == 1)
    }

    @Test("CALL-8: A device's request is a REFER, and the peer's answer to it is reported")
    func transferor() throws {
        var run = try AccountRun()
        let (invite, to) = try talking(&run)
        let wish = CallTransfer.Request(target: "carol")
        run.ask(.send(CallSignal(invite: invite, .transfer(wish))))
        let refer = try run.request(.refer)
        #expect(refer.headers["Refer-To"] == "<sip:carol@sip.test>")
        try run.respond(202, to: refer)
        for (number, status) in [(2, 180), (3, 200)] {
            let state = status == 200 ? "terminated;reason=noresource" : "active"
            var notify = try run.peerRequest("NOTIFY", number, to: to, "Event: refer", "Subscription-State: \(state)")
            guard case .request(var request) = notify else { return }
            request.headers.append("Content-Type", "message/sipfrag")
            request.body = Array("SIP/2.0 \(status) X\r\n".utf8)
            notify = .request(request)
            try run.receive(notify)
        }
        #expect(progress(run) == [.ringing, .accepted])
        run.ask(.send(CallSignal(invite: invite, .transfer(wish))))
        try run.respond(603, to: try run.request(.refer))
        #expect(progress(run).last == .refused)
    }

    @Test(
        "CALL-8: An attended transfer names the dialog of the other call, and its target ends the one that is replaced")
    func attended() throws {
        var run = try AccountRun()
        let (invite, to) = try talking(&run)
        run.ask(.invite(AccountRun.options(to: "carol")))
        try run.respond(200, to: try run.request(.invite), body: Array(AccountRun.reply.utf8))
        guard case .inviteAccepted(let answer)? = run.events.last else { return #expect(Bool(false)) }
        let wish = CallTransfer.Request(target: "carol", replaces: answer.invite)
        run.ask(.send(CallSignal(invite: invite, .transfer(wish))))
        #expect(try run.request(.refer).headers["Refer-To"]?.contains("?Replaces=") == true)
        // Somebody else takes the place of the first call's peer.
        let tag = try #require(run.response(200).headers.to?.tag)
        var replacing = try run.peerRequest(
            "INVITE", 1, body: AccountRun.offer, branch: "replacing", "Replaces: from-bob;to-tag=\(tag);from-tag=peer")
        guard case .request(var request) = replacing else { return }
        request.headers.set("Call-ID", "from-dave")
        request.headers.set("From", "<sip:dave@sip.test>;tag=dave")
        replacing = .request(request)
        try run.receive(replacing)
        guard case .inviteReceived(let received)? = run.events.last else { return #expect(Bool(false), "\(to)") }
        #expect(received.transfer?.replaces == invite)
        run.ask(.accept(received.id, AccountRun.accept))
        let ended = run.events.compactMap { if case .callEnded(let news) = $0 { news } else { nil } }
        #expect(ended.map(\.invite) == [invite] && ended.first?.reason == .completed)
    }

    // MARK: Flows

    @Test("A call outlives its flow: it continues by the next one, and the peer learns our new contact")
    func movedFlow() throws {
        var run = try AccountRun()
        let (invite, _) = try talking(&run)
        let old = try #require(run.flow)
        run.feed(.failed(old.id))
        #expect(run.events.last == .reconnecting)
        run.run(.seconds(1))
        try run.open()
        try run.respond(200, to: try run.request(.register))
        let refresh = try run.request(.invite)
        #expect(refresh.headers["Contact"]?.contains(":\(try #require(run.flow?.localPort))") == true)
        try run.respond(200, to: refresh, body: Array(AccountRun.offer.utf8))
        run.ask(.hangUp(CallHangUp(invite: invite, reason: .completed, duration: .zero)))
        let last = run.outputs.last {
            if case .transmit(.request(let request), _) = $0 { request.method == .bye } else { false }
        }
        guard case .transmit(_, let flow)? = last else { return #expect(Bool(false)) }
        #expect(flow == run.flow && flow != old)
    }

    @Test("A call that rings when a peer's own flow is lost has ended: the device has missed it, and cannot accept it")
    func ringsOnLostFlow() throws {
        var run = try AccountRun { $0.acceptsStrangers = true }
        try run.connect(.udp)
        let host = try #require(SIPHost("192.0.2.9"))
        let stranger = SIPFlow(id: -1, transport: .udp, localHost: host, localPort: 40_001)
        try run.receive(try run.peerRequest("INVITE", 1, body: AccountRun.offer), by: stranger)
        let invite = try run.received().id
        run.feed(.failed(stranger.id))
        #expect(run.events.contains(.inviteCancelled(invite, data: [:])))
        #expect(run.statuses == [480])
        let ticket = run.ask(.accept(invite, AccountRun.accept))
        guard case .failed(let error)? = run.answer(ticket) else { return #expect(Bool(false)) }
        #expect(error.code == .inviteEnded)
    }

    @Test("A hang-up whose connection dies before the answer is sent again by the next one")
    func hangUpOnDyingFlow() throws {
        var run = try AccountRun()
        let (invite, _) = try talking(&run)
        run.ask(.hangUp(CallHangUp(invite: invite, reason: .completed, duration: .zero)))
        #expect(run.requests(.bye).count == 1)
        run.feed(.failed(try #require(run.flow).id))
        run.run(.seconds(1))
        try run.open()
        try run.respond(200, to: try run.request(.register))
        #expect(run.requests(.bye).count == 2)
    }

    @Test("A hang-up without a flow is sent when there is one again")
    func hangUpWithoutFlow() throws {
        var run = try AccountRun()
        let (invite, _) = try talking(&run)
        run.feed(.failed(try #require(run.flow).id))
        let ticket = run.ask(.hangUp(CallHangUp(invite: invite, reason: .completed, duration: .zero)))
        #expect(run.answer(ticket) == .done)
        #expect(run.requests(.bye).isEmpty)
        run.run(.seconds(1))
        try run.open()
        try run.respond(200, to: try run.request(.register))
        try run.respond(200, to: try run.request(.invite), body: Array(AccountRun.offer.utf8))
        #expect(run.requests(.bye).count == 1)
    }

    @Test("Others than the server are heard only in calls, unless all may call")
    func strangers() throws {
        var run = try AccountRun()
        let (_, to) = try talking(&run)
        guard case .request(let scan) = try run.peerRequest("INVITE", 9, branch: "scan"),
            case .request(let bye) = try run.peerRequest("BYE", 9, to: to)
        else { return }
        let host = try #require(SIPHost("192.0.2.77"))
        let contact = SIPFlow(id: -1, transport: .udp, localHost: host, localPort: nil, remoteHost: host)
        var open = try AccountRun { $0.acceptsStrangers = true }
        let admitted = [
            run.admits(scan, by: contact), run.admits(bye, by: contact), open.admits(scan, by: contact),
        ]
        #expect(admitted == [false, true, true])
        // A second one within a minute is counted, and not reported.
        let again = run.admits(scan, by: contact)
        #expect(!again)
        let notes = run.outputs.compactMap { output -> AccountNote? in
            guard case .note(.strangerRefused(let host, let count)) = output else { return nil }
            return .strangerRefused(host, count: count)
        }
        #expect(notes == [.strangerRefused(host, count: 1)])
    }
}
