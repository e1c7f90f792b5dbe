import Testing

@testable import ConfigReader

private enum Codec: String, CaseIterable { case opus, pcmu }

private struct JitterKeys: ConfigKeys {
    let delay = ConfigKey.milliseconds("delay_ms", in: 0...500, "the least delay").defaulting(to: .milliseconds(20))
}

private struct AppKeys: ConfigKeys {
    let name = ConfigKey.string("name", "what it is called").required
    let secret = ConfigKey.secret("secret", suggestsName: true, "its secret").required
}

private struct Keys: ConfigKeys {
    let port = ConfigKey.integer("port", in: 1...9, unit: "m", "the port").defaulting(to: 5)
    let codec = ConfigKey.choice("codec", of: Codec.self, "the codec").unset("the peer's")
    let codecs = ConfigKey.choices("codecs", of: Codec.self, "some codecs").defaulting(to: [.opus, .pcmu])
    let gain = ConfigKey.number("gain", in: -1.5...2, unit: "dB", "the gain").defaulting(to: 0)
    let timeout = ConfigKey.seconds("timeout_s", in: 0...60, "the patience").defaulting(to: .milliseconds(2_500))
    let even = ConfigKey<Int>.parsed("even", "even number", "a number", show: { "\($0)" }) {
        text throws(ConfigValueFault) in
        guard let number = Int(text), number.isMultiple(of: 2) else { throw ConfigValueFault("must be even") }
        return number
    }
    let token = ConfigKey.secret("token", "a token")
    let jitter = ConfigKey.section("jitter", JitterKeys.self, "the buffer")
    let apps = ConfigKey.sections("apps", AppKeys.self, "programs")
}

private typealias Section = KeyedSection<Keys>

/// Reads `text` by the declarations, lets `use` ask for values, and returns the problems as they are printed.
private func problems(_ text: String, _ use: (Section, inout [ConfigProblem]) -> Void = { _, _ in }) throws -> [String]
{
    var found: [ConfigProblem] = []
    let root = try ConfigDocument.read(text: text, file: "f", environment: { _ in nil })
    use(KeyedSection(root, Keys.self, &found), &found)
    return found.map(\.description)
}

@Suite("Keys that are declared")
struct ConfigKeyTests {
    @Test("A key that is absent or not allowed has its default, and one without a default has no value")
    func defaults() throws {
        let found = try problems("port: 10\ncodec: opsu\n") { section, problems in
            #expect(section.value(\.port, &problems) == 5)
            #expect(section.value(\.codec, &problems) == nil)
            #expect(section.value(\.codecs, &problems) == [.opus, .pcmu])
            var gain = 1.0
            section.read(\.gain, into: &gain, &problems)
            #expect(gain == 1, "what the reader has already stays")
        }
        #expect(
            found == [
                "f:1: port: must be a whole number from 1 to 9, not \"10\"",
                "f:2: codec: must be one of opus, pcmu, not \"opsu\"; did you mean opus?",
            ])
    }

    @Test("Values are read at every depth, and a text by what the declaration makes of it")
    func values() throws {
        let text =
            "even: 4\njitter: {delay_ms: 80}\napps:\n  - {name: a, secret_env: X}\n  - {name: b, secret_env: X}\n"
        let found = try problems(text) { section, problems in
            #expect(section.value(\.even, &problems) == 4)
            #expect(section.value(\.jitter, &problems)?.value(\.delay, &problems) == .milliseconds(80))
            #expect(section.value(\.apps, &problems)?.map { $0.value(\.name, &problems) } == ["a", "b"])
        }
        #expect(found == [])
        let odd = try problems("even: 3\n") { section, problems in
            #expect(section.value(\.even, &problems) == nil)
        }
        #expect(odd == ["f:1: even: must be even"])
    }

    @Test("What is not declared is refused without being asked for, with the nearest key that is")
    func unknown() throws {
        let text = "prot: 1\ntoken: x\njitter:\n  delay: 1\n  colour: red\napps:\n  - secrt: x\n    name: a\n"
        let found = try problems(text) { section, problems in
            _ = section.value(\.token, &problems)
            _ = section.value(\.jitter, &problems)
            _ = section.value(\.apps, &problems)
        }
        #expect(
            found == [
                "f:1: prot: unknown key; did you mean port?",
                "f:2: token: must not be in this file; give token_file: PATH or token_env: NAME instead",
                "f:4: jitter.delay: unknown key; this section has delay_ms",
                "f:5: jitter.colour: unknown key; this section has delay_ms",
                "f:7: apps[1].secrt: unknown key; did you mean secret?",
            ])
    }

    @Test("A missing required key is reported once, a secret with the ways to give it")
    func required() throws {
        let found = try problems("apps:\n  - secret_env: X\n  - name: b\n") { section, problems in
            for app in section.value(\.apps, &problems) ?? [] {
                guard app.has(\.name) else { continue }
                #expect(app.requiredSecret(\.secret, &problems) == nil)
            }
            section.require(\.jitter, &problems)
        }
        #expect(
            found == [
                "f:2: apps[1].name: is required here and missing",
                "f:3: apps[2].secret_file: is required here; give secret_file: PATH or secret_env: NAME",
                "f:1: jitter: is required here and missing",
            ])
    }

    @Test("Of a section that is read in part nothing is said of the other keys")
    func part() throws {
        var found: [ConfigProblem] = []
        let root = try ConfigDocument.read(text: "colour: red\nport: 3\n", file: "f")
        #expect(Section.part(of: root).value(\.port, &found) == 3)
        #expect(found == [])
    }

    @Test("A declaration reports name, kind, unit, range, default and text, with the keys below")
    func entries() {
        let told = Keys.entries.map { entry in
            "\(entry.names.joined(separator: "+")) \(entry.kind) \(entry.unit ?? "-") \(entry.range ?? "-") \(entry.fallback)"
        }
        #expect(
            told == [
                "port whole number m 1 to 9 value(\"5\")",
                "codec word - opus, pcmu words(\"the peer\\'s\")",
                "codecs list of words - opus, pcmu value(\"[opus, pcmu]\")",
                "gain number dB -1.5 to 2 value(\"0\")",
                "timeout_s number s 0 to 60 value(\"2.5\")",
                "even even number - - nothing",
                "token_file+token_env file · variable - - nothing",
                "jitter section - - nothing",
                "apps list of sections - - nothing",
            ])
        guard case .list(let inner)? = Keys.entries.last?.inner else {
            Issue.record("a list of sections has keys below it")
            return
        }
        #expect(inner.map(\.names) == [["name"], ["secret_file", "secret_env"]])
        #expect(inner.allSatisfy { $0.fallback == .required })
        #expect(Keys.entries[0].text == "the port")
    }
}
