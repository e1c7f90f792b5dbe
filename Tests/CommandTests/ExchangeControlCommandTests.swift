import Foundation
import TestSupport
import Testing

/// An exchange that runs, and an operator with `handset exchange`.
@Suite("handset exchange", .serialized, .timeLimit(.minutes(3)))
struct ExchangeControlCommandTests {
    private static let token = "an-exchange-token-0123456789"

    /// A site whose exchange takes orders, and whose device lets a call ring.
    private static func site(_ more: String = "", answer: String = "auto") throws -> Site {
        let site = try Site(answer: answer)
        let text = try String(contentsOfFile: site.exchangeConfiguration, encoding: .utf8)
        try (text + "\ncontrol: { socket: exchange.sock\(more) }\n")
            .write(toFile: site.exchangeConfiguration, atomically: true, encoding: .utf8)
        try (token + "\n").write(toFile: site.path("control.token"), atomically: true, encoding: .utf8)
        return site
    }

    private func exchange(_ site: Site, _ words: String...) async throws -> CommandResult {
        try await CommandResult(["exchange"] + words + ["--config", site.exchangeConfiguration])
    }

    @Test("Users and a call are listed, the call is ended for both, and events report it")
    func call() async throws {
        let site = try Self.site()
        defer { site.remove() }
        let running = try await RunningSite(site)
        let events = try HandsetProcess([
            "exchange", "events", "--socket", site.path("exchange.sock"), "--after", "oldest", "--json",
        ])
        let users = try await exchange(site, "users")
        #expect(users.code == 0 && users.output.contains("caller: no device"), "\(users)")
        #expect(users.output.contains("echo: ") && users.output.contains("(connected)"), "\(users)")

        let call = try running.call(["--duration", "60"])
        try await call.line(containing: "Media flows both ways")
        let calls = try await exchange(site, "calls")
        let line = try #require(
            calls.output.firstMatch(of: #/(\S+) caller \(.+\) → echo \(.+\): for \d+ s/#), "\(calls)")
        let objects = try await exchange(site, "calls", "--json").objects()
        #expect(objects.count == 1 && objects[0]["invite"] as? String == String(line.1))
        let ended = try await exchange(site, "hangup", String(line.1))
        #expect(ended.code == 0 && ended.output == "The call has ended.", "\(ended)")
        _ = await call.ending()
        #expect(try await exchange(site, "calls").output.isEmpty)
        let again = try await exchange(site, "hangup", String(line.1), "--json")
        #expect(again.code == 1 && again.output.contains(#""code":"no_such_call""#), "\(again)")

        try await until { events.outputText.contains(#""event":"call_ended""#) }
        let lines = events.outputText.split(separator: "\n")
        #expect(lines.allSatisfy { $0.hasPrefix(#"{"cursor":""#) }, "\(lines)")
        #expect(events.outputText.contains(#""reason":"operator""#))
        events.send(SIGINT)
        #expect(await events.ending() == 0, "\(events.errorText)")
        // From the cursor of the first on, for people.
        let cursor = try #require(lines[0].firstMatch(of: #/"cursor":"([^"]+)"/#)).1
        let rest = try HandsetProcess([
            "exchange", "events", "--config", site.exchangeConfiguration, "--after", String(cursor),
        ])
        try await until { rest.outputText.contains("call ended") }
        #expect(rest.outputText.split(separator: "\n").count == lines.count - 1, "\(rest.outputText)")
        rest.send(SIGTERM)
        #expect(await rest.ending() == 0)
    }

    @Test("An invite that rings is listed and cancelled, and a user is logged out")
    func invite() async throws {
        let site = try Self.site(answer: "ring")
        defer { site.remove() }
        let running = try await RunningSite(site)
        let call = try running.call(["--duration", "60"])
        var shown = ""
        try await until {
            shown = try await exchange(site, "invites").output
            return !shown.isEmpty
        }
        let line = try #require(shown.firstMatch(of: #/(\S+) caller → echo: for \d+ s, \d+ s left/#), "\(shown)")
        let cancelled = try await exchange(site, "cancel", String(line.1))
        #expect(cancelled.code == 0 && cancelled.output == "The invite has ended for 1 user.", "\(cancelled)")
        #expect(await call.ending() == 10, "\(call.errorText)")
        #expect(try await exchange(site, "cancel", String(line.1)).code == 1)

        let nobody = try await exchange(site, "logout", "nobody")
        #expect(nobody.code == 1 && nobody.error.contains("no user of that name"), "\(nobody)")
        let absent = try await exchange(site, "logout", "echo", "--device", "none")
        #expect(absent.code == 1, "\(absent)")
        let out = try await exchange(site, "logout", "echo", "--json")
        #expect(out.code == 0 && out.output == #"{"ended":1}"#, "\(out)")
        for list in ["rooms", "groups"] {
            let empty = try await exchange(site, list)
            #expect(empty.code == 0 && empty.output.isEmpty, "\(empty)")
        }
    }

    @Test("On TCP the right token is needed, a body of 10 MB is refused, and the exchange continues")
    func network() async throws {
        let site = try Self.site(", listen: \"127.0.0.1:0\", token_file: control.token")
        defer { site.remove() }
        let exchange = try HandsetProcess(["serve", "--config", site.exchangeConfiguration, "--log-format", "json"])
        let url = try await exchange.controlURL()
        let place = ["--url", url, "--token-file", site.path("control.token")]
        let users = try await CommandResult(["exchange", "users"] + place)
        #expect(users.code == 0 && users.output.contains("caller: no device"), "\(users)")
        try "another-token-0123456789".write(toFile: site.path("wrong.token"), atomically: true, encoding: .utf8)
        for words in [["users"], ["hangup", "1"], ["events"]] {
            let refused = try await CommandResult(
                ["exchange"] + words + ["--url", url, "--token-file", site.path("wrong.token")])
            #expect(refused.code == 1 && refused.error.contains("control.token_file"), "\(refused)")
            #expect(!refused.error.contains("another-token") && !refused.error.contains(Self.token))
        }
        try Data(repeating: UInt8(ascii: "x"), count: 10_000_000).write(to: URL(fileURLWithPath: site.path("long")))
        let long = try HandsetProcess(
            [
                "curl", "--silent", "--include", "--max-time", "20", "\(url)/v1/users/echo/logout", "--header",
                "Authorization: Bearer \(Self.token)", "--header", "Content-Type: application/json", "--data-binary",
                "@\(site.path("long"))",
            ], executable: "/usr/bin/env")
        _ = await long.ending()
        #expect(long.outputText.contains("413") && long.outputText.contains("too_long"), "\(long.outputText)")
        #expect(try await CommandResult(["exchange", "users"] + place).code == 0)
        exchange.send(SIGTERM)
        #expect(await exchange.ending() == 0)
        let gone = try await CommandResult(["exchange", "users"] + place)
        #expect(gone.code == 15 && !gone.error.contains(Self.token), "\(gone)")
    }

    @Test(
        "Without an exchange a command ends with 15, without the section with 3, and with a foreign server it says so")
    func nobody() async throws {
        let site = try Self.site()
        defer { site.remove() }
        let socket = site.path("exchange.sock")
        let absent = try await exchange(site, "users")
        #expect(
            absent.code == 15 && absent.error.contains(socket) && absent.error.contains("handset serve"), "\(absent)")
        let unset = try await CommandResult(["exchange", "calls", "--config", site.callerConfiguration])
        #expect(unset.code == 3, "\(unset)")
        for words in [
            ["users", "--socket", socket, "--config", site.exchangeConfiguration],
            ["users", "--url", "http://localhost:9"], ["users", "--token-file", "x"],
            ["users", "--url", "http://calls.example.org", "--token-file", site.path("control.token")],
            ["users", "--url", "ftp://localhost", "--token-file", site.path("control.token")],
        ] {
            #expect(try await CommandResult(["exchange"] + words).code == 2, "\(words)")
        }
        for (answer, code) in [
            ("nonsense\n", 15), ("", 15), (ForeignSocket.http("[1, 2]"), 1), (ForeignSocket.http("{}"), 1),
        ] as [(String, Int32)] {
            let path = site.path("foreign-\(answer.count).sock")
            let foreign = try ForeignSocket(at: path, answering: answer)
            for words in [["users"], ["logout", "echo"]] {
                let said = try await CommandResult(["exchange"] + words + ["--socket", foreign.path])
                #expect(said.code == code && !said.error.isEmpty && said.output.isEmpty, "\(words) \(answer): \(said)")
            }
        }
    }
}
