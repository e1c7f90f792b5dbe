import ConfigReader
@testable import ExchangeServer
import SignalWire
import Testing
import Core

@Suite struct RelaySecretTests {
    private static let now = WallClock(unixMilliseconds: 1_767_222_000_500)
    private static let servers = [
        ICEServerConfiguration(urls: ["stun:a.example"]),
        ICEServerConfiguration(
            urls: ["stun:b.example", "turn:b.example"], access: .fixed(username: "all", credential: Redacted("same"))),
        ICEServerConfiguration(
            urls: ["turns:c.example"],
            access: .own(RelaySecret(Redacted("north-of-everything"), lifetime: .seconds(3_600)))),
    ]

    @Test(
        "Names and passwords are those of the REST scheme: expiry and user, and a code over them",
        arguments: [
            ("north-of-everything", "alice", "HTDaao7lUlZAGWDgEL8qjNivvQ0="),
            ("0123456789abcdef", "", nil),
            (String(repeating: "x", count: 100), "ü@example.org", "ws3oqwm6iYVBeEzLY8EhXB3xGlc="),
        ])
    func vectors(secret: String, user: String, code: String?) {
        let given = RelaySecret(Redacted(secret), lifetime: .seconds(3_600)).credentials(for: user, at: Self.now)
        #expect(given.username == "1767225600:\(user)")
        if let code { #expect(given.password.secret == code) }
        #expect(given.password.secret.utf8.count == 28)
    }

    @Test("A user receives all servers, with its own credentials where there is a secret, and their end")
    func users() {
        let offer = ICEServerOffer(Self.servers, user: "alice", guest: .guest(), at: Self.now)
        #expect(
            offer.servers == [
                ICEServer(urls: ["stun:a.example"]),
                ICEServer(urls: ["stun:b.example", "turn:b.example"], username: "all", credential: Redacted("same")),
                ICEServer(
                    urls: ["turns:c.example"], username: "1767225600:alice",
                    credential: Redacted("HTDaao7lUlZAGWDgEL8qjNivvQ0=")),
            ])
        #expect(offer.lifetime == .seconds(3_600))
    }

    @Test("A guest receives no permanent credentials, only ones of its own")
    func guests() {
        func offer() -> ICEServerOffer { ICEServerOffer(Self.servers, user: nil, guest: .guest(), at: Self.now) }
        let (one, other) = (offer(), offer())
        #expect(one.servers.map(\.urls) == [["stun:a.example"], ["stun:b.example"], ["turns:c.example"]])
        #expect(one.servers.allSatisfy { $0.credential?.secret != "same" && $0.username != "all" })
        #expect(one.servers[2].username?.hasPrefix("1767225600:guest-") == true)
        #expect(one.servers[2].username != other.servers[2].username)
        #expect(one.servers[2].credential != other.servers[2].credential)
        let open = ICEServerOffer(Array(Self.servers.prefix(2)), user: "alice", guest: .guest(), at: Self.now)
        #expect(open.lifetime == nil)
        let relay = ICEServerConfiguration(
            urls: ["turn:d.example"], access: .fixed(username: "all", credential: Redacted("same")))
        #expect(ICEServerOffer([relay], user: nil, guest: .guest(), at: Self.now).servers.isEmpty)
    }

    private func read(_ lines: String...) throws -> ([ICEServerConfiguration], [String]) {
        let text = """
            apps:
              - key: a
                secret_env: SECRET
            users:
              - id: alice
            ice_servers:
              - urls: ["turn:turn.example.org"]
                \(lines.joined(separator: "\n    "))
            """
        let values = ["SECRET": "north-of-everything", "SHORT": "north"]
        let section = try ConfigDocument.read(text: text, environment: { values[$0] })
        var problems: [ConfigProblem] = []
        let configuration = ExchangeConfiguration(section, &problems)
        return (configuration.iceServers, problems.map { "\($0.key): \($0.message)" })
    }

    @Test("The configuration names a secret with a time, or a name and password, and not half of either")
    func configuration() throws {
        let secret = Redacted("north-of-everything")
        let (own, none) = try read("secret_env: SECRET")
        #expect(none.isEmpty && own.map(\.access) == [.own(RelaySecret(secret, lifetime: .seconds(14_400)))])
        let (hour, _) = try read("secret_env: SECRET", "credential_seconds: 60")
        #expect(hour.map(\.access) == [.own(RelaySecret(secret, lifetime: .seconds(60)))])
        let (fixed, _) = try read("username: u", "credential_env: SECRET")
        #expect(fixed.map(\.access) == [.fixed(username: "u", credential: secret)])
        for (lines, key) in [
            (["username: u"], "username"), (["credential_env: SECRET"], "credential_env"),
            (["secret_env: SECRET", "username: u"], "username"), (["secret_env: SHORT"], "secret_env"),
            (["secret_env: SECRET", "credential_env: SECRET"], "credential_env"),
            (["username: u", "credential_env: SECRET", "credential_seconds: 60"], "credential_seconds"),
            (["secret_env: SECRET", "credential_seconds: 5"], "credential_seconds"), (["secret: x"], "secret"),
        ] {
            let problems = try read(lines.joined(separator: "\n    ")).1
            #expect(problems.contains { $0.contains(key) } && problems.allSatisfy { !$0.contains("north") }, "\(lines)")
        }
    }

    @Test("Only URLs that browsers accept are handed out, and none of a TURN server without credentials")
    func urls() throws {
        func problems(_ servers: String) throws -> [String] {
            let text = "apps: []\nusers: []\nice_servers: [\(servers)]\n"
            var problems: [ConfigProblem] = []
            let section = try ConfigDocument.read(text: text, environment: { _ in "north-of-everything" })
            _ = ExchangeConfiguration(section, &problems)
            return problems.map { "\($0.key): \($0.message)" }
        }
        let access = "username: u, credential_env: C"
        for good in [
            "{urls: [\"stun:a.example\", \"stuns:a.example:5349\", \"STUN:[2001:db8::1]:3478\"]}",
            "{urls: [\"turn:a.example?transport=udp\", \"turns:192.0.2.1:443?transport=tcp\"], \(access)}",
            "{urls: [\"turn:a.example\"], secret_env: S}",
        ] {
            #expect(try problems(good) == [], "\(good)")
        }
        for bad in [
            "http://x", "stun", "stun:", "stun://a.example", "stun:a.example?transport=udp", "stun:a.example:0",
            "stun:a.example:65536", "stun:a.example:", "stun:a.example:3478/", "stun:u@a.example", "stun:[2001:db8::1",
            "stun:[a.example]", "stun:2001:db8::1", "turn:a.example?transport=sctp", "turn:a.example?", "stun:a b",
        ] {
            let found = try problems("{urls: [\"\(bad)\"], \(access)}")
            #expect(found.count == 1 && found[0].hasPrefix("ice_servers[1].urls: \"\(bad)\" must be stun:"), "\(found)")
        }
        #expect(try problems("{urls: []}").map { $0.prefix(40) } == ["ice_servers[1].urls: needs at least one "])
        let open = try problems("{urls: [\"stun:a.example\", \"turn:a.example\"]}")
        #expect(open.count == 1 && open[0].hasPrefix("ice_servers[1].urls: names a TURN server"), "\(open)")
    }

    @Test("The configuration takes bounds and names of its own, and says what is wrong with a name")
    func bounds() throws {
        let text = """
            connections: 500
            connections_per_address: 50
            login_memory_mib: 4
            allowed_hosts: [phone.lan, "*.example.org", "2001:db8::1", "phone.lan:8555", "https://phone.lan", ""]
            apps:
              - key: a
                secret_env: SECRET
            users:
              - id: alice
            """
        let section = try ConfigDocument.read(text: text, environment: { _ in "secret" })
        var problems: [ConfigProblem] = []
        let configuration = ExchangeConfiguration(section, &problems)
        #expect(configuration.connections == 500 && configuration.connectionsPerAddress == 50)
        #expect(configuration.loginMemoryBytes == 4 << 20)
        #expect(configuration.allowedHosts == ["phone.lan", "*.example.org", "2001:db8::1"])
        #expect(problems.map(\.key) == Array(repeating: "allowed_hosts", count: 3))
    }
}
