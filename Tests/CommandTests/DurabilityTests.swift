import Foundation
import Testing

/// The exchange's database in the hands of the real command.
@Suite struct DurabilityTests {
    @Test("INV-16: Killed twenty times under load, the exchange loses no invite and lets none be answered twice")
    func kills() async throws {
        let torture = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Durability/torture.py").path
        let process = try HandsetProcess(
            ["python3", torture, try HandsetProcess.executable().path, "20"], executable: "/usr/bin/env")
        let code = await process.ending()
        #expect(code == 0, "\(process.outputText)\n\(process.errorText)")
        #expect(process.outputText.contains("20 kills, "))
    }

    @Test("CALL-7: A call of two devices leaves a record that `handset calls` prints after a kill -9")
    func records() async throws {
        let site = try Site(database: "exchange.sqlite")
        let running = try await RunningSite(site)
        defer { site.remove() }
        let call = try running.call(["--duration", "1"])
        #expect(await call.ending() == 0)
        running.exchange.send(SIGKILL)
        #expect(await running.exchange.ending() == -SIGKILL)
        let calls = try HandsetProcess(["calls", "--database", site.path("exchange.sqlite"), "--json"])
        #expect(await calls.ending() == 0)
        let lines = calls.outputText.split(separator: "\n")
        #expect(lines.count == 1)
        #expect(lines.first?.contains(#""reason": "completed""#) == true)
        #expect(lines.first?.contains(#""inviter": "caller""#) == true)
    }

    @Test("INV-16: A database of the version before pushes is taken over with the invites in it")
    func migration() async throws {
        let site = try Site(database: "exchange.sqlite")
        defer { site.remove() }
        func serve() async throws {
            let exchange = try HandsetProcess(["serve", "--config", site.exchangeConfiguration])
            try await exchange.line(containing: "Listening")
            exchange.send(SIGTERM)
            #expect(await exchange.ending() == 0)
        }
        func run(_ sql: String) async throws -> String {
            let script = """
                import sqlite3, sys
                base = sqlite3.connect(sys.argv[1])
                for statement in sys.argv[2].split(";"): print(base.execute(statement).fetchall())
                base.commit()
                """
            let python = try HandsetProcess(
                ["python3", "-c", script, site.path("exchange.sqlite"), sql], executable: "/usr/bin/env")
            #expect(await python.ending() == 0, "\(python.errorText)")
            return python.outputText
        }
        try await serve()
        _ = try await run(
            """
            DROP TABLE pushes; DROP TABLE dead_pushes; ALTER TABLE invites DROP COLUMN online_only;
            DELETE FROM grdb_migrations WHERE identifier = '2 pushes';
            INSERT INTO invites (id, inviter, inviter_device, invitees, ttl_s, sent_ms)
            VALUES ('invite-1', 'caller', 'a', '[{"user":"echo","state":"pending"}]', 0, 0)
            """)
        try await serve()
        let rows = try await run("SELECT id, online_only FROM invites; SELECT count(*) FROM pushes, dead_pushes")
        #expect(rows.split(separator: "\n").prefix(2) == ["[('invite-1', 0)]", "[(0,)]"])
    }

    @Test("DEV-4: `handset push dead` prints what could not be made, and of a database without any nothing")
    func deadPushes() async throws {
        let site = try Site(database: "exchange.sqlite")
        defer { site.remove() }
        let exchange = try HandsetProcess(["serve", "--config", site.exchangeConfiguration])
        try await exchange.line(containing: "Listening")
        exchange.send(SIGKILL)
        #expect(await exchange.ending() == -SIGKILL)
        let path = site.path("exchange.sqlite")
        let empty = try HandsetProcess(["push", "dead", "--database", path])
        #expect(await empty.ending() == 0 && empty.outputText.isEmpty)
        let insert = """
            INSERT INTO dead_pushes (id, invite, user, device, kind, message, reason, detail, attempts, died_ms)
            VALUES ('push-1', 'invite-1', 'echo', 'phone', 'fcm', 'invite', 'gone', '404 UNREGISTERED', 1, 0)
            """
        let write = "import sqlite3, sys; base = sqlite3.connect(sys.argv[1]); base.execute(sys.argv[2]); base.commit()"
        let python = try HandsetProcess(["python3", "-c", write, path, insert], executable: "/usr/bin/env")
        #expect(await python.ending() == 0, "\(python.errorText)")
        let text = try HandsetProcess(["push", "dead", "--database", path, "--user", "echo"])
        #expect(await text.ending() == 0)
        #expect(
            text.outputText.trimmingCharacters(in: .newlines)
                == "1970-01-01T00:00:00.000Z echo/phone fcm invite of invite-1: gone (404 UNREGISTERED) "
                + "after 1 attempt")
        let json = try HandsetProcess(["push", "dead", "--database", path, "--json"])
        #expect(await json.ending() == 0)
        #expect(json.outputText.contains(#""reason": "gone", "answer": "404 UNREGISTERED", "attempts": 1}"#))
        let none = try HandsetProcess(["push", "dead", "--database", site.path("nowhere")])
        #expect(await none.ending() == 11)
    }

    @Test("A database that is in use, damaged or nowhere ends `serve` with 11 and says what to do")
    func unusable() async throws {
        let site = try Site(database: "exchange.sqlite")
        defer { site.remove() }
        let arguments = ["serve", "--config", site.exchangeConfiguration]
        let first = try HandsetProcess(arguments)
        try await first.line(containing: "Listening")
        let second = try HandsetProcess(arguments)
        #expect(await second.ending() == 11)
        #expect(second.errorText.contains("another exchange uses it"))
        first.send(SIGTERM)
        #expect(await first.ending() == 0)

        let path = site.path("exchange.sqlite")
        try Data(repeating: 0x41, count: 20_000).write(to: URL(fileURLWithPath: path))
        let third = try HandsetProcess(arguments)
        #expect(await third.ending() == 11)
        #expect(third.errorText.contains("database_if_corrupt: set_aside"))

        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        let fourth = try HandsetProcess(arguments)
        #expect(await fourth.ending() == 11)
    }

    @Test("A full disk stops the exchange from promising anything; with room it continues by itself")
    func fullDisk() async throws {
        let site = try Site(database: "disk/exchange.sqlite")
        defer { site.remove() }
        let exchange = try Self.serve(site, onDiskAfter: "true")
        let line = try await exchange.line(containing: #""Listening""#)
        let url = try #require(line.firstMatch(of: #/"url":"([^"]+)"/#))
        let server = url.1.replacingOccurrences(of: "127.0.0.1", with: "localhost")
        func call() throws -> HandsetProcess {
            try HandsetProcess([
                "call", "echo@localhost", "--config", site.callerConfiguration, "--server", server, "--duration", "1",
            ])
        }
        let device = try HandsetProcess([
            "run", "--config", site.deviceConfiguration, "--server", server, "--log-format", "json",
        ])
        try await device.line(containing: #""Ready""#)
        // The disk as the exchange sees it.
        let filler = "/proc/\(exchange.identifier)/root\(site.path("disk/filler"))"
        #expect(FileManager.default.createFile(atPath: filler, contents: nil))
        let handle = try #require(FileHandle(forWritingAtPath: filler))
        while (try? handle.write(contentsOf: Data(count: 1_024))) != nil {}
        try handle.close()
        // Whoever asks for something now is told so; who is there comes back when there is room.
        let refused = try call()
        #expect(try await exchange.line(containing: "Nothing can be stored").contains("disk is full"))
        refused.send(SIGKILL)
        _ = await refused.ending()
        try FileManager.default.removeItem(atPath: filler)
        try await exchange.line(containing: "can be written again")
        try await device.line(containing: "Connected again")
        let again = try call()
        #expect(await again.ending() == 0, "\(again.errorText)\n\(device.errorText)")
        device.send(SIGTERM)
        #expect(await device.ending() == 0)
        exchange.send(SIGTERM)
        #expect(await exchange.ending() == 0)
    }

    @Test(
        "An exchange whose database is moved while it runs promises nothing and says why, and continues once it is back"
    )
    func deleted() async throws {
        let site = try Site(database: "exchange.sqlite")
        let running = try await RunningSite(site)
        defer { site.remove() }
        let (database, aside) = (site.path("exchange.sqlite"), site.path("aside.sqlite"))
        try FileManager.default.moveItem(atPath: database, toPath: aside)
        let refused = try running.call(["--duration", "1"])
        let line = try await running.exchange.line(containing: "Nothing can be stored")
        #expect(line.contains("exchange.sqlite was deleted, moved or replaced"), "\(line)")
        #expect(await refused.ending() != 0)
        #expect(!FileManager.default.fileExists(atPath: database), "no other is made in its place")
        try FileManager.default.moveItem(atPath: aside, toPath: database)
        try await running.exchange.line(containing: "can be written again")
        try await running.device.line(containing: "Connected again")
        let again = try running.call(["--duration", "1"])
        #expect(await again.ending() == 0, "\(again.errorText)")
        let calls = try HandsetProcess(["calls", "--database", database, "--json"])
        #expect(await calls.ending() == 0)
        #expect(calls.outputText.split(separator: "\n").count == 1, "\(calls.outputText)")
        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0)
        running.exchange.send(SIGTERM)
        #expect(await running.exchange.ending() == 0)
    }

    @Test(
        "An exchange whose database or log another program empties while it runs promises nothing, says why, and is not ready",
        arguments: ["exchange.sqlite", "exchange.sqlite-wal"])
    func spoiled(name: String) async throws {
        let site = try Site(database: "exchange.sqlite")
        let text = try String(contentsOfFile: site.exchangeConfiguration, encoding: .utf8)
        try (text + "\nmonitoring: { listen: '127.0.0.1:0' }\n")
            .write(toFile: site.exchangeConfiguration, atomically: true, encoding: .utf8)
        let running = try await RunningSite(site)
        defer { site.remove() }
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: site.path(name)))
        try file.truncate(atOffset: 0)
        try file.close()
        let refused = try running.call(["--duration", "1"])
        let line = try await running.exchange.line(containing: "Nothing can be stored")
        #expect(line.contains("another program has cut") && line.contains(name), "\(line)")
        #expect(await refused.ending() != 0)
        let shown = #/"Showing metrics and health".*"url":"([^"]+)"/#
        let url = try #require(running.exchange.errorText.firstMatch(of: shown)?.1)
        let ready = try HandsetProcess(
            ["curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}\\n", "\(url)/readyz"],
            executable: "/usr/bin/env")
        #expect(await ready.ending() == 0 && ready.outputText.hasPrefix("503"), "\(ready.outputText)")
        for process in [running.device, running.exchange] { process.send(SIGTERM) }
        #expect(await running.exchange.ending() == 0)
    }

    @Test("AUTH-9: More calls by command than a user has logins all succeed, and leave no login behind")
    func manyCommands() async throws {
        let site = try Site(database: "exchange.sqlite")
        let running = try await RunningSite(site)
        defer { site.remove() }
        for _ in 0..<17 {
            let calls = try (0..<4).map { _ in try running.call(["--duration", "0.1"]) }
            for call in calls { #expect(await call.ending() == 0, "\(call.errorText)") }
        }
        running.exchange.send(SIGTERM)
        #expect(await running.exchange.ending() == 0)
        let script = """
            import sqlite3, sys
            base = sqlite3.connect(sys.argv[1])
            print(base.execute("SELECT user, count(*) FROM tokens WHERE NOT revoked GROUP BY user ORDER BY user").fetchall())
            """
        let python = try HandsetProcess(
            ["python3", "-c", script, site.path("exchange.sqlite")], executable: "/usr/bin/env")
        #expect(await python.ending() == 0, "\(python.errorText)")
        #expect(
            python.outputText.contains("[('echo', 2)]"),
            "the device that runs has its pair of tokens: \(python.outputText)")
    }

    @Test("A disk that may not be written, or is full, at the start ends `serve` with 11 and says which it is")
    func unwritableDisk() async throws {
        let site = try Site(database: "disk/exchange.sqlite")
        defer { site.remove() }
        let faults = [
            ("mount -o remount,ro \"$1\"", "Mount the disk for writing"),
            ("dd if=/dev/zero of=\"$1/filler\" bs=1k 2>/dev/null; true", "disk is full"),
        ]
        for (fault, text) in faults {
            let exchange = try Self.serve(site, onDiskAfter: fault)
            #expect(await exchange.ending() == 11, "\(exchange.errorText)")
            #expect(exchange.errorText.contains(text))
        }
    }

    /// Starts an exchange with a small disk of its own for its database, in a namespace that ends with it.
    ///
    /// - Parameter preparation: What a shell does with the disk first; `$1` is its folder, `$2` the command, `$3` its
    ///   configuration.
    private static func serve(_ site: Site, onDiskAfter preparation: String) throws -> HandsetProcess {
        let disk = site.path("disk")
        try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: true)
        let script =
            "mount -t tmpfs -o size=1m disk \"$1\" && { \(preparation); } "
            + "&& exec \"$2\" serve --config \"$3\" --log-format json"
        return try HandsetProcess(
            [
                "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", disk,
                try HandsetProcess.executable().path, site.exchangeConfiguration,
            ], executable: "/usr/bin/unshare")
    }
}
