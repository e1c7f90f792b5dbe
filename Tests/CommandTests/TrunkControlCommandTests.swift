import Foundation
import TestSupport
import Testing

/// A trunk that runs, and an operator with `handset trunk`.
@Suite("handset trunk", .serialized, .timeLimit(.minutes(3)))
struct TrunkControlCommandTests {
    private static let token = "a-trunk-control-token-0123"
    private static let control = "control: { socket: trunk.sock }"

    private func trunk(_ site: Site, _ words: String...) async throws -> CommandResult {
        try await CommandResult(["trunk"] + words + ["--config", site.trunkConfiguration])
    }

    @Test(
        "A call is listed while it is carried, and ended on both sides; what is refused is counted, and events report it"
    )
    func call() async throws {
        let site = try Site()
        defer { site.remove() }
        try site.admitTrunk()
        let running = try await RunningSite(site)
        let sip = try SIPPeer()
        defer { sip.end() }
        let process = try site.trunk(exchange: running.server, sip: sip, Self.control)
        try await process.line(containing: #""Ready""#)
        let events = try HandsetProcess([
            "trunk", "events", "--socket", site.path("trunk.sock"), "--after", "oldest", "--json",
        ])
        let idle = try await trunk(site, "status")
        #expect(idle.code == 0 && idle.output.contains("exchange: connected as caller at localhost:"), "\(idle)")
        #expect(idle.output.contains("network: connected") && idle.output.contains("calls: 0 of 1"), "\(idle)")

        try sip.call("one", to: "200")
        try await until { sip.isHeard("one") }
        let calls = try await trunk(site, "calls")
        #expect(calls.output.hasPrefix("1 from network ") && calls.output.contains("→ 200 (echo): talking"), "\(calls)")
        let object = try #require(try await trunk(site, "calls", "--json").objects().first)
        #expect(object["state"] as? String == "talking" && object["talk_ms"] is Int, "\(object)")
        #expect(object["exchange_call"] is Int && object["network_call"] is Int)
        try sip.call("two", to: "200")
        try await until { events.outputText.contains(#""reason":"full""#) }
        #expect(try await trunk(site, "status").output.contains("refused: 1 full"))

        let ended = try await trunk(site, "hangup", "1")
        #expect(ended.code == 0 && ended.output == "Call 1 is being ended.", "\(ended)")
        try await until { try await trunk(site, "calls").output.isEmpty }
        #expect(try await trunk(site, "hangup", "1").code == 1)
        try await until { events.outputText.contains(#""ended_by":"operator""#) }

        let drained = try await trunk(site, "drain")
        #expect(drained.code == 0 && drained.output.hasPrefix("New calls are refused"), "\(drained)")
        try sip.call("three", to: "200")
        try await until { events.outputText.contains(#""reason":"draining""#) }
        #expect(try await trunk(site, "undrain").code == 0)
        let status = try #require(try await trunk(site, "status", "--json").objects().first)
        let counters = try #require(status["counters"] as? [String: Int])
        #expect(counters["calls"] == 1 && counters["answered"] == 1, "\(counters)")
        #expect(counters["refused_full"] == 1 && counters["refused_draining"] == 1, "\(counters)")
        #expect(status["draining"] as? Bool == false && status["obstacles"] as? [String] == [])

        process.send(SIGTERM)
        #expect(await process.ending() == 0, "\(process.errorText)")
        #expect(await events.ending() == 0, "\(events.errorText)")
        let names = events.outputText.matches(of: #/"event":"([a-z_]+)"/#).map { String($0.1) }
        #expect(
            names.filter { $0 != "connection" } == [
                "call", "call_answered", "call_started", "call_refused", "call_ended", "draining", "call_refused",
                "draining",
            ], "\(names)")
        #expect(!FileManager.default.fileExists(atPath: site.path("trunk.sock")))
    }

    @Test("On TCP a token is needed, and bodies are short; the description is served, and no answer has a secret")
    func network() async throws {
        let site = try Site()
        defer { site.remove() }
        try (Self.token + "\n").write(toFile: site.path("control.token"), atomically: true, encoding: .utf8)
        let sip = try SIPPeer()
        defer { sip.end() }
        // Nothing listens at port 9: its control interface is there while it logs in.
        let process = try site.trunk(
            exchange: "http://localhost:9", sip: sip,
            "control: { socket: trunk.sock, listen: \"127.0.0.1:0\", token_file: control.token }")
        let url = try await process.controlURL()
        let place = ["--url", url, "--token-file", site.path("control.token")]
        let status = try await CommandResult(["trunk", "status"] + place)
        #expect(status.code == 0 && status.output.contains("! exchange: not connected"), "\(status)")
        try "another-token-0123456789".write(toFile: site.path("wrong.token"), atomically: true, encoding: .utf8)
        for words in [["status"], ["calls"], ["hangup", "1"], ["drain"], ["events"]] {
            let refused = try await CommandResult(
                ["trunk"] + words + ["--url", url, "--token-file", site.path("wrong.token")])
            #expect(refused.code == 1 && refused.error.contains("control.token_file"), "\(words) \(refused)")
        }
        func curl(_ path: String, _ arguments: String...) async throws -> String {
            let known = ["--header", "Authorization: Bearer \(Self.token)"]
            let command = try HandsetProcess(
                ["curl", "--silent", "--include", "--max-time", "20", url + path] + known + arguments,
                executable: "/usr/bin/env")
            _ = await command.ending()
            return command.outputText
        }
        try Data(repeating: UInt8(ascii: "x"), count: 10_000_000).write(to: URL(fileURLWithPath: site.path("long")))
        let long = try await curl(
            "/v1/drain", "--header", "Content-Type: application/json", "--data-binary", "@\(site.path("long"))")
        #expect(long.contains("413") && long.contains("too_long"), "\(long)")
        #expect(try await curl("/v1/status", "--header", "Host: evil.example.org").contains("foreign_host"))
        #expect(try await curl("/v1/drain", "--header", "Origin: https://evil.example.org").contains("foreign_origin"))
        #expect(try await curl("/v1/status?token=\(Self.token)").contains("token_in_url"))
        #expect(try await curl("/v1/calls", "--request", "DELETE").contains("Allow: GET, HEAD"))
        #expect(
            try await curl("/v1/drain", "--data", "{\"now\":1}", "--header", "Content-Type: application/json")
                .contains("wrong_value"))
        let description = try await curl("/v1/openapi.json")
        #expect(description.contains(#""openapi":"3.1.0""#) && description.contains("/v1/calls/{call}/hangup"))
        let answer = try await curl("/v1/status")
        for secret in [Self.token, "app-secret", "caller-token"] {
            #expect(!answer.contains(secret) && !process.errorText.contains(secret))
        }
        process.send(SIGTERM)
        _ = await process.ending()
        #expect(try await CommandResult(["trunk", "status"] + place).code == 15)
    }

    @Test("Without a trunk a command ends with 15, without the section with 3, and a trunk without a file with 2")
    func nobody() async throws {
        let site = try Site()
        defer { site.remove() }
        let sip = try SIPPeer()
        defer { sip.end() }
        let process = try site.trunk(exchange: "http://localhost:9", sip: sip, "")
        process.send(SIGTERM)
        _ = await process.ending()
        #expect(try await trunk(site, "status").code == 3)
        #expect(try await CommandResult(["trunk"]).code == 2)
        #expect(try await CommandResult(["trunk", "hangup", "x"]).code == 2)
        let path = site.path("trunk.sock")
        let absent = try await CommandResult(["trunk", "calls", "--socket", path])
        #expect(absent.code == 15 && absent.error.contains("handset trunk"), "\(absent)")
        let foreign = try ForeignSocket(at: path, answering: ForeignSocket.http("{\"calls\":1}"))
        let said = try await CommandResult(["trunk", "calls", "--socket", foreign.path])
        #expect(said.code == 1 && said.error.contains("cannot be read"), "\(said)")
    }
}
