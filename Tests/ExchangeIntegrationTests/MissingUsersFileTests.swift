import ExchangeCore
import ExchangeServer
import Foundation
import SignalWire
import TestSupport
import Testing

@Suite("An exchange without its users file", .timeLimit(.minutes(1)))
struct MissingUsersFileTests {
    @Test(
        "It does not start while the database has what belongs to the file's users, and has it all when the file is back"
    )
    func missing() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("users-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = UsersFile(path: folder.path + "/users.yaml")
        var configuration = ServerFixture.configuration()
        configuration.databasePath = folder.path + "/exchange.sqlite"
        configuration.usersFile = file
        let users = configuration.users
        // Without a file nothing is missed yet; alice is of the file, and bob of the configuration.
        configuration.users = users.filter { $0.id == "bob" }
        try await ServerFixture.withServer(configuration) { _ in }
        try file.change { $0 = users.filter { $0.id == "alice" } }
        configuration.fileUsers = try file.read()
        try await ServerFixture.withServer(configuration) { server in
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            _ = try await alice.call(GroupCreate(group: "class-7"))
            alice.raw.close()
        }

        let away = folder.path + "/users.yaml.bak"
        try FileManager.default.moveItem(atPath: file.path, toPath: away)
        configuration.fileUsers = try file.read()
        let error = await #expect(throws: ExchangeError.self) {
            try await ServerFixture.withServer(configuration) { _ in }
        }
        #expect(error?.code == .usersFileMissing)
        #expect(error?.description.contains("alice") == true && error?.description.contains("users: []") == true)

        try FileManager.default.moveItem(atPath: away, toPath: file.path)
        configuration.fileUsers = try file.read()
        try await ServerFixture.withServer(configuration) { server in
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            #expect(try await alice.call(GroupMembers(group: "class-7")).members == ["alice"])
            alice.raw.close()
        }
    }

    /// An exchange with a database and a users file that need not be there.
    private static func configuration(in folder: URL) throws -> (ExchangeConfiguration, UsersFile) {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let file = UsersFile(path: folder.path + "/users.yaml")
        var configuration = ServerFixture.configuration()
        configuration.databasePath = folder.path + "/exchange.sqlite"
        configuration.usersFile = file
        return (configuration, file)
    }

    @Test(
        "A file that was there and is gone stops the start without any group or push token, until its users are configured"
    )
    func gone() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("users-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        var (configuration, file) = try Self.configuration(in: folder)
        let users = configuration.users
        configuration.users = users.filter { $0.id == "bob" }
        // The file is made while the exchange runs.
        let log = LogCapture()
        try await ServerFixture.withServer(configuration, log: log) { _ in
            try file.change { $0 = users.filter { $0.id == "alice" } }
            try await until { log.text.contains("\"users\": 1") }
        }
        try FileManager.default.removeItem(atPath: file.path)
        let error = await #expect(throws: ExchangeError.self) {
            try await ServerFixture.withServer(configuration) { _ in }
        }
        #expect(error?.code == .usersFileMissing && error?.description.contains("its user alice") == true)
        configuration.users = users
        try await ServerFixture.withServer(configuration) { _ in }
    }

    @Test("A file that was named and never made is not missed, though a configured user with a group is removed")
    func neverMade() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("users-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        var (configuration, _) = try Self.configuration(in: folder)
        try await ServerFixture.withServer(configuration) { server in
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            _ = try await alice.call(GroupCreate(group: "class-7"))
            alice.raw.close()
        }
        configuration.users = configuration.users.filter { $0.id == "bob" }
        try await ServerFixture.withServer(configuration) { _ in }
    }
}
