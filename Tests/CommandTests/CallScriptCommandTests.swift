import Foundation
import TestSupport
import Testing

/// Calls by a script to a device whose program is a menu.
@Suite("handset call --script", .witnessed, .serialized, .timeLimit(.minutes(2)))
struct CallScriptCommandTests {
    private static let sounds = "/usr/share/sounds/alsa"

    /// A menu that says a prompt, answers 1 with another, and hangs up at 9.
    private static let menu = """
        import array, json, os, socket, threading, wave
        def sound(name):
            with wave.open("\(sounds)/" + name) as file:
                samples = array.array("h", file.readframes(file.getnframes()))
            return bytes(9600) + samples[::3].tobytes()
        control = socket.socket(fileno=3)
        queue = [sound("Front_Center.wav")]
        def listen():
            for line in control.makefile(encoding="utf-8"):
                key = json.loads(line).get("key")
                if key == "1": queue[0] = sound("Front_Left.wav")
                if key == "9": control.sendall(b'{"command":"hangup"}\\n')
        threading.Thread(target=listen, daemon=True).start()
        while os.read(0, 640):
            part, queue[0] = queue[0][:640], queue[0][640:]
            os.write(1, part.ljust(640, b"\\0"))

        """

    private func running() async throws -> RunningSite {
        let site = try Site(behaviour: "exec\n  command: [python3, menu.py]\n  rate_hz: 16000")
        let text = try String(contentsOfFile: site.deviceConfiguration, encoding: .utf8)
        try text.replacing("menu.py", with: site.path("menu.py"))
            .write(toFile: site.deviceConfiguration, atomically: true, encoding: .utf8)
        try Self.menu.write(toFile: site.path("menu.py"), atomically: true, encoding: .utf8)
        return try await RunningSite(site)
    }

    private func script(_ text: String, in site: Site) throws -> [String] {
        try text.write(toFile: site.path("menu.call"), atomically: true, encoding: .utf8)
        return ["--script", site.path("menu.call"), "--junit", site.path("junit.xml")]
    }

    @Test("A menu that answers as expected passes, and each statement is a test case; another answer fails with 18")
    func menu() async throws {
        let running = try await running()
        defer { running.site.remove() }
        func text(_ expected: String) -> String {
            """
            record heard.wav
            wait for sound within 10 s
            wait for silence
            press 1
            expect length 500 ms to 3 s
            expect like \(Self.sounds)/\(expected)
            press 9
            wait for hang-up within 10 s
            """
        }
        let good = try running.call(try script(text("Front_Left.wav"), in: running.site))
        #expect(await good.ending() == 0, "\(good.errorText)")
        let report = try String(contentsOfFile: running.site.path("junit.xml"), encoding: .utf8)
        #expect(report.contains(#"tests="8" failures="0""#), "\(report)")
        #expect(report.contains(#"name="line 4: press 1""#), "\(report)")
        #expect(FileManager.default.fileExists(atPath: running.site.path("heard.wav")))

        let bad = try running.call(try script(text("Rear_Right.wav"), in: running.site))
        #expect(await bad.ending() == 18, "\(bad.errorText)")
        #expect(bad.errorText.contains("menu.call:6: expect like"), "\(bad.errorText)")
        let failed = try String(contentsOfFile: running.site.path("junit.xml"), encoding: .utf8)
        #expect(failed.contains(#"failures="1" errors="0" skipped="2""#), "\(failed)")
    }

    @Test("A script says what its voice makes of a text, and a voice that fails is refused before the call")
    func voice() async throws {
        let running = try await running()
        defer { running.site.remove() }
        let spoken = try running.call(
            try script(
                """
                voice python3 -c "import shutil, sys; print('x' * 200000); shutil.copy(sys.argv[1], sys.argv[2])" \(Self.sounds)/Front_Left.wav {file}
                wait for silence
                say hello
                press 9
                wait for hang-up within 10 s
                """, in: running.site))
        #expect(await spoken.ending() == 0, "\(spoken.errorText)")
        let failing = try running.call(try script("voice false {file}\nsay hello\n", in: running.site))
        #expect(await failing.ending() == 3)
        #expect(failing.errorText.contains("menu.call:1: voice: false failed"), "\(failing.errorText)")
        #expect(!failing.errorText.contains("Calling"))
    }

    @Test("--press waits for a prompt, and pauses; a script's mistakes are reported before the call")
    func pauses() async throws {
        let running = try await running()
        defer { running.site.remove() }
        let keys = try running.call(["--press", "w1,,9"])
        #expect(await keys.ending() == 0, "\(keys.errorText)")
        let wrong = try running.call(try script("wait for sond\nexpect like none.wav\n", in: running.site))
        #expect(await wrong.ending() == 3)
        #expect(wrong.errorText.contains("menu.call:1: sond: is nothing to wait for"), "\(wrong.errorText)")
        #expect(!wrong.errorText.contains("Calling"))
    }
}
