import CallControl
import CallFlows
import CallMedia
import CallPrograms
import Foundation
import TestSupport
import Testing

@testable import CallAgent

/// Calls that are handed over to a person, parked or replaced, on real sockets.
@Suite("Calls that are handed over to a person", .witnessed, .serialized, .timeLimit(.minutes(3)))
struct HandoverTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "handset-handover-\(UUID())")

    init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

    private func path(_ name: String) -> String { folder.appending(path: name).path() }

    private func tone(_ hertz: Double, keptAs name: String) -> AudioBehaviour {
        AudioBehaviour(source: .tone(frequencyHz: hertz, levelDBFS: -12), recording: path(name))
    }

    private let unrecorded = AudioBehaviour(source: .tone(frequencyHz: 500, levelDBFS: -12))

    /// A device whose calls hear 1.3 kHz, and 700 Hz while they wait.
    private func desk(
        _ site: Site, calls: Int = 8, _ change: (inout DeviceConfiguration) -> Void = { _ in }
    ) async throws -> Handheld {
        try writeTone(700, seconds: 1, to: path("music.wav"))
        let answering = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(calls))
        return try await site.device("echo", named: "desk", answer: answering) {
            $0.behaviour.source = .tone(frequencyHz: 1_300, levelDBFS: -12)
            $0.handover.music = path("music.wav")
            change(&$0)
        }
    }

    private func request(
        to target: String = "ben", whisper: HandoverRequest.Whisper? = nil
    ) -> HandoverRequest {
        var request = HandoverRequest(to: target)
        request.acceptKey = "1"
        request.whisper = whisper
        return request
    }

    /// The states of a hand-over until it has this one.
    private func states(of device: Handheld, until last: HandoverState) async throws -> [HandoverState] {
        var states: [HandoverState] = []
        while let event = await device.next() {
            guard case .handover(_, let report) = event else { continue }
            states.append(report.state)
            if report.state == last { return states }
            if report.state.isFinal { break }
        }
        Issue.record("\(states)")
        throw StreamEnded()
    }

    /// Waits until a call has run for this number of frames more.
    private func run(_ call: CallID, of handheld: Handheld, frames: Int = 75) async throws {
        func count() async throws -> Int { try #require(await handheld.device.mediaReport(on: call)).call.framesRun }
        let before = try await count()
        try await until { try await count() >= before + frames }
    }

    private func refusal(_ act: () async throws(CallSoundError) -> Void) async -> CallSoundError? {
        do throws(CallSoundError) {
            try await act()
            return nil
        } catch {
            return error
        }
    }

    @Test("The caller hears music while the person hears a whisper; by the key both are joined, and end together")
    func accepted() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site(users: ["echo", "ann", "ben"])
        let device = try await desk(site)
        let (ann, ben) = (try await site.device("ann", named: "a"), try await site.device("ben", named: "b"))
        try writeTone(1_700, seconds: 30, to: path("whisper.wav"))
        let annCall = await ann.device.call("echo", audio: unrecorded)
        let call = try await device.incoming()
        _ = try await device.flowing()
        let asked = request(whisper: .file(path("whisper.wav")))
        let person = try await device.device.handOver(call, asked)
        let benCall = try await ben.incoming()
        #expect(
            await refusal { () throws(CallSoundError) in try await device.device.handOver(call, asked) }?.code
                == .wrongState)
        #expect(
            await refusal { () throws(CallSoundError) in try await device.device.bridge(call, to: person) }?.code
                == .wrongState)
        await ben.device.answer(benCall)
        _ = try await ben.flowing()
        let kept = try await ben.device.record(benCall, to: path("ben.wav"))
        try await run(benCall, of: ben)
        let music = try await ann.device.record(annCall, to: path("ann-waits.wav"))
        try await run(annCall, of: ann)
        _ = try await ann.device.stopRecording(annCall)
        _ = try await ben.device.stopRecording(benCall)
        try await ben.device.press("1", on: benCall)
        #expect(
            try await states(of: device, until: .joined) == [.asked, .ringing, .whispering, .accepted, .joined])
        let joined = try await ben.device.record(benCall, to: path("ben-joined.wav"))
        try await run(benCall, of: ben)
        await ben.device.hangUp(benCall)
        _ = try await ann.ended()
        #expect(try await states(of: device, until: .ended) == [.ended])
        #expect(try await toneAmplitude(1_700, in: kept) > 4_000)
        #expect(try await toneAmplitude(700, in: music) > 4_000)
        #expect(try await toneAmplitude(500, in: joined) > 4_000)
        #expect(try await toneAmplitude(1_700, in: joined) < 400)
        try await site.close(ann, ben, device)
    }

    @Test("Who declines leaves the caller with what it heard before; the limits, the list and a drain refuse a person")
    func refused() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site(users: ["echo", "ann", "ben"])
        let device = try await desk(site, calls: 2) {
            $0.account.callees = CalleeList([CalleePattern("ben"), CalleePattern("echo")].compactMap { $0 })
        }
        let (ann, ben) = (try await site.device("ann", named: "a"), try await site.device("ben", named: "b"))
        let annCall = await ann.device.call("echo", audio: tone(500, keptAs: "ann.wav"))
        let call = try await device.incoming()
        _ = try await device.flowing()
        let unit = device.device
        let (stranger, own) = (request(to: "mallory"), request(to: "echo"))
        let listed = await refusal { () throws(CallSoundError) in try await unit.handOver(call, stranger) }
        #expect(listed?.description.contains("account.callees") == true)
        #expect(await refusal { () throws(CallSoundError) in try await unit.handOver(call, own) } != nil)
        let noVoice = request(whisper: .text("A bill"))
        #expect(
            await refusal { () throws(CallSoundError) in try await unit.handOver(call, noVoice) }?.code
                == .notConfigured)
        let asked = request()
        try await unit.handOver(call, asked)
        try await run(annCall, of: ann, frames: 25)
        await ben.device.reject(try await ben.incoming(), .busy)
        #expect(try await states(of: device, until: .busy).first == .asked)
        try await run(annCall, of: ann)
        await unit.setDraining(true)
        let drained = await refusal { () throws(CallSoundError) in try await unit.handOver(call, asked) }
        #expect(drained?.description.contains("takes no more calls") == true)
        await unit.setDraining(false)
        // The caller and one more are all that there may be.
        _ = await ben.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await device.incoming()
        let full = await refusal { () throws(CallSoundError) in try await unit.handOver(call, asked) }
        #expect(full?.description.contains("as many calls as it may have") == true)
        await ann.device.hangUp(annCall)
        _ = try await ann.ended()
        #expect(try await toneAmplitude(1_300, in: path("ann.wav")) > 4_000)
        try await site.close(ann, ben, device)
    }

    @Test("A caller who hangs up in the whisper takes the person along, and a person who hangs up there has refused")
    func gone() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site(users: ["echo", "ann", "ben"])
        let device = try await desk(site)
        let (ann, ben) = (try await site.device("ann", named: "a"), try await site.device("ben", named: "b"))
        let annCall = await ann.device.call("echo", audio: tone(500, keptAs: "ann.wav"))
        let call = try await device.incoming()
        _ = try await device.flowing()
        let asked = request()
        try await device.device.handOver(call, asked)
        var benCall = try await ben.incoming()
        await ben.device.answer(benCall)
        #expect(try await states(of: device, until: .whispering).last == .whispering)
        await ben.device.hangUp(benCall)
        #expect(try await states(of: device, until: .refused) == [.refused])
        #expect(await device.device.goesOn(call))
        _ = try await ben.ended()
        try await device.device.handOver(call, asked)
        benCall = try await ben.incoming()
        await ben.device.answer(benCall)
        #expect(try await states(of: device, until: .whispering).last == .whispering)
        await ann.device.hangUp(annCall)
        #expect(try await states(of: device, until: .gone) == [.gone])
        #expect(try await ben.ended().record.endedBy == .remote)
        try await site.close(ann, ben, device)
    }

    @Test("A program asks as soon as it begins, is notified of each step, and hears its caller again behind the person")
    func askedByProgram() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site(users: ["echo", "ann", "ben"])
        let script = """
            import json, socket
            control = socket.socket(fileno=3)
            lines = control.makefile(encoding="utf-8")
            def ask(**command): control.sendall((json.dumps(command) + "\\n").encode())
            kept = open("\(path("told"))", "w")
            ask(command="handover", to="mallory")
            while True:
                event = json.loads(lines.readline())
                kept.write(json.dumps(event) + "\\n")
                kept.flush()
                if event["event"] == "error": ask(command="handover", to="ben", bot="listens")
                if event["event"] == "handover" and event["state"] == "ended": ask(command="hangup")
                if event["event"] == "end": break
            """
        let device = try await desk(site) {
            $0.behaviour.source = .exec(ProgramPlan(command: ["python3", "-c", script]))
            $0.account.callees = CalleeList([CalleePattern("ben")].compactMap { $0 })
        }
        let (ann, ben) = (try await site.device("ann", named: "a"), try await site.device("ben", named: "b"))
        _ = await ann.device.call("echo", audio: tone(500, keptAs: "ann.wav"))
        let benCall = try await ben.incoming()
        await ben.device.answer(benCall)
        _ = try await ben.flowing()
        #expect(try await states(of: device, until: .joined).last == .joined)
        try await run(benCall, of: ben, frames: 25)
        await ben.device.hangUp(benCall)
        // The program is back, and hangs up.
        #expect(try await ann.ended().record.endedBy == .remote)
        try await until { try String(contentsOfFile: path("told"), encoding: .utf8).contains("\"end\"") }
        let lines = try String(contentsOfFile: path("told"), encoding: .utf8).split(separator: "\n").map(String.init)
        #expect(lines.contains { $0.contains("a hand-over is refused") && $0.contains("account.callees") })
        let steps = lines.filter { $0.contains("\"handover\"") }
        #expect(steps.first?.contains("asked") == true && steps.last?.contains("the person has hung up") == true)
        #expect(steps.contains { $0.contains("joined") })
        try await site.close(ann, ben, device)
    }

    @Test("A flow that ends while its call is joined does not end the call, which ends when it is back")
    func flowWaits() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site(users: ["echo", "ann", "ben"])
        try "<Response><Pause length=\"2\"/><Hangup/></Response>".write(
            toFile: path("menu.xml"), atomically: true, encoding: .utf8)
        let device = try await desk(site) { $0.behaviour.source = .flow(FlowPlan(file: path("menu.xml"))) }
        let (ann, ben) = (try await site.device("ann", named: "a"), try await site.device("ben", named: "b"))
        let annCall = await ann.device.call("echo", audio: tone(500, keptAs: "ann.wav"))
        let call = try await device.incoming()
        _ = try await device.flowing()
        let slot = try await device.device.park(call)
        #expect(slot == 1)
        // Twice the time that the flow has.
        try await run(annCall, of: ann, frames: 200)
        #expect(await device.device.goesOn(call))
        let benCall = await ben.device.call("echo", audio: tone(900, keptAs: "ben.wav"))
        let second = try await device.incoming()
        _ = try await device.flowing()
        try await device.device.pickUp(slot: slot, by: second, goesBack: true)
        try await run(benCall, of: ben)
        await ben.device.hangUp(benCall)
        #expect(try await ann.ended().record.endedBy == .remote)
        _ = try await ben.ended()
        #expect(try await toneAmplitude(500, in: path("ben.wav")) > 4_000)
        try await site.close(ann, ben, device)
    }

    @Test("A parked call hears music in its slot, and is joined to the call that picks it up")
    func parked() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site(users: ["echo", "ann", "ben"])
        let device = try await desk(site)
        let (ann, ben) = (try await site.device("ann", named: "a"), try await site.device("ben", named: "b"))
        let annCall = await ann.device.call("echo", audio: unrecorded)
        let call = try await device.incoming()
        _ = try await device.flowing()
        let slot = try await device.device.park(call)
        #expect(await device.device.status.calls.first?.slot == slot)
        #expect(
            await refusal { () throws(CallSoundError) in _ = try await device.device.park(call) }?.code == .wrongState)
        try await run(annCall, of: ann)
        let waiting = try await ann.device.record(annCall, to: path("ann-waits.wav"))
        try await run(annCall, of: ann)
        _ = try await ann.device.stopRecording(annCall)
        let benCall = await ben.device.call("echo", audio: tone(900, keptAs: "ben.wav"))
        let second = try await device.incoming()
        _ = try await device.flowing()
        let unit = device.device
        #expect(
            await refusal { () throws(CallSoundError) in try await unit.pickUp(slot: 7, by: second) }?.code
                == .wrongState)
        try await unit.pickUp(slot: slot, by: second)
        #expect(await unit.parkingSlot(of: call) == nil)
        let talking = try await ann.device.record(annCall, to: path("ann-talks.wav"))
        try await run(benCall, of: ben)
        await ben.device.hangUp(benCall)
        _ = try await ann.ended()
        #expect(try await toneAmplitude(700, in: waiting) > 4_000)
        #expect(try await toneAmplitude(500, in: path("ben.wav")) > 4_000)
        #expect(try await toneAmplitude(900, in: talking) > 4_000)
        try await site.close(ann, ben, device)
    }

    @Test("RFC 3891: A call that replaces a joined one is joined in its place")
    func replaced() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site(users: ["echo", "ann", "ben", "cem"])
        let device = try await desk(site)
        let (ann, ben) = (try await site.device("ann", named: "a"), try await site.device("ben", named: "b"))
        let answering = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(2))
        let cem = try await site.device("cem", named: "c", answer: answering) {
            $0.behaviour.source = .tone(frequencyHz: 900, levelDBFS: -12)
        }
        let annCall = await ann.device.call("echo", audio: tone(500, keptAs: "ann.wav"))
        let call = try await device.incoming()
        _ = try await device.flowing()
        let benCall = await ben.device.call("echo", audio: tone(1_100, keptAs: "ben.wav"))
        _ = try await ben.flowing()
        let second = try await device.incoming()
        _ = try await device.flowing()
        try await device.device.bridge(call, to: second)
        let consulted = await ben.device.call("cem", audio: AudioBehaviour(source: .silence))
        _ = try await ben.flowing()
        try await ben.device.transfer(consulted, to: "echo", replacing: benCall)
        let new = try await device.incoming()
        // The former call ends meanwhile.
        try await until { await device.device.mediaReport(on: new)?.call.framesRun ?? 0 > 0 }
        #expect(await device.device.bridgedCall(of: call) == new)
        try await run(annCall, of: ann, frames: 100)
        await ann.device.hangUp(annCall)
        _ = try await ann.ended()
        #expect(try await toneAmplitude(900, in: path("ann.wav")) > 4_000)
        try await until { await !device.device.goesOn(new) }
        try await site.close(ann, ben, cem, device)
    }
}
