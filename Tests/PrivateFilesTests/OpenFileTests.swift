import Files
import Foundation
import Glibc
import Testing

@Suite("Open files", .timeLimit(.minutes(1)))
final class OpenFileTests {
    private let path = FileManager.default.temporaryDirectory.appending(path: "handset-\(UUID().uuidString)").path()

    deinit { unlink(path) }

    @Test(
        "A file of any length is read to its end, or refused if it is too long",
        arguments: [0, 1, 16_384, 40_000])
    func whole(count: Int) throws {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        try OpenFile(path, O_WRONLY | O_CREAT | O_TRUNC).write(bytes)
        #expect(try OpenFile(path, O_RDONLY).readAll(maximumBytes: count) == bytes)
        if count > 0 { #expect(try OpenFile(path, O_RDONLY).readAll(maximumBytes: count - 1) == nil) }
    }

    @Test("Bytes are written where they belong, and read behind what is there")
    func places() throws {
        let file = try OpenFile(path, O_RDWR | O_CREAT)
        #expect(file.write([1, 2, 3], at: 2).written == 3)
        var bytes = [UInt8](repeating: 9, count: 8)
        #expect(try file.read(into: &bytes, from: 1) == 5)
        #expect(bytes == [9, 0, 0, 1, 2, 3, 9, 9])
    }

    @Test("A file that cannot be opened or written has the system's error, with its text")
    func errors() throws {
        #expect(throws: SystemError(ENOENT)) { _ = try OpenFile("\(self.path)/none", O_RDONLY) }
        try OpenFile(path, O_WRONLY | O_CREAT).write([1])
        #expect(throws: SystemError(EBADF)) { try OpenFile(self.path, O_RDONLY).write([2]) }
        #expect("\(SystemError(ENOENT))" == "No such file or directory")
    }
}
