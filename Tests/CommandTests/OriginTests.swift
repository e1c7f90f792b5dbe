import CScriptedCard
import CardSupport
import Foundation
import Testing

/// Reports say which Handset made them, where, and on which card.
@Suite("Where a report comes from", .serialized)
struct OriginTests {
    private static let hostName = ProcessInfo.processInfo.hostName.split(separator: ".").first.map(String.init) ?? ""

    private func check(_ report: LoopbackReportObject) throws {
        let host = try #require(report.object["host"] as? [String: String])
        #expect(
            host["name"]?.hasPrefix(Self.hostName) == true && host["system"]?.hasPrefix("Linux ") == true, "\(host)")
        #expect((report.object["handset"] as? String)?.isEmpty == false)
        for direction in ["playback", "capture"] {
            let card = try #require(report.object[direction] as? [String: Any])
            #expect(card["name"] as? String == "card" && card["card"] is NSNull, "\(card)")
        }
    }

    @Test("A trial of a card names Handset's version, the host and the card, in JSON and in text")
    func trial() async throws {
        let card = try ScriptedCard()
        let environment = ["ALSA_CONFIG_PATH": card.folder + "/asound.conf"]
        let arguments = ["devices", "--test", "--device", "card", "--seconds", "2"]
        let machine = try HandsetProcess(arguments + ["--json"], environment: environment)
        #expect([0, 1].contains(await machine.ending()), "\(machine.errorText)")
        try check(LoopbackReportObject(machine.outputText))
        let person = try HandsetProcess(arguments, environment: environment)
        #expect([0, 1].contains(await person.ending()), "\(person.errorText)")
        #expect(person.outputText.contains("by         Handset "), "\(person.outputText)")
    }

    @Test("A call's report names Handset's version, the host, and the card if it was on one")
    func call() async throws {
        let running = try await RunningSite(Site())
        defer { running.site.remove() }
        let card = try ScriptedCard()
        let arguments = [
            "call", "echo@localhost", "--config", running.site.callerConfiguration, "--server", running.server,
            "--duration", "1",
        ]
        let onCard = try HandsetProcess(
            arguments + ["--device", "card", "--json"], environment: ["ALSA_CONFIG_PATH": card.folder + "/asound.conf"])
        #expect(await onCard.ending() == 0, "\(onCard.errorText)")
        try check(LoopbackReportObject(onCard.outputText))
        let silent = try HandsetProcess(arguments)
        #expect(await silent.ending() == 0, "\(silent.errorText)")
        #expect(silent.outputText.contains("measured by           Handset "), "\(silent.outputText)")
        #expect(!silent.outputText.contains("played on"))
    }
}
