import SIP
import TestSupport
import Testing
import Core

@Suite("Registration")
struct RegistrationTests {
    private struct Run {
        var timeline: Timeline<RegistrationMachine>

        init(_ change: (inout RegistrationConfiguration) -> Void = { _ in }, password: String = "secret") {
            var configuration = RegistrationConfiguration(
                registrar: Sample.uri("sip:example.com"), address: NameAddress(Sample.uri("sip:alice@example.com")),
                contact: Sample.uri("sip:alice@192.0.2.1:5060;transport=tcp"))
            change(&configuration)
            timeline = Timeline(
                RegistrationMachine(
                    configuration, key: [UInt8](repeating: 1, count: 16),
                    digest: DigestClient(username: "alice", password: password, tokens: Sample.tokens(2))))
        }

        var requests: [SIPRequest] {
            timeline.outputs.compactMap { if case .send(let request) = $0 { request } else { nil } }
        }
        var told: [RegistrationOutput] {
            timeline.outputs.filter { if case .send = $0 { false } else { true } }
        }

        mutating func answer(_ status: Int, _ headers: [(String, String)] = []) throws {
            var response = SIPResponse(status, to: try #require(requests.last), toTag: "r")
            for (name, value) in headers { response.headers.append(SIPHeaderName(name), value) }
            timeline.feed(.response(response))
        }

        mutating func advance(_ seconds: Int64) { timeline.advance(by: .seconds(seconds), firing: .timerFired) }
    }

    private let granted = ("Contact", "<sip:alice@192.0.2.1:5060;transport=tcp>;expires=100")

    @Test("A binding is made, and refreshed before it ends with the same Call-ID and the next number")
    func refresh() throws {
        var run = Run()
        run.timeline.feed(.flowOpened)
        let first = try #require(run.requests.first)
        #expect(first.uri.description == "sip:example.com")
        #expect(first.headers["Expires"] == "600")
        #expect(first.headers.tokens("Supported") == ["path"])
        try run.answer(200, [("Contact", "<sip:other@192.0.2.5>;expires=7"), granted])
        guard case .registered(let registration)? = run.told.last else { throw TestFailure("registered") }
        #expect(registration.seconds == 100)
        run.advance(79)
        #expect(run.requests.count == 1)
        run.advance(12)
        #expect(run.requests.count == 2)
        #expect(run.requests[1].headers.callID == first.headers.callID)
        #expect(run.requests[1].headers.sequence == CSeq(2, .register))
        #expect(run.timeline.core.isRegistered)
    }

    @Test("Path, outbound, GRUU, Service-Route and Flow-Timer are asked for and kept")
    func outbound() throws {
        let instance = "urn:uuid:00000000-0000-1000-8000-000A95A0E128"
        var run = Run { $0.instance = instance }
        run.timeline.feed(.flowOpened)
        let contact = try #require(run.requests[0].headers.contacts?.first)
        #expect(contact.parameters["+sip.instance"] == "<\(instance)>")
        #expect(contact.parameters["reg-id"] == "1")
        #expect(run.requests[0].headers.tokens("Supported") == ["path", "outbound", "gruu"])
        let own =
            "<sip:nat@192.0.2.1>;pub-gruu=\"sip:alice@example.com;gr=\(instance)\";temp-gruu=\"sip:tgruu.7hs@example.com;gr\""
            + ";+sip.instance=\"<\(instance)>\";reg-id=1;expires=300"
        try run.answer(
            200,
            [
                ("Contact", own), ("Service-Route", "<sip:s1.example.com;lr>, <sip:s2.example.com;lr>"),
                ("Require", "outbound"), ("Flow-Timer", "120"),
            ])
        guard case .registered(let registration)? = run.told.last else { throw TestFailure("registered") }
        #expect(registration.seconds == 300)
        #expect(registration.publicGRUU?.description == "sip:alice@example.com;gr=\(instance)")
        #expect(registration.temporaryGRUU?.description == "sip:tgruu.7hs@example.com;gr")
        #expect(
            registration.serviceRoutes.map(\.description) == ["<sip:s1.example.com;lr>", "<sip:s2.example.com;lr>"])
        #expect(registration.usesOutbound)
        #expect(registration.keepaliveSeconds == 120)
    }

    @Test("A challenge is met, and a wrong password ends it")
    func challenge() throws {
        var run = Run()
        let server = DigestServer(realm: "example.com", key: [UInt8](repeating: 3, count: 16))
        run.timeline.feed(.flowOpened)
        for _ in 0..<2 {
            let request = try #require(run.requests.last)
            run.timeline.feed(.response(server.challenge(request, toTag: "r", at: .zero)))
        }
        #expect(run.requests.count == 2)
        #expect(run.requests[1].headers.count("Authorization") == 1)
        #expect(run.told == [.failed(.unauthorized)])
        #expect(run.timeline.core.nextDeadline == nil)
    }

    @Test("423 is answered with the least interval, and not again if the registrar repeats itself")
    func tooBrief() throws {
        var run = Run()
        run.timeline.feed(.flowOpened)
        try run.answer(423, [("Min-Expires", "1800")])
        #expect(run.requests.last?.headers["Expires"] == "1800")
        try run.answer(423, [("Min-Expires", "1800")])
        #expect(run.requests.count == 2)
        guard case .failed(.temporary(423, _))? = run.told.last else { throw TestFailure("a failure") }
    }

    // MARK: What was granted

    private func registered(_ headers: [String], instance: String? = nil) throws -> (Run, Registration) {
        var run = Run { $0.instance = instance }
        run.timeline.feed(.flowOpened)
        try run.answer(200, headers.map { ("Contact", $0) })
        guard case .registered(let registration)? = run.told.last else { throw TestFailure("registered") }
        return (run, registration)
    }

    @Test("The only contact's time counts though a NAT has rewritten it, and the registration is renewed in that time")
    func rewrittenContact() throws {
        var (run, registration) = try registered(["<sip:alice@203.0.113.9:61218>;expires=20"])
        #expect(registration.seconds == 20)
        run.advance(11)
        #expect(run.requests.count == 2)
    }

    @Test("Of several contacts our instance's counts, then our address's, and else the shortest")
    func severalContacts() throws {
        let ours = "urn:uuid:00000000-0000-1000-8000-000A95A0E128"
        let rewritten =
            "<sip:alice@203.0.113.9:61218>;+sip.instance=\"<\(ours)>\";pub-gruu=\"sip:alice@example.com;gr=1\""
        let others = [
            "<sip:alice@198.51.100.1>;expires=300",
            "<sip:alice@198.51.100.2>;expires=40;pub-gruu=\"sip:x@example.com;gr=2\"",
        ]
        let (_, own) = try registered(others + [rewritten + ";expires=200"], instance: ours)
        #expect(own.seconds == 200 && own.publicGRUU?.description == "sip:alice@example.com;gr=1")
        let (_, same) = try registered(others + [granted.1], instance: ours)
        #expect(same.seconds == 100)
        // What may be another device's says how long, and nothing else.
        let (_, shortest) = try registered(others + ["<sip:alice@203.0.113.9:61218>;expires=0"], instance: ours)
        #expect(shortest.seconds == 40 && shortest.publicGRUU == nil)
        let foreign =
            "<sip:alice@198.51.100.2>;+sip.instance=\"<urn:uuid:2>\";pub-gruu=\"sip:x@example.com;gr=2\";expires=50"
        let (_, other) = try registered([foreign], instance: ours)
        #expect(other.seconds == 50 && other.publicGRUU == nil)
        for broken in ["<<broken", "<sip:other@192.0.2.9>;+sip.instance=<urn:uuid:1>", "\"open <sip:x@y>"] {
            let (_, own) = try registered([broken, granted.1])
            #expect(own.seconds == 100, "\(broken)")
        }
    }

    @Test(
        "However much or little a registrar grants, the device registers no more than every five seconds, and each hour"
    )
    func grantedBounds() throws {
        var (brief, told) = try registered(["<sip:alice@203.0.113.9:61218>;expires=1"])
        #expect(told.seconds == 1)
        for _ in 0..<20 {
            brief.advance(5)
            try brief.answer(200, [("Contact", "<sip:alice@203.0.113.9:61218>;expires=1")])
        }
        #expect((19...21).contains(brief.requests.count) && !brief.told.contains(.lost))
        // No longer than was asked for.
        var (long, _) = try registered(["<sip:alice@203.0.113.9:61218>;expires=604800"])
        long.advance(541)
        #expect(long.requests.count == 2)
        // A registrar that wants more than we ask for has it, but not for days.
        var longer = Run()
        longer.timeline.feed(.flowOpened)
        try longer.answer(423, [("Min-Expires", "86400")])
        #expect(longer.requests.last?.headers["Expires"] == "86400")
        try longer.answer(200, [("Contact", "<sip:alice@203.0.113.9:61218>;expires=86400")])
        longer.advance(3_241)
        #expect(longer.requests.count == 3)
        // Another server may take the shorter one.
        longer.timeline.feed(.flowLost)
        longer.timeline.feed(.serverChanged)
        longer.timeline.feed(.flowOpened)
        #expect(longer.requests.last?.headers["Expires"] == "600")
        var days = Run()
        days.timeline.feed(.flowOpened)
        try days.answer(423, [("Min-Expires", "86401")])
        guard case .failed(.temporary(423, _))? = days.told.last else { throw TestFailure("a failure") }
    }

    @Test("423 with ever longer intervals is followed once, and then after ever longer waits")
    func growingIntervals() throws {
        var run = Run()
        run.timeline.feed(.flowOpened)
        for step in 1...2 { try run.answer(423, [("Min-Expires", String(600 + step))]) }
        #expect(run.requests.map { $0.headers["Expires"] } == ["600", "601"])
        guard case .failed(.temporary(423, let wait))? = run.told.last else { throw TestFailure("a failure") }
        #expect(wait >= .seconds(15))
        run.advance(31)
        #expect(run.requests.map { $0.headers["Expires"] } == ["600", "601", "602"])
        try run.answer(423, [("Min-Expires", "603")])
        #expect(run.requests.count == 3)
        guard case .failed(.temporary(423, let longer))? = run.told.last else { throw TestFailure("a failure") }
        #expect(longer >= .seconds(30))
        run.advance(61)
        try run.answer(200, [("Contact", "<sip:alice@192.0.2.1:5060;transport=tcp>;expires=603")])
        // What was granted since begins again.
        run.advance(543)
        #expect(run.requests.count == 5)
        try run.answer(423, [("Min-Expires", "700")])
        #expect(run.requests.last?.headers["Expires"] == "700")
    }

    @Test(
        "A Flow-Timer neither keeps a device from pinging nor has it ping all the time",
        arguments: [
            ("604800", 120), ("0", 5), ("90", 90),
        ])
    func flowTimer(_ text: String, _ seconds: UInt32) throws {
        var run = Run()
        run.timeline.feed(.flowOpened)
        try run.answer(200, [granted, ("Flow-Timer", text)])
        guard case .registered(let registration)? = run.told.last else { throw TestFailure("registered") }
        #expect(registration.keepaliveSeconds == seconds)
    }

    @Test("A Retry-After of days is five minutes and their spread at most")
    func longRetryAfter() throws {
        var run = Run()
        run.timeline.feed(.flowOpened)
        try run.answer(503, [("Retry-After", "4294967295")])
        run.advance(299)
        #expect(run.requests.count == 1)
        run.advance(33)
        #expect(run.requests.count == 2)
    }

    @Test("A Retry-After of no time is not obeyed: the waits are our own, and double")
    func noRetryAfter() throws {
        var run = Run()
        run.timeline.feed(.flowOpened)
        for index in 0..<9 {
            try run.answer(503, [("Retry-After", "0")])
            guard case .failed(.temporary(503, let wait))? = run.told.last else { throw TestFailure("a failure") }
            let upper = min(1_800, 30 * Double(1 << index))
            #expect(wait.seconds >= upper / 2 && wait.seconds <= upper)
            run.advance(1_801)
        }
        // Nor does it keep a device from trying in a new network.
        try run.answer(503, [("Retry-After", "0")])
        run.timeline.feed(.networkChanged)
        #expect(run.requests.count == 11)
    }

    @Test("Retry-After of a 503 is honoured, and devices come back spread")
    func retryAfter() throws {
        var run = Run()
        run.timeline.feed(.flowOpened)
        try run.answer(503, [("Retry-After", "120 (maintenance)")])
        run.advance(119)
        #expect(run.requests.count == 1)
        run.advance(15)
        #expect(run.requests.count == 2)
    }

    @Test("Failures are retried after waits that double up to half an hour, and begin again after success")
    func backoff() throws {
        var run = Run()
        run.timeline.feed(.flowOpened)
        var waits: [Double] = []
        for _ in 0..<9 {
            run.timeline.feed(.failed(408))
            guard case .failed(.temporary(408, let wait))? = run.told.last else { throw TestFailure("a failure") }
            waits.append(wait.seconds)
            run.advance(1_801)
        }
        for (index, wait) in waits.enumerated() {
            let upper = min(1_800, 30 * Double(1 << index))
            #expect(wait >= upper / 2 && wait <= upper)
        }
        try run.answer(200, [granted])
        run.advance(95)
        run.timeline.feed(.failed(503))
        guard case .failed(.temporary(503, let wait))? = run.told.last else { throw TestFailure("a failure") }
        #expect(wait <= .seconds(30))
        // The binding runs out meanwhile, which is told once.
        run.advance(6)
        #expect(run.told.filter { $0 == .lost }.count == 1)
        #expect(!run.timeline.core.isRegistered)
    }

    @Test("A refusal for good is not tried again, and outbound is given up where the first hop has none")
    func refusals() throws {
        var run = Run { $0.instance = "urn:uuid:1" }
        run.timeline.feed(.flowOpened)
        try run.answer(439)
        #expect(run.requests.last?.headers.contacts?.first?.parameters["reg-id"] == nil)
        #expect(run.requests.last?.headers.tokens("Supported") == ["path", "gruu"])
        try run.answer(403)
        #expect(run.told == [.failed(.refused(403))])
        run.advance(10_000)
        #expect(run.requests.count == 2)
    }

    @Test("A lost flow ends the binding and sends nothing; a new one and a new address register at once")
    func flows() throws {
        var run = Run()
        run.timeline.feed(.flowOpened)
        try run.answer(200, [granted])
        run.timeline.feed(.flowLost)
        #expect(run.told.last == .lost)
        run.advance(1_000)
        #expect(run.requests.count == 1)
        run.timeline.feed(.flowOpened)
        #expect(run.requests.count == 2)
        run.timeline.feed(.contactChanged(Sample.uri("sip:alice@192.0.2.77")))
        #expect(run.requests.count == 3)
        #expect(run.requests[2].headers["Contact"]?.contains("192.0.2.77") == true)
        // The answer to the request before is no news.
        let stale = SIPResponse(200, to: run.requests[1], toTag: "r")
        run.timeline.feed(.response(stale))
        #expect(!run.timeline.core.isRegistered)
    }

    @Test("Unregistering asks for zero seconds, through a challenge, and ends even without an answer")
    func unregister() throws {
        var run = Run()
        let server = DigestServer(realm: "r", key: [UInt8](repeating: 3, count: 16))
        run.timeline.feed(.flowOpened)
        try run.answer(200, [granted])
        run.timeline.feed(.unregister)
        #expect(run.requests.last?.headers["Expires"] == "0")
        let request = try #require(run.requests.last)
        run.timeline.feed(.response(server.challenge(request, toTag: "r", at: .zero)))
        #expect(run.requests.last?.headers.contacts?.first?.parameters["expires"] == "0")
        run.timeline.feed(.failed(408))
        #expect(run.told.last == .unregistered)
        run.timeline.feed(.flowOpened)
        #expect(run.requests.count == 3)
    }

    @Test(
        "A refusal of a refresh is tried again with growing waits, and ends the registration when it comes ten times in a row"
    )
    func refusedRefresh() throws {
        var run = Run()
        run.timeline.feed(.flowOpened)
        try run.answer(200, [granted])
        run.advance(95)
        for _ in 1..<RegistrationMachine.patience {
            try run.answer(403)
            guard case .failed(.temporary(403, _))? = run.told.last(where: { $0 != .lost }) else {
                throw TestFailure("a failure that passes")
            }
            run.advance(1_801)
        }
        var good = run
        try run.answer(403)
        #expect(run.told.last == .failed(.refused(403)))
        let sent = run.requests.count
        run.advance(10_000)
        #expect(run.requests.count == sent)
        // Success forgets what was refused before.
        try good.answer(200, [granted])
        good.advance(95)
        try good.answer(403)
        guard case .failed(.temporary)? = good.told.last else { throw TestFailure("a failure that passes") }
    }

    @Test("What a server says of waiting holds for its next connection, and not for another server")
    func waitsOutliveFlows() throws {
        var run = Run()
        run.timeline.feed(.flowOpened)
        try run.answer(503, [("Retry-After", "120")])
        run.timeline.feed(.flowLost)
        run.timeline.feed(.flowOpened)
        var other = run
        run.advance(119)
        #expect(run.requests.count == 1)
        run.advance(20)
        #expect(run.requests.count == 2)
        other.timeline.feed(.flowLost)
        other.timeline.feed(.serverChanged)
        other.timeline.feed(.flowOpened)
        #expect(other.requests.count == 2)
    }

    @Test("A change of the network ends a wait of our own, but not one that the server requested")
    func networkChanges() throws {
        var ours = Run()
        ours.timeline.feed(.flowOpened)
        for _ in 0..<5 {
            ours.timeline.feed(.failed(503))
            ours.timeline.feed(.networkChanged)
        }
        #expect(ours.requests.count == 6)
        var theirs = Run()
        theirs.timeline.feed(.flowOpened)
        try theirs.answer(503, [("Retry-After", "120")])
        theirs.timeline.feed(.networkChanged)
        #expect(theirs.requests.count == 1)
    }

    @Test("The realms that the registrar asks with are the account's, once it has taken us")
    func realms() throws {
        var run = Run()
        run.timeline.feed(.flowOpened)
        try run.answer(401, [("WWW-Authenticate", "Digest realm=\"r\", nonce=\"1\", algorithm=SHA-256")])
        #expect(run.timeline.core.digestTrust.realms == nil)
        try run.answer(200, [granted])
        #expect(run.timeline.core.digestTrust.realms == ["r"])
        run.advance(95)
        try run.answer(401, [("WWW-Authenticate", "Digest realm=\"evil\", nonce=\"2\"")])
        #expect(run.requests.count == 3)
        guard case .failed(.temporary(401, _))? = run.told.last else { throw TestFailure("a failure that passes") }
    }
}
