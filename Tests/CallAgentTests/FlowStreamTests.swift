import AudioKit
import AudioPort
import CallControl
import CallFlows
import CallMedia
import Core
import Foundation
import JSON
import TestSupport
import Testing

@testable import CallAgent

/// Callers of a device's flow whose sound is streamed to a server of bots, on real sockets.
@Suite("Streams of call flows on real sockets", .witnessed, .serialized, .timeLimit(.minutes(2)))
struct FlowStreamTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "handset-streams-\(UUID())")
    private let answering = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(4))

    init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

    private func path(_ name: String) -> String { folder.appending(path: name).path() }

    private func write(_ inner: String, to name: String) throws {
        try "<Response>\(inner)</Response>".write(toFile: path(name), atomically: true, encoding: .utf8)
    }

    private func desk(_ site: Site, _ inner: String, hosts: [String] = ["127.0.0.1"]) async throws -> Handheld {
        try write(inner, to: "menu.xml")
        return try await site.device("echo", named: "desk", answer: answering) {
            var plan = FlowPlan(file: path("menu.xml"))
            plan.streamHosts = hosts
            $0.behaviour.source = .flow(plan)
        }
    }

    private func addTone(_ name: String, seconds: Double, hertz: Double) throws {
        var tone = ToneGenerator(frequencyHz: hertz, levelDBFS: -12)
        var samples = [Int16](repeating: 0, count: Int(seconds * 48_000))
        var room = samples.mutableSpan
        tone.fill(&room)
        var writer = try WAVWriter(path: path(name))
        try writer.append(samples.span)
        try writer.finish()
    }

    /// The amplitude of a tone in the last half second of µ-law at 8 kHz.
    private func amplitude(_ hertz: Double, in bytes: [UInt8]) -> Double {
        let samples = PortFormat(rate: .hz8000, encoding: .muLaw).samples(of: bytes.suffix(4_000))
        var (real, imaginary) = (0.0, 0.0)
        for (index, sample) in samples.enumerated() {
            let turn = 2 * Double.pi * hertz * Double(index) / 8_000
            real += Double(sample) * cos(turn)
            imaginary += Double(sample) * sin(turn)
        }
        return 2 * (real * real + imaginary * imaginary).squareRoot() / Double(max(1, samples.count))
    }

    private func sound(_ bot: ScriptedBot, _ track: String) -> [UInt8] {
        bot.messages("media").filter { $0["media"]?["track"]?.string == track }.flatMap {
            Base64.bytes(of: ($0["media"]?["payload"]?.string ?? "").utf8) ?? []
        }
    }

    @Test(
        "Connect joins the caller with a bot that says back what it hears and gets keys; the flow continues when the bot closes"
    )
    func connect() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site()
        let bot = try await ScriptedBot(on: site.group) { message, line in
            switch message?["event"]?.string {
            case "media": line.say(payload: message?["media"]?["payload"]?.string ?? "")
            case "dtmf": line.close()
            default: break
            }
        }
        try addTone("bye.wav", seconds: 1, hertz: 900)
        try write("<Play>bye.wav</Play>", to: "after-stream-stopped.xml")
        let device = try await desk(
            site,
            """
            <Connect action="after-{{StreamEvent}}.xml"><Stream url="ws://127.0.0.1:\(bot.port)/talk">
            <Parameter name="caller" value="{{From}}"/></Stream></Connect>
            """)
        let caller = try await site.device("caller", named: "mobile")
        let call = await caller.device.call(
            "echo",
            audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12), recording: path("kept.wav")))
        _ = try await caller.flowing()
        // A second and a half with the bot.
        try await until { bot.messages("media").count >= 75 }
        try await caller.device.press("#", on: call)
        let ended = try await caller.ended()
        #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
        let start = bot.messages("start").first?["start"]
        #expect(start?["customParameters"]?["caller"]?.string == "caller")
        #expect(start?["callSid"]?.string?.hasPrefix("CA") == true && start?["tracks"] == ["inbound"])
        #expect(bot.messages("dtmf").first?["dtmf"]?["digit"]?.string == "#")
        #expect(
            try await toneAmplitude(440, in: path("kept.wav"), before: 2) > 2_000, "the bot says back what it hears")
        #expect(try await toneAmplitude(900, in: path("kept.wav"), before: 0.5) > 2_000, "the flow continues")
        await bot.stop()
        try await site.close(caller, device)
    }

    @Test("Start forks both sides while the flow continues, a bot that talks is not heard, and Stop ends it")
    func start() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site()
        let bot = try await ScriptedBot(on: site.group) { message, line in
            if message?["event"]?.string == "media" { line.say([UInt8](repeating: 0, count: 160)) }
        }
        try addTone("prompt.wav", seconds: 3, hertz: 900)
        let device = try await desk(
            site,
            """
            <Start><Stream name="log" track="both_tracks" url="ws://127.0.0.1:\(bot.port)/hear"/></Start>
            <Play>prompt.wav</Play><Stop><Stream name="log"/></Stop><Pause length="1"/>
            """)
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call(
            "echo",
            audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12), recording: path("kept.wav")))
        _ = try await caller.flowing()
        let ended = try await caller.ended()
        #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
        let (heard, said) = (sound(bot, "inbound"), sound(bot, "outbound"))
        #expect(amplitude(440, in: heard) > 2_000 && amplitude(900, in: heard) < 500, "the caller")
        #expect(amplitude(900, in: said.dropLast(800)) > 2_000 && amplitude(440, in: said) < 500, "the flow")
        let seconds = Double(heard.count) / 8_000
        #expect((2.4...3.6).contains(seconds), "\(seconds) s, which is the file's length, and not the pause's")
        #expect(heard.count == said.count)
        #expect(bot.messages("stop").count == 1)
        await bot.stop()
        try await site.close(caller, device)
    }

    @Test("A host that is not listed is not connected with, which the log says, and the flow continues")
    func refusesHost() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try await Site()
        let bot = try await ScriptedBot(on: site.group) { _, _ in }
        try addTone("bye.wav", seconds: 0.3, hertz: 900)
        let url = "ws://127.0.0.1:\(bot.port)/"
        let device = try await desk(
            site,
            "<Start><Stream url=\"\(url)\"/></Start><Connect><Stream url=\"\(url)\"/></Connect><Play>bye.wav</Play>",
            hosts: ["*.bots.example"])
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call(
            "echo", audio: AudioBehaviour(source: .silence, recording: path("kept.wav")))
        let ended = try await caller.ended()
        #expect(ended.record.reason == .completed)
        #expect(try await toneAmplitude(900, in: path("kept.wav"), before: 0.3) > 1_000)
        #expect(bot.openings.isEmpty)
        await bot.stop()
        try await site.close(caller, device)
    }
}
