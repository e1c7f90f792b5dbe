import CallAgent
import CallControl
import JSON
import CallMedia
import Logging
import MediaEngine
import SignalingClient
import Testing

@Suite("Why calls fail, on an exchange with real sockets", .timeLimit(.minutes(5)))
struct CallFailureTests {
    private let answering = AnswerPolicy(manner: .answer(after: .zero))

    @Test("CALL-5: Without a common codec both sides' records say so, the caller's as told")
    func noCommonCodec() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk", answer: answering) { $0.media.codecs = [.pcmu] }
        let caller = try await site.device("caller", named: "mobile") { $0.media.codecs = [.opus] }
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        let (mine, theirs) = (try await caller.ended().record, try await echo.ended().record)
        #expect(mine.reason == .dialFailed && theirs.reason == .acceptFailed)
        #expect(mine.cause == .noCommonCodec && theirs.cause == .noCommonCodec)
        #expect(mine.error?.cause == "the other side says that the two sides have no codec in common")
        #expect(theirs.error?.cause.contains("the peer has no PCMU") == true)
        try await site.close(caller, echo)
    }

    @Test("The log of a refused call names the rule and the caller")
    func ruleIsLogged() async throws {
        let site = try await Site()
        let lines = KeptLines.Lines()
        let policy = AnswerPolicy(manner: .answer(after: .zero), callers: .everybodyBut(["caller"]))
        let echo = try await site.device(
            "echo", named: "desk", answer: policy, logger: Logger(label: "test") { _ in KeptLines(lines: lines) })
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        #expect(try await caller.ended().record.reason == .declined)
        _ = try await echo.ended()
        let refused = try #require(lines.metadata(of: "A call is refused").first)
        #expect(refused["rule"] == "answer.deny: lists caller" && refused["from"] == "caller")
        try await site.close(caller, echo)
    }

    @Test("CALL-5: A file that the device cannot use is the cause, and its path stays with the device")
    func fileUnusable() async throws {
        let site = try await Site()
        let path = "/nowhere/secret/greeting.wav"
        let echo = try await site.device("echo", named: "desk", answer: answering) {
            $0.behaviour.source = .file(path: path, loops: false)
        }
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        let (mine, theirs) = (try await caller.ended().record, try await echo.ended().record)
        #expect(mine.cause == .fileUnusable && theirs.cause == .fileUnusable)
        #expect(mine.error.map { "\($0)".contains("secret") } == false)
        #expect(theirs.error.map { "\($0)".contains(path) } == true)
        try await site.close(caller, echo)
    }

    @Test("CALL-5: An offer of 900 sections, one nested deeply, or what is no offer is rejected with the cause")
    func unreadableOffers() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk", answer: answering)
        let caller = try await site.device("caller", named: "mobile")
        let head = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n"
        let sections = head + String(repeating: "m=audio 4000 RTP/SAVP 111\r\n", count: 900)
        var deep: JSONValue = ["type": "offer"]
        for _ in 0..<60 { deep = .array([deep]) }
        let offers: [(offer: JSONValue, cause: CallFailureCause)] = [
            (["type": "offer", "sdp": .string(sections)], .descriptionTooLarge),
            (["type": "offer", "sdp": "hello"], .descriptionUnreadable), ("an offer", .descriptionUnreadable),
            (deep, .descriptionUnreadable),
        ]
        for (offer, cause) in offers {
            _ = try await caller.device.invites.send("echo", data: ["offer": offer])
            let answer = try await rejection(of: caller)
            #expect(answer.data == ["reason": "failed", "cause": .string(cause.rawValue)])
            #expect(try await echo.ended().record.cause == cause)
        }
        try await site.close(caller, echo)
    }

    @Test("CALL-5: An answer that cannot be read ends the call, and nothing is reported of it after its end")
    func unreadableAnswer() async throws {
        let site = try await Site()
        let echo = try site.service("echo", named: "desk")
        try await echo.connect()
        let caller = try await site.device("caller", named: "mobile")
        let call = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        for await event in echo.events {
            guard case .inviteReceived(let invite) = event else { continue }
            try await echo.accept(invite.id, .call(CallDescription(.unreadable)))
            break
        }
        #expect(try await caller.ended().record.cause == .descriptionUnreadable)
        await echo.disconnect()
        try await site.close(caller)
        while let event = await caller.next() { #expect(event.call != call, "\(event)") }
    }

    private func rejection(of device: Handheld) async throws -> InviteAnswer {
        while let event = await device.next() {
            if case .invite(.rejected(let answer)) = event { return answer }
        }
        throw StreamEnded()
    }
}
