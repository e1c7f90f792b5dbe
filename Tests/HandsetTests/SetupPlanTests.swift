import ControlPlane
import Foundation
import Testing

@testable import CallAgent
@testable import ConfigReader
@testable import handset

@Suite("What handset setup writes and asks")
struct SetupPlanTests {
    @Test(
        "The configuration says what was asked for, and is one that handset run takes",
        arguments: SetupPlan.Source.allCases)
    func configuration(source: SetupPlan.Source) throws {
        let folder = FileManager.default.temporaryDirectory.path + "/handset-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var plan = SetupPlan(name: "front-door")
        plan.server = "https://calls.example.org"
        plan.source = source
        plan.device = "hw:CARD=Headset,DEV=0"
        plan.folder = folder
        plan.state = folder
        plan.controlSocket = folder + "/control.sock"
        plan.appKey = "site"
        plan.profile = "pi"
        try "secret".write(toFile: plan.appSecretPath, atomically: true, encoding: .utf8)
        try "token".write(toFile: plan.tokenPath, atomically: true, encoding: .utf8)
        try plan.text.write(toFile: plan.configurationPath, atomically: true, encoding: .utf8)
        let read = try DeviceConfiguration.read(path: plan.configurationPath, fileChecks: .all)
        #expect(read.account.authURL == "https://calls.example.org")
        #expect(read.account.sessionFile == folder + "/session.json")
        #expect(read.device.name == "front-door" && read.device.callRecords == folder + "/calls.jsonl")
        #expect(plan.text.contains("  source: \(source.rawValue)\n"))
        if source == .card { #expect(read.audio.playback == "hw:CARD=Headset,DEV=0") }
        #expect(read.profile == .pi)
        #expect(read.control?.socket == .path(folder + "/control.sock"))
        #expect(read.control?.access == .group)
        #expect(read.account.appKey == "site" && read.account.appSecret.revealed == "secret")
        plan.hasTrustRoots = true
        #expect(plan.text.contains("  trust_roots: front-door.roots.pem\n"))
    }

    @Test("A name that is no plain word is refused, and so is that of the exchange")
    func names() {
        for name in ["front", "front-door", "a", "2nd_floor", String(repeating: "a", count: 64)] {
            #expect(SetupPlan.problem(withName: name) == nil, "\(name)")
        }
        for name in ["", "-a", "Front", "a b", "a/b", "..", "a.b", "ä", "exchange", String(repeating: "a", count: 65)] {
            #expect(SetupPlan.problem(withName: name) != nil, "\(name)")
        }
    }

    @Test(
        "An empty answer is the usual one, a wrong one is asked again with what is wrong, and the end of answers ends it"
    )
    func questions() {
        var answers = ["", "  drum  ", "tone"]
        var asked: [String] = []
        let questions = SetupQuestions { question in
            asked.append(question)
            return answers.isEmpty ? nil : answers.removeFirst()
        }
        #expect(questions.answer("The URL", usual: "http://a") == "http://a")
        #expect(questions.choice("What", of: ["echo", "tone"], usual: "echo") == "tone")
        #expect(questions.answer("More", usual: "x") == nil)
        #expect(
            asked == [
                "The URL [http://a]: ", "What (echo, tone) [echo]: ",
                "\"drum\" is none of echo, tone.\nWhat (echo, tone) [echo]: ", "More [x]: ",
            ])
    }
}
