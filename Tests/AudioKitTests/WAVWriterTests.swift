import AudioKit
import Foundation
import Glibc
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

    @Test("A full disk is told when the recording is created")
    func fullAtOnce() {
        do throws(AudioFileError) {
            _ = try WAVWriter(path: "/dev/full")
            Issue.record("a full disk was not noticed")
        } catch {
            #expect(error.code == .full)
            #expect(error.description.contains("No space left on device"))
        }
    }

    @Test("Space that runs out is told once, and what was saved before is intact")
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

    @Test("A folder that is not there and one that may not be written to are told apart")
    func cannotCreate() {
        func code(_ path: String) -> AudioFileError.Code? {
            do throws(AudioFileError) {
                _ = try WAVWriter(path: path)
                return nil
            } catch {
                return error.code
            }
        }
        #expect(code(folder.path("no/such/folder.wav")) == .notFound)
        #expect(code(folder.url.path) == .unwritable)
    }
}
