import AudioKit
import CallControl
import CallFlows
import CallMedia
import Foundation
import TestSupport
import Testing

@testable import CallAgent

/// Callers of a device's flow that wait in its queues, on real sockets.
@Suite("Callers that wait in queues", .witnessed, .serialized, .timeLimit(.minutes(2)))
struct QueueTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "handset-queue-\(UUID())")
    private let answering = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(8))

    init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

    private func path(_ name: String) -> String { folder.appending(path: name).path() }

    private func tone(_ hertz: Double, keptAs name: String) -> AudioBehaviour {
        AudioBehaviour(source: .tone(frequencyHz: hertz, levelDBFS: -12), recording: path(name))
    }

    /// Takes events until one is what is wanted.
    private func hear<Value>(_ handheld: Handheld, _ find: (DeviceEvent) -> Value?) async throws -> Value {
        while let event = await handheld.next() { if let found = find(event) { return found } }
        throw StreamEnded()
    }

    /// Waits until a call has run for 1.5 s more.
    private func run(_ call: CallID, of handheld: Handheld) async throws {
        func frames() async throws -> Int { try #require(await handheld.device.mediaReport(on: call)).call.framesRun }
        let before = try await frames()
        try await until { try await frames() >= before + 75 }
    }

    private func amplitude(_ hertz: Double, in name: String) async throws -> Double {
        try await toneAmplitude(hertz, in: path(name))
    }

    /// A device whose flow is these documents, in which ann waits in a queue and ben takes from it.
    private func desk(_ site: Site, ann: String, ben: String, _ others: [String: String] = [:]) async throws -> Handheld
    {
        let documents = ["menu.xml": "<Redirect>for-{{From}}.xml</Redirect>", "for-ann.xml": ann, "for-ben.xml": ben]
        for (name, text) in documents.merging(others, uniquingKeysWith: { $1 }) {
            try "<Response>\(text)</Response>".write(toFile: path(name), atomically: true, encoding: .utf8)
        }
        return try await site.device("echo", named: "desk", answer: answering) {
            $0.behaviour.source = .flow(FlowPlan(file: path("menu.xml")))
        }
    }

    private func left(_ device: Handheld) async throws -> String {
        try await hear(device) { if case .leftQueue(_, "q", let result, _) = $0 { result } else { nil } }
    }

    private func entered(_ device: Handheld) async throws -> CallID {
        try await hear(device) { if case .queued(let call, "q", 1) = $0 { call } else { nil } }
    }

    @Test(
        "A caller hears the queue's document, then that of the call that takes it, then that call; and its flow continues"
    )
    func bridges() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site(users: ["echo", "ann", "ben"])
        try writeTone(1_300, seconds: 1, to: path("wait.wav"))
        try writeTone(1_700, seconds: 0.5, to: path("hello.wav"))
        try writeTone(2_100, seconds: 1, to: path("after.wav"))
        let device = try await desk(
            site, ann: "<Enqueue waitUrl=\"wait.xml\" action=\"after-{{QueueResult}}.xml\">q</Enqueue>",
            ben: "<Dial><Queue url=\"hello.xml\">q</Queue></Dial><Pause length=\"60\"/>",
            [
                "wait.xml": "<Play>wait.wav</Play>", "hello.xml": "<Play>hello.wav</Play>",
                "after-bridged.xml": "<Play>after.wav</Play>",
            ])
        let (ann, ben) = (try await site.device("ann", named: "a"), try await site.device("ben", named: "b"))
        let annCall = await ann.device.call("echo", audio: tone(500, keptAs: "ann.wav"))
        _ = try await entered(device)
        _ = try await ann.flowing()
        try await run(annCall, of: ann)
        let benCall = await ben.device.call("echo", audio: tone(900, keptAs: "ben.wav"))
        #expect(try await left(device) == "bridged")
        #expect(await device.device.queues.isEmpty)
        try await run(benCall, of: ben)
        try await run(benCall, of: ben)
        await ben.device.hangUp(benCall)
        #expect(try await ann.ended().record.reason == .completed)
        #expect(try await amplitude(500, in: "ben.wav") > 4_000)
        #expect(try await amplitude(2_100, in: "ann.wav") > 4_000)
        try await site.close(ann, ben, device)
    }

    @Test("A call that hangs up before the join loses no caller, and * ends the join for both flows")
    func returns() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site(users: ["echo", "ann", "ben"])
        try writeTone(1_700, seconds: 3, to: path("hello.wav"))
        let device = try await desk(
            site, ann: "<Enqueue action=\"{{QueueResult}}.xml\">q</Enqueue>",
            ben: "<Dial hangupOnStar=\"true\"><Queue url=\"hello-{{Digits}}.xml\">q</Queue></Dial><Hangup/>",
            ["hello-.xml": "<Play>hello.wav</Play>", "bridged.xml": "<Hangup/>"])
        let (ann, ben) = (try await site.device("ann", named: "a"), try await site.device("ben", named: "b"))
        _ = await ann.device.call("echo", audio: tone(500, keptAs: "ann.wav"))
        _ = try await entered(device)
        _ = try await ann.flowing()
        let first = await ben.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await ben.flowing()
        try await run(first, of: ben)
        await ben.device.hangUp(first)
        _ = try await ben.ended()
        #expect(await device.device.queues.map(\.callers.count) == [1])
        let second = await ben.device.call("echo", audio: tone(900, keptAs: "ben.wav"))
        #expect(try await left(device) == "bridged")
        _ = try await ben.flowing()
        try await run(second, of: ben)
        try await ben.device.press("*", on: second)
        #expect(try await ann.ended().record.reason == .completed)
        #expect(try await ben.ended().record.endedBy == .remote)
        try await site.close(ann, ben, device)
    }

    @Test("A call that a user chooses takes the caller; one that hangs up leaves at once; draining ends the waiting")
    func control() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site(users: ["echo", "ann", "ben"])
        try writeTone(1_700, seconds: 1, to: path("own.wav"))
        let device = try await desk(
            site, ann: "<Enqueue action=\"{{QueueResult}}.xml\">q</Enqueue><Pause length=\"60\"/>",
            ben: "<Play loop=\"0\">own.wav</Play>",
            ["system-error.xml": "<Hangup/>", "bridged.xml": "<Redirect>for-ann.xml</Redirect>"])
        let unit = device.device
        let (ann, ben) = (try await site.device("ann", named: "a"), try await site.device("ben", named: "b"))
        let first = await ann.device.call("echo", audio: tone(500, keptAs: "ann.wav"))
        let waiting = try await entered(device)
        _ = try await ann.flowing()
        await #expect(throws: CallSoundError.self) { try await unit.park(waiting) }
        await #expect(throws: CallSoundError.self) { try await unit.takeFromQueue("q", by: waiting) }
        let benCall = await ben.device.call("echo", audio: tone(900, keptAs: "ben.wav"))
        let agent = try await device.incoming()
        _ = try await ben.flowing()
        await #expect(throws: CallSoundError.self) { try await unit.takeFromQueue("none", by: agent) }
        #expect(try await unit.takeFromQueue("q", by: agent) == waiting)
        #expect(try await left(device) == "bridged")
        try await run(benCall, of: ben)
        try await run(benCall, of: ben)
        await ben.device.hangUp(benCall)
        _ = try await ben.ended()
        #expect(try await amplitude(500, in: "ben.wav") > 4_000)
        // Ann's flow continues, and leads into the queue again.
        #expect(try await entered(device) == waiting)
        try await unit.removeFromQueue(waiting)
        #expect(try await left(device) == "redirected")
        await ann.device.hangUp(first)
        _ = try await ann.ended()
        let second = await ann.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await entered(device)
        await ann.device.hangUp(second)
        #expect(try await left(device) == "hangup")
        _ = try await ann.ended()
        _ = await ann.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await entered(device)
        _ = await unit.setDraining(true)
        #expect(try await left(device) == "system-error")
        #expect(try await ann.ended().record.endedBy == .remote)
        try await site.close(ann, ben, device)
    }
}
