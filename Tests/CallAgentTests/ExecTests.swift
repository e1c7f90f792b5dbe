import AudioKit
import AudioPort
import CallControl
import CallPrograms
import Foundation
import Glibc
import CallMedia
import MediaEngine
import TestSupport
import Testing

@testable import CallAgent

@Suite("Programs that take part in calls", .witnessed, .timeLimit(.minutes(2)))
struct ExecTests {
    private let answering = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(4))
    private static let examples = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Examples")

    private func bot(_ site: Site, _ command: [String], _ format: PortFormat = PortFormat()) async throws -> Handheld {
        try await site.device("echo", named: "bot", answer: answering) {
            $0.behaviour.source = .exec(ProgramPlan(command: command, format: format))
        }
    }

    /// A program of Python with the socket of its events at hand.
    private func python(_ script: String) -> [String] {
        let head = """
            import json, math, os, signal, socket, struct, sys, time
            control = socket.socket(fileno=3)
            lines = control.makefile(encoding="utf-8")
            def hear(): return json.loads(lines.readline())
            def ask(**command): control.sendall((json.dumps(command) + "\\n").encode())
            def tone(seconds, rate=16000): return b"".join(
                struct.pack("<h", int(8000 * math.sin(2 * math.pi * 500 * n / rate))) for n in range(int(seconds * rate)))
            def say(sound):
                while sound: sound = sound[os.write(1, sound):]

            """
        return ["python3", "-c", head + script]
    }

    private func temporaryFile(_ name: String) -> String {
        FileManager.default.temporaryDirectory.appending(path: "handset-exec-\(UUID())-\(name)").path()
    }

    @Test(
        "With barge_in: local a program is told who speaks, and that it is interrupted; then it answers, which is measured"
    )
    func bargeIn() async throws {
        let site = try await Site()
        let speech = try SpokenFile(pauseSeconds: 1)
        defer { speech.remove() }
        let told = temporaryFile("told")
        defer { try? FileManager.default.removeItem(atPath: told) }
        let script = """
            import threading
            def talk():
                try: say(tone(8))
                except OSError: pass
            threading.Thread(target=talk, daemon=True).start()
            kept = open("\(told)", "w")
            while True:
                event = hear()
                kept.write(json.dumps(event) + "\\n")
                kept.flush()
                if event["event"] == "interrupted": ask(command="clear")
                if event["event"] == "speech" and event["state"] == "end" and event["at"] > 0:
                    say(tone(0.3))
                    ask(command="hangup")
                if event["event"] == "end": break
            """
        let bot = try await site.device("echo", named: "bot", answer: answering) {
            $0.behaviour.source = .exec(ProgramPlan(command: python(script), bargeIn: .local))
        }
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .file(path: speech.path, loops: false)))
        var (isInterrupted, responses) = (false, [Duration]())
        while let event = await bot.next() {
            if case .interrupted = event { isInterrupted = true }
            if case .responded(_, let time) = event { responses.append(time) }
            if case .ended = event { break }
        }
        #expect(isInterrupted)
        #expect(responses.allSatisfy { $0 > .zero && $0 < .seconds(4) })
        let lines = try String(contentsOfFile: told, encoding: .utf8).split(separator: "\n")
        #expect(lines.count { $0.contains("\"speech\"") && $0.contains("begin") } >= 1)
        #expect(lines.count { $0.contains("\"interrupted\"") } == 1)
        _ = try await caller.ended()
        try await site.close(caller, bot)
    }

    @Test(
        "CALL-8: A program transfers its caller as soon as it begins, and is told how that goes; one who is not listed stays out"
    )
    func transfers() async throws {
        let site = try await Site(users: ["echo", "caller", "carol"])
        let told = temporaryFile("told")
        defer { try? FileManager.default.removeItem(atPath: told) }
        let script = """
            kept = open("\(told)", "w")
            ask(command="transfer", to="mallory")
            while True:
                event = hear()
                kept.write(json.dumps(event) + "\\n")
                kept.flush()
                if event["event"] == "error": ask(command="transfer", to="carol")
                if event["event"] == "end": break
            """
        let bot = try await site.device("echo", named: "bot", answer: answering) {
            $0.behaviour.source = .exec(ProgramPlan(command: python(script)))
            $0.account.callees = CalleeList([CalleePattern("carol")].compactMap { $0 })
        }
        let carol = try await site.device("carol", named: "desk", answer: answering)
        let caller = try await site.device("caller", named: "mobile", answer: answering)
        let call = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        let record = try await bot.ended().record
        #expect(record.reason == .completed && record.transferredTo == "carol")
        let new = try await carol.incoming()
        #expect(await carol.device.goesOn(new))
        #expect(await !caller.device.goesOn(call))
        try await until { try String(contentsOfFile: told, encoding: .utf8).contains("\"end\"") }
        let lines = try String(contentsOfFile: told, encoding: .utf8).split(separator: "\n").map(String.init)
        let error = try #require(lines.first { $0.contains("\"error\"") })
        #expect(error.contains("account.callees"))
        let states = lines.filter { $0.contains("\"transfer\"") }
        #expect(states.first?.contains("\"trying\"") == true && states.last?.contains("\"accepted\"") == true)
        try await site.close(caller, carol, bot)
    }

    @Test("A mark beyond those that may wait is refused to the program's face, and the others come back")
    func tooManyMarks() async throws {
        let site = try await Site()
        let told = temporaryFile("told")
        defer { try? FileManager.default.removeItem(atPath: told) }
        let script = """
            hear()
            say(tone(0.4))
            for number in range(258): ask(command="mark", name=str(number))
            kept = open("\(told)", "w")
            marks = 0
            while marks < 256:
                event = hear()
                kept.write(json.dumps(event) + "\\n")
                if event["event"] == "mark": marks += 1
            """
        let bot = try await bot(site, python(script))
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await caller.ended()
        let lines = try String(contentsOfFile: told, encoding: .utf8).split(separator: "\n")
        #expect(lines.count { $0.contains("a mark is not set, because 256 wait") } == 2)
        try await site.close(caller, bot)
    }

    @Test("The example in Examples/exec-echo says back what the caller says, and hangs up when the caller presses #")
    func example() async throws {
        let kept = temporaryFile("kept.wav")
        defer { try? FileManager.default.removeItem(atPath: kept) }
        let site = try await Site()
        let bot = try await bot(site, [Self.examples.appending(path: "exec-echo/echo.py").path()])
        let caller = try await site.device("caller", named: "mobile")
        let call = await caller.device.call(
            "echo", audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12), recording: kept))
        _ = try await caller.flowing()
        // Until it has been heard: a second and a half of the call.
        try await until { try await #require(caller.device.mediaReport(on: call)).call.framesRun >= 75 }
        try await caller.device.press("#", on: call)
        let ended = try await caller.ended()
        #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
        let seconds = try await secondsOfTone(in: kept, amplitude: 32_767 * 0.251)
        #expect(seconds > 0.5, "the tone comes back")
        try await site.close(caller, bot)
    }

    @Test("A program that says a word and ends is heard out before the call ends, at every format")
    func lastWord() async throws {
        let formats = [
            PortFormat(rate: .hz8000), PortFormat(rate: .hz16000), PortFormat(rate: .hz48000),
        ]
        let site = try await Site()
        for format in formats {
            let kept = temporaryFile("kept.wav")
            defer { try? FileManager.default.removeItem(atPath: kept) }
            // More than what waits in the queue and the pipe together, at the higher rates.
            let bot = try await bot(site, python("say(tone(1.5, \(format.rate.rawValue)))"), format)
            let caller = try await site.device("caller", named: "mobile")
            _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence, recording: kept))
            let ended = try await caller.ended()
            #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
            let seconds = try await secondsOfTone(in: kept)
            #expect((1.4...1.6).contains(seconds), "of 1.5 s said \(seconds) s were heard")
            await bot.device.shutDown()
            await caller.device.shutDown()
        }
        try await site.close()
    }

    @Test("Events tell of the call, its keys and its marks; a clear discards what was written, and its marks say so")
    func events() async throws {
        let log = temporaryFile("events.jsonl")
        defer { try? FileManager.default.removeItem(atPath: log) }
        let script = """
            log = open("\(log)", "w")
            def next_event():
                event = hear()
                print(json.dumps(event), file=log, flush=True)
                return event
            next_event()
            say(tone(0.3))
            ask(command="mark", name="greeted")
            while next_event().get("name") != "greeted": pass
            say(tone(1.5))
            ask(command="mark", name="never heard")
            ask(command="clear")
            while next_event()["event"] != "cleared": pass
            ask(command="dance")
            while next_event()["event"] != "error": pass
            while next_event()["event"] != "digit": pass
            print("goodbye", file=sys.stderr, flush=True)
            ask(command="hangup")
            while next_event()["event"] != "end": pass
            """
        let site = try await Site()
        let bot = try await bot(site, python(script))
        let caller = try await site.device("caller", named: "mobile")
        let call = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await caller.flowing()
        // It waits for a key after all else.
        func told() -> [[String: Any]] {
            let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
            return text.split(separator: "\n").compactMap {
                try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
            }
        }
        try await until { told().contains { $0["event"] as? String == "error" } }
        try await caller.device.press("5", on: call)
        #expect(try await caller.ended().record.reason == .completed)
        await bot.device.shutDown()
        let events = told()
        #expect(
            events.compactMap { $0["event"] as? String } == [
                "begin", "mark", "mark", "cleared", "error", "digit", "end",
            ])
        let begin = try #require(events.first)
        #expect(begin["peer"] as? String == "caller" && begin["direction"] as? String == "incoming")
        #expect(begin["rate_hz"] as? Int == 16_000 && begin["encoding"] as? String == "linear")
        #expect(events[1]["played"] as? Int == 4_800 && events[1]["cleared"] as? Bool == false)
        #expect(events[2]["name"] as? String == "never heard" && events[2]["cleared"] as? Bool == true)
        let played = try #require(events[3]["played"] as? Int)
        #expect((4_800..<28_800).contains(played))
        #expect(events[5]["key"] as? String == "5")
        #expect(events.last?["reason"] as? String == "completed")
        try await site.close(caller)
    }

    @Test(
        "A program that reads nothing, heeds no signal and writes without end delays no other call, and is gone at the end"
    )
    func hostile() async throws {
        let note = temporaryFile("pid")
        defer { try? FileManager.default.removeItem(atPath: note) }
        let script = """
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            mine = "\(note)"
            try: open(mine, "x").write(str(os.getpid()))
            except FileExistsError:
                while sound := os.read(0, 640): os.write(1, sound)
                sys.exit(0)
            while True: say(tone(1)); ask(command="mark", name="x" * 200)
            """
        let site = try await Site()
        let bot = try await bot(site, python(script))
        let caller = try await site.device("caller", named: "mobile")
        let hostile = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await caller.flowing()
        try await until { FileManager.default.fileExists(atPath: note) }
        let kept = temporaryFile("kept.wav")
        defer { try? FileManager.default.removeItem(atPath: kept) }
        let second = await caller.device.call(
            "echo", audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12), recording: kept))
        _ = try await caller.flowing()
        try await until { try await #require(caller.device.mediaReport(on: second)).call.framesRun >= 75 }
        await caller.device.hangUp(second)
        #expect(try await caller.ended().record.reason == .completed)
        #expect(
            try await secondsOfTone(in: kept, amplitude: 32_767 * 0.251) > 0.4, "the other call's program is heard")
        await caller.device.hangUp(hostile)
        _ = try await caller.ended()
        await bot.device.shutDown()
        let process = try #require(pid_t(try String(contentsOfFile: note, encoding: .utf8)))
        #expect(kill(process, 0) == -1 && errno == ESRCH)
        try await site.close(caller)
    }

    @Test("A program that fails is started again in the same call; what it had left to say is not heard")
    func restart() async throws {
        let (note, kept) = (temporaryFile("begun"), temporaryFile("kept.wav"))
        defer { for path in [note, kept] { try? FileManager.default.removeItem(atPath: path) } }
        let script = """
            begin = hear()
            open("\(note)", "a").write(f"{begin['restarts']} ")
            if begin["restarts"] == 0:
                os.read(0, 640)
                say(tone(2))
                sys.exit(3)
            say(tone(0.5))
            """
        let site = try await Site()
        let bot = try await bot(site, python(script))
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence, recording: kept))
        let ended = try await caller.ended()
        #expect(ended.record.reason == .completed && ended.record.endedBy == .remote)
        #expect(try String(contentsOfFile: note, encoding: .utf8) == "0 1 ")
        let seconds = try await secondsOfTone(in: kept)
        #expect(
            (0.45..<2.2).contains(seconds), "of the first 2 s not all were heard, and of the others all: \(seconds) s")
        try await site.close(caller, bot)
    }

    @Test("A program whose keys cannot be pressed is told so, and the call goes on")
    func refusedKeys() async throws {
        let log = temporaryFile("answer.json")
        defer { try? FileManager.default.removeItem(atPath: log) }
        let script = """
            hear()
            ask(command="dtmf", keys="1Z")
            open("\(log)", "w").write(json.dumps(hear()))
            say(tone(0.2))
            """
        let site = try await Site()
        let bot = try await bot(site, python(script))
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        let ended = try await caller.ended()
        #expect(ended.record.reason == .completed)
        let answer = try String(contentsOfFile: log, encoding: .utf8)
        #expect(answer.contains("\"error\"") && answer.contains("1Z"), "\(answer)")
        try await site.close(caller, bot)
    }

    @Test("A program that is not there has its call rejected, with the reason in this device's record")
    func missing() async throws {
        let site = try await Site()
        let bot = try await bot(site, ["/nowhere/bot"])
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        let (mine, theirs) = (try await caller.ended(), try await bot.ended())
        #expect(theirs.record.reason == .acceptFailed && theirs.record.cause == .deviceFault)
        #expect(theirs.record.error.map { "\($0)" }?.contains("/nowhere/bot") == true)
        #expect(!mine.record.reason.isSuccess)
        try await site.close(caller, bot)
    }

    private func answered(_ plan: ProgramPlan, _ site: Site) async throws -> Handheld {
        try await site.device("echo", named: "bot", answer: answering) { $0.behaviour.source = .exec(plan) }
    }

    @Test(
        "A call is accepted when its program reads, so that nothing that the caller says is lost on one that starts slowly"
    )
    func waits() async throws {
        let note = temporaryFile("heard")
        defer { try? FileManager.default.removeItem(atPath: note) }
        let script = """
            time.sleep(0.8)
            heard = sum(abs(int.from_bytes(os.read(0, 2), "little", signed=True)) > 1000 for _ in range(16000))
            open("\(note)", "w").write(str(heard))
            """
        let site = try await Site()
        let bot = try await bot(site, python(script))
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -6)))
        let record = try await caller.ended().record
        #expect(record.reason == .completed)
        #expect((record.answeredAfter ?? .zero) >= .milliseconds(800))
        // Of the second after the silence at the beginning all but the path's delay is the caller's tone.
        #expect(try Int(String(contentsOfFile: note, encoding: .utf8)).map { $0 > 12_000 } == true)
        try await site.close(caller, bot)
    }

    @Test(
        "A program that neither reads nor says anything in time has its call rejected, and the next call is as the first"
    )
    func mute() async throws {
        var plan = ProgramPlan(command: ["sleep", "60"])
        plan.answerTimeout = .milliseconds(200)
        let site = try await Site()
        let bot = try await answered(plan, site)
        let caller = try await site.device("caller", named: "mobile")
        for _ in 1...2 {
            _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
            let (mine, theirs) = (try await caller.ended(), try await bot.ended())
            #expect(theirs.record.reason == .acceptFailed && theirs.record.cause == .deviceFault)
            #expect(theirs.record.error.map { "\($0)" }?.contains("neither read") == true)
            #expect(!mine.record.reason.isSuccess && mine.record.answeredAfter == nil)
        }
        try await site.close(caller, bot)
    }

    @Test("A program that fails at its start without a fallback has no call answered")
    func failsAtItsStart() async throws {
        var plan = ProgramPlan(command: ["false"])
        plan.answerTimeout = .milliseconds(600)
        let site = try await Site()
        let bot = try await answered(plan, site)
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        let (mine, theirs) = (try await caller.ended(), try await bot.ended())
        #expect(theirs.record.reason == .acceptFailed && mine.record.answeredAfter == nil)
        try await site.close(caller, bot)
    }

    @Test("The machine's own limit is later than what the program was promised, however long that is")
    func promised() async throws {
        let site = try await Site()
        for seconds in [1, 5, 60] {
            var plan = ProgramPlan(command: ["sleep", "60"])
            plan.answerTimeout = .seconds(seconds)
            let bot = try await answered(plan, site)
            #expect(await bot.device.configuration.callTimings.prepareTimeout > plan.answerTimeout + .seconds(1))
            await bot.device.shutDown()
        }
        try await site.close()
    }

    @Test("A program declines a call with its first command")
    func declines() async throws {
        let site = try await Site()
        let bot = try await bot(site, python("ask(command=\"hangup\"); hear(); hear()"))
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        #expect(try await caller.ended().record.reason == .declined)
        try await site.close(caller, bot)
    }

    @Test(
        "In place of a program that fails, callers hear the fallback, also in the next call",
        arguments: [
            (["/nowhere/bot"], Duration.seconds(30)), (["sleep", "60"], .milliseconds(200)), (["false"], .seconds(30)),
            (["sh", "-c", "head -c 160 > /dev/null; exit 3"], .seconds(30)),
        ])
    func fallback(command: [String], timeout: Duration) async throws {
        let (spoken, kept) = (temporaryFile("sorry.wav"), temporaryFile("kept.wav"))
        defer { for path in [spoken, kept] { try? FileManager.default.removeItem(atPath: path) } }
        var writer = try WAVWriter(path: spoken)
        let tone = (0..<48_000).map { Int16(8_000 * sin(2 * .pi * 500 * Double($0) / 48_000)) }
        try writer.append(tone.span)
        try writer.finish()
        var plan = ProgramPlan(command: command, format: PortFormat(rate: .hz8000, encoding: .muLaw))
        (plan.fallback, plan.answerTimeout) = (spoken, timeout)
        let site = try await Site()
        let bot = try await answered(plan, site)
        let caller = try await site.device("caller", named: "mobile")
        for _ in 1...2 {
            _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence, recording: kept))
            let record = try await caller.ended().record
            #expect(record.reason == .completed && record.endedBy == .remote)
            let seconds = try await secondsOfTone(in: kept)
            #expect((0.9...1.1).contains(seconds), "of 1 s of the fallback \(seconds) s were heard")
            try FileManager.default.removeItem(atPath: kept)
        }
        try await site.close(caller, bot)
    }
}
