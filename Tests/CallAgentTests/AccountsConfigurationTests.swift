import ConfigReader
import MediaEngine
import NetworkAddress
import OpusCodec
import Testing

@testable import CallAgent

@Suite("A configuration with several accounts")
struct AccountsConfigurationTests {
    private func read(_ text: String) throws -> (AccountsConfiguration, [ConfigProblem]) {
        var problems: [ConfigProblem] = []
        let section = try ConfigDocument.read(text: text, environment: { _ in "secret" })
        return (AccountsConfiguration(section, &problems), problems)
    }

    private func entry(_ name: String, _ more: String = "", account: String = "anonymous: a") -> String {
        "  - name: \(name)\n    account:\n      \(account)\n\(more)"
    }

    @Test("The form with one account stays as it is: an account without a name, and all sections at the root")
    func one() throws {
        let (configuration, problems) = try read("account:\n  anonymous: a\nbehaviour:\n  source: tone\n")
        #expect(problems.isEmpty && configuration.accounts.count == 1 && !configuration.isNamed)
        #expect(configuration.accounts.first?.name == nil)
        #expect(configuration.accounts.first?.configuration.behaviour.source == .tone(frequencyHz: 440, levelDBFS: -12))
    }

    @Test("Each account has sections of its own, and all have those of the process")
    func several() throws {
        let (configuration, problems) = try read(
            "accounts:\n" + entry("a", "    behaviour:\n      source: silence\n    answer:\n      max_calls: 3\n")
                + entry("b", "    device:\n      name: Second\n    rooms: [lobby]\n")
                + "profile: pi\nmedia:\n  workers: 2\n  opus:\n    complexity: 7\ncontrol:\n  socket: default\n")
        #expect(problems.isEmpty, "\(problems)")
        let (a, b) = (configuration.accounts[0].configuration, configuration.accounts[1].configuration)
        #expect(configuration.accounts.map(\.name) == ["a", "b"])
        #expect(a.behaviour.source == .silence && b.behaviour.source == .echo)
        #expect(a.answer.callLimit == .calls(3) && b.answer.callLimit == .automatic)
        #expect(b.device.name == "Second" && b.rooms.map(\.text) == ["lobby"] && a.rooms.isEmpty)
        for account in [a, b] {
            #expect(account.profile == .pi && account.media.workers == 2 && account.media.encoder.complexity == 7)
            #expect(account.control == ControlConfiguration(socket: .standard))
        }
    }

    @Test("What calls offer is the account's own, then the process's, then what suits the kind of account")
    func offers() throws {
        let sip =
            "kind: sip\n      password_env: P\n      sip:\n        address: sip:a@example.org\n        transport: tls"
        let own = "    media:\n      offers: plain\n      allow_plain_rtp: true\n      codecs: [pcmu, pcmu, opus]\n"
        func offers(_ process: String) throws -> [MediaConfiguration.OfferKind] {
            let (configuration, problems) = try read(
                "accounts:\n" + entry("a") + entry("b", account: sip) + entry("c", own, account: sip) + process)
            #expect(problems.isEmpty, "\(problems)")
            #expect(configuration.accounts[2].configuration.media.codecs.count == 2)
            #expect(!configuration.accounts[1].configuration.media.allowsPlainMedia)
            return configuration.accounts.map(\.configuration.media.offers)
        }
        #expect(try offers("") == [.webRTC, .sdes, .plain])
        #expect(try offers("media:\n  offers: webrtc\n") == [.webRTC, .webRTC, .plain])
        #expect(try offers("media:\n  offers: sdes\n") == [.sdes, .sdes, .plain])
    }

    @Test("As many accounts are taken as are allowed, and no more; and none is too few")
    func count() throws {
        func problems(_ count: Int) throws -> [String] {
            try read("accounts:\n" + (0..<count).map { entry("a\($0)") }.joined()).1.map(\.message)
        }
        #expect(try problems(AccountsConfiguration.mostAccounts).isEmpty)
        #expect(try problems(AccountsConfiguration.mostAccounts + 1) == ["has 33 accounts; 1 to 32 are allowed"])
        #expect(try read("accounts: []\n").1.map(\.message) == ["has 0 accounts; 1 to 32 are allowed"])
    }

    @Test("One account is chosen by its name, the only one without, and otherwise the error lists the names")
    func choice() throws {
        let text = "accounts:\n" + entry("a") + entry("b", "    device:\n      name: Second\n")
        let document = try ConfigDocument.read(text: text, environment: { _ in nil })
        let configuration = try AccountsConfiguration.read(document)
        #expect(try configuration.account("b", in: document).device.name == "Second")
        func message(_ name: String?, _ configuration: AccountsConfiguration) -> String {
            do {
                _ = try configuration.account(name, in: document)
                return "taken"
            } catch {
                return "\(error)"
            }
        }
        #expect(message(nil, configuration).contains("has several accounts: a, b; say which one with --account"))
        #expect(message("c", configuration).contains("has no account \"c\"; it has a, b"))
        let one = try read("account:\n  anonymous: a\n").0
        #expect(message(nil, one) == "taken")
        #expect(message("a", one).contains("has no account \"a\"; it has one account without a name"))
    }

    @Test("The keys in which an account differs are told from the account, wherever it is in the file")
    func differences() throws {
        let before = try read("accounts:\n" + entry("a", "    answer:\n      mode: ring\n") + entry("b")).0
        let after = try read("accounts:\n" + entry("b") + entry("a", "    answer:\n      mode: auto\n    rooms: [x]\n"))
            .0
        #expect(after.accounts[0].differences(from: before.accounts[1]).isEmpty)
        #expect(Set(after.accounts[1].differences(from: before.accounts[0])) == ["answer.mode", "rooms"])
    }

    @Test("Media sockets are bound to this machine alone only if no account has a server elsewhere")
    func binding() throws {
        func bound(_ servers: String...) throws -> String {
            let text = servers.enumerated().map {
                entry("a\($0.offset)", account: "anonymous: a\n      server: \($0.element)")
            }
            let (configuration, problems) = try read("accounts:\n" + text.joined())
            #expect(problems.isEmpty, "\(problems)")
            return MediaAddress.bindAddress(for: configuration.accounts.map(\.configuration)).host
        }
        #expect(try bound("http://127.0.0.1:1", "http://localhost:1") == "127.0.0.1")
        #expect(try bound("http://127.0.0.1:1", "https://calls.example.org") == "0.0.0.0")
    }
}
