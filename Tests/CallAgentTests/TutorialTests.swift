import CallAgent
import CallControl
import ConfigReader
import Exchange
import Foundation
import JSON
import MediaEngine
import Testing

/// The code of the page "First steps", word for word: a test compares the page with this file.
@Suite("The tutorial", .timeLimit(.minutes(5)))
struct TutorialTests {
    private func logIn(_ server: String, _ token: Secret, _ folder: String) async throws -> Device {
        var account = AccountConfiguration(server: server, credential: .mediaToken(token))
        account.sessionFile = folder + "/session.json"
        var configuration = DeviceConfiguration(account: account)
        configuration.device.callRecords = folder + "/calls.jsonl"
        configuration.answer = AnswerPolicy(manner: .answer(after: .zero))
        let alice = try await Device.login(configuration)
        return alice
    }

    private func hear(_ bob: Device) async throws {
        for await event in bob.events {
            guard case .invited(let invite) = event else { continue }
            try await invite.accept(data: ["at": "noon"])
            break
        }
    }

    private func invite(_ alice: Device, _ bob: Device) async throws {
        let lunch = try await alice.invite("bob", data: ["what": "lunch"])
        let dinner = try await alice.invite("bob", data: ["what": "dinner"], timeToLive: .seconds(60))
        try await dinner.cancel()

        try await hear(bob)
        for await event in alice.events {
            guard case .invite(.accepted(let answer)) = event, answer.invite == lunch.id else { continue }
            #expect(answer.data == ["at": "noon"])
            break
        }
    }

    private func call(_ alice: Device) async throws {
        let call = await alice.call("bob", audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)))
        for await event in alice.events {
            if case .established = event { await alice.hangUp(call) }
            if case .ended(_, let record, _) = event {
                #expect(record.reason == .completed)
                break
            }
        }
    }

    private func speak(_ alice: Device, _ bob: Device) async throws {
        try await alice.join(room: "lobby")
        try await bob.join(room: "lobby")
        try await alice.signal("hello", data: ["text": "Good morning"], in: "lobby")
    }

    private func leave(_ alice: Device, _ bob: Device) async throws {
        await bob.shutDown()
        try await alice.logOut()
    }

    @Test("What the tutorial shows works against an exchange")
    func works() async throws {
        let site = try await Site(users: ["alice", "bob"])
        let folder = FileManager.default.temporaryDirectory.path + "/handset-\(UUID().uuidString)"
        for name in ["alice", "bob"] {
            try FileManager.default.createDirectory(atPath: "\(folder)/\(name)", withIntermediateDirectories: true)
        }
        let alice = try await logIn(site.exchange.url, Secret("token of alice"), folder + "/alice")
        let bob = try await logIn(site.exchange.url, Secret("token of bob"), folder + "/bob")
        try await invite(alice, bob)
        try await call(alice)
        try await speak(alice, bob)
        try await leave(alice, bob)
        #expect(!FileManager.default.fileExists(atPath: folder + "/alice/session.json"))
        #expect(FileManager.default.fileExists(atPath: folder + "/bob/session.json"))
        #expect(try CallJournal.records(in: folder + "/alice/calls.jsonl").map(\.reason) == ["completed"])
        #expect(try CallJournal.records(in: folder + "/bob/calls.jsonl").map(\.reason) == ["completed"])
        try await site.close()
    }

    @Test("Every piece of code in the tutorial is code of this file, word for word")
    func sameCode() throws {
        let here = URL(fileURLWithPath: #filePath)
        let page = here.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Sources/Agent/CallAgent/CallAgent.docc/FirstSteps.md")
        func lines(_ text: some StringProtocol) -> String {
            text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
                .filter { !$0.isEmpty }.joined(separator: "\n")
        }
        let code = lines(try String(contentsOf: here, encoding: .utf8))
        let pieces = try String(contentsOf: page, encoding: .utf8).components(separatedBy: "```swift\n").dropFirst()
            .compactMap { $0.components(separatedBy: "```").first }
        #expect(pieces.count == 7)
        for piece in pieces { #expect(code.contains(lines(piece)), "\(piece)") }
    }
}
