import Foundation
import TestSupport
import Testing

@Suite("Metrics and health of running commands", .timeLimit(.minutes(2)))
struct MonitoringCommandTests {
    /// A site whose exchange and device show how they are doing.
    private static func site() throws -> Site {
        let site = try Site()
        for file in [site.exchangeConfiguration, site.deviceConfiguration] {
            let text = try String(contentsOfFile: file, encoding: .utf8)
            try (text + "\nmonitoring:\n  listen: 127.0.0.1:0\n").write(toFile: file, atomically: true, encoding: .utf8)
        }
        return site
    }

    private static let monitored = "monitoring: { listen: \"127.0.0.1:0\" }"

    private static func url(of process: HandsetProcess) async throws -> String {
        let line = #/"Showing metrics and health".*"url":"([^"]+)"/#
        try await until { process.errorText.firstMatch(of: line) != nil }
        return String(try #require(process.errorText.firstMatch(of: line)).1)
    }

    /// The status of an answer, and its text.
    private static func get(_ url: String) async throws -> (status: Int, text: String) {
        let script = """
            import sys, urllib.error, urllib.request
            try:
                answer = urllib.request.urlopen(sys.argv[1], timeout=10)
            except urllib.error.HTTPError as error:
                answer = error
            print(answer.status)
            print(answer.read().decode())
            """
        let process = try HandsetProcess(["python3", "-c", script, url], executable: "/usr/bin/env")
        #expect(await process.ending() == 0, "\(process.errorText)")
        let parts = process.outputText.split(separator: "\n", maxSplits: 1)
        return (Int(parts.first ?? "") ?? 0, String(parts.last ?? ""))
    }

    @Test("A call is counted at both ends; without its exchange a device lives, and is not ready, with the reason")
    func call() async throws {
        let site = try Self.site()
        defer { site.remove() }
        let running = try await RunningSite(site)
        let (device, exchange) = (try await Self.url(of: running.device), try await Self.url(of: running.exchange))
        for url in [device, exchange] {
            #expect(try await Self.get("\(url)/livez").text.hasPrefix("ok\n"))
            #expect(try await Self.get("\(url)/readyz").status == 200)
        }
        let call = try running.call(["--duration", "1"])
        #expect(await call.ending() == 0, "\(call.errorText)")
        let ended = #"handset_calls_ended_total{account="",direction="incoming",reason="completed"} 1"#
        try await until { try await Self.get("\(device)/metrics").text.contains(ended) }
        let page = try await Self.get("\(device)/metrics").text
        for line in [
            #"handset_account_connected{account=""} 1"#, #"handset_calls{account="",state="established"} 0"#,
            "handset_call_mos_count 1", "handset_call_setup_seconds_count 1", "handset_takes_calls 1",
            "handset_call_concealed_ratio_count 1",
        ] {
            #expect(page.contains("\n\(line)\n"), "\(line)")
        }
        let counted = try await Self.get("\(exchange)/metrics").text
        for line in [
            "handset_exchange_invites_total 1", "handset_exchange_accepted_invites_total 1", "handset_exchange_calls 0",
        ] {
            #expect(counted.contains("\n\(line)\n"), "\(line)")
        }
        for text in [page, counted] {
            #expect(
                !text.contains("localhost") && !text.contains("echo") && !text.contains("caller@"),
                "no name of a user or a server")
        }

        running.exchange.send(SIGTERM)
        #expect(await running.exchange.ending() == 0)
        try await until { try await Self.get("\(device)/readyz").status == 503 }
        #expect(try await Self.get("\(device)/readyz").text.contains("not connected to the service"))
        #expect(try await Self.get("\(device)/livez").status == 200)
        #expect(try await Self.get("\(device)/metrics").text.contains(#"handset_account_connected{account=""} 0"#))
    }

    @Test("A trunk shows its two accounts, counts a call that it carries in both, and is not ready while it is full")
    func trunk() async throws {
        let site = try Self.site()
        defer { site.remove() }
        try site.admitTrunk()
        let running = try await RunningSite(site)
        let sip = try SIPPeer()
        defer { sip.end() }
        let trunk = try site.trunk(exchange: running.server, sip: sip, Self.monitored)
        let url = try await Self.url(of: trunk)
        try await until { try await Self.get("\(url)/readyz").status == 200 }
        try sip.call("one", to: "200")
        try await until { sip.isHeard("one") }
        let page = try await Self.get("\(url)/metrics").text
        for line in [
            #"handset_account_connected{account="exchange"} 1"#, #"handset_account_connected{account="network"} 1"#,
            #"handset_calls{account="exchange",state="established"} 1"#,
            #"handset_calls{account="network",state="established"} 1"#, "handset_takes_calls 0",
        ] {
            #expect(page.contains("\n\(line)\n"), "\(line)")
        }
        #expect(page.contains("\nprocess_resident_memory_bytes "))
        let ready = try await Self.get("\(url)/readyz")
        #expect(ready.status == 503 && ready.text.contains("the trunk is full"))

        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0)
        let ended = #"handset_calls_ended_total{account="network",direction="incoming",reason="completed"} 1"#
        try await until { try await Self.get("\(url)/metrics").text.contains(ended) }
        let after = try await Self.get("\(url)/metrics").text
        #expect(
            after.contains(#"handset_calls_ended_total{account="exchange",direction="outgoing",reason="completed"} 1"#))
        #expect(after.contains("\nhandset_call_duration_seconds_count 2\n"))
        #expect(!after.contains("localhost") && !after.contains("127.0.0.1"), "no name of a user or a server")
        trunk.send(SIGTERM)
        #expect(await trunk.ending() == 0, "\(trunk.errorText)")
    }

    @Test("A process that still logs in shows metrics, and why it is not ready", arguments: ["run", "trunk"])
    func loggingIn(command: String) async throws {
        let site = try Self.site()
        defer { site.remove() }
        let sip = try SIPPeer()
        defer { sip.end() }
        // Nothing listens at port 9.
        let process =
            command == "run"
            ? try HandsetProcess(["run", "--config", site.deviceConfiguration, "--log-format", "json"])
            : try site.trunk(exchange: "http://localhost:9", sip: sip, Self.monitored)
        let url = try await Self.url(of: process)
        let account = command == "run" ? "" : "exchange"
        let page = try await Self.get("\(url)/metrics")
        #expect(page.status == 200 && page.text.contains("\nhandset_account_connected{account=\"\(account)\"} 0\n"))
        let ready = try await Self.get("\(url)/readyz")
        #expect(ready.status == 503, "\(ready)")
        #expect(ready.text.contains("not connected to the service (connecting)") || ready.text.contains("starting"))
        #expect(try await Self.get("\(url)/livez").status == 200)
        process.send(SIGTERM)
        _ = await process.ending()
    }

    @Test("An address that other machines reach needs a token")
    func exposed() async throws {
        let site = try Site()
        defer { site.remove() }
        let text = try String(contentsOfFile: site.deviceConfiguration, encoding: .utf8)
        try (text + "\nmonitoring:\n  listen: 0.0.0.0:0\n")
            .write(toFile: site.deviceConfiguration, atomically: true, encoding: .utf8)
        let check = try HandsetProcess(["check", site.deviceConfiguration])
        #expect(await check.ending() == 3)
        let said = check.outputText + check.errorText
        #expect(said.contains("monitoring.listen") && said.contains("token_file"), "\(said)")
    }
}
