import AudioKit
import BotCalls
import BotWire
import CallControl
import CallMedia
import ConfigReader
import Foundation
import HTTPTransport
import MediaEngine
import NIOCore
import NIOHTTP1
import TestSupport
import Testing

@testable import CallAgent

@Suite("Voice bots that are offered WebRTC legs by HTTP", .witnessed, .timeLimit(.minutes(2)))
struct BotLegTests {
    private func device(
        _ site: Site, _ port: Int, _ kind: LegKind = .smallWebRTC, _ change: (inout BotPlan) -> Void = { _ in }
    ) async throws -> Handheld {
        let address = WebAddress("http://localhost:\(port)/api/offer", WebAddress.Scheme.requests)
        var plan = BotPlan(address: try #require(address), wire: .leg(kind))
        change(&plan)
        let answering = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(4))
        return try await site.device("echo", named: "bot", answer: answering) { $0.behaviour.source = .bot(plan) }
    }

    private func temporaryFile(_ name: String) -> String {
        FileManager.default.temporaryDirectory.appending(path: "handset-leg-\(UUID())-\(name)").path()
    }

    private static let amplitude = 8_000.0

    private func writeTone(_ seconds: Double, to path: String) throws {
        var writer = try WAVWriter(path: path)
        let samples = (0..<Int(seconds * 48_000)).map {
            Int16(Self.amplitude * sin(2 * .pi * 500 * Double($0) / 48_000))
        }
        try writer.append(samples.span)
        try writer.finish()
    }

    @Test("A bot says back what its caller says, over ICE, DTLS and Opus, gets a key, and hangs up")
    func echo() async throws {
        let site = try await Site()
        let bot = try await OfferedBot(.smallWebRTC, .echo, on: site.group)
        let device = try await device(site, bot.port) { $0.parameters = ["tenant": "acme"] }
        let caller = try await site.device("caller", named: "mobile")
        for number in 1...2 {
            let kept = temporaryFile("kept.wav")
            defer { try? FileManager.default.removeItem(atPath: kept) }
            let level = 20 * log10(Self.amplitude / 32_768)
            let call = await caller.device.call(
                "echo", audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: level), recording: kept))
            _ = try await caller.flowing()
            try await until { try await #require(caller.device.mediaReport(on: call)).call.framesRun >= 100 }
            try await caller.device.press("#", on: call)
            let ended = try await caller.ended()
            #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
            #expect(try await secondsOfTone(in: kept, amplitude: Self.amplitude) > 0.5, "the tone comes back")
            #expect(bot.keys.count == number && bot.asked.count == number)
        }
        #expect(bot.asked[0].line == "POST /api/offer")
        #expect(bot.asked[0].body.contains(#""request_data":{"tenant":"acme"}"#))
        await bot.stop()
        try await site.close(caller, device)
    }

    @Test("A bot's greeting is heard whole, from the first word to the last, before its goodbye ends the call")
    func greeting() async throws {
        let (file, kept) = (temporaryFile("greeting.wav"), temporaryFile("kept.wav"))
        defer { for path in [file, kept] { try? FileManager.default.removeItem(atPath: path) } }
        try writeTone(1.5, to: file)
        let site = try await Site()
        let bot = try await OfferedBot(.smallWebRTC, .file(path: file, loops: false), on: site.group)
        let device = try await device(site, bot.port)
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence, recording: kept))
        let ended = try await caller.ended()
        #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
        let heard = try await secondsOfTone(in: kept, amplitude: Self.amplitude)
        #expect((1.4...1.6).contains(heard), "of 1.5 s said \(heard) s were heard")
        await bot.stop()
        try await site.close(caller, device)
    }

    @Test("A realtime call has its session and its key, and is hung up at its Location when the caller hangs up")
    func realtime() async throws {
        let site = try await Site()
        let bot = try await OfferedBot(.realtime, .tone(frequencyHz: 500, levelDBFS: -12), on: site.group)
        let device = try await device(site, bot.port, .realtime(session: #"{"type":"realtime"}"#)) {
            $0.token = Secret("the key")
        }
        let caller = try await site.device("caller", named: "mobile")
        let call = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await caller.flowing()
        await caller.device.hangUp(call)
        #expect(try await caller.ended().record.reason == .completed)
        try await until { bot.asked.count == 2 && bot.goodbyes > 0 }
        #expect(bot.asked[0].headers.first(name: "Content-Type")?.hasPrefix("multipart/form-data; boundary=") == true)
        #expect(bot.asked[0].body.contains("\r\n\r\n{\"type\":\"realtime\"}\r\n"))
        #expect(bot.asked[1].line == "POST /v1/realtime/calls/rtc_1/hangup")
        #expect(bot.asked.allSatisfy { $0.headers.first(name: "Authorization") == "Bearer the key" })
        await bot.stop()
        try await site.close(caller, device)
    }

    @Test("Answers that cannot be used, or that never connect, have the call rejected; with a fallback it is answered")
    func failures() async throws {
        let sorry = temporaryFile("sorry.wav")
        defer { try? FileManager.default.removeItem(atPath: sorry) }
        try writeTone(0.2, to: sorry)
        let site = try await Site()
        let caller = try await site.device("caller", named: "mobile")
        let nobody =
            "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\n"
            + "c=IN IP4 0.0.0.0\r\na=rtpmap:111 opus/48000/2\r\na=mid:0\r\na=rtcp-mux\r\na=setup:active\r\n"
            + "a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\na=fingerprint:sha-256 "
            + repeatElement("AA", count: 32).joined(separator: ":") + "\r\n"
            + "a=candidate:1 1 udp 2130706431 127.0.0.1 9 typ host\r\n"
        for (status, text, why, fallback) in [
            (302, "", "redirects", nil), (404, "", "404", nil), (200, "v=0\r\n", "leg", nil),
            (200, String(repeating: "v=0", count: 30_000), "65536", nil),
            (200, nobody, "within", nil), (500, "", "", sorry),
        ] {
            let bot = try await ScriptedBot(
                on: site.group,
                respond: { _ in
                    HTTPAnswer(
                        status: .init(statusCode: status), headers: ["Location": "/elsewhere"], body: Array(text.utf8))
                }
            ) { _, _ in }
            let device = try await device(site, bot.port, .realtime(session: nil)) {
                $0.fallback = fallback
                // Only the one that never connects is to run out of time.
                $0.answerTimeout = text == nobody ? .milliseconds(1_500) : .seconds(30)
            }
            _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
            let ended = try await caller.ended()
            if fallback == nil {
                #expect(ended.record.reason == .dialFailed && ended.record.answeredAfter == nil)
                let error = try await device.ended().record.error.map { "\($0)" } ?? ""
                #expect(error.contains(why), "\(error)")
            } else {
                #expect(ended.record.reason == .completed && ended.record.answeredAfter != nil)
            }
            // A call that the server began is hung up.
            if text.hasPrefix("v=0\r\n") { try await until { bot.questions.count == 2 } }
            #expect(bot.questions.count == (text.hasPrefix("v=0\r\n") ? 2 : 1), "a redirect is not followed")
            await device.device.shutDown()
            await bot.stop()
        }
        try await site.close(caller)
    }
}
