import AudioKit
import Foundation
import Synchronization
import Realtime
import Testing

@testable import CallMedia
@testable import MediaEngine

@Suite("Recordings", .timeLimit(.minutes(1)))
struct RecordingWriterTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "handset-kept-\(UUID().uuidString)")

    init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

    private func path(_ name: String) -> String { folder.appending(path: name).path() }

    private static func tone(_ hertz: Double, _ count: Int) -> [Int16] {
        var tone = ToneGenerator(frequencyHz: hertz, levelDBFS: -12)
        var samples = [Int16](repeating: 0, count: count)
        var room = samples.mutableSpan
        tone.fill(&room)
        return samples
    }

    private static func power(_ samples: some Collection<Int16>) -> Double {
        samples.reduce(0) { $0 + Double($1) * Double($1) } / Double(max(1, samples.count))
    }

    /// Records in pieces of a frame, and of other lengths.
    private func record(_ path: String, _ format: RecordingFormat, _ heard: [Int16], _ said: [Int16]) throws {
        var writer = try RecordingWriter(path: path, format, sparing: [])
        var (start, length) = (0, 960)
        while start < heard.count {
            let end = min(heard.count, start + length)
            try writer.append(heard: heard.span.extracting(start..<end), said: said.span.extracting(start..<end))
            (start, length) = (end, length % 1_200 + 240)
        }
        let name = try writer.finish()
        #expect(name == path)
    }

    private static let formats = RecordingFormat.Container.allCases.flatMap { container in
        (1...2).map { RecordingFormat(container: container, channels: $0) }
    }

    @Test(
        "A recording has exactly the samples that it was given, regardless of its format, and its name when it is whole",
        arguments: formats)
    func length(format: RecordingFormat) throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let kept = path("kept.\(format.fileExtension)")
        let tone = Self.tone(500, 70_001)
        try record(kept, format, tone, tone)
        #expect(!FileManager.default.fileExists(atPath: PartFile.path(of: kept)))
        let read = try AudioFileReader.samples(ofFile: kept)
        #expect(read.count == tone.count)
        // It lies where it was, to some samples: the encoder's filters shift its phase a little.
        let difference = zip(read, tone).map { Int16(clamping: Int($0) - Int($1)) }
        #expect(Self.power(difference[4_800..<65_000]) < Self.power(tone) / 20)
    }

    @Test(
        "With two channels the peer is left and this side right, and nothing of one is in the other",
        arguments: RecordingFormat.Container.allCases)
    func channels(container: RecordingFormat.Container) throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let (tone, silence) = (Self.tone(500, 48_000), [Int16](repeating: 0, count: 48_000))
        let format = RecordingFormat(container: container, channels: 2)
        let (left, right) = (path("left.\(container.rawValue)"), path("right.\(container.rawValue)"))
        try record(left, format, tone, silence)
        try record(right, format, silence, tone)
        for (name, isLeft) in [(left, true), (right, false)] {
            let wav = try container == .wav ? Data(contentsOf: URL(fileURLWithPath: name)) : decoded(name)
            guard let wav else { continue }
            let samples = wav.dropFirst(44)
            var sides: [[Int16]] = [[], []]
            for (index, offset) in stride(from: samples.startIndex, to: samples.endIndex - 1, by: 2).enumerated() {
                sides[index % 2].append(Int16(bitPattern: UInt16(samples[offset]) | UInt16(samples[offset + 1]) << 8))
            }
            let (tonal, silent) = isLeft ? (sides[0], sides[1]) : (sides[1], sides[0])
            #expect(Self.power(tonal) > 0.9 * Self.power(tone), "\(name)")
            #expect(Self.power(silent) < 4, "\(name)")
        }
    }

    private static let opusTools = ["/usr/bin/opusdec", "/usr/bin/opusinfo"]

    /// What `opusdec` makes of a file; nil without that program.
    private func decoded(_ name: String) throws -> Data? {
        guard Self.opusTools.allSatisfy(FileManager.default.isExecutableFile) else { return nil }
        let output = path("decoded.wav")
        _ = try run(Self.opusTools[0], ["--quiet", "--no-dither", name, output])
        return try Data(contentsOf: URL(fileURLWithPath: output))
    }

    private func run(_ program: String, _ arguments: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(text)")
        return text
    }

    @Test(
        "opusinfo finds nothing wrong with an Ogg Opus recording",
        .enabled(if: opusTools.allSatisfy(FileManager.default.isExecutableFile)), arguments: 1...2)
    func opusinfo(channels: Int) throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let tone = Self.tone(500, 100_000)
        try record(path("kept.opus"), RecordingFormat(container: .opus, channels: channels), tone, tone)
        let text = try run(Self.opusTools[1], [path("kept.opus")])
        #expect(!text.lowercased().contains("warning") && !text.lowercased().contains("error"), "\(text)")
        #expect(text.contains("Channels:           \(channels)") || text.contains("Channels: \(channels)"), "\(text)")
        #expect(text.contains("0m:02.083s"), "\(text)")
    }

    @Test(
        "An Ogg Opus recording that is cut off anywhere plays up to its last whole page, half a second before at most")
    func cutOff() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let tone = Self.tone(500, 144_000)
        let format = RecordingFormat(container: .opus, channels: 2)
        var writer = try RecordingWriter(path: path("kept.opus"), format, sparing: [])
        try writer.append(heard: tone.span, said: tone.span)
        // What a killed process leaves.
        let part = PartFile.path(of: path("kept.opus"))
        #expect(try AudioFileReader.samples(ofFile: part).count >= tone.count - 24_000 - 960 - 312)
        try writer.finish()
        let whole = try Data(contentsOf: URL(fileURLWithPath: path("kept.opus")))
        // Before the first half second is on a page there is no sound, and libopusfile refuses the file.
        var (starts, place) = ([Int](), whole.startIndex)
        while let found = whole[place...].firstRange(of: Data("OggS".utf8)) {
            starts.append(found.lowerBound)
            place = found.upperBound
        }
        #expect(starts.count == 2 + 6 + 1)
        var longest = 0
        for length in stride(from: starts[3], to: whole.count, by: 97) {
            try whole.prefix(length).write(to: URL(fileURLWithPath: path("cut.opus")))
            let count = try AudioFileReader.samples(ofFile: path("cut.opus")).count
            #expect(count >= longest && count <= tone.count)
            longest = count
        }
        #expect(longest >= tone.count - 25_000)
    }

    @Test(
        "A file that another program creates under a recording's name stays, and the recording gets another name"
    )
    func nameTaken() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let kept = path("kept.wav")
        var writer = try RecordingWriter(path: kept, RecordingFormat(), sparing: [])
        let tone = Self.tone(500, 960)
        try writer.append(heard: tone.span, said: tone.span)
        try Data("theirs".utf8).write(to: URL(fileURLWithPath: kept))
        let name = try writer.finish()
        #expect(name == path("kept-2.wav"))
        #expect(try Data(contentsOf: URL(fileURLWithPath: kept)) == Data("theirs".utf8))
        #expect(try AudioFileReader.samples(ofFile: path("kept-2.wav")).count == 960)
    }

    @Test("Where recordings are kept, a finished one of the same name stays", arguments: formats)
    func keepsEarlier(format: RecordingFormat) throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let kept = path("kept.\(format.fileExtension)")
        let tone = Self.tone(500, 960)
        try record(kept, format, tone, tone)
        let first = try Data(contentsOf: URL(fileURLWithPath: kept))
        var writer = try RecordingWriter(path: kept, format, keepsEarlier: true, sparing: [])
        try writer.finish()
        #expect(try Data(contentsOf: URL(fileURLWithPath: kept)) == first)
        #expect(FileManager.default.fileExists(atPath: path("kept-2.\(format.fileExtension)")))
        try record(kept, format, [], [])
        #expect(try Data(contentsOf: URL(fileURLWithPath: kept)) != first)
    }

    @Test("A recording without a sample is a file that can be played", arguments: formats)
    func empty(format: RecordingFormat) throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let kept = path("kept.\(format.fileExtension)")
        try record(kept, format, [], [])
        #expect(try AudioFileReader.samples(ofFile: kept) == [])
    }

    @Test(
        "Sides of which one is late are joined again, with silence where it lacks, and a stop reports how much there is"
    )
    func lateSide() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let thread = try AudioFileThreads(.patient)
        let ends = Mutex<[RecordingEnd]>([])
        let reports = FileReports(
            onFailure: { Issue.record("\($0)") }, onRecordingEnd: { end in ends.withLock { $0.append(end) } })
        var files = try await thread.record(
            RecordingOrder(path: path("kept.wav"), RecordingFormat(channels: 2)), reports)
        let tone = Self.tone(500, 24_000)
        #expect(files.rings.recorder?.write(tone.span) == 24_000)
        files.rings.recorder?.close()
        files.rings.sentRecorder?.close()
        await withCheckedContinuation { done in thread.stop(files.ids) { done.resume() } }
        thread.finish()
        let end = try #require(ends.withLock { $0 }.first)
        #expect(ends.withLock { $0 }.count == 1)
        #expect(end.path == path("kept.wav") && end.duration == .milliseconds(500) && end.failure == nil)
        #expect(try AudioFileReader.samples(ofFile: path("kept.wav")).count == 24_000)
    }

    @Test(
        "A folder that goes away in mid-call is reported once, and the part of the recording that there is can be found"
    )
    func folderGone() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let gone = folder.appending(path: "gone")
        try FileManager.default.createDirectory(at: gone, withIntermediateDirectories: true)
        let thread = try AudioFileThreads(.patient)
        let failures = Mutex<[AudioFileError]>([])
        let ends = Mutex<[RecordingEnd]>([])
        let reports = FileReports(
            onFailure: { error in failures.withLock { $0.append(error) } },
            onRecordingEnd: { end in ends.withLock { $0.append(end) } })
        var files = try await thread.record(
            RecordingOrder(path: gone.appending(path: "kept.wav").path(), RecordingFormat()), reports)
        #expect(files.rings.recorder?.write(Self.tone(500, 24_000).span) == 24_000)
        try FileManager.default.removeItem(at: gone)
        await withCheckedContinuation { done in thread.stop(files.ids) { done.resume() } }
        thread.finish()
        #expect(failures.withLock { $0 }.map(\.code) == [.notFound])
        #expect(ends.withLock { $0 }.map { $0.failure?.code } == [.notFound])
    }
}
