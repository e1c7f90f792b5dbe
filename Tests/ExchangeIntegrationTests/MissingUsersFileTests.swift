import ExchangeCore
import ExchangeServer
import Foundation
import SignalWire
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
}
