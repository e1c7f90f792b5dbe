import AudioKit
import Foundation
import TestSupport
import Testing

/// Messages, from the real command.
@Suite("Voicemail by the command", .witnessed, .serialized, .timeLimit(.minutes(3)))
struct VoicemailCommandTests {
    private static let behaviour = "voicemail\n  voicemail: {folder: box, command: [cat]}"

    private func run(_ arguments: [String]) async throws -> (code: Int32, output: String, errors: String) {
        let process = try HandsetProcess(arguments)
        let code = await process.ending()
        return (code, process.outputText, process.errorText)
    }

    private func voicemail(_ site: Site, _ words: String...) async throws -> [String] {
        let result = try await run(["voicemail"] + words + ["--config", site.deviceConfiguration])
        #expect(result.code == 0, "\(result.errors)")
        return result.output.split(separator: "\n").map(String.init)
    }

    /// Writes the script of a caller who speaks several times, and then presses #.
    private func write(_ times: Int, in site: Site) throws {
        let speech = [String](repeating: "play \(Site.speech)\n", count: times).joined()
        try "limit 30 s\nwait for sound\nwait for silence\n\(speech)wait 1 s\npress #\nwait for hang-up\n".write(
            toFile: site.path("caller.script"), atomically: true, encoding: .utf8)
    }

    @Test("A message is listed, heard, marked and deleted while the device runs, and its event comes over control")
    func leavesMessage() async throws {
        let site = try Site(behaviour: Self.behaviour, isControlled: true)
        defer { site.remove() }
        try write(3, in: site)
        let running = try await RunningSite(site)
        let watch = try HandsetProcess(["control", "--socket", site.controlSocket, "--json", "watch"])
        let call = try running.call(["--script", site.path("caller.script")])
        #expect(await call.ending() == 0, "\(call.errorText)")
        try await running.device.line(containing: "A caller has left a message")
        try await until { watch.outputText.contains(#""event":"voicemail""#) }
        let lines = try await voicemail(site, "list", "--new")
        #expect(lines.count == 1 && lines[0].contains("caller"), "\(lines)")
        let id = String(lines[0].prefix { $0 != " " })
        #expect(try await voicemail(site, "play", id, "--output", site.path("heard.wav")) == [])
        let seconds = Double(try AudioFileReader.samples(ofFile: site.path("heard.wav")).count) / 48_000
        #expect((2.5...6).contains(seconds), "\(seconds) s")
        #expect(try await voicemail(site, "list", "--new").isEmpty)
        #expect(try await voicemail(site, "list", "--json")[0].contains(#""heard":true"#))
        #expect(try await voicemail(site, "mark", id, "--new") == [])
        #expect(try await voicemail(site, "list", "--new").count == 1)
        #expect(try await voicemail(site, "delete", "all") == [])
        #expect(try await voicemail(site, "list").isEmpty)
    }

    @Test("A PIN that is entered by telephone is in no event and in no line of the log")
    func keepsPIN() async throws {
        let site = try Site(
            behaviour: """
                voicemail
                  voicemail:
                    folder: box
                    menu: {owners: [caller], pin_file: pin, say: [cat, "\(Site.speech)"]}
                """, isControlled: true)
        defer { site.remove() }
        let pin = site.path("pin")
        try "123456\n".write(toFile: pin, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: pin)
        try "limit 30 s\nwait for sound\npress 987987#\nwait 2 s\n".write(
            toFile: site.path("caller.script"), atomically: true, encoding: .utf8)
        let running = try await RunningSite(site)
        let watch = try HandsetProcess(["control", "--socket", site.controlSocket, "--json", "watch"])
        try await until { !watch.outputText.isEmpty }
        let call = try running.call(["--script", site.path("caller.script")])
        #expect(await call.ending() == 0, "\(call.errorText)")
        try await running.device.line(containing: "a caller has entered a wrong PIN")
        try await until { watch.outputText.contains(#""event":"ended""#) }
        #expect(!watch.outputText.contains(#""event":"digit""#), "\(watch.outputText)")
        #expect(!running.device.errorText.contains("pressed a key"), "\(running.device.errorText)")
    }

    @Test("What was said until a device was killed is a message when it starts again")
    func killed() async throws {
        let site = try Site(behaviour: Self.behaviour)
        defer { site.remove() }
        try write(12, in: site)
        let running = try await RunningSite(site)
        let call = try running.call(["--script", site.path("caller.script")])
        let box = site.path("box")
        try await until {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: box)) ?? []
            let part = names.first { $0.hasSuffix(".part.wav") }
            let attributes = part.flatMap { try? FileManager.default.attributesOfItem(atPath: "\(box)/\($0)") }
            return (attributes?[.size] as? Int ?? 0) > 100_000
        }
        running.device.send(SIGKILL)
        #expect(await running.device.ending() == -SIGKILL)
        call.send(SIGKILL)
        #expect(try await voicemail(site, "list").isEmpty)
        let again = try HandsetProcess(
            ["run", "--config", site.deviceConfiguration, "--server", running.server, "--log-format", "json"])
        try await again.line(containing: "A caller has left a message")
        let lines = try await voicemail(site, "list", "--json")
        #expect(lines.count == 1 && lines[0].contains(#""cut":true"#), "\(lines)")
        #expect(lines[0].contains(#""caller":"caller"#), "\(lines)")
    }

    @Test("A message that is not there, a mailbox that is not named, and one of no voicemail end with an error")
    func refuses() async throws {
        let site = try Site(behaviour: Self.behaviour)
        defer { site.remove() }
        let unknown = try await run(["voicemail", "delete", "../x", "--config", site.deviceConfiguration])
        #expect(unknown.code == 1 && unknown.errors.contains("there is no message \"../x\" in"), "\(unknown.errors)")
        #expect(try await run(["voicemail", "list"]).code == 2)
        let other = try await run(["voicemail", "list", "--config", site.callerConfiguration])
        #expect(
            other.code == 3 && other.errors.contains("a behaviour with source: voicemail has one"), "\(other.errors)")
        #expect(try await run(["voicemail", "list", "--folder", site.path("none")]).code == 1)
    }
}
