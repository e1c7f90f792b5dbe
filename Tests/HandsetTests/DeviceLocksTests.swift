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
    private func lock(_ texts: [String]) throws -> [AccountLocks] {
        try texts.enumerated().map { number, text in try lock(file: write(text, to: "device-\(number).yaml")) }
    }

    /// Locks what a process that runs this configuration does.
    private func lock(file path: String) throws -> AccountLocks {
        try AccountLocks(AccountsConfiguration.read(path: path), inFile: path)
    }

    private func account(_ lines: String...) -> String { "account:\n" + lines.map { "  \($0)\n" }.joined() }

    @Test("A look at the locks makes no file and holds none, and sees those of a device that runs")
    func look() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = try write(account("anonymous: guest", "session_file: login.json"), to: "device-0.yaml")
        let configuration = try DeviceConfiguration.read(path: path)
        #expect(DeviceLocks.look(configuration, inFile: path).isEmpty)
        #expect(!FileManager.default.fileExists(atPath: folder + "/login.json.lock"))
        var running: AccountLocks? = try lock(file: path)
        #expect(DeviceLocks.look(configuration, inFile: path).map(\.isHeld) == [true])
        withExtendedLifetime(running) {}
        running = nil
        #expect(DeviceLocks.look(configuration, inFile: path).map(\.isHeld) == [false])
        _ = try lock(file: path)
    }

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

    @Test("Each account's first device has the locks of the start, and the next one takes them again")
    func again() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let text = account("anonymous: guest", "session_file: login.json")
        let path = try write(text, to: "device-0.yaml")
        let accounts = try AccountsConfiguration.read(path: path)
        let locks = try AccountLocks(accounts, inFile: path)
        do {
            let first = try locks.take(for: accounts.accounts[0])
            #expect(throws: CommandFailure.self) { try locks.take(for: accounts.accounts[0]) }
            withExtendedLifetime(first) {}
        }
        let second = try locks.take(for: accounts.accounts[0])
        #expect(throws: CommandFailure.self) { try lock([text]) }
        withExtendedLifetime((locks, second)) {}
    }

    @Test("An account that comes with an id in the configuration has that locked from then on")
    func added() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = try write(account("anonymous: guest"), to: "device-0.yaml")
        let locks = try AccountLocks(AccountsConfiguration.read(path: path), inFile: path)
        let withID = try write(account("anonymous: guest") + "device:\n  id: front\n", to: "later.yaml")
        let added = try AccountsConfiguration.read(path: withID).accounts[0]
        for _ in 0..<2 { _ = try locks.take(for: added) }
        #expect(throws: CommandFailure.self) { try DeviceLocks(idInFile: path) }
        withExtendedLifetime(locks) {}
    }

    @Test(
        "A file that is replaced while its device runs, as editors do, stays locked, and the message names the process",
        arguments: ["key", "id"])
    func replaced(what: String) throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let key = try write(#require(DeviceLoginKey()).text, to: "key.pem")
        let text =
            what == "key"
            ? account("user: front", "key_file: \(key)", "enrollment: e1")
            : account("anonymous: guest") + "device:\n  id: front\n"
        let path = try write(text, to: "device-0.yaml")
        do {
            let first = try lock(file: path)
            for name in ["key.pem", "device-0.yaml"] {
                let old = try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)
                let new = try write(old, to: "\(name).new")
                #expect(rename(new, "\(folder)/\(name)") == 0)
            }
            let failure = #expect(throws: CommandFailure.self) { try lock(file: path) }
            let id = ProcessInfo.processInfo.processIdentifier
            #expect(failure?.description.contains("another process has locked it (PID \(id))") == true)
            // By another path to the same folder, as in a container.
            let link = folder + "-link"
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: folder)
            defer { try? FileManager.default.removeItem(atPath: link) }
            if what == "id" { #expect(throws: CommandFailure.self) { try lock(file: "\(link)/device-0.yaml") } }
            withExtendedLifetime(first) {}
        }
        _ = try lock(file: path)
    }

    @Test("A lock ends with who has it")
    func ends() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let text = account("anonymous: guest", "session_file: login.json")
        for _ in 0..<3 { _ = try lock([text]) }
    }
}
