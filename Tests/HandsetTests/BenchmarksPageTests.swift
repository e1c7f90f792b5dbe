import Foundation
import Testing

/// A figure on docs/benchmarks.md is worth something only with what it was measured of, on what and how often.
@Suite("The page of benchmarks")
struct BenchmarksPageTests {
    private struct Section {
        var title: String
        var lines: [String] = []

        /// A row of a table that has a number in a cell after its first.
        var hasFigures: Bool {
            lines.contains { line in
                let cells = line.hasPrefix("| ") ? line.split(separator: "|").dropFirst() : []
                return cells.contains { $0.contains(where: \.isNumber) }
            }
        }

        /// What the line "Measured: …" says, to the end of its paragraph.
        var provenance: [String] {
            var found: [String] = []
            var isOpen = false
            for line in lines {
                if line.isEmpty {
                    isOpen = false
                } else if line.hasPrefix("Measured: ") {
                    isOpen = true
                    found.append(line)
                } else if isOpen {
                    found[found.count - 1] += " " + line
                }
            }
            return found
        }
    }

    private static func sections() throws -> [Section] {
        let page = try String(contentsOf: ContractTests.root.appending(path: "docs/benchmarks.md"), encoding: .utf8)
        var sections: [Section] = []
        for line in page.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
            if line.hasPrefix("#") {
                sections.append(Section(title: line))
            } else if !sections.isEmpty {
                sections[sections.count - 1].lines.append(line)
            }
        }
        return sections
    }

    /// Reckoned from the figures of the section before.
    private static let reckoned = ["### Calls on a Raspberry Pi, on paper"]

    @Test("Every table of figures has a line that names commit, machine and rounds")
    func provenance() throws {
        let sections = try Self.sections().filter { $0.hasFigures && !Self.reckoned.contains($0.title) }
        #expect(sections.count >= 8)
        for section in sections {
            #expect(!section.provenance.isEmpty, "\(section.title)")
            for line in section.provenance {
                #expect(line.contains(/`[0-9a-f]{8}`/), "no commit in \(section.title): \(line)")
                #expect(line.contains("machine"), "no machine in \(section.title): \(line)")
                #expect(line.contains("round"), "no rounds in \(section.title): \(line)")
            }
        }
    }
}
