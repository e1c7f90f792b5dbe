import Foundation
import Files
import Testing

@Suite("Private files")
struct PrivateFileTests {
    private let folder: String

    init() throws {
        folder = FileManager.default.temporaryDirectory.path + "/handset-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    private func mode(_ path: String) throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
    }

    @Test("AUTH-10: A file is replaced whole, and only its owner may read it, regardless of what it was before")
    func replacing() throws {
        let path = folder + "/session"
        #expect(try PrivateFile.read(path) == nil)
        _ = FileManager.default.createFile(
            atPath: path, contents: Data("old".utf8), attributes: [.posixPermissions: 0o644])
        _ = FileManager.default.createFile(atPath: path + ".new", contents: nil, attributes: [.posixPermissions: 0o666])
        try PrivateFile.replace(path, with: Array("new".utf8))
        #expect(try PrivateFile.read(path) == Array("new".utf8))
        #expect(try mode(path) == 0o600)
        #expect(!FileManager.default.fileExists(atPath: path + ".new"))
        try PrivateFile.remove(path)
        try PrivateFile.remove(path)
        #expect(try PrivateFile.read(path) == nil)
    }

    @Test("A lock is one holder's at a time, and ends with it; its file stays and is its owner's alone")
    func locks() throws {
        let path = folder + "/session.lock"
        do {
            let lock = try LockFile(path)
            do throws(PrivateFileError) {
                _ = try LockFile(path)
                Issue.record("it was locked twice")
            } catch {
                #expect("\(error)" == "cannot lock \"\(path)\": another process has locked it.")
            }
            withExtendedLifetime(lock) {}
        }
        _ = try LockFile(path)
        #expect(try mode(path) == 0o600)
    }

    @Test("An error names the file, what was done with it, and what to do about it")
    func errors() throws {
        do throws(PrivateFileError) {
            try PrivateFile.replace(folder + "/none/session", with: [1])
            Issue.record("it was written")
        } catch {
            #expect("\(error)".hasPrefix("cannot write \"\(folder)/none/session"))
            #expect("\(error)".hasSuffix("Make its folder first."))
        }
    }

    @Test("A journal drops expired lines from all its files, and continues")
    func prune() throws {
        let path = folder + "/pruned"
        let journal = try LineJournal(path: path, maximumBytes: 40, keptFiles: 2)
        for number in 0..<9 { try journal.append(["line \(number) 4567"]) }
        try journal.prune { $0 != "line 7 4567" && $0 > "line 3" }
        #expect(try journal.lines() == [3, 4, 5, 6, 8].map { "line \($0) 4567" })
        #expect(!FileManager.default.fileExists(atPath: path + ".2"))
        #expect(try mode(path) == 0o600)
        try journal.prune { _ in false }
        try journal.append(["new"])
        #expect(try journal.lines() == ["new"])
    }

    @Test("A journal keeps its lines in order, cuts off what a crash left unfinished, and is bounded")
    func journal() throws {
        let path = folder + "/calls"
        let journal = try LineJournal(path: path, maximumBytes: 40, keptFiles: 2)
        #expect(try mode(path) == 0o600)
        for number in 0..<10 { try journal.append(["line \(number) 4567"]) }
        // Each file takes three lines of 12 bytes; the newest has one, and two older ones are kept.
        #expect(try journal.lines() == (3..<10).map { "line \($0) 4567" })
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == ["calls", "calls.1", "calls.2"])

        let file = try #require(FileHandle(forWritingAtPath: path))
        try file.seekToEnd()
        try file.write(contentsOf: Data("half a li".utf8))
        try file.close()
        let again = try LineJournal(path: path, maximumBytes: 40, keptFiles: 2)
        try again.append(["whole"])
        #expect(try again.lines().suffix(2) == ["line 9 4567", "whole"])
        try again.clear()
        #expect(try again.lines() == [])
    }
}
