import AudioKit
import Foundation
import Glibc
import Files
import Testing

@Suite struct WAVWriterTests {
    private let folder: ScratchFolder
    init() throws { folder = try ScratchFolder() }

    private func header(_ path: String) throws -> (header: WAVHeader, size: Int) {
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        return (try WAVHeader(parsing: bytes.span.bytes), bytes.count)
    }

    @Test("What is recorded is what is read back, mono and stereo")
    func roundTrip() throws {
        let noise = TestSignal.noise(samples: 50_001, amplitude: 32_767, seed: 1)
        var mono = try WAVWriter(path: folder.path("mono.wav"))
        for start in stride(from: 0, to: noise.count, by: 960) {
            try mono.append(noise.span.extracting(start..<min(start + 960, noise.count)))
        }
        try mono.finish()
        #expect(try read(folder.path("mono.wav")) == noise)
        #expect(abs(mono.savedMilliseconds - 50_001 / 48) < 0.001)

        var stereo = try WAVWriter(path: folder.path("stereo.wav"), channels: 2)
        let left: [Int16] = [100, 200, 300]
        let right: [Int16] = [300, 400]
        try stereo.append(left: left.span, right: right.span)
        try stereo.finish()
        #expect(try header(folder.path("stereo.wav")).header.channels == 2)
        #expect(try read(folder.path("stereo.wav")) == [200, 300, 150])
    }

    @Test("Whenever the process is killed, the file plays: it lacks less than a second, and claims only what is there")
    func alwaysValid() throws {
        let path = folder.path("live.wav")
        let frame = [Int16](repeating: 7, count: 960)
        var writer = try WAVWriter(path: path)
        #expect(try header(path).header.dataByteCount == nil)
        for index in 1...200 {
            try writer.append(frame.span)
            let (header, size) = try header(path)
            let claimed = header.dataByteCount ?? 0
            #expect(claimed <= size - 44)
            #expect(index * 1_920 - claimed < 96_000)
            if index % 20 == 0 { #expect(try read(path) == [Int16](repeating: 7, count: claimed / 2)) }
        }
    }

    @Test("A writer that is let go writes what it has gathered")
    func letGo() throws {
        let path = folder.path("dropped.wav")
        func record() throws {
            var writer = try WAVWriter(path: path)
            try writer.append([Int16](repeating: 9, count: 100).span)
        }
        try record()
        #expect(try read(path) == [Int16](repeating: 9, count: 100))
    }

    /// What goes wrong when a recording to `path` is begun; nil if nothing does.
    private func failure(_ path: String, sparing played: [FileIdentity] = []) -> AudioFileError? {
        do throws(AudioFileError) {
            _ = try WAVWriter(path: path, sparing: played)
            return nil
        } catch {
            return error
        }
    }

    @Test(
        "Only a regular file is recorded to: a device, a named pipe and a link are refused and left alone",
        .timeLimit(.minutes(1)))
    func noRegularFile() throws {
        #expect(failure("/dev/null")?.description.contains("it is a device") == true)
        #expect(mkfifo(folder.path("pipe.wav"), 0o600) == 0)
        #expect(failure(folder.path("pipe.wav"))?.description.contains("it is a named pipe") == true)
        try Data("precious".utf8).write(to: folder.url.appending(path: "precious"))
        #expect(symlink(folder.path("precious"), folder.path("link.wav")) == 0)
        #expect(failure(folder.path("link.wav"))?.description.contains("it is a symbolic link") == true)
        #expect(symlink(folder.path("nothing"), folder.path("dangling.wav")) == 0)
        #expect(failure(folder.path("dangling.wav"))?.code == .unwritable)
        #expect(!FileManager.default.fileExists(atPath: folder.path("nothing")))
        #expect(try Data(contentsOf: folder.url.appending(path: "precious")) == Data("precious".utf8))
    }

    @Test("A look at the place of a recording changes nothing there, and finds what would hinder it")
    func check() throws {
        let path = folder.path("earlier.wav")
        let before = Data("an earlier recording".utf8)
        #expect(
            FileManager.default.createFile(atPath: path, contents: before, attributes: [.posixPermissions: 0o640]))
        try WAVWriter.check(path: path)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o640)
        try WAVWriter.check(path: folder.path("new.wav"))
        #expect(!FileManager.default.fileExists(atPath: folder.path("new.wav")))
        let identity = try #require(FileIdentity(path: path))
        let places: [(String, [FileIdentity])] = [
            (path, [identity]), (folder.path("nowhere/new.wav"), []), ("/dev/null", []), (folder.url.path, []),
        ]
        for (path, played) in places {
            #expect(throws: AudioFileError.self) { try WAVWriter.check(path: path, sparing: played) }
        }
    }

    @Test("Only its owner can read a recording, regardless of the file's earlier mode, and it replaces a longer one")
    func mode() throws {
        func mode(_ path: String) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        }
        let path = folder.path("old.wav")
        #expect(
            FileManager.default.createFile(
                atPath: path, contents: Data(count: 9_999), attributes: [.posixPermissions: 0o644]))
        var writer = try WAVWriter(path: path)
        try writer.append([Int16](repeating: 5, count: 10).span)
        try writer.finish()
        #expect(try mode(path) == 0o600)
        #expect(try header(path).size == 64)
        _ = try WAVWriter(path: folder.path("new.wav"))
        #expect(try mode(folder.path("new.wav")) == 0o600)
    }

    @Test("A file that is played, or recorded to already, is not overwritten under any of its names")
    func inUse() throws {
        let path = folder.path("speech.wav")
        func write() throws {
            var writer = try WAVWriter(path: path)
            try writer.append([Int16](repeating: 5, count: 1_000).span)
            try writer.finish()
        }
        try write()
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(link(path, folder.path("hard.wav")) == 0)
        #expect(symlink(folder.url.path, folder.path("folder")) == 0)
        let identity = try AudioFileReader(path: path).identity
        let played = try #require(identity)
        for name in ["speech.wav", "hard.wav", "folder/speech.wav", "./hard.wav"] {
            let error = failure(folder.path(name), sparing: [played])
            #expect(error?.code == .inUse, "\(name)")
            #expect(error?.description.contains("it is the file that is played") == true)
        }
        var first = try WAVWriter(path: path)
        try first.append([Int16](repeating: 6, count: 12_000).span)
        #expect(failure(folder.path("hard.wav"))?.description.contains("another recording is written to it") == true)
        try first.finish()
        #expect(try read(path) == [Int16](repeating: 6, count: 12_000))
        #expect(before.count == 2_044)
    }

    @Test("A full disk is reported once, and what was saved before is intact")
    func fullLater() throws {
        // The limit stands for a full disk. It is far above what any other test writes.
        let limitBytes = 8 << 20
        var before = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &before)
        signal(SIGXFSZ, SIG_IGN)
        var lowered = before
        lowered.rlim_cur = rlim_t(limitBytes)
        setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &lowered)
        defer { setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &before) }

        let path = folder.path("full.wav")
        let tenSeconds = [Int16](repeating: 11, count: 480_000)
        var writer = try WAVWriter(path: path)
        var failures: [AudioFileError] = []
        for _ in 0..<10 {
            do throws(AudioFileError) { try writer.append(tenSeconds.span) } catch { failures.append(error) }
        }
        do throws(AudioFileError) { try writer.finish() } catch { failures.append(error) }
        #expect(failures.map(\.code) == [.full])
        let (header, size) = try header(path)
        #expect(size == limitBytes)
        #expect(header.dataByteCount == limitBytes - 44)
    }

    @Test("A missing folder and one that is not writable are distinguished")
    func cannotCreate() {
        #expect(failure(folder.path("no/such/folder.wav"))?.code == .notFound)
        #expect(failure(folder.url.path)?.code == .unwritable)
    }
}
