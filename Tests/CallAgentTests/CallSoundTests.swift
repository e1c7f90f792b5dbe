import AudioKit
import BotWire
import CallAgent
import CallControl
import CallMedia
import CallPrograms
import Foundation
import MediaEngine
import TestSupport
import Testing

@Suite(
    "Calls whose sound changes while they run, and calls that end by themselves", .witnessed, .timeLimit(.minutes(2)))
struct CallSoundTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "handset-sound-\(UUID())")
    private let answering = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(4))

    init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

    private func path(_ name: String) -> String { folder.appending(path: name).path() }

    /// A tone of 8,000 at its peak, as a file.
    private func tone(seconds: Double, named name: String) throws -> String {
        let samples = (0..<Int(seconds * 48_000)).map { Int16(8_000 * sin(2 * .pi * 500 * Double($0) / 48_000)) }
        var writer = try WAVWriter(path: path(name))
        try writer.append(samples.span)
        try writer.finish()
        return path(name)
    }

    /// Python that says a tone of so many seconds and then listens.
    private func program(_ seconds: Double, then rest: String = "while os.read(0, 640): pass") -> ProgramPlan {
        let script = """
            import math, os, struct
            sound = b"".join(struct.pack("<h", int(8000 * math.sin(math.pi * n / 16))) for n in range(int(\(seconds) * 16000)))
            while sound: sound = sound[os.write(1, sound):]
            \(rest)
            """
        return ProgramPlan(command: ["python3", "-c", script])
    }

    private func failure(_ act: () async throws(CallSoundError) -> Void) async -> CallSoundError? {
        do throws(CallSoundError) {
            try await act()
            return nil
        } catch {
            return error
        }
    }

    /// Takes events until one is what is wanted.
    private func hear<Value>(_ handheld: Handheld, _ find: (DeviceEvent) -> Value?) async throws -> Value {
        while let event = await handheld.next() {
            if let found = find(event) { return found }
            if case .ended(_, let record, _) = event { throw EndedEarly(record: record) }
        }
        throw StreamEnded()
    }

    private func recordingEnd(_ handheld: Handheld) async throws -> (RecordingEnd, RecordingEndReason) {
        try await hear(handheld) { event in
            if case .recordingEnded(_, let end, let reason) = event { (end, reason) } else { nil }
        }
    }

    @Test(
        "In mid-call a file is played in place of the source, recordings begin and end, and each error says what is wrong"
    )
    func playAndRecord() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site()
        let device = try await site.device("echo", named: "device", answer: answering) {
            $0.behaviour.source = .silence
            $0.behaviour.recordingFormat.channels = 2
        }
        let caller = try await site.device("caller", named: "mobile")
        let kept = path("caller.wav")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence, recording: kept))
        let call = try await device.incoming()
        let early = await failure { () throws(CallSoundError) in try await device.device.play("/nothing", on: call) }
        #expect(early == nil || early?.code == .wrongState || early?.code == .file)
        _ = try await device.flowing()
        _ = try await caller.flowing()

        let file = try tone(seconds: 0.5, named: "said.wav")
        try Data("no sound".utf8).write(to: folder.appending(path: "text"))
        let unit = device.device
        let wrong: [(CallSoundError.Code, CallSoundError?)] = [
            (.file, await failure { () throws(CallSoundError) in try await unit.play(path("nothing.wav"), on: call) }),
            (.file, await failure { () throws(CallSoundError) in try await unit.play(path("text"), on: call) }),
            (.wrongState, await failure { () throws(CallSoundError) in try await unit.stopPlaying(on: call) }),
            (.wrongState, await failure { () throws(CallSoundError) in _ = try await unit.stopRecording(call) }),
            (.wrongState, await failure { () throws(CallSoundError) in try await unit.detach(from: call) }),
            (.notConfigured, await failure { () throws(CallSoundError) in try await unit.attach(to: call) }),
            (.notConfigured, await failure { () throws(CallSoundError) in _ = try await unit.record(call) }),
            (.file, await failure { () throws(CallSoundError) in _ = try await unit.record(call, to: file) }),
            (
                .file,
                await failure { () throws(CallSoundError) in _ = try await unit.record(call, to: path("a.part.wav")) }
            ),
            (
                .file,
                await failure { () throws(CallSoundError) in _ = try await unit.record(call, to: path("no/a.wav")) }
            ),
        ]
        for (code, error) in wrong { #expect(error?.code == code, "\(error.map { "\($0)" } ?? "none")") }

        let recorded = try await unit.record(call, to: path("kept.opus"))
        #expect(recorded == path("kept.opus"))
        #expect(await unit.status.calls.first?.isRecorded == true)
        let second = await failure { () throws(CallSoundError) in _ = try await unit.record(call, to: path("b.wav")) }
        #expect(second?.code == .wrongState && second?.description.contains(recorded) == true)
        try await unit.play(file, on: call)
        let end = try await hear(device) { if case .playingEnded(_, file, let end) = $0 { end } else { nil } }
        #expect(end == .played)
        try await unit.stopRecording(call)
        let (first, why) = try await recordingEnd(device)
        #expect(why == .stopped && first.path == recorded && first.failure == nil)
        #expect(await unit.status.calls.first?.isRecorded == false)
        // The tone is in one of two channels, so that half of its amplitude is in their mean.
        #expect((0.4...0.55).contains(try await secondsOfTone(in: recorded) * 4))

        // Another recording until the call ends, and a file that lasts longer than the call, so that it cannot end by itself.
        let long = try tone(seconds: 150, named: "long.wav")
        _ = try await unit.record(call, to: path("rest.wav"))
        let begin = ContinuousClock.now
        try await unit.play(long, on: call)
        let none = await failure { () throws(CallSoundError) in try await unit.play(path("nothing.wav"), on: call) }
        #expect(none?.code == .file)
        // The file that is played goes on.
        try await unit.stopPlaying(on: call)
        let stopped = try await hear(device) { if case .playingEnded(_, _, let end) = $0 { end } else { nil } }
        #expect(stopped == .stopped)
        // The call ends while a file is played; and somebody has made a file of the recording's name meanwhile.
        try await unit.play(long, on: call)
        try Data("theirs".utf8).write(to: folder.appending(path: "rest.wav"))
        await unit.hangUp(call)
        let cutOff = try await hear(device) {
            if case .playingEnded(_, let file, let end) = $0 { (file, end) } else { nil }
        }
        let playing = (ContinuousClock.now - begin) / .seconds(1)
        #expect(cutOff.0 == long && cutOff.1 == .callEnded)
        let (last, reason) = try await recordingEnd(device)
        #expect(reason == .callEnded && last.path == path("rest-2.wav") && last.requestedPath == path("rest.wav"))
        #expect(try Data(contentsOf: folder.appending(path: "rest.wav")) == Data("theirs".utf8))
        let record = try await device.ended().record
        #expect(record.hangUpCause == .request)
        #expect(try await caller.ended().record.hangUpCause == nil)
        #expect(
            (0.4...0.6 + playing).contains(try await secondsOfTone(in: kept)), "0.5 s, and the pieces of the long file")
        try await site.close(caller, device)
    }

    @Test("A program is attached to a call that stands, leaves it, and joins again; the call goes on")
    func attach() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site()
        let said = path("said")
        let plan = program(0.4, then: "open('\(said)', 'a').write('.')\nwhile os.read(0, 640): pass")
        let device = try await site.device("echo", named: "device", answer: answering) {
            $0.behaviour.source = .silence
            $0.behaviour.attachment = .exec(plan)
        }
        let caller = try await site.device("caller", named: "mobile")
        let kept = path("caller.wav")
        let id = await caller.device.call("echo", audio: AudioBehaviour(source: .silence, recording: kept))
        let call = try await device.incoming()
        _ = try await device.flowing()
        for round in 1...2 {
            try await device.device.attach(to: call)
            let again = await failure { () throws(CallSoundError) in try await device.device.attach(to: call) }
            #expect(again?.code == .wrongState)
            // A program starts when the machine lets it, and has been heard half a second and more of frames after its word.
            try await until { (try? Data(contentsOf: URL(fileURLWithPath: said)))?.count == round }
            let before = try #require(await caller.device.mediaReport(on: id)).call.framesRun
            try await until { try #require(await caller.device.mediaReport(on: id)).call.framesRun >= before + 75 }
            try await device.device.detach(from: call)
        }
        // Nothing joins a call whose media is about to end.
        await device.device.hangUp(call)
        let late = await failure { () throws(CallSoundError) in try await device.device.attach(to: call) }
        #expect(late?.code == .wrongState)
        let record = try await caller.ended().record
        #expect(record.reason == .completed && record.endedBy == .remote)
        #expect((0.7...0.85).contains(try await secondsOfTone(in: kept)), "two words of 0.4 s")
        try await site.close(caller, device)
    }

    @Test("A call of the longest duration ends with that reason, once all is played that its program has said")
    func longest() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site()
        let plan = program(2)
        for (source, least) in [(BehaviourConfiguration.Source.exec(plan), 1.9), (.silence, 0)] {
            let device = try await site.device("echo", named: "device", answer: answering) {
                $0.behaviour.source = source
                $0.behaviour.maximumDuration = .seconds(1)
            }
            let caller = try await site.device("caller", named: "mobile")
            let kept = path("caller-\(least).wav")
            _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence, recording: kept))
            let record = try await device.ended().record
            #expect(record.reason == .completed && record.endedBy == .local)
            #expect(record.hangUpCause == .maximumDuration && record.duration >= .seconds(1))
            _ = try await caller.ended()
            #expect((least...2.1).contains(try await secondsOfTone(in: kept)))
            await device.device.shutDown()
            await caller.device.shutDown()
        }
        try await site.close()
    }

    @Test("Another configuration leaves the longest duration of a call that goes on as it was")
    func reload() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site()
        let device = try await site.device("echo", named: "device", answer: answering) {
            $0.behaviour.source = .silence
            $0.behaviour.maximumDuration = .seconds(1)
        }
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await device.incoming()
        var other = DeviceConfiguration(account: AccountConfiguration(server: "http://127.0.0.1:1"))
        other.answer = answering
        other.behaviour.source = .silence
        #expect(await device.device.adopt(other))
        let record = try await device.ended().record
        #expect(record.hangUpCause == .maximumDuration)
        _ = try await caller.ended()
        try await site.close(caller, device)
    }

    @Test("A call is hung up when its greeting has been heard to its end", .witnessed(slack: .milliseconds(50)))
    func greeting() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site()
        let file = try tone(seconds: 0.5, named: "greeting.wav")
        let device = try await site.device("echo", named: "device", answer: answering) {
            $0.behaviour.source = .file(path: file, loops: false)
            $0.behaviour.hangsUpAfterFile = true
            $0.behaviour.recordingFolder = path("kept")
        }
        let caller = try await site.device("caller", named: "mobile")
        let kept = path("caller.wav")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence, recording: kept))
        let started = try await hear(device) { if case .recording(_, let path) = $0 { path } else { nil } }
        #expect(started.hasPrefix(path("kept/")) && started.hasSuffix(".wav"))
        let (end, reason) = try await recordingEnd(device)
        #expect(end.path == started && reason == .callEnded)
        let record = try await device.ended().record
        #expect(record.reason == .completed && record.hangUpCause == .playbackEnded)
        _ = try await caller.ended()
        #expect((0.45...0.55).contains(try await secondsOfTone(in: kept)), "the whole greeting was heard")
        try await site.close(caller, device)
    }
}
