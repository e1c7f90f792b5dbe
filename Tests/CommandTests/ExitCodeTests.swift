import Foundation
import TestSupport
import Testing

/// The exit codes of docs/exit-codes.md, from the real command.
@Suite("handset's exit codes", .witnessed, .serialized)
struct ExitCodeTests {
    @Test("Over TLS a call is completed by who trusts the certificate, and refused with 6 by who does not")
    func certificate() async throws {
        let running = try await RunningSite(Site(isEncrypted: true))
        defer { running.site.remove() }
        let trusting = try running.call(["--play", Site.speech, "--minimum-likeness", "0.8"])
        #expect(await trusting.ending() == 0, "\(trusting.errorText)")

        let text = try String(contentsOfFile: running.site.callerConfiguration, encoding: .utf8)
        try text.replacing("trust_roots: certificate.pem", with: "")
            .write(toFile: running.site.callerConfiguration, atomically: true, encoding: .utf8)
        let distrusting = try running.call([])
        #expect(await distrusting.ending() == 6)
        #expect(distrusting.errorText.contains("ertificate"))
    }

    @Test("A result that cannot be written ends with 1, and a reader that is gone is no fault")
    func lostResult() async throws {
        let command = try HandsetProcess.executable().path
        func code(_ rest: String) async throws -> (code: Int32, error: String) {
            let line = "set -o pipefail; '\(command)' version \(rest)"
            let shell = try HandsetProcess(["-c", line], executable: "/bin/bash")
            return (await shell.ending(), shell.errorText)
        }
        let full = try await code(">/dev/full")
        #expect(full.code == 1 && full.error.contains("cannot write the result to standard output: No space left"))
        #expect(try await code("| true").code == 0)
        #expect(try await code(">/dev/null").code == 0)
    }

    @Test("A wrong token ends with 4, and the token is in no message")
    func wrongToken() async throws {
        let running = try await RunningSite(Site())
        defer { running.site.remove() }
        try Data("wrong-token-42".utf8).write(to: running.site.folder.appendingPathComponent("caller.secret"))
        let call = try running.call(["--log-level", "trace"])
        #expect(await call.ending() == 4)
        #expect(!(call.errorText + running.exchange.errorText).contains("wrong-token-42"))
    }

    @Test("A server that is not there ends a call with 5")
    func unreachable() async throws {
        let call = try HandsetProcess(["call", "echo@localhost:\(try freePort())"])
        #expect(await call.ending() == 5)
    }

    @Test("A port in use ends serve with 7")
    func portInUse() async throws {
        let running = try await RunningSite(Site())
        defer { running.site.remove() }
        let port = try #require(URL(string: running.server)?.port)
        let second = try HandsetProcess(["serve", "--listen", "127.0.0.1:\(port)"])
        #expect(await second.ending() == 7)
        #expect(second.errorText.contains("\(port)"))
    }

    @Test("An unusable file to play ends with 8 before the callee rings, and one that cannot be recorded to with 9")
    func files() async throws {
        let running = try await RunningSite(Site())
        defer { running.site.remove() }
        let noAudio = try running.call(["--play", running.site.deviceConfiguration])
        #expect(await noAudio.ending() == 8)
        let device = try running.call(["--record", "/dev/full"])
        #expect(await device.ending() == 9)
    }

    @Test("INV-11, CALL-5: A device that rejects ends the call with 10, and the report says declined")
    func declined() async throws {
        let running = try await RunningSite(Site(answer: "reject"))
        defer { running.site.remove() }
        let call = try running.call(["--json"])
        #expect(await call.ending() == 10)
        #expect(call.outputText.contains(#""outcome": "declined""#))
    }

    @Test("CALL-5: A callee that does not exist ends the call with 16, and the report has the cause")
    func noSuchNumber() async throws {
        let running = try await RunningSite(Site())
        defer { running.site.remove() }
        let call = try running.call(["--json"], to: "nobody-here@localhost")
        #expect(await call.ending() == 16, "\(call.errorText)")
        #expect(call.outputText.contains(#""cause": "noSuchNumber""#), "\(call.outputText)")
    }

    @Test("INV-7, CALL-5: A device that only rings ends the call with 10 at its ttl, and the report says noAnswer")
    func noAnswer() async throws {
        let running = try await RunningSite(Site(answer: "ring"))
        defer { running.site.remove() }
        let call = try running.call(["--json", "--ttl", "1"])
        #expect(await call.ending() == 10)
        #expect(call.outputText.contains(#""outcome": "noAnswer""#))
    }

    @Test("INV-1: An offline callee ends the command at once with 10, and rings with --wait")
    func notThere() async throws {
        let running = try await RunningSite(Site())
        defer { running.site.remove() }
        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0)
        // Were it to ring, it would do so for longer than a test has.
        let call = try running.call(["--json", "--ttl", "0"])
        #expect(await call.ending() == 10)
        #expect(call.outputText.contains(#""outcome": "notThere""#), "\(call.outputText)")
        #expect(!call.errorText.contains("Comparing"))
        let waiting = try running.call(["--json", "--ttl", "1", "--wait"])
        #expect(await waiting.ending() == 10)
        #expect(waiting.outputText.contains(#""outcome": "noAnswer""#), "\(waiting.outputText)")
        // With a payload, a push may wake it.
        let text = try String(contentsOfFile: running.site.callerConfiguration, encoding: .utf8)
        try (text + "\ninvites:\n  payload: Somebody calls\n")
            .write(toFile: running.site.callerConfiguration, atomically: true, encoding: .utf8)
        let pushing = try running.call(["--json", "--ttl", "1"])
        #expect(await pushing.ending() == 10)
        #expect(pushing.outputText.contains(#""outcome": "noAnswer""#), "\(pushing.outputText)")
    }

    @Test(
        "A call that is cut short by a signal ends with 130, and its report says interrupted",
        arguments: ["auto", "ring"])
    func interrupted(answer: String) async throws {
        let running = try await RunningSite(Site(answer: answer))
        defer { running.site.remove() }
        let call = try running.call(["--json"])
        try await call.line(containing: answer == "auto" ? "Media flows" : "Calling")
        if answer == "ring" { try await running.device.line(containing: "A call comes in") }
        call.send(SIGINT)
        #expect(await call.ending() == 130)
        #expect(call.outputText.contains(#""outcome": "interrupted""#), "\(call.outputText)")
        #expect(!call.errorText.contains("Comparing"))
    }

    @Test("An exchange says once where it listens")
    func listening() async throws {
        let running = try await RunningSite(Site())
        defer { running.site.remove() }
        running.exchange.send(SIGTERM)
        #expect(await running.exchange.ending() == 0)
        let lines = running.exchange.errorText.split(separator: "\n").filter { $0.contains(running.server.suffix(6)) }
        #expect(lines.filter { $0.lowercased().contains("listen") }.count == 1, "\(lines)")
    }

    @Test("A configuration with several faults ends with 3, and names each with its line")
    func brokenConfiguration() async throws {
        let site = try Site()
        defer { site.remove() }
        try "account:\n  server: nonsense\n  colour: blue\nbehaviour:\n  source: trumpet\n"
            .write(toFile: site.deviceConfiguration, atomically: true, encoding: .utf8)
        for command in [["check", site.deviceConfiguration], ["run", "--config", site.deviceConfiguration]] {
            let process = try HandsetProcess(command)
            #expect(await process.ending() == 3)
            let text = process.errorText + process.outputText
            for place in [
                "device.yaml:2: account.server", "device.yaml:3: account.colour", "device.yaml:5: behaviour.source",
            ] {
                #expect(text.contains(place), "\(command[0]) names \(place)")
            }
        }
    }

    @Test("A command line that makes no sense ends with 2")
    func usage() async throws {
        let process = try HandsetProcess(["call", "--no-such-option"])
        #expect(await process.ending() == 2)
    }
}
