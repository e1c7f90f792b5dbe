import CallControl
import CallParticipation
import CallVoicemail
import Core
import Foundation
import LoopbackAnalysis
import TestSupport
import Testing
import Voicemail

@Suite("The owner of a mailbox calls it", .serialized)
struct MenuTests {
    /// A mailbox with one message, whose prompts are a copy of that message's sound.
    private func stage(pin: String? = nil) async throws -> Stage {
        let first = Stage()
        try await first.speak(seconds: 3)
        first.press("#")
        try await first.run { !first.stored.isEmpty }
        try await first.hangUp()
        await first.finish()
        let prompts = (first.folder as NSString).deletingLastPathComponent + "/prompts"
        try FileManager.default.createDirectory(atPath: prompts, withIntermediateDirectories: true)
        let sound = try #require(try first.mailbox.messages().first?.file)
        for name in MailboxPrompt.names {
            try FileManager.default.copyItem(atPath: sound, toPath: "\(prompts)/\(name).wav")
        }
        return Stage(folder: first.folder) { plan in
            var menu = MenuPlan(owners: [CalleePattern("bob")].compactMap(\.self))
            menu.prompts = prompts
            menu.pin = pin.map { WipedBytes($0.utf8) }
            plan.menu = menu
        }
    }

    @Test("An owner hears the messages, which are marked as heard, and deletes one by a key; then the call ends")
    func hears() async throws {
        let stage = try await stage()
        defer { stage.remove() }
        try await stage.answer(caller: "bob")
        try await stage.run { (try? stage.mailbox.messages().first?.message.isHeard) == true }
        // The number of messages, and the message: each has at least two seconds of speech.
        #expect(stage.soundMilliseconds > 3_000)
        stage.press("3")
        try await stage.run { (try? stage.mailbox.messages().isEmpty) == true }
        try await stage.run { stage.reported.contains(.done(stage.call, failure: nil)) }
        #expect(stage.warnings.isEmpty)
        try await stage.hangUp()
        await stage.finish()
    }

    @Test("Another caller leaves a message, although there is a menu")
    func others() async throws {
        let stage = try await stage()
        defer { stage.remove() }
        try await stage.answer(caller: "carol")
        try await stage.run { stage.soundMilliseconds >= 380 }
        var speaker = SyntheticSpeech(seed: 31, levelDBFS: -24)
        try await stage.run(saying: stage.silence(1) + speaker.samples(seconds: 3))
        stage.press("#")
        try await stage.run { stage.stored.count == 1 }
        #expect(try stage.mailbox.messages().count == 2)
        try await stage.hangUp()
        await stage.finish()
    }

    @Test("A wrong PIN is refused and noted without its digits, and the right one opens the mailbox")
    func pin() async throws {
        let stage = try await stage(pin: "271828")
        defer { stage.remove() }
        try await stage.answer(caller: "bob")
        try await stage.run { stage.soundMilliseconds > 100 }
        for key in "314159#" { stage.press(key) }
        try await stage.run { !stage.warnings.isEmpty }
        #expect(stage.warnings.allSatisfy { $0.contains("wrong PIN") && !$0.contains("314159") })
        #expect(try stage.mailbox.messages().first?.message.isHeard == false)
        for key in "271828#" { stage.press(key) }
        try await stage.run { (try? stage.mailbox.messages().first?.message.isHeard) == true }
        try await stage.hangUp()
        await stage.finish()
    }

    @Test("Wrong PINs are counted over calls: after five, not even the right one is taken")
    func bounded() async throws {
        let stage = try await stage(pin: "271828")
        defer { stage.remove() }
        for number in 0..<2 {
            try await stage.answer(caller: "bob")
            try await stage.run { stage.soundMilliseconds > 100 }
            for _ in 0..<3 { for key in "314159#" { stage.press(key) } }
            try await stage.run { stage.warnings.count >= 3 * number + 3 }
            try await stage.hangUp()
            stage.forget()
        }
        try await stage.answer(caller: "bob")
        try await stage.run { stage.soundMilliseconds > 100 }
        for key in "271828#" { stage.press(key) }
        try await stage.run { stage.warnings.last?.contains("no further PIN") == true }
        #expect(try stage.mailbox.messages().first?.message.isHeard == false)
        try await stage.hangUp()
        await stage.finish()
    }
}
