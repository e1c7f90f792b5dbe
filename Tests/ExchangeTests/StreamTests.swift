@testable import ExchangeCore
import JSON
import SDP
import SignalSupport
import SignalWire
import Testing
import Core

private func reject(_ invite: InviteID, _ reason: String) -> ClientRequest {
    .inviteReject(InviteReject(invite: invite, data: ["reason": .string(reason)]))
}

/// The text of the answer that a client was given.
private func answer(_ reply: StreamReply?) -> String? {
    guard case .created(_, _, let text, _) = reply else { return nil }
    return text
}

@Suite struct StreamTests {
    private static let host = "candidate:1 1 UDP 2130706431 127.0.0.1 40000 typ host"
    private static let reflexive = "candidate:2 1 UDP 1694498815 192.0.2.7 40000 typ srflx raddr 0.0.0.0 rport 0"

    @Test("A stream is an invite with the client's offer, and the device's answer becomes the client's")
    func answered() throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let (ticket, id) = try scenario.offer(to: "bob@localhost")
        let heard = scenario.invite(at: bob)
        let invite = try #require(heard)
        #expect(invite.inviter == "alice" && invite.ttlRemaining == 30)
        let text = try #require(invite.data?["offer"]?["sdp"]?.string)
        #expect(invite.data?["offer"]?["type"] == "offer")
        #expect(try SessionDescription(parsing: text) == SessionDescription(parsing: StreamTexts.offer))
        #expect(scenario.replies[ticket] == nil)

        let data: JSONValue = [
            "answer": ["type": "answer", "sdp": .string(StreamTexts.answer + "a=end-of-candidates")]
        ]
        #expect(scenario.request(.inviteAccept(InviteAccept(invite: invite.invite, data: data)), from: bob) == nil)
        guard case .created(id, .whip, let answer, "\"1\"") = scenario.replies[ticket] else {
            Issue.record("\(String(describing: scenario.replies[ticket]))")
            return
        }
        #expect(answer.contains("a=ice-ufrag:devi\r\n") && answer.contains("a=end-of-candidates\r\n"))
        #expect(scenario.exchange.core.invites.calls.count == 1)
        #expect(scenario.refusals.isEmpty)
    }

    @Test(
        "An offer of both directions is answered with one, for any answer of the device (RFC 9725 §4.2)",
        arguments: [(StreamKind.whip, MediaDirection.sendonly), (.whep, .recvonly)], ["a=sendrecv\r\n", ""])
    func oneWay(kind: (StreamKind, offered: MediaDirection), line: String) throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let both = { (text: String) in text.replacing(/a=(sendonly|recvonly)\r\n/, with: line) }
        let (ticket, _) = try scenario.offer(kind: kind.0, both(StreamTexts.offer))
        let heard = scenario.invite(at: bob)
        let invite = try #require(heard)
        let offer = try SessionDescription(parsing: try #require(invite.data?["offer"]?["sdp"]?.string))
        #expect(offer.media.map(\.direction) == [kind.offered])
        let data: JSONValue = [
            "answer": ["type": "answer", "sdp": .string(both(StreamTexts.answer) + "a=end-of-candidates")]
        ]
        #expect(scenario.request(.inviteAccept(InviteAccept(invite: invite.invite, data: data)), from: bob) == nil)
        let text = try #require(answer(scenario.replies[ticket]))
        #expect(try SessionDescription(parsing: text).media.map(\.direction) == [kind.offered.reversed])
        #expect(!text.contains("sendrecv"))
    }

    @Test("A stream's client does not ring itself, cannot be called, and may stream to its own user")
    func ownUser() throws {
        var scenario = StreamScenario()
        let alice = scenario.device("a", of: "alice")
        let (first, _) = try scenario.offer(to: "alice")
        let (second, _) = try scenario.offer(to: "carol")
        let heard = scenario.invite(at: alice)
        #expect(heard != nil)
        #expect(scenario.replies[first] == nil)
        #expect(scenario.replies[second] == .failed(.noDeviceOnline))
        _ = try scenario.offer(to: "bob", as: "carol")
        #expect(!scenario.exchange.core.sessions.isReachable("carol"))
    }

    @Test("Candidates that the device sends before their end are in the answer")
    func candidates() throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let (ticket, _) = try scenario.offer()
        let invite = scenario.accept(at: bob)
        scenario.advance(by: .milliseconds(200))
        scenario.trickle(Self.host, invite, from: bob)
        scenario.trickle(Self.reflexive, invite, from: bob)
        scenario.trickle(Self.host, invite, from: bob)  // Once more, and written once.
        #expect(scenario.replies[ticket] == nil)
        scenario.trickle("", invite, from: bob)
        let text = try #require(answer(scenario.replies[ticket]))
        let section = try #require(try SessionDescription(parsing: text).media.first)
        #expect(section.candidates.map { "candidate:" + $0 } == [Self.host, Self.reflexive])
        #expect(text.hasSuffix("a=end-of-candidates\r\n"))

        scenario.trickle(Self.host, invite, from: bob)
        #expect(scenario.lateCandidates == 1)
    }

    @Test("Without their end the answer waits a second for candidates, and three if there are none")
    func impatience() throws {
        for (hasOne, wait) in [(true, 1_000), (false, 3_000)] {
            var scenario = StreamScenario()
            let bob = scenario.device("b", of: "bob")
            let (ticket, _) = try scenario.offer()
            let invite = scenario.accept(at: bob)
            if hasOne { scenario.trickle(Self.host, invite, from: bob) }
            scenario.advance(by: .milliseconds(wait - 50))
            #expect(scenario.replies[ticket] == nil)
            scenario.advance(by: .milliseconds(50))
            #expect(answer(scenario.replies[ticket])?.contains("127.0.0.1 40000") == hasOne)
        }
    }

    @Test("The first candidate after a second of none ends the wait")
    func lateFirst() throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let (ticket, _) = try scenario.offer()
        let invite = scenario.accept(at: bob)
        scenario.advance(by: .milliseconds(2_000))
        #expect(scenario.replies[ticket] == nil)
        scenario.trickle(Self.host, invite, from: bob)
        #expect(answer(scenario.replies[ticket]) != nil)
    }

    @Test("Busy, declined, unanswered and offline are distinguished")
    func refused() throws {
        for (reason, failure) in [("busy", StreamFailure.busy), ("declined", .declined), ("whatever", .declined)] {
            var scenario = StreamScenario()
            let bob = scenario.device("b", of: "bob")
            let (ticket, id) = try scenario.offer()
            let heard = scenario.invite(at: bob)
            let invite = try #require(heard)
            #expect(scenario.request(reject(invite.invite, reason), from: bob) == nil)
            #expect(scenario.replies[ticket] == .failed(failure))
            #expect(scenario.sessions[id] == nil)
        }
        var scenario = StreamScenario()
        #expect(try scenario.offered() == .failed(.noDeviceOnline))
        #expect(try scenario.offered(to: "nobody") == .failed(.unknownUser))
        let bob = scenario.device("b", of: "bob")
        let (ticket, _) = try scenario.offer()
        scenario.advance(by: .milliseconds(29_950))
        #expect(scenario.replies[ticket] == nil)
        scenario.advance(by: .milliseconds(50))
        #expect(scenario.replies[ticket] == .failed(.noAnswer))
        #expect(scenario.sessions.isEmpty && scenario.exchange.core.sessions.count == 1)
        #expect(scenario.events(of: bob).contains { if case .inviteTimedOut = $0 { true } else { false } })
    }

    @Test("A client that goes away while devices ring takes its invite back")
    func cancelled() throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let (ticket, id) = try scenario.offer()
        let heard = scenario.invite(at: bob)
        let invite = try #require(heard).invite
        scenario.feed(.abandoned(ticket))
        let expected = InviteCancelled(invite: invite, data: ["reason": "cancelled"])
        #expect(scenario.events(of: bob) == [.inviteCancelled(expected)])
        #expect(scenario.request(.inviteAccept(InviteAccept(invite: invite)), from: bob) == .inviteCancelled)
        #expect(scenario.replies[ticket] == nil && scenario.sessions[id] == nil)
        #expect(scenario.exchange.core.sessions.count == 1)
    }

    @Test("A client that goes away while the answer waits for candidates hangs up")
    func cancelledLate() throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let (ticket, _) = try scenario.offer()
        let invite = scenario.accept(at: bob)
        scenario.feed(.abandoned(ticket))
        let ended = CallEnded(invite: invite, reason: "cancelled", durationMilliseconds: 0, from: "alice")
        #expect(scenario.events(of: bob) == [.callEnded(ended)])
        #expect(scenario.sessions.isEmpty && scenario.exchange.core.invites.calls.count == 0)
    }

    @Test("DELETE hangs up, once")
    func deleted() throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let (id, invite) = try scenario.stream(to: bob)
        scenario.advance(by: .milliseconds(1_500))
        #expect(scenario.delete(id) == .ended)
        let ended = CallEnded(invite: invite, reason: "completed", durationMilliseconds: 1_500, from: "alice")
        #expect(scenario.events(of: bob) == [.callEnded(ended)])
        #expect(scenario.delete(id) == .failed(.unknownSession))
        #expect(scenario.exchange.core.sessions.count == 1 && scenario.exchange.core.invites.calls.count == 0)
        #expect(scenario.refusals.isEmpty)
    }

    @Test(
        "A device that cannot take an offer is distinguished from one that declines, with the cause if the offer has it"
    )
    func notTaken() throws {
        let causes: [(String, StreamFailure)] = [
            ("noCommonCodec", .unusable("the two sides have no codec in common")), ("fileUnusable", .deviceFailed),
            ("moonPhase", .deviceFailed),
        ]
        for (cause, failure) in causes {
            var scenario = StreamScenario()
            let bob = scenario.device("b", of: "bob")
            let (ticket, _) = try scenario.offer()
            let heard = scenario.invite(at: bob)
            let data: JSONValue = ["reason": "failed", "cause": .string(cause)]
            let reject = InviteReject(invite: try #require(heard).invite, data: data)
            #expect(scenario.request(.inviteReject(reject), from: bob) == nil)
            #expect(scenario.replies[ticket] == .failed(failure))
        }
    }

    @Test("The session ends when the device hangs up, and when it has been gone for the resume window")
    func deviceEnds() throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let (id, invite) = try scenario.stream(to: bob)
        let end = CallEnd(invite: invite, reason: "completed", durationMilliseconds: 1)
        #expect(scenario.request(.callEnd(end), from: bob) == nil)
        #expect(scenario.sessions[id] == nil && scenario.delete(id) == .failed(.unknownSession))

        let (other, _) = try scenario.stream(to: bob)
        scenario.lose(bob)
        scenario.advance(by: .milliseconds(59_900))
        #expect(scenario.sessions[other] != nil)
        scenario.advance(by: .milliseconds(200))
        #expect(scenario.sessions[other] == nil)
        #expect(scenario.exchange.core.sessions.count == 0 && scenario.exchange.core.invites.calls.count == 0)
    }

    @Test("A device that hangs up, or answers with what is no description, before the client has its answer")
    func unusable() throws {
        for text in ["", "v=0", "v=0\r\no=- 7 1 IN IP4 127.0.0.1\r\ns=-\r\nm=audio 9 RTP/AVP 0\r\n"] {
            var scenario = StreamScenario()
            let bob = scenario.device("b", of: "bob")
            let (ticket, _) = try scenario.offer()
            let invite = scenario.accept(at: bob, text)
            #expect(scenario.replies[ticket] == .failed(.unusableAnswer))
            let ended = CallEnded(invite: invite, reason: "acceptFailed", durationMilliseconds: 0, from: "alice")
            #expect(scenario.events(of: bob) == [.callEnded(ended)])
            #expect(scenario.sessions.isEmpty)
        }
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let (ticket, _) = try scenario.offer()
        let end = CallEnd(invite: scenario.accept(at: bob), reason: "completed", durationMilliseconds: 0)
        #expect(scenario.request(.callEnd(end), from: bob) == nil)
        #expect(scenario.replies[ticket] == .failed(.hungUp))
    }

    @Test("Streams are bounded, for each calling account and in all, and an ended one makes room")
    func bounds() throws {
        var settings = StreamTable.Settings()
        (settings.streams, settings.streamsPerUser) = (3, 2)
        var scenario = StreamScenario(settings: settings)
        _ = scenario.device("b", of: "bob")
        let (_, first) = try scenario.offer()
        _ = try scenario.offer()
        #expect(try scenario.offered() == .failed(.tooManyStreams))
        _ = try scenario.offer(as: "carol")
        #expect(try scenario.offered(as: "carol") == .failed(.full))
        #expect(scenario.delete(first) == .ended)
        #expect(try scenario.offered(as: "carol") == nil)
    }

    @Test("A client that waits when the exchange ends is notified")
    func stopping() throws {
        var scenario = StreamScenario()
        _ = scenario.device("b", of: "bob")
        let (ticket, _) = try scenario.offer()
        scenario.feed(.stopping)
        #expect(scenario.replies[ticket] == .failed(.goingDown))
    }

    @Test("A device of the same name takes a stream's place, and its client hears of it")
    func replaced() throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let (ticket, id) = try scenario.offer()
        scenario.feed(.delivered(ConnectionID(number: 1_001), .closed))
        #expect(scenario.replies[ticket] == .failed(.failed))
        #expect(scenario.sessions[id] == nil && scenario.invite(at: bob) != nil)
    }
}
