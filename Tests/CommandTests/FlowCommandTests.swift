import AudioKit
import Foundation
import TestSupport
import Testing

/// Call flows, from the real command.
@Suite("Call flows by the command", .witnessed, .serialized, .timeLimit(.minutes(3)))
struct FlowCommandTests {
    private static let sounds = "/usr/share/sounds/alsa"

    /// Writes the documents of a flow, with two sounds.
    private func write(_ documents: [String: String], in site: Site) throws {
        let folder = site.path("menu")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        for (name, text) in documents {
            try "<Response>\(text)</Response>".write(toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8)
        }
        for name in ["Front_Center.wav", "Rear_Left.wav"]
        where !FileManager.default.fileExists(atPath: "\(folder)/\(name)") {
            try FileManager.default.copyItem(atPath: "\(Self.sounds)/\(name)", toPath: "\(folder)/\(name)")
        }
    }

    private func run(_ arguments: String...) async throws -> (code: Int32, output: String, errors: String) {
        let process = try HandsetProcess(arguments)
        let code = await process.ending()
        return (code, process.outputText, process.errorText)
    }

    private static let menu = [
        "menu.xml": """
        <Gather numDigits="1" action="choice-{{Digits}}.xml"><Play>Front_Center.wav</Play></Gather><Redirect>menu.xml</Redirect>
        """,
        "choice-1.xml": "<Play>Rear_Left.wav</Play><Pause length=\"3\"/><Redirect>menu.xml</Redirect>",
        "choice-3.xml": "<Record finishOnKey=\"#\" timeout=\"4\" action=\"choice-9.xml\"/>",
        "choice-9.xml": "<Hangup/>",
    ]

    @Test("`handset flow try` prints each step with its time, and fails where a call would")
    func tries() async throws {
        let site = try Site()
        defer { site.remove() }
        try write(Self.menu, in: site)
        let good = try await run("flow", "try", site.path("menu/menu.xml"), "--digits", "59#")
        #expect(good.code == 0, "\(good.errors)")
        for line in [
            "    0.0 s  answers the call", "    0.0 s  menu.xml:1: Gather", "    1.9 s      key 5",
            "    1.9 s      there is no choice-5.xml",
        ] {
            #expect(good.output.contains(line + "\n"), "\(good.output)")
        }
        #expect(good.output.hasSuffix("not pressed, because the flow did not ask for them: #"), "\(good.output)")
        try write(["choice-9.xml": "\n<Refer>5</Refer>"], in: site)
        let bad = try await run("flow", "try", site.path("menu/menu.xml"), "--digits", "9")
        #expect(bad.code == 3)
        #expect(
            bad.errors.contains("choice-9.xml: line 2: Refer: is not supported; supported are Connect, Dial, Enqueue"),
            "\(bad.errors)")
        try write(["menu.xml": "<Redirect>menu.xml</Redirect>"], in: site)
        let circle = try await run("flow", "try", site.path("menu/menu.xml"))
        #expect(circle.code == 3 && circle.errors.contains("it goes round in circles"), "\(circle.errors)")
        #expect(try await run("flow", "try", site.path("menu/menu.xml"), "--digits", "x").code == 2)
    }

    @Test(
        "`handset check` finds the faults of a flow by itself and in a device's configuration, with file, line and element"
    )
    func checks() async throws {
        let site = try Site(behaviour: "flow\n  flow: {file: menu/menu.xml}")
        defer { site.remove() }
        try write(Self.menu, in: site)
        #expect(try await run("check", site.path("menu/menu.xml")).code == 0)
        let unrecorded = try await run("check", site.deviceConfiguration)
        #expect(unrecorded.code == 3)
        #expect(
            unrecorded.errors.contains("menu/choice-3.xml:1: Record: there is no folder for recordings"),
            "\(unrecorded.errors)")
        try write(
            [
                "choice-1.xml": "<Play>none.wav</Play>\n<Say voice=\"a\">b</Say>",
                "choice-9.xml": "<Play>none.wav</Play>",
            ], in: site)
        let bad = try await run("check", "--json", site.path("menu/menu.xml"))
        #expect(bad.code == 3)
        #expect(bad.output.contains(#""line": 2, "key": "Say", "severity": "error""#), "\(bad.output)")
        #expect(bad.output.contains("cannot read") && bad.output.contains("choice-9.xml"), "\(bad.output)")
    }

    @Test("A caller hears the choice of a key, and leaves a message in a file of the owner alone")
    func calls() async throws {
        let site = try Site(behaviour: "flow\n  flow: {file: menu/menu.xml, record_folder: messages}")
        defer { site.remove() }
        try write(Self.menu, in: site)
        let running = try await RunningSite(site)
        try """
        limit 20 s
        wait for sound
        wait for silence
        press 1
        expect like \(Self.sounds)/Rear_Left.wav
        wait for sound
        wait for silence
        press 3
        wait for sound
        wait for silence
        play \(Self.sounds)/Front_Left.wav
        wait 1 s
        press #
        wait for hang-up
        """.write(toFile: site.path("caller.script"), atomically: true, encoding: .utf8)
        let call = try running.call(["--script", site.path("caller.script")])
        #expect(await call.ending() == 0, "\(call.errorText)")
        let messages = site.path("messages")
        try await until {
            try FileManager.default.contentsOfDirectory(atPath: messages).contains { !$0.contains(".part.") }
        }
        let name = try #require(try FileManager.default.contentsOfDirectory(atPath: messages).first)
        let seconds = Double(try AudioFileReader.samples(ofFile: "\(messages)/\(name)").count) / 48_000
        #expect((1.0...3.5).contains(seconds), "\(seconds) s")
        #expect(
            try FileManager.default.attributesOfItem(atPath: "\(messages)/\(name)")[.posixPermissions] as? Int == 0o600)
    }
}
