import Foundation
import Testing

@testable import ConfigReader

private enum Codec: String, CaseIterable { case opus, pcmu, pcma }

private func read(_ text: String, environment: [String: String] = [:]) throws -> ConfigSection {
    try ConfigDocument.read(text: text, file: "handset.yaml", environment: { environment[$0] })
}

/// Reads `text` as a section, lets `use` ask for its keys, and returns the problems as they are printed.
private func problems(
    _ text: String, environment: [String: String] = [:], _ use: (ConfigSection, inout [ConfigProblem]) -> Void
) throws -> [String] {
    var found: [ConfigProblem] = []
    use(try read(text, environment: environment), &found)
    return found.map(\.description)
}

private func failure(_ text: String) -> String {
    do throws(ConfigError) {
        _ = try ConfigDocument.read(text: text, file: "handset.yaml")
        return "no failure"
    } catch {
        return error.description
    }
}

@Suite struct ConfigReaderTests {
    @Test("Every kind of value is read, and absent keys are no problem")
    func values() throws {
        let section = try read(
            """
            name: "front door"
            port: 8_443
            gain: -1.5
            delay_ms: 80
            timeout_s: 2.5
            echo: yes
            codec: opus
            tags: [a, b]
            url: HTTPS://example.org/x
            listen: "[::1]:0"
            media:
              jitter: {floor_ms: 20}
            users:
              - id: alice
              - id: bob
            """)
        var found: [ConfigProblem] = []
        #expect(section.string("name", &found) == "front door")
        #expect(section.integer("port", in: 0...65_535, &found) == 8_443)
        #expect(section.number("gain", in: -20...20, &found) == -1.5)
        #expect(section.milliseconds("delay_ms", in: 0...100, &found) == .milliseconds(80))
        #expect(section.seconds("timeout_s", in: 0...60, &found) == .milliseconds(2_500))
        #expect(section.bool("echo", &found) == true)
        #expect(section.enumeration("codec", of: Codec.self, &found) == .opus)
        #expect(section.list("tags", &found) == ["a", "b"])
        #expect(section.url("url", schemes: ["https"], &found) == "HTTPS://example.org/x")
        #expect(section.endpoint("listen", &found) == ConfigEndpoint(host: "::1", port: 0))
        let jitter = section.section("media", &found)?.section("jitter", &found)
        #expect(jitter?.path == "media.jitter")
        #expect(jitter?.milliseconds("floor_ms", in: 0...100, &found) == .milliseconds(20))
        #expect(section.sections("users", &found)?.map { $0.string("id", &found) } == ["alice", "bob"])
        #expect(section.string("absent", &found) == nil)
        #expect(section.sections("absent", &found) == nil)
        #expect(found.isEmpty)
    }

    @Test("All problems of a file are noted at once, each with file, line, key and what is allowed")
    func everyProblem() throws {
        let found = try problems(
            """
            port: 70000
            delay_ms: soon

            media:
              echo: perhaps
              codec: opsu
            users:
              - id: alice
              - bob
            listen: localhost
            empty:
            """
        ) { section, problems in
            _ = section.integer("port", in: 1...65_535, &problems)
            _ = section.milliseconds("delay_ms", in: 0...2_000, &problems)
            let media = section.section("media", &problems)
            _ = media?.bool("echo", &problems)
            _ = media?.enumeration("codec", of: Codec.self, &problems)
            _ = section.sections("users", &problems)
            _ = section.endpoint("listen", allowingAnyPort: false, &problems)
            _ = section.string("empty", &problems)
            section.require(["name"], &problems)
        }
        #expect(
            found == [
                "handset.yaml:1: port: must be a whole number from 1 to 65535, not \"70000\"",
                "handset.yaml:2: delay_ms: must be a whole number of milliseconds from 0 to 2000, not \"soon\"",
                "handset.yaml:5: media.echo: must be true or false, not \"perhaps\"",
                "handset.yaml:6: media.codec: must be one of opus, pcmu, pcma, not \"opsu\"; did you mean opus?",
                "handset.yaml:9: users[2]: must be a section with keys of its own",
                "handset.yaml:10: listen: must be HOST:PORT with a port from 1 to 65535, such as 127.0.0.1:8443 or "
                    + "[::1]:8443, not \"localhost\"",
                "handset.yaml:11: empty: has no value; must be text",
                "handset.yaml:1: name: is required here and missing",
            ])
    }

    @Test("An unknown key is refused with the nearest known one, or the list of them when none is near")
    func unknownKeys() throws {
        let found = try problems("media:\n  max-delay-ms: 1\n  colour: red\n") { section, problems in
            section.section("media", &problems)?
                .rejectUnknownKeys(known: ["min_delay_ms", "max_delay_ms"], &problems)
        }
        #expect(
            found == [
                "handset.yaml:2: media.max-delay-ms: unknown key; did you mean max_delay_ms?",
                "handset.yaml:3: media.colour: unknown key; this section has min_delay_ms, max_delay_ms",
            ])
    }

    @Test("A tab that indents is named as what it is, and one elsewhere is no fault")
    func tabs() throws {
        for text in ["a:\n\tb: 1\n", "a:\n  \tb: 1\n", "a:\r\n\tb: 1\r\n"] {
            #expect(failure(text) == "handset.yaml:2: begins with a tab; YAML is indented with spaces")
        }
        var found: [ConfigProblem] = []
        #expect(try read("a:\tb # \t\n").string("a", &found) == "b" && found.isEmpty)
    }

    @Test("A byte order mark before the text is passed over, and lines are counted as without it")
    func byteOrderMark() throws {
        let found = try problems("\u{FEFF}port: 1\ncolour: red\n") { section, problems in
            #expect(section.integer("port", in: 1...9, &problems) == 1)
            section.rejectUnknownKeys(known: ["port"], &problems)
        }
        #expect(found == ["handset.yaml:2: colour: unknown key; this section has port"])
        #expect(failure("\u{FEFF}a: 1\n\tb: 1\n").hasPrefix("handset.yaml:2: "))
    }

    @Test("A secret in the file is reported once, whether it is read or not", arguments: [true, false])
    func secretInTheClear(_ isAskedFor: Bool) throws {
        let found = try problems("account:\n  password: hunter2\n") { section, problems in
            guard let account = section.section("account", &problems) else { return }
            if isAskedFor { #expect(account.secret("password", &problems) == nil) }
            account.rejectUnknownKeys(known: ["user"] + ConfigSection.secretKeys("password"), &problems)
        }
        #expect(
            found == [
                "handset.yaml:2: account.password: must not be in this file; give password_file: PATH or "
                    + "password_env: NAME instead"
            ])
    }

    @Test("A star is no listen address, and the message names those that are")
    func allAddresses() throws {
        #expect(ConfigEndpoint("*:8555") == nil)
        let found = try problems("listen: '*:8555'\n") { section, problems in _ = section.endpoint("listen", &problems)
        }
        #expect(found.count == 1 && found[0].contains("0.0.0.0 is all addresses of IPv4, [::]"), "\(found)")
    }

    @Test("A value of the wrong shape says what it should be")
    func wrongShapes() throws {
        let found = try problems("a: [1]\nb: {c: 1}\nd: 1\ne: 1\n") { section, problems in
            _ = section.string("a", &problems)
            _ = section.integer("b", in: 0...1, &problems)
            _ = section.list("d", &problems)
            _ = section.section("e", &problems)
        }
        #expect(
            found == [
                "handset.yaml:1: a: is a list here; must be text",
                "handset.yaml:2: b: is a section here; must be a whole number from 0 to 1",
                "handset.yaml:3: d: must be a list, such as [one, two]",
                "handset.yaml:4: e: must be a section with keys of its own",
            ])
    }

    @Test(
        "Warnings alone leave a configuration good; with an error beside them all are reported, in the order of the file"
    )
    func verdict() throws {
        let section = try read("a: 1\nb: 2\n")
        let (warning, error) = (section.warning("b", "is old"), section.problem("a", "is wrong"))
        #expect(try [].verdict().isEmpty)
        #expect(try [warning].verdict().map(\.description) == ["handset.yaml:2: b: warning: is old"])
        #expect(throws: ConfigError([error, warning])) { try [warning, error].verdict() }
    }

    @Test("A URL's port is a port, in any surroundings")
    func ports() throws {
        for (url, isGood) in [
            ("http://a:1", true), ("http://a:65535/x:y", true), ("http://[::1]", true), ("http://[::1]:80?x", true),
            ("http://u:p@a", true), ("http://u:p@a:8080", true), ("http://a:65536", false), ("http://a:99999/", false),
            ("http://a:", false), ("http://a:http", false), ("http://[::1]:99999", false), ("http://u:p@a:-1", false),
        ] {
            let found = try problems("url: \"\(url)\"\n") { section, problems in
                #expect((section.url("url", schemes: ["http"], &problems) == url) == isGood, "\(url)")
            }
            #expect(found.isEmpty == isGood && !found.contains { $0.contains("u:p") })
        }
    }

    @Test("A key given twice is refused with both lines")
    func duplicates() {
        let text = "name: a\nmedia:\n  codec: opus\n  echo: true\n  codec: pcmu\n"
        #expect(
            failure(text)
                == "handset.yaml:5: media.codec: is given twice in this section, first on line 3; keep one of them")
        #expect(failure("{a: 1, a: 2}").hasPrefix("handset.yaml:1: a: is given twice"))
    }

    @Test("A syntax error names its line", arguments: ["ok: 1\nbad: [1, 2\nmore: 3\n", "ok: 1\nbad: @x\n"])
    func syntaxErrors(text: String) {
        let message = failure(text)
        #expect(message.hasPrefix("handset.yaml:2: is not valid YAML") || message.hasPrefix("handset.yaml:3: "))
    }

    @Test("Aliases that make a short text endless, or nearly so, are refused")
    func aliasesAreBounded() {
        #expect(failure("a: &a [*a]\n").contains("levels deep"))
        var bomb = "l0: &l0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
        for level in 1..<9 {
            bomb += "l\(level): &l\(level) [\(Array(repeating: "*l\(level - 1)", count: 10).joined(separator: ", "))]\n"
        }
        #expect(failure(bomb).contains("counting aliases"))
    }

    @Test("A document that is not a mapping, holds two documents or nests too deep is refused")
    func wrongDocuments() {
        #expect(failure("- a\n- b\n").contains("must be a mapping"))
        #expect(failure("just text").contains("must be a mapping"))
        #expect(failure("a: 1\n---\nb: 2\n").contains("another document"))
        let deep = String(repeating: "{a: ", count: 40) + "1" + String(repeating: "}", count: 40)
        #expect(failure(deep).contains("levels deep"))
        #expect(failure("? [a, b]\n: 1\n").contains("not plain text"))
    }

    @Test("An empty document is an empty section", arguments: ["", "# nothing\n", "---\n", "~"])
    func emptyDocument(text: String) throws {
        #expect(try read(text).keys.isEmpty)
    }

    @Test("No prefix of a document traps the reader")
    func truncation() {
        let whole = "a: &x {b: [1, 'two', \"th\\tree\"]}\nc: *x\nd: |\n  text\n  more\n? e\n: !!str 7\n"
        for length in 0...whole.count {
            _ = try? ConfigDocument.read(text: String(whole.prefix(length)))
        }
    }

    @Test("A file that cannot be read is one problem with the system's reason")
    func missingFile() {
        #expect(throws: ConfigError.self) { try ConfigDocument.read(path: "/nonexistent/handset.yaml") }
        do throws(ConfigError) {
            _ = try ConfigDocument.read(path: "/nonexistent/handset.yaml")
        } catch {
            #expect(error.description == "/nonexistent/handset.yaml: cannot be read: No such file or directory")
        }
    }
}

@Suite struct ConfigEncodingTests {
    @Test("Text that is not UTF-8 is reported with the line where it begins")
    func encoding() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("config-\(UUID().uuidString).yaml")
        defer { try? FileManager.default.removeItem(at: file) }
        for (bytes, line) in [("a: 1\nb: \u{E4}\nc: ", 3), ("", 1), ("# \u{1F600}\n\n\n", 4)] {
            try (Data(bytes.utf8) + [0xE4, 0x0A, 0xFF]).write(to: file)
            do throws(ConfigError) {
                _ = try ConfigDocument.read(path: file.path)
                Issue.record("read")
            } catch {
                #expect(error.description == "\(file.path):\(line): cannot be read: it is not UTF-8 text")
            }
        }
    }
}

@Suite struct ConfigSecretTests {
    private static let value = "hunter2-hunter2"

    @Test("A secret comes from an environment variable or from a file beside the configuration")
    func sources() throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("config-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        try "\(Self.value)\n".write(to: directory.appendingPathComponent("key.txt"), atomically: true, encoding: .utf8)
        #expect(chmod(directory.appendingPathComponent("key.txt").path, 0o600) == 0)
        let config = directory.appendingPathComponent("handset.yaml")
        try "password_file: key.txt\ntoken_env: TOKEN\n".write(to: config, atomically: true, encoding: .utf8)

        let section = try ConfigDocument.read(path: config.path, environment: { ["TOKEN": Self.value][$0] })
        var found: [ConfigProblem] = []
        #expect(section.secret("password", &found)?.revealed == Self.value)
        #expect(section.secret("token", &found)?.revealed == Self.value)
        #expect(section.secret("other", &found) == nil)
        #expect(section.path("password_file", readable: true, &found) == directory.path + "/key.txt")
        #expect(found.isEmpty)
    }

    @Test(
        "AUTH-12: A variable that is not set is named if it is written as variables are, and may be the secret if not")
    func unsetVariable() throws {
        func said(_ name: String) throws -> String {
            let found = try problems("token_env: \(name)\n") { section, problems in
                _ = section.secret("token", &problems)
            }
            return found.joined(separator: "\n")
        }
        for name in ["MY_TOKEN", "TOKEN", "_TOKEN_2"] {
            let message = "names the environment variable \(name), which is not set or is empty"
            #expect(try said(name) == "handset.yaml:1: token_env: \(message)")
        }
        for name in ["my_token", "Token", "9F86D081884C7D65", "'2_TOKENS'"] {
            let message = "names an environment variable that is not set or is empty"
            #expect(try said(name) == "handset.yaml:1: token_env: \(message)")
        }
    }

    @Test("AUTH-12: No problem, print or dump shows a secret's value")
    func neverEchoed() throws {
        let found = try problems(
            """
            password: \(Self.value)
            token_env: \(Self.value)
            key_file: nowhere.txt
            key_env: HOME
            seed_env: hunter2hunter2
            """
        ) { section, problems in
            for name in ["password", "token", "key", "seed"] { _ = section.secret(name, &problems) }
            _ = section.secret("pin", required: true, &problems)
            section.rejectUnknownKeys(known: ["other"], &problems)
        }
        #expect(found.count == 6)
        #expect(!found.contains { $0.contains("hunter2") })

        let secret = Secret(Self.value)
        var dumped = ""
        dump(secret, to: &dumped)
        for text in ["\(secret)", String(reflecting: secret), dumped] { #expect(!text.contains("hunter2")) }
    }
}
