@testable import CallAgent
import CallControl
import ConfigReader
import Foundation
import Testing

/// The configurations that come with the program.
struct ExampleConfigurationTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("config")

    private func problems(in text: String) throws -> [ConfigProblem] {
        let secrets = [
            "HANDSET_APP_SECRET": "a", "HANDSET_MEDIA_TOKEN": "b", "TURN_CREDENTIAL": "c", "PUSH_TOKEN": "d",
            "CONTROL_TOKEN": String(repeating: "e", count: 16),
        ]
        let section = try ConfigDocument.read(text: text, environment: { secrets[$0] })
        var problems: [ConfigProblem] = []
        _ = DeviceConfiguration(section, &problems)
        return problems
    }

    @Test("The example device has no problems, as it is and with what stands in its comments")
    func example() throws {
        let text = try String(contentsOf: Self.folder.appendingPathComponent("device.yaml"), encoding: .utf8)
        #expect(try problems(in: text) == [])
        let skipped = [
            "auth_url, identity_url", "file:", "loop:", "record_folder:", "trust_roots:", "token_file, token_env",
            "rooms:", "session:", "command:", "rate_hz:", "encoding:", "bot:", " url:", "wire:", "answer_timeout_ms:",
            "fallback:", "record_days:", "record_megabytes:", "then:", "attach:", "environment:", "flow:",
            "file: menu", "say:", "record_folder: messages", "voicemail: {",
            "webhooks:", "secret_file: webhook", "previous_secret_env:", "events: [call",
        ]
        let whole = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            guard let mark = line.firstRange(of: "  # "), !skipped.contains(where: { line.contains($0) }) else {
                return String(line)
            }
            let isWhole = line[..<mark.lowerBound].allSatisfy { $0 == " " }
            return isWhole ? String(line.replacingCharacters(in: mark, with: "  ")) : String(line)
        }.joined(separator: "\n").replacing("source: echo", with: "source: tone")
        #expect(whole.contains("\n  offers: webrtc"))
        let found = try problems(in: whole)
        #expect(found == [], "\(found)")
        // The card's section is for another source.
        let card = text.split(separator: "\n", omittingEmptySubsequences: false).split { $0 == "" }
            .first { $0.first?.hasPrefix("# audio:") == true }?.map { $0.dropFirst(2) }.joined(separator: "\n")
        let audio = try #require(card)
        #expect(audio.contains("\n  several_calls: hold") && audio.contains("\n  country: DE"))
        #expect(try problems(in: text.replacing("source: echo", with: "source: card") + "\n\(audio)\n") == [])
        // So is the bot's.
        let bot = ["bot:", "  url:", "  wire:", "  answer_timeout_ms:"].map { "  # \($0)" }
        let answered = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            bot.contains { line.hasPrefix($0) } ? "  " + line.dropFirst(4) : String(line)
        }.joined(separator: "\n").replacing("source: echo", with: "source: bot")
        #expect(answered.contains("\n    wire: twilio"))
        #expect(try problems(in: answered) == [])
        let idle = try problems(in: text + "\n\(audio)\n")
        #expect(idle.map(\.key) == ["audio"] && idle.allSatisfy(\.isWarning), "\(idle)")
    }

    @Test("INV-11: max_calls is auto unless it is given, and a number overrides it")
    func callLimit() throws {
        func limit(_ line: String) throws -> (AnswerPolicy.CallLimit, [ConfigProblem]) {
            let text = "account:\n  anonymous: guest\nanswer:\n  mode: auto\n\(line)"
            var problems: [ConfigProblem] = []
            let section = try ConfigDocument.read(text: text, environment: { _ in nil })
            return (DeviceConfiguration(section, &problems).answer.callLimit, problems)
        }
        #expect(try limit("").0 == .automatic)
        #expect(try limit("  max_calls: auto").0 == .automatic)
        #expect(try limit("  max_calls: 70").0 == .calls(70))
        let problem = try #require(try limit("  max_calls: many").1.first)
        #expect(
            problem.description.contains("max_calls: must be auto, or a whole number from 1 to 10000, not \"many\""))
    }
}

extension Substring {
    fileprivate func replacingCharacters(in range: Range<Index>, with text: String) -> String {
        self[..<range.lowerBound] + text + self[range.upperBound...]
    }
}
