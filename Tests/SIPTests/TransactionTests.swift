import SIP
import Testing
import TestSupport
import Core

/// Messages and flows that tests are made of.
enum Sample {
    static let udp = flow(1, .udp)
    static let tcp = flow(2, .tcp)

    static func flow(_ id: Int, _ transport: SIPTransport) -> SIPFlow {
        guard let host = SIPHost("192.0.2.1") else { preconditionFailure("a host") }
        return SIPFlow(id: id, transport: transport, localHost: host, localPort: 5060)
    }

    static func uri(_ text: String) -> AnyURI {
        guard let uri = AnyURI(text) else { preconditionFailure("a URI: \(text)") }
        return uri
    }

    static func tokens(_ seed: UInt8 = 1) -> TokenSource { TokenSource(key: [UInt8](repeating: seed, count: 16)) }

    /// A request; with a branch, as a peer sends it.
    static func request(_ method: SIPMethod, branch: String? = nil, number: UInt32 = 1, toTag: String? = nil)
        -> SIPRequest
    {
        var request = SIPRequest(method: method, uri: uri("sip:bob@b.example"))
        if let branch { request.headers.append("Via", "SIP/2.0/UDP 192.0.2.9:5060;branch=\(branch)") }
        request.headers.append("Max-Forwards", "70")
        request.headers.append("From", "<sip:alice@a.example>;tag=a1")
        request.headers.append("To", "<sip:bob@b.example>" + (toTag.map { ";tag=" + $0 } ?? ""))
        request.headers.append("Call-ID", "call-1")
        request.headers.append("CSeq", "\(number) \(method)")
        return request
    }
}

/// A table on virtual time.
struct TableRun {
    var timeline: Timeline<TransactionTable>

    init(capacity: Int = 100) {
        timeline = Timeline(TransactionTable(tokens: Sample.tokens(), capacity: capacity))
    }

    /// When messages with this first word were sent, in milliseconds.
    func times(_ word: String) -> [Double] {
        timeline.log.filter { entry in
            guard case .transmit(let message, _) = entry.output else { return false }
            return firstLine(message).hasPrefix(word)
        }.map { $0.at.milliseconds }
    }

    func firstLine(_ message: SIPMessage) -> String {
        switch message {
        case .request(let request): request.method.rawValue
        case .response(let response): String(response.status)
        }
    }

    /// The last request that was sent.
    func sent(_ method: SIPMethod) -> SIPRequest? {
        timeline.outputs.reversed().lazy.compactMap { output -> SIPRequest? in
            guard case .transmit(.request(let request), _) = output, request.method == method else { return nil }
            return request
        }.first
    }

    /// Answers the last request of that method.
    @discardableResult
    mutating func answer(_ status: Int, _ method: SIPMethod, tag: String = "b1") throws -> [TransactionOutput] {
        let request = try #require(sent(method))
        return timeline.feed(.received(.response(SIPResponse(status, to: request, toTag: tag)), Sample.udp))
    }

    mutating func advance(_ duration: Duration) { timeline.advance(by: duration, firing: .timerFired) }

    /// The outputs that are no transmissions.
    var told: [TransactionOutput] {
        timeline.outputs.filter { if case .transmit = $0 { false } else { true } }
    }
}

@Suite("Transactions")
struct TransactionTests {
    @Test("Timers A and B: an INVITE over UDP is repeated at doubling intervals and fails after 32 s")
    func timersAB() {
        var run = TableRun()
        run.timeline.feed(.start(1, Sample.request(.invite), Sample.udp))
        run.advance(.seconds(40))
        #expect(run.times("INVITE") == [0, 500, 1_500, 3_500, 7_500, 15_500, 31_500])
        #expect(run.timeline.log.last?.at == .seconds(32))
        #expect(run.told == [.timedOut(.client(1))])
        #expect(run.timeline.core.count == 0)
    }

    @Test("Over TCP nothing is repeated, and timers B and F still end it")
    func reliable() {
        var run = TableRun()
        run.timeline.feed(.start(1, Sample.request(.invite), Sample.tcp))
        run.timeline.feed(.start(2, Sample.request(.options), Sample.tcp))
        run.advance(.seconds(40))
        #expect(run.times("INVITE") == [0])
        #expect(run.times("OPTIONS") == [0])
        #expect(Set(run.told.map { "\($0)" }).count == 2)
        #expect(run.timeline.core.count == 0)
    }

    @Test("Timer C: an INVITE that only rings ends after three minutes without a further response")
    func timerC() throws {
        var run = TableRun()
        run.timeline.feed(.start(1, Sample.request(.invite), Sample.udp))
        run.advance(.milliseconds(700))
        try run.answer(180, .invite)
        run.advance(.seconds(100))
        try run.answer(180, .invite)
        run.advance(.seconds(184))
        #expect(run.times("INVITE") == [0, 500])
        #expect(!run.told.contains(.timedOut(.client(1))))
        run.advance(.seconds(2))
        #expect(run.told.last == .timedOut(.client(1)))
    }

    @Test("Timer D: a refusal is acknowledged each time it comes for 32 s, and reported once")
    func timerD() throws {
        var run = TableRun()
        run.timeline.feed(.start(1, Sample.request(.invite), Sample.udp))
        let branch = run.sent(.invite)?.headers.topVia?.branch
        try run.answer(486, .invite)
        run.advance(.seconds(31))
        try run.answer(486, .invite)
        #expect(run.times("ACK") == [0, 31_000])
        #expect(run.sent(.ack)?.headers.topVia?.branch == branch)
        #expect(run.sent(.ack)?.headers.to?.tag == "b1")
        #expect(run.sent(.ack)?.headers.sequence == CSeq(1, .ack))
        #expect(run.told.count == 1)
        run.advance(.seconds(1))
        #expect(run.timeline.core.count == 0)
        try run.answer(486, .invite)
        #expect(run.times("ACK").count == 2)
        #expect(run.timeline.core.strays == 1)
    }

    @Test("Over TCP a refusal is acknowledged and forgotten")
    func refusalReliable() throws {
        var run = TableRun()
        run.timeline.feed(.start(1, Sample.request(.invite), Sample.tcp))
        try run.answer(486, .invite)
        #expect(run.times("ACK") == [0])
        #expect(run.timeline.core.count == 0)
    }

    @Test("Timers E and F: another request is repeated up to every 4 s, every 4 s once it is proceeding")
    func timersEF() throws {
        var run = TableRun()
        run.timeline.feed(.start(1, Sample.request(.options), Sample.udp))
        run.advance(.seconds(40))
        #expect(run.times("OPTIONS") == [0, 500, 1_500, 3_500, 7_500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500])
        #expect(run.told == [.timedOut(.client(1))])
        var proceeding = TableRun()
        proceeding.timeline.feed(.start(1, Sample.request(.options), Sample.udp))
        try proceeding.answer(100, .options)
        proceeding.advance(.seconds(10))
        #expect(proceeding.times("OPTIONS") == [0, 500, 4_500, 8_500])
    }

    @Test("Timer K: a final response that is repeated within 5 s is reported once")
    func timerK() throws {
        var run = TableRun()
        run.timeline.feed(.start(1, Sample.request(.options), Sample.udp))
        try run.answer(200, .options)
        run.advance(.milliseconds(4_999))
        try run.answer(200, .options)
        #expect(run.told.count == 1)
        #expect(run.timeline.core.count == 1)
        run.advance(.milliseconds(1))
        #expect(run.timeline.core.count == 0)
    }

    @Test("Timer M: every 2xx of an INVITE is reported for 32 s, of each fork, and other responses are not")
    func timerM() throws {
        var run = TableRun()
        run.timeline.feed(.start(1, Sample.request(.invite), Sample.udp))
        try run.answer(200, .invite, tag: "b1")
        run.advance(.seconds(1))
        try run.answer(200, .invite, tag: "b2")
        try run.answer(180, .invite, tag: "b3")
        try run.answer(486, .invite, tag: "b3")
        #expect(run.told.count == 2)
        #expect(run.times("ACK").isEmpty)
        run.advance(.seconds(31))
        #expect(run.timeline.core.count == 0)
        try run.answer(200, .invite, tag: "b2")
        #expect(run.told.count == 2)
    }

    @Test("A server says 100 after 200 ms if its user says nothing, and repeats what it said last")
    func trying() throws {
        var run = TableRun()
        let invite = Sample.request(.invite, branch: "z9hG4bK1")
        run.timeline.feed(.received(.request(invite), Sample.udp))
        run.timeline.feed(.received(.request(invite), Sample.udp))
        run.advance(.seconds(1))
        #expect(run.times("100") == [200])
        run.timeline.feed(.received(.request(invite), Sample.udp))
        #expect(run.times("100") == [200, 1_000])
        run.timeline.feed(.respond(.server(1), SIPResponse(180, to: invite, toTag: "t")))
        run.timeline.feed(.received(.request(invite), Sample.udp))
        #expect(run.times("180") == [1_000, 1_000])
        #expect(run.told.count == 1)
    }

    @Test("Timers G and H: a refusal is repeated until it is acknowledged, or for 32 s")
    func timersGH() {
        var run = TableRun()
        let invite = Sample.request(.invite, branch: "z9hG4bK1")
        run.timeline.feed(.received(.request(invite), Sample.udp))
        run.timeline.feed(.respond(.server(1), SIPResponse(486, to: invite, toTag: "t")))
        run.advance(.seconds(40))
        #expect(run.times("486") == [0, 500, 1_500, 3_500, 7_500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500])
        #expect(run.told.last == .ackMissing(.server(1)))
        #expect(run.timeline.core.count == 0)
    }

    @Test("Timer I: after the ACK of a refusal further ACKs and INVITEs are absorbed for 5 s")
    func timerI() {
        var run = TableRun()
        let invite = Sample.request(.invite, branch: "z9hG4bK1")
        let ack = Sample.request(.ack, branch: "z9hG4bK1", toTag: "t")
        run.timeline.feed(.received(.request(invite), Sample.udp))
        run.timeline.feed(.respond(.server(1), SIPResponse(486, to: invite, toTag: "t")))
        for _ in 0..<2 { run.timeline.feed(.received(.request(ack), Sample.udp)) }
        run.timeline.feed(.received(.request(invite), Sample.udp))
        run.advance(.milliseconds(4_900))
        #expect(run.times("486") == [0])
        #expect(run.told.count == 1)
        #expect(run.timeline.core.count == 1)
        run.advance(.milliseconds(100))
        #expect(run.timeline.core.count == 0)
    }

    @Test("Timer J: another request's answer is repeated with the request for 32 s")
    func timerJ() {
        var run = TableRun()
        let options = Sample.request(.options, branch: "z9hG4bK1")
        run.timeline.feed(.received(.request(options), Sample.udp))
        run.timeline.feed(.received(.request(options), Sample.udp))
        run.timeline.feed(.respond(.server(1), SIPResponse(200, to: options, toTag: "t")))
        run.advance(.seconds(31))
        run.timeline.feed(.received(.request(options), Sample.udp))
        #expect(run.times("200") == [0, 31_000])
        run.advance(.seconds(1))
        #expect(run.timeline.core.count == 0)
        #expect(run.told.count == 1)
    }

    @Test("Timer L: after a 2xx the INVITE is absorbed for 32 s, each 2xx of the user is sent, and ACKs are reported")
    func timerL() {
        var run = TableRun()
        let invite = Sample.request(.invite, branch: "z9hG4bK1")
        let ok = SIPResponse(200, to: invite, toTag: "t")
        run.timeline.feed(.received(.request(invite), Sample.udp))
        run.timeline.feed(.respond(.server(1), ok))
        run.timeline.feed(.received(.request(invite), Sample.udp))
        #expect(run.times("200") == [0])
        run.advance(.milliseconds(500))
        run.timeline.feed(.respond(.server(1), ok))
        run.timeline.feed(.respond(.server(1), SIPResponse(486, to: invite)))
        #expect(run.times("200") == [0, 500])
        #expect(run.times("486").isEmpty)
        let ack = Sample.request(.ack, branch: "z9hG4bKother", toTag: "t")
        run.timeline.feed(.received(.request(ack), Sample.udp))
        run.timeline.feed(.received(.request(Sample.request(.ack, branch: "z9hG4bK1", toTag: "t")), Sample.udp))
        #expect(run.told.count == 3)
        run.advance(.seconds(32))
        #expect(run.timeline.core.count == 0)
    }

    @Test("A CANCEL has the INVITE's branch and number, and its own answer; 487 ends the INVITE")
    func cancelClient() throws {
        var run = TableRun()
        var invite = Sample.request(.invite, number: 7)
        invite.headers.append("Route", "<sip:p.example;lr>")
        run.timeline.feed(.start(1, invite, Sample.udp))
        try run.answer(180, .invite)
        var reason = SIPHeaders()
        reason.append("Reason", "SIP;cause=200")
        run.timeline.feed(.cancel(1, by: 2, reason))
        let cancel = try #require(run.sent(.cancel))
        #expect(cancel.headers.topVia?.branch == run.sent(.invite)?.headers.topVia?.branch)
        #expect(cancel.headers.sequence == CSeq(7, .cancel))
        #expect(cancel.headers["Route"] == "<sip:p.example;lr>")
        #expect(cancel.headers["Reason"] == "SIP;cause=200")
        #expect(cancel.headers.to?.tag == nil)
        try run.answer(200, .cancel)
        try run.answer(487, .invite)
        #expect(run.times("ACK").count == 1)
        #expect(run.told.count == 3)
    }

    @Test("A cancelled INVITE without a final response ends after 32 s, for any provisional responses")
    func cancelTimeout() throws {
        var run = TableRun()
        run.timeline.feed(.start(1, Sample.request(.invite), Sample.tcp))
        try run.answer(180, .invite)
        run.timeline.feed(.cancel(1, by: 2, SIPHeaders()))
        try run.answer(200, .cancel)
        run.advance(.seconds(30))
        try run.answer(180, .invite)
        run.advance(.seconds(2))
        #expect(run.told.last == .timedOut(.client(1)))
    }

    @Test("A CANCEL that crosses a final response cancels nothing")
    func cancelRace() throws {
        var run = TableRun()
        run.timeline.feed(.start(1, Sample.request(.invite), Sample.udp))
        try run.answer(200, .invite)
        run.timeline.feed(.cancel(1, by: 2, SIPHeaders()))
        #expect(run.times("CANCEL").isEmpty)
        let invite = Sample.request(.invite, branch: "z9hG4bK1")
        run.timeline.feed(.received(.request(invite), Sample.udp))
        run.timeline.feed(.received(.request(Sample.request(.cancel, branch: "z9hG4bK1")), Sample.udp))
        guard case .cancelled(_, _, _, .server(1)?)? = run.told.last else {
            throw TestFailure("the CANCEL names no transaction of the server")
        }
        run.timeline.feed(.respond(.server(1), SIPResponse(200, to: invite, toTag: "t")))
        run.timeline.feed(.received(.request(Sample.request(.cancel, branch: "z9hG4bK1", number: 1)), Sample.tcp))
        let late = Sample.request(.cancel, branch: "z9hG4bKnone")
        run.timeline.feed(.received(.request(late), Sample.udp))
        guard case .cancelled(_, _, _, nil)? = run.told.last else { throw TestFailure("there is no INVITE") }
    }

    @Test("A CANCEL behind our final answer finds its INVITE, so that it gets 200 and not 481 (RFC 3261 §9.2)")
    func cancelAfterAnswer() throws {
        var run = TableRun()
        let invite = Sample.request(.invite, branch: "z9hG4bK1")
        run.timeline.feed(.received(.request(invite), Sample.udp))
        run.timeline.feed(.respond(.server(1), SIPResponse(200, to: invite, toTag: "t")))
        run.timeline.feed(.received(.request(Sample.request(.cancel, branch: "z9hG4bK1")), Sample.udp))
        guard case .cancelled(_, _, _, .server(1)?)? = run.told.last else {
            throw TestFailure("the CANCEL names no transaction of the server")
        }
    }

    @Test("The sender's host is part of a branch's name, and case is not")
    func matching() {
        var run = TableRun()
        run.timeline.feed(.received(.request(Sample.request(.options, branch: "z9hG4bKa")), Sample.udp))
        run.timeline.feed(.received(.request(Sample.request(.options, branch: "Z9HG4BKA")), Sample.udp))
        #expect(run.told.count == 1)
        var other = Sample.request(.options, branch: "z9hG4bKa")
        other.headers.set("Via", "SIP/2.0/UDP 192.0.2.10:5060;branch=z9hG4bKa")
        run.timeline.feed(.received(.request(other), Sample.udp))
        #expect(run.told.count == 2)
    }

    @Test("Requests of RFC 2543 are matched without a branch")
    func oldRequests() {
        var run = TableRun()
        let invite = Sample.request(.invite, branch: "1")
        run.timeline.feed(.received(.request(invite), Sample.udp))
        run.timeline.feed(.received(.request(invite), Sample.udp))
        run.timeline.feed(.respond(.server(1), SIPResponse(486, to: invite, toTag: "t")))
        run.timeline.feed(.received(.request(Sample.request(.ack, branch: "1", toTag: "t")), Sample.udp))
        run.advance(.seconds(20))
        #expect(run.times("486") == [0])
        run.timeline.feed(.received(.request(Sample.request(.invite, branch: "1", number: 2)), Sample.udp))
        #expect(run.told.count == 2)
    }

    @Test("A response with a second Via is dropped as another's")
    func strayResponse() throws {
        var run = TableRun()
        run.timeline.feed(.start(1, Sample.request(.options), Sample.udp))
        var response = SIPResponse(200, to: try #require(run.sent(.options)))
        response.headers.append("Via", "SIP/2.0/UDP 255.255.255.255;branch=z9hG4bK1saber23")
        run.timeline.feed(.received(.response(response), Sample.udp))
        #expect(run.told.isEmpty)
        #expect(run.timeline.core.strays == 1)
    }

    @Test("A flow that fails ends what waits for an answer on it, and nothing else")
    func flowFailure() throws {
        var run = TableRun()
        run.timeline.feed(.start(1, Sample.request(.invite), Sample.tcp))
        run.timeline.feed(.start(2, Sample.request(.options), Sample.udp))
        run.timeline.feed(.flowFailed(Sample.tcp))
        #expect(run.told == [.failed(.client(1))])
        #expect(run.timeline.core.count == 1)
        run.timeline.feed(.flowFailed(Sample.tcp))
        #expect(run.told.count == 1)
    }

    @Test("A peer's INVITE that its user never answers is answered with 480 after 180 s, and kept 32 s more at most")
    func unanswered() throws {
        for tag in ["ours", nil] {
            var run = TableRun()
            let invite = Sample.request(.invite, branch: "z9hG4bK1")
            run.timeline.feed(.received(.request(invite), Sample.tcp))
            if let tag { run.timeline.feed(.respond(.server(1), SIPResponse(180, to: invite, toTag: tag))) }
            run.timeline.feed(.flowFailed(Sample.tcp))
            run.advance(.milliseconds(179_999))
            #expect(run.times("480").isEmpty && run.timeline.core.count == 1)
            run.advance(.milliseconds(1))
            #expect(run.times("480") == [180_000])
            guard case .transmit(.response(let last), _)? = run.timeline.outputs.last else {
                throw TestFailure("a response")
            }
            // One dialog, one tag.
            #expect(tag == nil ? last.headers.to?.tag != nil : last.headers.to?.tag == tag)
            run.advance(.seconds(32))
            #expect(run.timeline.core.count == 0 && run.timeline.core.nextDeadline == nil)
        }
    }

    @Test("A full table refuses with 503, counts it, and has room again when a transaction ends")
    func fullTable() {
        var run = TableRun(capacity: 2)
        for branch in ["z9hG4bK1", "z9hG4bK2", "z9hG4bK3"] {
            run.timeline.feed(.received(.request(Sample.request(.options, branch: branch)), Sample.udp))
        }
        #expect(run.times("503") == [0])
        run.timeline.feed(.start(9, Sample.request(.options), Sample.udp))
        #expect(run.told.last == .failed(.client(9)))
        #expect(run.timeline.core.refusals == 2)
        // Nobody answers: the peers have given up after 32 s.
        run.advance(.seconds(32))
        #expect(run.timeline.core.count == 0)
        run.timeline.feed(.start(10, Sample.request(.options), Sample.udp))
        #expect(run.timeline.core.count == 1)
    }

    @Test("With random loss both ways each transaction ends the same way at both sides", arguments: 0..<50)
    func lossyPair(seed: Int) throws {
        var generator = SeededGenerator(seed: UInt64(seed))
        var client = Timeline(TransactionTable(tokens: Sample.tokens(1)))
        var server = Timeline(TransactionTable(tokens: Sample.tokens(2)))
        client.feed(.start(1, Sample.request(.invite), Sample.udp))
        var (seenByClient, seenByServer) = (0, 0)
        var answered = false
        let end = Instant.zero.advanced(by: .seconds(80))
        while client.now < end {
            for case .transmit(let message, _) in client.outputs[seenByClient...]
            where Int.random(in: 0..<10, using: &generator) >= 3 { server.feed(.received(message, Sample.udp)) }
            seenByClient = client.outputs.count
            for output in server.outputs[seenByServer...] {
                if case .request(let request, let id, _) = output, !answered {
                    answered = true
                    server.feed(.respond(id, SIPResponse(486, to: request, toTag: "t")))
                }
            }
            for case .transmit(let message, _) in server.outputs[seenByServer...]
            where Int.random(in: 0..<10, using: &generator) >= 3 { client.feed(.received(message, Sample.udp)) }
            seenByServer = server.outputs.count
            // On to the next timer of either; without one nothing happens any more.
            guard let next = [client.core.nextDeadline, server.core.nextDeadline].compactMap(\.self).min() else {
                break
            }
            let pause = max(.zero, client.now.duration(to: min(next, end)))
            client.advance(by: pause, firing: .timerFired)
            server.advance(by: pause, firing: .timerFired)
        }
        let finals = client.outputs.filter {
            switch $0 {
            case .response(let response, _): response.status == 486
            case .timedOut: true
            default: false
            }
        }
        #expect(finals.count == 1)
        #expect(client.core.count == 0)
        #expect(server.core.count == 0)
    }
}
