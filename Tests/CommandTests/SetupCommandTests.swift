import Foundation
import Glibc
import Synchronization
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

    private func setup(
        _ arguments: [String], name: String = "front", app: [String]? = nil, environment: [String: String] = [:],
        input: String = ""
    ) async throws -> (code: Int32, process: HandsetProcess) {
        let process = try HandsetProcess(
            ["setup", name] + place + (app ?? application) + arguments, environment: environment, input: input)
        return (await process.ending(), process)
    }

    private var application: [String] { ["--app-key", "tests", "--app-secret-file", site.path("app.secret")] }

    private var place: [String] {
        [
            "--folder", site.path("etc"), "--state", site.path("var/state"), "--control", site.path("control.sock"),
            "--group", "no-such-group",
        ]
    }

    /// Every file below the site's folder with its text, but for the users file; folders have none.
    private func everything() throws -> [String: String] {
        var found: [String: String] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: site.folder.path) where name != "users.yaml" {
            let text = try? String(contentsOfFile: site.path(name), encoding: .utf8)
            found[name] = text ?? ""
        }
        return found
    }

    private func users() throws -> String {
        let path = site.path("users.yaml")
        return FileManager.default.fileExists(atPath: path) ? try String(contentsOfFile: path, encoding: .utf8) : ""
    }

    /// Appends lines to the exchange's configuration, or replaces its address.
    private func configure(listen: String? = nil, _ lines: String = "") throws {
        var text = try String(contentsOfFile: site.exchangeConfiguration, encoding: .utf8)
        if let listen { text = text.replacing("listen: 127.0.0.1:0", with: "listen: \(listen)") }
        try (text + lines).write(toFile: site.exchangeConfiguration, atomically: true, encoding: .utf8)
    }

    /// A TCP port that nothing listens at.
    private func freePort() throws -> UInt16 {
        let (descriptor, port) = try TCPPort.open()
        close(descriptor)
        return port
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

    @Test("Without an account it says which options name one, and without an exchange it ends with the code for that")
    func noExchange() async throws {
        defer { site.remove() }
        let nothing = try await setup(["--server", "http://127.0.0.1:9"])
        #expect(nothing.code == 2 && nothing.process.errorText.contains("--token-file"), "\(nothing.process.errorText)")
        #expect(!FileManager.default.fileExists(atPath: site.path("etc")))
        let arguments = ["--server", "http://127.0.0.1:9", "--exchange-config", site.exchangeConfiguration]
        let unreachable = try await setup(arguments)
        #expect(unreachable.code == 5, "\(unreachable.process.errorText)")
        let untried = try await setup(arguments + ["--no-trial"])
        #expect(untried.code == 0, "\(untried.process.errorText)")
    }

    @Test("The exchange's configuration alone leads to it, over TLS and with the exchange's own authority")
    func ownAddress() async throws {
        defer { site.remove() }
        let port = try freePort()
        let certificate = "certificate:\n  authority: own\n  folder: authority\n  names: [localhost]\n"
        try configure(listen: "127.0.0.1:\(port)", certificate)
        let before = try everything()
        let early = try await setup(["--exchange-config", site.exchangeConfiguration])
        #expect(
            early.code == 3 && early.process.errorText.contains("start the exchange once"), "\(early.process.errorText)"
        )
        #expect(try everything() == before)

        let (process, _) = try await exchange()
        let made = try await setup(["--exchange-config", site.exchangeConfiguration])
        #expect(made.code == 0, "\(made.process.errorText)")
        let text = try String(contentsOfFile: site.path("etc/front.yaml"), encoding: .utf8)
        #expect(
            text.contains("server: \"https://localhost:\(port)\"\n") && text.contains("trust_roots: front.roots.pem\n"))
        let roots = try String(contentsOfFile: site.path("etc/front.roots.pem"), encoding: .utf8)
        #expect(try roots == String(contentsOfFile: site.path("authority/root.pem"), encoding: .utf8))
        withExtendedLifetime(process) {}
    }

    @Test("The address of an exchange without TLS is its own; one that listens everywhere is reached on this machine")
    func plainAddress() async throws {
        defer { site.remove() }
        try configure(listen: "0.0.0.0:8123", "plain_text: allowed\n")
        let untried = ["--exchange-config", site.exchangeConfiguration, "--no-trial", "--force"]
        #expect(try await setup(untried).code == 0)
        let text = try String(contentsOfFile: site.path("etc/front.yaml"), encoding: .utf8)
        #expect(text.contains("server: \"http://127.0.0.1:8123\"\n") && !text.contains("allow_plain_text"))
        try configure(listen: "127.0.0.1:0")
        let lines = try String(contentsOfFile: site.exchangeConfiguration, encoding: .utf8)
        try lines.replacing("0.0.0.0:8123", with: "192.0.2.7:8123").write(
            toFile: site.exchangeConfiguration, atomically: true, encoding: .utf8)
        let other = try await setup(untried)
        #expect(other.code == 0, "\(other.process.errorText)")
        let plain = try String(contentsOfFile: site.path("etc/front.yaml"), encoding: .utf8)
        #expect(plain.contains("\"http://192.0.2.7:8123\"\n") && plain.contains("  allow_plain_text: true\n"))
    }

    /// What goes wrong, at each step in turn.
    enum Failure: CaseIterable {
        case application, user, state, configuration, refused, unreachable, unit
    }

    @Test(
        "Whichever step fails, the account, the files and the folders that were made are removed again",
        arguments: Failure.allCases)
    func failures(_ failure: Failure) async throws {
        defer { site.remove() }
        try "no folder".write(toFile: site.path("file"), atomically: true, encoding: .utf8)
        try FileManager.default.createDirectory(atPath: site.path("bin"), withIntermediateDirectories: false)
        try "#!/bin/sh\nexit 1\n".write(toFile: site.path("bin/systemctl"), atomically: true, encoding: .utf8)
        chmod(site.path("bin/systemctl"), 0o755)
        var arguments = ["--exchange-config", site.exchangeConfiguration, "--server", "http://127.0.0.1:9"]
        var (name, app, code, words): (String, [String]?, Int32, String) = ("front", nil, 1, "")
        switch failure {
        case .application: (app, words) = ([], "lets no program in by the key \"demo\"")
        case .user: (name, words) = ("echo", "has a user \"echo\" already")
        case .state:
            arguments += ["--state", site.path("file/state")]
            words = "file/state"
        case .configuration:
            // A folder of that name cannot be replaced by a file.
            try FileManager.default.createDirectory(
                atPath: site.path("etc/front.yaml"), withIntermediateDirectories: true)
            (arguments, words) = (arguments + ["--force"], "cannot replace")
        case .refused:
            arguments += ["--source", "card", "--device", "", "--no-trial"]
            (code, words) = (3, "audio.device")
        case .unreachable: (code, words) = (5, "Removed again: the user front")
        case .unit: (arguments, words) = (arguments + ["--no-trial", "--enable"], "cannot be enabled")
        }
        let before = try everything()
        let path = "\(site.path("bin")):/usr/bin:/bin"
        let made = try await setup(arguments, name: name, app: app, environment: ["PATH": path])
        #expect(made.code == code && made.process.errorText.contains(words), "\(made.process.errorText)")
        #expect(try everything() == before && !users().contains("front"))
    }

    @Test(
        "A unit that ran, or waited for its next start, before a failed replacement stays enabled, and starts again with the earlier configuration",
        arguments: ["active", "activating"])
    func runningUnit(state: String) async throws {
        defer { site.remove() }
        try FileManager.default.createDirectory(atPath: site.path("bin"), withIntermediateDirectories: false)
        try "an-earlier-token-0123\n".write(toFile: site.path("token"), atomically: true, encoding: .utf8)
        #expect(
            try await setup(["--server", "http://127.0.0.1:9", "--no-trial", "--token-file", site.path("token")]).code
                == 0)
        // The new configuration does not start.
        let (configuration, log) = (site.path("etc/front.yaml"), site.path("log"))
        try """
        #!/bin/sh
        echo "$@" >> \(log)
        case "$1" in
        is-active) test "$2" = --quiet || echo \(state); test \(state) = active ;;
        restart) ! grep -q 127.0.0.1:10 \(configuration) ;;
        esac

        """.write(toFile: site.path("bin/systemctl"), atomically: true, encoding: .utf8)
        chmod(site.path("bin/systemctl"), 0o755)
        let replaced = try await setup(
            [
                "--force", "--enable", "--server", "http://127.0.0.1:10", "--no-trial", "--token-file",
                site.path("token"),
            ],
            environment: ["PATH": "\(site.path("bin")):/usr/bin:/bin"])
        #expect(replaced.code == 1, "\(replaced.process.errorText)")
        #expect(try String(contentsOfFile: configuration, encoding: .utf8).contains("127.0.0.1:9"))
        let commands = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").map(String.init)
        let looks = ["is-enabled --quiet handset@front", "is-active --quiet handset@front"]
        let starts = ["enable handset@front", "restart handset@front"]
        if state == "active" {
            #expect(commands == looks + starts + ["restart handset@front"])
            #expect(replaced.process.errorText.contains("runs with the earlier one"))
        } else {
            #expect(
                commands == looks + ["is-active handset@front"] + starts + ["restart --no-block handset@front"])
            #expect(replaced.process.errorText.contains("starts again with the earlier one"))
        }
    }

    @Test("An interruption of the trial takes everything back")
    func interruption() async throws {
        defer { site.remove() }
        // It takes connections, and never answers.
        let (descriptor, port) = try TCPPort.open()
        defer { close(descriptor) }
        let before = try everything()
        let process = try HandsetProcess(
            ["setup", "front"] + place + application
                + ["--exchange-config", site.exchangeConfiguration, "--server", "http://127.0.0.1:\(port)"])
        try await process.line(containing: "Logging in at")
        process.send(SIGINT)
        #expect(await process.ending() == 130, "\(process.errorText)")
        #expect(try everything() == before && !users().contains("front"), "\(process.errorText)")
    }

    @Test("Where a replacement fails, the earlier device's files are back")
    func replacement() async throws {
        defer { site.remove() }
        try "an-earlier-token-0123\n".write(toFile: site.path("token"), atomically: true, encoding: .utf8)
        let first = ["--server", "http://127.0.0.1:9", "--no-trial", "--token-file", site.path("token")]
        #expect(try await setup(first).code == 0)
        let before = try everything()
        let second = try await setup(
            ["--force", "--server", "http://127.0.0.1:10", "--token-env", "NEW"],
            environment: ["NEW": "another-0123456789"])
        #expect(
            second.code == 5 && second.process.errorText.contains("the earlier one is back"),
            "\(second.process.errorText)")
        #expect(try everything() == before)
    }

    @Test("An account at a SIP server: it registers there, and the device that it wrote does, too")
    func sip() async throws {
        defer { site.remove() }
        let peer = try SIPPeer()
        defer { peer.end() }
        let arguments = ["--sip", "desk@127.0.0.1", "--sip-server", "127.0.0.1:\(peer.port)", "--sip-transport", "udp"]
        let made = try await setup(arguments + ["--password-file", "-"], app: [], input: "pass word\n")
        #expect(
            made.code == 0 && made.process.errorText.contains("has registered the device"), "\(made.process.errorText)")
        #expect(peer.registrations > 0)
        #expect(try String(contentsOfFile: site.path("etc/front.password"), encoding: .utf8) == "pass word\n")
        #expect(try mode("etc/front.password") == 0o600)
        #expect(!made.process.errorText.contains("pass word"))
        let device = try HandsetProcess(["run", "--config", site.path("etc/front.yaml")])
        try await device.line(containing: "Ready")
    }

    @Test("What it tries is the configuration that it wrote, though another user puts another one in its place at once")
    func replacedConfiguration() async throws {
        defer { site.remove() }
        let (peer, others) = (try SIPPeer(), try SIPPeer())
        defer {
            peer.end()
            others.end()
        }
        let password = ["PASSWORD": "secret-0123"]
        func arguments(_ port: UInt16) -> [String] {
            ["--sip", "desk@127.0.0.1", "--sip-server", "127.0.0.1:\(port)", "--sip-transport", "udp"]
                + ["--password-env", "PASSWORD", "--force"]
        }
        let theirs = try await setup(arguments(others.port) + ["--no-trial"], app: [], environment: password)
        #expect(theirs.code == 0, "\(theirs.process.errorText)")
        let replacing = Replacement(of: site.path("etc/front.yaml"))
        defer { replacing.end() }
        // Once the other user's file is there before the command would read it.
        for _ in 0..<5 {
            let made = try await setup(arguments(peer.port), app: [], environment: password)
            #expect(made.code == 0, "\(made.process.errorText)")
        }
        #expect(replacing.count > 0)
        #expect(peer.registrations >= 5)
        #expect(others.registrations == 0)
    }

    @Test(
        "A SIP server that is not there leaves nothing behind, and plain text to another machine is asked for by name")
    func sipFailures() async throws {
        defer { site.remove() }
        let before = try everything()
        let port = try freePort()
        let password = ["PASSWORD": "secret-0123"]
        let arguments = ["--sip", "desk@127.0.0.1", "--sip-server", "127.0.0.1:\(port)", "--password-env", "PASSWORD"]
        let gone = try await setup(arguments + ["--sip-transport", "tcp"], app: [], environment: password)
        #expect(gone.code == 5, "\(gone.process.errorText)")
        let plain = ["--sip", "desk@example.org", "--sip-transport", "udp", "--password-env", "PASSWORD"]
        let refused = try await setup(plain, app: [], environment: password)
        #expect(
            refused.code == 2 && refused.process.errorText.contains("--allow-plain-text"),
            "\(refused.process.errorText)")
        #expect(try everything() == before)
        let allowed = try await setup(plain + ["--allow-plain-text", "--no-trial"], app: [], environment: password)
        #expect(allowed.code == 0, "\(allowed.process.errorText)")
    }

    @Test("--allow-plain-rtp writes that calls go without encryption, and is for SIP alone; without it they do not")
    func plainMedia() async throws {
        defer { site.remove() }
        let password = ["PASSWORD": "secret-0123"]
        let arguments = ["--sip", "desk@example.org", "--password-env", "PASSWORD", "--no-trial"]
        let encrypted = try await setup(arguments, app: [], environment: password)
        #expect(encrypted.code == 0, "\(encrypted.process.errorText)")
        #expect(try !String(contentsOfFile: site.path("etc/front.yaml"), encoding: .utf8).contains("media:"))
        let plain = try await setup(arguments + ["--allow-plain-rtp", "--force"], app: [], environment: password)
        #expect(plain.code == 0, "\(plain.process.errorText)")
        let text = try String(contentsOfFile: site.path("etc/front.yaml"), encoding: .utf8)
        #expect(text.contains("\nmedia:\n  allow_plain_rtp: true\n  offers: plain\n"), "\(text)")
        let misplaced = try await setup(["--token-env", "PASSWORD", "--allow-plain-rtp"], environment: password)
        #expect(
            misplaced.code == 2 && misplaced.process.errorText.contains("--sip"), "\(misplaced.process.errorText)")
    }

    @Test(
        "On a terminal it asks for a SIP account, the server, the transport and the password, and writes what was said")
    func terminalForSIP() async throws {
        defer { site.remove() }
        let terminal = try TerminalProcess(["setup", "front"] + place + ["--source", "echo", "--no-trial"])
        for (question, answer) in [
            ("Where the account is (exchange, sip) [exchange]:", "sip"), ("alice@example.org:", "desk"),
            ("not a user and domain.", "desk@example.org"), ("domain [-]:", "sip.example.org"), ("[tls]:", "udp"),
            ("allow that (no, yes) [no]:", "yes"), ("of the address [-]:", ""),
            ("password (not shown):", "secret-0123"),
        ] {
            #expect(await terminal.isAsked(question), "\(question) in \(terminal.text)")
            terminal.type(answer + "\n")
        }
        #expect(await terminal.ending() == 0, "\(terminal.text)")
        #expect(!terminal.text.contains("secret-0123"))
        let text = try String(contentsOfFile: site.path("etc/front.yaml"), encoding: .utf8)
        for line in [
            "address: \"sip:desk@example.org\"", "server: \"sip.example.org\"", "transport: udp",
            "allow_plain_text: true",
        ] {
            #expect(text.contains(line), "\(line) in \(text)")
        }
    }

    @Test("On a terminal it asks for the token, which is not shown, and warns of a code on the command line")
    func terminal() async throws {
        defer { site.remove() }
        let (process, server) = try await exchange()
        let terminal = try TerminalProcess(
            ["setup", "front"] + place + application + ["--server", server, "--source", "echo"])
        #expect(await terminal.isAsked("media token (not shown):"), "\(terminal.text)")
        terminal.type("echo-token-0123456789\n")
        #expect(await terminal.ending() == 0, "\(terminal.text)")
        #expect(!terminal.text.contains("echo-token"), "\(terminal.text)")
        #expect(try String(contentsOfFile: site.path("etc/front.token"), encoding: .utf8) == "echo-token-0123456789\n")
        let shown = try await setup(["--enroll", "no-code"])
        #expect(
            shown.code == 2 && shown.process.errorText.contains("on the command line"), "\(shown.process.errorText)")
        withExtendedLifetime(process) {}
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

/// A TCP port of this machine that listens.
private enum TCPPort {
    static func open() throws -> (descriptor: Int32, port: UInt16) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        try #require(descriptor >= 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isOpen = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 8) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        try #require(isOpen)
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }
}

/// A `handset` of this build at a terminal.
private final class TerminalProcess {
    private let process = Process()
    private let master: FileHandle
    /// All that the terminal has shown.
    private(set) var text = ""

    init(_ arguments: [String]) throws {
        let descriptor = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        try #require(descriptor >= 0)
        master = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        // TIOCSPTLCK and TIOCGPTN, as unlockpt(3) and ptsname(3) use them, which Swift does not import.
        var (lock, number): (Int32, UInt32) = (0, 0)
        try #require(ioctl(descriptor, 0x4004_5431, &lock) == 0 && ioctl(descriptor, 0x8004_5430, &number) == 0)
        let path = "/dev/pts/\(number)"
        let terminal = try #require(FileHandle(forUpdatingAtPath: path))
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        process.executableURL = try HandsetProcess.executable()
        process.arguments = arguments
        process.standardInput = terminal
        process.standardOutput = terminal
        process.standardError = terminal
        try process.run()
        try terminal.close()
    }

    deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

    /// Waits for a minute at most until the terminal shows `question`.
    func isAsked(_ question: String) async -> Bool {
        let deadline = ContinuousClock.now + .seconds(60)
        while ContinuousClock.now < deadline, (try? await Task.sleep(for: .milliseconds(1))) != nil {
            read()
            if text.contains(question) { return true }
            if !process.isRunning { return false }
        }
        return false
    }

    func type(_ line: String) { try? master.write(contentsOf: Data(line.utf8)) }

    func ending() async -> Int32 {
        let deadline = ContinuousClock.now + .seconds(60)
        while process.isRunning, ContinuousClock.now < deadline, (try? await Task.sleep(for: .milliseconds(1))) != nil {
            read()
        }
        read()
        return process.isRunning ? -1 : process.terminationStatus
    }

    private func read() {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        while case let count = Glibc.read(master.fileDescriptor, &bytes, bytes.count), count > 0 {
            text += String(decoding: bytes[..<count], as: UTF8.self)
        }
    }
}

/// A user who puts a file back as it was, as soon as it is another one.
private final class Replacement: Sendable {
    private let state = Mutex((count: 0, isOver: false))

    init(of path: String) {
        Thread.detachNewThread { [self] in
            let own = try? Data(contentsOf: URL(fileURLWithPath: path))
            while !state.withLock({ $0.isOver }) {
                guard let now = try? Data(contentsOf: URL(fileURLWithPath: path)), now != own else { continue }
                guard (try? own?.write(to: URL(fileURLWithPath: path + ".theirs"))) != nil,
                    rename(path + ".theirs", path) == 0
                else { continue }
                state.withLock { $0.count += 1 }
            }
        }
    }

    /// How often it has put it back.
    var count: Int { state.withLock { $0.count } }

    func end() { state.withLock { $0.isOver = true } }
}
