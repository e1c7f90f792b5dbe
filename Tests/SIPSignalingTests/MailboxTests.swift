import CallControl
import Core
import SIP
@testable import SIPSignaling
import Testing

@Suite("Notifications of a mailbox over SIP (RFC 6665, RFC 3842)")
struct MailboxTests {
    private static let bob = CalleePattern("bob").map { CalleeList([$0], ownHost: "sip.test") } ?? CalleeList()

    private func messages(_ new: Int, _ old: Int = 0, targets: [UserID] = []) -> WaitingMessages {
        WaitingMessages(new: new, old: old, subscribers: Self.bob, targets: targets)
    }

    private func run(_ transport: SIPTransport = .tcp, _ state: WaitingMessages? = nil) throws -> AccountRun {
        // No registration is renewed meanwhile.
        var run = try AccountRun { $0.registrationSeconds = 100_000 }
        run.ask(.notify(state ?? messages(0)))
        try run.connect(transport)
        return run
    }

    /// A SUBSCRIBE of Bob's telephone, by way of the server.
    private func subscribe(
        _ sequence: Int = 1, from: String = "sip:bob@sip.test", callID: String = "mwi-1", toTag: String? = nil,
        contact: String = "sip:bob@192.0.2.77:5070", event: String? = "message-summary", expires: String? = "600",
        accept: String? = "application/simple-message-summary", more: String = ""
    ) throws -> SIPMessage {
        var text = "SUBSCRIBE sip:alice@192.0.2.9:40001 SIP/2.0\r\n"
        text += "Via: SIP/2.0/TCP 192.0.2.1;branch=z9hG4bK\(callID)-\(sequence)\r\nMax-Forwards: 70\r\n"
        text += "From: <\(from)>;tag=peer\r\nTo: <sip:alice@sip.test>\(toTag.map { ";tag=\($0)" } ?? "")\r\n"
        text += "Call-ID: \(callID)\r\nCSeq: \(sequence) SUBSCRIBE\r\nContact: <\(contact)>\r\n"
        text += "Record-Route: <sip:192.0.2.1;lr>\r\n"
        if let event { text += "Event: \(event)\r\n" }
        if let expires { text += "Expires: \(expires)\r\n" }
        if let accept { text += "Accept: \(accept)\r\n" }
        return try SIPMessage(parsing: Array((text + more + "Content-Length: 0\r\n\r\n").utf8))
    }

    private func notices(_ run: AccountRun) -> [(state: String, summary: MessageSummary?)] {
        run.requests(.notify).map { ($0.headers["Subscription-State"] ?? "", MessageSummary(parsing: $0.body)) }
    }

    private func tag(_ run: AccountRun) throws -> String { try #require(try run.response(200).headers.to?.tag) }

    private func events(_ run: AccountRun) -> [MailboxEvent] {
        run.outputs.compactMap { if case .note(.mailbox(let event)) = $0 { event } else { nil } }
    }

    private func summary(_ new: Int, _ old: Int = 0) -> MessageSummary {
        MessageSummary(new: new, old: old, account: "sip:alice@sip.test")
    }

    @Test("A subscriber gets 200 and what waits at once, and each change after that")
    func subscribes() throws {
        var run = try run(.tcp, messages(1, 2))
        try run.receive(try subscribe())
        let accepted = try run.response(200)
        #expect(accepted.headers["Expires"] == "600" && accepted.headers["Record-Route"] == "<sip:192.0.2.1;lr>")
        #expect(accepted.headers.contacts?.count == 1)
        let first = try run.request(.notify)
        #expect(
            first.headers["Event"] == "message-summary" && first.headers["Subscription-State"] == "active;expires=600")
        #expect(first.headers["Content-Type"] == "application/simple-message-summary")
        #expect("\(first.uri)" == "sip:bob@192.0.2.77:5070" && first.headers["Route"] == "<sip:192.0.2.1;lr>")
        #expect(first.headers.from?.tag == accepted.headers.to?.tag && first.headers.to?.tag == "peer")
        #expect(MessageSummary(parsing: first.body) == summary(1, 2))
        try run.respond(200, to: first)
        run.run(.seconds(5))
        run.ask(.notify(messages(1, 2)))
        #expect(run.requests(.notify).count == 1, "nothing has changed")
        run.ask(.notify(messages(2, 2)))
        #expect(notices(run).last?.summary == summary(2, 2))
        #expect(events(run) == [.subscribed("bob", seconds: 600)])
    }

    @Test("A subscriber gets one notification a second at most, none while another has no answer, and the newest state")
    func paced() throws {
        var run = try run()
        try run.receive(try subscribe())
        for new in 1...20 { run.ask(.notify(messages(new))) }
        run.run(.seconds(3))
        #expect(run.requests(.notify).count == 1)
        try run.respond(200, to: try run.request(.notify))
        #expect(notices(run).map(\.summary) == [summary(0), summary(20)])
        try run.respond(200, to: try run.request(.notify))
        run.ask(.notify(messages(21)))
        run.ask(.notify(messages(22)))
        run.run(.milliseconds(999))
        #expect(run.requests(.notify).count == 2)
        run.run(.milliseconds(1))
        #expect(notices(run).last?.summary == summary(22))
    }

    @Test("RFC 6665 §4.2.1: A subscription is renewed and ended in its dialog, and ends after its time")
    func lifetime() throws {
        var run = try run()
        try run.receive(try subscribe())
        let tag = try tag(run)
        try run.respond(200, to: try run.request(.notify))
        run.run(.seconds(500))
        try run.receive(try subscribe(2, toTag: tag, expires: "100"))
        #expect(run.statuses.last == 200 && notices(run).last?.state == "active;expires=100")
        try run.respond(200, to: try run.request(.notify))
        run.run(.milliseconds(99_999))
        #expect(run.requests(.notify).count == 2)
        run.run(.milliseconds(1))
        #expect(notices(run).last?.state == "terminated;reason=timeout")
        try run.respond(200, to: try run.request(.notify))
        run.ask(.notify(messages(5)))
        #expect(run.requests(.notify).count == 3)
        try run.receive(try subscribe(3, toTag: tag))
        #expect(run.statuses.last == 481)

        try run.receive(try subscribe(callID: "mwi-2"))
        let second = try self.tag(run)
        try run.respond(200, to: try run.request(.notify))
        run.run(.seconds(1))
        try run.receive(try subscribe(2, callID: "mwi-2", toTag: second, expires: "0"))
        #expect(notices(run).last?.state == "terminated;reason=timeout")
        #expect(run.account.subscriptions == 1, "until the last notification is answered")
        try run.respond(200, to: try run.request(.notify))
        #expect(run.account.subscriptions == 0)
    }

    @Test("A SUBSCRIBE with Expires: 0 is a question: it is answered by one notification")
    func fetch() throws {
        var run = try run(.tcp, messages(3))
        try run.receive(try subscribe(expires: "0"))
        #expect(try run.response(200).headers["Expires"] == "0")
        #expect(notices(run).map(\.state) == ["terminated;reason=timeout"] && notices(run)[0].summary == summary(3))
        try run.respond(200, to: try run.request(.notify))
        #expect(run.account.subscriptions == 0 && run.requests(.notify).count == 1)
    }

    @Test("The time is an hour without Expires and at most, and 423 names the shortest")
    func times() throws {
        var run = try run()
        try run.receive(try subscribe(expires: nil))
        #expect(try run.response(200).headers["Expires"] == "3600")
        try run.receive(try subscribe(callID: "mwi-2", expires: "4000000000"))
        #expect(try run.response(200).headers["Expires"] == "3600")
        try run.receive(try subscribe(callID: "mwi-3", expires: "59"))
        #expect(try run.response(423).headers["Min-Expires"] == "60")
        try run.receive(try subscribe(callID: "mwi-4", expires: "soon"))
        #expect(run.statuses.last == 400)
    }

    @Test("Other packages get 489, other bodies 406, and both say what there is")
    func refusals() throws {
        var run = try run()
        for event in [nil, "presence", "message-summary.winfo"] {
            try run.receive(try subscribe(callID: "mwi-\(event ?? "")", event: event))
            #expect(try run.response(489).headers["Allow-Events"] == "message-summary")
        }
        try run.receive(try subscribe(callID: "xml", accept: "application/xml"))
        #expect(try run.response(406).headers["Accept"] == "application/simple-message-summary")
        for (number, accept) in [nil, "application/xml, */*"].enumerated() {
            try run.receive(try subscribe(callID: "any-\(number)", contact: "sip:bob@192.0.2.78", accept: accept))
            #expect(run.statuses.last == 200)
        }
        try run.receive(try subscribe(callID: "id", contact: "sip:bob@192.0.2.79", event: "message-summary;id=7"))
        #expect(try run.request(.notify).headers["Event"] == "message-summary;id=7")
        #expect(run.account.subscriptions == 2)
    }

    @Test(
        "Who is not listed, and whose name no trusted host vouches for, gets 403 for any package, and learns nothing"
    )
    func strangers() throws {
        var run = try AccountRun { $0.acceptsStrangers = true }
        run.ask(.notify(messages(1)))
        try run.connect(.udp)
        try run.receive(try subscribe(from: "sip:mallory@sip.test"))
        #expect(run.statuses.last == 403)
        try run.receive(try subscribe(from: "sip:bob@evil.example", callID: "other-host"))
        #expect(run.statuses.last == 403)
        let stranger = SIPFlow(
            id: -1, transport: .udp, localHost: try #require(SIPHost("192.0.2.9")), localPort: 40_001,
            remoteHost: SIPHost("203.0.113.5"))
        for event in ["message-summary", "presence"] {
            try run.receive(try subscribe(callID: "direct-\(event)", event: event), by: stranger)
            #expect(run.statuses.last == 403)
        }
        #expect(run.requests(.notify).isEmpty && run.account.subscriptions == 0)
        #expect(events(run).count == 4)
        // A thousand more are counted, and not logged one by one.
        for number in 0..<1_000 {
            try run.receive(try subscribe(callID: "flood-\(number)"), by: stranger)
        }
        #expect(events(run).count == 5 && run.requests(.notify).isEmpty)
    }

    @Test("An asserted identity counts in place of From, from the server if it is trusted")
    func asserted() throws {
        var run = try AccountRun { $0.identityTrust.includesServer = true }
        run.ask(.notify(messages(1)))
        try run.connect()
        let asserted = "P-Asserted-Identity: <sip:bob@sip.test>\r\n"
        try run.receive(try subscribe(from: "sip:x@sip.test", more: asserted))
        #expect(run.statuses.last == 200)
        let other = "P-Asserted-Identity: <sip:mallory@sip.test>\r\n"
        try run.receive(try subscribe(callID: "mwi-2", more: other))
        #expect(run.statuses.last == 403)
    }

    @Test("Without a mailbox SUBSCRIBE is not served, and with one the abilities say so")
    func abilities() throws {
        var run = try AccountRun()
        try run.connect()
        try run.receive(try subscribe())
        #expect(try run.response(405).headers["Allow"]?.contains("SUBSCRIBE") == false)
        run.ask(.notify(messages(0)))
        try run.receive(try run.peerRequest("OPTIONS", 1))
        let options = try run.response(200)
        #expect(options.headers["Allow"]?.contains("SUBSCRIBE") == true)
        #expect(options.headers["Allow-Events"] == "message-summary")
    }

    @Test("A change of the lists ends subscriptions that it does not have, and so does the end of the mailbox")
    func revoked() throws {
        var run = try run(.tcp, messages(1))
        try run.receive(try subscribe())
        try run.respond(200, to: try run.request(.notify))
        run.ask(.notify(WaitingMessages(new: 2, old: 0)))
        #expect(notices(run).last?.state == "terminated;reason=rejected" && notices(run).last?.summary == nil)
        try run.respond(200, to: try run.request(.notify))
        run.ask(.notify(messages(2)))
        try run.receive(try subscribe(callID: "mwi-2"))
        try run.respond(200, to: try run.request(.notify))
        run.ask(.notify(nil))
        #expect(notices(run).last?.state == "terminated;reason=noresource")
        try run.respond(481, to: try run.request(.notify))
        #expect(run.account.subscriptions == 0)
    }

    @Test(
        "RFC 6665 §4.2.2: A notification that is refused, or has no answer, ends the subscription; one that is to wait does not",
        arguments: [481, 404, 500, 408])
    func lost(status: Int) throws {
        var run = try run(.udp)
        try run.receive(try subscribe())
        if status == 408 {
            run.run(.seconds(32))
            #expect(run.requests(.notify).count == 11, "with its repetitions")
        } else {
            try run.respond(status, to: try run.request(.notify))
        }
        #expect(run.account.subscriptions == 0 && events(run).last == .lost("bob", status: status))
        try run.receive(try subscribe(callID: "mwi-2"))
        try run.respond(503, to: try run.request(.notify)) { $0.append("Retry-After", "4000") }
        let count = run.requests(.notify).count
        run.run(.milliseconds(299_999))
        #expect(run.requests(.notify).count == count)
        run.run(.milliseconds(1))
        #expect(run.requests(.notify).count == count + 1)
    }

    @Test("Subscriptions are bounded: 8 of one peer and 64 in all; a telephone that starts again replaces its own")
    func bounds() throws {
        var run = try run()
        for number in 0..<100 { try run.receive(try subscribe(callID: "again-\(number)")) }
        #expect(run.account.subscriptions == 1)
        for number in 0..<20 {
            try run.receive(try subscribe(callID: "more-\(number)", contact: "sip:bob@192.0.2.\(number + 100)"))
        }
        #expect(run.account.subscriptions == 8)
        #expect(try run.response(503).headers["Retry-After"] == "60")
        let everybody = try CalleeList([#require(CalleePattern("*"))], ownHost: "sip.test")
        run.ask(.notify(WaitingMessages(new: 0, old: 0, subscribers: everybody)))
        for number in 0..<100 {
            try run.receive(try subscribe(from: "sip:user\(number)@sip.test", callID: "user-\(number)"))
        }
        #expect(run.account.subscriptions == 64)
        let large = "X-Filler: " + String(repeating: "x", count: 8_000) + "\r\n"
        run.ask(.notify(messages(0)))
        try run.receive(try subscribe(callID: "again-100", more: large))
        #expect(run.statuses.last == 513)
    }

    @Test("A request out of order gets 500, another event in the dialog 489, and a stranger's 481")
    func inDialog() throws {
        var run = try run()
        try run.receive(try subscribe(5))
        let tag = try tag(run)
        try run.receive(try subscribe(4, toTag: tag))
        #expect(run.statuses.last == 500)
        try run.receive(try subscribe(6, toTag: tag, event: "message-summary;id=1"))
        #expect(run.statuses.last == 489)
        let stranger = SIPFlow(
            id: -1, transport: .udp, localHost: try #require(SIPHost("192.0.2.9")), localPort: 40_001,
            remoteHost: SIPHost("203.0.113.5"))
        let end = try subscribe(7, toTag: tag, expires: "0")
        guard case .request(let request) = end else { return #expect(Bool(false), "it is a request") }
        #expect(run.admits(request, by: stranger) == false)
        try run.receive(end, by: stranger)
        #expect(run.statuses.last == 481 && run.account.subscriptions == 1)
        let telephone = SIPFlow(
            id: -2, transport: .udp, localHost: try #require(SIPHost("192.0.2.9")), localPort: 40_001,
            remoteHost: SIPHost("192.0.2.77"))
        #expect(run.admits(request, by: telephone) == true, "a server without Record-Route")
    }

    @Test("A challenge to a notification is met, and the subscription continues")
    func challenge() throws {
        var run = try AccountRun()
        run.ask(.notify(messages(1)))
        run.ask(.connect)
        try run.open()
        try run.respond(401, to: try run.request(.register)) {
            $0.append("WWW-Authenticate", "Digest realm=\"sip.test\", nonce=\"n\"")
        }
        try run.respond(200, to: try run.request(.register))
        try run.receive(try subscribe())
        let first = try run.request(.notify)
        try run.respond(407, to: first) { $0.append("Proxy-Authenticate", "Digest realm=\"sip.test\", nonce=\"m\"") }
        let second = try run.request(.notify)
        #expect(second.headers["Proxy-Authorization"] != nil && MessageSummary(parsing: second.body) == summary(1))
        #expect(try #require(second.headers.sequence?.number) == #require(first.headers.sequence?.number) + 1)
        try run.respond(200, to: second)
        #expect(run.account.subscriptions == 1)
    }

    @Test(
        "Another connection carries subscriptions on: the peer learns our new contact, and what has changed meanwhile")
    func anotherFlow() throws {
        var run = try run()
        try run.receive(try subscribe())
        try run.respond(200, to: try run.request(.notify))
        run.feed(.failed(try #require(run.lastOpened)))
        run.ask(.notify(messages(4)))
        run.run(.milliseconds(100))
        #expect(run.requests(.notify).count == 1, "there is no connection")
        run.run(.seconds(60))
        if run.outputs.last == .resolve { run.feed(.resolved([try AccountRun.target(.tcp)])) }
        try run.open(try #require(run.lastOpened), .tcp)
        try run.respond(200, to: try run.request(.register))
        run.run(.seconds(1))
        let notice = try run.sent(.notify)
        #expect(MessageSummary(parsing: notice.request.body) == summary(4))
        #expect(notice.flow == run.flow && run.requests(.notify).count == 2)
        #expect("\(try #require(notice.request.headers.contacts?.first?.uri))".contains("\(40_000 + notice.flow.id)"))
    }

    @Test("A device that ends says so at once, and asks peers to come back after a minute")
    func ends() throws {
        var run = try run(.tcp, messages(1))
        try run.receive(try subscribe())
        run.ask(.disconnect)
        #expect(notices(run).last?.state == "terminated;reason=probation;retry-after=60")
        #expect(run.account.subscriptions == 0)
    }

    @Test(
        "Listed users are notified without a subscription: at each registration and each change, by way of the server")
    func announced() throws {
        var run = try run(.tcp, messages(1, targets: ["carol", "pbx@192.0.2.50"]))
        let first = run.requests(.notify)
        #expect(first.map { "\($0.uri)" } == ["sip:carol@sip.test", "sip:pbx@192.0.2.50"])
        #expect(first[0].headers["Subscription-State"] == "terminated" && first[0].headers.to?.tag == nil)
        #expect(first[0].headers.from?.uri.sip?.user == "alice" && MessageSummary(parsing: first[0].body) == summary(1))
        try run.respond(200, to: first[0])
        try run.respond(404, to: first[1])
        #expect(events(run) == [.undelivered("sip:pbx@192.0.2.50", status: 404)])
        run.run(.seconds(2))
        #expect(run.requests(.notify).count == 2)
        run.ask(.notify(messages(0, 1, targets: ["carol", "pbx@192.0.2.50"])))
        #expect(run.requests(.notify).count == 4 && notices(run).last?.summary == summary(0, 1))
        for request in run.requests(.notify).suffix(2) { try run.respond(200, to: request) }
        let registers = run.requests(.register).count
        while run.requests(.register).count == registers { run.run(.seconds(10)) }
        try run.respond(200, to: try run.request(.register))
        #expect(run.requests(.notify).count == 6, "the server may have forgotten what it knew")
    }
}
