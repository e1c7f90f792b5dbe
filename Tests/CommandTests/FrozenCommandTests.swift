import Foundation
import TestSupport
import Testing

/// What scripts write on the command line, and read from it: Tests/Frozen.
@Suite("What the command takes and prints", .serialized)
struct FrozenCommandTests {
    private func expect(_ present: Set<String>, are list: String) throws {
        let differences = try FrozenList(list).differences(from: present)
        #expect(differences.isEmpty, "\(differences.joined(separator: "\n"))")
    }

    private func output(_ arguments: [String], code: Int32 = 0) async throws -> String {
        let command = try HandsetProcess(arguments)
        #expect(await command.ending() == code, "\(arguments): \(command.errorText)")
        return command.outputText
    }

    // MARK: - The command line

    private struct Description: Decodable {
        struct Command: Decodable {
            var commandName: String
            var subcommands: [Command]?
            var arguments: [Argument]?
        }
        struct Argument: Decodable {
            struct Name: Decodable {
                var kind: String
                var name: String
            }
            var kind: String
            var names: [Name]?
            var valueName: String?
            var isOptional: Bool
            var isRepeating: Bool
            var defaultValue: String?
        }
        var command: Command
    }

    /// A line for each subcommand and each of its options.
    private func lines(_ command: Description.Command, _ parents: [String] = []) -> Set<String> {
        let path = (parents + [command.commandName]).joined(separator: " ")
        var lines: Set<String> = [path]
        for argument in command.arguments ?? [] {
            let names = (argument.names ?? []).map { ($0.kind == "short" ? "-" : "--") + $0.name }
            let name = names.isEmpty ? "<\(argument.valueName ?? "")>" : names.sorted().joined(separator: " ")
            let notes = [
                argument.kind == "positional" ? nil : argument.kind, argument.isOptional ? nil : "required",
                argument.isRepeating ? "repeating" : nil, argument.defaultValue.map { "default \($0)" },
            ]
            lines.insert(([path, name] + notes.compactMap { $0 }).joined(separator: " "))
        }
        for subcommand in command.subcommands ?? [] where subcommand.commandName != "help" {
            lines.formUnion(self.lines(subcommand, parents + [command.commandName]))
        }
        return lines
    }

    @Test("Subcommands and options keep their names and defaults")
    func commandLine() async throws {
        let text = try await output(["--experimental-dump-help"])
        let description = try JSONDecoder().decode(Description.self, from: Data(text.utf8))
        try expect(lines(description.command), are: "command-line")
    }

    // MARK: - JSON

    /// The members of each of `text`'s lines. Not their kinds: a figure that could not be measured is null.
    private func members(_ text: String, _ prefix: String) throws -> Set<String> {
        var members = JSONMembers()
        for line in text.split(separator: "\n") { try members.take(line.utf8) }
        #expect(!members.names().isEmpty, "\(prefix) printed nothing")
        return members.names("\(prefix): ")
    }

    @Test("What is printed with --json keeps its members")
    func json() async throws {
        let site = try Site(
            database: "exchange.sqlite", behaviour: "card", callerAudio: ["device: \"null\""])
        defer { site.remove() }
        let text = try String(contentsOfFile: site.deviceConfiguration, encoding: .utf8)
        try text.replacingOccurrences(of: "  app_key:", with: "  session_file: session.json\n  app_key:")
            .write(toFile: site.deviceConfiguration, atomically: true, encoding: .utf8)
        var present = try members(try await output(["version", "--json"]), "version")
        try "acount:\n".write(toFile: site.path("wrong.yaml"), atomically: true, encoding: .utf8)
        let files = [site.exchangeConfiguration, site.path("wrong.yaml")]
        present.formUnion(try members(try await output(["check", "--json"] + files, code: 3), "check"))
        let place = ["--users-file", site.path("users.yaml")]
        _ = try await output(["user", "add", "dora", "--public-id", "dora@localhost"] + place)
        present.formUnion(try members(try await output(["user", "list", "--json"] + place), "user list"))

        let running = try await RunningSite(site, arguments: ["--capture", site.path("call.pcap")])
        let device = running.site.deviceConfiguration
        let played = try running.call(["--play", Site.speech, "--json"])
        #expect(await played.ending() == 0, "\(played.errorText)")
        present.formUnion(try members(played.outputText, "call --play"))
        let spoken = try running.call(["--device", "null", "--duration", "1", "--json"])
        #expect(await spoken.ending() == 0, "\(spoken.errorText)")
        present.formUnion(try members(spoken.outputText, "call --device"))
        let declined = try running.call(["--duration", "1", "--json"], to: "nobody@localhost")
        _ = await declined.ending()
        present.formUnion(try members(declined.outputText, "call that fails"))

        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0)
        let logout = try await output(["logout", "--config", device, "--server", running.server, "--json"])
        present.formUnion(try members(logout, "logout"))
        running.exchange.send(SIGTERM)
        _ = await running.exchange.ending()
        let calls = try await output(["calls", "--database", site.path("exchange.sqlite"), "--json"])
        present.formUnion(try members(calls, "calls"))
        let replay = try await output(["replay", site.path("call.pcap"), "--json"])
        present.formUnion(try members(replay, "replay"))
        let record =
            #"{"call":"1","application":"a","over":true,"began":1,"direction":"incoming","peer":"bob","reason":"completed","#
            + #""ended_by":"remote","established_ms":10,"duration_ms":9000,"media":{"sent":400}}"#
        try (record + "\n").write(toFile: site.path("kept.jsonl"), atomically: true, encoding: .utf8)
        let explained = try await output(["explain", "--records", site.path("kept.jsonl"), "--json"])
        present.formUnion(try members(explained, "explain"))
        let examined = try await output(["doctor", "--config", device, "--json"], code: 5)
        present.formUnion(try members(examined, "doctor"))
        try expect(present, are: "json")
    }

    // MARK: - HTTP

    /// Prints, for each path, the methods that are not answered with 404 or 405.
    private static let ask = """
        import http.client, sys
        host, port = sys.argv[1].split("//")[1].split(":")
        for path in sys.argv[2:]:
            for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
                connection = http.client.HTTPConnection(host, int(port), timeout=10)
                connection.request(method, path)
                if connection.getresponse().status not in (404, 405):
                    print(method, path)
                connection.close()
        """

    @Test("The exchange's paths stay where they are, and take the methods that they took")
    func paths() async throws {
        let site = try Site()
        defer { site.remove() }
        let text = try String(contentsOfFile: site.exchangeConfiguration, encoding: .utf8)
        try ("web_phone: true\n" + text).write(toFile: site.exchangeConfiguration, atomically: true, encoding: .utf8)
        let exchange = try HandsetProcess(["serve", "--config", site.exchangeConfiguration, "--log-format", "json"])
        let line = try await exchange.line(containing: #""Listening""#)
        let url = String(try #require(line.firstMatch(of: #/"url":"([^"]+)"/#)).1)
        let paths = [
            "/", "/v1.1/login", "/v1.1/login/anonymous", "/v1.1/login/challenge", "/v1.1/enroll", "/v1.1/token",
            "/v1.1/logout", "/v1/allidentities",
            "/v1/connection", "/v1/rtc", "/v1/web-config", "/whip/echo", "/whep/echo", "/whip/session/x",
            "/whep/session/x",
        ]
        let asked = try HandsetProcess(["python3", "-c", Self.ask, url] + paths, executable: "/usr/bin/env")
        #expect(await asked.ending() == 0, "\(asked.errorText)")
        try expect(Set(asked.outputText.split(separator: "\n").map(String.init)), are: "rest-paths")
        exchange.send(SIGTERM)
        _ = await exchange.ending()
    }
}
