@testable import ExchangeCore
@testable import ExchangeServer
import Foundation
import SignalSupport
import SignalWire
import TestSupport
import Testing
import Core

@testable import ConfigReader

@Suite struct AccountTests {
    private static func cheapHash(_ password: String) -> PasswordHash {
        var generator = SeededGenerator(seed: 1)
        return PasswordHash.make(password, costExponent: 4, using: &generator)
    }

    @Test("A password matches its hash, also one read back from its string form, and no other password does")
    func passwords() throws {
        let hash = Self.cheapHash("corréct horse")
        #expect(hash.matches("corréct horse"))
        #expect(!hash.matches("corréct hors") && !hash.matches("") && !hash.matches("corréct horse "))
        let back = try #require(PasswordHash(hash.description))
        #expect(back == hash && back.matches("corréct horse"))
    }

    @Test("A new password has eight characters, and is none of the thousand most common, in any case")
    func passwordRule() throws {
        #expect(CommonPasswords.all.count == 1_000)
        #expect(CommonPasswords.all.allSatisfy { $0.count >= PasswordRule.minimumLength && $0 == $0.lowercased() })
        for password in ["", "x", "1234567", "éééé", "password", "PassWord", "12345678", "Trustno1", "QWERTYUIOP"] {
            let problem = try #require(PasswordRule.problem(with: password))
            #expect(["", "x", "password"].contains(password) || !problem.contains(password))
        }
        // Four letters, each with an accent of its own: eight scalars.
        for password in ["correct horse", "12345679x", "e\u{301}e\u{301}e\u{301}e\u{301}", "пароль12", "🦄🦄🦄🦄🦄🦄🦄🦄"] {
            #expect(PasswordRule.problem(with: password) == nil)
        }
    }

    @Test("A configuration whose password is read from a file or the environment is held to the same rule")
    func configuredPassword() throws {
        for (password, isGood) in [("monkey", false), ("Password1", false), ("four words are enough", true)] {
            let text = """
                apps: []
                users:
                  - id: alice
                    password_env: SECRET
                """
            var problems: [ConfigProblem] = []
            let section = try ConfigDocument.read(text: text, environment: { $0 == "SECRET" ? password : nil })
            _ = ExchangeConfiguration(section, &problems)
            #expect(problems.isEmpty == isGood, "\(problems)")
            #expect(!problems.contains { $0.description.contains(password) })
        }
    }

    @Test("scrypt gives the test vector of RFC 7914 §12")
    func vector() throws {
        let hash = try #require(
            PasswordHash(
                "$scrypt$ln=14,r=8,p=1$U29kaXVtQ2hsb3JpZGU$cCO9yzr9c0hGHAbNgf046/2o+7qQT44+qbVD9lRdofLVQylVYT8Pz2LU"
                    + "lwUkKpr55h6F3A1lHkDfzwF7RVdYhw"))
        #expect(hash.matches("pleaseletmein"))
        #expect(!hash.matches("pleaseletmeIn"))
    }

    @Test("A password hash that is damaged, or would take too much memory, is refused")
    func badHashes() {
        let good = Self.cheapHash("x").description
        for length in 0..<good.count { #expect(PasswordHash(String(good.prefix(length))) == nil) }
        for text in [
            "", "$$$$", "secret", good.replacing("scrypt", with: "argon2id"), good.replacing("ln=4", with: "ln=0"),
            good.replacing("ln=4", with: "ln=20"), good.replacing("ln=4", with: "ln=99999999999999999999"),
            good.replacing("r=8", with: "r=-8"), good.replacing("p=1", with: "q=1"), good + "$",
            good.replacing("ln=4", with: "ln=4,ln=4"),
        ] { #expect(PasswordHash(text) == nil, "\(text)") }
    }

    @Test("A digest is SHA-256 and is read from 64 hexadecimal digits only")
    func digests() {
        let digest = SecretDigest(of: "abc")
        #expect(digest.hex == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(SecretDigest(hex: digest.hex.uppercased()) == digest)
        #expect(SecretDigest(hex: String(digest.hex.dropLast())) == nil)
        #expect(SecretDigest(hex: digest.hex + "0") == nil)
        #expect(SecretDigest(hex: String(digest.hex.dropLast()) + "é") == nil)
    }

    @Test("A configuration gives accounts, applications and settings")
    func configuration() throws {
        let hash = Self.cheapHash("pw").description
        let text = """
            listen: "[::1]:0"
            plain_text: allowed
            token_lifetime_seconds: 60
            stream_ringing_seconds: 20
            database: exchange.sqlite
            call_records_per_user: 7
            call_records_total: 9
            apps:
              - key: handset
                secret_env: APP_SECRET
            ice_servers:
              - urls: ["stun:stun.example.org"]
            users:
              - id: echo
                public_ids: [echo@localhost]
                media_token_env: ECHO_TOKEN
                stream_token_env: STREAM_TOKEN
                email: echo@example.org
              - id: alice
                routing_id: route-1
                password_hash: \(hash)
                media_token_hashes: [\(SecretDigest(of: "m").hex)]
                stream_token_hashes: [\(SecretDigest(of: "s").hex)]
            """
        let values = ["APP_SECRET": "app", "ECHO_TOKEN": "echo token", "STREAM_TOKEN": "stream token"]
        let section = try ConfigDocument.read(text: text, environment: { values[$0] })
        var problems: [ConfigProblem] = []
        let configuration = ExchangeConfiguration(section, &problems)
        #expect(problems == [])
        #expect(configuration.host == "::1" && configuration.port == 0 && configuration.plainText == .allowed)
        #expect(configuration.tokenLifetime == .seconds(60))
        #expect(configuration.callRecordLimits.perCaller == 7 && configuration.callRecordLimits.total == 9)
        #expect(configuration.apps == [RegisteredApp(key: "handset", secret: SecretDigest(of: "app"))])
        #expect(configuration.users.map(\.id) == ["echo", "alice"])
        #expect(configuration.users[0].mediaTokens == [SecretDigest(of: "echo token")])
        #expect(configuration.streamRinging == .seconds(20))
        #expect(configuration.users.map(\.streamTokens) == ["stream token", "s"].map { [SecretDigest(of: $0)] })
        #expect(configuration.users[1].password?.matches(Redacted("pw")) == true)
        #expect(configuration.users[1].routingID == "route-1")
    }

    @Test("The example configuration has no problems, and its secrets are what its comment says")
    func example() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let section = try ConfigDocument.read(path: root.appendingPathComponent("config/exchange.yaml").path)
        var problems: [ConfigProblem] = []
        let configuration = ExchangeConfiguration(section, &problems)
        #expect(problems == [])
        #expect(configuration.apps.map(\.secret) == [SecretDigest(of: "change me")])
        #expect(configuration.showsWebPhone && configuration.tellsPresence && configuration.allowedOrigins.isEmpty)
        #expect(configuration.users.first?.password?.matches(Redacted("change me")) == true)
        #expect(configuration.users.last?.mediaTokens == [SecretDigest(of: "change me")])
        #expect(configuration.users.last?.streamTokens == [SecretDigest(of: "change me")])
    }

    @Test("Every problem of a configuration is noted at once, and none of them shows a secret")
    func problems() throws {
        let text = """
            listen: nowhere
            apps:
              - key: "a:b"
                secret: s3cret
            users:
              - id: bob
                password_hash: s3cret
                media_token_hashes: [s3cret]
                stream_token_hashes: [s3cret]
              - id: bob
              - public_ids: [x]
            allowed_origins: [calls.example.org, "https://calls.example.org/", "https://calls.example.org"]
            web_phone: perhaps
            colour: red
            """
        var problems: [ConfigProblem] = []
        _ = ExchangeConfiguration(try ConfigDocument.read(text: text), &problems)
        let lines = problems.map(\.description).joined(separator: "\n")
        #expect(problems.count >= 8, "\(lines)")
        for part in [
            "listen", "key", "secret", "password_hash", "media_token_hashes", "stream_token_hashes", "bob", "id",
            "web_phone", "colour",
        ] {
            #expect(lines.contains(part), "\(part) is missing in:\n\(lines)")
        }
        #expect(lines.split(separator: "\n").count { $0.contains("must be an origin") } == 2, "\(lines)")
        #expect(!lines.contains("s3cret"), "\(lines)")
    }

    @Test("Deadlines come out in the order of their time, in any order of insertion")
    func deadlines() {
        var generator = SeededGenerator(seed: 3)
        var queue = DeadlineQueue<Int>()
        let times = (0..<500).map { _ in Int.random(in: 0..<200, using: &generator) }
        for time in times { queue.add(time, due: Instant(nanoseconds: Int64(time))) }
        var taken: [Int] = []
        for now in 0..<200 {
            while let item = queue.takeDue(at: Instant(nanoseconds: Int64(now))) {
                #expect(item == now)
                taken.append(item)
            }
        }
        #expect(taken == times.sorted())
        #expect(queue.earliest == nil)
    }

    @Test("An event log keeps the newest events, and says so when older ones are asked for")
    func eventLog() {
        var log = EventLog()
        let text = EventText(kept: #"{"data":{"invite":"i"},"type":"inviteEnded"}"#)
        let event = EventBody(number: 1, text: text)
        for number in 0..<300 {
            let at = Instant(nanoseconds: Int64(number))
            let audience: Audience = number.isMultiple(of: 2) ? .device("d") : .registered(except: "e")
            _ = log.append(event, for: audience, at: at)
        }
        #expect(log.sequence == 300)
        #expect(log.missed(after: 300, by: "d", isRegistered: true) == [])
        #expect(log.missed(after: 290, by: "d", isRegistered: true)?.count == 10)
        #expect(log.missed(after: 290, by: "d", isRegistered: false)?.count == 5)
        #expect(log.missed(after: 290, by: "e", isRegistered: true)?.count == 0)
        #expect(log.missed(after: 44, by: "d", isRegistered: true)?.count == 256)
        #expect(log.missed(after: 43, by: "d", isRegistered: true) == nil)
        #expect(log.missed(after: 301, by: "d", isRegistered: true) == nil)
        _ = log.forget(before: Instant.zero.advanced(by: .seconds(1)))
        _ = log.append(event, for: .device("d"), at: Instant.zero.advanced(by: .seconds(61)))
        #expect(log.missed(after: 299, by: "d", isRegistered: true) == nil, "what is older than the window is gone")
        #expect(log.missed(after: 299, by: "d", isRegistered: false)?.count == 1, "that was for registered devices")
        #expect(log.missed(after: 299, by: "other", isRegistered: false)?.count == 0)
        #expect(log.missed(after: 300, by: "d", isRegistered: true)?.count == 1)
    }
}
