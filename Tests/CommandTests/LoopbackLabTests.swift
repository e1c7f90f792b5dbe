import CScriptedCard
import CardSupport
import Foundation
import Testing

extension LoopbackCommandTests {
    @Test("JUnit, KTAP and a baseline: a cable passes against itself, and fails against itself once it has holes")
    func labs() async throws {
        let card = try ScriptedCard()
        card.control.cable_delay = 100
        card.control.noise = 3
        let (json, junit, ktap) = (
            card.folder + "/report.json", card.folder + "/junit.xml", card.folder + "/report.ktap"
        )
        let common = [
            "device", "--device", "card", "--seconds", "1", "--buffer-ms", "80", "--max-gaps", "off",
            "--max-distortion",
            "off", "--max-ripple", "off",
        ]
        let first = try loopback(common + ["--json", json, "--junit", junit, "--ktap", ktap], card)
        #expect(await first.ending() == 0, "\(first.errorText)\n\(first.outputText)")
        #expect(
            try String(contentsOfFile: junit, encoding: .utf8).contains("<testsuite name=\"handset.loopback.device\""))
        let lines = try String(contentsOfFile: ktap, encoding: .utf8)
        #expect(lines.hasPrefix("KTAP version 1\n1..") && !lines.contains("not ok"), "\(lines)")
        let report = try LoopbackReportObject(file: json)
        #expect(report.object["handset"] is String && report.object["host"] is [String: Any])
        #expect((report.object["tones"] as? [Any])?.isEmpty == false)

        card.control.hole_every = 9_600
        card.control.hole_length = 480
        let second = try loopback(common + ["--baseline", json, "--ktap", "-"], card)
        #expect(await second.ending() == 12, "\(second.errorText)")
        #expect(second.outputText.contains("not ok") && second.outputText.contains("loopback.device.baseline_events"))
        #expect(second.errorText.contains("Gaps and repeats, against the baseline"), "\(second.errorText)")

        for (arguments, status) in [(["--baseline", junit], 3), (["--json", "-", "--ktap", "-"], 2)]
            as [([String], Int32)]
        {
            let refused = try loopback(common + arguments, card)
            #expect(await refused.ending() == status, "\(refused.errorText)")
        }
    }

    @Test("Wires of a card that are swapped end the command with 12; named as wanted they end it with 0, with figures")
    func channels() async throws {
        let card = try ScriptedCard()
        card.control.wires = ((0, 1), (0.6, 0.006))
        let common = [
            "device", "--device", "card", "--seconds", "1", "--tones", "997", "--buffer-ms", "80", "--max-gaps", "off",
            "--max-distortion", "off", "--max-ripple", "off", "--json", "-",
        ]
        let swapped = try loopback(common, card)
        #expect(await swapped.ending() == 12, "\(swapped.errorText)")
        #expect(swapped.errorText.contains("left and right are swapped"), "\(swapped.errorText)")
        let wanted = try loopback(
            common + ["--max-channel-faults", "off", "--max-crosstalk", "-30dB", "--min-channels", "2"], card)
        #expect(await wanted.ending() == 0, "\(wanted.errorText)")
        let object = try LoopbackReportObject(wanted.outputText).object
        let figures = try #require(object["channels"] as? [String: Any], "\(object["withheld"] ?? "")")
        #expect(figures["swapped"] as? Bool == true && figures["heard"] as? Int == 2)
        #expect(abs((figures["crosstalk_db"] as? Double ?? 0) - -40) < 0.5, "\(figures)")
        let left = figures["left"] as? [String: Any]
        #expect(abs((left?["gain_db"] as? Double ?? 0) - -4.44) < 0.3, "\(figures)")
    }

    @Test(
        "A process that is held up while it measures says so, and measures again with more sound ahead",
        .timeLimit(.minutes(2)))
    func heldUp() async throws {
        let card = try ScriptedCard()
        card.control.cable_delay = 100
        let json = card.folder + "/report.json"
        let command = try loopback(
            [
                "device", "--device", "card", "--seconds", "1", "--max-gaps", "off", "--max-delay", "off", "--json",
                json,
            ], card)
        let transfers = card.control.transfers
        try await eventually("the card plays and captures") { card.control.transfers >= transfers + 300 }
        command.send(SIGSTOP)
        try await Task.sleep(for: .milliseconds(120))
        command.send(SIGCONT)
        #expect([0, 12].contains(await command.ending()), "\(command.errorText)")
        #expect(command.errorText.contains("kept Handset's thread waiting"), "\(command.errorText)")
        #expect(command.errorText.contains("measuring again with"), "\(command.errorText)")
        let report = try LoopbackReportObject(file: json)
        #expect(report.facts["Measured again"]?.contains("the card ran empty") == true, "\(report.facts)")
    }
}
