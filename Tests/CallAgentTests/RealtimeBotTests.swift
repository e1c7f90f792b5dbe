import AudioKit
import BotCalls
import BotWire
import CallAgent
import CallControl
import ConfigReader
import Core
import Foundation
import HTTPTransport
import JSON
import MediaEngine
import NIOHTTP1
import TestSupport
import Testing

@Suite("Bots behind the WebSocket of the Realtime API", .witnessed, .timeLimit(.minutes(2)))
struct RealtimeBotTests {
    private func device(
        _ site: Site, _ bot: ScriptedBot, _ settings: RealtimeWire.Settings,
        _ change: (inout BotPlan) -> Void = { _ in }
    ) async throws -> Handheld {
        let address = WebAddress("ws://127.0.0.1:\(bot.port)/v1/realtime?model=m", WebAddress.Scheme.sockets)
        var plan = BotPlan(address: try #require(address), wire: .realtime(settings))
        change(&plan)
        let answering = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(4))
        return try await site.device("echo", named: "bot", answer: answering) { $0.behaviour.source = .bot(plan) }
    }

    private func temporaryFile(_ name: String) -> String {
        FileManager.default.temporaryDirectory.appending(path: "handset-realtime-\(UUID())-\(name)").path()
    }

    /// Sine of an amplitude of 8,000 at 500 Hz.
    private static func tone(_ seconds: Double, _ format: RealtimeWire.Format) -> [UInt8] {
        let rate = format == .pcm ? 24_000 : 8_000
        return (0..<Int(seconds * Double(rate))).flatMap { index -> [UInt8] in
            let sample = Int16(8_000 * sin(2 * .pi * 500 * Double(index) / Double(rate)))
            guard format == .pcm else { return [G711.muLawByte(sample)] }
            return [UInt8(truncatingIfNeeded: sample), UInt8(truncatingIfNeeded: sample >> 8)]
        }
    }

    private static func say(_ sound: [UInt8], of item: String, in response: String, on line: ScriptedBot.Line) {
        for start in stride(from: 0, to: sound.count, by: 48_000) {
            line.send([
                "type": "response.output_audio.delta", "item_id": .string(item), "response_id": .string(response),
                "content_index": 0, "delta": .string(Base64.text(Array(sound[start...].prefix(48_000)))),
            ])
        }
        line.send(["type": "response.output_audio.done", "item_id": .string(item), "response_id": .string(response)])
    }

    private static func hangUp(_ line: ScriptedBot.Line) {
        line.send([
            "type": "response.output_item.done",
            "item": ["type": "function_call", "name": "end_call", "status": "completed", "arguments": "{}"],
        ])
    }

    @Test(
        "A session is configured with the key, greets, hears the caller, and hangs up by its function once it is heard out",
        arguments: [RealtimeWire.Format.pcm, .pcmu])
    func call(format: RealtimeWire.Format) async throws {
        let site = try await Site()
        let bot = try await ScriptedBot(on: site.group) { message, line in
            switch message?["type"]?.string {
            case "session.update": line.send(["type": "session.updated", "session": message?["session"] ?? [:]])
            case "response.create": Self.say(Self.tone(1, format), of: "greeting", in: "1", on: line)
            case "input_audio_buffer.append":
                line.count += 1
                guard line.count == 25 else { return }
                Self.say(Self.tone(0.5, format), of: "answer", in: "2", on: line)
                Self.hangUp(line)
            default: break
            }
        }
        let kept = temporaryFile("kept.wav")
        defer { try? FileManager.default.removeItem(atPath: kept) }
        let device = try await device(
            site, bot,
            .init(
                format: format, version: format == .pcm ? .ga : .beta, session: #"{"instructions":"Be brief."}"#,
                speaksFirst: true, hangUpFunction: "end_call")
        ) { $0.token = Secret("the key") }
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence, recording: kept))
        let ended = try await caller.ended()
        #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
        let heard = try await secondsOfTone(in: kept)
        #expect((1.4...1.6).contains(heard), "of 1.5 s said \(heard) s were heard")
        #expect(bot.openings.map { $0.first(name: "Authorization") } == ["Bearer the key"])
        #expect(bot.openings.map { $0.first(name: "OpenAI-Beta") } == [format == .pcm ? nil : "realtime=v1"])
        #expect(bot.openings.first?.first(name: "X-Twilio-Signature") == nil)
        #expect(bot.messages(type: "session.update").first?["session"]?["instructions"] == "Be brief.")
        let piece = try #require(bot.messages(type: "input_audio_buffer.append").dropFirst(5).first?["audio"]?.string)
        // A loop that is late sends several frames in one message.
        let bytes = try #require(Base64.lenientBytes(of: piece.utf8)?.count)
        #expect(bytes > 0 && bytes % (format == .pcm ? 960 : 160) == 0, "frames of 20 ms")
        await bot.stop()
        try await site.close(caller, device)
    }

    @Test("When the server hears the caller, a minute of sound stops, and the server learns how much was heard")
    func interruption() async throws {
        let site = try await Site()
        let bot = try await ScriptedBot(on: site.group) { message, line in
            switch message?["type"]?.string {
            case "session.update":
                line.send(["type": "session.updated", "session": [:]])
                Self.say(Self.tone(60, .pcm), of: "story", in: "1", on: line)
            case "input_audio_buffer.append":
                line.count += 1
                if line.count == 75 { line.send(["type": "input_audio_buffer.speech_started"]) }
            case "conversation.item.truncate": Self.hangUp(line)
            default: break
            }
        }
        let kept = temporaryFile("kept.wav")
        defer { try? FileManager.default.removeItem(atPath: kept) }
        let device = try await device(site, bot, .init(hangUpFunction: "end_call"))
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence, recording: kept))
        #expect(try await caller.ended().record.reason == .completed)
        let truncation = try #require(bot.messages(type: "conversation.item.truncate").first)
        let milliseconds = try #require(truncation["audio_end_ms"]?.integer)
        #expect(truncation["item_id"] == "story" && truncation["content_index"] == 0)
        let heard = try await secondsOfTone(in: kept)
        #expect(heard > 1 && heard < 10, "\(heard) s were heard")
        #expect(
            abs(Double(milliseconds) / 1_000 - heard) < 0.1, "\(milliseconds) ms were reported, \(heard) s were heard")
        await bot.stop()
        try await site.close(caller, device)
    }

    @Test("A server that never confirms the session, or refuses it, has the call rejected with the reason")
    func refusals() async throws {
        let site = try await Site()
        let caller = try await site.device("caller", named: "mobile")
        for (answer, reason) in [
            (nil, "take part in the call within"),
            (["type": "error", "error": ["code": "invalid_api_key"]], "invalid_api_key; see auth_token_file"),
        ] as [(JSONValue?, String)] {
            let bot = try await ScriptedBot(on: site.group) { message, line in
                if message != nil, let answer { line.send(answer) }
            }
            let device = try await device(site, bot, .init()) { $0.answerTimeout = .milliseconds(500) }
            _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
            let (mine, theirs) = (try await caller.ended(), try await device.ended())
            #expect(mine.record.reason == .dialFailed && mine.record.answeredAfter == nil)
            #expect(theirs.record.error.map { "\($0)" }?.contains(reason) == true, "\(theirs.record)")
            await device.device.shutDown()
            await bot.stop()
        }
        try await site.close(caller)
    }
}
