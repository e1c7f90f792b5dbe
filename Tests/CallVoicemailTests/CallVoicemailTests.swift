import AudioKit
import CallControl
import CallParticipation
import CallVoicemail
import Foundation
import LoopbackAnalysis
import TestSupport
import Testing
import Voicemail

@Suite("Calls that leave messages", .witnessed, .serialized, .timeLimit(.minutes(2)))
struct CallVoicemailTests {
    @Test("A caller hears the tone, speaks, and ends by #: the message has what was said without the silence around it")
    func leavesMessage() async throws {
        let stage = Stage()
        defer { stage.remove() }
        try await stage.speak(seconds: 3)
        try await stage.run(saying: stage.silence(1))
        stage.press("#")
        try await stage.run { stage.reported.contains(.done(stage.call, failure: nil)) }
        try await until { stage.stored.count == 1 }
        let entry = try #require(try stage.mailbox.messages().first)
        #expect(entry.message.caller == "ann" && entry.message.called == "bob" && !entry.message.isHeard)
        #expect(stage.stored == [entry.message])
        let samples = try AudioFileReader.samples(ofFile: entry.file).count
        #expect((2.4...4.2).contains(Double(samples) / 48_000), "\(samples) samples")
        #expect(abs(entry.message.seconds - Double(samples) / 48_000) < 0.15)
        #expect(stage.files.count == 2)
        await stage.finish()
    }

    @Test("The greeting is heard before the tone, and # leaves it out")
    func greets() async throws {
        let greeting = FileManager.default.temporaryDirectory.path + "/handset-greeting-\(UUID()).wav"
        var writer = try WAVWriter(path: greeting)
        try writer.append([Int16](repeating: 8_000, count: 48_000 * 20).span)
        try writer.finish()
        defer { try? FileManager.default.removeItem(atPath: greeting) }
        let stage = Stage { $0.greeting = greeting }
        defer { stage.remove() }
        try await stage.answer()
        try await stage.run { stage.soundMilliseconds > 200 }
        stage.press("#")
        // The tone changes its sign, which the greeting does not.
        try await stage.run { stage.heard.count { $0 < -1_000 } > 4_800 }
        try await stage.hangUp()
        await stage.finish()
        #expect(stage.files.isEmpty)
    }

    @Test("A greeting that is not there is left out, with a warning, and the caller leaves a message nevertheless")
    func greetingIsMissing() async throws {
        let stage = Stage { $0.greeting = "/nowhere/greeting.wav" }
        defer { stage.remove() }
        try await stage.speak(seconds: 3)
        try await stage.hangUp()
        await stage.finish()
        #expect(stage.stored.count == 1)
        #expect(stage.warnings.first?.contains("/nowhere/greeting.wav") == true)
    }

    @Test("A caller who hangs up leaves the message so far; less than a second of speech, or none, is no message")
    func hangsUp() async throws {
        for (seconds, isKept) in [(3.0, true), (0.5, false), (0, false)] {
            let stage = Stage()
            defer { stage.remove() }
            try await stage.speak(seconds: seconds)
            try await stage.run(saying: stage.silence(1))
            try await stage.hangUp()
            await stage.finish()
            #expect(stage.stored.count == (isKept ? 1 : 0), "\(seconds) s")
            #expect(stage.files.count == (isKept ? 2 : 0), "\(stage.files)")
        }
    }

    @Test("A full mailbox rejects a call as busy before it is answered, says why, and keeps its messages")
    func full() async throws {
        let stage = Stage { $0.bounds.mostMessages = 1 }
        defer { stage.remove() }
        try await stage.speak(seconds: 3)
        try await stage.hangUp()
        await stage.finish()
        let other = Stage(folder: stage.folder) { $0.bounds.mostMessages = 1 }
        try other.begin()
        try await until { !other.reported.isEmpty }
        #expect(
            other.reported == [
                .rejected(
                    other.call, .busy, "the mailbox \"\(stage.folder)\" is full: it has 1 messages (most_messages)")
            ])
        await other.finish()
        #expect(try stage.mailbox.messages().count == 1 && stage.files.count == 2)
    }

    @Test("A caller who has left as many messages as one may is rejected as busy, and another one leaves a message")
    func share() async throws {
        let stage = Stage { $0.bounds.mostMessages = 9 }
        defer { stage.remove() }
        try FileManager.default.createDirectory(atPath: stage.folder, withIntermediateDirectories: true)
        for number in 0..<5 {
            let path = "\(stage.folder)/2026-11-29T10-40-0\(number).000Z_from_ann_aaaaa\(number).wav"
            var writer = try WAVWriter(path: path, sampleRate: VoicemailBounds.rate)
            try writer.append([Int16](repeating: 1_000, count: 32_000).span)
            try writer.finish()
        }
        try stage.begin()
        try await until { !stage.reported.isEmpty }
        let why = "the mailbox \"\(stage.folder)\" has 5 messages of this caller, the limit for one caller"
        #expect(stage.reported == [.rejected(stage.call, .busy, why)])
        await stage.finish()
        let other = Stage(folder: stage.folder) { $0.bounds.mostMessages = 9 }
        try await other.answer(caller: "anna")
        try await other.hangUp()
        await other.finish()
    }

    @Test("The room of a message that is being left is kept, and free again when its caller says nothing")
    func keepsRoom() async throws {
        let one = Stage { $0.bounds.mostMessages = 1 }
        defer { one.remove() }
        try await one.answer()
        let other = Stage(folder: one.folder) { $0.bounds.mostMessages = 1 }
        try other.begin()
        try await until { !other.reported.isEmpty }
        guard case .rejected(other.call, .busy, _)? = other.reported.first else {
            throw Stage.NoCall(events: other.reported)
        }
        await other.finish()
        try await one.hangUp()
        await one.finish()
        let third = Stage(folder: one.folder) { $0.bounds.mostMessages = 1 }
        try await third.answer()
        try await third.hangUp()
        await third.finish()
        #expect(one.files.isEmpty)
    }

    @Test("A folder that cannot be written to rejects the call, and says why")
    func unwritable() async throws {
        let stage = Stage(folder: "/proc/handset-voicemail")
        try stage.begin()
        try await until { !stage.reported.isEmpty }
        guard case .rejected(stage.call, .busy, let why?)? = stage.reported.first else {
            throw Stage.NoCall(events: stage.reported)
        }
        #expect(why.hasPrefix("cannot write to the mailbox \"/proc/handset-voicemail\": "))
        await stage.finish()
    }

    @Test("The caller of a telephone network and its name are kept, and choose no path")
    func names() async throws {
        let stage = Stage()
        defer { stage.remove() }
        try await stage.answer(caller: "../../etc/passwd", name: "Ann; $(reboot) \"../x\"")
        try await stage.run { stage.soundMilliseconds >= 380 }
        var speaker = SyntheticSpeech(seed: 31, levelDBFS: -24)
        try await stage.run(saying: stage.silence(1) + speaker.samples(seconds: 3))
        try await stage.hangUp()
        await stage.finish()
        let message = try #require(try stage.mailbox.messages().first?.message)
        #expect(message.caller == "../../etc/passwd" && message.name == "Ann; $(reboot) \"../x\"")
        #expect(stage.files.count == 2)
    }

    // MARK: Commands

    @Test("The command reads the message as JSON on its standard input, without a shell in between")
    func command() async throws {
        let stage = Stage { $0.command = ["sh", "-c", "cat >\"$1\"", "sh", $0.folder + "/../said"] }
        defer { stage.remove() }
        try await stage.speak(seconds: 3)
        try await stage.hangUp()
        await stage.finish()
        let said = try Data(contentsOf: URL(fileURLWithPath: stage.folder + "/../said"))
        let object = try #require(try JSONSerialization.jsonObject(with: said) as? [String: Any])
        let entry = try #require(try stage.mailbox.messages().first)
        #expect(object["file"] as? String == entry.file && object["caller"] as? String == "ann")
        #expect(object["id"] as? String == entry.message.id && object["heard"] as? Bool == false)
        #expect(object["duration_ms"] as? Int == entry.message.durationMilliseconds)
        #expect(stage.warnings.isEmpty)
    }

    @Test(
        "A command that fails, or is not there, is reported and loses no message",
        arguments: [["sh", "-c", "exit 3"], ["/nowhere"]])
    func commandFails(command: [String]) async throws {
        let stage = Stage { $0.command = command }
        defer { stage.remove() }
        try await stage.speak(seconds: 3)
        try await stage.hangUp()
        await stage.finish()
        #expect(stage.warnings.count == 1, "\(stage.warnings)")
        #expect(stage.warnings.first?.contains("for a new message") == true)
        #expect(try stage.mailbox.messages().count == 1 && stage.stored.count == 1)
    }

    @Test("A command that hangs delays neither the call's end nor that of the device for more than 5 s")
    func commandHangs() async throws {
        let stage = Stage { $0.command = ["sleep", "30"] }
        defer { stage.remove() }
        try await stage.speak(seconds: 3)
        try await stage.hangUp()
        try await until { stage.stored.count == 1 }
        await stage.finish()
        #expect(try stage.mailbox.messages().count == 1)
    }
}
