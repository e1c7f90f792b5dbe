import ConfigReader
import Foundation
import Glibc
import Testing

@Suite("The folder of a file that is replaced as a whole")
struct FileFolderTests {
    private let place: String

    init() throws {
        place = FileManager.default.temporaryDirectory.path + "/handset-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: place + "/folder", withIntermediateDirectories: true)
    }

    private func path(_ name: String) -> String { "\(place)/\(name)" }

    private func remove() { try? FileManager.default.removeItem(atPath: place) }

    private func text(_ name: String) throws -> String { try String(contentsOfFile: path(name), encoding: .utf8) }

    @Test("A file is replaced in the folder that was opened, though its path has become a link to another folder")
    func swapped() throws {
        defer { remove() }
        try FileManager.default.createDirectory(atPath: path("victim"), withIntermediateDirectories: false)
        try "precious".write(toFile: path("victim/users.yaml"), atomically: true, encoding: .utf8)
        let folder = try FileFolder(of: path("folder/users.yaml"))
        try folder.lock(patience: 0)
        #expect(rename(path("folder"), path("away")) == 0)
        #expect(symlink(path("victim"), path("folder")) == 0)
        try folder.replace(path("folder/users.yaml"), with: Array("new".utf8))
        #expect(try text("victim/users.yaml") == "precious")
        #expect(try text("away/users.yaml") == "new")
        #expect(try FileManager.default.contentsOfDirectory(atPath: path("victim")) == ["users.yaml"])
    }

    @Test("It keeps the owner and mode of the old file, and takes those of no file to which another user's link leads")
    func modes() throws {
        defer { remove() }
        func mode(_ name: String) throws -> UInt32 {
            var status = stat()
            try #require(lstat(path(name), &status) == 0)
            return status.st_mode & 0o7777
        }
        let folder = try FileFolder(of: path("folder/users.yaml"))
        let file = path("folder/users.yaml")
        try folder.replace(file, with: [1])
        #expect(try mode("folder/users.yaml") == 0o600)
        #expect(chmod(file, 0o640) == 0)
        try folder.replace(file, with: [2])
        #expect(try mode("folder/users.yaml") == 0o640)
        try "open".write(toFile: path("open"), atomically: true, encoding: .utf8)
        #expect(chmod(path("open"), 0o666) == 0 && unlink(file) == 0 && symlink(path("open"), file) == 0)
        if geteuid() == 0, let user = getpwnam("daemon")?.pointee.pw_uid {
            #expect(lchown(file, user, gid_t.max) == 0)
            try folder.replace(file, with: [3])
            #expect(try mode("folder/users.yaml") == 0o600)
            #expect(try text("open") == "open")
        } else {
            try folder.replace(file, with: [3])
            #expect(try mode("folder/users.yaml") == 0o666)
        }
    }
}
