import Dispatch
import Foundation
import Synchronization

/// A server of PostgreSQL 15 on a Unix socket in a folder of its own, one for all tests of this process, with which it ends.
public final class PostgresServer: Sendable {
    static let programs = "/usr/lib/postgresql/15/bin"

    /// Whether the tests can run: elsewhere they are not.
    public static var isInstalled: Bool { access("\(programs)/postgres", X_OK) == 0 }

    /// The server, which the first test starts.
    public static let shared = Result { try PostgresServer() }

    /// The folder of its socket.
    public let folder: String
    private let process: Process
    private let input: Pipe
    private let databases = Mutex(0)

    private init() throws {
        folder = FileManager.default.temporaryDirectory.path + "/pg-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        // The server refuses to run as root.
        let prefix = geteuid() == 0 ? "setpriv --reuid=postgres --regid=postgres --clear-groups" : ""
        if geteuid() == 0 { try Self.run("chown postgres \(folder)", in: folder) }
        try Self.run(
            "\(prefix) \(Self.programs)/initdb --no-sync --encoding=UTF8 --locale=C.UTF-8 -U handset -A trust -D \(folder)/data >/dev/null",
            in: folder)
        (process, input) = (Process(), Pipe())
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.currentDirectoryURL = URL(fileURLWithPath: folder)
        // The input ends with the process of the tests.
        process.arguments = [
            "-c",
            """
            \(prefix) \(Self.programs)/postgres -D data -k \(folder) -c listen_addresses= -c fsync=off -c max_connections=60 \
            -c lc_messages=C >log 2>&1 &
            cat >/dev/null; kill -QUIT $!; wait; rm -rf \(folder)
            """,
        ]
        process.standardInput = input
        try process.run()
        try Self.run(
            "for i in $(seq 300); do \(Self.programs)/pg_isready -q -h \(folder) && exit 0; sleep 0.1; done; cat log >&2; exit 1",
            in: folder)
    }

    private static func run(_ script: String, in folder: String) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.currentDirectoryURL = URL(fileURLWithPath: folder)
        process.arguments = ["-c", script]
        // waitUntilExit would run this thread's run loop, which a thread of Swift's tasks does not have.
        let ended = DispatchSemaphore(value: 0)
        process.terminationHandler = { _ in ended.signal() }
        try process.run()
        ended.wait()
        guard process.terminationStatus == 0 else { throw Failed(script: script) }
    }

    private struct Failed: Error { let script: String }

    /// Makes an empty database.
    public func database() throws -> PostgresDatabase {
        let name = databases.withLock { number in
            number += 1
            return "test\(number)"
        }
        try Self.run("\(Self.programs)/createdb -h \(folder) -U handset \(name)", in: folder)
        return PostgresDatabase(folder: folder, name: name)
    }
}

/// One database of a test.
public struct PostgresDatabase: Sendable {
    /// The folder of the server's socket.
    public let folder: String
    /// The database's name.
    public let name: String

    /// Names a database, which need not be there.
    public init(folder: String, name: String) {
        self.folder = folder
        self.name = name
    }

    /// Where it is, for a user.
    public func url(user: String = "handset") -> String {
        "postgresql://\(user)@\(folder.replacingOccurrences(of: "/", with: "%2F"))/\(name)"
    }
}
