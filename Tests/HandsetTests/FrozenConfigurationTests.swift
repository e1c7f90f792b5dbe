import CallAgent
import ConfigReader
import ExchangeServer
import Foundation
import TestSupport
import Testing

@testable import handset

/// The keys of every kind of configuration, asked of `handset check`: what it says of a key that there is none of names
/// those that there are, and what it says of a key without a value is what the key must be.
private struct ConfigurationKeys {
    private(set) var lines: Set<String> = []
    private let folder: String
    private let command: String
    private let root: String

    private var file: String { "\(folder)/\(command).yaml" }

    private struct Step {
        var key: String
        var isList: Bool
    }

    /// A key that no section has, nor one like it.
    private static let unknown = "qqqqqqqqqq"

    /// - Parameter root: A key of the root that only this kind of file has.
    init(_ command: String, root: String, in folder: String) {
        self.command = command
        self.root = root
        self.folder = folder
    }

    mutating func explore() throws { try explore([]) }

    private func problems(of lines: [String], in path: [Step]) throws -> [ConfigProblem] {
        var text = ""
        var indent = ""
        var isInList = false
        for step in path {
            text += "\(isInList ? indent.dropLast(2) + "- " : indent[...])\(step.key):\n"
            indent += step.isList ? "    " : "  "
            isInList = step.isList
        }
        for (number, line) in lines.enumerated() {
            let isFirst = number == 0 && path.last?.isList == true
            text += (isFirst ? indent.dropLast(2) + "- " : indent[...]) + line + "\n"
        }
        if path.first?.key != root, path.isEmpty == false || lines.first?.hasPrefix(root + ":") != true {
            text = "\(root):\n" + text
        }
        try text.write(toFile: file, atomically: false, encoding: .utf8)
        return CheckResult(file, ConfigurationCheck(kinds: ConfigurationKind.all, files: .none)).problems
    }

    private mutating func explore(_ path: [Step]) throws {
        let place = path.map { $0.key + ($0.isList ? "[1]" : "") + "." }.joined()
        let said = try problems(of: [Self.unknown + ": 1"], in: path).first { $0.key == place + Self.unknown }
        let parts = said?.message.components(separatedBy: "this section has ") ?? []
        try #require(parts.count == 2, "\(command) \(place): \(said?.message ?? "nothing is said")")
        let keys = parts[1].components(separatedBy: ", ")
        for key in keys {
            func message(_ line: String) throws -> String? {
                try problems(of: [line], in: path).first { $0.key == place + key }?.message
            }
            let name = "\(command) \(place)\(key)".replacingOccurrences(of: "[1]", with: "[]")
            var kind = (try message("\(key):") ?? "no value").replacingOccurrences(of: "has no value; ", with: "")
            if kind.hasPrefix("must be a section") {
                kind = "a section"
                try explore(path + [Step(key: key, isList: false)])
            } else if kind.hasPrefix("must be a list of sections") {
                kind = "a list of sections"
                try explore(path + [Step(key: key, isList: true)])
            } else if kind == "must be text", let narrower = try message("\(key): x") {
                kind = "text; of x it says: " + narrower.replacingOccurrences(of: folder + "/", with: "")
            }
            lines.insert("\(name): \(kind)")
        }
    }
}

/// What a value has in it, down to what describes itself.
private func flatten(_ value: Any, _ path: String, into lines: inout Set<String>) {
    let mirror = Mirror(reflecting: value)
    if mirror.displayStyle == .optional {
        guard let inner = mirror.children.first?.value else {
            lines.insert("\(path) = none")
            return
        }
        return flatten(inner, path, into: &lines)
    }
    guard mirror.displayStyle == .struct, !(value is any CustomStringConvertible), !mirror.children.isEmpty else {
        // Cases in a list come with the names of their module, which nobody outside sees, and of their type.
        let text = "\(value)".replacing(#/\b[A-Z]\w*\.(?=[A-Z]\w*\.)/#, with: "")
        lines.insert("\(path) = \(text)".trimmingCharacters(in: .whitespaces))
        return
    }
    for child in mirror.children {
        let label = child.label ?? "?"
        // An exchange's configuration has the settings of its core under their own names, too.
        let isCore = value is ExchangeConfiguration && label == "core"
        flatten(child.value, isCore ? path : "\(path).\(label)", into: &lines)
    }
}

/// What is in files of operators, and in their scripts: Tests/Frozen.
struct FrozenConfigurationTests {
    private func folder() throws -> String {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("frozen-\(UUID())")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url.path
    }

    private func expect(_ present: Set<String>, are list: String) throws {
        let differences = try FrozenList(list).differences(from: present)
        #expect(differences.isEmpty, "\(differences.joined(separator: "\n"))")
    }

    @Test("Configuration keys keep their names, and take what they took")
    func keys() throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var present: Set<String> = []
        for (command, root) in [("run", "account"), ("serve", "apps"), ("user", "users"), ("loopback", "thresholds")] {
            var keys = ConfigurationKeys(command, root: root, in: folder)
            try keys.explore()
            present.formUnion(keys.lines)
        }
        try expect(present, are: "configuration")
    }

    @Test("What is not set in a configuration keeps its value")
    func defaults() throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var present: Set<String> = []
        let device = folder + "/device.yaml"
        try "account:\n  server: https://calls.example.org\n  app_key: a\n  anonymous: guest\n"
            .write(toFile: device, atomically: true, encoding: .utf8)
        flatten(try DeviceConfiguration.read(path: device, fileChecks: .none), "run", into: &present)
        let exchange = folder + "/exchange.yaml"
        let digest = String(repeating: "0", count: 64)
        try "listen: 127.0.0.1:8555\napps:\n  - key: a\n    secret_hash: \(digest)\nusers:\n  - id: alice\n"
            .write(toFile: exchange, atomically: true, encoding: .utf8)
        flatten(try ExchangeConfiguration.read(path: exchange, fileChecks: .none), "serve", into: &present)
        // What the test itself has set is left out.
        let given = ["run.account.", "serve.apps ", "serve.users "]
        try expect(present.filter { line in !given.contains { line.hasPrefix($0) } }, are: "configuration-defaults")
    }

    @Test("Exit codes keep their numbers and meanings")
    func exitCodes() throws {
        try expect(Set(ExitStatus.allCases.map { "\($0.rawValue) \($0)" }), are: "exit-codes")
    }

    @Test("Environment variables keep their names")
    func environment() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let files = try #require(
            FileManager.default.enumerator(at: root.appendingPathComponent("Sources"), includingPropertiesForKeys: nil))
        var present: Set<String> = []
        for case let file as URL in files where file.pathExtension == "swift" {
            let text = try String(contentsOf: file, encoding: .utf8)
            for match in text.matches(of: #/(?:getenv|environment|variable)\("([A-Z_]+)"\)/#) {
                present.insert(String(match.1))
            }
        }
        try expect(present, are: "environment")
    }
}
