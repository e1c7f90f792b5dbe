import Foundation
import Testing

/// docs/contract.md says which tests prove each rule of the signaling contract, and where it is documented.
@Suite("The contract's page")
struct ContractTests {
    /// One row of the page's table.
    struct Row {
        /// Its ID.
        var rule: String
        var suites: [String]
        var page: String
    }

    /// How many rules there are of each kind.
    static let counts: KeyValuePairs = ["AUTH": 13, "DEV": 4, "CONN": 12, "INV": 17, "GRP": 3, "SIG": 1, "CALL": 8]

    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    static func rows() throws -> [Row] {
        let text = try String(contentsOf: root.appending(path: "docs/contract.md"), encoding: .utf8)
        return text.split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count == 4, let kind = cells[0].split(separator: "-").first,
                counts.contains(where: { $0.key == kind })
            else { return nil }
            let page = cells[3].split(separator: "(").last.map { String($0.dropLast()) } ?? ""
            return Row(
                rule: cells[0], suites: cells[2].split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) },
                page: page)
        }
    }

    @Test("Every rule of the contract has its row, and no other has")
    func allRulesAreThere() throws {
        let expected = Self.counts.flatMap { kind, count in (1...count).map { "\(kind)-\($0)" } }
        #expect(try Self.rows().map(\.rule) == expected)
    }

    @Test("Every rule has a test in each suite that its row names, with its ID in the test's name")
    func everyRuleIsTested() throws {
        var names: [String: String] = [:]
        for row in try Self.rows() {
            #expect(!row.suites.isEmpty, "\(row.rule) has no test")
            for suite in row.suites {
                let text = try names[suite] ?? Self.testNames(of: suite)
                names[suite] = text
                #expect(
                    text.firstMatch(of: try Regex("\\b\(row.rule)\\b(?!\\d)")) != nil,
                    "no test of \(suite) has \(row.rule) in its name")
            }
        }
    }

    @Test("Every rule is documented on a page, under a heading, that exist")
    func everyRuleIsDocumented() throws {
        for row in try Self.rows() {
            let parts = row.page.split(separator: "#").map(String.init)
            let page = try #require(parts.first, "\(row.rule) has no page")
            let file = Self.root.appending(path: "docs/\(page)")
            guard let text = try? String(contentsOf: file, encoding: .utf8) else {
                Issue.record("docs/\(page), which is to document \(row.rule), is not there")
                continue
            }
            guard parts.count > 1 else { continue }
            let anchors = text.split(separator: "\n").filter { $0.hasPrefix("#") }.map(Self.anchor)
            #expect(anchors.contains(parts[1]), "docs/\(page) has no heading for \(row.rule)")
        }
    }

    /// The names of a suite's tests: `@Test("…")` in Swift, and the first line under `def test_…` in Python.
    static func testNames(of suite: String) throws -> String {
        let folder = root.appending(path: "Tests/\(suite)")
        let files =
            (try? FileManager.default.subpathsOfDirectory(atPath: folder.path))?
            .filter { $0.hasSuffix(".swift") || $0.hasSuffix(".py") }
            ?? []
        return try files.map { file in
            let text = try String(contentsOf: folder.appending(path: file), encoding: .utf8)
            return text.matches(of: /@Test\(\s*"([^"]*)"|def test_\w+\([^)]*\)[^:]*:\s*"""([^"]*)"/)
                .map { String($0.1 ?? $0.2 ?? "") }.joined(separator: "\n")
        }.joined(separator: "\n")
    }

    /// How a heading is called in links: lower case, spaces as hyphens, other signs left out.
    static func anchor(_ heading: Substring) -> String {
        String(
            heading.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces).lowercased().compactMap {
                $0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" ? $0 : $0 == " " ? "-" : nil
            })
    }
}
