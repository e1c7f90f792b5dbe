import CallAgent
import CallControl
import CallFlows
import CallMedia
import Foundation
import SIP
import TestSupport
import Testing

/// Calls that lead to other calls, on real sockets.
@Suite("Devices whose calls lead to each other", .serialized, .timeLimit(.minutes(2)))
struct CallHopsTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "handset-hops-\(UUID())")
    private let silence = AudioBehaviour(source: .silence)

    init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

    private func document(_ name: String, _ text: String) throws -> String {
        let path = folder.appending(path: name).path()
        try "<Response>\(text)</Response>".write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }

    /// A device whose flow dials a user, and the calls that come in there until it stops.
    private func desk(_ site: Site, _ user: String, dialling callee: String) async throws -> (
        Handheld, Task<Int, Never>
    ) {
        let plan = FlowPlan(file: try document("\(user).xml", "<Dial>\(callee)</Dial><Hangup/>"))
        let answer = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(20))
        let device = try await site.device(user, named: user, answer: answer) { $0.behaviour.source = .flow(plan) }
        let count = Task {
            var calls = 0
            while let event = await device.next() { if case .incoming = event { calls += 1 } }
            return calls
        }
        return (device, count)
    }

    @Test("Two devices whose flows dial each other place five calls for a caller, and all of them end by themselves")
    func circle() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site(users: ["ann", "ben", "cem"])
        let (ben, benCalls) = try await desk(site, "ben", dialling: "cem")
        let (cem, cemCalls) = try await desk(site, "cem", dialling: "ben")
        let ann = try await site.device("ann", named: "a")
        _ = await ann.device.call("ben", audio: silence)
        #expect(try await ann.ended().record.reason == .completed)
        try await site.close(ann, ben, cem)
        #expect(await benCalls.value == 3)
        #expect(await cemCalls.value == 3)
    }

    @Test("By SIP a call that six led to is refused with 483, and that of a flow has one more than its caller's")
    func telephone() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = try document("menu.xml", "<Dial timeout=\"5\">carol</Dial>")
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(
            "media: { offers: plain, allow_plain_rtp: true }", "answer: { mode: auto, max_calls: 4 }",
            "behaviour: { source: flow, flow: { file: '\(path)' } }")
        let refusal = await #expect(throws: SIPTelephone.Refused.self) {
            try await telephone.call("six", "Handset-Hops: 6")
        }
        #expect(refusal?.status == 483)
        _ = try await telephone.call("two", "Handset-Hops: 2")
        let invite = try await telephone.request(.invite)
        #expect(invite.headers["Handset-Hops"] == "3" && invite.headers["Max-Forwards"] == "69")
        telephone.answer(486, invite)
        await device.device.shutDown()
    }

    @Test("A hand-over counts one more, and is refused in a call that five others led to")
    func handover() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(
            "media: { offers: plain, allow_plain_rtp: true }", "answer: { mode: auto, max_calls: 4 }")
        let request = HandoverRequest(to: "carol")
        _ = try await telephone.call("five", "Handset-Hops: 5")
        let last = try await device.incoming()
        _ = try await device.established()
        let refusal = await #expect(throws: CallSoundError.self) { try await device.device.handOver(last, request) }
        #expect(refusal?.description.contains("5 calls led") == true)
        _ = try await telephone.call("one", "Handset-Hops: 1")
        let call = try await device.incoming()
        _ = try await device.established()
        try await device.device.handOver(call, request)
        let invite = try await telephone.request(.invite)
        #expect(invite.headers["Handset-Hops"] == "2")
        telephone.answer(486, invite)
        await device.device.shutDown()
    }
}
