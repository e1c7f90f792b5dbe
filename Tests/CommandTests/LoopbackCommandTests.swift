import CScriptedCard
import CardSupport
import Foundation
import TestSupport
import Testing

/// `handset loopback` as a user runs it, on the scripted card, on PulseAudio, and through a call.
@Suite("handset loopback", .witnessed, .serialized)
struct LoopbackCommandTests {
    func loopback(_ arguments: [String], _ card: ScriptedCard? = nil) throws -> HandsetProcess {
        try HandsetProcess(
            ["loopback"] + arguments,
            environment: card.map { ["ALSA_CONFIG_PATH": $0.folder + "/asound.conf"] } ?? [:])
    }

    @Test("A card with a cable of 777 samples is measured: delay, drift and nothing lost, in text, JSON and HTML")
    func device() async throws {
        let card = try ScriptedCard()
        card.control.cable_delay = 777
        card.control.noise = 3
        let (json, html) = (card.folder + "/report.json", card.folder + "/report.html")
        // More than two periods ahead: this machine has other work, and what is tested is not its luck.
        let command = try loopback(
            [
                "device", "--device", "card", "--seconds", "2", "--buffer-ms", "60", "--max-gaps", "off", "--tones",
                "6000,440", "--json", json, "--html", html,
            ], card)
        #expect(await command.ending() == 0, "\(command.errorText)\n\(command.outputText)")
        let report = try LoopbackReportObject(file: json)
        if report.events == 0 {
            #expect(abs(report.delay - 60 - 777.0 / 48) < 10.1, "\(report.delay)")
            #expect(abs(report.drift) < 5)
        }
        #expect(report.facts["Played on"]?.contains("48000 Hz") == true)
        // A tone that something happened to is withheld.
        let told = ["tones", "withheld"].flatMap { report.object[$0] as? [[String: Any]] ?? [] }
        #expect(Set(told.compactMap { $0["played_hz"] as? Double }) == [6_000, 440], "\(told)")
        #expect(command.outputText.contains("Within its thresholds"))
        #expect(try String(contentsOfFile: html, encoding: .utf8).contains("Delay over time"))
    }

    @Test("Holes in a cable end the command with 12, are counted, and each is as long as it was")
    func holes() async throws {
        let card = try ScriptedCard()
        card.control.hole_every = 24_000
        card.control.hole_length = 480
        let command = try loopback(
            ["device", "--device", "card", "--seconds", "3", "--buffer-ms", "60", "--json", "-"], card)
        #expect(await command.ending() == 12, "\(command.errorText)")
        let report = try LoopbackReportObject(command.outputText)
        // Those in the long carrier: whether one falls into the short ones behind it depends on when the card began.
        let holes = (report.timing["event_list"] as? [[String: Any]] ?? []).filter {
            abs(($0["hole_samples"] as? Int ?? 0) - 480) <= 3 && ($0["at_s"] as? Double ?? 0) < 3.75
        }
        #expect((5...6).contains(holes.count), "\(report.timing)")
        #expect(report.object["passed"] as? Bool == false)
        #expect(command.errorText.contains("Not within its thresholds"))
    }

    @Test("A card that hears nothing ends the command with 13, and says where to look")
    func silence() async throws {
        let card = try ScriptedCard()
        card.control.hole_every = 1
        card.control.hole_length = 1
        let command = try loopback(["device", "--device", "card", "--seconds", "1"], card)
        #expect(await command.ending() == 13)
        #expect(command.outputText.contains("Is the cable in the right sockets"), "\(command.outputText)")
    }

    @Test("A card that is not there ends the command with 14, and names it and what to try")
    func noCard() async throws {
        let card = try ScriptedCard()
        let unknown = try loopback(["device", "--device", "nonesuch"], card)
        #expect(await unknown.ending() == 14)
        #expect(unknown.errorText.contains(#""nonesuch""#) && unknown.errorText.contains("handset devices"))
        card.control.absent_errno = EBUSY
        let busy = try loopback(["soak", "--device", "card", "--duration", "5s"], card)
        #expect(await busy.ending() == 14)
        #expect(busy.errorText.contains("Another program has it"))
    }

    @Test("Thresholds and times that make no sense end the command with 2, and a file of them with 3 and its line")
    func nonsense() async throws {
        for arguments in [
            ["device", "--max-delay", "soon"], ["device", "--max-gaps", "1.5"], ["soak", "--duration", "8"],
            ["device", "--seconds", "0"],
        ] {
            let command = try loopback(arguments)
            #expect(await command.ending() == 2, "\(arguments)")
            #expect(command.errorText.contains(arguments[1]))
        }
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("limits-\(UUID()).yaml").path
        defer { try? FileManager.default.removeItem(atPath: file) }
        try "thresholds:\n  max_delay: 20ms\n  max_drift: fast\n".write(toFile: file, atomically: true, encoding: .utf8)
        let command = try loopback(["device", "--thresholds", file])
        #expect(await command.ending() == 3)
        #expect(command.errorText.contains(":3: thresholds.max_drift"), "\(command.errorText)")
    }

    @Test(
        "A soak reports its minutes, keeps the worst moments as WAV files, and ends with a signal as it does with its time"
    )
    func soak() async throws {
        let card = try ScriptedCard()
        card.control.hole_every = 96_000
        card.control.hole_length = 960
        let (json, folder) = (card.folder + "/soak.json", card.folder + "/moments")
        let command = try loopback(
            [
                "soak", "--device", "card", "--buffer-ms", "60", "--moments", folder, "--json", json, "--max-disturbed",
                "off", "--max-delay-range", "off", "--duration", "6s", "--min-likeness", "0.2",
            ], card)
        #expect(await command.ending() == 0, "\(command.errorText)\n\(command.outputText)")
        let report = try LoopbackReportObject(file: json)
        #expect(report.object["mode"] as? String == "soak" && report.events >= 2)
        let files = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(files.count == min(8, report.events) && files.contains("worst-1.wav"))
        #expect(command.errorText.contains("minute 1"))

        let endless = try loopback(
            ["soak", "--device", "card", "--buffer-ms", "60", "--moments", folder, "--max-disturbed", "off"], card)
        try await endless.line(containing: "until Ctrl-C")
        // A period in either direction is a transfer: two hundred are a second.
        let transfers = card.control.transfers
        try await eventually("the soak plays and captures") { card.control.transfers >= transfers + 300 }
        endless.send(SIGINT)
        #expect([0, 12, 13].contains(await endless.ending()), "\(endless.errorText)")
        #expect(endless.outputText.contains("Played on"))
    }

    @Test("Through PulseAudio a null sink is measured by its monitor, in real time")
    func pulse() async throws {
        let server = try PulseServer()
        let card = try ScriptedCard(more: server.pcms)
        defer { withExtendedLifetime(server) {} }
        let command = try loopback(
            [
                "device", "--playback", "spk", "--capture", "spkmon", "--seconds", "3", "--json", "-", "--max-gaps",
                "off", "--max-delay", "1500ms", "--max-drift", "off", "--max-distortion", "off", "--max-ripple", "off",
                "--min-likeness", "off",
            ], card)
        let status = await command.ending()
        #expect([0, 12].contains(status), "\(status): \(command.errorText)")
        let delay = try LoopbackReportObject(command.outputText).delay
        #expect(delay > 0 && delay < 1_500, "\(delay)")
    }

    @Test("A whole call to a device that echoes is measured: delay by stage, likeness of signal and speech")
    func call() async throws {
        let running = try await RunningSite(Site())
        defer { running.site.remove() }
        let html = running.site.path("call.html")
        let command = try loopback([
            "call", "echo@localhost", "--config", running.site.callerConfiguration, "--server", running.server,
            "--seconds",
            "3", "--play", Site.speech, "--json", "-", "--html", html, "--max-disturbed", "off", "--max-delay-range",
            "off",
            "--max-delay", "1000ms", "--min-likeness", "off", "--min-signal-to-noise", "off", "--min-quality", "off",
            // The speech is loud, and two coders now and then go beyond full scale.
            "--max-clipped", "off",
        ])
        #expect(await command.ending() == 0, "\(command.errorText)")
        let report = try LoopbackReportObject(command.outputText)
        #expect(report.object["mode"] as? String == "call")
        let stages = report.object["stages"] as? [[String: Any]] ?? []
        let together = stages.reduce(0) { $0 + ($1["ms"] as? Double ?? 0) }
        #expect(
            report.delay > 20 && report.delay < 500 && abs(together - report.delay) < 0.1, "\(report.delay) \(stages)")
        #expect(stages.contains { ($0["name"] as? String)?.hasPrefix("Jitter buffer") == true })
        // What is told can be trusted: the band that the codec leaves, or a reason why not.
        if let response = report.object["response"] as? [String: Any] {
            #expect((response["band_high_hz"] as? Double ?? 0) > 3_000, "\(response["band_high_hz"] ?? 0)")
        } else {
            #expect((report.object["withheld"] as? [Any])?.isEmpty == false)
        }
        let speech = report.object["speech"] as? [String: Any]
        #expect((speech?["likeness"] as? Double ?? 0) > 0.8, "\(speech ?? [:])")
        // Said again and again, for a file of a word or two is too short to be judged; how good it is depends on the
        // machine's other work.
        #expect((speech?["quality"] as? Double ?? 0) > 1.5, "\(speech ?? [:])")
        #expect((speech?["quality_s"] as? Double ?? 0) > 4, "\(speech ?? [:])")
        #expect(report.facts["Mouth to ear"]?.contains("half of the round trip") == true)
        #expect(try String(contentsOfFile: html, encoding: .utf8).contains("Where the delay comes from"))
        #expect(try String(contentsOfFile: html, encoding: .utf8).contains("Quality of speech"))

        let nobody = try loopback([
            "call", "nobody@localhost", "--config", running.site.callerConfiguration, "--server", running.server,
        ])
        #expect([1, 10].contains(await nobody.ending()), "\(nobody.errorText)")
    }
}
