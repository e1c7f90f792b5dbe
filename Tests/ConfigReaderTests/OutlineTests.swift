import Testing

@testable import ConfigReader

@Suite("A configuration that is shown to others")
struct OutlineTests {
    private struct Inner: ConfigKeys {
        let secret = ConfigKey.secret("secret", "what it logs in with")
        let hash = ConfigKey.list("secret_hashes", "digests")
        let urls = ConfigKey.list("urls", "where")
    }

    private struct Keys: ConfigKeys {
        let port = ConfigKey.integer("port", in: 0...65_535, "a port")
        let lifetime = ConfigKey.integer("token_seconds", in: 0...9, "how long")
        let server = ConfigKey.string("server", "where")
        let password = ConfigKey.string("password_text", "never shown")
        let command = ConfigKey.command("command", "a program")
        let id = ConfigKey.string("id", "who")
        let one = ConfigKey.section("one", Inner.self, "one")
        let many = ConfigKey.sections("many", Inner.self, "many")
        let nothing = ConfigKey.string("nothing", "nothing")
    }

    private func outline(_ text: String) throws -> [String] {
        try ConfigDocument.read(text: text).outline(of: Keys.entries)
    }

    @Test("Values are shown, but no secrets, arguments of programs, nor of addresses more than the host")
    func outline() throws {
        let text = """
            port: 8555
            token_seconds: 7
            server: https://bob:hunter2@calls.example.org:8443/hooks/T0123/xyz?key=hunter2
            password_text: hunter2
            pasword: hunter2
            command: [/usr/bin/bot, --key, hunter2]
            id: bob
            one:
              secret_file: /etc/handset/front.secret
              secret_hashes: [hunter2]
              urls: ["turn:relay.example.org", "https://x.example/hunter2"]
            many:
              - secret_env: BOT_KEY
                secret: hunter2
              - urls: []
            nothing:
            """
        let lines = try outline(text)
        #expect(!lines.joined().contains("hunter2") && !lines.joined().contains("bob"), "\(lines)")
        #expect(
            lines == [
                "port: 8555", "token_seconds: 7", "server: https://calls.example.org:8443/…",
                "password_text: (left out)",
                "pasword: (left out: an unknown key)", "command: [/usr/bin/bot, (2 left out)]", "id: (left out)",
                "one:", "  secret_file: /etc/handset/front.secret", "  secret_hashes: (left out)",
                "  urls: [turn:relay.example.org, https://x.example/…]",
                "many:", "  - secret_env: BOT_KEY", "    secret: (left out: an unknown key)", "  - urls: []",
                "nothing: (empty)",
            ])
    }

    @Test("Texts that would move a terminal's cursor, and sections in place of values, are shown safely")
    func safety() throws {
        #expect(try outline("server: \"a\\e[2J\\nb\"") == ["server: \"a?[2J?b\""])
        #expect(try outline("server: {a: hunter2}") == ["server: (left out)"])
        #expect(try outline("many: [hunter2]") == ["many:", "  - (left out: no section)"])
        #expect(try outline("one: hunter2 and more") == ["one: (left out)"])
    }

    @Test("Two configurations differ in the keys whose values are others, wherever they are")
    func differences() throws {
        let old = try ConfigDocument.read(text: "a: 1\nb: {c: 2, d: [1, {e: 3}]}\nf: ~\n")
        func differences(_ text: String) throws -> [String] {
            try ConfigDocument.read(text: text).differences(from: old)
        }
        #expect(try differences("# moved\nb:\n  d:\n    - 1\n    - e: 3\n  c: 2\nf:\na: 1\n").isEmpty)
        #expect(try differences("a: 2\nb: {c: 2, d: [1, {e: 4}]}\nf: ~\n") == ["a", "b.d"])
        #expect(try differences("a: 1\nb: 7\ng: 1\n") == ["b", "g", "f"])
    }

    @Test("Two configurations of the same text differ in the key of a secret that has another value")
    func secrets() throws {
        func document(_ value: String) throws -> ConfigSection {
            let document = try ConfigDocument.read(text: "a: {key_env: KEY}\nb: 1\n") { _ in value }
            var problems: [ConfigProblem] = []
            let section = try #require(document.section("a", &problems))
            #expect(section.secret("key", &problems) == Secret(value))
            return document
        }
        #expect(try document("one").differences(from: document("two")) == ["a.key_env"])
        #expect(try document("one").differences(from: document("one")).isEmpty)
    }
}
