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

    @Test("A wrong command line is told apart from a failure, so that it ends with the code for usage")
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

@Suite struct ConfigurationCheckTests {
    private let check = ConfigurationCheck(kinds: [
        ConfigurationKind(command: "run", signature: ["account"]) { path, _ throws(ConfigError) in
            let root = try ConfigDocument.read(path: path)
            var problems: [ConfigProblem] = []
            _ = root.integer("calls", in: 1...9, &problems)
            root.rejectUnknownKeys(known: ["account", "calls"], &problems)
            if !problems.isEmpty { throw ConfigError(problems) }
        },
        ConfigurationKind(command: "serve", signature: ["users"]) { _, _ in },
    ])

    private func result(_ text: String) throws -> String {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("check-\(UUID().uuidString).yaml")
        try text.write(to: url, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(at: url) }
        do throws(ConfigError) {
            return try check.check(path: url.path)
        } catch {
            return error.description.replacing(url.path, with: "FILE")
        }
    }

    @Test("A file is checked as the kind that its keys show, and every problem is told")
    func kinds() throws {
        #expect(try result("users: []\n") == "serve")
        #expect(try result("account: {}\ncalls: 3\n") == "run")
        #expect(
            try result("account: {}\ncals: 3\ncalls: 10\n") == """
                FILE:2: cals: unknown key; did you mean calls?
                FILE:3: calls: must be a whole number from 1 to 9, not "10"
                """)
    }

    @Test("A file of no known kind is refused with the keys that tell the kinds apart")
    func unknownKind() throws {
        #expect(try result("colour: red\n").contains("account (for `handset run`), users (for `handset serve`)"))
    }
}
