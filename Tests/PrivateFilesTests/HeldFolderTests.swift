import Foundation
import Glibc
import Files
import Testing

@Suite("A folder that root uses, and others may write to")
struct HeldFolderTests {
    private static let isRoot = geteuid() == 0
    /// A user and a group of every Debian.
    private static let other = "daemon"

    private let place: String

    init() throws {
        // In /tmp as the system has it, without links.
        place = "/tmp/handset-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: place, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
    }

    private func path(_ name: String) -> String { "\(place)/\(name)" }

    private func remove() { try? FileManager.default.removeItem(atPath: place) }

    private func status(_ name: String) throws -> (mode: UInt32, user: UInt32, group: UInt32) {
        var status = stat()
        try #require(lstat(path(name), &status) == 0, "\(name)")
        return (status.st_mode & 0o7777, status.st_uid, status.st_gid)
    }

    private func failure(_ act: () throws(PrivateFileError) -> Void) -> String? {
        do throws(PrivateFileError) {
            try act()
            return nil
        } catch {
            return "\(error)"
        }
    }

    @Test("It and those above it get the requested rights, regardless of the process's mask")
    func rights() throws {
        defer { remove() }
        let folder = try HeldFolder(making: path("a/b/./c/"), mode: 0o750, parents: 0o755)
        for (name, mode) in [("a", 0o755), ("a/b", 0o755), ("a/b/c", 0o750)] {
            #expect(try status(name).mode == UInt32(mode), "\(name)")
        }
        try folder.replace("file", with: Array("one".utf8))
        try folder.replace("file", with: Array("two".utf8), for: .group("no-such-group"))
        try folder.replace("key", with: [1], for: .user("no-such-user"))
        #expect(try status("a/b/c/file").mode == 0o600 && status("a/b/c/key").mode == 0o600)
        #expect(
            try folder.read("file", maximumBytes: 3) == Array("two".utf8) && folder.read("none", maximumBytes: 1) == nil
        )
        #expect(failure { () throws(PrivateFileError) in _ = try folder.read("file", maximumBytes: 2) } != nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: path("a/b/c")).sorted() == ["file", "key"])
        #expect(folder.exposed == [])
    }

    @Test("It names the folders that it made, and removes files and empty folders, but no full ones")
    func removing() throws {
        defer { remove() }
        let outer = try HeldFolder(making: path("a"))
        let inner = try HeldFolder(making: path("a/b/c"))
        #expect(outer.made == [path("a")] && inner.made == [path("a/b"), path("a/b/c")])
        #expect(try HeldFolder(making: path("a/b/c")).made == [])
        try inner.replace("file", with: [1])
        let middle = try HeldFolder(making: path("a/b"))
        #expect(failure { () throws(PrivateFileError) in try middle.removeFolder("c") }?.contains("not empty") == true)
        try inner.remove("file")
        try inner.remove("file")
        try middle.removeFolder("c")
        #expect(try FileManager.default.contentsOfDirectory(atPath: path("a/b")) == [])
    }

    @Test("A file has its owner and its rights before it has its name, and a folder is given away once")
    func owners() throws {
        defer { remove() }
        guard Self.isRoot, let user = getpwnam(Self.other)?.pointee, let group = getgrnam(Self.other)?.pointee.gr_gid
        else { return }
        let folder = try HeldFolder(making: path("state"))
        try folder.replace("shared", with: [1], for: .group(Self.other))
        try folder.replace("key", with: [1], for: .user(Self.other))
        #expect(try status("state/shared") == (0o640, 0, group))
        #expect(try status("state/key") == (0o600, user.pw_uid, user.pw_gid))
        try folder.hand(toUser: "no-such-user")
        #expect(try status("state").user == 0)
        try folder.hand(toUser: Self.other)
        #expect(try status("state") == (0o700, user.pw_uid, user.pw_gid))
        try folder.hand(toUser: "bin")
        #expect(try status("state").user == user.pw_uid)
    }

    @Test("What is done reaches the folder that was opened, though its path leads elsewhere by then")
    func swapped() throws {
        defer { remove() }
        let victim = try HeldFolder(making: path("victim"))
        try victim.replace("token", with: Array("own".utf8))
        let folder = try HeldFolder(making: path("folder"))
        #expect(rename(path("folder"), path("away")) == 0)
        #expect(symlink(path("victim"), path("folder")) == 0)
        try folder.replace("token", with: Array("new".utf8), for: .group(Self.other))
        try folder.hand(toUser: Self.other)
        #expect(try victim.read("token", maximumBytes: 8) == Array("own".utf8))
        #expect(try status("victim/token").mode == 0o600 && status("victim").user == geteuid())
        #expect(try status("away/token").mode == (Self.isRoot ? 0o640 : 0o600))
    }

    @Test("A link of another user on its path is refused; one of root's or of this process's user is followed")
    func links() throws {
        defer { remove() }
        _ = try HeldFolder(making: path("real/deep"))
        #expect(symlink("real", path("own")) == 0 && symlink(path("real"), path("absolute")) == 0)
        #expect(symlink("round", path("round")) == 0)
        for link in ["own", "absolute", "own/../absolute"] {
            let folder = try HeldFolder(making: path("\(link)/deep"))
            try folder.replace(link.split(separator: "/").joined(), with: [1])
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: path("real/deep")).count == 3)
        #expect(failure { () throws(PrivateFileError) in _ = try HeldFolder(making: path("round/deep")) } != nil)
        guard Self.isRoot, let user = getpwnam(Self.other)?.pointee.pw_uid else { return }
        #expect(symlink(path("real"), path("others")) == 0 && lchown(path("others"), user, gid_t.max) == 0)
        for end in ["others", "others/deep", "others/new"] {
            let why = failure { () throws(PrivateFileError) in _ = try HeldFolder(making: path(end)) }
            #expect(why?.contains("symbolic link of the user \(Self.other)") == true, "\(why ?? "none")")
        }
        #expect(access(path("real/new"), F_OK) != 0)
    }

    @Test("A file that is a link is not read, and is replaced as a link")
    func linkedFile() throws {
        defer { remove() }
        let folder = try HeldFolder(making: path("folder"))
        try folder.replace("secret", with: Array("root's".utf8))
        #expect(symlink("secret", path("folder/token")) == 0 && symlink("secret", path("folder/token.new")) == 0)
        let why = failure { () throws(PrivateFileError) in _ = try folder.read("token", maximumBytes: 64) }
        #expect(why?.contains("it is a symbolic link, not a regular file") == true, "\(why ?? "none")")
        try folder.replace("token", with: Array("new".utf8), for: .group(Self.other))
        #expect(try folder.read("secret", maximumBytes: 64) == Array("root's".utf8))
        #expect(try status("folder/secret").mode == 0o600)
        #expect(try folder.read("token", maximumBytes: 64) == Array("new".utf8))
    }

    @Test("A file that has another name elsewhere is not read, and is replaced under its name here alone")
    func secondName() throws {
        defer { remove() }
        let victim = try HeldFolder(making: path("victim"))
        try victim.replace("secret", with: Array("root's".utf8))
        let folder = try HeldFolder(making: path("folder"))
        #expect(link(path("victim/secret"), path("folder/token")) == 0)
        let why = failure { () throws(PrivateFileError) in _ = try folder.read("token", maximumBytes: 64) }
        #expect(why?.contains("it has a second name") == true, "\(why ?? "none")")
        try folder.replace("token", with: Array("new".utf8), for: .group(Self.other))
        #expect(try victim.read("secret", maximumBytes: 64) == Array("root's".utf8))
        #expect(try status("victim/secret").mode == 0o600)
        #expect(try folder.read("token", maximumBytes: 64) == Array("new".utf8))
    }

    @Test(
        "Folders in which others may replace entries are named: those that others own or may write to, unless they are sticky",
        arguments: [
            (0o755, false), (0o775, true), (0o757, true), (0o1777, false), (0o700, false),
        ])
    func exposed(mode: Int, isExposed: Bool) throws {
        defer { remove() }
        _ = try HeldFolder(making: path("above/folder"))
        // A group of this process's own is no other.
        if Self.isRoot, let group = getgrnam(Self.other)?.pointee.gr_gid {
            #expect(chown(path("above"), uid_t.max, group) == 0)
        } else if mode == 0o775 {
            return
        }
        #expect(chmod(path("above"), mode_t(mode)) == 0)
        #expect(try HeldFolder(making: path("above/folder")).exposed == (isExposed ? [path("above")] : []))
        // Of the last one the entries are the files that are written there.
        #expect(try HeldFolder(making: path("above")).exposed == (mode & 0o022 != 0 ? [path("above")] : []))
    }
}
