import Foundation
import TestSupport
import Testing

/// Exchanges of the real command on one database of PostgreSQL.
@Suite("An exchange and its standby", .enabled(if: PostgresServer.isInstalled), .timeLimit(.minutes(10)))
struct StandbyTests {
    private func configuration(_ site: Site, _ database: PostgresDatabase, _ more: String = "") throws -> String {
        let path = site.path("standby-\(UUID().uuidString).yaml")
        let text = """
            listen: 127.0.0.1:0
            store: \(database.url())
            store_lease_seconds: 1
            apps: [{ key: app, secret_hash: \(String(repeating: "ab", count: 32)) }]
            users: [{ id: bob }]
            \(more)
            """
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }

    @Test(
        "INV-16: Killed or stopped and continued under load, an owner's standby takes over and nothing acknowledged is lost"
    )
    func takeovers() async throws {
        let database = try PostgresServer.shared.get().database()
        let torture = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Durability/torture.py").path
        let process = try HandsetProcess(
            ["python3", torture, try HandsetProcess.executable().path, "6", "--store", database.url()],
            executable: "/usr/bin/env")
        let code = await process.ending()
        #expect(code == 0, "\(process.outputText)\n\(process.errorText)")
        #expect(process.outputText.contains("6 kills, "))
    }

    private func python(_ arguments: [String]) async throws -> (code: Int32, text: String) {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let script = folder.appendingPathComponent("Durability/\(arguments[0])").path
        let process = try HandsetProcess(["python3", script] + arguments.dropFirst(), executable: "/usr/bin/env")
        let code = await process.ending()
        return (code, process.outputText + process.errorText)
    }

    @Test("What judges the histories of clients finds each fault that is put in on purpose")
    func judge() async throws {
        let judged = try await python(["history.py"])
        #expect(judged.code == 0 && judged.text.contains("finds each fault"), "\(judged)")
    }

    @Test(
        "INV-16: Nothing acknowledged is lost and no request fails when the owner ends in order, or the server dies",
        .enabled(if: geteuid() == 0, "it makes a network of its own"))
    func outages() async throws {
        let tried = try await python([
            "outages.py", try HandsetProcess.executable().path, "drained", "server-killed", "--rounds", "2",
        ])
        #expect(tried.code == 0, "\(tried.text)")
    }

    @Test(
        "A database that confirms every owner is found out by the judge",
        .enabled(if: geteuid() == 0, "it makes a network of its own"))
    func withoutFence() async throws {
        let tried = try await python([
            "outages.py", try HandsetProcess.executable().path, "--broken", "no-fence", "--rounds", "1",
        ])
        #expect(tried.code == 0, "\(tried.text)")
    }

    @Test("A standby says who owns the database, follows an owner that ends in order, and ends when it is asked to")
    func handover() async throws {
        let database = try PostgresServer.shared.get().database()
        let site = try Site()
        defer { site.remove() }
        let configuration = try configuration(site, database)
        let first = try HandsetProcess(["serve", "--config", configuration])
        try await first.line(containing: "Listening")
        let monitored = try self.configuration(site, database, "monitoring: { listen: \"127.0.0.1:0\" }")
        let second = try HandsetProcess(["serve", "--config", monitored])
        try await second.line(containing: "Standing by")
        #expect(second.errorText.contains("Showing metrics and health"), "before it owns the database")
        let third = try HandsetProcess(["serve", "--config", configuration])
        try await third.line(containing: "Standing by")
        third.send(SIGTERM)
        #expect(await third.ending() == 0, "\(third.errorText)")
        first.send(SIGTERM)
        #expect(await first.ending() == 0)
        try await second.line(containing: "Listening")
        second.send(SIGTERM)
        #expect(await second.ending() == 0)
    }

    @Test("CONN-12: A device is at the standby when the owner ends in order, asked to move there and without a gap")
    func moved() async throws {
        let database = try PostgresServer.shared.get().database()
        let ports = [try freePort(), try freePort()]
        let site = try Site(port: ports[0])
        defer { site.remove() }
        let text = try String(contentsOfFile: site.exchangeConfiguration, encoding: .utf8)
        var configurations: [String] = []
        for port in ports {
            let more = "\nstore: \(database.url())\nstore_lease_seconds: 1\nstore_owner_url: http://localhost:\(port)\n"
            let path = site.path("exchange-\(port).yaml")
            try (text + more).write(toFile: path, atomically: true, encoding: .utf8)
            configurations.append(path)
        }
        let first = try HandsetProcess(["serve", "--config", configurations[0]])
        try await first.line(containing: "Listening")
        let second = try HandsetProcess(
            ["serve", "--config", configurations[1], "--listen", "127.0.0.1:\(ports[1])"])
        try await second.line(containing: "Standing by")
        let device = try HandsetProcess(["run", "--config", site.deviceConfiguration])
        try await device.line(containing: "Ready")
        first.send(SIGTERM)
        try await second.line(containing: "Listening")
        let session = try await second.line(containing: "Session started")
        #expect(session.contains("resumed=true"), "\(session)")
        #expect(await first.ending() == 0, "\(first.errorText)")
        #expect(device.errorText.contains("The service asks for another connection"), "\(device.errorText)")
        device.send(SIGTERM)
        #expect(await device.ending() == 0, "\(device.errorText)")
        second.send(SIGTERM)
        #expect(await second.ending() == 0)
    }

    @Test("`exchange status` names the owner, and `exchange migrate` fills an empty database once")
    func commands() async throws {
        let database = try PostgresServer.shared.get().database()
        let site = try Site()
        defer { site.remove() }
        let configuration = try configuration(site, database)
        func run(_ arguments: [String]) async throws -> (code: Int32, text: String) {
            let process = try HandsetProcess(arguments)
            let code = await process.ending()
            return (code, process.outputText + process.errorText)
        }
        let unused = try await run(["exchange", "status", "--config", configuration])
        #expect(unused.code == 11 && unused.text.contains("no exchange has used it yet"), "\(unused)")

        let old = site.path("old.yaml")
        try """
        listen: 127.0.0.1:0
        database: \(site.path("old.sqlite"))
        apps: [{ key: app, secret_hash: \(String(repeating: "ab", count: 32)) }]
        users_file: users.yaml
        """.write(toFile: old, atomically: true, encoding: .utf8)
        try "users: [{ id: bob }]\n".write(toFile: site.path("users.yaml"), atomically: true, encoding: .utf8)
        let before = try HandsetProcess(["serve", "--config", old])
        try await before.line(containing: "Listening")
        let open = try await run(["exchange", "status", "--config", old])
        #expect(open.code == 0 && open.text.contains("An exchange has it open"), "\(open)")
        let migrate = ["exchange", "migrate", "--config", configuration, "--from", site.path("old.sqlite")]
        let early = try await run(migrate)
        #expect(early.code == 11 && early.text.contains("another exchange uses it"), "\(early)")
        before.send(SIGTERM)
        #expect(await before.ending() == 0)
        let rehearsed = try await run(migrate + ["--dry-run"])
        #expect(rehearsed.code == 0 && rehearsed.text.contains("file_users: 1"), "\(rehearsed)")
        let migrated = try await run(migrate)
        #expect(migrated.code == 0 && migrated.text.contains("file_users: 1"), "\(migrated)")
        let again = try await run(migrate)
        #expect(again.code == 11 && again.text.contains("is not empty"), "\(again)")

        let exchange = try HandsetProcess(["serve", "--config", configuration])
        try await exchange.line(containing: "Listening")
        let owned = try await run(["exchange", "status", "--config", configuration, "--json"])
        #expect(owned.code == 0 && owned.text.contains("process \(exchange.identifier)"), "\(owned)")
        let calls = try await run(["calls", "--config", configuration])
        #expect(calls.code == 0 && calls.text.isEmpty, "\(calls)")
        exchange.send(SIGTERM)
        #expect(await exchange.ending() == 0)
    }

    @Test(
        "CONN-4: A device that names both exchanges, or the standby that names the owner, is at the standby after the owner was killed",
        arguments: [true, false])
    func device(namesBoth: Bool) async throws {
        let database = try PostgresServer.shared.get().database()
        let ports = [try freePort(), try freePort()]
        let site = try Site(port: ports[0])
        defer { site.remove() }
        func append(_ text: String, to path: String, replacing old: String? = nil) throws {
            let before = try String(contentsOfFile: path, encoding: .utf8)
            let after = old.map { before.replacingOccurrences(of: $0, with: text) } ?? "\(before)\n\(text)"
            try after.write(toFile: path, atomically: true, encoding: .utf8)
        }
        let address = namesBoth ? "" : "\nstore_owner_url: http://localhost:\(ports[0])"
        try append("store: \(database.url())\nstore_lease_seconds: 1\(address)", to: site.exchangeConfiguration)
        // The standby comes first: it refuses, and the owner is asked.
        let owner = "server: http://localhost:\(ports[0])"
        try append(
            "server: http://localhost:\(ports[1])"
                + (namesBoth ? "\n  more_servers: [http://localhost:\(ports[0])]" : ""),
            to: site.deviceConfiguration, replacing: owner)
        let serve = ["serve", "--config", site.exchangeConfiguration]
        let first = try HandsetProcess(serve)
        try await first.line(containing: "Listening")
        let second = try HandsetProcess(serve + ["--listen", "127.0.0.1:\(ports[1])"])
        try await second.line(containing: "Standing by")
        let device = try HandsetProcess(["run", "--config", site.deviceConfiguration])
        let answer = try HandsetProcess(
            ["curl", "--silent", "--include", "http://localhost:\(ports[0])/v1/connection"], executable: "/usr/bin/env")
        #expect(await answer.ending() == 0)
        #expect(answer.outputText.contains("Exchange-Epoch: 00000001.1\r\n"), "\(answer.outputText)")
        // From then on the device has received what was committed.
        try await device.line(containing: "Ready")
        first.send(SIGKILL)
        try await second.line(containing: "Listening")
        let session = try await second.line(containing: "Session started")
        #expect(session.contains("resumed=true"), "\(session)")
        device.send(SIGTERM)
        #expect(await device.ending() == 0, "\(device.errorText)")
        second.send(SIGTERM)
        #expect(await second.ending() == 0)
    }

    @Test("`check` connects: it warns without a synchronous standby, and says what is missing")
    func check() async throws {
        let database = try PostgresServer.shared.get().database()
        let site = try Site()
        defer { site.remove() }
        func check(_ database: PostgresDatabase, _ more: String = "") async throws -> (Int32, String) {
            let process = try HandsetProcess(["check", try configuration(site, database, more)])
            let code = await process.ending()
            return (code, process.outputText + process.errorText)
        }
        let alone = try await check(database)
        #expect(alone.0 == 0 && alone.1.contains("no synchronous standby"), "\(alone)")
        let known = try await check(database, "store_replication: none")
        #expect(known.0 == 0 && !known.1.contains("no synchronous standby"), "\(known)")
        let both = try await check(database, "database: exchange.sqlite")
        #expect(both.0 == 3 && both.1.contains("is given together with store"), "\(both)")
        let nowhere = try await check(PostgresDatabase(folder: "/nonexistent", name: "x"))
        #expect(nowhere.0 == 3 && nowhere.1.contains("Check that the server runs"), "\(nowhere)")
    }
}
