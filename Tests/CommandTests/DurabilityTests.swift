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

    @Test("A database that is in use, damaged or nowhere ends `serve` with 11 and says what to do")
    func unusable() async throws {
        let site = try Site(database: "exchange.sqlite")
        defer { site.remove() }
        let arguments = ["serve", "--config", site.exchangeConfiguration]
        let first = try HandsetProcess(arguments)
        try await first.line(containing: "Listening")
        let second = try HandsetProcess(arguments)
        #expect(await second.ending() == 11)
        #expect(second.errorText.contains("another exchange has it"))
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

    @Test("A full disk, and one that turns read-only, stop the exchange from promising; with room it goes on by itself")
    func fullDisk() async throws {
        let site = try Site(database: "disk/exchange.sqlite")
        defer { site.remove() }
        try FileManager.default.createDirectory(atPath: site.path("disk"), withIntermediateDirectories: false)
        // A small disk of the exchange's own, in a namespace that ends with it.
        let script = "mount -t tmpfs -o size=1m disk \"$1\" && exec \"$2\" serve --config \"$3\" --log-format json"
        let exchange = try HandsetProcess(
            [
                "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", site.path("disk"),
                try HandsetProcess.executable().path, site.exchangeConfiguration,
            ], executable: "/usr/bin/unshare")
        let line = try await exchange.line(containing: #""Listening""#)
        let url = try #require(line.firstMatch(of: #/"url":"([^"]+)"/#))
        let server = url.1.replacingOccurrences(of: "127.0.0.1", with: "localhost")
        func inside(_ command: String) throws {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/nsenter")
            process.arguments = [
                "--target", "\(exchange.identifier)", "--user", "--mount", "--preserve-credentials", "sh", "-c",
                command,
            ]
            try process.run()
            process.waitUntilExit()
        }
        let disk = site.path("disk")
        let faults = [
            ("dd if=/dev/zero of=\(disk)/filler bs=4k 2>/dev/null; true", "rm \(disk)/filler", "disk is full"),
            ("mount -o remount,ro \(disk)", "mount -o remount,rw \(disk)", "may not be written"),
        ]
        for (damage, repair, text) in faults {
            let device = try HandsetProcess([
                "run", "--config", site.deviceConfiguration, "--server", server, "--log-format", "json",
            ])
            try await device.line(containing: #""Ready""#)
            try inside(damage)
            // Whoever comes now is told so; and everybody who is there comes back when there is room.
            let call = try HandsetProcess([
                "call", "echo@localhost", "--config", site.callerConfiguration, "--server", server, "--duration", "1",
            ])
            let said = try await exchange.line(containing: "nothing can be kept")
            #expect(said.contains(text))
            _ = await call.ending()
            try inside(repair)
            try await exchange.line(containing: "can be written again")
            let again = try HandsetProcess([
                "call", "echo@localhost", "--config", site.callerConfiguration, "--server", server, "--duration", "1",
            ])
            try await device.line(containing: "Connected again")
            #expect(await again.ending() == 0, "\(again.errorText)\n\(device.errorText)")
            device.send(SIGTERM)
            #expect(await device.ending() == 0)
        }
        exchange.send(SIGTERM)
        #expect(await exchange.ending() == 0)
    }
}
