import AudioKit
import AudioPort
import BotWire
@testable import CallControl
import CallFlow
import CallFlows
import CallParticipation
import Core
import Foundation
import LoopbackAnalysis
import Synchronization
import TestSupport
import Testing

/// Calls in flows, whose media this test runs frame by frame.
@Suite("Calls that follow a flow", .witnessed, .serialized, .timeLimit(.minutes(2)))
struct CallFlowsTests {
    private final class Stage: @unchecked Sendable {
        // One task uses it; events come on the flows' thread, behind their lock.
        let files: FlowFiles
        let flows: CallFlows
        let call = CallID(number: 7)
        private let events = Events()
        private var line: LineBox?
        private(set) var heard: [Int16] = []

        final class Events: Sendable {
            let all = Mutex<[ParticipantEvent]>([])
        }

        private final class LineBox {
            var line: PortLine

            init(_ line: consuming PortLine) { self.line = line }
        }

        init(_ documents: [String: String], voice: [String] = [], server: FlowServerPlan? = nil) throws {
            files = try FlowFiles(documents)
            var plan = server.map { FlowPlan(server: $0) } ?? FlowPlan(file: "\(files.path)/menu.xml")
            plan.voice = voice
            plan.recordFolder = "\(files.path)/messages"
            let events = events
            flows = CallFlows(
                plan, name: { FlowCallNames(callSid: $0.isOutgoing ? "CA2" : "CA1", recording: "message") },
                publish: { event in events.all.withLock { $0.append(event) } })
        }

        var reported: [ParticipantEvent] {
            events.all.withLock { all in all.filter { if case .noted = $0 { false } else { true } } }
        }

        func begin() throws {
            try flows.begin(ParticipantCall(call, peer: "ann", own: "bob", isOutgoing: false, isAnswered: false))
        }

        func answer() async throws {
            try begin()
            try await until { !reported.isEmpty }
            guard reported == [.ready(call)], let line = flows.attach(to: call) else {
                throw FlowUnusable("\(reported)")
            }
            self.line = LineBox(line)
        }

        /// Runs frames, in which the caller says something, until a condition is met.
        func run(saying sound: [Int16] = [], until isMet: () -> Bool) async throws {
            var rest = sound[...]
            try await until {
                let frame = Array(rest.prefix(960)) + [Int16](repeating: 0, count: 960 - min(960, rest.count))
                rest = rest.dropFirst(960)
                var sent = [Int16](repeating: 0, count: 960)
                var room = sent.mutableSpan
                line?.line.exchange(received: frame.span, sending: &room)
                heard += sent
                return rest.isEmpty && isMet()
            }
        }

        func press(_ key: Character) { flows.sendDigit(key, heldFor: .milliseconds(100), to: call) }

        func forget() { heard = [] }

        func reset() { events.all.withLock { $0 = [] } }

        /// Milliseconds with sound.
        var soundMilliseconds: Int { heard.count { $0 != 0 } / 48 }

        func close() async {
            flows.end(call, .detached)
            await flows.finish()
            files.remove()
        }
    }

    @Test("A file of the flow is heard once the call runs, and the call ends behind it")
    func plays() async throws {
        let stage = try Stage(["menu.xml": "<Play loop=\"2\">a.wav</Play>"])
        try stage.files.addTone("a.wav", milliseconds: 200)
        try await stage.answer()
        try await stage.run { stage.reported.contains(.done(stage.call, failure: nil)) }
        #expect((370...400).contains(stage.soundMilliseconds), "\(stage.soundMilliseconds) ms")
        await stage.close()
        #expect(stage.reported.last == .left(stage.call))
    }

    @Test("A key stops the prompt, and the document that it names follows")
    func followsKey() async throws {
        let stage = try Stage([
            "menu.xml": "<Gather numDigits=\"1\" action=\"c-{{Digits}}.xml\"><Play loop=\"0\">a.wav</Play></Gather>",
            "c-star.xml": "<Play>b.wav</Play>",
        ])
        try stage.files.addTone("a.wav", milliseconds: 5_000)
        try stage.files.addTone("b.wav", milliseconds: 100)
        try await stage.answer()
        try await stage.run { stage.soundMilliseconds > 100 }
        stage.press("*")
        stage.forget()
        try await stage.run { stage.reported.contains(.done(stage.call, failure: nil)) }
        await stage.close()
    }

    @Test("A call is rejected instead of answered, and one whose flow fails before the answer is not accepted")
    func rejects() async throws {
        let busy = try Stage(["menu.xml": "<Reject reason=\"busy\"/>"])
        try busy.begin()
        try await until { busy.reported == [.rejected(busy.call, .busy, nil)] }
        await busy.close()
        let failing = try Stage(["menu.xml": "<Redirect>none.xml</Redirect>"])
        try failing.begin()
        try await until { !failing.reported.isEmpty }
        guard case .failed(failing.call, let why)? = failing.reported.first else { throw FlowUnusable("no failure") }
        #expect(why.hasPrefix("none.xml: cannot read"))
        await failing.close()
    }

    @Test("A text is spoken by the voice, which is run once for two calls, and gets it on its standard input")
    func speaks() async throws {
        let files = try FlowFiles()
        try files.addTone("tone.wav", milliseconds: 100)
        let script = "cat >>\(files.path)/said; cat \(files.path)/tone.wav"
        let stage = try Stage(["menu.xml": "<Say>Hello {{From}}; $(id)</Say>"], voice: ["sh", "-c", script])
        for _ in 1...2 {
            try await stage.answer()
            try await stage.run { stage.reported.contains(.done(stage.call, failure: nil)) }
            stage.flows.end(stage.call, .detached)
            try await until { stage.reported.last == .left(stage.call) }
            #expect((80...110).contains(stage.soundMilliseconds), "\(stage.soundMilliseconds) ms")
            stage.forget()
            stage.reset()
        }
        #expect(try String(contentsOfFile: "\(files.path)/said", encoding: .utf8) == "Hello ann; $(id)\n")
        await stage.close()
        files.remove()
    }

    @Test("A voice that fails, or writes no sound, ends the call with its place", arguments: ["exit 3", "echo hello"])
    func voiceFails(script: String) async throws {
        let stage = try Stage(["menu.xml": "<Say>Hello</Say>"], voice: ["sh", "-c", script])
        try await stage.answer()
        try await stage.run { stage.reported.count > 1 }
        guard case .done(stage.call, let failure?)? = stage.reported.last else { throw FlowUnusable("no failure") }
        #expect(failure.hasPrefix("menu.xml:1: Say: the voice sh "))
        await stage.close()
    }

    @Test("A message is recorded without the silence at its ends, and has its name when it is whole")
    func records() async throws {
        let stage = try Stage([
            "menu.xml": "<Record timeout=\"60\" finishOnKey=\"#\" action=\"end.xml\"/>", "end.xml": "",
        ])
        try await stage.answer()
        // The tone is heard, and then the recording runs.
        try await stage.run { stage.soundMilliseconds >= 380 }
        try await stage.run(saying: [Int16](repeating: 0, count: 48_000)) { true }
        var speaker = SyntheticSpeech(seed: 31, levelDBFS: -24)
        try await stage.run(saying: speaker.samples(seconds: 2) + [Int16](repeating: 0, count: 48_000)) { true }
        stage.press("#")
        try await stage.run { stage.reported.contains(.done(stage.call, failure: nil)) }
        let path = "\(stage.files.path)/messages/message.wav"
        let seconds = Double(try AudioFileReader.samples(ofFile: path).count) / 48_000
        #expect((1.5...3.2).contains(seconds), "\(seconds) s")
        await stage.close()
    }

    @Test("A caller who hangs up leaves the message so far, and one who says nothing leaves none")
    func hangsUp() async throws {
        for isSpeaking in [true, false] {
            let stage = try Stage(["menu.xml": "<Record playBeep=\"false\" timeout=\"60\"/>"])
            try await stage.answer()
            try await stage.run(saying: [Int16](repeating: 0, count: 24_000)) { true }
            var speaker = SyntheticSpeech(seed: 31, levelDBFS: -24)
            if isSpeaking { try await stage.run(saying: speaker.samples(seconds: 2)) { true } }
            stage.flows.end(stage.call, .detached)
            try await until { stage.reported.last == .left(stage.call) }
            let path = "\(stage.files.path)/messages/message.wav"
            if isSpeaking { try await until { FileManager.default.fileExists(atPath: path) } }
            #expect(FileManager.default.fileExists(atPath: path) == isSpeaking)
            await stage.close()
        }
    }

    // MARK: Servers

    /// A server that answers documents by path, and what a call to it is.
    private func serve(
        _ documents: [String: String], sound: [UInt8] = []
    ) throws -> (web: ScriptedWebServer, plan: FlowServerPlan) {
        let web = ScriptedWebServer { request in
            let path = String(request.target.prefix { $0 != "?" })
            if path == "/silence" { return .silence }
            if path == "/a.wav" { return .bytes(sound) }
            guard let inner = documents[path] else { return .body("", status: 404) }
            return .body(inner.hasPrefix("<") || inner.isEmpty ? "<Response>\(inner)</Response>" : inner)
        }
        let first = try #require(WebAddress("\(web.url)/menu", WebAddress.Scheme.requests))
        var plan = FlowServerPlan(first: Webhook(first))
        plan.timeout = .milliseconds(500)
        return (web, plan)
    }

    private func fields(_ request: ScriptedWebServer.Request?) -> [String: String] {
        let form = FormFields(body: Array((request?.body ?? "").utf8)) ?? FormFields()
        return Dictionary(form.fields.map { ($0.name, $0.value) }) { $1 }
    }

    @Test(
        "A server is asked for each step, its sounds are got once for two calls, and the status of calls is reported to it"
    )
    func server() async throws {
        let files = try FlowFiles()
        defer { files.remove() }
        try files.addTone("a.wav", milliseconds: 200)
        let sound = [UInt8](try Data(contentsOf: URL(fileURLWithPath: "\(files.path)/a.wav")))
        var (web, plan) = try serve(
            [
                "/menu": "<Gather numDigits=\"1\" action=\"key\"><Play>a.wav</Play></Gather>",
                "/key": "<Play>a.wav</Play>",
            ],
            sound: sound)
        defer { web.stop() }
        plan.status = try #require(WebAddress("\(web.url)/status", WebAddress.Scheme.requests))
        let stage = try Stage([:], server: plan)
        for _ in 1...2 {
            try await stage.answer()
            try await stage.run { stage.soundMilliseconds > 100 }
            stage.press("7")
            try await stage.run { stage.reported.contains(.done(stage.call, failure: nil)) }
            stage.flows.end(stage.call, .callEnded(Self.record()))
            try await until { stage.reported.last == .left(stage.call) }
            stage.forget()
            stage.reset()
        }
        await stage.close()
        let steps = web.requests.filter { !$0.target.hasPrefix("/status") && $0.method == "POST" }
        #expect(steps.map(\.target) == ["/menu", "/key", "/menu", "/key"])
        let (first, second) = (fields(steps.first), fields(steps.dropFirst().first))
        #expect(first["CallSid"] == "CA1" && first["From"] == "ann" && first["To"] == "bob" && first["Digits"] == nil)
        #expect(first["CallStatus"] == "ringing" && first["Direction"] == "inbound" && first["AccountSid"]?.count == 34)
        #expect(second["CallStatus"] == "in-progress" && second["Digits"] == "7")
        #expect(web.requests.count { $0.target == "/a.wav" && $0.method == "GET" } == 1)
        let reports = web.requests.filter { $0.target == "/status" }.map(fields).map { report in
            "\(report["SequenceNumber"] ?? "") \(report["CallStatus"] ?? "") \(report["CallDuration"] ?? "-")"
        }
        #expect(
            reports == [
                "0 initiated -", "1 in-progress -", "2 completed 0", "0 initiated -", "1 in-progress -",
                "2 completed 0",
            ])
    }

    @Test("A callee that is asked is a call of its own, by the caller, whose CallSid it has as ParentCallSid")
    func asksAsOwnCall() async throws {
        let (web, plan) = try serve([
            "/menu": "<Dial><Client url=\"ask\">cem</Client></Dial>", "/ask": "<Gather/>",
        ])
        defer { web.stop() }
        let stage = try Stage([:], server: plan)
        try await stage.answer()
        let callee = CallID(number: 8)
        let asked = try #require(WebAddress("\(web.url)/ask", WebAddress.Scheme.requests))
        stage.flows.ask(callee, by: .url(asked), for: stage.call)
        try stage.flows.begin(
            ParticipantCall(callee, peer: "cem", own: "bob", isOutgoing: true, isAnswered: true))
        try await until { web.requests.contains { $0.target == "/ask" } }
        let request = fields(web.requests.first { $0.target == "/ask" })
        #expect(request["CallSid"] == "CA2" && request["ParentCallSid"] == "CA1", "\(request)")
        #expect(request["From"] == "ann" && request["To"] == "cem" && request["Direction"] == "outbound-dial")
        #expect(fields(web.requests.first)["ParentCallSid"] == nil)
        stage.flows.end(callee, .detached)
        await stage.close()
    }

    @Test("A caller in a queue goes through its document, and its server learns that it has hung up there")
    func queue() async throws {
        let (web, plan) = try serve([
            "/menu": "<Enqueue waitUrl=\"wait\" action=\"after\">q</Enqueue>", "/wait": "<Pause length=\"60\"/>",
            "/after": "",
        ])
        defer { web.stop() }
        let stage = try Stage([:], server: plan)
        try await stage.answer()
        try await stage.run { stage.heard.count > 9_600 }
        let place = QueuePlace(
            sid: "QU1", position: 3, size: 4, most: 100, since: .zero, meanSince: .zero)
        stage.flows.report(.placed(place), to: stage.call)
        try await until { web.requests.contains { $0.target == "/wait" } }
        #expect(fields(web.requests.first { $0.target == "/wait" })["QueuePosition"] == "3")
        stage.flows.end(stage.call, .callEnded(Self.record()))
        try await until { web.requests.contains { $0.target == "/after" } }
        let last = fields(web.requests.first { $0.target == "/after" })
        #expect(last["QueueResult"] == "hangup" && last["QueueSid"] == "QU1", "\(last)")
        await stage.close()
    }

    private static func record() -> CallRecord {
        CallRecord(
            invite: "i1", direction: .incoming, peer: "ann", began: .zero, answeredAfter: .zero,
            establishedAfter: .zero, setUpTime: nil, duration: .zero, reason: .completed, endedBy: .remote, cause: nil)
    }

    @Test(
        "A server that is silent before the answer, or answers no TwiML after it, ends the call with a cause that names it"
    )
    func serverFails() async throws {
        let (web, plan) = try serve(["/menu": "<Redirect>silence</Redirect>"])
        defer { web.stop() }
        let silent = try Stage([:], server: plan)
        try silent.begin()
        try await until { !silent.reported.isEmpty }
        let cause = "\(web.url)/silence: was not answered within 500 ms"
        #expect(silent.reported.first == .failed(silent.call, cause))
        await silent.close()
        let (other, second) = try serve(["/menu": "<Gather numDigits=\"1\" action=\"no\"/>", "/no": "no TwiML"])
        defer { other.stop() }
        let broken = try Stage([:], server: second)
        try await broken.answer()
        try await broken.run { broken.heard.count > 9_600 }
        broken.press("1")
        try await broken.run { broken.reported.count > 1 }
        guard case .done(_, let why?)? = broken.reported.last else { throw FlowUnusable("\(broken.reported)") }
        #expect(why.hasPrefix("\(other.url)/no: "))
        await broken.close()
    }

    @Test("A sound that is too long, missing or no sound ends the call at its verb")
    func serverSounds() async throws {
        for (name, sound) in [("a.wav", [UInt8](repeating: 0x20, count: 100)), ("none.wav", [])] {
            let (web, plan) = try serve(["/menu": "<Play>\(name)</Play>"], sound: sound)
            let stage = try Stage([:], server: plan)
            try await stage.answer()
            try await stage.run { stage.reported.count > 1 }
            guard case .done(_, let why?)? = stage.reported.last else { throw FlowUnusable("\(stage.reported)") }
            #expect(why.hasPrefix("\(web.url)/menu:1: Play: "), "\(why)")
            await stage.close()
            web.stop()
        }
    }
}
