import ExchangeServer
import CallAgent
import CallControl
import Foundation
import Testing

/// The page "First steps" and its code, Examples/FirstSteps, which is a file of these tests too and has one import.
@Suite("The tutorial", .timeLimit(.minutes(5)))
struct TutorialTests {
    @Test("What the tutorial shows works against an exchange")
    func works() async throws {
        let site = try await Site(users: ["alice", "bob"])
        let folder = FileManager.default.temporaryDirectory.path + "/handset-\(UUID().uuidString)"
        for name in ["alice", "bob"] {
            try FileManager.default.createDirectory(atPath: "\(folder)/\(name)", withIntermediateDirectories: true)
        }
        let alice = try await FirstSteps.logIn(site.exchange.url, Secret("token of alice"), folder + "/alice")
        let bob = try await FirstSteps.logIn(site.exchange.url, Secret("token of bob"), folder + "/bob")
        try await FirstSteps.invite(alice, bob)
        try await FirstSteps.call(alice)
        try await FirstSteps.speak(alice, bob)
        try await FirstSteps.leave(alice, bob)
        #expect(!FileManager.default.fileExists(atPath: folder + "/alice/session.json"))
        #expect(FileManager.default.fileExists(atPath: folder + "/bob/session.json"))
        #expect(try CallJournal.records(in: folder + "/alice/calls.jsonl").map(\.reason) == ["completed"])
        #expect(try CallJournal.records(in: folder + "/bob/calls.jsonl").map(\.reason) == ["completed"])
        try await site.close()
    }

    @Test("What the page about taking part shows works against an exchange, also in a second call of the same process")
    func takesPart() async throws {
        let site = try await Site(users: ["alice", "bob"])
        let alice = try await TakingPart.logIn(site.exchange.url, Secret("token of alice"))
        let bob = try await TakingPart.logIn(site.exchange.url, Secret("token of bob"))
        func tone(milliseconds: Int) -> [Int16] { (0..<16 * milliseconds).map { $0 / 20 % 2 == 0 ? 4_000 : -4_000 } }
        await TakingPart.answer(bob, with: tone(milliseconds: 200))
        for _ in 1...2 {
            let heard = try await TakingPart.speak(alice, tone(milliseconds: 1_000)) / 16
            #expect((900...1_500).contains(heard), "\(heard) ms")
        }
        await alice.shutDown()
        await bob.shutDown()
        try await site.close()
    }

    @Test(
        "Every piece of code in the tutorials is code of its example, word for word",
        arguments: [("FirstSteps", 8), ("TakingPart", 6)])
    func sameCode(page name: String, count: Int) throws {
        let here = URL(fileURLWithPath: #filePath)
        let root = here.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let page = root.appendingPathComponent("Sources/Agent/CallAgent/CallAgent.docc/\(name).md")
        let example = root.appendingPathComponent("Examples/\(name)/Sources/\(name)/\(name).swift")
        func lines(_ text: some StringProtocol) -> String {
            text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
                .filter { !$0.isEmpty }.joined(separator: "\n")
        }
        let code = lines(try String(contentsOf: example, encoding: .utf8))
        let pieces = try String(contentsOf: page, encoding: .utf8).components(separatedBy: "```swift\n").dropFirst()
            .compactMap { $0.components(separatedBy: "```").first }
        #expect(pieces.count == count)
        for piece in pieces { #expect(code.contains(lines(piece)), "\(piece)") }
        #expect(code.components(separatedBy: "\n").filter { $0.hasPrefix("import ") } == ["import CallAgent"])
    }
}
