import AudioKit
import CallControl
import CallFlows
import CallMeetings
import CallMedia
import Foundation
import TestSupport
import Testing

@testable import CallAgent

/// Two calls of a device that are joined, on real sockets.
@Suite("Calls that are joined", .witnessed, .serialized, .timeLimit(.minutes(2)))
struct BridgeTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "handset-bridge-\(UUID())")
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

    /// The amplitude of a tone in the second before the last 0.2 s of a recording.
    private func amplitude(_ hertz: Double, in name: String) async throws -> Double {
        try await toneAmplitude(hertz, in: path(name))
    }

    private func failure(_ act: () async throws(CallSoundError) -> Void) async -> CallSoundError.Code? {
        do throws(CallSoundError) {
            try await act()
            return nil
        } catch {
            return error.code
        }
    }

    @Test("Each caller hears the other and not the device, keys pass, and one hanging up ends the other")
    func joins() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site(users: ["echo", "ann", "ben"])
        let device = try await site.device("echo", named: "desk", answer: answering) {
            $0.behaviour.source = .tone(frequencyHz: 1_300, levelDBFS: -12)
        }
        let (ann, ben) = (try await site.device("ann", named: "a"), try await site.device("ben", named: "b"))
        let annCall = await ann.device.call("echo", audio: tone(500, keptAs: "ann.wav"))
        let first = try await device.incoming()
        _ = try await device.flowing()
        _ = await ben.device.call("echo", audio: tone(900, keptAs: "ben.wav"))
        let second = try await device.incoming()
        _ = try await device.flowing()
        let unit = device.device
        #expect(await failure { () throws(CallSoundError) in try await unit.bridge(first, to: first) } == .wrongState)
        #expect(await failure { () throws(CallSoundError) in try await unit.unbridge(first) } == .wrongState)
        try await unit.bridge(first, to: second)
        #expect(await unit.bridgedCall(of: second) == first)
        #expect(await failure { () throws(CallSoundError) in try await unit.bridge(first, to: second) } == .wrongState)
        try await ann.device.press("5", on: annCall)
        #expect(try await hear(ben) { if case .digit(_, let key, _) = $0 { key } else { nil } } == "5")
        try await run(annCall, of: ann)
        await ann.device.hangUp(annCall)
        let record = try await ben.ended().record
        #expect(record.reason == .completed && record.endedBy == .remote)
        #expect(await unit.bridgedCall(of: first) == nil)
        for (name, other, own) in [("ann.wav", 900.0, 500.0), ("ben.wav", 500.0, 900.0)] {
            #expect(try await amplitude(other, in: name) > 4_000)
            #expect(try await amplitude(own, in: name) < 400)
            #expect(try await amplitude(1_300, in: name) < 400)
        }
        try await site.close(ann, ben, device)
    }

    @Test("A call that goes back hears again what it heard before")
    func goesBack() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site(users: ["echo", "ann", "ben"])
        let device = try await site.device("echo", named: "desk", answer: answering) {
            $0.behaviour.source = .tone(frequencyHz: 1_300, levelDBFS: -12)
        }
        let (ann, ben) = (try await site.device("ann", named: "a"), try await site.device("ben", named: "b"))
        let annCall = await ann.device.call("echo", audio: tone(500, keptAs: "ann.wav"))
        let first = try await device.incoming()
        _ = try await device.flowing()
        let benCall = await ben.device.call("echo", audio: tone(900, keptAs: "ben.wav"))
        let second = try await device.incoming()
        _ = try await device.flowing()
        try await device.device.bridge(first, to: second, goesBack: true)
        await ben.device.hangUp(benCall)
        _ = try await ben.ended()
        try await run(annCall, of: ann)
        await ann.device.hangUp(annCall)
        _ = try await ann.ended()
        #expect(try await amplitude(1_300, in: "ann.wav") > 4_000)
        try await site.close(ann, ben, device)
    }

    /// A device whose flow is these documents.
    private func desk(_ site: Site, _ documents: [String: String], _ callees: CalleeList? = nil) async throws
        -> Handheld
    {
        for (name, text) in documents {
            try "<Response>\(text)</Response>".write(toFile: path(name), atomically: true, encoding: .utf8)
        }
        return try await site.device("echo", named: "desk", answer: answering) {
            $0.behaviour.source = .flow(FlowPlan(file: path("menu.xml")))
            $0.account.callees = callees
        }
    }

    private func beep(_ name: String, _ hertz: Double, seconds: Double) throws {
        try writeTone(hertz, seconds: seconds, to: path(name))
    }

    @Test("Dial joins the caller to the callee that answers, and the flow continues when the callee hangs up")
    func dials() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site(users: ["echo", "ann", "ben", "cem"])
        try beep("completed.wav", 1_300, seconds: 1)
        let device = try await desk(
            site,
            [
                "menu.xml":
                    "<Dial action=\"after-{{DialCallStatus}}.xml\"><Client>ben</Client><Client>cem</Client></Dial>",
                "after-completed.xml": "<Play>completed.wav</Play>",
            ])
        let (ann, ben) = (try await site.device("ann", named: "a"), try await site.device("ben", named: "b"))
        let cem = try await site.device("cem", named: "c")
        _ = await ann.device.call("echo", audio: tone(500, keptAs: "ann.wav"))
        let call = try await ben.incoming()
        _ = try await cem.incoming()
        await ben.device.answer(call)
        // The other one stops ringing.
        #expect(try await cem.ended().record.reason == .cancelled)
        _ = try await ben.flowing()
        let kept = try await ben.device.record(call, to: path("ben.wav"))
        try await run(call, of: ben)
        await ben.device.hangUp(call)
        _ = try await ben.ended()
        #expect(try await ann.ended().record.reason == .completed)
        #expect(kept == path("ben.wav"))
        #expect(try await amplitude(500, in: "ben.wav") > 4_000)
        #expect(try await amplitude(1_300, in: "ann.wav") > 4_000)
        try await site.close(ann, ben, cem, device)
    }

    @Test("A callee that is busy, one that is not listed, and the device itself are no end of the flow")
    func refused() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site(users: ["echo", "ann", "ben"])
        try beep("busy.wav", 1_300, seconds: 1)
        let device = try await desk(
            site,
            [
                "menu.xml": "<Dial>mallory</Dial><Dial>echo</Dial><Dial action=\"{{DialCallStatus}}.xml\">ben</Dial>",
                "busy.xml": "<Play>busy.wav</Play>",
            ], CalleeList(["ben", "echo"].compactMap { CalleePattern($0) }))
        let (ann, ben) = (try await site.device("ann", named: "a"), try await site.device("ben", named: "b"))
        _ = await ann.device.call("echo", audio: tone(500, keptAs: "ann.wav"))
        await ben.device.reject(try await ben.incoming(), .busy)
        #expect(try await ann.ended().record.reason == .completed)
        #expect(try await amplitude(1_300, in: "ann.wav") > 4_000)
        try await site.close(ann, ben, device)
    }

    @Test("A caller who hangs up cancels what rings")
    func cancels() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site(users: ["echo", "ann", "ben"])
        let device = try await desk(site, ["menu.xml": "<Dial>ben</Dial>"])
        let (ann, ben) = (try await site.device("ann", named: "a"), try await site.device("ben", named: "b"))
        let call = await ann.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await ben.incoming()
        await ann.device.hangUp(call)
        #expect(try await ben.ended().record.reason == .cancelled)
        try await site.close(ann, ben, device)
    }

    @Test("With answerOnBridge the caller is answered with the callee; a callee that is asked accepts with a key")
    func asks() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site(users: ["echo", "ann", "ben"])
        let device = try await desk(
            site,
            [
                "menu.xml": "<Dial answerOnBridge=\"true\"><Client url=\"ask.xml\">ben</Client></Dial>",
                "ask.xml": "<Gather numDigits=\"1\" action=\"key-{{Digits}}.xml\"/><Hangup/>", "key-1.xml": "",
            ])
        let (ann, ben) = (try await site.device("ann", named: "a"), try await site.device("ben", named: "b"))
        _ = await ann.device.call("echo", audio: tone(500, keptAs: "ann.wav"))
        let call = try await ben.incoming()
        await ben.device.answer(call)
        _ = try await ben.flowing()
        let kept = try await ben.device.record(call, to: path("ben.wav"))
        try await ben.device.press("1", on: call)
        // Ann is answered, and is joined once she is heard.
        _ = try await ann.flowing()
        try await run(call, of: ben)
        await ben.device.hangUp(call)
        _ = try await ann.ended()
        #expect(kept == path("ben.wav"))
        #expect(try await amplitude(500, in: "ben.wav") > 4_000)
        try await site.close(ann, ben, device)
    }

    @Test("Conference takes the caller into a room, from which * leads back to the flow")
    func room() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site(users: ["echo", "ann", "ben"])
        let device = try await desk(
            site,
            ["menu.xml": "<Dial hangupOnStar=\"true\"><Conference beep=\"false\">team</Conference></Dial><Hangup/>"])
        let (ann, ben) = (try await site.device("ann", named: "a"), try await site.device("ben", named: "b"))
        let annCall = await ann.device.call("echo", audio: tone(500, keptAs: "ann.wav"))
        _ = await ben.device.call("echo", audio: tone(900, keptAs: "ben.wav"))
        let media = await device.device.sharedMedia
        try await until { media.rooms.first?.members.count == 2 }
        _ = try await ann.flowing()
        try await run(annCall, of: ann)
        try await ann.device.press("*", on: annCall)
        #expect(try await ann.ended().record.endedBy == .remote)
        #expect(media.rooms.first?.members.count == 1)
        #expect(try await amplitude(900, in: "ann.wav") > 2_000)
        try await site.close(ann, ben, device)
        #expect(media.rooms.isEmpty)
    }
}
