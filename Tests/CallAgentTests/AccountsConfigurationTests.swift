import CallControl
import CallPrograms
import ConfigReader
import Foundation
import MediaEngine
import Core
import AudioKit
import SIP
import SIPClient
import SIPSignaling
import SignalingClient
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

    @Test(
        "An agent calls the callees of mcp.callees; without it, those that the account may call on a stranger's word, and no telephone number"
    )
    func agentCallees() throws {
        func callees(_ text: String) throws -> AgentCallees {
            let (configuration, problems) = try read(text)
            #expect(problems.isEmpty, "\(problems)")
            var callees = AgentCallees()
            callees.take(configuration.accounts)
            return callees
        }
        #expect(!AgentCallees().admits("bob", account: nil))
        let listed = AgentCallees(CalleeList([try #require(CalleePattern("+4930*"))]))
        #expect(listed.admits("+49301", account: "any") && !listed.admits("bob", account: nil))
        let exchange = try callees("account:\n  anonymous: a\n")
        #expect(exchange.admits("bob@localhost", account: nil))
        for number in ["+49301234", "112", "0049", "112@localhost"] { #expect(!exchange.admits(number, account: nil)) }
        let narrow = try callees("account:\n  anonymous: a\n  callees: [bob, \"+4930*\"]\n")
        #expect(narrow.admits("bob", account: nil) && narrow.admits("+49301234", account: nil))
        #expect(!narrow.admits("eve", account: nil) && !narrow.admits("+4931", account: nil))
        let both = try callees(
            "accounts:\n" + entry("a", "", account: "anonymous: a\n      callees: [bob, carol]")
                + entry("b", "", account: "anonymous: b\n      callees: [bob]"))
        #expect(both.admits("carol", account: "a") && !both.admits("carol", account: "b"))
        #expect(both.admits("bob", account: nil) && !both.admits("carol", account: nil))
        #expect(!both.admits("bob", account: "c"))
    }

    @Test(
        "The folder of a mailbox is none of recordings, whose limits would remove messages: of any behaviour or account"
    )
    func mailboxFolder() throws {
        let (box, records) = ("source: voicemail, voicemail: { folder: /box }", "source: echo, record_folder: /box")
        func keys(_ text: String) throws -> [String] {
            try read(text).1.filter { !$0.isWarning && $0.message.contains("folder of") }.map(\.key)
        }
        let account = "account: { anonymous: a }\n"
        #expect(try keys(account + "behaviour: { \(box), record_folder: /records }\n") == [])
        #expect(
            try keys(account + "behaviour: { \(box) }\nbehaviours: [{ name: r, \(records) }]\n")
                == ["behaviours[1].record_folder"])
        #expect(
            try keys(account + "behaviour: { \(records) }\nbehaviours: [{ name: r, \(box) }]\n")
                == ["behaviours[1].voicemail"])
        for (first, second, key) in [(box, records, "record_folder"), (records, box, "voicemail.folder")] {
            #expect(
                try keys(
                    "accounts:\n" + entry("a", "    behaviour: { \(first) }\n")
                        + entry("b", "    behaviour: { \(second) }\n"))
                    == ["accounts[2].behaviour.\(key)"])
        }
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
            // What the third gives away.
            #expect(
                problems.map(\.key) == ["accounts[3].media.offers"] && problems.allSatisfy(\.isWarning), "\(problems)")
            #expect(configuration.accounts[2].configuration.media.codecs.count == 2)
            #expect(!configuration.accounts[1].configuration.media.allowsPlainMedia)
            return configuration.accounts.map(\.configuration.media.offers)
        }
        #expect(try offers("") == [.webRTC, .sdes, .plain])
        #expect(try offers("media:\n  offers: webrtc\n") == [.webRTC, .webRTC, .plain])
        #expect(try offers("media:\n  offers: sdes\n") == [.sdes, .sdes, .plain])
    }

    @Test("The section of a SIP account is the service's configuration, and shows its password nowhere")
    func sipAccount() throws {
        let text = """
            account:
              kind: sip
              password_env: P
              sip:
                address: sip:a@example.org
                server: sip.example.org:5070
                transport: tcp
                register_s: 60
                keepalive_s: 30
                port: 5090
                calls_from: anybody
                identity_from: [server]
                realms: [r]
                gruu: true
                follow_redirections: false
              allow_plain_text: true

            """
        var problems: [ConfigProblem] = []
        let section = try ConfigDocument.read(text: text, environment: { _ in "Tr0ub4dor" })
        let account = try #require(AccountsConfiguration(section, &problems).accounts.first?.configuration.account)
        let sip = try #require(account.sip)
        #expect(!problems.contains { !$0.isWarning }, "\(problems)")
        #expect(
            sip.server == .init(host: "sip.example.org", port: 5_070, transport: .only(.tcp)) && sip.localPort == 5_090)
        #expect("\(sip.account.address.uri)" == "sip:a@example.org" && sip.account.username == "a")
        #expect(sip.account.registrationSeconds == 60 && sip.account.keepalive == .seconds(30))
        #expect(sip.account.acceptsStrangers && sip.account.identityTrust.includesServer && sip.account.usesGRUU)
        #expect(sip.account.realms == ["r"] && !sip.account.agent.followsRedirections)
        #expect(sip.account.password.text == "Tr0ub4dor")
        var shown = "\(account) \(String(reflecting: sip))"
        dump(account, to: &shown)
        #expect(shown.contains("sip:a@example.org") && !shown.contains("Tr0ub4dor"))
    }

    private static let sip =
        "account:\n  kind: sip\n  password_env: P\n  sip:\n    address: sip:a@example.org\n    transport: tls\n"

    @Test(
        "At a SIP server transfers are refused unless the file says otherwise; at an exchange its users may be called")
    func transfers() throws {
        func transfers(_ text: String) throws -> (AnswerPolicy.Transfers?, [ConfigProblem]) {
            let (configuration, problems) = try read(text)
            return (configuration.accounts.first?.configuration.answer.transfers, problems)
        }
        for more in ["", "answer:\n  mode: ring\n"] {
            let (sip, problems) = try transfers(Self.sip + more)
            #expect(sip == .refuse && problems.isEmpty, "\(problems)")
            #expect(try transfers("account:\n  anonymous: a\n" + more).0 == .service)
        }
        let service = "answer:\n  transfers: service\n"
        let (idle, problems) = try transfers(Self.sip + service)
        #expect(idle == .service && problems.map(\.key) == ["answer.transfers"] && problems.allSatisfy(\.isWarning))
        let listed = Self.sip.replacing("  password_env", with: "  callees: [bob]\n  password_env") + service
        #expect(try transfers(listed) == (.service, []))
    }

    @Test("A file that lets calls have no keys, though the peer may take some, is warned of what that gives away")
    func plainMedia() throws {
        func warnings(_ media: String) throws -> [String] {
            let (_, problems) = try read(Self.sip + "media:\n" + media)
            let faults = problems.filter { !$0.isWarning }
            #expect(faults.isEmpty, "\(faults)")
            return problems.map { "\($0.key): \($0.message)" }
        }
        #expect(try warnings("  allow_plain_rtp: false\n").isEmpty)
        let answers = try warnings("  allow_plain_rtp: true\n")
        #expect(
            answers.count == 1
                && answers[0].hasPrefix("media.allow_plain_rtp: is true, so that a call whose peer has no keys"))
        let offers = try warnings("  allow_plain_rtp: true\n  offers: plain\n")
        #expect(offers.count == 1 && offers[0].hasPrefix("media.offers: is plain, so that our calls have no keys"))
        for text in answers + offers {
            #expect(text.contains("can be intercepted") && text.contains("a stranger who finds its port"))
        }
    }

    @Test(
        "Ports of calls without ICE are compared with the calls that all accounts may have, and with how long they rest"
    )
    func ports() throws {
        func problems(_ ports: String, limits: [Int]) throws -> [ConfigProblem] {
            let accounts = limits.enumerated().map { number, limit in
                entry("a\(number)", "    answer:\n      max_calls: \(limit)\n")
            }
            return try read("accounts:\n" + accounts.joined() + "media:\n" + ports).1
        }
        #expect(try problems("  ports: 16384-16443\n", limits: [10, 20]).isEmpty)
        let few = try problems("  ports: 16384-16442\n", limits: [10, 20])
        #expect(few.map(\.key) == ["media.ports"] && few.allSatisfy(\.isWarning))
        #expect(few.first?.message.contains("has 59 ports for 30 calls at a time") == true)
        #expect(try problems("  ports: 16384-16413\n", limits: [10, 20]).map(\.isWarning) == [true])
        let fewer = try problems("  ports: 16384-16412\n", limits: [10, 20])
        #expect(fewer.map(\.key) == ["media.ports"] && fewer.first?.isWarning == false)
        #expect(fewer.first?.message.contains("has 29 ports, and answer.max_calls allows 30 calls at a time") == true)
        // As many calls as the machine carries: nobody knows how many.
        #expect(try read(Self.sip + "media:\n  ports: 16384-16384\n").1.isEmpty)
        let (configuration, none) = try read(Self.sip + "media:\n  port: 40000\n  ports: 40001-40100\n")
        #expect(none.isEmpty && configuration.accounts.first?.configuration.media.callPorts == 40_001...40_100)
        let (_, hole) = try read(Self.sip + "media:\n  port: 40000\n")
        #expect(hole.map(\.key) == ["media.port"] && hole.allSatisfy(\.isWarning))
        #expect(try read("account:\n  anonymous: a\nmedia:\n  port: 40000\n").1.isEmpty)
    }

    @Test("Names in allow and deny have the form that callers of a SIP server have", arguments: ["allow", "deny"])
    func callers(key: String) throws {
        let names = "[bob@SIP.test, \"sip:carol@Sip.Test.\", \"tel:+49-30\", dave]"
        let answer = try read(Self.sip + "answer:\n  \(key): \(names)\n").0.accounts.first?.configuration.answer
        let expected: Set<UserID> = ["bob@sip.test", "carol@sip.test", "+4930", "+4930@example.org", "dave"]
        #expect(answer?.callers == (key == "allow" ? .only(expected) : .everybodyBut(expected)))
    }

    @Test("The list of callees is the account's, in one form, and a bot's former list is taken over with a warning")
    func callees() throws {
        let bot = """
            behaviour:
              source: bot
              bot:
                url: ws://127.0.0.1:7860/ws
                requests:
                  listen: 127.0.0.1:0
                  password_env: P
                  calls:
                    key: SK1
                    password_env: Q
            """
        func account(_ text: String) throws -> (AccountConfiguration, [ConfigProblem]) {
            var problems: [ConfigProblem] = []
            let section = try ConfigDocument.read(text: text, environment: { $0 })
            let configuration = AccountsConfiguration(section, &problems)
            return (try #require(configuration.accounts.first?.configuration.account), problems)
        }
        let listed = Self.sip.replacing("  password_env", with: "  callees: [bob, +4930*]\n  password_env")
        let (sip, none) = try account(listed + bot)
        #expect(none.isEmpty, "\(none)")
        #expect(sip.lists("bob") && sip.lists("bob@EXAMPLE.org") && sip.lists("sip:bob@example.org"))
        #expect(sip.lists("tel:+4930123") && sip.lists("+4930123") && !sip.lists("+4930123;x=y"))
        #expect(
            !sip.lists("bob@example.net") && !sip.lists("sip:bob@example.org;maddr=192.0.2.1") && !sip.lists("11880"))
        #expect(try !account(Self.sip + bot).0.lists("bob"))
        #expect(
            try account(Self.sip.replacing("  password_env", with: "  callees: [a*b]\n  password_env")).1.count == 1)

        let former = bot + "\n        callees: [bob]\n"
        for start in [Self.sip, "account:\n  anonymous: a\n"] {
            let (taken, warnings) = try account(start + former)
            #expect(taken.lists("bob") && !taken.lists("carol"))
            #expect(warnings.map(\.key) == ["behaviour.bot.requests.calls.callees"] && warnings.allSatisfy(\.isWarning))
        }
        let both = try account(listed + former).1
        #expect(both.filter { !$0.isWarning }.map(\.key) == ["account.callees"], "\(both)")
    }

    @Test("Programs inherit no variable of any account's secret")
    func withheld() throws {
        let exec = "    behaviour:\n      source: exec\n      command: [cat]\n      environment: [KEY]\n"
        let (configuration, problems) = try read(
            "accounts:\n" + entry("a", exec) + entry("b", account: "user: b\n      password_env: PASSWORD"))
        #expect(problems.isEmpty, "\(problems)")
        guard case .exec(let plan)? = configuration.accounts.first?.configuration.behaviour.source else {
            return #expect(Bool(false))
        }
        #expect(plan.withheldVariables == ["PASSWORD"] && plan.environment == ["KEY"])
        let wrong = "behaviour:\n  source: exec\n  command: [cat]\n  environment: [\"KEY=secret\"]\n"
        #expect(try read("account:\n  anonymous: a\n" + wrong).1.map(\.key) == ["behaviour.environment"])
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

    @Test("What a file says of the process holds until its end, and each account keeps what it has of its own")
    func process() throws {
        let own = "    media:\n      codecs: [pcma]\n"
        let before = try read("accounts:\n" + entry("a") + entry("b", own) + "media:\n  workers: 2\n").0
        let text =
            "accounts:\n" + entry("a", "    answer:\n      mode: ring\n") + entry("c", own)
            + "profile: pi\naudio:\n  several_calls: mix\nmedia:\n  workers: 3\n  offers: sdes\n"
        let (new, _) = try read(text)
        #expect(new.accounts[0].configuration.media.workers == 3)
        let kept = new.keepingProcess(of: before).accounts.map(\.configuration)
        for (account, earlier) in zip(kept, before.accounts.map(\.configuration)) {
            #expect(account.media.workers == 2 && account.media.offers == earlier.media.offers)
            #expect(account.media.codecs == earlier.media.codecs && account.profile == .desktop)
            #expect(account.audio.severalCalls == earlier.audio.severalCalls)
        }
        #expect(kept[0].answer.manner == .ring && kept[1].media.codecs == [.pcma])
        let one = try read("account:\n  anonymous: a\nmedia:\n  workers: 2\n").0
        let other = try read("account:\n  anonymous: b\nmedia:\n  workers: 3\n").0.keepingProcess(of: one)
        #expect(other.accounts[0].configuration.media.workers == 2)
    }

    @Test("Two accounts may not have one key")
    func keys() throws {
        let path = FileManager.default.temporaryDirectory.path + "/handset-\(UUID().uuidString).pem"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let pem = try #require(DeviceLoginKey()).text
        try #require(
            FileManager.default.createFile(
                atPath: path, contents: Data(pem.utf8), attributes: [.posixPermissions: 0o600]))
        let key = "kind: key\n      user: u\n      key_file: \(path)\n      enrollment: x"
        let problems = try read("accounts:\n" + entry("a", account: key) + entry("b", account: key)).1
        let found = try #require(problems.first { $0.message.contains("is the key of account a already") })
        #expect(found.key == "accounts[2].account.key_file" && found.line == 12)
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
