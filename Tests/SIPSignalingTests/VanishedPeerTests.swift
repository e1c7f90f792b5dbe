@testable import CallControl
import JSON
import SIP
@testable import SIPSignaling
import Testing
import Core

/// Calls of one account over UDP, each with the watch that its device gives it, on virtual time. A test plays the media and the
/// telephones.
private struct WatchedAccount {
    struct Watched {
        var watch = SilenceWatch(period: .seconds(30))
        /// When a packet of the telephone arrived last.
        var newest: Instant?
        var isOnHold = false
        var ticket: UInt64?
        var lostAt: Duration?
    }

    private(set) var run: AccountRun
    var calls: [InviteID: Watched] = [:]
    /// The status that telephones answer OPTIONS with; nil if they have vanished.
    var answer: Int?
    private var answered = 0

    init() throws {
        run = try AccountRun()
        try run.connect(.udp)
    }

    var now: Duration { Instant.zero.duration(to: run.now) }

    /// A telephone calls; nil if the device refuses it because it has as many calls as it may have.
    mutating func call(_ id: String, limit: Int = .max) throws -> InviteID? {
        var text = "INVITE sip:alice@192.0.2.9 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK\(id)\r\n"
        text += "From: <sip:bob@sip.test>;tag=peer\r\nTo: <sip:alice@sip.test>\r\nCall-ID: \(id)\r\nCSeq: 1 INVITE\r\n"
        text += "Max-Forwards: 70\r\nContact: <sip:bob@192.0.2.77:5070>\r\nContent-Type: application/sdp\r\n"
        text += "Content-Length: \(AccountRun.offer.utf8.count)\r\n\r\n\(AccountRun.offer)"
        try run.receive(try SIPMessage(parsing: Array(text.utf8)))
        let invite = try run.received().id
        let policy = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(limit))
        let status = AnswerPolicy.Status(
            caller: "bob@sip.test", activeCalls: calls.values.count { $0.lostAt == nil }, isDraining: false,
            hasRoom: true)
        guard case .answer = policy.decide(status) else {
            run.ask(.reject(invite, InviteRejection(.busy)))
            #expect(run.statuses.last == 486)
            return nil
        }
        run.ask(.accept(invite, AccountRun.accept))
        let to = try #require(try run.response(200).headers["To"])
        var ack = text.replacing("INVITE", with: "ACK").replacing("<sip:alice@sip.test>", with: to)
        ack = ack.replacing("branch=z9hG4bK", with: "branch=z9hG4bKack")
        try run.receive(try SIPMessage(parsing: Array(ack.utf8)))
        calls[invite] = Watched()
        feed(.begin, to: invite)
        return invite
    }

    private mutating func feed(_ input: SilenceWatch.Input, to id: InviteID) {
        guard var call = calls[id] else { return }
        var outbox: [SilenceWatch.Output] = []
        call.watch.handle(input, at: run.now, into: &outbox)
        calls[id] = call
        for output in outbox {
            switch output {
            case .observe: feed(.observed(call.isOnHold ? .onHold : .expecting(newest: call.newest)), to: id)
            case .probe:
                let ticket = run.ask(.probe(id))
                calls[id]?.ticket = ticket
            case .lost:
                let lostAt = now
                calls[id]?.lostAt = lostAt
                run.ask(.hangUp(CallHangUp(invite: id, reason: .connectionLost, duration: .zero)))
            }
        }
    }

    /// Has telephones answer, and watches learn what came of their probes.
    private mutating func settle() throws {
        let probes = run.requests(.options)
        if let answer {
            for probe in probes[answered...] { try run.respond(answer, to: probe) }
        }
        answered = probes.count
        for (id, call) in calls {
            guard let ticket = call.ticket, let answer = run.answer(ticket) else { continue }
            calls[id]?.ticket = nil
            if case .probed(let probe) = answer { feed(.probed(probe), to: id) } else { feed(.probed(nil), to: id) }
        }
    }

    mutating func advance(_ duration: Duration) throws {
        let end = run.now.advanced(by: duration)
        while let next = ([run.account.nextDeadline] + calls.values.map(\.watch.nextDeadline)).compactMap({ $0 }).min(),
            next <= end
        {
            run.run(run.now.duration(to: max(next, run.now)))
            for (id, call) in calls where call.watch.nextDeadline.map({ $0 <= run.now }) ?? false {
                feed(.timerFired, to: id)
            }
            try settle()
        }
        run.run(run.now.duration(to: end))
    }
}

@Suite("Telephones that vanish from calls without ICE")
struct VanishedPeerTests {
    @Test(
        "CALL-4: A telephone that vanishes over UDP is probed after 30 s, and ended when 32 s more have brought no answer"
    )
    func vanished() throws {
        var account = try WatchedAccount()
        let call = try #require(try account.call("one"))
        try account.advance(.milliseconds(29_999))
        #expect(account.run.requests(.options).isEmpty)
        try account.advance(.milliseconds(31_999))
        #expect(account.calls[call]?.lostAt == nil && account.run.requests(.bye).isEmpty)
        try account.advance(.milliseconds(2))
        #expect(account.calls[call]?.lostAt == .seconds(62))
        #expect(account.run.requests(.bye).count == 1)
        let probe = try #require(account.run.requests(.options).first)
        #expect(
            probe.headers.callID == "one" && probe.headers.to?.tag == "peer"
                && "\(probe.uri)" == "sip:bob@192.0.2.77:5070")
    }

    @Test(
        "CALL-4: A telephone that does not know the call, or whose server does not reach it, is ended at once",
        arguments: [481, 408, 404, 410, 483, 502, 604])
    func refused(_ status: Int) throws {
        var account = try WatchedAccount()
        account.answer = status
        let call = try #require(try account.call("one"))
        try account.advance(.seconds(30))
        #expect(account.calls[call]?.lostAt == .seconds(30))
        #expect(account.run.requests(.bye).count == 1)
    }

    @Test(
        "CALL-4: A silent telephone that answers keeps its call, for any answer, and is probed again each period",
        arguments: [200, 405, 501, 500, 403, 486])
    func silent(_ status: Int) throws {
        var account = try WatchedAccount()
        account.answer = status
        let call = try #require(try account.call("one"))
        try account.advance(.seconds(300))
        #expect(account.run.requests(.options).count == 10)
        #expect(account.calls[call]?.lostAt == nil && account.run.requests(.bye).isEmpty)
        account.answer = nil
        try account.advance(.seconds(62))
        #expect(account.calls[call]?.lostAt == .seconds(362))
    }

    @Test("The answer to a probe has the host that it came from, which has received what we sent there")
    func answeringHost() throws {
        var account = try WatchedAccount()
        let call = try #require(try account.call("one"))
        var run = account.run
        let ticket = run.ask(.probe(call))
        try run.respond(405, to: try run.request(.options))
        #expect(run.answer(ticket) == .probed(.answered(from: "192.0.2.1")))
    }

    @Test("CALL-4: On hold, where no media is expected, probes alone find a telephone that vanishes")
    func hold() throws {
        var account = try WatchedAccount()
        account.answer = 200
        let call = try #require(try account.call("one"))
        account.calls[call]?.isOnHold = true
        try account.advance(.seconds(90))
        #expect(account.run.requests(.options).count == 3)
        account.answer = nil
        try account.advance(.seconds(62))
        #expect(account.calls[call]?.lostAt == .seconds(152))
    }

    @Test("Six callers that vanish give the six places of a device back, and the next caller is answered")
    func places() throws {
        var account = try WatchedAccount()
        for number in 1...6 {
            #expect(try account.call("call-\(number)", limit: 6) != nil)
            try account.advance(.seconds(1))
        }
        #expect(try account.call("too-many", limit: 6) == nil)
        try account.advance(.seconds(61))
        #expect(account.calls.values.count { $0.lostAt != nil } == 6)
        #expect(account.run.requests(.bye).count >= 6)
        #expect(try account.call("next", limit: 6) != nil)
    }

    @Test("A call that ends while its telephone is probed answers the probe, and what comes later changes nothing")
    func endsMeanwhile() throws {
        var account = try WatchedAccount()
        let call = try #require(try account.call("one"))
        try account.advance(.seconds(31))
        let ticket = try #require(account.calls[call]?.ticket)
        var run = account.run
        run.ask(.hangUp(CallHangUp(invite: call, reason: .completed, duration: .zero)))
        guard case .failed(let error)? = run.answer(ticket) else { throw Unanswered() }
        #expect(error.code == .inviteEnded)
        let late = run.ask(.probe(call))
        guard case .failed(let error)? = run.answer(late) else { throw Unanswered() }
        #expect(error.code == .inviteEnded)
    }

    private struct Unanswered: Error {}
}
