import Foundation
import Glibc
import Files
import Testing

@Suite("Regular files and folders for them", .timeLimit(.minutes(1)))
final class RegularFileTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "handset-\(UUID().uuidString)").path()

    init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) }
    deinit { try? FileManager.default.removeItem(atPath: folder) }

    private func path(_ name: String) -> String { "\(folder)/\(name)" }

    private func open(_ path: String, _ flags: Int32) -> RegularFileError? {
        do throws(RegularFileError) {
            _ = try RegularFile.open(path, flags)
            return nil
        } catch {
            return error
        }
    }

    @Test("A file is readable by all if its mode and those of its folders allow it, through any link")
    func readers() throws {
        #expect(mkdir(path("open"), 0o755) == 0 && chmod(folder, 0o755) == 0)
        #expect(FileManager.default.createFile(atPath: path("open/secret"), contents: nil))
        #expect(symlink(path("open/secret"), path("link")) == 0)
        // The folders above are the machine's: they may be closed to others.
        chmod(path("open/secret"), 0o644)
        let isReachable = RegularFile.isReadableByAll(path("open/secret"))
        try #require(isReachable, "the folder for temporary files is closed to others")
        #expect(RegularFile.isReadableByAll(path("link")) && !RegularFile.isReadableByAll(path("nothing")))
        for mode: mode_t in [0o600, 0o640, 0o660] {
            chmod(path("open/secret"), mode)
            #expect(!RegularFile.isReadableByAll(path("open/secret")) && !RegularFile.isReadableByAll(path("link")))
        }
        chmod(path("open/secret"), 0o644)
        for mode: mode_t in [0o700, 0o750, 0o754] {
            chmod(path("open"), mode)
            #expect(!RegularFile.isReadableByAll(path("open/secret")))
        }
    }

    private func makeFailure(_ path: String) -> RegularFileError? {
        do throws(RegularFileError) {
            try WritableFolder.make(path)
            return nil
        } catch {
            return error
        }
    }

    private func checkFailure(_ path: String) -> RegularFileError? {
        do throws(RegularFileError) {
            try WritableFolder.check(path)
            return nil
        } catch {
            return error
        }
    }

    @Test("Paths that lead to one place are known as the same, through links, also before a file is there")
    func places() throws {
        #expect(mkdir(path("folder"), 0o755) == 0)
        #expect(symlink("folder", path("way")) == 0 && symlink("folder/later", path("link")) == 0)
        func place(_ name: String) -> FilePlace { FilePlace(path: path(name)) }
        for isThere in [false, true] {
            if isThere {
                #expect(FileManager.default.createFile(atPath: path("folder/later"), contents: nil))
                #expect(link(path("folder/later"), path("hard")) == 0)
                #expect(place("hard") == place("link"))
            }
            for name in ["way/later", "./folder//later", "link", "folder/../link"] {
                #expect(place(name) == place("folder/later"), "\(name)")
            }
            #expect(place("later") != place("folder/later") && place("folder/latest") != place("folder/later"))
        }
        #expect(symlink("round", path("round")) == 0)
        #expect(place("round") == place("round") && place("round") != place("link"))
    }

    @Test("All but regular files are refused at once, and the error names the kind")
    func kinds() throws {
        #expect(mkfifo(path("pipe"), 0o600) == 0)
        let socket = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(socket) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array("\(path("s"))".utf8.prefix(107))) }
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        #expect(bound == 0)
        for flags in [O_RDONLY, O_WRONLY, O_RDWR | O_CREAT] {
            #expect(open(path("pipe"), flags)?.message == "it is a named pipe, not a regular file")
            #expect(open(path("s"), flags)?.message == "it is a socket, not a regular file")
            #expect(open("/dev/null", flags)?.message == "it is a device, not a regular file")
            #expect(open(folder, flags)?.message == "it is a folder, not a regular file")
        }
        #expect(open(path("nothing"), O_RDONLY)?.systemError == ENOENT)
        #expect(open(path("new"), O_WRONLY | O_CREAT) == nil)
        #expect(open(path("new"), O_RDONLY) == nil)
    }

    @Test("Links are followed unless the caller says otherwise, and lead to the same identity")
    func links() throws {
        #expect(open(path("file"), O_WRONLY | O_CREAT) == nil)
        #expect(symlink(path("file"), path("soft")) == 0)
        #expect(link(path("file"), path("hard")) == 0)
        #expect(open(path("soft"), O_RDONLY) == nil)
        #expect(open(path("soft"), O_RDONLY | O_NOFOLLOW)?.message == "it is a symbolic link, not a regular file")
        let identity = try #require(FileIdentity(path: path("file")))
        #expect(FileIdentity(path: path("soft")) == identity && FileIdentity(path: path("hard")) == identity)
        #expect(open(path("other"), O_WRONLY | O_CREAT) == nil)
        #expect(FileIdentity(path: path("other")) != identity)
        #expect(FileIdentity(path: path("nothing")) == nil)
    }

    @Test("A regular file has a size and a time of its last change; a link, a folder and nothing have none")
    func measure() throws {
        let file = path("measured")
        #expect(open(file, O_WRONLY | O_CREAT) == nil)
        #expect(truncate(file, 5_000_000_000) == 0)
        #expect(
            utimensat(AT_FDCWD, file, [timespec(tv_sec: 1, tv_nsec: 2), timespec(tv_sec: 7, tv_nsec: 500_000_000)], 0)
                == 0)
        let measure = try #require(FileMeasure(path: file))
        #expect(measure.bytes == 5_000_000_000 && measure.modified == 7.5)
        #expect(symlink(file, path("link")) == 0)
        for other in [path("link"), folder, path("nothing"), "/dev/null"] { #expect(FileMeasure(path: other) == nil) }
    }

    @Test("A folder is made with those above it, for its owner alone; finding out makes nothing")
    func makeFolder() throws {
        let deep = path("a/b/c/")
        #expect(checkFailure(deep) == nil)
        #expect(!FileManager.default.fileExists(atPath: path("a")))
        #expect(makeFailure(deep) == nil)
        #expect(makeFailure(deep) == nil)
        for name in ["a", "a/b", "a/b/c"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: path(name))
            #expect(attributes[.posixPermissions] as? Int == 0o700)
        }
    }

    @Test("A folder that is a file, lies under a file, or cannot be written to is refused")
    func noFolder() throws {
        #expect(open(path("file"), O_WRONLY | O_CREAT) == nil)
        for failure in [checkFailure, makeFailure] {
            #expect(failure(path("file"))?.message == "it is not a folder")
            #expect(failure(path("file/under")) != nil)
        }
        // Nobody makes folders here, not even root, who seems to have the right to.
        #expect(makeFailure("/proc/handset/recordings") != nil)
    }

    @Test("The parent of a path is the folder it is in")
    func parent() {
        for (path, parent) in [("a", "."), ("/a", "/"), ("a/b", "a"), ("a/b/", "a"), ("/", "/"), ("a//", ".")] {
            #expect(WritableFolder.parent(of: path) == parent)
        }
    }
}
