import Foundation
import Glibc
import Testing

/// `handset setup`, from the real command, with a real exchange.
@Suite("handset setup", .serialized, .timeLimit(.minutes(3)))
struct SetupCommandTests {
    private let site: Site

    init() throws {
        site = try Site()
        let text = try String(contentsOfFile: site.exchangeConfiguration, encoding: .utf8)
        try (text + "\nusers_file: users.yaml\n").write(
            toFile: site.exchangeConfiguration, atomically: true, encoding: .utf8)
    }

    private func exchange() async throws -> (process: HandsetProcess, server: String) {
        let process = try HandsetProcess(["serve", "--config", site.exchangeConfiguration, "--log-format", "json"])
        let line = try await process.line(containing: #""Listening""#)
        return (process, String(try #require(line.firstMatch(of: #/"url":"([^"]+)"/#)).1))
    }

    private func setup(_ arguments: [String], input: String = "") async throws -> (code: Int32, process: HandsetProcess)
    {
        let place = [
            "--folder", site.path("etc"), "--state", site.path("var/state"), "--control", site.path("control.sock"),
            "--group",
            "no-such-group", "--app-key", "tests", "--app-secret-file", site.path("app.secret"),
        ]
        let process = try HandsetProcess(["setup", "front"] + place + arguments, input: input)
        return (await process.ending(), process)
    }

    private func mode(_ name: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: site.path(name))[.posixPermissions] as? Int
    }

    @Test(
        "It makes an account, writes files for their owner alone, and calls itself; the device that it wrote then runs")
    func account() async throws {
        defer { site.remove() }
        let (process, server) = try await exchange()
        let made = try await setup(["--exchange-config", site.exchangeConfiguration, "--server", server])
        #expect(made.code == 0, "\(made.process.errorText)")
        #expect(made.process.errorText.contains("Media flows both ways"), "\(made.process.errorText)")
        #expect(made.process.outputText == "\(site.path("etc/front.yaml")): good for `handset run`")
        #expect(try mode("etc/front.yaml") == 0o600 && mode("etc/front.token") == 0o600)
        // The unit's user gets through the folders, and needs nothing outside them.
        #expect(try mode("etc") == 0o755 && mode("var") == 0o755 && mode("var/state") == 0o700)
        #expect(try String(contentsOfFile: site.path("etc/front.secret"), encoding: .utf8) == "app-secret\n")

        let configuration = try String(contentsOfFile: site.path("etc/front.yaml"), encoding: .utf8)
        #expect(configuration.contains("app_secret_file: front.secret\n") && !configuration.contains("app.secret"))
        let again = try await setup(["--exchange-config", site.exchangeConfiguration, "--server", server])
        #expect(again.code == 1 && again.process.errorText.contains("--force"), "\(again.process.errorText)")
        #expect(try String(contentsOfFile: site.path("etc/front.yaml"), encoding: .utf8) == configuration)

        let forced = try await setup(["--force", "--server", server, "--source", "silence"])
        #expect(forced.code == 0, "\(forced.process.errorText)")
        let device = try HandsetProcess(["run", "--config", site.path("etc/front.yaml")])
        try await device.line(containing: "Ready")
        withExtendedLifetime(process) {}
    }

    @Test("It takes the token of an account that there is, and says what refuses a wrong one")
    func token() async throws {
        defer { site.remove() }
        let (process, server) = try await exchange()
        let arguments = ["--server", server, "--token-file", "-"]
        let wrong = try await setup(arguments, input: "wrong-token-0123456789\n")
        #expect(wrong.code == 4, "\(wrong.process.errorText)")
        let right = try await setup(arguments + ["--force"], input: "echo-token-0123456789\n")
        #expect(right.code == 0, "\(right.process.errorText)")
        #expect(try String(contentsOfFile: site.path("etc/front.token"), encoding: .utf8) == "echo-token-0123456789\n")
        withExtendedLifetime(process) {}
    }

    @Test("Without an exchange it writes what it can, and ends with the code for that")
    func noExchange() async throws {
        defer { site.remove() }
        let nothing = try await setup(["--server", "http://127.0.0.1:9"])
        #expect(nothing.code == 2 && nothing.process.errorText.contains("--token-file"), "\(nothing.process.errorText)")
        #expect(!FileManager.default.fileExists(atPath: site.path("etc")))
        let unreachable = try await setup(
            ["--server", "http://127.0.0.1:9", "--exchange-config", site.exchangeConfiguration])
        #expect(unreachable.code == 5, "\(unreachable.process.errorText)")
        let untried = try await setup(["--server", "http://127.0.0.1:9", "--force", "--no-trial"])
        #expect(untried.code == 0, "\(untried.process.errorText)")
    }

    @Test(
        "As root it gives nothing away by a link of another user, copies no file behind one, and warns of folders that others write",
        .enabled(if: geteuid() == 0 && getpwnam("daemon") != nil))
    func folderOfOthers() async throws {
        defer { site.remove() }
        func setup(_ more: [String]) async throws -> (code: Int32, text: String) {
            let process = try HandsetProcess(
                [
                    "setup", "front", "--group", "daemon", "--server", "http://127.0.0.1:9", "--no-trial", "--force",
                    "--control", site.path("control.sock"),
                ] + more)
            return (await process.ending(), process.errorText)
        }
        func owner(_ name: String) throws -> uid_t {
            var status = stat()
            try #require(lstat(site.path(name), &status) == 0)
            return status.st_uid
        }
        let daemon = try #require(getpwnam("daemon")?.pointee.pw_uid)
        for name in ["shared", "victim"] {
            try FileManager.default.createDirectory(atPath: site.path(name), withIntermediateDirectories: false)
        }
        try "root's own\n".write(toFile: site.path("victim/secret"), atomically: true, encoding: .utf8)
        chmod(site.path("victim/secret"), 0o600)
        chmod(site.path("shared"), 0o777)
        let folder = ["--folder", site.path("shared")]

        symlink(site.path("victim"), site.path("shared/state"))
        lchown(site.path("shared/state"), daemon, gid_t.max)
        let token = site.path("token")
        try "media-token-0123456789\n".write(toFile: token, atomically: true, encoding: .utf8)
        let linked = try await setup(folder + ["--state", site.path("shared/state"), "--token-file", token])
        #expect(linked.code == 1 && linked.text.contains("symbolic link of the user daemon"), "\(linked.text)")
        #expect(try owner("victim") == 0)

        symlink(site.path("victim/secret"), site.path("shared/front.token"))
        lchown(site.path("shared/front.token"), daemon, gid_t.max)
        let copied = try await setup(folder + ["--state", site.path("state")])
        #expect(copied.code == 1 && copied.text.contains("front.token\": it is a symbolic link"), "\(copied.text)")

        let done = try await setup(folder + ["--state", site.path("state"), "--token-file", token])
        #expect(
            done.code == 0 && done.text.contains("other users may replace what is in \(site.path("shared"))"),
            "\(done.text)")
        #expect(try owner("state") == daemon && owner("victim/secret") == 0)
        #expect(try mode("victim/secret") == 0o600 && mode("shared/front.token") == 0o640)
    }
}
