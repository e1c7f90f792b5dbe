import ArgumentParser
import ConfigReader
import Foundation
import Testing

@testable import handset

@Suite struct ExitStatusTests {
    @Test("docs/exit-codes.md lists every exit code with its meaning, and no other")
    func documentation() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let page = try String(contentsOf: root.appendingPathComponent("docs/exit-codes.md"), encoding: .utf8)
        let rows = page.split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst(2)
        let listed = rows.map { row in
            row.split(separator: "|").prefix(2).map { $0.trimmingCharacters(in: .whitespaces) }
        }
        #expect(listed == ExitStatus.allCases.map { ["\($0.rawValue)", $0.meaning] })
    }

    @Test("Each kind of failure has its status")
    func failures() {
        let problem = ConfigError([ConfigProblem(file: "a.yaml", message: "is wrong")])
        #expect(ExitStatus(problem) == .configuration)
        #expect(ExitStatus(CommandFailure(.portInUse, "taken")) == .portInUse)
        #expect(ExitStatus(CocoaError(.fileNoSuchFile)) == .failed)
    }

    @Test("A wrong command line is distinguished from a failure, so that it ends with the code for usage")
    func usage() {
        for arguments in [["nonsense"], ["check"], ["version", "--no-such-option"]] {
            #expect(throws: (any Error).self) { try Handset.parseAsRoot(arguments) }
            do {
                _ = try Handset.parseAsRoot(arguments)
            } catch {
                #expect(Handset.exitCode(for: error) == .validationFailure)
            }
        }
    }
}

@Suite("The server's URL on the command line")
struct ServerURLTests {
    @Test("A URL of another scheme is refused before anything is tried, with what it has to begin with")
    func scheme() throws {
        for command in ["run --config a", "call a@b", "loopback call a@b", "logout --config a"] {
            let words = command.split(separator: " ").map(String.init)
            for url in ["ws://127.0.0.1:8080", "127.0.0.1:8080", "http://", "http://a:port"] {
                do {
                    _ = try Handset.parseAsRoot(words + ["--server", url])
                    Issue.record("\(command) takes \(url)")
                } catch {
                    let message = Handset.message(for: error)
                    #expect(
                        message.contains("it must be a URL that begins with http:// or https://")
                            || message.contains("it must have a port"))
                }
            }
            _ = try Handset.parseAsRoot(words + ["--server", "https://example.org"])
        }
    }
}

@Suite("Slips on the command line")
struct CommandLineSlipTests {
    @Test("An unknown option or command is reported with suggestions, regardless of what the parser misses first")
    func unknownWords() {
        let slips: [(String, String?)] = [
            ("chekc a.yaml", "Unknown command 'chekc'. Did you mean 'check'?"),
            ("user lst --config a", "Unknown command 'lst'. Did you mean 'list'?"),
            ("run --confg a.yaml", "Unknown option '--confg'. Did you mean '--config'?"),
            ("run --confg=a.yaml", "Unknown option '--confg'. Did you mean '--config'?"),
            ("user list --users-fil a", "Unknown option '--users-fil'. Did you mean '--users-file'?"),
            ("--versoin", "Unknown option '--versoin'. Did you mean '--version'?"),
            ("call a@b --no-wbrtc", "Unknown option '--no-wbrtc'. Did you mean '--no-webrtc'?"),
            ("loopback call a --log-levle x", "Unknown option '--log-levle'. Did you mean '--log-level'?"),
            ("devices --secs 3", "Unknown option '--secs'. Did you mean '--seconds'?"),
            ("devices --dev x", "Unknown option '--dev'. Did you mean '--device'?"),
            ("frobnicate", nil), ("call chekc --press 1", nil), ("call a@b -- --confg", nil), ("run --frobnicate", nil),
        ]
        for (line, expected) in slips {
            #expect(UnknownWord.find(in: line.split(separator: " ").map(String.init)) == expected, "\(line)")
        }
    }

    @Test("The hint takes the place of the fault that follows from the slip, and leaves a hint of the parser's alone")
    func message() {
        let text = "Error: Missing expected argument\nHelp:  of it\nUsage: handset run\n  See more"
        #expect(UnknownWord.message(text, hint: "Unknown.") == "Error: Unknown.\nUsage: handset run\n  See more")
        #expect(UnknownWord.message(text, hint: nil) == text)
        #expect(UnknownWord.message("Did you mean 'x'?", hint: "Unknown.") == "Did you mean 'x'?")
        // The parser takes an abbreviation for a slip of something else.
        let other = "Error: Unknown option '--secs'. Did you mean '--test'?\nUsage: handset devices"
        let hint = "Unknown option '--secs'. Did you mean '--seconds'?"
        #expect(UnknownWord.message(other, hint: hint) == "Error: \(hint)\nUsage: handset devices")
    }

    @Test("What is for trying a card is refused where none is tried, and not passed over")
    func devicesOptions() {
        for options in [
            ["--seconds", "3"], ["--device", "hw:1"], ["--playback", "none"], ["--capture", "a"], ["--period-ms", "5"],
        ] {
            do {
                _ = try Handset.parseAsRoot(["devices"] + options)
                Issue.record("\(options) is taken")
            } catch {
                #expect(Handset.message(for: error).contains("\(options[0]) needs --test."))
            }
            #expect(throws: Never.self) { try Handset.parseAsRoot(["devices", "--test"] + options) }
        }
        #expect(throws: Never.self) { try Handset.parseAsRoot(["devices", "--all", "--json"]) }
    }

    @Test("A call's options are checked before the callee rings")
    func callOptions() {
        let faults: [([String], String)] = [
            (["--press", "Z9"], "--press must be made of 0-9, *, #, A-D and ! (flash), with , for a second"),
            (["--press", ""], "--press must be"), (["--duration=-1"], "--duration must be"),
            (["--duration", "0"], "above 0"), (["--duration", "nan"], "above 0"), (["--duration", "90000"], "86400"),
            (["--ttl=-1"], "--ttl must be"), (["--ttl", "86401"], "--ttl must be"),
            (
                ["--play", "a.wav", "--minimum-likeness", "2"],
                "--minimum-likeness must be a number from 0 to 1, not 2.0"
            ),
            (["--play", "a.wav", "--minimum-likeness=-0.1"], "from 0 to 1"),
            (["--minimum-likeness", "0.5"], "--minimum-likeness needs --play"),
        ]
        for (options, expected) in faults {
            do {
                _ = try Handset.parseAsRoot(["call", "bob@localhost"] + options)
                Issue.record("\(options) are taken")
            } catch {
                #expect(Handset.exitCode(for: error) == .validationFailure)
                #expect(Handset.message(for: error).contains(expected), "\(options): \(Handset.message(for: error))")
            }
        }
        for options in [
            ["--press", "0*#Ad!"], ["--press", "w1,,2"], ["--duration", "0.5"], ["--ttl", "0"], ["--wait"],
            ["--play", "a.wav", "--minimum-likeness", "1"],
        ] {
            #expect(throws: Never.self) { try Handset.parseAsRoot(["call", "bob@localhost"] + options) }
        }
    }

    @Test("Tones and rounds of a loopback are held to what can be played, before any card is opened")
    func loopbackOptions() throws {
        let device = ["loopback", "device"]
        let call = ["loopback", "call", "echo@localhost"]
        let many = (0..<17).map { "\(100 + $0)" }.joined(separator: ",")
        for (command, options, expected) in [
            (device, ["--tones", "loud"], "--tones must be frequencies of 20…20000 Hz"),
            (device, ["--tones", ""], "\"\""),
            (device, ["--tones", "19.9"], "not \"19.9\""), (call, ["--tones", "997,20001"], "not \"997,20001\""),
            (call, ["--tones", "997,,50"], "--tones must be"), (device, ["--tones", "997,997.0"], "no two alike"),
            (device, ["--tones", "nan"], "--tones must be"), (device, ["--tones", many], "16 at the most"),
            (call, ["--rounds", "0"], "--rounds must be 1…9, not 0"), (call, ["--rounds", "10"], "not 10"),
        ] as [([String], [String], String)] {
            do {
                _ = try Handset.parseAsRoot(command + options)
                Issue.record("\(options) are taken")
            } catch {
                #expect(Handset.exitCode(for: error) == .validationFailure)
                #expect(Handset.message(for: error).contains(expected), "\(options): \(Handset.message(for: error))")
            }
        }
        let usual = try #require(Handset.parseAsRoot(call) as? LoopbackCallCommand)
        #expect(usual.rounds == 2 && usual.tones.frequencies == [997, 97, 313, 3_163, 9_973])
        let asked = try #require(
            Handset.parseAsRoot(call + ["--tones", "20, 440.5,20000", "--rounds", "9"]) as? LoopbackCallCommand)
        #expect(asked.rounds == 9 && asked.tones.frequencies == [20, 440.5, 20_000])
    }

    @Test("A number that is rounded to nothing has no sign")
    func rounding() {
        #expect("\((-0.04).rounded(toPlaces: 1)) \((-0.06).rounded(toPlaces: 1))" == "0.0 -0.1")
    }

    @Test("The versions are one JSON object, too, with the names as keys")
    func versions() throws {
        let object = try JSONSerialization.jsonObject(with: Data(HandsetVersion.object.utf8)) as? [String: String]
        #expect(object?["handset"] == HandsetVersion.current && object?.count == HandsetVersion.report.count)
        #expect(object?["libopus"]?.isEmpty == false && object?["libsrtp2"]?.isEmpty == false)
    }
}

@Suite struct ShutdownPolicyTests {
    @Test("Every state and input has its action")
    func table() {
        // (ending, input, canEnd) → action
        let table: [(Bool, ShutdownPolicy.Input, Bool, ShutdownPolicy.Action)] = [
            (false, .signal, true, .askToEnd),
            (false, .signal, false, .exitNow),
            (false, .timeout, true, .none),
            (false, .timeout, false, .none),
            (true, .signal, true, .exitNow),
            (true, .signal, false, .exitNow),
            (true, .timeout, true, .exitNow),
            (true, .timeout, false, .exitNow),
        ]
        for (isEnding, input, canEnd, expected) in table {
            var policy = ShutdownPolicy()
            if isEnding { _ = policy.handle(.signal, canEnd: true) }
            #expect(policy.handle(input, canEnd: canEnd) == expected)
        }
    }
}

private struct CheckedKeys: ConfigKeys {
    let account = ConfigKey.section("account", NoKeys.self, "an account")
    let calls = ConfigKey.integer("calls", in: 1...9, "calls")

    struct NoKeys: ConfigKeys {}
}

@Suite struct ConfigurationCheckTests {
    private let check = ConfigurationCheck(kinds: [
        ConfigurationKind(command: "run", signature: ["account"]) { path, _ throws(ConfigError) in
            var problems: [ConfigProblem] = []
            let root = KeyedSection(try ConfigDocument.read(path: path), CheckedKeys.self, &problems)
            _ = root.value(\.calls, &problems)
            return try problems.verdict()
        },
        ConfigurationKind(command: "serve", signature: ["users"]) { _, _ in [] },
    ])

    private func result(_ text: String) throws -> String {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("check-\(UUID().uuidString).yaml")
        try text.write(to: url, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(at: url) }
        do throws(ConfigError) {
            return try check.check(path: url.path).command
        } catch {
            return error.description.replacing(url.path, with: "FILE")
        }
    }

    @Test("A file is checked as the kind that its keys show, and every problem is reported")
    func kinds() throws {
        #expect(try result("users: []\n") == "serve")
        #expect(try result("account: {}\ncalls: 3\n") == "run")
        #expect(
            try result("account: {}\ncals: 3\ncalls: 10\n") == """
                FILE:2: cals: unknown key; did you mean calls?
                FILE:3: calls: must be a whole number from 1 to 9, not "10"
                """)
    }

    @Test("A file of no known kind is refused with the keys that distinguish the kinds")
    func unknownKind() throws {
        #expect(try result("colour: red\n").contains("account (for `handset run`), users (for `handset serve`)"))
    }
}
