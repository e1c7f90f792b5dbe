import AudioKit
import AudioPort
import BotCalls
import BotWire
import Bytes
import CallAgent
import CallControl
import ConfigReader
import Foundation
import HTTPTransport
import JSON
import MediaEngine
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import TestSupport
import Testing

@Suite("Voice bots that take part in calls", .timeLimit(.minutes(2)))
struct BotTests {
    private let answering = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(4))

    private func plan(
        _ address: String, _ wire: BotProtocol = .twilio, _ change: (inout BotPlan) -> Void = { _ in }
    ) throws -> BotPlan {
        var plan = BotPlan(address: try #require(WebAddress(address, Set(WebAddress.Scheme.allCases))), wire: wire)
        change(&plan)
        return plan
    }

    private func device(_ site: Site, _ plan: BotPlan) async throws -> Handheld {
        try await site.device("echo", named: "bot", answer: answering) { $0.behaviour.source = .bot(plan) }
    }

    private func temporaryFile(_ name: String) -> String {
        FileManager.default.temporaryDirectory.appending(path: "handset-bot-\(UUID())-\(name)").path()
    }

    /// Sine of an amplitude of 8,000 at 500 Hz, in µ-law.
    private static func tone(_ seconds: Double) -> [UInt8] {
        (0..<Int(seconds * 8_000)).map { G711.muLawByte(Int16(8_000 * sin(2 * .pi * 500 * Double($0) / 8_000))) }
    }

    /// How long such a tone is in a recording.
    private func seconds(in path: String, amplitude: Double = 8_000) throws -> Double {
        let energy = try AudioFileReader.samples(ofFile: path).reduce(0) { $0 + Double($1) * Double($1) }
        return energy / (amplitude * amplitude / 2) / 48_000
    }

    /// Says back what it hears; on `#` it says a last word and closes.
    private static let echo: ScriptedBot.Script = { message, line in
        switch message?["event"]?.string {
        case "media": line.say(payload: message?["media"]?["payload"]?.string ?? "")
        case "dtmf": line.close()
        default: break
        }
    }

    @Test(
        "A bot says back what callers say, in two calls of one device, one after the other, and ends them with a close")
    func echo() async throws {
        let site = try await Site()
        let bot = try await ScriptedBot(on: site.group, Self.echo)
        let device = try await device(
            site, try plan("ws://localhost:\(bot.port)/ws") { $0.parameters = ["tenant": "acme"] })
        let caller = try await site.device("caller", named: "mobile")
        for number in 1...2 {
            let kept = temporaryFile("kept.wav")
            defer { try? FileManager.default.removeItem(atPath: kept) }
            let call = await caller.device.call(
                "echo", audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12), recording: kept))
            _ = try await caller.established()
            try await until { try await #require(caller.device.mediaReport(on: call)).call.framesRun >= 75 }
            try await caller.device.press("#", on: call)
            let ended = try await caller.ended()
            #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
            #expect(try seconds(in: kept, amplitude: 32_767 * 0.251) > 0.5, "the tone comes back")
            #expect(bot.messages("start").count == number)
        }
        let starts = bot.messages("start")
        #expect(starts[0]["start"]?["callSid"] != starts[1]["start"]?["callSid"])
        #expect(starts[0]["start"]?["customParameters"]?["tenant"]?.string == "acme")
        #expect(bot.messages("dtmf").first?["dtmf"]?["digit"]?.string == "#")
        await bot.stop()
        try await site.close(caller, device)
    }

    @Test("A bot that sends its whole greeting at once and closes is heard out before the call ends")
    func lastWord() async throws {
        let site = try await Site()
        let word = Self.tone(1.5)
        let bot = try await ScriptedBot(on: site.group) { message, line in
            guard message?["event"]?.string == "start" else { return }
            line.say(word)
            line.close()
        }
        let kept = temporaryFile("kept.wav")
        defer { try? FileManager.default.removeItem(atPath: kept) }
        let device = try await device(site, try plan("ws://127.0.0.1:\(bot.port)/ws"))
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence, recording: kept))
        let ended = try await caller.ended()
        #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
        let heard = try seconds(in: kept)
        #expect((1.4...1.6).contains(heard), "of 1.5 s said \(heard) s were heard")
        await bot.stop()
        try await site.close(caller, device)
    }

    @Test(
        "With barge_in: local the caller's speech stops a bot that does not react; its mark comes back, and what it says next is heard"
    )
    func bargeIn() async throws {
        let site = try await Site()
        let speech = try SpokenFile(pauseSeconds: 1)
        defer { speech.remove() }
        let bot = try await ScriptedBot(on: site.group) { message, line in
            switch message?["event"]?.string {
            case "start":
                line.say(Self.tone(60))
                line.mark("told")
            case "mark": line.close()
            default: break
            }
        }
        let device = try await device(site, try plan("ws://127.0.0.1:\(bot.port)/ws") { $0.bargeIn = .local })
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .file(path: speech.path, loops: false)))
        var interrupted: Duration?
        while let event = await device.next() {
            if case .interrupted(_, let played) = event { interrupted = played }
            if case .ended = event { break }
        }
        // The pauses of file and voice last 1.5 s.
        let played = try #require(interrupted)
        #expect(played > .seconds(0.8) && played < .seconds(6))
        #expect(bot.messages("mark").map { $0["mark"]?["name"]?.string } == ["told"])
        let ended = try await caller.ended()
        #expect(ended.record.duration < .seconds(20))
        await bot.stop()
        try await site.close(caller, device)
    }

    @Test("A minute and a half in one message is taken, interrupted by a clear, and its marks come back in order")
    func largestMessage() async throws {
        let site = try await Site()
        let speech = [UInt8](repeating: 0x55, count: 780_000)
        let bot = try await ScriptedBot(on: site.group) { message, line in
            switch message?["event"]?.string {
            case "start":
                line.say(Self.tone(0.2))
                line.mark("greeted")
            case "mark":
                switch message?["mark"]?["name"]?.string {
                case "greeted":
                    line.say(speech)
                    line.mark("never")
                    line.clear()
                case "never":
                    line.say(Self.tone(0.2))
                    line.mark("done")
                default: line.close()
                }
            default: break
            }
        }
        let device = try await device(site, try plan("ws://127.0.0.1:\(bot.port)/ws"))
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        let ended = try await caller.ended()
        #expect(ended.record.reason == .completed && ended.record.duration < .seconds(20))
        #expect(bot.messages("mark").map { $0["mark"]?["name"]?.string } == ["greeted", "never", "done"])
        await bot.stop()
        try await site.close(caller, device)
    }

    @Test("A bot that dies in mid-call ends the call with a reason; with a fallback the caller hears that")
    func dies() async throws {
        let (kept, sorry) = (temporaryFile("kept.wav"), temporaryFile("sorry.wav"))
        defer { for path in [kept, sorry] { try? FileManager.default.removeItem(atPath: path) } }
        try writeTone(1, to: sorry)
        let site = try await Site()
        let bot = try await ScriptedBot(on: site.group) { message, line in
            guard message?["event"]?.string == "media" else { return }
            line.count += 1
            if line.count == 10 { line.die() }
        }
        let caller = try await site.device("caller", named: "mobile")
        var device = try await device(site, try plan("ws://127.0.0.1:\(bot.port)/ws"))
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        let (_, theirs) = (try await caller.ended(), try await device.ended())
        #expect(theirs.record.cause == .deviceFault)
        #expect(theirs.record.error.map { "\($0)" }?.contains("without a goodbye") == true)
        await device.device.shutDown()
        device = try await self.device(site, try plan("ws://127.0.0.1:\(bot.port)/ws") { $0.fallback = sorry })
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence, recording: kept))
        let ended = try await caller.ended()
        #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
        let heard = try seconds(in: kept)
        #expect((0.9...1.1).contains(heard), "of 1 s of the fallback \(heard) s were heard")
        await bot.stop()
        try await site.close(caller, device)
    }

    private func writeTone(_ seconds: Double, to path: String) throws {
        let samples = (0..<Int(seconds * 48_000)).map { Int16(8_000 * sin(2 * .pi * 500 * Double($0) / 48_000)) }
        var bytes: [UInt8] = Array("RIFF".utf8)
        func append(_ value: Int, _ count: Int) {
            for index in 0..<count { bytes.append(UInt8(value >> (8 * index) & 0xFF)) }
        }
        append(36 + samples.count * 2, 4)
        bytes += Array("WAVEfmt ".utf8)
        for (value, count) in [(16, 4), (1, 2), (1, 2), (48_000, 4), (96_000, 4), (2, 2), (16, 2)] {
            append(value, count)
        }
        bytes += Array("data".utf8)
        append(samples.count * 2, 4)
        for sample in samples { append(Int(UInt16(bitPattern: sample)), 2) }
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }

    @Test(
        "A bot that never answers has its calls rejected after the configured time; with a fallback they are answered")
    func neverAnswers() async throws {
        let sorry = temporaryFile("sorry.wav")
        defer { try? FileManager.default.removeItem(atPath: sorry) }
        try writeTone(0.3, to: sorry)
        let site = try await Site()
        let mute = try await AudioSocketBot(isMute: true, on: site.group)
        let caller = try await site.device("caller", named: "mobile")
        for address in ["ws://127.0.0.1:\(mute.port)/ws", "http://127.0.0.1:\(mute.port)/answer"] {
            let device = try await device(site, try plan(address) { $0.answerTimeout = .milliseconds(300) })
            _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
            let (mine, theirs) = (try await caller.ended(), try await device.ended())
            #expect(mine.record.reason == .dialFailed && mine.record.answeredAfter == nil)
            #expect(theirs.record.reason == .acceptFailed && theirs.record.cause == .deviceFault)
            #expect(theirs.record.error.map { "\($0)" }?.contains("within") == true)
            await device.device.shutDown()
        }
        let device = try await device(
            site,
            try plan("ws://127.0.0.1:\(mute.port)/ws") {
                $0.answerTimeout = .milliseconds(300)
                $0.fallback = sorry
            })
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        #expect(try await caller.ended().record.reason == .completed)
        await mute.stop()
        try await site.close(caller, device)
    }

    @Test("A bot that is not there has the call rejected, with the reason in this device's record")
    func missing() async throws {
        let site = try await Site()
        let device = try await device(site, try plan("ws://127.0.0.1:9/ws"))
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        let (mine, theirs) = (try await caller.ended(), try await device.ended())
        #expect(!mine.record.reason.isSuccess && theirs.record.reason == .acceptFailed)
        #expect(theirs.record.error.map { "\($0)" }?.contains("nothing listens at 127.0.0.1:9") == true)
        try await site.close(caller, device)
    }

    @Test(
        "A bot that floods the call and reads nothing does not disturb another call, and the flood of rubbish ends its own"
    )
    func floods() async throws {
        let kept = temporaryFile("kept.wav")
        defer { try? FileManager.default.removeItem(atPath: kept) }
        let site = try await Site()
        let isFirst = Flag()
        let noise = Base64.text([UInt8](repeating: 0x33, count: 200_000))
        let bot = try await ScriptedBot(on: site.group) { message, line in
            switch message?["event"]?.string {
            case "start" where isFirst.take():
                line.count = 1
                for number in 0..<15 {
                    line.say(payload: noise)
                    line.mark("\(number)")
                }
                line.stopReading()
            case "media" where line.count == 0: line.say(payload: message?["media"]?["payload"]?.string ?? "")
            case "dtmf": for _ in 0..<300 { line.sendText("{\"event\":\"dance\"}") }
            default: break
            }
        }
        let device = try await device(site, try plan("ws://127.0.0.1:\(bot.port)/ws"))
        let caller = try await site.device("caller", named: "mobile")
        let flooded = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await caller.established()
        let second = await caller.device.call(
            "echo", audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12), recording: kept))
        _ = try await caller.established()
        try await until { try await #require(caller.device.mediaReport(on: second)).call.framesRun >= 75 }
        #expect(bot.messages("mark").isEmpty)
        try await caller.device.press("1", on: second)
        let ended = try await caller.ended()
        #expect(ended.record.endedBy == .remote && ended.record.reason != .completed)
        #expect(try seconds(in: kept, amplitude: 32_767 * 0.251) > 0.4, "the other call's bot is heard")
        await caller.device.hangUp(flooded)
        #expect(try await caller.ended().record.reason == .completed)
        await bot.stop()
        try await site.close(caller, device)
    }

    @Test(
        "A webhook is asked with a signature, names the bot, and is told when the call is over; some callers it rejects"
    )
    func webhook() async throws {
        let site = try await Site()
        let markup =
            "<Response><Connect><Stream url=\"ws://127.0.0.1:PORT/ws\"><Parameter name=\"who\" value=\"you\"/></Stream>"
            + "</Connect></Response>"
        let bot = try await ScriptedBot(markup: markup, on: site.group) { message, line in
            guard message?["event"]?.string == "start" else { return }
            line.say(Self.tone(0.2))
            line.close()
        }
        let address = "http://127.0.0.1:\(bot.port)/answer"
        var device = try await device(
            site,
            try plan(address) {
                $0.token = Secret("12345")
                $0.statusCallback = WebAddress("http://127.0.0.1:\(bot.port)/status", [.http])
            })
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        #expect(try await caller.ended().record.reason == .completed)
        try await until { bot.questions.count == 2 }
        let question = bot.questions[0]
        let form = try #require(FormFields(body: Array(question.body.utf8)))
        #expect(form.values("From") == ["caller"] && form.values("CallStatus") == ["ringing"])
        #expect(question.signature == TwilioSignature.text(of: address, form, token: "12345"))
        let start = try #require(bot.messages("start").first)
        #expect(start["start"]?["customParameters"]?["who"]?.string == "you")
        #expect(start["start"]?["callSid"]?.string == form.values("CallSid").first)
        #expect(bot.questions[1].body.contains("CallStatus=completed"))
        await device.device.shutDown()
        await bot.stop()
        for (answer, status, reason) in [
            ("<Response><Reject reason=\"busy\"/></Response>", 200, CallEndReason.busy),
            ("<Response><Hangup/></Response>", 200, .declined),
            ("<Response><Connect><Stream url=\"ws://127.0.0.2:PORT/\"/></Connect></Response>", 200, .dialFailed),
            ("<!DOCTYPE r [<!ENTITY a \"b\">]><Response>&a;</Response>", 200, .dialFailed),
            ("", 302, .dialFailed), ("", 500, .dialFailed),
        ] {
            let other = try await ScriptedBot(markup: answer, status: .init(statusCode: status), on: site.group) {
                _, _ in
            }
            device = try await self.device(site, try plan("http://127.0.0.1:\(other.port)/answer"))
            _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
            let ended = try await caller.ended()
            #expect(ended.record.reason == reason, "\(answer) \(status)")
            #expect(other.questions.count == 1, "a redirect is not followed")
            await other.stop()
            await device.device.shutDown()
        }
        try await site.close(caller)
    }

    /// Sends a request, and returns its status.
    private func ask(
        _ method: HTTPMethod, _ port: Int, _ path: String, _ authorization: String, _ body: String = "", on site: Site
    ) async throws -> Int {
        let request = HTTPFetch.Request(
            method, try HTTPEndpoint("http://127.0.0.1:\(port)"), target: path,
            headers: ["Authorization": authorization, "Content-Type": "application/x-www-form-urlencoded"],
            body: Array(body.utf8))
        return try await HTTPFetch.send(
            request, to: try SocketAddress(ipAddress: "127.0.0.1", port: port), trust: .system,
            within: .init(bodyBytes: 10_000, time: .seconds(30)), on: site.group.next()
        ).get().status
    }

    @Test(
        "A bot ends its call by a request, and is heard out; without the password, or for another call, it is refused")
    func requests() async throws {
        let kept = temporaryFile("kept.wav")
        defer { try? FileManager.default.removeItem(atPath: kept) }
        let site = try await Site()
        let bot = try await ScriptedBot(on: site.group) { message, line in
            if message?["event"]?.string == "start" { line.say(Self.tone(1.5)) }
        }
        let device = try await device(
            site,
            try plan("ws://127.0.0.1:\(bot.port)/ws") {
                $0.requests = BotPlan.Requests(
                    listen: ConfigEndpoint(host: "127.0.0.1", port: 0), password: Secret("open"))
            })
        let port = try #require(await device.device.botRequestPort)
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence, recording: kept))
        _ = try await caller.established()
        try await until { !bot.messages("start").isEmpty }
        let call = try #require(bot.messages("start").first?["start"]?["callSid"]?.string)
        let account = BotPlan.usualAccount
        func basic(_ password: String) -> String { "Basic " + Base64.text(Array("\(account):\(password)".utf8)) }
        let calls = "/2010-04-01/Accounts/\(account)/Calls"
        #expect(try await ask(.POST, port, "\(calls)/\(call).json", basic("shut"), "Status=completed", on: site) == 401)
        #expect(try await ask(.POST, port, "\(calls)/CAother.json", basic("open"), "Status=completed", on: site) == 404)
        #expect(try await ask(.POST, port, "\(calls)/\(call).json", basic("open"), "Status=maybe", on: site) == 400)
        #expect(try await ask(.GET, port, "\(calls)/\(call).json", basic("open"), on: site) == 405)
        #expect(try await ask(.GET, port, "/", basic("open"), on: site) == 404)
        #expect(try await ask(.POST, port, "\(calls)/\(call).json", basic("open"), "Status=completed", on: site) == 200)
        let ended = try await caller.ended()
        #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
        let heard = try seconds(in: kept)
        #expect((1.4...1.6).contains(heard), "of 1.5 s said \(heard) s were heard")
        await bot.stop()
        try await site.close(caller, device)
    }

    @Test("A bot over AudioSocket says back what it hears at 16 kHz, and hangs up on a key")
    func audioSocket() async throws {
        let kept = temporaryFile("kept.wav")
        defer { try? FileManager.default.removeItem(atPath: kept) }
        let site = try await Site()
        let bot = try await AudioSocketBot(on: site.group)
        let device = try await device(site, try plan("tcp://127.0.0.1:\(bot.port)", .audioSocket(.hz16000)))
        let caller = try await site.device("caller", named: "mobile")
        let call = await caller.device.call(
            "echo", audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12), recording: kept))
        _ = try await caller.established()
        try await until { try await #require(caller.device.mediaReport(on: call)).call.framesRun >= 75 }
        try await caller.device.press("#", on: call)
        let ended = try await caller.ended()
        #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
        #expect(try seconds(in: kept, amplitude: 32_767 * 0.251) > 0.5, "the tone comes back")
        await bot.stop()
        try await site.close(caller, device)
    }

    @Test("A call that this device makes is connected with its bot, too")
    func outgoing() async throws {
        let kept = temporaryFile("kept.wav")
        defer { try? FileManager.default.removeItem(atPath: kept) }
        let site = try await Site()
        let bot = try await ScriptedBot(on: site.group) { message, line in
            guard message?["event"]?.string == "start" else { return }
            line.say(Self.tone(0.5))
            line.close()
        }
        let device = try await device(site, try plan("ws://127.0.0.1:\(bot.port)/ws"))
        let callee = try await site.device(
            "caller", named: "mobile", answer: AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(1))
        ) {
            $0.behaviour.source = .silence
            $0.behaviour.recordingFolder = kept
        }
        _ = await device.device.call("caller")
        let ended = try await callee.ended()
        #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
        let file = try #require(try FileManager.default.contentsOfDirectory(atPath: kept).first)
        #expect((0.4...0.6).contains(try seconds(in: "\(kept)/\(file)")))
        await bot.stop()
        try await site.close(callee, device)
    }
}

/// True once.
private final class Flag: Sendable {
    private let isUp = Mutex(true)

    func take() -> Bool {
        isUp.withLock { isUp in
            defer { isUp = false }
            return isUp
        }
    }
}
