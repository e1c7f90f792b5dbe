import Foundation
import Glibc
import Testing

/// Who may read the memory of a process that holds secrets.
@Suite("The memory of a running handset", .timeLimit(.minutes(1)))
struct DumpTests {
    private static let nobody = getpwnam("nobody")?.pointee.pw_uid

    /// An exchange of a user that is not root: the test's own, or nobody.
    private func exchange(_ environment: [String: String] = [:]) async throws -> HandsetProcess {
        let arguments = ["serve", "--listen", "127.0.0.1:0"]
        guard geteuid() == 0, let nobody = Self.nobody else {
            return try HandsetProcess(arguments, environment: environment)
        }
        let executable = try HandsetProcess.executable().path
        return try HandsetProcess(
            ["--reuid=\(nobody)", "--clear-groups", "--inh-caps=-all", executable] + arguments,
            environment: environment,
            executable: "/usr/bin/setpriv")
    }

    /// Whose the kernel takes a process's files to be: root's, if its memory is not to be had by its own user (proc(5)).
    private func owner(of process: HandsetProcess) throws -> uid_t {
        var status = stat()
        try #require(stat("/proc/\(process.identifier)/mem", &status) == 0)
        return status.st_uid
    }

    @Test("No core dump has its memory, and no debugger of its own user, unless HANDSET_DUMPABLE is set")
    func forbidden() async throws {
        let running = try await exchange()
        try await running.line(containing: "Listening")
        #expect(try owner(of: running) == 0)
        let open = try await exchange(["HANDSET_DUMPABLE": "1"])
        try await open.line(containing: "Listening")
        #expect(try owner(of: open) == (geteuid() == 0 ? Self.nobody ?? 0 : geteuid()))
        for process in [running, open] { process.send(SIGTERM) }
    }

    @Test("Both units forbid core dumps")
    func units() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        for name in ["handset@.service", "handset-exchange.service"] {
            let unit = try String(contentsOf: root.appending(path: "packaging/\(name)"), encoding: .utf8)
            #expect(unit.split(separator: "\n").contains("LimitCORE=0"), "\(name)")
        }
    }
}
