import Foundation
import Testing

@testable import ConfigReader

@Suite("Files that a configuration names")
final class FileChecksTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "handset-\(UUID().uuidString)").path()

    init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) }
    deinit { try? FileManager.default.removeItem(atPath: folder) }

    private func problems(
        _ text: String, _ checks: FileChecks, _ read: (ConfigSection, inout [ConfigProblem]) -> Void
    ) throws -> [String] {
        let path = "\(folder)/handset.yaml"
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        let section = try ConfigDocument.read(path: path, fileChecks: checks, environment: { _ in nil })
        var problems: [ConfigProblem] = []
        read(section, &problems)
        return problems.map(\.description)
    }

    @Test("A file to be read must be a regular file, unless the configuration is another machine's")
    func inputs() throws {
        #expect(mkfifo("\(folder)/pipe", 0o600) == 0)
        func read(_ name: String, _ checks: FileChecks) throws -> [String] {
            try problems("key_file: \(name)\n", checks) { section, problems in
                _ = section.path("key_file", readable: true, &problems)
                _ = section.secret("key", required: true, &problems)
            }
        }
        for checks in [FileChecks.inputs, .all] {
            for (name, kind) in [("pipe", "named pipe"), (".", "folder"), ("/dev/null", "device")] {
                let found = try read(name, checks)
                #expect(found.count == 2 && found.allSatisfy { $0.contains("it is a \(kind)") }, "\(found)")
            }
            #expect(try read("nothing", checks).count == 2)
        }
        for name in ["pipe", ".", "nothing"] { #expect(try read(name, .none).isEmpty) }
    }

    @Test("What is written to is looked at only by who asks for everything, and nothing is made")
    func outputs() throws {
        try "text".write(toFile: "\(folder)/file", atomically: true, encoding: .utf8)
        func read(_ path: String, _ checks: FileChecks) throws -> [String] {
            try problems("file: \(path)\nfolder: \(path)\nsocket: \(path)\n", checks) { section, problems in
                #expect(section.outputFile("file", &problems) != nil || checks == .all)
                #expect(section.outputFolder("folder", &problems) != nil || checks == .all)
                #expect(section.outputSocket("socket", &problems) != nil || checks == .all)
            }.map { String($0.split(separator: " ")[1].dropLast()) }
        }
        for (path, wrong) in [
            ("file", ["folder", "socket"]), ("new", []), ("new/new", ["file"]), ("new/new/new", ["file", "socket"]),
            ("file/new", ["file", "folder", "socket"]),
        ] {
            #expect(try read(path, .all) == wrong, "\(path)")
            #expect(try read(path, .inputs).isEmpty && read(path, .none).isEmpty)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == ["file", "handset.yaml"])
    }

    @Test("A program is looked for in the PATH, or at its path")
    func programs() throws {
        func read(_ program: String, _ checks: FileChecks) throws -> Int {
            try problems("command: [\(program), argument]\n", checks) { section, problems in
                #expect(section.command("command", &problems) == [program, "argument"])
            }.count
        }
        #expect(try read("sh", .all) == 0 && read("/bin/sh", .all) == 0)
        #expect(try read("no-such-program", .all) == 1 && read("/etc/passwd", .all) == 1)
        // Folders may be entered, which is the same right.
        #expect(try read("/tmp", .all) == 1 && read(".", .all) == 1 && read("bin", .all) == 1)
        #expect(try read("no-such-program", .inputs) == 0)
    }
}
