import CallAgent
import CallControl
import CallDiagnosis
import CallMedia
import CallPrograms
import Foundation
import TestSupport
import Testing

/// Calls on real sockets, with a fault put in or without one, and what the diagnosis of their records says.
@Suite("Records of calls, and what they explain", .timeLimit(.minutes(5)))
struct ExplainedCallTests {
    private let folder: String

    init() throws {
        folder = FileManager.default.temporaryDirectory.path + "/handset-explain-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    private static let answering = AnswerPolicy(manner: .answer(after: .zero))
    private static let tone = AudioBehaviour.Source.tone(frequencyHz: 440, levelDBFS: -12)

    /// A call between two devices that keep records.
    ///
    /// - Parameter source: What the caller says; the device that is called says what `callee` sets, a tone unless it does.
    /// - Returns: What the two records say: first the caller's.
    private func call(
        saying source: AudioBehaviour.Source = tone, for time: Duration = .seconds(6),
        caller: (inout DeviceConfiguration) -> Void = { _ in }, callee: (inout DeviceConfiguration) -> Void = { _ in },
        during: (Device) async throws -> Void = { _ in }
    ) async throws -> (caller: KeptCall, callee: KeptCall) {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let site = try await Site()
        let called = try await site.device("echo", named: "desk", answer: Self.answering) {
            $0.device.callRecords = folder + "/callee.jsonl"
            $0.behaviour.source = .tone(frequencyHz: 600, levelDBFS: -12)
            callee(&$0)
        }
        let calling = try await site.device("caller", named: "mobile") {
            $0.device.callRecords = folder + "/caller.jsonl"
            caller(&$0)
        }
        let id = await calling.device.call("echo", audio: AudioBehaviour(source: source))
        var ended = false
        while !ended, let event = await calling.next() {
            switch event {
            case .established:
                // The media itself says when it has lasted long enough, by frames that were run.
                let frames = Int(time / .milliseconds(20))
                try await until { await calling.device.mediaReport(on: id)?.call.framesRun ?? 0 >= frames }
                try await during(calling.device)
                await calling.device.hangUp(id)
            case .ended: ended = true
            default: break
            }
        }
        _ = try await called.ended()
        try await site.close(calling, called)
        let records = try ["caller", "callee"].map { try CallJournal.records(in: "\(folder)/\($0).jsonl") }
        return (try #require(records[0].first), try #require(records[1].first))
    }

    private func codes(_ call: KeptCall) throws -> [Finding.Code] {
        CallDiagnosis(try #require(call.facts)).findings.map(\.code)
    }

    @Test("A record has the figures of its call's media, on both sides, and a call without a fault has no finding")
    func clean() async throws {
        let (caller, callee) = try await call()
        for record in [caller, callee] {
            let media = try #require(record.media, "\(record)")
            #expect(media.sent.packets >= 250 && media.received.packets >= 250 && media.received.reports > 0)
            #expect(media.sent.source == "tone" && media.sent.peak == -12 && media.received.peak ?? -100 > -20)
            #expect(media.received.clock?.rate == 48_000 && media.received.quiet ?? 9_999 < 2_000)
            #expect(try codes(record) == [])
            let timeline = try #require(record.timeline)
            #expect(timeline.step == 1 && timeline.count >= 5)
            #expect(timeline[.received].reduce(0, +) == media.received.packets)
            #expect(timeline[.sent].reduce(0, +) == media.sent.packets)
            let kinds = Set(record.moments?.map(\.kind) ?? [])
            #expect(kinds.isSuperset(of: [.answered, .established]), "\(kinds)")
        }
    }

    @Test("While a call runs, its device says what its record would be, and nothing of calls that ended")
    func running() async throws {
        let path = folder + "/caller.jsonl"
        let records = try await call(
            for: .seconds(3),
            during: { device in
                let name = try #require(try CallJournal.records(in: path).first?.call)
                let running = try #require(await device.runningRecord(name))
                let facts = try #require(running.facts)
                #expect(facts.isRunning && facts.outcome.hasSuffix("s so far.") && running.findings == [])
                #expect(facts.media?.received.packets ?? 0 >= 100 && running.timeline != nil)
                #expect(await device.runningRecord("another") == nil)
            })
        #expect(records.caller.isOver && records.caller.facts?.isRunning == false)
    }

    @Test("A call in G.711, one by ICE and DTLS, and one that echoes have no finding")
    func otherCleanCalls() async throws {
        let narrow = try await call(callee: { $0.media.codecs = [.pcmu] })
        #expect(narrow.callee.media?.received.clock?.rate == 8_000)
        #expect(try codes(narrow.caller) == [] && codes(narrow.callee) == [])
    }

    @Test("A call by ICE and DTLS has no finding")
    func webRTC() async throws {
        let calls = try await call(caller: { $0.media.offers = .webRTC })
        #expect(calls.caller.media != nil)
        #expect(try codes(calls.caller) == [] && codes(calls.callee) == [])
    }

    @Test("A call that echoes has no finding")
    func echo() async throws {
        let calls = try await call(callee: { $0.behaviour.source = .echo })
        #expect(calls.callee.media?.sent.source == "echo")
        #expect(try codes(calls.caller) == [] && codes(calls.callee) == [])
    }

    @Test("A caller who says nothing is called silent at the other side only")
    func silentCaller() async throws {
        let calls = try await call(saying: .silence)
        #expect(try codes(calls.caller) == [] && codes(calls.callee) == [.peerSilent])
    }

    @Test("A program that says nothing is named at its side; the caller hears silence")
    func silentProgram() async throws {
        let calls = try await call(callee: {
            $0.behaviour.source = .exec(ProgramPlan(command: ["sh", "-c", "exec cat >/dev/null"]))
        })
        #expect(try codes(calls.callee) == [.programSilent] && codes(calls.caller) == [.peerSilent])
    }

    @Test("Without a common codec both records name that")
    func noCommonCodec() async throws {
        let calls = try await call(
            caller: { $0.media.codecs = [.opus] }, callee: { $0.media.codecs = [.pcmu] })
        for record in [calls.caller, calls.callee] {
            let found = CallDiagnosis(try #require(record.facts)).findings
            #expect(found.map(\.code) == [.setUpFailed] && found[0].evidence.contains("noCommonCodec"))
        }
    }

    @Test("A file that cannot be used is named at its device as this side's fault")
    func fileUnusable() async throws {
        let calls = try await call(callee: { $0.behaviour.source = .file(path: "/nowhere/greeting.wav", loops: false) })
        let found = CallDiagnosis(try #require(calls.callee.facts)).findings
        #expect(found.map(\.code) == [.setUpFailed] && found[0].side == .ours)
    }

    @Test("A call that was declined is no fault, and a call that was hung up at once neither")
    func noFault() async throws {
        let calls = try await call(for: .milliseconds(200))
        #expect(try codes(calls.caller) == [] && codes(calls.callee) == [])
        #expect(calls.caller.facts?.outcome.contains("this side hung up") == true)
    }
}

/// A telephone at a SIP server that sends nothing.
@Suite("Records of calls with a telephone that sends nothing", .timeLimit(.minutes(2)))
struct OneWayCallTests {
    @Test("Nothing arrives of a telephone whose packets are lost, and the record says on whose path")
    func oneWay() async throws {
        let folder = FileManager.default.temporaryDirectory.path + "/handset-oneway-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(
            "media: { offers: plain, allow_plain_rtp: true, codecs: [pcmu], silence_timeout_s: 0 }",
            "answer: { mode: auto }", "behaviour: { source: tone }", "device: { call_records: \(folder)/calls.jsonl }")
        var call = try await telephone.call("one")
        let id = try #require(await device.device.status.calls.first?.id)
        try await until { await device.device.mediaReport(on: id)?.call.framesRun ?? 0 >= 150 }
        try await telephone.request("BYE", in: &call)
        _ = try await device.ended()
        let record = try #require(try CallJournal.records(in: folder + "/calls.jsonl").first)
        let found = CallDiagnosis(try #require(record.facts)).findings
        #expect(found.map(\.code) == [.nothingReceived] && found.first?.side == .pathHere)
        await device.device.shutDown()
    }
}
