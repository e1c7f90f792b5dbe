import Foundation
import Testing

/// A folder with the configurations of an exchange, a device that echoes, and a caller.
struct Site {
    let folder: URL
    let exchangeConfiguration: String
    let deviceConfiguration: String
    let callerConfiguration: String
    /// A recorded human voice, 1.4 s long.
    static let speech = "/usr/share/sounds/alsa/Front_Center.wav"

    /// Writes the configurations.
    ///
    /// - Parameters:
    ///   - port: What the exchange listens on; with 0 the devices must be told with `--server`.
    ///   - isEncrypted: Whether the exchange has a certificate, which the device trusts.
    ///   - database: The exchange's database, relative to the folder; without one it keeps nothing.
    ///   - answer: What the device does with a call.
    ///   - behaviour: What it does in a call; with `card` on the card of `audio`.
    ///   - audio: Lines of its configuration's `audio`; without any ALSA's `null`, which every machine has.
    ///   - callerAudio: Lines of the caller's `audio`; without any it has none.
    ///   - isControlled: Whether it has a control socket, ``controlSocket``.
    ///   - http: Lines of its configuration's `control.http`; without any it has none.
    init(
        port: Int = 0, isEncrypted: Bool = false, database: String? = nil, answer: String = "auto",
        behaviour: String = "echo", audio: [String] = ["device: \"null\""], callerAudio: [String] = [],
        isControlled: Bool = false, http: [String] = []
    ) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("handset-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        func path(_ name: String) -> String { [folder.path, name].joined(separator: "/") }
        self.folder = folder
        exchangeConfiguration = path("exchange.yaml")
        deviceConfiguration = path("device.yaml")
        callerConfiguration = path("caller.yaml")
        for (name, secret) in [
            ("app", "app-secret"), ("echo", "echo-token-0123456789"), ("caller", "caller-token-0123"),
        ] {
            let created = FileManager.default.createFile(
                atPath: path(name + ".secret"), contents: Data(secret.utf8), attributes: [.posixPermissions: 0o600])
            try #require(created)
        }
        if isEncrypted { try Self.makeCertificate(in: folder) }
        let certificate = "certificate:\n  chain_file: certificate.pem\n  key_file: key.pem\n"
        try """
        listen: 127.0.0.1:\(port)
        \(isEncrypted ? certificate : "")
        \(database.map { "database: \($0)" } ?? "")
        apps:
          - key: tests
            secret_file: app.secret
        users:
          - id: echo
            public_ids: [echo@localhost]
            media_token_hashes: [\(try Self.hash(of: path("echo.secret")))]
          - id: caller
            public_ids: [caller@localhost]
            media_token_hashes: [\(try Self.hash(of: path("caller.secret")))]
        """.write(toFile: exchangeConfiguration, atomically: true, encoding: .utf8)
        // Port 9 stands for the one that the system will choose: nothing listens there.
        let server = "\(isEncrypted ? "https" : "http")://localhost:\(port == 0 ? 9 : port)"
        let more = """

            audio:
              \(audio.joined(separator: "\n  "))
            \(isControlled ? "control:\n  socket: control.sock" : "")
            \(http.isEmpty ? "" : "  http:\n    " + http.joined(separator: "\n    "))
            """
        let device = Self.device("echo", server: server, trusts: isEncrypted, answer: answer, behaviour: behaviour)
        try (device + more).write(toFile: deviceConfiguration, atomically: true, encoding: .utf8)
        let callerMore = callerAudio.isEmpty ? "" : "\naudio:\n  " + callerAudio.joined(separator: "\n  ")
        let caller = Self.device("caller", server: server, trusts: isEncrypted, answer: "reject", behaviour: "echo")
        try (caller + callerMore).write(toFile: callerConfiguration, atomically: true, encoding: .utf8)
    }

    /// Where a file of this name is, or would be.
    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    /// Where the device listens to programs on this machine.
    var controlSocket: String { path("control.sock") }

    /// Removes all that was written.
    func remove() { try? FileManager.default.removeItem(at: folder) }

    private static func device(
        _ user: String, server: String, trusts: Bool, answer: String, behaviour: String
    ) -> String {
        """
        account:
          server: \(server)
          app_key: tests
          app_secret_file: app.secret
          media_token_file: \(user).secret
          \(trusts ? "trust_roots: certificate.pem" : "")
        answer:
          mode: \(answer)
        behaviour:
          source: \(behaviour)
        media:
          address: 127.0.0.1
        """
    }

    private static func hash(of path: String) throws -> String {
        try run(["sha256sum", path]).split(separator: " ").first.map(String.init) ?? ""
    }

    private static func makeCertificate(in folder: URL) throws {
        _ = try run([
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout",
            folder.appendingPathComponent("key.pem").path, "-out",
            folder.appendingPathComponent("certificate.pem").path,
        ])
    }

    /// Runs a tool to its end, and returns what it printed.
    private static func run(_ command: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0, "\(command.joined(separator: " "))")
        return String(decoding: data, as: UTF8.self)
    }
}

extension Site {
    /// Lets the exchange know its trunk, whose account is `caller`: `echo` may call 300 to 399 by it.
    func admitTrunk() throws {
        let text = try String(contentsOfFile: exchangeConfiguration, encoding: .utf8)
        try (text + "\ntrunks: [{ user: caller, numbers: [\"3??\"], callers: [echo] }]\n")
            .write(toFile: exchangeConfiguration, atomically: true, encoding: .utf8)
    }

    /// Starts a trunk for one call between the exchange, or none, and a SIP server. The number 200 leads to the user `echo`.
    ///
    /// - Parameter more: Further lines of its configuration.
    func trunk(exchange: String, sip: SIPPeer, _ more: String) throws -> HandsetProcess {
        let files = [
            "desk.yaml": """
            account: { server: "\(exchange)", app_key: tests, app_secret_file: app.secret, media_token_file: caller.secret }
            media: { address: 127.0.0.1 }
            """,
            "sip.yaml": """
            account:
              kind: sip
              password_file: app.secret
              sip: { address: "sip:desk@127.0.0.1", server: "127.0.0.1:\(sip.port)" }
            media: { address: 127.0.0.1, offers: plain, allow_plain_rtp: true, codecs: [pcmu] }
            """,
            "trunk.yaml": """
            exchange: desk.yaml
            network: sip.yaml
            incoming: [{ number: "200", user: echo }]
            max_calls: 1
            \(more)
            """,
        ]
        for (name, text) in files {
            try (text + "\n").write(toFile: path(name), atomically: true, encoding: .utf8)
        }
        return try HandsetProcess(["trunk", "--config", trunkConfiguration, "--log-format", "json"])
    }

    /// Where ``trunk(exchange:sip:_:)`` writes its configuration.
    var trunkConfiguration: String { path("trunk.yaml") }
}

/// An exchange and a device of a site, both up.
struct RunningSite {
    let site: Site
    let exchange: HandsetProcess
    let device: HandsetProcess
    /// The exchange's base URL.
    let server: String

    /// - Parameters:
    ///   - arguments: The device's, besides those that every site's has.
    ///   - environment: The device's, besides the test's own.
    init(_ site: Site, arguments: [String] = [], environment: [String: String] = [:]) async throws {
        self.site = site
        exchange = try HandsetProcess(["serve", "--config", site.exchangeConfiguration, "--log-format", "json"])
        let line = try await exchange.line(containing: #""Listening""#)
        let url = try #require(line.firstMatch(of: #/"url":"([^"]+)"/#))
        server = url.1.replacingOccurrences(of: "127.0.0.1", with: "localhost")
        device = try HandsetProcess(
            ["run", "--config", site.deviceConfiguration, "--server", server, "--log-format", "json"] + arguments,
            environment: environment)
        try await device.line(containing: #""Ready""#)
    }

    /// Runs `handset control` on the device to its end.
    func control(_ words: String...) async throws -> (code: Int32, output: String, error: String) {
        let command = try HandsetProcess(["control", "--socket", site.controlSocket] + words)
        return (await command.ending(), command.outputText, command.errorText)
    }

    /// Starts `handset call` to the device.
    func call(_ arguments: [String], to callee: String = "echo@localhost") throws -> HandsetProcess {
        try HandsetProcess(
            ["call", callee, "--config", site.callerConfiguration, "--server", server] + arguments)
    }
}
