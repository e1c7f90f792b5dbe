import Foundation
import Testing

/// `handset user` and `handset token`, from the real command.
@Suite("Accounts and tokens from the command line", .serialized)
struct AccountCommandTests {
    private func run(
        _ arguments: [String], input: String = "", environment: [String: String] = [:]
    ) async throws -> (code: Int32, output: String, error: String) {
        let process = try HandsetProcess(arguments, environment: environment, input: input)
        let code = await process.ending()
        return (code, process.outputText, process.errorText)
    }

    @Test("A user is added, listed, revoked and removed; its token is shown once, and the file holds hashes only")
    func users() async throws {
        let site = try Site()
        defer { site.remove() }
        let text = try String(contentsOfFile: site.exchangeConfiguration, encoding: .utf8)
        try ("users_file: users.yaml\n" + text)
            .write(toFile: site.exchangeConfiguration, atomically: true, encoding: .utf8)
        let place = ["--config", site.exchangeConfiguration]
        let added = try await run(
            ["user", "add", "dora", "--public-id", "dora@localhost", "--password", "--access-token"] + place,
            input: "hunter2 hunter2\n")
        #expect(added.code == 0, "\(added.error)")
        let token = try #require(added.output.split(separator: " ").last).trimmingCharacters(in: .newlines)
        #expect(added.output.hasPrefix("access token: ") && token.count == 43)
        let file = try String(contentsOfFile: site.path("users.yaml"), encoding: .utf8)
        #expect(file.contains("dora@localhost") && file.contains("$scrypt$"))
        #expect(!file.contains(token) && !file.contains("hunter2"))
        #expect(try await run(["check", site.exchangeConfiguration, site.path("users.yaml")]).code == 0)

        let listed = try await run(["user", "list"] + place)
        #expect(listed.output.contains("dora\tdora@localhost\tpassword, access token"), "\(listed.output)")
        #expect(listed.output.contains("echo\techo@localhost\tmedia token (in the configuration)"))
        for id in ["dora", "echo@localhost"] {
            let taken = try await run(["user", "add", id] + place)
            #expect(taken.code == 1 && taken.error.contains("already"))
        }
        for (weak, word) in [("x", "8 characters"), ("Password1", "most common")] {
            for command in [["user", "add", "fay", "--password"] + place, ["user", "hash-password"]] {
                let refused = try await run(command, input: weak + "\n")
                #expect(refused.code == 1 && refused.error.contains(word) && refused.output.isEmpty, "\(refused.error)")
            }
        }
        #expect(!(try String(contentsOfFile: site.path("users.yaml"), encoding: .utf8)).contains("fay"))
        #expect(try await run(["user", "revoke", "dora"] + place).code == 0)
        #expect(try String(contentsOfFile: site.path("users.yaml"), encoding: .utf8).contains("logins_since: "))
        #expect(try await run(["user", "remove", "dora"] + place).code == 0)
        let gone = try await run(["user", "remove", "dora"] + place)
        #expect(gone.code == 1 && gone.error.contains("no user \"dora\""))
        let configured = try await run(["user", "remove", "echo"] + place)
        #expect(configured.code == 1 && configured.error.contains("configuration itself"))
        #expect(try await run(["user", "list"]).code == 2)
        let objects = try await run(["user", "list", "--json"] + place).output.split(separator: "\n").map {
            try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
        }
        #expect(objects.map { $0?["id"] as? String } == ["caller", "echo"])
        #expect(objects.last??["media_tokens"] as? Int == 1 && objects.last??["in_configuration"] as? Bool == true)
    }

    @Test("A users file that is not there is a fault to all but who adds the first user to it")
    func noUsersFile() async throws {
        let site = try Site()
        defer { site.remove() }
        let place = ["--users-file", site.path("typo.yaml")]
        for command in [["list"], ["remove", "dora"], ["revoke", "dora"]] {
            let refused = try await run(["user"] + command + place)
            #expect(refused.code == 3 && refused.error.contains("there is no users file"), "\(refused.error)")
        }
        #expect(try await run(["user", "add", "dora"] + place).code == 0)
        #expect(try await run(["user", "list"] + place).output == "dora\t-\tsigned tokens only")
    }

    @Test("A database that is not there, or no file, is said to be so by who reads it")
    func noDatabase() async throws {
        let site = try Site()
        defer { site.remove() }
        for (name, fault) in [("typo.sqlite", "No such file or directory"), (".", "it is a folder")] {
            for command in [["calls"], ["push", "dead"]] {
                let refused = try await run(command + ["--database", site.path(name)])
                #expect(refused.code == 11 && refused.error.contains(fault), "\(refused.error)")
                #expect(refused.error.contains("`database`") && !refused.error.contains("folder must exist"))
            }
        }
    }

    @Test(
        "AUTH-9, AUTH-10: A login that a device keeps is ended by command, which removes its file, and is worthless then"
    )
    func logout() async throws {
        let site = try Site()
        defer { site.remove() }
        let text = try String(contentsOfFile: site.deviceConfiguration, encoding: .utf8)
        try text.replacingOccurrences(of: "  app_key:", with: "  session_file: session.json\n  app_key:")
            .write(toFile: site.deviceConfiguration, atomically: true, encoding: .utf8)
        let running = try await RunningSite(site)
        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0)
        let kept = try Data(contentsOf: URL(fileURLWithPath: site.path("session.json")))
        let command = ["logout", "--config", site.deviceConfiguration, "--server", running.server]
        let done = try await run(command + ["--unregister", "--json"])
        let result = try JSONSerialization.jsonObject(with: Data(done.output.utf8)) as? [String: Any]
        #expect(done.code == 0 && result?["removed"] as? String == site.path("session.json"), "\(done.error)")
        #expect(result?["unregistered"] as? Bool == true && result?["server"] as? String == running.server)
        #expect(!FileManager.default.fileExists(atPath: site.path("session.json")))
        let again = try await run(command)
        #expect(again.code == 1 && again.error.contains("no login"), "\(again.error)")
        // Whoever has a copy of the file has nothing.
        try kept.write(to: URL(fileURLWithPath: site.path("session.json")))
        let copied = try await run(command)
        #expect(copied.code == 4, "\(copied.error)")
        running.exchange.send(SIGTERM)
        _ = await running.exchange.ending()
        // Without the exchange it is removed here alone, which is said.
        try kept.write(to: URL(fileURLWithPath: site.path("session.json")))
        let alone = try await run(command)
        #expect(alone.code == 5 && alone.error.contains("stays valid at the exchange"), "\(alone.error)")
        #expect(!FileManager.default.fileExists(atPath: site.path("session.json")))
    }

    @Test("AUTH-5: A token is minted with a key from a file, a variable or the configuration, and inspected with it")
    func tokens() async throws {
        let site = try Site()
        defer { site.remove() }
        let secret = "0123456789abcdef0123456789abcdef"
        try (secret + "\n").write(toFile: site.path("key.secret"), atomically: true, encoding: .utf8)
        let text = try String(contentsOfFile: site.exchangeConfiguration, encoding: .utf8)
        try (text + "\napi_keys:\n  - key: school\n    secret_file: key.secret\n")
            .write(toFile: site.exchangeConfiguration, atomically: true, encoding: .utf8)
        let claims = ["--user", "alice", "--session", "class-7", "--role", "moderator", "--data", "seat=4"]
        let ways = [
            (["--config", site.exchangeConfiguration], [:]),
            (["--key", "school", "--secret-file", site.path("key.secret")], [:]),
            (["--key", "school", "--secret-env", "KEY_SECRET"], ["KEY_SECRET": secret]),
        ]
        for (key, environment) in ways {
            let minted = try await run(["token", "mint"] + claims + key, environment: environment)
            #expect(minted.code == 0, "\(minted.error)")
            #expect(minted.output.split(separator: ".").count == 3 && !minted.error.contains(secret))
            let read = try await run(["token", "inspect"] + key, input: minted.output, environment: environment)
            #expect(read.code == 0, "\(read.error)")
            for part in ["school", "alice", "class-7", "moderator", "seat=4", "s from now", "signature    good"] {
                #expect(read.output.contains(part), "\(part) is missing in:\n\(read.output)")
            }
            let other = ["--key", "school", "--secret-env", "OTHER"]
            let wrong = try await run(
                ["token", "inspect"] + other, input: minted.output,
                environment: ["OTHER": String(repeating: "x", count: 32)])
            #expect(wrong.code == 1 && wrong.error.contains("signature is wrong"))
            let unchecked = try await run(["token", "inspect"], input: minted.output)
            #expect(unchecked.code == 0 && !unchecked.output.contains("signature"))
        }
        let short = try await run(
            ["token", "mint", "--user", "a", "--key", "k", "--secret-env", "SHORT"], environment: ["SHORT": "s3cret"])
        #expect(short.code == 3 && short.error.contains("32 bytes") && !short.error.contains("s3cret"))
        #expect(try await run(["token", "mint", "--user", "a"]).code == 2)
        #expect(try await run(["token", "mint", "--user", "a", "--role", "publisher"]).code == 2)
        let noToken = try await run(["token", "inspect"], input: "nonsense\n")
        #expect(noToken.code == 1 && !noToken.error.contains("nonsense"))
    }
}
