import Foundation
import RelaySupport
import TestSupport
import Testing

/// `handset doctor`, from the real command, with real faults around it.
@Suite("handset doctor", .serialized, .timeLimit(.minutes(5)))
struct DoctorTests {
    @Test(
        "A device of an exchange that runs has no finding; the login is tried and ended, and a call to itself on request"
    )
    func healthy() async throws {
        let site = try Site(port: try freePort(), isEncrypted: true)
        defer { site.remove() }
        let exchange = try await Self.serve(site)
        var report = try await Self.doctor(site, expecting: 1)
        // The certificate of the site is good for two days.
        #expect(report.codes == ["certificate_ends_soon"])
        #expect(report["login"]?.seen == ["logged in as echo, and out again"])
        #expect(
            report["clock"]?.outcome == "fine" && report["certificates"]?.seen.first?.contains("/CN=localhost") == true)
        #expect(report["call"]?.outcome == "skipped")
        report = try await Self.doctor(site, ["--call"], expecting: 1)
        #expect(report["call"]?.outcome == "fine" && report.codes == ["certificate_ends_soon"])
        #expect(!exchange.errorText.contains("echo-token"))
        exchange.send(SIGTERM)
        #expect(await exchange.ending() == 0)
    }

    @Test("A device that runs is found by its control socket, and keeps its ports, its session and its calls")
    func running() async throws {
        let site = try Site(port: try freePort(), isControlled: true)
        defer { site.remove() }
        let exchange = try await Self.serve(site)
        let device = try HandsetProcess(["run", "--config", site.deviceConfiguration, "--log-format", "json"])
        try await device.line(containing: #""Ready""#)
        let report = try await Self.doctor(site, expecting: 0)
        #expect(report.codes == [])
        #expect(
            report["device"]?.seen.first?.contains("a device runs (PID \(device.identifier)), connected at") == true)
        #expect(report["ports"]?.outcome == "skipped" && report["login"]?.outcome == "fine")
        device.send(SIGTERM)
        #expect(await device.ending() == 0)
        #expect(!device.errorText.contains("is lost"), "it was disturbed")
        exchange.send(SIGTERM)
        _ = await exchange.ending()
    }

    @Test("A closed port is a refused connection, and what depends on it is skipped with the reason")
    func closedPort() async throws {
        let site = try Site(port: try freePort())
        defer { site.remove() }
        let report = try await Self.doctor(site, expecting: 5)
        #expect(report.codes == ["connection_refused"])
        #expect(report["login"]?.outcome == "skipped" && report["clock"]?.outcome == "skipped")
    }

    @Test("A server that takes connections and is silent does not hold the doctor up, over TLS neither")
    func silentServer() async throws {
        let listener = LoopbackListener()
        defer { close(listener.descriptor) }
        for isEncrypted in [false, true] {
            let site = try Site(port: Int(listener.port), isEncrypted: isEncrypted)
            defer { site.remove() }
            let report = try await Self.doctor(site, expecting: 5)
            #expect(report.codes == ["server_silent"])
        }
    }

    @Test("An expired certificate, and one for another name, are distinguished from one that no authority signed")
    func certificates() async throws {
        let site = try Site(port: try freePort(), isEncrypted: true)
        defer { site.remove() }
        for (name, end, isTrusted, code) in [
            ("localhost", "20200102000000Z", true, "certificate_expired"),
            ("other.example.org", "20991231000000Z", true, "certificate_wrong_name"),
            ("localhost", "20991231000000Z", false, "certificate_untrusted"),
        ] {
            let port = try freePort()
            let served = try Self.makeCertificate(in: site.folder, name: name, until: end)
            let server = try HandsetProcess(
                ["s_server", "-www", "-accept", "\(port)", "-cert", served.certificate, "-key", served.key],
                executable: "/usr/bin/openssl")
            try await eventually { server.outputText.contains("ACCEPT") }
            let configuration = site.path("served.yaml")
            try Self.changed(site.deviceConfiguration) { line in
                if line.hasPrefix("  server:") { return "  server: https://localhost:\(port)" }
                return line.hasPrefix("  trust_roots:") && isTrusted ? "  trust_roots: \(served.certificate)" : line
            }.write(toFile: configuration, atomically: true, encoding: .utf8)
            let report = try await Self.doctor(configuration, expecting: 6)
            #expect(report.codes == [code], "\(report)")
            server.send(SIGKILL)
            _ = await server.ending()
        }
    }

    @Test("A wrong token is a refused login, in the server's words")
    func wrongToken() async throws {
        let site = try Site(port: try freePort())
        defer { site.remove() }
        let exchange = try await Self.serve(site)
        try "echo-token-of-another".write(toFile: site.path("echo.secret"), atomically: true, encoding: .utf8)
        chmod(site.path("echo.secret"), 0o600)
        let report = try await Self.doctor(site, expecting: 4)
        #expect(
            report.codes == ["login_refused"] && report["login"]?.findings.first?.because.contains("Trace-Id") == true)
        exchange.send(SIGTERM)
        _ = await exchange.ending()
    }

    @Test("A name that does not resolve is named, and no connection is tried")
    func unknownName() async throws {
        let site = try Site(port: try freePort())
        defer { site.remove() }
        let configuration = site.path("named.yaml")
        try Self.changed(site.deviceConfiguration) { line in
            line.hasPrefix("  server:") ? "  server: https://no-such-host.invalid" : line
        }.write(toFile: configuration, atomically: true, encoding: .utf8)
        let report = try await Self.doctor(configuration, expecting: 5)
        // Without any name server the name is as unknown.
        #expect(report.codes == ["name_unknown"] || report.codes == ["names_unanswered"])
        #expect(report["connections"]?.outcome == "skipped")
    }

    @Test("A clock that is an hour off is found by the server's time")
    func clock() async throws {
        let site = try Site(port: try freePort())
        defer { site.remove() }
        let exchange = try await Self.serve(site)
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        try Self.run([
            "cc", "-shared", "-fPIC", "-O1", "-o", site.path("faults.so"),
            root.appendingPathComponent("Conformance/faults.c").path, "-ldl",
        ])
        var faults = Data()
        for number: Int64 in [3_600_000, 0, 0] { withUnsafeBytes(of: number) { faults.append(contentsOf: $0) } }
        try faults.write(to: URL(fileURLWithPath: site.path("faults")))
        let report = try await Self.doctor(
            site.deviceConfiguration, expecting: 1,
            environment: ["LD_PRELOAD": site.path("faults.so"), "FAULTS": site.path("faults")])
        #expect(report.codes == ["clock_off"] && report["clock"]?.findings.first?.side == "not_clear")
        #expect(report["clock"]?.seen.first?.contains("s later") == true)
        exchange.send(SIGTERM)
        _ = await exchange.ending()
    }

    @Test(
        "STUN servers: one that never answers, two that see one port, two that see different ports, and a TURN server")
    func stun() async throws {
        let site = try Site(port: try freePort())
        defer { site.remove() }
        let exchange = try await Self.serve(site)
        let silent = try ScriptedDatagrams(.silent)
        let (first, same) = (try ScriptedDatagrams(.sees(port: 40_000)), try ScriptedDatagrams(.sees(port: 40_000)))
        let other = try ScriptedDatagrams(.sees(port: 40_001))
        let relay = try ScriptedDatagrams(.asksForLogin)
        func report(_ urls: String..., code: Int32) async throws -> DoctorReportObject {
            let configuration = site.path("stun.yaml")
            let lines = urls.map { url in
                "    - urls: [\"\(url)\"]"
                    + (url.hasPrefix("turn") ? "\n      username: u\n      credential_file: echo.secret" : "")
            }
            let text = try String(contentsOfFile: site.deviceConfiguration, encoding: .utf8)
                .replacingOccurrences(
                    of: "media:\n", with: "media:\n  ice_servers:\n\(lines.joined(separator: "\n"))\n")
            try text.write(toFile: configuration, atomically: true, encoding: .utf8)
            return try await Self.doctor(configuration, expecting: code)
        }
        #expect(try await report(silent.url, code: 1).codes == ["stun_silent"])
        #expect(
            try await report(first.url, same.url, code: 0)["nat"]?.seen.last?.contains("endpoint-independent") == true)
        #expect(try await report(first.url, other.url, code: 1).codes == ["mapping_endpoint_dependent"])
        // It asks for a login again and again.
        let relayed = try await report(first.url, other.url, relay.url(scheme: "turn"), code: 4)
        #expect(relayed["nat"]?.seen.contains { $0.contains("asks for a login") } == true)
        #expect(relayed.codes == ["relay_unauthorized"])
        let beside = try await report(first.url, silent.url, code: 1)
        #expect(beside.codes == ["stun_silent"] && beside["nat"]?.findings.first?.side == "service")
        exchange.send(SIGTERM)
        _ = await exchange.ending()
    }

    @Test(
        "TURN servers are asked for a relayed address over UDP, TCP and TLS; a wrong password and a closed port are named",
        .enabled(if: RelayServer.isInstalled))
    func relays() async throws {
        let site = try Site(port: try freePort())
        defer { site.remove() }
        let exchange = try await Self.serve(site)
        let server = try RelayServer()
        try Data(RelayServer.password.utf8).write(to: URL(fileURLWithPath: site.path("turn.secret")))
        try Data("another".utf8).write(to: URL(fileURLWithPath: site.path("wrong.secret")))
        func report(_ urls: [String], password: String = "turn.secret", code: Int32) async throws -> DoctorReportObject
        {
            let configuration = site.path("turn.yaml")
            let list = urls.map { "\"\($0)\"" }.joined(separator: ", ")
            let text = try String(contentsOfFile: site.deviceConfiguration, encoding: .utf8)
                .replacingOccurrences(
                    of: "media:\n",
                    with: """
                        media:
                          relay_trust_roots: "\(server.certificate)"
                          ice_servers:
                            - { urls: [\(list)], username: \(RelayServer.username), credential_file: \(password) }

                        """)
            try text.write(toFile: configuration, atomically: true, encoding: .utf8)
            return try await Self.doctor(configuration, expecting: code)
        }
        let good = try await report(
            [
                "turn:127.0.0.1:\(server.port)", "turn:127.0.0.1:\(server.port)?transport=tcp",
                "turns:localhost:\(server.securePort)?transport=tcp",
            ], code: 0)
        #expect(good["relays"]?.outcome == "fine")
        #expect(
            good["relays"]?.seen.filter { $0.contains("relays at 127.0.0.1:") }.count == 3,
            "\(good["relays"]?.seen ?? [])")
        let wrong = try await report(["turn:127.0.0.1:\(server.port)"], password: "wrong.secret", code: 4)
        #expect(wrong.codes == ["relay_unauthorized"] && wrong["relays"]?.findings.first?.side == "this_side")
        let closed = try await report(["turn:127.0.0.1:\(try freePort())?transport=tcp"], code: 5)
        #expect(closed.codes == ["relay_unreachable"])
        // The server's certificate is for another name than its address.
        let unnamed = try await report(["turns:127.0.0.1:\(server.securePort)?transport=tcp"], code: 5)
        #expect(unnamed.codes == ["relay_unreachable"])
        exchange.send(SIGTERM)
        _ = await exchange.ending()
    }

    @Test(
        "A SIP server is asked by OPTIONS and for the account's registrations, and nothing is registered; one that is silent is named"
    )
    func sip() async throws {
        let site = try Site(port: try freePort())
        defer { site.remove() }
        let (server, silent) = (try SIPPeer(), try ScriptedDatagrams(.silent))
        defer { server.end() }
        let good = try await Self.doctor(try Self.sipAccount("alice", at: server.port, site), expecting: 0)
        #expect(
            good.codes == [] && good["login"]?.seen.first?.contains("takes the login of sip:alice@127.0.0.1") == true)
        let none = try await Self.doctor(try Self.sipAccount("alice", at: silent.port, site), expecting: 5)
        #expect(none.codes == ["sip_silent"] && none["login"]?.reason?.contains("not tried") == true)
        let fixed = try Self.sipAccount("alice", at: server.port, site, "    register_s: 0\n")
        #expect(try await Self.doctor(fixed, expecting: 0)["login"]?.reason?.contains("register_s: 0") == true)
        #expect(server.registrations == 0)
    }

    @Test(
        "A SIP login is tried without a Contact: a wrong password, an unknown user and a registrar that is silent are named",
        arguments: [
            ("alice", Int32(0), [String]()), ("wrong", 4, ["login_refused"]), ("nobody", 4, ["user_unknown"]),
            ("silent", 5, ["registrar_silent"]),
        ])
    func sipLogin(user: String, code: Int32, codes: [String]) async throws {
        let site = try Site(port: try freePort())
        defer { site.remove() }
        let registrar = try ScriptedDatagrams(.registrar)
        let report = try await Self.doctor(try Self.sipAccount(user, at: registrar.port, site), expecting: code)
        #expect(report.codes == codes)
    }

    private static func sipAccount(_ user: String, at port: UInt16, _ site: Site, _ more: String = "") throws -> String
    {
        let configuration = site.path("sip.yaml")
        try """
        account:
          kind: sip
          password_file: echo.secret
          sip:
            address: sip:\(user)@127.0.0.1
            server: 127.0.0.1:\(port)
            transport: udp
        \(more)
        """.write(toFile: configuration, atomically: true, encoding: .utf8)
        return configuration
    }

    @Test("A port of the configuration that another program has is found")
    func portInUse() async throws {
        let site = try Site(port: try freePort())
        defer { site.remove() }
        let exchange = try await Self.serve(site)
        let taken = try ScriptedDatagrams(.silent)
        let configuration = try Self.adding("media:\n  port: \(taken.port)", in: "media:", to: site)
        let report = try await Self.doctor(configuration, expecting: 7)
        #expect(
            report.codes == ["port_in_use"]
                && report["ports"]?.findings.first?.because.contains("\(taken.port)") == true)
        exchange.send(SIGTERM)
        _ = await exchange.ending()
    }

    @Test("A folder for recordings that cannot be made is found with line and key, and the other steps go ahead")
    func folder() async throws {
        let site = try Site(port: try freePort())
        defer { site.remove() }
        let exchange = try await Self.serve(site)
        let folder = site.path("echo.secret") + "/recordings"
        let configuration = try Self.adding("behaviour:\n  record_folder: \(folder)", in: "behaviour:", to: site)
        let report = try await Self.doctor(configuration, expecting: 3)
        #expect(report.codes == ["configuration_wrong", "folder_unusable"])
        let problem = try #require(report["configuration"]?.findings.first?.because)
        #expect(problem.contains(": behaviour.record_folder: ") && problem.contains(".yaml:"))
        #expect(report["login"]?.outcome == "fine")
        exchange.send(SIGTERM)
        _ = await exchange.ending()
    }

    @Test("A disk without room for recordings is found", .enabled(if: Self.canMount))
    func fullDisk() async throws {
        let site = try Site(port: try freePort())
        defer { site.remove() }
        let exchange = try await Self.serve(site)
        let folder = site.path("recordings")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let configuration = try Self.adding("behaviour:\n  record_folder: \(folder)", in: "behaviour:", to: site)
        let script = #"mount -t tmpfs -o size=1m none "$1" && exec "$2" doctor --config "$3" --json"#
        let command = try HandsetProcess(
            ["-m", "sh", "-c", script, "sh", folder, HandsetProcess.executable().path, configuration],
            executable: "/usr/bin/unshare")
        #expect(await command.ending() == 9, "\(command.errorText)")
        #expect(try DoctorReportObject(command.outputText).codes == ["disk_full"])
        exchange.send(SIGTERM)
        _ = await exchange.ending()
    }

    @Test(
        "A file that cannot be read, one of another command, and an account that is not there end with the code of a configuration"
    )
    func configuration() async throws {
        let site = try Site(port: try freePort())
        defer { site.remove() }
        let report = try await Self.doctor(site.path("nothing.yaml"), expecting: 3)
        #expect(report.codes == ["configuration_wrong"])
        for arguments in [
            ["--config", site.exchangeConfiguration], ["--config", site.deviceConfiguration, "--account", "none"],
        ] {
            let command = try HandsetProcess(["doctor"] + arguments)
            #expect(await command.ending() == 3)
            #expect(command.errorText.contains("handset serve") || command.errorText.contains("has no account"))
        }
    }

    @Test("To people it prints each step, what is wrong, whose fault it looks like, why, and what to try")
    func text() async throws {
        let site = try Site(port: try freePort())
        defer { site.remove() }
        let command = try HandsetProcess(["doctor", "--config", site.deviceConfiguration])
        #expect(await command.ending() == 5)
        let text = command.outputText
        #expect(text.contains("configuration  fine\n") && text.contains("connections    WRONG\n"))
        #expect(
            text.contains("\n  Nothing listens at http://localhost:") && text.contains(" (the service)\n    Because: "))
        #expect(text.contains("\n    Try: Check the port") && text.hasSuffix("\n1 thing is wrong."))
    }

    // MARK: - Tools

    private static func serve(_ site: Site) async throws -> HandsetProcess {
        let exchange = try HandsetProcess(["serve", "--config", site.exchangeConfiguration, "--log-format", "json"])
        try await exchange.line(containing: #""Listening""#)
        return exchange
    }

    private static func doctor(
        _ site: Site, _ arguments: [String] = [], expecting code: Int32
    ) async throws -> DoctorReportObject {
        try await doctor(site.deviceConfiguration, arguments, expecting: code)
    }

    private static func doctor(
        _ configuration: String, _ arguments: [String] = [], expecting code: Int32, environment: [String: String] = [:]
    ) async throws -> DoctorReportObject {
        let command = try HandsetProcess(
            ["doctor", "--config", configuration, "--json"] + arguments, environment: environment)
        let ended = await command.ending()
        #expect(ended == code, "\(command.outputText)\n\(command.errorText)")
        return try DoctorReportObject(command.outputText)
    }

    /// A configuration with other lines.
    private static func changed(_ path: String, _ change: (String) -> String) throws -> String {
        try String(contentsOfFile: path, encoding: .utf8)
            .split(separator: "\n", omittingEmptySubsequences: false).map { change(String($0)) }.joined(separator: "\n")
    }

    /// Writes the site's device with other text in the place of a section's first line.
    private static func adding(_ text: String, in section: String, to site: Site) throws -> String {
        let path = site.path("changed.yaml")
        try changed(site.deviceConfiguration) { $0 == section ? text : $0 }
            .write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }

    /// Makes a certificate that signs itself.
    private static func makeCertificate(
        in folder: URL, name: String, until end: String
    ) throws -> (certificate: String, key: String) {
        let steps = """
            set -e
            cd "$1"; rm -f index.txt; touch index.txt; echo 01 > serial
            printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase=index.txt\\nserial=serial\\nnew_certs_dir=.\\n' > ca.cnf
            printf 'default_md=sha256\\npolicy=p\\n[p]\\ncommonName=supplied\\n' >> ca.cnf
            printf 'subjectAltName=DNS:%s\\nbasicConstraints=critical,CA:true\\n' "$2" > ext.cnf
            openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" -keyout served.key -out csr
            openssl ca -batch -config ca.cnf -selfsign -keyfile served.key -in csr -startdate 20200101000000Z \
                -enddate "$3" -out served.pem -notext -extfile ext.cnf
            """
        try run(["sh", "-c", steps, "sh", folder.path, name, end])
        return (folder.appendingPathComponent("served.pem").path, folder.appendingPathComponent("served.key").path)
    }

    private static func run(_ command: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0, "\(command.joined(separator: " "))")
    }

    /// Whether this user may mount in a namespace of its own.
    private static let canMount =
        (try? run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"])) != nil
}

/// What `handset doctor --json` prints.
struct DoctorReportObject: Decodable {
    struct Finding: Decodable {
        let code, side, text, because: String
    }

    struct Step: Decodable {
        let step, outcome: String
        let reason: String?
        let seen: [String]
        let findings: [Finding]
    }

    let steps: [Step]

    init(_ text: String) throws { self = try JSONDecoder().decode(Self.self, from: Data(text.utf8)) }

    /// The codes of what was found, in order.
    var codes: [String] { steps.flatMap(\.findings).map(\.code) }

    subscript(_ name: String) -> Step? { steps.first { $0.step == name } }
}

/// A server over UDP on the loopback, which answers what a test says.
final class ScriptedDatagrams: Sendable {
    enum Behaviour {
        case silent
        /// It sees 203.0.113.7 with this port.
        case sees(port: UInt16)
        /// It refuses with 401, as a TURN server does.
        case asksForLogin
        /// It answers OPTIONS, and a REGISTER without a `Contact` by the user's name.
        case registrar
    }

    private let descriptor: Int32
    let port: UInt16

    var url: String { url(scheme: "stun") }

    func url(scheme: String) -> String { "\(scheme):127.0.0.1:\(port)" }

    init(_ behaviour: Behaviour) throws {
        let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) + getsockname(descriptor, $0, &length)
            }
        }
        try #require(status == 0)
        self.descriptor = descriptor
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread {
            var buffer = [UInt8](repeating: 0, count: 1_500)
            while true {
                var sender = sockaddr_in()
                var size = socklen_t(MemoryLayout<sockaddr_in>.size)
                let count = withUnsafeMutablePointer(to: &sender) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        recvfrom(descriptor, &buffer, buffer.count, 0, $0, &size)
                    }
                }
                guard count > 0 else { break }
                guard count >= 20, let answer = Self.answer(to: Array(buffer[..<count]), behaviour) else { continue }
                _ = withUnsafePointer(to: &sender) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        sendto(descriptor, answer, answer.count, 0, $0, size)
                    }
                }
            }
            close(descriptor)
        }
    }

    deinit { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// RFC 8489 §5: the type, the length, cookie and transaction of the request, and one attribute.
    private static func answer(to request: [UInt8], _ behaviour: Behaviour) -> [UInt8]? {
        switch behaviour {
        case .silent: return nil
        case .sees(let port):
            let cookie: [UInt8] = [0x21, 0x12, 0xA4, 0x42]
            let host = zip([203, 0, 113, 7] as [UInt8], cookie).map { $0 ^ $1 }
            let masked = [UInt8(port >> 8) ^ cookie[0], UInt8(port & 0xFF) ^ cookie[1]]
            return [0x01, 0x01, 0, 12] + request[4..<20] + [0, 0x20, 0, 8, 0, 1] + masked + host
        case .asksForLogin:
            return [0x01, 0x13, 0, 8] + request[4..<20] + [0, 0x09, 0, 4, 0, 0, 4, 1]
        case .registrar:
            return registrarsAnswer(to: String(decoding: request, as: UTF8.self)).map { Array($0.utf8) }
        }
    }

    private static func registrarsAnswer(to request: String) -> String? {
        let lines = request.components(separatedBy: "\r\n")
        func has(_ name: String) -> Bool { lines.contains { $0.lowercased().hasPrefix(name + ":") } }
        let status: String
        if !request.hasPrefix("REGISTER") {
            status = "200 OK"
        } else if has("contact") {
            status = "500 It would change a registration"
        } else if request.contains("<sip:silent@") {
            return nil
        } else if !has("authorization") || request.contains("username=\"wrong\"") {
            status = "401 Unauthorized\r\nWWW-Authenticate: Digest realm=\"pbx\", nonce=\"n\(lines.count)\""
        } else {
            status = request.contains("username=\"nobody\"") ? "404 Not Found" : "200 OK"
        }
        let echoed = lines.filter { line in
            ["via:", "from:", "to:", "call-id:", "cseq:"].contains { line.lowercased().hasPrefix($0) }
        }.map { $0.lowercased().hasPrefix("to:") ? $0 + ";tag=server" : $0 }
        return "SIP/2.0 \(status)\r\n\(echoed.joined(separator: "\r\n"))\r\nContent-Length: 0\r\n\r\n"
    }
}
