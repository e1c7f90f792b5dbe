import ConfigReader
import Foundation
import Testing

@testable import handset

/// A key in an example, be it in force or in a comment.
private struct ShownKey {
    let file: String
    let line: Int
    /// From the root, without the numbers of list elements.
    let path: [String]
    /// Nil for a section, a list of several lines, and a line that shows several keys.
    let value: String?
    let isComment: Bool

    var place: String { "\(file):\(line): \(path.joined(separator: "."))" }

    /// The keys of a file; prose in comments shows none.
    static func all(in text: String, file: String) -> [ShownKey] {
        var shown: [ShownKey] = []
        var parents: [(indent: Int, key: String)] = []
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let pattern = #/^( *)(# )?( *)(- )?([a-z_]+(?:(?:, | or )[a-z_]+)*)(?:: +(.*)|:|  +#.*)$/#
            guard let match = try? pattern.wholeMatch(in: line) else { continue }
            let indent = match.1.count + match.3.count + (match.4?.count ?? 0)
            while let last = parents.last, last.indent >= indent { parents.removeLast() }
            let names = match.5.replacing(" or ", with: ", ").split(separator: ", ").map(String.init)
            let value = (match.6 ?? "").prefix { $0 != "#" }.trimmingCharacters(in: .whitespaces)
            for name in names {
                shown.append(
                    ShownKey(
                        file: file, line: number + 1, path: parents.map(\.key) + [name],
                        value: value.isEmpty || names.count > 1 ? nil : value, isComment: match.2 != nil))
            }
            parents.append((indent, names[0]))
        }
        return shown
    }

    func entry(in entries: [ConfigKeyEntry]) -> ConfigKeyEntry? {
        var entries = entries
        var found: ConfigKeyEntry?
        for name in path {
            guard let entry = entries.first(where: { $0.names.contains(name) }) else { return nil }
            found = entry
            switch entry.inner {
            case .none: entries = []
            case .section(let inner), .list(let inner): entries = inner
            }
        }
        return found
    }
}

@Suite("The page and the examples of configuration keys")
struct ConfigurationPageTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private func keys(_ command: String) throws -> [ConfigKeyEntry] {
        try #require(ConfigurationKind.all.first { $0.command == command }).keys
    }

    private func example(_ file: String) throws -> [ShownKey] {
        ShownKey.all(
            in: try String(contentsOf: Self.root.appendingPathComponent("config/\(file)"), encoding: .utf8), file: file)
    }

    private static let examples = [
        ("device.yaml", "run"), ("accounts.yaml", "run"), ("demo.yaml", "run"), ("exchange.yaml", "serve"),
        ("loopback.yaml", "loopback"),
    ]

    @Test("docs/configuration.md is what the declarations of the keys say")
    func page() throws {
        let url = Self.root.appendingPathComponent("docs/configuration.md")
        let page = ConfigurationPage(ConfigurationKind.all).text
        if ProcessInfo.processInfo.environment["HANDSET_RENEW"] == "1" {
            try page.write(to: url, atomically: true, encoding: .utf8)
        }
        let present = (try? String(contentsOf: url, encoding: .utf8)) ?? ""
        let lines = Set(present.split(separator: "\n"))
        let news = page.split(separator: "\n").filter { !lines.contains($0) }
        let isCurrent = present == page
        #expect(
            isCurrent,
            """
            docs/configuration.md is not what the code declares; it lacks: \(news.joined(separator: "\n"))
            HANDSET_RENEW=1 scripts/test --filter ConfigurationPage writes it again
            """)
    }

    @Test("Every key has a text, and a default that can be read")
    func texts() throws {
        func look(at entries: [ConfigKeyEntry], _ path: String) {
            for entry in entries {
                let place = path + entry.names[0]
                #expect(!entry.text.isEmpty && !entry.text.hasSuffix("."), "\(place)")
                #expect(entry.fallback != .value(""), "\(place)")
                switch entry.inner {
                case .none: break
                case .section(let inner), .list(let inner): look(at: inner, place + ".")
                }
            }
        }
        for kind in ConfigurationKind.all {
            #expect(!kind.keys.isEmpty, "\(kind.command)")
            look(at: kind.keys, kind.command + " ")
        }
    }

    @Test("Every key that an example shows is declared, in force or in a comment")
    func declared() throws {
        let files = try FileManager.default.contentsOfDirectory(
            atPath: Self.root.appendingPathComponent("config/examples").path)
        let others = files.map { ("examples/\($0)", "run") }
        #expect(others.count >= 6)
        for (file, command) in Self.examples + others {
            let keys = try keys(command)
            let shown = try example(file)
            #expect(shown.count >= 3, "\(file)")
            for key in shown { #expect(key.entry(in: keys) != nil, "\(key.place)") }
        }
        #expect(try example("device.yaml").contains { $0.isComment && $0.path == ["account", "token_command"] })
        #expect(
            try example("exchange.yaml").contains { $0.isComment && $0.path == ["push", "webhooks", "apns_topic"] })
    }

    /// What the examples set because they are examples, and the other choice that a comment shows.
    private static let settings: Set<[String]> = [
        ["account", "server"], ["account", "app_key"], ["account", "allow_plain_text"], ["device", "name"],
        ["listen"], ["plain_text"], ["web_phone"],
    ]

    @Test("The defaults that the examples show are those that are declared")
    func defaults() throws {
        var count = 0
        for (file, command) in [("device.yaml", "run"), ("exchange.yaml", "serve")] {
            let keys = try keys(command)
            for key in try example(file) where !Self.settings.contains(key.path) {
                guard let shown = key.value, case .value(let value)? = key.entry(in: keys)?.fallback else { continue }
                #expect(shown == value, "\(key.place)")
                count += 1
            }
        }
        #expect(count > 60)
    }
}
