import Foundation
import Testing

/// docs/extending.md lists the files that an extension changes, for readers who follow it line by line.
@Suite("The page on extending Handset")
struct ExtendingPageTests {
    private static func page() throws -> String {
        try String(contentsOf: ContractTests.root.appending(path: "docs/extending.md"), encoding: .utf8)
    }

    @Test("Every file and folder that docs/extending.md names exists")
    func namesExist() throws {
        let path = #/`([.A-Za-z]+/[^`\s]+|[A-Za-z+]+\.(?:md|swift))`/#
        let names = Set(try Self.page().matches(of: path).map { String($0.1) })
        #expect(names.count > 100)
        for name in names {
            let isThere = FileManager.default.fileExists(atPath: ContractTests.root.appending(path: name).path)
            #expect(isThere, "docs/extending.md names \(name)")
        }
    }

    /// Each section's title, and what only those source files contain that use its example.
    private static let examples: [(title: String, marks: [String])] = [
        ("A codec", ["pcma"]), ("A signaling service", ["HandsetService"]),
        ("A wire of voice bots", ["JambonzWire"]),
        ("A behaviour", [".exec:", ".exec(", ".program:", "== .program"]),
        ("A control command", [".mute(", ".mute,", ".mute:"]),
    ]

    @Test("Each section of docs/extending.md names every source file that uses its example, or the file's folder")
    func sectionsAreComplete() throws {
        let sections = try Self.page().components(separatedBy: "\n## ")
        let folder = ContractTests.root.appending(path: "Sources").path
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder).filter { $0.hasSuffix(".swift") }
        let sources: [(path: String, text: String)] = try files.map { file in
            (path: "Sources/\(file)", text: try String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8))
        }
        for (title, marks) in Self.examples {
            let found = sections.first { $0.hasPrefix("\(title)\n") }
            let section = try #require(found, "there is no section \(title)")
            let users = sources.filter { source in marks.contains { source.text.contains($0) } }.map { $0.path }
            #expect(users.count >= 4, "\(title)")
            for user in users {
                let parent = user[..<(user.lastIndex(of: "/") ?? user.startIndex)]
                let isNamed = section.contains("`\(user)`") || section.contains("`\(parent)`")
                #expect(isNamed, "\(title): \(user) is not named")
            }
        }
    }
}
