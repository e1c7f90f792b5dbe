import AudioKit
import AudioPort
import BotCalls
import BotWire
import Core
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

@Suite("Voice bots that take part in calls", .witnessed, .timeLimit(.minutes(2)))
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
        try await site.device("echo", named: "bot", answer: answering) {
            $0.behaviour.source = .bot(plan)
            $0.account.callees = CalleeList([CalleePattern("caller")].compactMap { $0 })
        }
    }

    private func temporaryFile(_ name: String) -> String {
        FileManager.default.temporaryDirectory.appending(path: "handset-bot-\(UUID())-\(name)").path()
    }

    /// Sine of an amplitude of 8,000 at 500 Hz, in µ-law.
    private static func tone(_ seconds: Double) -> [UInt8] {
        (0..<Int(seconds * 8_000)).map { G711.muLawByte(Int16(8_000 * sin(2 * .pi * 500 * Double($0) / 8_000))) }
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
            _ = try await caller.flowing()
            try await until { try await #require(caller.device.mediaReport(on: call)).call.framesRun >= 75 }
            try await caller.device.press("#", on: call)
            let ended = try await caller.ended()
            #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
            #expect(try await secondsOfTone(in: kept, amplitude: 32_767 * 0.251) > 0.5, "the tone comes back")
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
        let heard = try await secondsOfTone(in: kept)
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
        #expect(theirs.record.error.map { "\($0)" }?.contains("without a close frame") == true)
        await device.device.shutDown()
        device = try await self.device(site, try plan("ws://127.0.0.1:\(bot.port)/ws") { $0.fallback = sorry })
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence, recording: kept))
        let ended = try await caller.ended()
        #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
        let heard = try await secondsOfTone(in: kept)
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
        _ = try await caller.flowing()
        let second = await caller.device.call(
            "echo", audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12), recording: kept))
        _ = try await caller.flowing()
        try await until { try await #require(caller.device.mediaReport(on: second)).call.framesRun >= 75 }
        #expect(bot.messages("mark").isEmpty)
        try await caller.device.press("1", on: second)
        let ended = try await caller.ended()
        #expect(ended.record.endedBy == .remote && ended.record.reason != .completed)
        #expect(try await secondsOfTone(in: kept, amplitude: 32_767 * 0.251) > 0.4, "the other call's bot is heard")
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

    @Test("The status callback of a call that the device's end ends is sent before the device is gone")
    func lastNews() async throws {
        let site = try await Site()
        let bot = try await ScriptedBot(on: site.group) { _, _ in }
        let device = try await device(
            site,
            try plan("ws://127.0.0.1:\(bot.port)/ws") {
                $0.statusCallback = WebAddress("http://127.0.0.1:\(bot.port)/status", [.http])
            })
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await caller.flowing()
        await device.device.shutDown()
        #expect(bot.questions.count == 1 && bot.questions.last?.body.contains("CallStatus=completed") == true)
        await bot.stop()
        try await site.close(caller)
    }

    @Test("Plivo's bots are told of the beginning and the end of a call as that service does")
    func plivoNews() async throws {
        let site = try await Site()
        let bot = try await ScriptedBot(
            markup: "<Response><Stream bidirectional=\"true\">ws://127.0.0.1:PORT/ws</Stream></Response>",
            on: site.group
        ) { message, line in
            if message?["event"]?.string == "start" { line.close() }
        }
        let device = try await device(
            site,
            try plan("http://127.0.0.1:\(bot.port)/answer", .plivo(.mulaw)) {
                $0.statusCallback = WebAddress("http://127.0.0.1:\(bot.port)/status", [.http])
            })
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await caller.ended()
        try await until { bot.questions.count == 2 }
        let forms = bot.questions.compactMap { FormFields(body: Array($0.body.utf8)) }
        #expect(forms.map { $0.values("Event") } == [["StartApp"], ["Hangup"]])
        #expect(forms[0].values("CallUUID") == forms[1].values("CallUUID") && forms[1].values("Duration").count == 1)
        await device.device.shutDown()
        await bot.stop()
        try await site.close(caller)
    }

    @Test("A device that takes no more calls makes none")
    func draining() async throws {
        let site = try await Site()
        let bot = try await ScriptedBot(on: site.group) { _, _ in }
        let device = try await device(site, try plan("ws://127.0.0.1:\(bot.port)/ws"))
        let callee = try await site.device("caller", named: "mobile", answer: answering)
        await device.device.finishCalls(within: .seconds(1))
        _ = await device.device.call("caller")
        #expect(try await device.ended().record.cause == .deviceFull)
        await bot.stop()
        try await site.close(callee, device)
    }

    /// Sends a request, and returns its status.
    private func ask(
        _ method: HTTPMethod, _ port: Int, _ path: String, _ authorization: String, _ body: String = "", on site: Site
    ) async throws -> Int {
        try await send(method, "http://127.0.0.1:\(port)", path, authorization, body, on: site).status
    }

    private func send(
        _ method: HTTPMethod, _ server: String, _ path: String, _ authorization: String, _ body: String = "",
        trust: TLSTrust = .system, on site: Site
    ) async throws -> HTTPFetch.Answer {
        let endpoint = try HTTPEndpoint(server)
        let request = HTTPFetch.Request(
            method, endpoint, target: path,
            headers: ["Authorization": authorization, "Content-Type": "application/x-www-form-urlencoded"],
            body: Array(body.utf8))
        return try await HTTPFetch.send(
            request, to: try NIOCore.SocketAddress(ipAddress: "127.0.0.1", port: endpoint.port), trust: trust,
            within: .init(bodyBytes: 10_000, time: .seconds(30)), on: site.group.next()
        ).get()
    }

    private func basic(_ user: String, _ password: String) -> String {
        "Basic " + Base64.text(Array("\(user):\(password)".utf8))
    }

    /// A plan whose bot's server may place calls.
    private func placingPlan(_ bot: ScriptedBot, _ change: (inout BotPlan.PlacedCalls) -> Void = { _ in }) throws
        -> BotPlan
    {
        try plan("ws://127.0.0.1:\(bot.port)/ws") {
            var calls = BotPlan.PlacedCalls(key: "SK1", password: Secret("place"))
            change(&calls)
            $0.requests = BotPlan.Requests(
                listen: ConfigEndpoint(host: "127.0.0.1", port: 0), password: Secret("open"))
            $0.requests?.calls = calls
        }
    }

    private static let calls = "/2010-04-01/Accounts/\(BotPlan.usualAccount)/Calls"

    @Test("A bot's server places a call, which is connected as it says, and is told how it goes, in order")
    func places() async throws {
        let site = try await Site()
        let bot = try await ScriptedBot(on: site.group) { message, line in
            guard message?["event"]?.string == "start" else { return }
            line.say(Self.tone(0.3))
            line.close()
        }
        let device = try await device(site, try placingPlan(bot))
        let callee = try await site.device("caller", named: "mobile", answer: answering) {
            $0.behaviour.source = .silence
        }
        let server = "http://127.0.0.1:\(try #require(await device.device.botRequestPort))"
        let twiml = "<Response><Connect><Stream url=\"ws://127.0.0.1:\(bot.port)/ws\"/></Connect></Response>"
        let form = FormFields([
            .init("To", "caller"), .init("From", "+1"), .init("Twiml", twiml),
            .init("StatusCallback", "http://127.0.0.1:\(bot.port)/status"),
            .init("StatusCallbackEvent", "initiated ringing answered completed"),
        ])
        let body = String(decoding: form.body, as: UTF8.self)
        let answer = try await send(.POST, server, "\(Self.calls).json", basic("SK1", "place"), body, on: site)
        let placed = try #require(JSONValue(plain: answer.body, nesting: 4))
        #expect(answer.status == 201 && placed["status"]?.string == "queued" && placed["to"]?.string == "caller")
        let ended = try await callee.ended()
        #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
        #expect(bot.messages("start").first?["start"]?["callSid"] == placed["sid"])
        try await until { bot.questions.count == 4 }
        let told = bot.questions.compactMap { FormFields(body: Array($0.body.utf8)) }
        #expect(
            told.flatMap { $0.values("CallStatus") } == ["initiated", "ringing", "in-progress", "completed"])
        #expect(told.flatMap { $0.values("SequenceNumber") } == ["0", "1", "2", "3"])
        #expect(told.allSatisfy { $0.values("CallSid").first == placed["sid"]?.string })
        #expect(told.allSatisfy { $0.values("Direction") == ["outbound-api"] && $0.values("To") == ["caller"] })
        await bot.stop()
        try await site.close(callee, device)
    }

    @Test("A call that a bot's server places has the bot, also where the bot is only attached to other calls")
    func placesWithAttachment() async throws {
        let site = try await Site()
        let bot = try await ScriptedBot(on: site.group) { message, line in
            guard message?["event"]?.string == "start" else { return }
            line.say(Self.tone(0.3))
            line.close()
        }
        let plan = try placingPlan(bot)
        let device = try await site.device("echo", named: "bot", answer: answering) {
            $0.behaviour.source = .silence
            $0.account.callees = CalleeList([CalleePattern("caller")].compactMap { $0 })
            $0.behaviour.attachment = .bot(plan)
        }
        let callee = try await site.device("caller", named: "mobile", answer: answering) {
            $0.behaviour.source = .silence
        }
        let server = "http://127.0.0.1:\(try #require(await device.device.botRequestPort))"
        let twiml = "<Response><Connect><Stream url=\"ws://127.0.0.1:\(bot.port)/ws\"/></Connect></Response>"
        let form = FormFields([.init("To", "caller"), .init("From", "+1"), .init("Twiml", twiml)])
        let body = String(decoding: form.body, as: UTF8.self)
        let answer = try await send(.POST, server, "\(Self.calls).json", basic("SK1", "place"), body, on: site)
        #expect(answer.status == 201)
        let ended = try await callee.ended()
        #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
        #expect(bot.messages("start").count == 1)
        await bot.stop()
        try await site.close(callee, device)
    }

    @Test("A bot that leaves a call is told how long it took part, joins again as a new one, and hangs up only then")
    func leavesAndJoins() async throws {
        let site = try await Site()
        let bot = try await ScriptedBot(on: site.group) { _, _ in }
        let plan = try plan("ws://127.0.0.1:\(bot.port)/ws") {
            $0.statusCallback = WebAddress("http://127.0.0.1:\(bot.port)/status", [.http])
        }
        let device = try await site.device("echo", named: "bot", answer: answering) {
            $0.behaviour.source = .silence
            $0.behaviour.attachment = .bot(plan)
        }
        let caller = try await site.device("caller", named: "mobile")
        let id = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        let call = try await device.incoming()
        _ = try await device.flowing()
        for number in 1...2 {
            try await device.device.attach(to: call)
            try await until { bot.messages("start").count == number }
            // More than a second.
            let before = try #require(await caller.device.mediaReport(on: id)).call.framesRun
            try await until { try #require(await caller.device.mediaReport(on: id)).call.framesRun >= before + 60 }
            try await device.device.detach(from: call)
            try await until { bot.questions.count == number }
        }
        let forms = bot.questions.compactMap { FormFields(body: Array($0.body.utf8)) }
        #expect(forms.map { $0.values("CallStatus") } == [["completed"], ["completed"]])
        for form in forms { #expect(Int(form.values("CallDuration").first ?? "").map { $0 >= 1 && $0 < 30 } == true) }
        #expect(forms[0].values("CallSid") != forms[1].values("CallSid"))
        await caller.device.hangUp(id)
        #expect(try await caller.ended().record.hangUpCause == .request)
        await bot.stop()
        try await site.close(caller, device)
    }

    @Test(
        "The status callback of a stream is told when it begins, ends and fails, signed, and in order with the call's")
    func streamNews() async throws {
        let site = try await Site()
        let bot = try await ScriptedBot(
            markup: "<Response><Connect><Stream name=\"n\" url=\"ws://127.0.0.1:PORT/ws\" "
                + "statusCallback=\"/stream\"/></Connect></Response>", on: site.group
        ) { message, line in
            if message?["event"]?.string == "start" { line.close() }
        }
        let device = try await device(
            site,
            try plan("http://127.0.0.1:\(bot.port)/answer") {
                $0.token = Secret("12345")
                $0.statusCallback = WebAddress("http://127.0.0.1:\(bot.port)/status", [.http])
            })
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await caller.ended()
        try await until { bot.questions.count == 4 }
        let forms = bot.questions.compactMap { FormFields(body: Array($0.body.utf8)) }
        #expect(
            forms.map { ($0.values("StreamEvent") + $0.values("CallStatus")).first }
                == ["ringing", "stream-started", "stream-stopped", "completed"])
        let start = try #require(bot.messages("start").first)
        for index in 1...2 {
            #expect(forms[index].values("StreamSid").first == start["streamSid"]?.string)
            #expect(forms[index].values("StreamName") == ["n"])
            let address = "http://127.0.0.1:\(bot.port)/stream"
            #expect(bot.questions[index].signature == TwilioSignature.text(of: address, forms[index], token: "12345"))
        }
        await device.device.shutDown()
        // One that is not there.
        let other = try await ScriptedBot(
            markup:
                "<Response><Connect><Stream url=\"ws://127.0.0.1:9/ws\" statusCallback=\"/stream\"/></Connect></Response>",
            on: site.group
        ) { _, _ in }
        let second = try await self.device(site, try plan("http://127.0.0.1:\(other.port)/answer"))
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await caller.ended()
        try await until { other.questions.count == 2 }
        let failed = FormFields(body: Array(other.questions[1].body.utf8))
        #expect(failed?.values("StreamEvent") == ["stream-error"])
        #expect(failed?.values("StreamError").first?.contains("nothing listens") == true)
        await bot.stop()
        await other.stop()
        try await site.close(caller, second)
    }

    @Test("A call that a bot's server places rings until it cancels it; the webhook is asked only once it is answered")
    func cancels() async throws {
        let site = try await Site()
        let bot = try await ScriptedBot(on: site.group) { _, _ in }
        let device = try await device(site, try placingPlan(bot))
        let callee = try await site.device(
            "caller", named: "mobile", answer: AnswerPolicy(manner: .ring, callLimit: .calls(1)))
        let server = "http://127.0.0.1:\(try #require(await device.device.botRequestPort))"
        let key = basic("SK1", "place")
        let form =
            "To=caller&From=1&Url=http://127.0.0.1:\(bot.port)/answer&StatusCallback=http://127.0.0.1:\(bot.port)/s"
        let answer = try await send(.POST, server, "\(Self.calls).json", key, form, on: site)
        let sid = try #require(JSONValue(plain: answer.body, nesting: 4)?["sid"]?.string)
        _ = try await callee.incoming()
        let path = "\(Self.calls)/\(sid).json"
        let early = try await send(.POST, server, path, key, "Url=http://127.0.0.1:\(bot.port)/x", on: site)
        #expect(early.status == 400 && JSONValue(plain: early.body, nesting: 4)?["code"]?.integer == 21_220)
        let cancelled = try await send(.POST, server, path, key, "Status=canceled", on: site)
        #expect(
            cancelled.status == 200
                && JSONValue(plain: cancelled.body, nesting: 4)?["status"]?.string == "canceled")
        #expect(try await callee.ended().record.reason == .cancelled)
        try await until { bot.questions.count == 1 }
        #expect(bot.questions[0].body.contains("CallStatus=canceled"))
        await bot.stop()
        try await site.close(callee, device)
    }

    @Test(
        "Calls are not placed with other credentials, to others, too often, or by a device that stops; each has its code"
    )
    func refusesToPlace() async throws {
        let site = try await Site()
        let bot = try await ScriptedBot(on: site.group) { _, _ in }
        let device = try await device(
            site,
            try placingPlan(bot) {
                $0.perMinute = 6
            })
        let server = "http://127.0.0.1:\(try #require(await device.device.botRequestPort))"
        let url = "Url=http://127.0.0.1:\(bot.port)/"
        func place(
            _ form: String, _ user: String = "SK1", _ password: String = "place", account: String? = nil
        ) async throws -> [Int64] {
            let path = account.map { "/2010-04-01/Accounts/\($0)/Calls.json" } ?? "\(Self.calls).json"
            let answer = try await send(.POST, server, path, basic(user, password), form, on: site)
            let code = JSONValue(plain: answer.body, nesting: 4)?["code"]?.integer
            return [Int64(answer.status), code ?? 0]
        }
        let good = "To=caller&From=1&\(url)"
        #expect(try await place(good, "SK1", "open") == [401, 20_003])
        #expect(try await place(good, BotPlan.usualAccount, "place") == [401, 20_003])
        #expect(try await place(good, BotPlan.usualAccount, "open") == [403, 20_008])
        #expect(try await place(good, account: "ACother") == [404, 20_404])
        #expect(try await place("To=caller&From=1") == [400, 21_205])
        #expect(try await place("To=somebody&From=1&\(url)") == [403, 21_216])
        #expect(try await place("To=caller&From=1&Url=http://127.0.0.2/") == [400, 21_205])
        await device.device.finishCalls(within: .seconds(1))
        #expect(try await place(good) == [503, 20_503])
        for _ in 0..<3 { _ = try await place("To=somebody&From=1&\(url)") }
        #expect(try await place(good) == [429, 20_429])
        #expect(bot.questions.isEmpty)
        await bot.stop()
        try await site.close(device)
    }

    @Test("A guesser of passwords gets 30 answers and then 429, and 100 idle connections keep no request out")
    func guessing() async throws {
        let site = try await Site()
        let bot = try await ScriptedBot(on: site.group) { _, _ in }
        let device = try await device(site, try placingPlan(bot))
        let port = try #require(await device.device.botRequestPort)
        func ask(_ password: String?) async throws -> HTTPFetch.Answer {
            try await send(
                .POST, "http://127.0.0.1:\(port)", "\(Self.calls).json", password.map { basic("SK1", $0) } ?? "",
                "To=eve&From=1",
                on: site)
        }
        var idle: [any Channel] = []
        for _ in 0..<100 {
            idle.append(try await ClientBootstrap(group: site.group).connect(host: "127.0.0.1", port: port).get())
        }
        // What has no password guesses none.
        for _ in 0..<40 { #expect(try await ask(nil).status == 401) }
        #expect(try await ask("place").status == 400)
        var statuses: [Int] = []
        for number in 0..<40 { statuses.append(try await ask("guess \(number)").status) }
        #expect(statuses == Array(repeating: 401, count: 30) + Array(repeating: 429, count: 10))
        let refused = try await ask("place")
        #expect(refused.status == 429 && refused.headers.first(name: "Retry-After").flatMap(Int.init) ?? 0 > 0)
        for channel in idle { try? await channel.close() }
        await bot.stop()
        try await site.close(device)
    }

    @Test("Requests come by TLS when there is a certificate, and not in plain text; one that cannot be used is told")
    func requestsOverTLS() async throws {
        let site = try await Site()
        let bot = try await ScriptedBot(on: site.group) { _, _ in }
        let (chain, key) = (temporaryFile("chain.pem"), temporaryFile("key.pem"))
        defer { for path in [chain, key] { try? FileManager.default.removeItem(atPath: path) } }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        process.arguments = [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", chain,
        ]
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        var plan = try placingPlan(bot)
        plan.requests?.certificate = .init(chainPath: chain, keyPath: key)
        let device = try await device(site, plan)
        let port = try #require(await device.device.botRequestPort)
        let answer = try await send(
            .POST, "https://localhost:\(port)", "\(Self.calls)/CA1.json", basic(BotPlan.usualAccount, "open"),
            "Status=completed", trust: try TLSTrust(trustRootFile: chain), on: site)
        #expect(answer.status == 404)
        await #expect(throws: (any Error).self) {
            try await send(.POST, "http://localhost:\(port)", "\(Self.calls)/CA1.json", "", on: site)
        }
        await device.device.shutDown()
        plan.requests?.certificate = .init(chainPath: key, keyPath: key)
        let fault = #expect(throws: BotPlan.Certificate.Fault.self) { try plan.requests?.certificate?.check() }
        #expect(fault?.isOfKey == false && fault?.description.contains("holds no certificate") == true)
        await bot.stop()
        try await site.close()
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
        _ = try await caller.flowing()
        try await until { !bot.messages("start").isEmpty }
        let call = try #require(bot.messages("start").first?["start"]?["callSid"]?.string)
        let calls = Self.calls
        func basic(_ password: String) -> String { self.basic(BotPlan.usualAccount, password) }
        #expect(try await ask(.POST, port, "\(calls)/\(call).json", basic("shut"), "Status=completed", on: site) == 401)
        #expect(try await ask(.POST, port, "\(calls)/CAother.json", basic("open"), "Status=completed", on: site) == 404)
        #expect(try await ask(.POST, port, "\(calls)/\(call).json", basic("open"), "Status=maybe", on: site) == 400)
        #expect(try await ask(.GET, port, "\(calls)/\(call).json", basic("open"), on: site) == 405)
        #expect(try await ask(.GET, port, "/", basic("open"), on: site) == 404)
        #expect(try await ask(.POST, port, "\(calls)/\(call).json", basic("open"), "Status=completed", on: site) == 200)
        let ended = try await caller.ended()
        #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
        let heard = try await secondsOfTone(in: kept)
        #expect((1.4...1.6).contains(heard), "of 1.5 s said \(heard) s were heard")
        await bot.stop()
        try await site.close(caller, device)
    }

    @Test(
        "CALL-8: Twilio's <Dial> in a request has the caller call a listed user; another gets 403, and the call goes on"
    )
    func dials() async throws {
        let site = try await Site(users: ["echo", "caller", "carol"])
        let bot = try await ScriptedBot(on: site.group) { _, _ in }
        let plan = try plan("ws://127.0.0.1:\(bot.port)/ws") {
            $0.requests = BotPlan.Requests(
                listen: ConfigEndpoint(host: "127.0.0.1", port: 0), password: Secret("open"))
        }
        let device = try await site.device("echo", named: "bot", answer: answering) {
            $0.behaviour.source = .bot(plan)
            $0.account.callees = CalleeList([CalleePattern("carol")].compactMap { $0 })
        }
        let port = try #require(await device.device.botRequestPort)
        let carol = try await site.device("carol", named: "desk", answer: answering) { $0.behaviour.source = .silence }
        let caller = try await site.device("caller", named: "mobile", answer: answering)
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await caller.established()
        try await until { !bot.messages("start").isEmpty }
        let call = try #require(bot.messages("start").first?["start"]?["callSid"]?.string)
        func dial(_ target: String) async throws -> Int {
            let form = FormFields([.init("Twiml", "<Response><Dial>\(target)</Dial></Response>")])
            return try await ask(
                .POST, port, "\(Self.calls)/\(call).json", basic(BotPlan.usualAccount, "open"),
                String(decoding: form.body, as: UTF8.self), on: site)
        }
        #expect(try await dial("mallory") == 403)
        #expect(try await dial("carol") == 200)
        let record = try await device.ended().record
        #expect(record.reason == .completed && record.transferredTo == "carol")
        #expect(await carol.device.goesOn(try await carol.incoming()))
        await bot.stop()
        try await site.close(caller, carol, device)
    }

    @Test(
        "A bot's server that ends its call while a person rings for the caller takes the hand-over back, and ends both calls"
    )
    func endsHandover() async throws {
        let site = try await Site(users: ["echo", "caller", "carol"])
        let bot = try await ScriptedBot(on: site.group) { _, _ in }
        let plan = try plan("ws://127.0.0.1:\(bot.port)/ws") {
            $0.transferBy = .handover
            $0.requests = BotPlan.Requests(
                listen: ConfigEndpoint(host: "127.0.0.1", port: 0), password: Secret("open"))
        }
        let device = try await site.device("echo", named: "bot", answer: answering) {
            $0.behaviour.source = .bot(plan)
            $0.account.callees = CalleeList([CalleePattern("carol")].compactMap { $0 })
        }
        let port = try #require(await device.device.botRequestPort)
        let carol = try await site.device("carol", named: "desk")
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await caller.established()
        try await until { !bot.messages("start").isEmpty }
        let call = try #require(bot.messages("start").first?["start"]?["callSid"]?.string)
        func request(_ form: FormFields) async throws -> Int {
            try await ask(
                .POST, port, "\(Self.calls)/\(call).json", basic(BotPlan.usualAccount, "open"),
                String(decoding: form.body, as: UTF8.self), on: site)
        }
        let dial = FormFields([.init("Twiml", "<Response><Dial>carol</Dial></Response>")])
        #expect(try await request(dial) == 200)
        _ = try await carol.incoming()
        #expect(try await request(FormFields([.init("Status", "completed")])) == 200)
        #expect(try await carol.ended().record.reason == .cancelled)
        #expect(try await caller.ended().record.endedBy == .remote)
        var states: [HandoverState] = []
        while states.last?.isFinal != true, let event = await device.next() {
            if case .handover(_, let report) = event { states.append(report.state) }
        }
        #expect(states == [.asked, .ringing, .cancelled])
        await bot.stop()
        try await site.close(caller, carol, device)
    }

    @Test("CALL-8: A webhook's <Dial> that fails has its action asked, which learns of it")
    func dialFails() async throws {
        let site = try await Site(users: ["echo", "caller", "carol"])
        let bot = try await ScriptedBot(
            on: site.group,
            respond: { request in
                let text =
                    request.head.uri == "/answer"
                    ? "<Response><Dial action=\"/after\">carol</Dial></Response>" : "<Response><Hangup/></Response>"
                return HTTPAnswer(status: .ok, contentType: "text/xml", body: Array(text.utf8))
            }, { _, _ in })
        let device = try await device(site, try plan("http://127.0.0.1:\(bot.port)/answer"))
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await caller.ended()
        #expect(bot.questions.count == 2)
        let after = try #require(bot.questions.last)
        #expect(FormFields(body: Array(after.body.utf8))?.values("DialCallStatus") == ["failed"])
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
        _ = try await caller.flowing()
        try await until { try await #require(caller.device.mediaReport(on: call)).call.framesRun >= 75 }
        try await caller.device.press("#", on: call)
        let ended = try await caller.ended()
        #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
        #expect(try await secondsOfTone(in: kept, amplitude: 32_767 * 0.251) > 0.5, "the tone comes back")
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
        #expect((0.4...0.6).contains(try await secondsOfTone(in: "\(kept)/\(file)")))
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
