import Foundation
import Testing
import Core

@testable import CallControl

@Suite("Why a call failed")
struct FailureCauseTests {
    private static let detail = "no codec that /home/someone and 10.1.2.3 have"

    private static func outputs(_ call: inout CallMachine, _ input: CallMachine.Input) -> [CallMachine.Output] {
        var outbox: [CallMachine.Output] = []
        call.handle(input, at: Instant.zero.advanced(by: .seconds(2)), into: &outbox)
        return outbox
    }

    private static func record(_ outputs: [CallMachine.Output]) -> CallRecord? {
        for case .ended(let record) in outputs { return record }
        return nil
    }

    @Test(
        "A device that cannot answer rejects with the cause, sends the caller nothing else, and keeps the whole story"
    )
    func reject() throws {
        var call = CallFixtures.preparingAnswer
        let sent = Self.outputs(&call, .media(.failed(MediaFailure(.noCommonCodec, Self.detail))))
        #expect(sent.contains(.sendReject("i1", InviteRejection(.failed, cause: .noCommonCodec))))
        let record = try #require(Self.record(Self.outputs(&call, .service(.answerConfirmed))))
        #expect(record.reason == .acceptFailed && record.cause == .noCommonCodec)
        #expect(record.error?.cause == Self.detail)
    }

    @Test("The caller learns the cause of a reject in a sentence; without one there is none")
    func told() throws {
        for cause in [CallFailureCause.noCommonCodec, nil] {
            var call = CallFixtures.inviting
            let rejection = InviteRejection(.failed, cause: cause)
            let answer = InviteAnswer(invite: "i1", invitee: "bob", device: "d", rejection: rejection)
            _ = Self.outputs(&call, .service(.rejected(answer)))
            let record = try #require(Self.record(Self.outputs(&call, .service(.inviteEnded))) ?? call.record)
            #expect(record.reason == .dialFailed && record.cause == cause)
            #expect(record.error?.cause == cause.map { "the other side says that \($0.sentence)" })
        }
    }

    @Test(
        "A caller whose service knows no such callee, or cannot reach it now, has that as its cause; other failures have none"
    )
    func unreachable() throws {
        let cases: [(SignalingError.Code, CallFailureCause?)] = [
            (.unknownUser, .noSuchNumber), (.serverError, .notReachable), (.noDeviceOnline, .notReachable),
            (.timedOut, .notReachable), (.disconnected, .notReachable), (.notAllowed, nil), (.tooLarge, nil),
        ]
        for (code, cause) in cases {
            var call = CallFixtures.sending
            let error = SignalingError(code, activity: "invite bob", cause: "x")
            let record = try #require(Self.record(Self.outputs(&call, .service(.inviteFailed(error)))))
            #expect(record.reason == .dialFailed && record.cause == cause && record.error == error, "\(code)")
        }
    }

    @Test("A call is rejected with a cause that the device's user gives, and its own record has it")
    func rejectedWithCause() throws {
        var call = CallFixtures.ringing
        let sent = Self.outputs(&call, .user(.reject(.failed, cause: .noSuchNumber)))
        #expect(sent.contains(.sendReject("i1", InviteRejection(.failed, cause: .noSuchNumber))))
        let record = try #require(Self.record(Self.outputs(&call, .service(.answerConfirmed))))
        #expect(record.reason == .acceptFailed && record.cause == .noSuchNumber)
    }

    @Test("A call whose set-up fails is hung up with the cause, and the other side's record has it")
    func hangUp() throws {
        var call = CallFixtures.settingUpOutgoing
        let sent = Self.outputs(&call, .media(.failed(MediaFailure(.certificateMismatch, Self.detail))))
        let news = try #require(sent.lazy.compactMap { if case .sendHangUp(let news) = $0 { news } else { nil } }.first)
        #expect(news.reason == .dialFailed && news.cause == .certificateMismatch)
        #expect(!"\(news)".contains("10.1.2.3"))
        var other = CallFixtures.settingUpIncoming
        var heard = news
        heard.from = "alice"
        let record = try #require(Self.record(Self.outputs(&other, .service(.hungUp(heard)))))
        #expect(record.reason == .dialFailed && record.cause == .certificateMismatch && record.endedBy == .remote)
    }

    @Test("An accept that the service does not carry becomes a reject, so that the caller does not wait for nothing")
    func unsendableAccept() throws {
        var call = CallFixtures.accepting
        let error = SignalingError(.tooLarge, activity: "accept the invite", cause: "the message has 70000 bytes")
        let sent = Self.outputs(&call, .service(.answerFailed(error)))
        #expect(sent.contains(.sendReject("i1", InviteRejection(.failed, cause: .descriptionTooLarge))))
        let record = try #require(Self.record(sent))
        #expect(record.reason == .acceptFailed && record.error == error)
        var lost = CallFixtures.accepting
        let silence = SignalingError(.disconnected, activity: "accept the invite", cause: "the connection is down")
        let others = Self.outputs(&lost, .service(.answerFailed(silence)))
        #expect(!others.contains { if case .sendReject = $0 { true } else { false } }, "it may have been taken")
    }

    @Test("docs/protocol.md lists every cause with its sentence, and no other; each fits on the wire")
    func documented() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appendingPathComponent("docs/protocol.md"), encoding: .utf8)
        let section = try #require(page.components(separatedBy: "## Why a call failed\n").dropFirst().first)
        let rows = section.components(separatedBy: "\n## ")[0].split(separator: "\n").filter { $0.hasPrefix("| `") }
        #expect(rows.map(String.init) == CallFailureCause.allCases.map { "| `\($0.rawValue)` | \($0.sentence) |" })
        #expect(CallFailureCause.allCases.allSatisfy { $0.rawValue.utf8.count <= 64 })
    }
}
