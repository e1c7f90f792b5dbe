import AudioKit
import Foundation
import TestSupport
import Testing

/// Calls of the real command whose sound changes while they run, and what a kill -9 leaves of their recordings.
@Suite("handset control play, record and attach", .witnessed, .serialized, .timeLimit(.minutes(3)))
struct CallSoundCommandTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// A site whose device has these lines in its section `behaviour`.
    private func site(_ behaviour: String) throws -> Site {
        let site = try Site(isControlled: true)
        let text = try String(contentsOfFile: site.deviceConfiguration, encoding: .utf8)
        try text.replacing("source: echo", with: behaviour.replacing("\n", with: "\n  "))
            .write(toFile: site.deviceConfiguration, atomically: true, encoding: .utf8)
        return site
    }

    private func names(in folder: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
    }

    private func power(_ path: String) throws -> Double {
        let samples = try AudioFileReader.samples(ofFile: path)
        return samples.reduce(0) { $0 + Double($1) * Double($1) } / Double(max(1, samples.count))
    }

    @Test("Files are played and calls recorded by hand, a program joins and leaves, and events report it with times")
    func byHand() async throws {
        let site = try site(
            "source: silence\nattach: exec\ncommand: [sh, -c, \"cat > /dev/null\"]\nmax_call_seconds: 300")
        defer { site.remove() }
        let running = try await RunningSite(site)
        let watch = try HandsetProcess(["control", "--config", site.deviceConfiguration, "watch", "--json"])
        try await eventually { watch.outputText.contains(#""status""#) }
        let call = try running.call(["--play", Site.speech, "--duration", "60"])
        try await eventually { watch.outputText.contains(#""event":"established""#) }

        let none = try await running.control("play", "9", Site.speech)
        #expect(none.code == 1 && none.error.contains("there is no call 9"), "\(none)")
        let nothing = try await running.control("play", site.path("nothing.wav"))
        #expect(nothing.code == 1 && nothing.error.contains("No such file"), "\(nothing)")
        let noSound = try await running.control("play", site.deviceConfiguration)
        #expect(noSound.code == 1 && noSound.error.contains("not a WAV"), "\(noSound)")
        let noFile = try await running.control("record", "start")
        #expect(noFile.code == 1 && noFile.error.contains("set record_folder"), "\(noFile)")
        let taken = try await running.control("record", "start", Site.speech)
        #expect(taken.code == 1 && taken.error.contains("there is such a file"), "\(taken)")

        let kept = site.path("kept.opus")
        #expect(try await running.control("record", "1", "start", kept).output == "call 1: is recorded to \(kept)")
        let twice = try await running.control("record", "start", site.path("b.wav"))
        #expect(twice.code == 1 && twice.error.contains("is being recorded already"), "\(twice)")
        #expect(try await running.control("play", Site.speech).output == "call 1: plays \(Site.speech)")
        try await eventually { watch.outputText.contains(#""reason":"played""#) }
        #expect(try await running.control("stop").code == 1)
        #expect(try await running.control("attach", "1").output == "call 1: a program takes part")
        #expect(try await running.control("attach").error.contains("already"))
        #expect(try await running.control("detach").output == "call 1: the program leaves")
        #expect(try await running.control("record", "stop").output == "call 1: the recording ends")
        try await eventually { FileManager.default.fileExists(atPath: kept) }
        #expect(try power(kept) > 1_000)
        #expect(try await running.control("hangup").code == 0)
        #expect(await call.ending() == 0, "\(call.errorText)")
        try await eventually { watch.outputText.contains(#""hung_up_because":"request""#) }
        for text in [
            #"{"at_ms":1"#, #""event":"attached""#, #""event":"detached""#,
            #""event":"play","path":"\#(Site.speech)","reason":"played","state":"ended""#,
            #""event":"recording","path":"\#(kept)","reason":"stopped","state":"ended""#,
        ] {
            #expect(watch.outputText.contains(text), "\(text) in \(watch.outputText)")
        }
        watch.send(SIGINT)
        #expect(await watch.ending() == 0)
    }

    @Test(
        "A kill -9 of the device leaves recordings of both sides that play up to the last second; the next start names them",
        arguments: ["wav", "opus"])
    func killed(format: String) async throws {
        let site = try site("source: echo\nrecord_folder: kept\nrecord_format: \(format)\nrecord_channels: 2")
        defer { site.remove() }
        let running = try await RunningSite(site)
        let call = try running.call(["--play", Site.speech, "--duration", "60"])
        let watch = try HandsetProcess(["control", "--config", site.deviceConfiguration, "watch", "--json"])
        func part() -> String? { names(in: site.path("kept")).first.map { site.path("kept/\($0)") } }
        func seconds() -> Double {
            guard let part = part(), let samples = try? AudioFileReader.samples(ofFile: part) else { return 0 }
            return Double(samples.count) / 48_000
        }
        // Both sides have spoken by then: speech is 1.4 s long.
        try await eventually { seconds() > 2 }
        let before = seconds()
        running.device.send(SIGKILL)
        #expect(await running.device.ending() == -SIGKILL)
        let name = try #require(part())
        #expect(name.hasSuffix(".part.\(format)") && names(in: site.path("kept")).count == 1)
        let left = try power(name)
        #expect(seconds() >= before && left > 1_000)
        if format == "wav" {
            let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: name)))
            let (channels, claimed) = (Int(bytes[22]), bytes[40..<44].reversed().reduce(0) { $0 << 8 | Int($1) })
            #expect(channels == 2 && claimed <= bytes.count - 44)
            #expect(bytes.count - 44 - claimed < 192_000, "what the header does not count is less than a second")
        }
        call.send(SIGKILL)
        watch.send(SIGKILL)

        let again = try HandsetProcess([
            "run", "--config", site.deviceConfiguration, "--server", running.server, "--log-format", "json",
        ])
        try await again.line(containing: "A recording of an earlier run was cut off")
        let cut = name.replacing(".part.", with: ".cut.")
        #expect(names(in: site.path("kept")).map { site.path("kept/\($0)") } == [cut])
        #expect(try power(cut) > 1_000)
    }

    @Test("What a program leaves behind in sessions of its own ends after its call, also if its variables are cleared")
    func leftBehind() async throws {
        let site = try site("source: exec\ncommand: [python3, leave.py]")
        defer { site.remove() }
        let text = try String(contentsOfFile: site.deviceConfiguration, encoding: .utf8)
        try text.replacing("leave.py", with: site.path("leave.py"))
            .write(toFile: site.deviceConfiguration, atomically: true, encoding: .utf8)
        let script = """
            import os, sys
            for variables in dict(os.environ), {}:
                if os.fork() == 0:
                    os.setsid()
                    if os.fork(): os._exit(0)
                    with open("\(site.path("left"))", "a") as file: file.write(f"{os.getpid()}\\n")
                    os.closerange(0, 4)
                    os.execve("/bin/sleep", ["sleep", "1000"], variables)
                os.wait()
            while os.read(0, 4096): pass
            """
        try script.write(toFile: site.path("leave.py"), atomically: true, encoding: .utf8)
        let running = try await RunningSite(site)
        let call = try running.call(["--duration", "60"])
        func left() -> [Int] {
            let text = (try? String(contentsOfFile: site.path("left"), encoding: .utf8)) ?? ""
            return text.split(separator: "\n").compactMap { Int($0) }
        }
        func runs(_ process: Int) -> Bool {
            let text = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
            return text.contains("(sleep) ") && !text.contains("(sleep) Z")
        }
        try await eventually { left().filter(runs).count == 2 }
        #expect(try await running.control("hangup").code == 0)
        #expect(await call.ending() == 0, "\(call.errorText)")
        try await eventually { !left().contains(where: runs) }
        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0)
    }

    @Test("The example in Examples/greeting greets, records both sides, and is a configuration without problems")
    func example() async throws {
        let example = Self.root.appending(path: "Examples/greeting/device.yaml")
        let text = try String(contentsOf: example, encoding: .utf8)
        // Its first lines promise: with a token and a greeting beside it, it is complete.
        let copy = try self.site("source: echo")
        defer { copy.remove() }
        let whole = copy.path("example.yaml")
        try text.write(toFile: whole, atomically: true, encoding: .utf8)
        try Data("alice-demo-token\n".utf8).write(to: URL(fileURLWithPath: copy.path("alice.token")))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: copy.path("alice.token"))
        try FileManager.default.copyItem(atPath: Site.speech, toPath: copy.path("greeting.wav"))
        let checkWhole = try HandsetProcess(["check", whole])
        #expect(await checkWhole.ending() == 0, "\(checkWhole.errorText)\(checkWhole.outputText)")
        let behaviour = try #require(text.components(separatedBy: "behaviour:\n").last)
        let lines = behaviour.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        let site = try site(lines.joined(separator: "\n"))
        defer { site.remove() }
        try FileManager.default.copyItem(atPath: Site.speech, toPath: site.path("greeting.wav"))
        let check = try HandsetProcess(["check", site.deviceConfiguration])
        #expect(await check.ending() == 0, "\(check.errorText)\(check.outputText)")
        let running = try await RunningSite(site)
        let heard = site.path("heard.wav")
        let call = try running.call(["--play", Site.speech, "--record", heard, "--minimum-likeness", "0.8"])
        #expect(await call.ending() == 0, "\(call.errorText)")
        let line = try await running.device.line(containing: "A recording has ended")
        #expect(line.contains("call_ended"))
        let kept = names(in: site.path("recordings"))
        #expect(kept.count == 1 && kept[0].hasSuffix(".wav") && !kept[0].contains(".part."))
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: site.path("recordings/\(kept[0])"))))
        #expect(bytes[22] == 2)
        for side in 0...1 {
            var sum = 0.0
            for offset in stride(from: 44 + 2 * side, to: bytes.count - 1, by: 4) {
                let sample = Int16(bitPattern: UInt16(bytes[offset]) | UInt16(bytes[offset + 1]) << 8)
                sum += Double(sample) * Double(sample)
            }
            #expect(sum / Double(bytes.count / 4) > 10_000, "side \(side) has a voice")
        }
    }
}
