import Foundation
import Testing

/// `handset user enroll` and `handset enroll`, from the real command, with a real exchange that is its own authority.
@Suite("handset enroll", .serialized, .timeLimit(.minutes(5)))
struct EnrollCommandTests {
    private let site: Site

    init() throws {
        site = try Site()
        let text = try String(contentsOfFile: site.exchangeConfiguration, encoding: .utf8)
        let certificate = """
            certificate:
              authority: own
              folder: authority
              names: [localhost]
            users_file: users.yaml

            """
        try (text + "\n" + certificate).write(toFile: site.exchangeConfiguration, atomically: true, encoding: .utf8)
    }

    private func exchange() async throws -> (process: HandsetProcess, server: String) {
        let process = try HandsetProcess(["serve", "--config", site.exchangeConfiguration, "--log-format", "json"])
        let line = try await process.line(containing: #""Listening""#)
        let url = String(try #require(line.firstMatch(of: #/"url":"([^"]+)"/#)).1)
        return (process, url.replacing("127.0.0.1", with: "localhost"))
    }

    private func code(_ server: String) async throws -> String {
        let made = try HandsetProcess([
            "user", "enroll", "front", "--config", site.exchangeConfiguration, "--server", server, "--png",
            site.path("code.png"),
        ])
        #expect(await made.ending() == 0, "\(made.errorText)")
        #expect(FileManager.default.contents(atPath: site.path("code.png"))?.starts(with: [0x89, 0x50]) == true)
        #expect(try mode("code.png") == 0o600)
        return made.outputText.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private func enroll(
        _ code: String, folder: String = "etc", _ arguments: [String] = []
    ) async throws -> (code: Int32, text: String) {
        let process = try HandsetProcess(
            [
                "enroll", "-", "--name", "front", "--folder", site.path(folder), "--state",
                site.path("\(folder)-state"),
                "--control", site.path("\(folder).sock"), "--group", "no-such-group", "--app-key", "tests",
                "--app-secret-file", site.path("app.secret"),
            ] + arguments, input: code + "\n")
        return (await process.ending(), process.errorText)
    }

    private func mode(_ name: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: site.path(name))[.posixPermissions] as? Int
    }

    private func keys(in folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: site.path(folder)).filter { $0.contains(".key") }
    }

    @Test(
        "A device joins by a code over the exchange's own authority, logs in by its key and calls itself; the code is then used"
    )
    func joining() async throws {
        defer { site.remove() }
        let (process, server) = try await exchange()
        let code = try await code(server)
        let first = try await enroll(code)
        #expect(first.code == 0, "\(first.text)")
        #expect(first.text.contains("Joined as front") && first.text.contains("Media flows both ways"))
        let key = try #require(try keys(in: "etc").first)
        #expect(try keys(in: "etc").count == 1 && mode("etc/\(key)") == 0o600)
        let users = try String(contentsOfFile: site.path("users.yaml"), encoding: .utf8)
        let secret = try String(contentsOfFile: site.path("etc/\(key)"), encoding: .utf8).split(separator: "\n")[1]
        #expect(users.contains("public_keys") && !users.contains(secret.suffix(30)))
        #expect(!process.errorText.contains(code.split(separator: "/")[2]), "no code in the log")

        let second = try await enroll(code, folder: "other")
        #expect(second.code == 4 && second.text.contains("Another device has used the code"), "\(second.text)")
        let device = try HandsetProcess(["run", "--config", site.path("etc/front.yaml")])
        try await device.line(containing: "Ready")
        // Removed keys let nobody in.
        let revoked = try HandsetProcess(["user", "revoke", "front", "--keys", "--config", site.exchangeConfiguration])
        #expect(await revoked.ending() == 0)
        try await device.line(containing: "Unknown user or wrong key")
        device.send(SIGTERM)
        _ = await device.ending()
        process.send(SIGTERM)
        _ = await process.ending()
    }

    @Test("Killed between key and configuration, the device continues with the same key and the same code")
    func interrupted() async throws {
        defer { site.remove() }
        let (process, server) = try await exchange()
        let code = try await code(server)
        #expect(try await enroll(code, ["--no-trial"]).code == 0)
        // What a kill after the answer leaves: the draft of the key, and no configuration.
        let key = try #require(try keys(in: "etc").first)
        try FileManager.default.moveItem(atPath: site.path("etc/\(key)"), toPath: site.path("etc/front.key.new"))
        try FileManager.default.removeItem(atPath: site.path("etc/front.yaml"))
        let again = try await enroll(code)
        #expect(again.code == 0, "\(again.text)")
        #expect(try keys(in: "etc") == [key])
        process.send(SIGTERM)
        _ = await process.ending()
    }

    @Test("A code of another exchange, a mistyped one and one without its exchange are refused with what to do")
    func refusals() async throws {
        defer { site.remove() }
        let (process, server) = try await exchange()
        let code = try await code(server)
        let parts = code.components(separatedBy: "/")
        let wrong = (parts.dropLast() + [String(parts.last?.reversed() ?? [])]).joined(separator: "/")
        let another = try await enroll(wrong)
        #expect(another.code == 6 && another.text.contains("not the exchange that the code names"), "\(another.text)")
        let typo = try await enroll(String(code.dropLast()))
        #expect(typo.code == 2 && typo.text.contains("mistake"), "\(typo.text)")
        process.send(SIGTERM)
        _ = await process.ending()
        let alone = try await enroll(code)
        #expect(alone.code == 5, "\(alone.text)")
    }

    @Test(
        "SIGHUP makes an exchange take users and limits; a wrong file is refused with file, line and key, and sessions continue"
    )
    func reload() async throws {
        defer { site.remove() }
        let (process, server) = try await exchange()
        let code = try await code(server)
        #expect(try await enroll(code, ["--no-trial"]).code == 0)
        let device = try HandsetProcess(["run", "--config", site.path("etc/front.yaml")])
        try await device.line(containing: "Ready")
        let text = try String(contentsOfFile: site.exchangeConfiguration, encoding: .utf8)
        try (text + "message_burst: none\n").write(
            toFile: site.exchangeConfiguration, atomically: true, encoding: .utf8)
        process.send(SIGHUP)
        let refused = try await process.line(containing: "The configuration is wrong")
        let line = text.split(separator: "\n", omittingEmptySubsequences: false).count
        #expect(refused.contains("exchange.yaml:\(line)") && refused.contains("message_burst"), "\(refused)")
        try (text + "message_burst: 400\npresence: false\n").write(
            toFile: site.exchangeConfiguration, atomically: true, encoding: .utf8)
        process.send(SIGHUP)
        let taken = try await process.line(containing: "The configuration was read again")
        #expect(taken.contains("message_burst") && taken.contains(#""at_next_start":"presence""#), "\(taken)")
        #expect(!device.errorText.contains("reconnecting"))
        device.send(SIGTERM)
        #expect(await device.ending() == 0)
        process.send(SIGTERM)
        _ = await process.ending()
    }
}
