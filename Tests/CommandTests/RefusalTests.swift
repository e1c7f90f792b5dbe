import Foundation
import Testing

/// What `handset check` refuses, `handset run` and `handset serve` refuse, with the same words; and the other way round.
@Suite("Broken configurations", .serialized, .timeLimit(.minutes(5)))
struct RefusalTests {
    /// Runs a command to its end, and returns what it says of problems: a line each.
    private func run(_ arguments: [String]) async throws -> (code: Int32, problems: [String], text: String) {
        let process = try HandsetProcess(arguments)
        let code = await process.ending()
        let text = process.errorText
        let lines: [String] = text.replacing("handset: error: ", with: "").split(separator: "\n").map { String($0) }
        return (code, lines.filter { $0.contains(".yaml:") }, text)
    }

    @Test(
        "The command and `check` refuse it with the same file, line, key and sentence",
        arguments: BrokenConfiguration.all)
    func refused(_ broken: BrokenConfiguration) async throws {
        let site = try BrokenSite(for: broken.text)
        defer { site.remove() }
        let file = try site.write(broken.text)
        let checked = try await run(["check", file])
        #expect(checked.code == 3, "\(checked.text)")
        #expect(checked.problems.count == broken.refusals.count, "\(checked.text)")
        for (problem, refusal) in zip(checked.problems, broken.refusals) {
            let expected = refusal.replacing("DIR", with: site.folder.path)
            let whole = expected.hasPrefix("/") ? expected : "\(file):\(expected)"
            #expect(problem.hasPrefix(whole), "it says: \(problem)")
        }
        #expect(!checked.text.contains("hunter2") && !checked.text.contains("failedTo"))

        let started = try await run([broken.command, "--config", file])
        #expect(started.code == 3, "\(started.text)")
        #expect(started.problems == checked.problems)

        let offline = try await run(["check", "--offline", file])
        #expect(offline.code == (broken.showsOffline ? 3 : 0), "\(offline.text)")
        if broken.showsOffline { #expect(offline.problems == checked.problems) }
    }

    @Test("There are 25 of them and more, of devices and of exchanges, each unlike the others")
    func count() {
        let all = BrokenConfiguration.all
        for command in ["run", "serve"] { #expect(all.count { $0.command == command } >= 15) }
        #expect(Set(all.map(\.text)).count == all.count)
    }

    @Test(
        "A database that cannot be there, or is none, is refused with its line, and `serve` keeps the number that it had",
        arguments: ["nowhere/exchange.sqlite", "garbage.pem"])
    func database(name: String) async throws {
        let site = try BrokenSite()
        defer { site.remove() }
        let text = BrokenConfiguration.exchange("", "users: []\ndatabase: \(name)\n").text
        let file = try site.write(text)
        let checked = try await run(["check", file])
        #expect(
            checked.code == 3 && checked.problems.first?.hasPrefix("\(file):6: database: ") == true, "\(checked.text)")
        let started = try await run(["serve", "--config", file])
        #expect(started.code == 11 && started.problems == checked.problems, "\(started.text)")
    }

    @Test("A file that is no database is warned of if it is to be set aside, and an empty one is a new database")
    func databaseToBe() async throws {
        let site = try BrokenSite()
        defer { site.remove() }
        #expect(FileManager.default.createFile(atPath: site.path("empty"), contents: nil))
        for (more, warnings) in [
            (
                "database: garbage.pem\ndatabase_if_corrupt: set_aside\n",
                ["warning: \"\(site.path("garbage.pem"))\" is not a database"]
            ),
            ("database: empty\n", []),
        ] {
            let file = try site.write(BrokenConfiguration.exchange("", "users: []\n" + more).text)
            let checked = try await run(["check", file])
            #expect(checked.code == 0 && checked.problems.count == warnings.count, "\(checked.text)")
            for (problem, warning) in zip(checked.problems, warnings) {
                #expect(problem.hasPrefix("\(file):6: database: \(warning)"), "\(problem)")
            }
        }
    }

    @Test("What a configuration names and is not there yet is warned of: a kept login, and a users file")
    func notThereYet() async throws {
        let site = try BrokenSite()
        defer { site.remove() }
        let device = try site.write("account:\n  kind: kept\n  session_file: kept.json\n")
        let checked = try await run(["check", device])
        let warning = "\(device):3: account.session_file: warning: \"\(site.path("kept.json"))\" contains no login"
        #expect(checked.code == 0 && checked.problems.count == 1, "\(checked.text)")
        #expect(checked.problems.first?.hasPrefix(warning) == true, "\(checked.text)")
        #expect(try await run(["check", "--offline", device]).problems.isEmpty)

        let exchange = try site.write(BrokenConfiguration.exchange("", "users_file: nothere.yaml\n").text)
        let accounts = "\(exchange):5: users_file: warning: \"\(site.path("nothere.yaml"))\" does not exist"
        for command in [["check", exchange], ["user", "list", "--config", exchange]] {
            let said = try await run(command)
            #expect(said.code == 0 && said.problems.first?.hasPrefix(accounts) == true, "\(command): \(said.text)")
        }
        let serving = try HandsetProcess(["serve", "--config", exchange])
        try await serving.line(containing: accounts)
        // Before that a signal ends it as one ends any program.
        try await serving.line(containing: "Listening")
        serving.send(SIGTERM)
        #expect(await serving.ending() == 0)
    }

    @Test("A certificate that ends in three days is warned of by `check` and at the start")
    func endingCertificate() async throws {
        let text = "users: []\ncertificate:\n  chain_file: ending.pem\n  key_file: ending.key\n"
        let site = try BrokenSite(for: text)
        defer { site.remove() }
        let file = try site.write(BrokenConfiguration.exchange("", text).text)
        let warning = "\(file):7: certificate.chain_file: warning: \"\(site.path("ending.pem"))\" ends in 3 days, "
        let checked = try await run(["check", file])
        #expect(checked.code == 0, "\(checked.text)")
        #expect(checked.problems.contains { $0.hasPrefix(warning) }, "\(checked.text)")
        let serving = try HandsetProcess(["serve", "--config", file])
        try await serving.line(containing: warning)
        try await serving.line(containing: "Listening")
        serving.send(SIGTERM)
        _ = await serving.ending()
    }

    @Test("A sound card that is not there is warned of by `check`, with the cards that are there")
    func absentCard() async throws {
        let site = try BrokenSite()
        defer { site.remove() }
        for (audio, line, name) in [
            ("audio:\n  device: by-id/usb-Nobody\n", "7: audio.device", "by-id/usb-Nobody"),
            ("audio:\n  playback: \"null\"\n  capture: nobodys\n", "8: audio.capture", "nobodys"),
        ] {
            let file = try site.write(BrokenConfiguration.device("", "behaviour:\n  source: card\n" + audio).text)
            let checked = try await run(["check", file])
            let warning = "\(file):\(line): warning: cannot use the sound card \"\(name)\" for "
            #expect(checked.code == 0 && checked.problems.count == 1, "\(checked.text)")
            #expect(checked.problems.first?.hasPrefix(warning) == true, "\(checked.text)")
            #expect(checked.text.contains("Cards of this machine: ") || checked.text.contains("has no sound card."))
            #expect(try await run(["check", "--offline", file]).problems.isEmpty)
        }
    }

    @Test("A configuration for another command is said to be so, in one line")
    func otherKind() async throws {
        let site = try BrokenSite()
        defer { site.remove() }
        for (broken, command, message) in [
            (
                BrokenConfiguration.exchange(""), "run",
                "is a configuration for `handset serve`; one for `handset run` has account"
            ),
            (.device(""), "serve", "is a configuration for `handset run`; one for `handset serve` has apps"),
        ] {
            let file = try site.write(broken.text)
            let refused = try await run([command, "--config", file])
            #expect(refused.code == 3 && refused.problems == ["\(file):1: \(message)"], "\(refused.text)")
        }
        let exchange = try site.write(BrokenConfiguration.exchange("").text)
        let device = site.path("device.yaml")
        try BrokenConfiguration.device("").text.write(toFile: device, atomically: true, encoding: .utf8)
        for (words, file, message) in [
            (["call", "a@b", "--config", exchange], exchange, "serve"),
            (["logout", "--config", exchange], exchange, "serve"),
            (["loopback", "call", "a@b", "--config", exchange], exchange, "serve"),
            (["control", "--config", exchange, "status"], exchange, "serve"),
            (["user", "list", "--config", device], device, "run"),
            (["user", "list", "--users-file", device], device, "run"),
            (["token", "mint", "--user", "a", "--config", device], device, "run"),
        ] {
            let refused = try await run(words)
            #expect(refused.code == 3 && refused.problems.count == 1, "\(words): \(refused.text)")
            let expected = "\(file):1: is a configuration for `handset \(message)`"
            #expect(refused.problems.first?.hasPrefix(expected) == true, "\(words): \(refused.text)")
        }
    }

    @Test("What is there and is not used is warned of, and the configuration is good")
    func idle() async throws {
        let site = try BrokenSite(for: "good.")
        defer { site.remove() }
        for (more, line, showsOffline) in [
            ("audio:\n  muted: true\n", "4: audio: warning: is for behaviour.source: card", true),
            ("  trust_roots: good.pem\n", "4: account.trust_roots: warning: is for https://", true),
            ("  session: lecture\n", "4: account.session: warning: is what a signed token is limited to", false),
        ] {
            let file = try site.write(BrokenConfiguration.device("", more).text)
            for command in showsOffline ? [["check"], ["check", "--offline"]] : [["check"]] {
                let checked = try await run(command + [file])
                #expect(checked.code == 0 && checked.problems.count == 1, "\(checked.text)")
                #expect(checked.problems.first?.hasPrefix("\(file):\(line)") == true, "\(checked.text)")
            }
        }
        let used = "behaviour:\n  source: card\naudio:\n  device: \"null\"\n"
        let device = BrokenConfiguration.device("", server: "https://127.0.0.1:9", "  trust_roots: good.pem\n" + used)
        let file = try site.write(device.text)
        #expect(try await run(["check", file]).problems.isEmpty)
    }

    @Test("A secret that every user may read is warned of by `check` and by the command, and is good")
    func readableSecret() async throws {
        let site = try BrokenSite()
        defer { site.remove() }
        #expect(chmod(site.path("token"), 0o644) == 0)
        let exchange = BrokenConfiguration.exchange("").text
        for (text, command, line) in [
            (exchange, "serve", "4: apps[1].secret_file: "),
            (BrokenConfiguration.device("").text, "run", "3: account.media_token_file: "),
        ] {
            let file = try site.write(text)
            let warning = "\(file):\(line)warning: every user of this machine may read \"\(site.path("token"))\""
            let checked = try await run(["check", file])
            #expect(checked.code == 0 && checked.problems.first?.hasPrefix(warning) == true, "\(checked.text)")
            let started = try HandsetProcess([command, "--config", file])
            try await started.line(containing: warning)
            started.send(SIGTERM)
            _ = await started.ending()
            #expect(try await run(["check", "--offline", file]).problems.isEmpty)
        }
        // What others cannot reach they cannot read.
        #expect(chmod(site.folder.path, 0o700) == 0)
        #expect(try await run(["check", site.path("broken.yaml")]).problems.isEmpty)
    }

    @Test("`check --json` says the same for programs, a line for each file")
    func json() async throws {
        let site = try BrokenSite()
        defer { site.remove() }
        let bad = try site.write(BrokenConfiguration.device("", "answer:\n  mode: maybe\n").text)
        let good = site.path("good.yaml")
        try BrokenConfiguration.exchange("").text.write(toFile: good, atomically: true, encoding: .utf8)
        let process = try HandsetProcess(["check", "--json", good, bad])
        #expect(await process.ending() == 3)
        let objects: [[String: Any]] = try process.outputText.split(separator: "\n").map { line in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return try #require(object)
        }
        try #require(objects.count == 2, "\(process.outputText)")
        #expect(objects[0]["good"] as? Bool == true && objects[0]["command"] as? String == "serve")
        #expect(objects[1]["good"] as? Bool == false && objects[1]["file"] as? String == bad)
        #expect(objects[1]["command"] as? String == "run", "the kind is plain, whatever is wrong")
        let problem = (objects[1]["problems"] as? [[String: Any]])?.first
        #expect(problem?["line"] as? Int == 5 && problem?["key"] as? String == "answer.mode")
        #expect(problem?["severity"] as? String == "error")
        #expect((problem?["message"] as? String)?.hasPrefix("must be one of auto") == true)
    }

    @Test("What the command line gives in the place of a wrong address is used, and the file's is not judged")
    func overrides() async throws {
        let site = try BrokenSite()
        defer { site.remove() }
        let exchange = try site.write(BrokenConfiguration.exchange("", listen: "0.0.0.0:0").text)
        let serving = try HandsetProcess(["serve", "--config", exchange, "--listen", "127.0.0.1:0"])
        try await serving.line(containing: "Listening")
        serving.send(SIGTERM)
        #expect(await serving.ending() == 0)
        let device = try site.write(BrokenConfiguration.device("", server: "http://192.0.2.1").text)
        let running = try HandsetProcess(["run", "--config", device, "--server", "http://127.0.0.1:9"])
        try await running.line(containing: "nothing listens at 127.0.0.1:9")
        running.send(SIGTERM)
        #expect(await running.ending() == 0)
        let refused = try await run(["run", "--config", device, "--server", "http://192.0.2.1"])
        #expect(refused.code == 3 && refused.text.contains("192.0.2.1 is another machine"), "\(refused.text)")
    }
}
