import Foundation
import Glibc
import TestSupport
import Testing

@testable import CallPrograms

@Suite("A program's process", .timeLimit(.minutes(1)))
struct ProgramProcessTests {
    /// Runs a program to its end: what it wrote, what it said to the log, and how it ended.
    private static func run(
        _ words: [String], _ act: (inout ProgramProcess) -> Void = { _ in }
    ) async throws -> (output: String, errors: String, exit: ProgramExit) {
        var process = try ProgramProcess(words, inputBytes: 16_384)
        act(&process)
        return try await finish(&process)
    }

    private static func finish(
        _ process: inout ProgramProcess
    ) async throws -> (output: String, errors: String, exit: ProgramExit) {
        process.closeInput()
        var (output, errors): ([UInt8], [UInt8]) = ([], [])
        while true {
            let ends = process.descriptors
            guard ends.output >= 0 || ends.errors >= 0 else { break }
            var watched = [ends.output, ends.errors].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            _ = poll(&watched, 2, -1)
            if case .bytes(let bytes) = process.readOutput(4_096) { output += bytes }
            if case .bytes(let bytes) = process.readErrors(4_096) { errors += bytes }
        }
        // Its descriptors are closed, so it is ending.
        let exit = try await end(of: &process)
        return (String(decoding: output, as: UTF8.self), String(decoding: errors, as: UTF8.self), exit)
    }

    private static func end(of process: inout ProgramProcess) async throws -> ProgramExit {
        while true {
            if let exit = process.reap() { return exit }
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    /// Starts a program from a thread that blocks SIGTERM.
    private static func startWithSignalBlocked(_ words: [String]) throws -> ProgramProcess {
        var blocked = sigset_t()
        sigemptyset(&blocked)
        sigaddset(&blocked, SIGTERM)
        pthread_sigmask(SIG_BLOCK, &blocked, nil)
        defer { pthread_sigmask(SIG_UNBLOCK, &blocked, nil) }
        return try ProgramProcess(words, inputBytes: 16_384)
    }

    @Test(
        "A program has the four descriptors of docs/bots.md and no other, its words as they are, and no signal blocked")
    func environment() async throws {
        let script = """
            import os, signal, sys
            open_ones = [n for n in range(200) if os.path.exists(f"/proc/self/fd/{n}")]
            print(open_ones, os.getpgid(0) == os.getpid(), sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])), sys.argv[1:])
            print("to the log", file=sys.stderr)
            """
        var process = try Self.startWithSignalBlocked(["python3", "-c", script, "a b", "$HOME;*"])
        let ran = try await Self.finish(&process)
        #expect(ran.output == "[0, 1, 2, 3] True [] ['a b', '$HOME;*']\n")
        #expect(ran.errors == "to the log\n" && ran.exit == .finished)
    }

    @Test(
        "A program inherits no secret of the device and nothing of its service manager, unless it is given it by name")
    func variables() async throws {
        for (name, value) in [
            ("HANDSET_TEST_PASSWORD", "secret"), ("HANDSET_TEST_KEY", "given"), ("HANDSET_TEST", "plain"),
            ("NOTIFY_SOCKET", "/run/notify"), ("WATCHDOG_USEC", "1"), ("WATCHDOG_PID", "1"), ("LISTEN_FDS", "1"),
            ("CREDENTIALS_DIRECTORY", "/run/credentials"),
        ] { setVariable(name, to: value) }
        defer {
            for name in [
                "HANDSET_TEST_PASSWORD", "HANDSET_TEST_KEY", "HANDSET_TEST", "NOTIFY_SOCKET", "WATCHDOG_USEC",
                "WATCHDOG_PID", "LISTEN_FDS", "CREDENTIALS_DIRECTORY",
            ] { setVariable(name, to: nil) }
        }
        func inherited(_ change: (inout ProgramPlan) -> Void) async throws -> Set<Substring> {
            var plan = ProgramPlan(command: ["env"])
            plan.withheldVariables = ["HANDSET_TEST_PASSWORD", "HANDSET_TEST_KEY"]
            change(&plan)
            var process = try ProgramProcess(plan)
            let lines = try await Self.finish(&process).output.split(separator: "\n")
            let names = ["HANDSET_TEST", "NOTIFY_", "WATCHDOG_", "LISTEN_", "CREDENTIALS_"]
            return Set(lines.filter { line in names.contains { line.hasPrefix($0) } })
        }
        #expect(try await inherited { _ in } == ["HANDSET_TEST=plain"])
        #expect(
            try await inherited { $0.environment = ["HANDSET_TEST_KEY", "CREDENTIALS_DIRECTORY"] }
                == ["HANDSET_TEST=plain", "HANDSET_TEST_KEY=given", "CREDENTIALS_DIRECTORY=/run/credentials"])
    }

    @Test("What is written to a program comes back, and what it has not read is counted")
    func echo() async throws {
        let ran = try await Self.run(["cat"]) { process in
            let written = process.writeInput(Array("hello".utf8)[...])
            #expect(written == 5)
        }
        #expect(ran.output == "hello" && ran.exit == .finished)
    }

    @Test(
        "A program that reads nothing takes no more than its pipe holds, and blocks nothing",
        .witnessed(slack: .milliseconds(50)))
    func unread() async throws {
        _ = try await Self.run(["sleep", "0.05"]) { process in
            let block = [UInt8](repeating: 0, count: 1 << 20)
            let (first, second) = (process.writeInput(block[...]), process.writeInput(block[...]))
            #expect((4_096...65_536).contains(first ?? 0) && second == 0)
        }
    }

    @Test("The end of a program is reported: exit code 0, another code, or a signal")
    func exits() async throws {
        #expect(try await Self.run(["true"]).exit == .finished)
        #expect(try await Self.run(["sh", "-c", "exit 7"]).exit == .failed("it ended with exit code 7"))
        #expect(try await Self.run(["sh", "-c", "kill -9 $$"]).exit == .failed("signal 9 ended it"))
    }

    @Test("What a program has started ends with it")
    func group() async throws {
        // The shell ends at once; what it left behind holds the other end of its output until it is killed.
        var process = try ProgramProcess(["sh", "-c", "sleep 1000 & exit 0"], inputBytes: 4_096)
        _ = try await Self.end(of: &process)
        var watched = pollfd(fd: process.descriptors.output, events: Int16(POLLIN), revents: 0)
        _ = poll(&watched, 1, -1)
        guard case .end = process.readOutput(10) else {
            Issue.record("the output has no end")
            return
        }
    }

    /// Whether a process runs; what its parent has not taken away does not.
    private static func runs(_ process: pid_t) -> Bool {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else { return false }
        return text.split(separator: ") ").last?.first != "Z"
    }

    @Test("What a program has started in sessions of its own ends a little later, and that of other programs does not")
    func sessions() async throws {
        // It leaves two behind, the second of which starts a third later.
        let script = """
            import os, time
            for number in range(2):
                if os.fork() == 0:
                    os.setsid()
                    if os.fork(): os._exit(0)
                    if number and os.fork(): os.setpgid(0, 0)
                    os.write(1, b"%d\\n" % os.getpid())
                    time.sleep(1000)
                os.wait()
            os.read(0, 1)
            """
        func left(by process: inout ProgramProcess) throws -> [pid_t] {
            var output: [UInt8] = []
            while output.count(where: { $0 == 0x0A }) < 3 {
                process.waitForOutput(milliseconds: 1_000)
                if case .bytes(let bytes) = process.readOutput(100) { output += bytes }
            }
            let left = String(decoding: output, as: UTF8.self).split(separator: "\n").compactMap { pid_t($0) }
            try #require(left.count == 3 && left.allSatisfy(Self.runs))
            return left
        }
        var first = try ProgramProcess(["python3", "-c", script], inputBytes: 4_096)
        var second = try ProgramProcess(["python3", "-c", script], inputBytes: 4_096)
        let (left, others) = (try left(by: &first), try left(by: &second))
        first.closeInput()
        #expect(try await Self.end(of: &first) == .finished)
        try await until { !left.contains(where: Self.runs) }
        #expect(others.allSatisfy(Self.runs))
        second.signal(SIGKILL)
        _ = try await Self.end(of: &second)
        try await until { !others.contains(where: Self.runs) }
    }

    @Test("A program that cannot be started says so, with what to try")
    func missing() throws {
        let script = FileManager.default.temporaryDirectory.appending(path: "handset-script-\(UUID())").path()
        defer { try? FileManager.default.removeItem(atPath: script) }
        let isMade = FileManager.default.createFile(
            atPath: script, contents: Data("#!/nowhere/python\n".utf8), attributes: [.posixPermissions: 0o700])
        try #require(isMade)
        let cases = [
            (["/nowhere/bot"], "is looked for in PATH"), (["/etc/passwd"], "an executable file"),
            ([script], "after #! does not"),
        ]
        for (words, part) in cases {
            do {
                _ = try ProgramProcess(words, inputBytes: 4_096)
                Issue.record("it started")
            } catch {
                #expect("\(error)".contains(part) && "\(error)".contains(words[0]))
            }
        }
    }
}
