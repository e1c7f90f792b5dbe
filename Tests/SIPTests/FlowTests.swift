import SIP
import TestSupport
import Testing
import Core

/// One user agent with credentials, and peers and servers that a test plays by hand.
private struct AgentRun {
    var timeline: Timeline<UserAgent>
    static let server = Sample.flow(1, .tcp)
    static let next = Sample.flow(3, .tcp)
    static let stranger = Sample.flow(-1, .udp)

    init(_ trust: DigestTrust = DigestTrust()) {
        var configuration = UserAgentConfiguration(address: NameAddress(Sample.uri("sip:alice@alice.example")))
        configuration.sessionSeconds = nil
        let digest = DigestClient(username: "alice", password: "secret", tokens: Sample.tokens(3), trust: trust)
        timeline = Timeline(
            UserAgent(
                configuration, contact: Sample.uri("sip:alice@192.0.2.1"), key: [UInt8](repeating: 4, count: 16),
                digest: digest))
    }

    func requests(_ method: SIPMethod) -> [(request: SIPRequest, flow: SIPFlow)] {
        timeline.outputs.compactMap { output -> (SIPRequest, SIPFlow)? in
            guard case .transmit(.request(let request), let flow) = output, request.method == method else { return nil }
            return (request, flow)
        }
    }

    func responses(_ status: Int) -> [(response: SIPResponse, flow: SIPFlow)] {
        timeline.outputs.compactMap { output -> (SIPResponse, SIPFlow)? in
            guard case .transmit(.response(let response), let flow) = output, response.status == status else {
                return nil
            }
            return (response, flow)
        }
    }

    func events(_ call: SIPCall) -> [CallEvent] {
        timeline.outputs.compactMap { if case .call(call, let event) = $0 { event } else { nil } }
    }

    mutating func place(_ flow: SIPFlow = server) {
        timeline.feed(
            .command(a, .place(to: Sample.uri("sip:bob@b.example"), offer: CallRun.offer, flow, replacing: nil)))
    }

    mutating func answer(_ status: Int, _ request: SIPRequest, tag: String = "b", _ headers: (String, String)...) {
        var response = SIPResponse(status, to: request, toTag: tag)
        if status < 300, request.method == .invite { response.headers.append("Contact", "<sip:bob@192.0.2.2>") }
        for (name, value) in headers { response.headers.append(SIPHeaderName(name), value) }
        timeline.feed(.received(.response(response), Self.server))
    }

    static func challenge(_ realm: String, _ more: String = "") -> (String, String) {
        ("WWW-Authenticate", "Digest realm=\"\(realm)\", nonce=\"n\", qop=\"auth\"" + more)
    }

    /// A peer's call that stands, with the ACK or before it.
    mutating func receiveCall(acknowledged: Bool = true) throws -> String {
        var invite = Sample.request(.invite, branch: "z9hG4bK1")
        invite.headers.append("Contact", "<sip:bob@192.0.2.2>")
        invite.headers.append("Content-Type", "application/sdp")
        invite.body = CallRun.offer
        timeline.feed(.received(.request(invite), Self.server))
        timeline.feed(.command(b, .accept(CallRun.reply)))
        let tag = try #require(responses(200).last?.response.headers.to?.tag)
        if acknowledged {
            timeline.feed(.received(.request(Sample.request(.ack, branch: "z9hG4bK1a", toTag: tag)), Self.server))
        }
        return tag
    }

    mutating func advance(_ duration: Duration) { timeline.advance(by: duration, firing: .timerFired) }

    private let a = CallRun.a
    private let b = CallRun.b
}

@Suite("Credentials and flows of calls")
struct FlowTests {
    private let a = CallRun.a
    private let b = CallRun.b

    // MARK: Credentials

    @Test("Only the server's challenge gets a digest, and only in requests to the server")
    func strangersGetNoDigest() throws {
        var run = AgentRun()
        run.place(AgentRun.stranger)
        run.answer(401, try #require(run.requests(.invite).last).request, AgentRun.challenge("r"))
        #expect(run.requests(.invite).count == 1)
        #expect(run.events(a).last == .ended(.unauthorized))
        // The nonce of the server's challenge is for the server's flow alone.
        var known = AgentRun()
        known.place()
        known.answer(401, try #require(known.requests(.invite).last).request, AgentRun.challenge("r"))
        #expect(known.requests(.invite).last?.request.headers.count("Authorization") == 1)
        known.timeline.feed(
            .command(
                .outgoing(2),
                .place(to: Sample.uri("sip:eve@e.example"), offer: CallRun.offer, AgentRun.stranger, replacing: nil)))
        #expect(known.requests(.invite).last?.request.headers.count("Authorization") == 0)
    }

    @Test("A challenge of another realm than the account's gets no digest")
    func otherRealm() throws {
        var run = AgentRun(DigestTrust(realms: ["r"]))
        run.place()
        run.answer(401, try #require(run.requests(.invite).last).request, AgentRun.challenge("evil"))
        #expect(run.requests(.invite).count == 1)
        #expect(run.events(a).last == .ended(.unauthorized))
    }

    @Test("Once a realm has offered SHA-256, MD5 alone gets no digest there")
    func downgrade() throws {
        var run = AgentRun()
        run.place()
        run.answer(
            401, try #require(run.requests(.invite).last).request, AgentRun.challenge("r", ", algorithm=SHA-256"))
        run.answer(200, try #require(run.requests(.invite).last).request)
        run.timeline.feed(.command(a, .end(cause: nil)))
        run.answer(
            401, try #require(run.requests(.bye).last).request, AgentRun.challenge("r", ", algorithm=MD5, stale=true"))
        #expect(run.requests(.bye).count == 1)
        let other = AgentRun.challenge("r", ", algorithm=MD5, stale=true")
        var fresh = AgentRun()
        fresh.place()
        fresh.answer(401, try #require(fresh.requests(.invite).last).request, other)
        #expect(fresh.requests(.invite).count == 2)
    }

    // MARK: BYE

    @Test("The BYE of a call that was accepted after its CANCEL meets a challenge")
    func challengedAfterCancel() throws {
        var run = AgentRun()
        run.place()
        let invite = try #require(run.requests(.invite).last).request
        run.answer(180, invite)
        run.timeline.feed(.command(a, .end(cause: nil)))
        run.answer(200, invite)
        let bye = try #require(run.requests(.bye).last).request
        run.answer(407, bye, ("Proxy-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""))
        let again = try #require(run.requests(.bye).last).request
        #expect(run.requests(.bye).count == 2)
        #expect(again.headers.count("Proxy-Authorization") == 1)
        #expect(again.headers.sequence?.number == (bye.headers.sequence?.number ?? 0) + 1)
        run.answer(200, again)
        #expect(run.timeline.core.callsInMemory == 0)
    }

    @Test("The BYE of a second fork meets a challenge in its own dialog, and the call continues")
    func challengedFork() throws {
        var run = AgentRun()
        run.place()
        let invite = try #require(run.requests(.invite).last).request
        run.answer(200, invite)
        run.answer(200, invite, tag: "other")
        let bye = try #require(run.requests(.bye).last).request
        run.answer(401, bye, tag: "other", AgentRun.challenge("r"))
        let again = try #require(run.requests(.bye).last).request
        #expect(run.requests(.bye).count == 2 && again.headers.to?.tag == "other")
        run.answer(200, again, tag: "other")
        #expect(run.timeline.core.callsInMemory == 1)
        run.timeline.feed(.command(a, .end(cause: nil)))
        #expect(run.requests(.bye).last?.request.headers.to?.tag == "b")
    }

    @Test("A BYE whose flow dies is sent again by the next one; without one it is forgotten after two minutes")
    func byeOnDyingFlow() throws {
        var run = AgentRun()
        _ = try run.receiveCall()
        run.timeline.feed(.command(b, .end(cause: nil)))
        run.timeline.feed(.flowFailed(AgentRun.server))
        #expect(run.requests(.bye).map(\.flow) == [AgentRun.server])
        run.advance(.seconds(40))
        run.timeline.feed(.moved(AgentRun.server, to: AgentRun.next, refreshes: true))
        #expect(run.requests(.bye).map(\.flow) == [AgentRun.server, AgentRun.next])
        run.answer(200, try #require(run.requests(.bye).last).request)
        #expect(run.timeline.core.callsInMemory == 0)
        var lost = AgentRun()
        _ = try lost.receiveCall()
        lost.timeline.feed(.command(b, .end(cause: nil)))
        lost.timeline.feed(.flowFailed(AgentRun.server))
        lost.advance(.seconds(121))
        #expect(lost.timeline.core.callsInMemory == 0)
    }

    // MARK: Calls that ring or were just accepted

    /// A peer's call that rings by a flow.
    private func ringing(by flow: SIPFlow) -> AgentRun {
        var run = AgentRun()
        var invite = Sample.request(.invite, branch: "z9hG4bK1")
        invite.headers.append("Contact", "<sip:bob@192.0.2.2>")
        run.timeline.feed(.received(.request(invite), flow))
        run.timeline.feed(.command(b, .ring(answer: nil)))
        return run
    }

    @Test("A call that rings by a flow that dies is accepted or refused by the next one", arguments: [true, false])
    func ringingOnDyingFlow(_ isAccepted: Bool) throws {
        var run = ringing(by: AgentRun.server)
        run.timeline.feed(.flowFailed(AgentRun.server))
        #expect(run.events(b).count == 1)
        run.advance(.seconds(60))
        run.timeline.feed(.moved(AgentRun.server, to: AgentRun.next, refreshes: false))
        // The caller may have missed that it rings.
        #expect(run.responses(180).map(\.flow) == [AgentRun.server, AgentRun.next])
        run.timeline.feed(.command(b, isAccepted ? .accept(CallRun.reply) : .refuse(486)))
        #expect(run.responses(isAccepted ? 200 : 486).map(\.flow) == [AgentRun.next])
    }

    @Test("What refused an INVITE by a flow that died is said again by the next one, until it is acknowledged")
    func refusedOnDyingFlow() throws {
        var run = ringing(by: AgentRun.server)
        run.timeline.feed(.command(b, .refuse(486)))
        run.timeline.feed(.flowFailed(AgentRun.server))
        run.timeline.feed(.moved(AgentRun.server, to: AgentRun.next, refreshes: false))
        #expect(run.responses(486).map(\.flow) == [AgentRun.server, AgentRun.next])
        let ack = Sample.request(.ack, branch: "z9hG4bK1", toTag: run.responses(486).last?.response.headers.to?.tag)
        run.timeline.feed(.received(.request(ack), AgentRun.next))
        run.timeline.feed(.moved(AgentRun.next, to: AgentRun.server, refreshes: false))
        #expect(run.responses(486).count == 2 && run.timeline.core.transactionsInMemory == 0)
    }

    @Test("A ringing call whose flow has no next one ends with a last answer, and so does its transaction")
    func ringingWithoutFlow() throws {
        // The server's flow does not come back: the call ends when it has rung for as long as it may.
        var run = ringing(by: AgentRun.server)
        run.timeline.feed(.flowFailed(AgentRun.server))
        run.advance(.seconds(179))
        #expect(run.responses(480).isEmpty)
        run.advance(.seconds(1))
        #expect(run.responses(480).count == 1 && run.events(b).last == .ended(.unanswered))
        run.advance(.seconds(32))
        #expect(run.timeline.core.transactionsInMemory == 0 && run.timeline.core.callsInMemory == 0)
        // A peer's own flow never does.
        var stranger = ringing(by: AgentRun.stranger)
        stranger.timeline.feed(.flowFailed(AgentRun.next))
        #expect(stranger.events(b).count == 1)
        stranger.timeline.feed(.flowFailed(AgentRun.stranger))
        #expect(stranger.events(b).last == .ended(.failed) && stranger.responses(480).count == 1)
        stranger.advance(.seconds(32))
        #expect(stranger.timeline.core.transactionsInMemory == 0 && stranger.timeline.core.callsInMemory == 0)
    }

    @Test("A 2xx that has no ACK continues by the next flow")
    func acceptedOnDyingFlow() throws {
        var run = AgentRun()
        let tag = try run.receiveCall(acknowledged: false)
        run.timeline.feed(.flowFailed(AgentRun.server))
        run.timeline.feed(.moved(AgentRun.server, to: AgentRun.next, refreshes: false))
        run.advance(.seconds(1))
        #expect(run.responses(200).last?.flow == AgentRun.next)
        run.timeline.feed(.received(.request(Sample.request(.ack, branch: "z9hG4bK1a", toTag: tag)), AgentRun.next))
        #expect(run.events(b).last == .confirmed(nil))
    }

    // MARK: Offers and refreshes that wait

    @Test(
        "An offer waits for the ACK of the call, a second one meanwhile is refused, and one that is withdrawn is not made"
    )
    func waitingOffer() throws {
        var run = AgentRun()
        let tag = try run.receiveCall(acknowledged: false)
        run.timeline.feed(.command(b, .offer(Array("first".utf8))))
        run.timeline.feed(.command(b, .offer(Array("second".utf8))))
        #expect(run.events(b).filter { $0 == .offerRefused(491) }.count == 1)
        run.timeline.feed(.command(b, .withdrawOffer))
        run.timeline.feed(.command(b, .offer(Array("third".utf8))))
        #expect(run.events(b).filter { $0 == .offerRefused(491) }.count == 1)
        run.advance(.milliseconds(450))
        #expect(run.requests(.invite).isEmpty)
        run.timeline.feed(.received(.request(Sample.request(.ack, branch: "z9hG4bK1a", toTag: tag)), AgentRun.server))
        run.advance(.milliseconds(100))
        #expect(run.requests(.invite).map { $0.request.body } == [Array("third".utf8)])
    }

    @Test("A refresh that is refused is tried again, with the interval that the peer asks for, and the session lasts")
    func refusedRefresh() throws {
        var run = AgentRun()
        run.place()
        run.answer(
            200, try #require(run.requests(.invite).last).request, ("Session-Expires", "100;refresher=uac"),
            ("Allow", "INVITE, UPDATE"))
        run.advance(.seconds(51))
        run.answer(422, try #require(run.requests(.update).last).request, ("Min-SE", "300"))
        run.advance(.milliseconds(1_100))
        #expect(run.requests(.update).count == 2)
        let longer = try #require(run.requests(.update).last).request
        #expect(longer.headers["Session-Expires"] == "300;refresher=uac" && longer.headers["Min-SE"] == "300")
        run.answer(500, longer)
        run.advance(.seconds(25))
        #expect(run.requests(.update).count == 3)
        run.answer(200, try #require(run.requests(.update).last).request, ("Session-Expires", "300;refresher=uac"))
        run.advance(.seconds(140))
        #expect(!run.events(a).contains(.ended(.lost)) && run.requests(.update).count == 3)
        run.advance(.seconds(20))
        #expect(run.requests(.update).count == 4)
    }

    @Test("A peer that refuses refreshes with ever longer intervals is not asked each second")
    func growingRefusals() throws {
        var run = try refreshing()
        run.advance(.seconds(51))
        for step in 1...20 {
            let sent = run.requests(.update).count
            run.answer(422, try #require(run.requests(.update).last).request, ("Min-SE", String(300 + step)))
            while run.requests(.update).count == sent, run.timeline.core.callsInMemory > 0 { run.advance(.seconds(1)) }
            guard !run.events(a).contains(.ended(.lost)) else { break }
        }
        // After half of what is left each time, a session of 100 s leaves room for eight.
        #expect(run.events(a).contains(.ended(.lost)) && run.requests(.update).count <= 8)
    }

    @Test("A session of a week is refreshed every half an hour")
    func longSession() throws {
        var run = AgentRun()
        run.place()
        run.answer(
            200, try #require(run.requests(.invite).last).request, ("Session-Expires", "604800;refresher=uac"),
            ("Allow", "INVITE, UPDATE"))
        run.advance(.seconds(1_799))
        #expect(run.requests(.update).isEmpty)
        run.advance(.seconds(1))
        #expect(run.requests(.update).count == 1)
    }

    /// A standing call that we placed and refresh by UPDATE.
    private func refreshing() throws -> AgentRun {
        var run = AgentRun()
        run.place()
        run.answer(
            200, try #require(run.requests(.invite).last).request, ("Session-Expires", "100;refresher=uac"),
            ("Allow", "INVITE, UPDATE"))
        return run
    }

    @Test("An offer, a refresh and a BYE do not go into a flow that is gone, but by the next one")
    func lostFlow() throws {
        let other = Array("other".utf8)
        var run = try refreshing()
        run.timeline.feed(.flowFailed(AgentRun.server))
        run.timeline.feed(.command(a, .offer(other)))
        run.advance(.seconds(60))
        #expect(run.requests(.invite).count == 1 && run.requests(.update).isEmpty)
        run.timeline.feed(.moved(AgentRun.server, to: AgentRun.next, refreshes: true))
        run.advance(.milliseconds(200))
        let offer = try #require(run.requests(.invite).last)
        #expect(offer.flow == AgentRun.next && offer.request.body == other && run.requests(.update).isEmpty)
        run.timeline.feed(.flowFailed(AgentRun.next))
        #expect(run.events(a).last == .offerRefused(503))
        run.timeline.feed(.command(a, .end(cause: nil)))
        #expect(run.requests(.bye).isEmpty)
        let third = Sample.flow(4, .tcp)
        run.timeline.feed(.moved(AgentRun.next, to: third, refreshes: false))
        #expect(run.requests(.bye).map(\.flow) == [third])

        var idle = try refreshing()
        idle.timeline.feed(.flowFailed(AgentRun.server))
        idle.advance(.seconds(60))
        idle.timeline.feed(.moved(AgentRun.server, to: AgentRun.next, refreshes: false))
        idle.advance(.seconds(20))
        #expect(idle.requests(.update).map(\.flow) == [AgentRun.next])
    }

    @Test("The refresh with our new contact waits for what is under way")
    func postponedRefresh() throws {
        var run = try refreshing()
        run.timeline.feed(.command(a, .offer(Array("other".utf8))))
        run.timeline.feed(.moved(AgentRun.server, to: AgentRun.next, refreshes: true))
        #expect(run.requests(.update).isEmpty)
        run.answer(200, try #require(run.requests(.invite).last).request)
        run.advance(.milliseconds(200))
        #expect(run.requests(.update).map(\.flow) == [AgentRun.next])
    }

    @Test("A session is refreshed though the offer that took the place of a refresh is refused or withdrawn")
    func refusedOfferForRefresh() throws {
        for isWithdrawn in [true, false] {
            var run = try refreshing()
            run.advance(.seconds(51))
            run.answer(491, try #require(run.requests(.update).last).request)
            run.timeline.feed(.command(a, .offer(Array("other".utf8))))
            if isWithdrawn { run.timeline.feed(.command(a, .withdrawOffer)) }
            run.advance(.seconds(5))
            #expect(run.requests(.invite).count == (isWithdrawn ? 1 : 2))
            if !isWithdrawn { run.answer(488, try #require(run.requests(.invite).last).request) }
            run.advance(.seconds(25))
            #expect(run.requests(.update).count == 2)
        }
    }

    @Test("The answer of a fork that came early counts for that fork, and the first reliable one for good")
    func answersOfForks() throws {
        func early(_ invite: SIPRequest, _ tag: String, _ body: String, reliably number: Int? = nil) -> SIPMessage {
            var response = SIPResponse(183, to: invite, toTag: tag)
            response.headers.append("Contact", "<sip:bob@192.0.2.2>")
            response.headers.append("Content-Type", "application/sdp")
            if let number {
                response.headers.append("Require", "100rel")
                response.headers.append("RSeq", String(number))
            }
            response.body = Array(body.utf8)
            return .response(response)
        }
        var run = AgentRun()
        run.place()
        let invite = try #require(run.requests(.invite).last).request
        run.timeline.feed(.received(early(invite, "one", "of one"), AgentRun.server))
        run.timeline.feed(.received(early(invite, "two", "of two"), AgentRun.server))
        run.answer(200, invite, tag: "one")
        #expect(run.events(a).last == .accepted(Array("of one".utf8)))

        var reliable = AgentRun()
        reliable.place()
        let other = try #require(reliable.requests(.invite).last).request
        reliable.timeline.feed(.received(early(other, "b", "first", reliably: 1), AgentRun.server))
        reliable.timeline.feed(.received(early(other, "b", "second", reliably: 2), AgentRun.server))
        reliable.answer(200, other)
        let first = Array("first".utf8)
        #expect(
            reliable.events(a) == [.progress(183, early: first), .progress(183, early: nil), .accepted(first)])
    }

    // MARK: Re-INVITE

    @Test("A re-INVITE in place of the ACK ends a call that was hung up before it")
    func zombie() throws {
        var run = AgentRun()
        let tag = try run.receiveCall(acknowledged: false)
        run.timeline.feed(.command(b, .end(cause: nil)))
        #expect(run.requests(.bye).isEmpty)
        var again = Sample.request(.invite, branch: "z9hG4bK2", number: 2, toTag: tag)
        again.headers.append("Contact", "<sip:bob@192.0.2.2>")
        again.headers.append("Content-Type", "application/sdp")
        again.body = Array("more".utf8)
        run.timeline.feed(.received(.request(again), AgentRun.server))
        #expect(run.responses(487).count == 1)
        #expect(run.requests(.bye).count == 1)
        #expect(run.events(b).filter { if case .ended = $0 { true } else { false } } == [.ended(.local)])
        run.answer(200, try #require(run.requests(.bye).last).request)
        #expect(run.timeline.core.callsInMemory == 0)
    }

    @Test("A re-INVITE that is cancelled is reported, and one that is refused changes no target")
    func withdrawn() throws {
        var run = AgentRun()
        let tag = try run.receiveCall()
        func reinvite(_ number: UInt32) -> SIPRequest {
            var again = Sample.request(.invite, branch: "z9hG4bKr\(number)", number: number, toTag: tag)
            again.headers.append("Contact", "<sip:elsewhere@192.0.2.66>")
            again.headers.append("Content-Type", "application/sdp")
            again.body = Array("more".utf8)
            return again
        }
        run.timeline.feed(.received(.request(reinvite(2)), AgentRun.server))
        var cancel = Sample.request(.cancel, branch: "z9hG4bKr2", number: 2, toTag: tag)
        cancel.headers.set("CSeq", "2 CANCEL")
        run.timeline.feed(.received(.request(cancel), AgentRun.server))
        #expect(run.events(b).last == .offerWithdrawn)
        #expect(run.responses(487).count == 1)
        run.timeline.feed(.received(.request(reinvite(3)), AgentRun.server))
        run.timeline.feed(.command(b, .refuseOffer))
        run.timeline.feed(.command(b, .end(cause: nil)))
        #expect(run.requests(.bye).last?.request.uri.description == "sip:bob@192.0.2.2")
    }

    @Test(
        "Who is active in DTLS is open in an offer that repeats an answer, and settled in an answer that repeats an offer"
    )
    func roles() {
        let bytes = { (text: String) in Array(text.utf8) }
        let answer = bytes("v=0\r\na=setup:active\r\nm=audio 9 RTP/AVP 0\r\n")
        let offer = bytes("v=0\r\na=setup:actpass\r\nm=audio 9 RTP/AVP 0\r\n")
        #expect(DescriptionRole.asOffer(answer) == offer)
        #expect(DescriptionRole.asAnswer(answer, to: offer) == answer)
        #expect(DescriptionRole.asAnswer(offer, to: bytes("a=setup:passive\r\n")) == answer)
        let passive = bytes("v=0\r\na=setup:passive\r\nm=audio 9 RTP/AVP 0\r\n")
        #expect(DescriptionRole.asAnswer(offer, to: bytes("v=0\na=setup:active\n")) == passive)
        #expect(DescriptionRole.asAnswer(bytes("no DTLS"), to: offer) == bytes("no DTLS"))
    }
}
