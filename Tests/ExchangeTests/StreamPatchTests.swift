@testable import ExchangeCore
@testable import ExchangeServer
import JSON
import SDP
import SignalSupport
import SignalWire
import TestSupport
import Testing
import Core

@Suite struct StreamPatchTests {
    private static let credentials = ICEFragment.Credentials(
        usernameFragment: "newu", password: "newpasswordnewpassword")
    private static let candidate = ICEFragment.Candidate(mid: "0", value: "9 1 UDP 1 127.0.0.1 50009 typ host")
    private static let restart = ICEFragment(credentials: credentials, candidates: [candidate])

    @Test("Candidates of a PATCH reach the device as signals of the call, in order, and so does their end")
    func trickled() throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let (id, invite) = try scenario.stream(to: bob)
        let other = ICEFragment.Candidate(mid: "strange", value: "8 1 UDP 1 127.0.0.1 50008 typ host")
        let ticket = scenario.patch(id, ICEFragment(candidates: [Self.candidate, other], hasEnded: true))
        #expect(scenario.replies[ticket] == .taken)
        let signals = scenario.signals(at: bob)
        #expect(signals.map(\.type) == ["candidate", "candidate", "candidate"])
        #expect(signals.allSatisfy { $0.invite == invite })
        #expect(
            signals.map(\.data) == [
                [
                    "candidate": .string("candidate:" + Self.candidate.value), "sdpMid": "0", "sdpMLineIndex": 0,
                ],
                ["candidate": .string("candidate:" + other.value), "sdpMid": "strange", "sdpMLineIndex": 0],
                ["candidate": "", "sdpMid": "0", "sdpMLineIndex": 0],
            ])
    }

    @Test("A PATCH needs a condition that holds")
    func conditions() throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let (id, _) = try scenario.stream(to: bob)
        let same = ICEFragment.Credentials(usernameFragment: "clnt", password: "clientclientclientclient")
        let fragment = ICEFragment(credentials: same, candidates: [Self.candidate])
        #expect(scenario.patched(id, fragment, ifMatch: nil) == .failed(.conditionMissing))
        #expect(scenario.patched(id, fragment, ifMatch: "\"0\"") == .failed(.conditionFailed))
        #expect(scenario.patched("other", fragment) == .failed(.unknownSession))
        guard case .failed(.unusable) = scenario.patched(id, Self.restart) else {
            Issue.record("other credentials were taken without a restart")
            return
        }
        #expect(scenario.signals(at: bob).isEmpty)
        #expect(scenario.patched(id, fragment) == .taken)
        #expect(scenario.patched(id, fragment, ifMatch: "*") == .taken)
        #expect(scenario.signals(at: bob).count == 2)
    }

    /// The device answers an offer that it heard; answers with the offer.
    private func answerRestart(
        _ scenario: inout StreamScenario, _ bob: ConnectionID, ufrag: String = "dev2"
    ) throws -> SessionDescription {
        let signals = scenario.signals(at: bob)
        let signal = try #require(signals.last)
        #expect(signal.type == "offer" && signal.data?["type"] == "offer")
        let text =
            StreamTexts.description(
                ufrag: ufrag, pwd: "device2device2device2device2", setup: "active", direction: "recvonly")
            + "a=ice-options:trickle ice2\r\n"
        let data: JSONValue = ["type": "answer", "sdp": .string(text)]
        let sent = CallSignal(invite: signal.invite, type: "answer", data: data)
        #expect(scenario.request(.callSignal(sent), from: bob) == nil)
        return try SessionDescription(parsing: try #require(signal.data?["sdp"]?.string))
    }

    @Test(
        "A restart, its condition in quotes or not, is an offer with the client's ICE, and the answer's ICE to the client",
        arguments: ["*", "\"*\""])
    func restarted(condition: String) throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let (id, invite) = try scenario.stream(to: bob)
        let ticket = scenario.patch(id, Self.restart, ifMatch: condition)
        #expect(scenario.replies[ticket] == nil)
        #expect(scenario.patched(id, Self.restart, ifMatch: "*") == .failed(.underWay))
        let offer = try answerRestart(&scenario, bob)
        #expect(offer.credentials == Self.credentials && offer.origin.version == "2")
        #expect(offer.media[0].candidates == [Self.candidate.value])
        #expect(offer.media[0].direction == .sendonly && offer.media[0].fingerprints == [StreamTexts.fingerprint])

        scenario.trickle("candidate:3 1 UDP 1 127.0.0.1 40003 typ host", invite, from: bob)
        scenario.trickle("", invite, from: bob)
        guard case .restarted(let text, "\"2\"") = scenario.replies[ticket] else {
            Issue.record("\(String(describing: scenario.replies[ticket]))")
            return
        }
        #expect(text.hasPrefix("a=ice-options:trickle ice2\r\n"), "as the device's answer says it (RFC 9725 §4.3.3)")
        let fragment = try ICEFragment(parsing: Array(text.utf8))
        let candidate = ICEFragment.Candidate(mid: "0", value: "3 1 UDP 1 127.0.0.1 40003 typ host")
        let credentials = ICEFragment.Credentials(usernameFragment: "dev2", password: "device2device2device2device2")
        #expect(fragment == ICEFragment(credentials: credentials, candidates: [candidate], hasEnded: true))

        let more = ICEFragment(candidates: [Self.candidate])
        #expect(scenario.patched(id, more) == .failed(.conditionFailed))
        #expect(scenario.patched(id, more, ifMatch: "\"2\"") == .taken)
    }

    @Test("A device that does not answer a restart leaves the session as it was")
    func unanswered() throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let (id, _) = try scenario.stream(to: bob)
        let ticket = scenario.patch(id, Self.restart, ifMatch: "*")
        scenario.advance(by: .milliseconds(7_950))
        #expect(scenario.replies[ticket] == nil)
        scenario.advance(by: .milliseconds(50))
        #expect(scenario.replies[ticket] == .failed(.noRestart))
        #expect(scenario.sessions[id]?.entityTag == "\"1\"")
        _ = try answerRestart(&scenario, bob)  // Too late, and passed over.
        #expect(scenario.patched(id, ICEFragment(hasEnded: true)) == .taken)
    }

    /// An offer with so many lines of 106 bytes more than is usual, of which the call stands.
    private func long(_ lines: Int, _ scenario: inout StreamScenario, _ bob: ConnectionID) throws -> StreamID {
        let text = String(repeating: "a=x:\(String(repeating: "y", count: 100))\r\n", count: lines)
        let (_, id) = try scenario.offer(StreamTexts.offer + text)
        _ = scenario.accept(at: bob, StreamTexts.answer + "a=end-of-candidates\r\n")
        return id
    }

    @Test("The longest offer that begins a stream restarts it, too, though devices' signals must be shorter")
    func longest() throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let lines = (StreamTable.maximumOfferBytes - StreamTexts.offer.utf8.count) / 106
        let id = try long(lines, &scenario, bob)
        let ticket = scenario.patch(id, Self.restart, ifMatch: "*")
        let offer = try answerRestart(&scenario, bob)
        #expect(offer.credentials == Self.credentials)
        #expect(offer.serialized().utf8.count > StreamTable.maximumOfferBytes - 300)
        scenario.advance(by: .seconds(3))
        guard case .restarted? = scenario.replies[ticket] else {
            Issue.record("\(String(describing: scenario.replies[ticket]))")
            return
        }
    }

    @Test(
        "A restart that does not fit in a message with all its candidates is refused as too large, and may be shorter")
    func tooLarge() throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let id = try long(295, &scenario, bob)
        let candidates = (0..<ICEFragment.maximumCandidates).map { number in
            ICEFragment.Candidate(mid: "0", value: "\(number) " + String(repeating: "x", count: 500))
        }
        let fragment = ICEFragment(credentials: Self.credentials, candidates: candidates)
        #expect(scenario.patched(id, fragment, ifMatch: "*") == .failed(.tooLarge))
        #expect(scenario.signals(at: bob).isEmpty)
        _ = scenario.patch(id, Self.restart, ifMatch: "*")
        #expect(scenario.signals(at: bob).last?.type == "offer")
    }

    @Test("A client that leaves in a restart may try again; a call that ends in one is reported")
    func interrupted() throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let (id, invite) = try scenario.stream(to: bob)
        scenario.feed(.abandoned(scenario.patch(id, Self.restart, ifMatch: "*")))
        let second = scenario.patch(id, Self.restart, ifMatch: "*")
        _ = try answerRestart(&scenario, bob)
        scenario.feed(.abandoned(second))
        let third = scenario.patch(
            id, ICEFragment(credentials: .init(usernameFragment: "more", password: "morepasswordmorepassword")),
            ifMatch: "*")
        let end = CallEnd(invite: invite, reason: "completed", durationMilliseconds: 1)
        #expect(scenario.request(.callEnd(end), from: bob) == nil)
        #expect(scenario.replies[third] == .failed(.hungUp) && scenario.replies[second] == nil)
        #expect(scenario.sessions.isEmpty)
    }

    // MARK: - Fragments

    private static let example = """
        a=group:BUNDLE 0 1\r
        a=ice-ufrag:EsAw\r
        a=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r
        m=audio 9 UDP/TLS/RTP/SAVPF 0\r
        a=mid:0\r
        a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0 ufrag EsAw\r
        a=end-of-candidates\r

        """

    @Test("A fragment is read with its credentials, candidates and end, with any line ends")
    func fragment() throws {
        for text in [Self.example, Self.example.replacing("\r\n", with: "\n")] {
            let fragment = try ICEFragment(parsing: Array(text.utf8))
            #expect(fragment.credentials?.usernameFragment == "EsAw" && fragment.hasEnded)
            #expect(fragment.candidates.map(\.mid) == ["0"])
            #expect(fragment.candidates[0].value.hasPrefix("1387637174 1 udp"))
            #expect(try ICEFragment(parsing: Array(fragment.text(mid: "0").utf8)) == fragment)
        }
    }

    @Test(
        "What is no fragment is refused",
        arguments: [
            "", "\r\n", "v=0", "hello", "a=candidate:1 1 udp 1 192.0.2.1 1 typ host", "m=audio 9 X 0\r\na=candidate:1",
            "a=ice-ufrag:EsAw", "a=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1", "m=audio 9 X 0\r\na=mid:0",
            "a=ice-ufrag:E\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1", "a=ice-ufrag:EsAw\r\na=ice-pwd:short",
            "a=ice-ufrag:Es w\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1", "a=mid:0\r\na=end-of-candidates",
            "m=audio 9 X 0\r\na=mid:0\r\na=candidate:" + String(repeating: "x", count: 513),
            "m=audio 9 X 0\r\na=mid:0" + String(repeating: "\r\na=candidate:1", count: 65),
        ])
    func malformed(_ text: String) {
        #expect(throws: ICEFragment.Malformed.self) { try ICEFragment(parsing: Array(text.utf8)) }
    }

    @Test("Cut or damaged at any place, a fragment is read or refused, and nothing else")
    func damaged() {
        let bytes = Array(Self.example.utf8)
        var generator = SeededGenerator(seed: 7)
        for length in bytes.indices {
            _ = try? ICEFragment(parsing: Array(bytes[..<length]))
            var damaged = bytes
            damaged[length] = UInt8.random(in: 0...255, using: &generator)
            _ = try? ICEFragment(parsing: damaged)
        }
    }

    @Test("Paths of streams are distinguished from others, with escaped users")
    func paths() {
        #expect(StreamPath("/whip/bob") == .endpoint(.whip, user: "bob"))
        #expect(StreamPath("/whep/bob%40localhost") == .endpoint(.whep, user: "bob@localhost"))
        #expect(StreamPath("/whip/%2B1555") == .endpoint(.whip, user: "+1555"))
        #expect(StreamPath("/whip/session") == .endpoint(.whip, user: "session"))
        #expect(StreamPath("/whep/session/x-1") == .session(.whep, "x-1"))
        for path in [
            "/whip", "/whip/", "/whop/bob", "/whip/bob/x", "/whip/session/", "/whip/session/a/b", "/whip/%4", "/whip/%",
            "/whip/%+1", "/whip/%zz", "/whip/%ff", "x/whip/bob", "/",
        ] { #expect(StreamPath(path) == nil, "\(path)") }
    }
}
