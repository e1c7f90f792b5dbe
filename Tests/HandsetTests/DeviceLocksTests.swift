import CallAgent
import Foundation
import SignalingClient
import Testing

@testable import handset

@Suite("What a running device keeps a second copy away from")
struct DeviceLocksTests {
    private let folder: String

    init() throws {
        folder = FileManager.default.temporaryDirectory.path + "/handset-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    private func write(_ text: String, to name: String) throws -> String {
        let path = folder + "/" + name
        let isMade = FileManager.default.createFile(
            atPath: path, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600])
        try #require(isMade)
        return path
    }

    /// Locks a device for each of the configurations' texts, one after the other, and holds on to all.
    private func lock(_ texts: [String]) throws -> [[DeviceLocks]] {
        try texts.enumerated().map { number, text in try lock(file: write(text, to: "device-\(number).yaml")) }
    }

    /// Locks what a process that runs this configuration does.
    private func lock(file path: String) throws -> [DeviceLocks] {
        let configuration = try AccountsConfiguration.read(path: path)
        return try [DeviceLocks(configuration, inFile: path)]
            + configuration.accounts.map { try DeviceLocks($0.configuration) }
    }

    private func account(_ lines: String...) -> String { "account:\n" + lines.map { "  \($0)\n" }.joined() }

    @Test("A device with a kept login, a key or an id of its own runs once", arguments: ["session", "key", "id"])
    func once(what: String) throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let key = try write(#require(DeviceLoginKey()).text, to: "key.pem")
        let (text, locked): (String, String) =
            switch what {
            case "session": (account("anonymous: guest", "session_file: login.json"), "login.json.lock")
            case "key": (account("user: front", "key_file: \(key)", "enrollment: e1"), "key.pem")
            default: (account("anonymous: guest") + "device:\n  id: front\n", "device-0.yaml")
            }
        let path = try write(text, to: "device-0.yaml")
        let first = try lock(file: path)
        let failure = #expect(throws: CommandFailure.self) { try lock(file: path) }
        #expect(failure?.status == .failed)
        #expect(failure?.description.contains("\"\(folder)/\(locked)\": another process has locked it") == true)
        withExtendedLifetime(first) {}
    }

    @Test("The same key in two configurations is one device; the same account without an id is two")
    func two() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let key = try write(#require(DeviceLoginKey()).text, to: "key.pem")
        let keyed = account("user: front", "key_file: \(key)", "enrollment: e1")
        #expect(throws: CommandFailure.self) { try lock([keyed, keyed + "answer:\n  mode: ring\n"]) }
        let guest = account("anonymous: guest")
        #expect(try lock([guest, guest, guest + "device:\n  id: front\n"]).count == 3)
    }

    @Test("A lock ends with who has it")
    func ends() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let text = account("anonymous: guest", "session_file: login.json")
        for _ in 0..<3 { _ = try lock([text]) }
    }
}
