@testable import ExchangeCore
@testable import ExchangeServer
import Foundation
import SignalWire
import TestSupport
import Testing

@testable import ConfigReader

@Suite struct UsersFileTests {
    private let folder: URL
    private let file: UsersFile

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("users-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        file = UsersFile(path: folder.appendingPathComponent("users.yaml").path)
    }

    private func remove() { try? FileManager.default.removeItem(at: folder) }

    private struct Stop: Error {}

    @Test(
        "However many users are written, they are read again: the length is the only limit, and nothing past it is written"
    )
    func many() throws {
        defer { remove() }
        // The shortest entries have the most values for their length.
        let users = (0..<45_000).map { Account(id: UserID(ours: String($0, radix: 36))) }
        try file.change { $0 = users }
        // A comparison that fails would print them all.
        let isRead = try file.read() == users
        #expect(isRead)
        let name = String(repeating: "n", count: 100)
        let long = (0..<150_000).map { Account(id: UserID(ours: "\(name)\($0)")) }
        #expect(throws: FileChangeError.self) { try file.change { $0 = long } }
        let isKept = try file.read() == users
        #expect(isKept)
    }

    @Test("What is written is read again, for any name, and only its owner can read it")
    func roundTrip() throws {
        defer { remove() }
        #expect(try file.read() == [])
        var generator = SeededGenerator(seed: 1)
        let hash = PasswordHash.make("pw", costExponent: 4, using: &generator)
        let users = [
            Account(
                id: "alice", publicIDs: ["alice@localhost", "+15550100"], routingID: "route", password: .hash(hash),
                mediaTokens: [SecretDigest(of: "m")], streamTokens: [SecretDigest(of: "s")],
                accessTokens: [SecretDigest(of: "1"), SecretDigest(of: "2")], email: "alice@example.org",
                loginsSince: 1_767_225_600),
            Account(id: "a \"b\" \\ c: #d, [e] {f} 'g' é 😀"), Account(id: "null"),
            Account(id: "c", routingID: "\t\n\u{7} \u{2028} \u{FEFF}", email: "\u{202E}\0"),
            Account(id: "12"), Account(id: "- x"), Account(id: "y : z"),
        ]
        try file.change { $0 = users }
        #expect(try file.read() == users)
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["users.yaml"])
        let version = try #require(try file.version)
        try file.change { _ in }
        #expect(try file.version == version, "no change, no new file")
        #expect(throws: Stop.self) { try file.change { _ in throw Stop() } }
        #expect(try file.version == version)
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: file.path)
        try file.change { $0 = [] }
        let changed = try file.version
        #expect(try file.read() == [] && changed != version)
        let kept = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect(kept[.posixPermissions] as? Int == 0o640, "the mode that an operator gave it stays")
    }

    private func isProblem(_ finding: UsersReader.Finding?) -> Bool {
        if case .problem = finding { true } else { false }
    }

    @Test("A users file that is missing or half written changes no users; it is read once it is at rest")
    func looks() throws {
        defer { remove() }
        var reader = UsersReader(file, wasRead: false)
        func look() -> UsersReader.Finding? { reader.look(beside: []) }
        #expect(look() == nil, "a file that was never there is not missed")
        try file.change { $0 = [Account(id: "alice"), Account(id: "bob")] }
        #expect(look() == nil, "a program may still be writing it")
        #expect(look() == .users([Account(id: "alice"), Account(id: "bob")]))
        #expect(look() == nil)

        let aside = folder.appendingPathComponent("aside").path
        try FileManager.default.moveItem(atPath: file.path, toPath: aside)
        #expect(isProblem(look()))
        #expect(look() == nil, "reported once")
        try FileManager.default.moveItem(atPath: aside, toPath: file.path)
        #expect(look() == nil && look() == nil, "the same users")
        try FileManager.default.moveItem(atPath: file.path, toPath: aside)
        #expect(isProblem(look()), "another time")
        try FileManager.default.moveItem(atPath: aside, toPath: file.path)

        // Each piece is a file with fewer users.
        var text = "users:\n"
        for user in ["alice", "bob", "carol"] {
            text += "  - id: \(user)\n"
            try text.write(toFile: file.path, atomically: false, encoding: .utf8)
            #expect(look() == nil, "\(user)")
        }
        #expect(look() == .users([Account(id: "alice"), Account(id: "bob"), Account(id: "carol")]))
    }

    @Test("A users file that could not be read is read again, although it is the same, and its fault is reported once")
    func retries() throws {
        defer { remove() }
        var reader = UsersReader(file, wasRead: true)
        func look(_ others: [Account] = []) -> UsersReader.Finding? { reader.look(beside: others) }
        #expect(isProblem(look()), "it was there when the configuration was read")
        try file.change { $0 = [Account(id: "alice")] }
        let taken = [Account(id: "dora", publicIDs: ["alice"])]
        #expect(look(taken) == nil)
        #expect(isProblem(look(taken)))
        for _ in 1..<UsersReader.looksBetweenReads { #expect(look() == nil, "not at every look") }
        #expect(look() == .users([Account(id: "alice")]))
        reader.readAgain()
        #expect(isProblem(look(taken)), "the users of the configuration have changed")
    }

    @Test("A users file that the system cannot look at is no empty one: it has an error, and no change writes it")
    func unknown() throws {
        defer { remove() }
        // A link to itself: stat fails, and the folder can be written.
        #expect(symlink(file.path, file.path) == 0)
        #expect(file.exists)
        #expect(throws: ConfigError.self) { try file.read() }
        #expect(throws: ConfigError.self) { try file.change { $0.append(Account(id: "mallory")) } }
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: file.path) == file.path)
        var reader = UsersReader(file, wasRead: true)
        let finding = reader.look(beside: [])
        #expect(isProblem(finding))
    }

    @Test("Many that write at once lose nothing of each other's")
    func concurrency() async throws {
        defer { remove() }
        let file = file
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<20 {
                group.addTask { try? file.change { $0.append(Account(id: "user \(number)")) } }
            }
        }
        #expect(Set(try file.read().map(\.id)) == Set((0..<20).map { "user \($0)" }))
    }

    @Test("A file with an id twice, one of the configuration's, or a password that is no hash is refused, by its line")
    func problems() throws {
        defer { remove() }
        let secret = folder.appendingPathComponent("secret").path
        try "four words are enough".write(toFile: secret, atomically: true, encoding: .utf8)
        #expect(chmod(secret, 0o600) == 0)
        try """
        users:
          - id: alice
          - id: bob
            public_ids: [alice]
          - id: carol
            password_file: secret
        colour: red
        """.write(toFile: file.path, atomically: true, encoding: .utf8)
        do throws(ConfigError) {
            _ = try file.read(beside: [Account(id: "dora", publicIDs: ["bob"])])
            Issue.record("read")
        } catch {
            let expected = [
                "3: users[2].id: \"bob\" is already the id of dora in the configuration",
                "4: users[2].public_ids: \"alice\" is already the id of alice",
                "6: users[3].password_file: must be given as password_hash in this file",
            ]
            let lines = error.problems.map { $0.description.replacing("\(file.path):", with: "") }
            #expect(Array(lines.dropLast()) == expected && lines.last?.hasPrefix("7: colour: ") == true, "\(lines)")
        }
        #expect(throws: (any Error).self) { try file.change { $0 = [] } }
        try "users: [".write(toFile: file.path, atomically: true, encoding: .utf8)
        #expect(throws: ConfigError.self) { try file.read() }
        #expect(throws: FileChangeError.self) { try UsersFile(path: "/nonexistent/users.yaml").change { $0 = [] } }
    }

    @Test(
        "A token that says by itself whose it is belongs to one user, here and in the configuration, and each has its line"
    )
    func sharedTokens() throws {
        defer { remove() }
        let (media, stream, access) = (SecretDigest(of: "m"), SecretDigest(of: "s"), SecretDigest(of: "a"))
        let secret = folder.appendingPathComponent("secret").path
        try "m".write(toFile: secret, atomically: true, encoding: .utf8)
        #expect(chmod(secret, 0o600) == 0)
        try """
        users:
          - id: alice
            media_token_hashes: ["\(media.hex)", "\(media.hex)"]
            access_token_hashes: ["\(access.hex)"]
          - id: bob
            media_token_file: secret
            access_token_hashes: ["\(access.hex)"]
          - id: carol
            stream_token_hashes: ["\(media.hex)", "\(stream.hex)"]
        """.write(toFile: file.path, atomically: true, encoding: .utf8)
        do throws(ConfigError) {
            _ = try file.read(beside: [Account(id: "dora", streamTokens: [stream])])
            Issue.record("read")
        } catch {
            let lines = error.problems.map { $0.description.replacing("\(file.path):", with: "") }
            #expect(
                lines == [
                    "6: users[2].media_token_file: contains a media token of alice; each user needs tokens of its own",
                    "9: users[3].stream_token_hashes: contains a stream token of dora in the configuration; each user "
                        + "needs tokens of its own",
                ])
        }
    }

    @Test("A configuration names API keys, limits and a users file; a short secret and a taken id are problems")
    func configuration() throws {
        defer { remove() }
        try file.change { $0 = [Account(id: "eve")] }
        let configuration = folder.appendingPathComponent("exchange.yaml").path
        func read(_ text: String) throws -> (ExchangeConfiguration, [ConfigProblem]) {
            try text.write(toFile: configuration, atomically: true, encoding: .utf8)
            var problems: [ConfigProblem] = []
            let values = ["LONG": String(repeating: "x", count: 32), "SHORT": String(repeating: "y", count: 31)]
            let section = try ConfigDocument.read(path: configuration, environment: { values[$0] })
            return (ExchangeConfiguration(section, &problems), problems)
        }
        let (good, none) = try read(
            """
            apps: []
            users_file: users.yaml
            api_keys: [{key: school, secret_env: LONG}]
            refresh_lifetime_seconds: 100
            token_notice_seconds: 5
            signed_token_lifetime_seconds: 50
            failed_logins_per_address: 1
            failed_logins_per_account: 2
            failed_login_seconds: 3
            messages_per_second: 4
            message_burst: 5
            trusted_proxies: [127.0.0.1, "::1"]
            """)
        #expect(none == [])
        #expect(good.apiKeys.map(\.name) == ["school"] && good.usersFile == file && good.fileUsers.map(\.id) == ["eve"])
        #expect(good.refreshLifetime == .seconds(100) && good.tokenNotice == .seconds(5))
        #expect(good.signedTokenLifetime == .seconds(50) && good.trustedProxies == ["127.0.0.1", "::1"])
        #expect(good.failedLogins.perAddress == 1 && good.failedLogins.perAccount == 2)
        #expect(good.failedLogins.window == .seconds(3))
        #expect(good.messagesPerSecond == 4 && good.messageBurst == 5)

        let (_, problems) = try read(
            """
            apps: []
            users: [{id: eve}]
            users_file: users.yaml
            api_keys: [{key: school, secret_env: SHORT}, {key: inn, secret: s3cret}]
            trusted_proxies: [proxy.example.org]
            """)
        let lines = problems.map(\.description).joined(separator: "\n")
        #expect(problems.count == 4, "\(lines)")
        for part in [
            "at least 32 bytes", "secret_file: PATH", "must be an address", "\"eve\" is already the id of eve",
        ] {
            #expect(lines.contains(part), "\(part) is missing in:\n\(lines)")
        }
        #expect(!lines.contains("s3cret") && !lines.contains("yyy"))
    }
}
