import AudioKit
import Foundation
import Testing

@testable import handset

@Suite("What an agent hears")
struct HeardTurnTests {
    private static let rate = 48_000

    /// A recorded voice of 1.4 s.
    private static func speech() throws -> [Int16] {
        try AudioFileReader.samples(ofFile: "/usr/share/sounds/alsa/Front_Center.wav")
    }

    private static func silence(_ seconds: Double) -> [Int16] {
        [Int16](repeating: 0, count: Int(seconds * Double(rate)))
    }

    @Test("A turn is complete when speech was followed by the pause, and the sound around the speech is recognised")
    func speechAndPause() throws {
        var turn = HeardTurn(rateHz: Self.rate, pause: .seconds(1))
        // Macros take no value that cannot be copied.
        turn.take(Self.silence(3))
        let isCompleteBefore = turn.isComplete
        let speech = try Self.speech()
        turn.take(speech)
        let isCompleteAtOnce = turn.isComplete
        turn.take(Self.silence(2))
        let (isComplete, seconds) = (turn.isComplete, turn.seconds)
        #expect(!isCompleteBefore && !isCompleteAtOnce && isComplete)
        let whole = 5 + Double(speech.count) / Double(Self.rate)
        #expect(abs(seconds - whole) < 0.01)
        let sound = turn.recognisable()
        let recognised = try #require(sound)
        let length = Double(recognised.count) / 16_000
        #expect(length > 1 && length < 3.2, "\(length)")
        #expect(recognised.contains { $0.magnitude > 1_000 })
    }

    @Test("Silence is not recognised; a tone, which is no speech, is")
    func noSpeech() throws {
        var turn = HeardTurn(rateHz: Self.rate, pause: .seconds(1))
        turn.take(Self.silence(2))
        let nothing = turn.recognisable()
        #expect(nothing == nil)
        var tone = HeardTurn(rateHz: Self.rate, pause: .seconds(1))
        tone.take((0..<Self.rate).map { Int16(8_000 * sin(2 * Double.pi * 700 * Double($0) / Double(Self.rate))) })
        tone.take(Self.silence(1))
        let sound = tone.recognisable()
        let samples = try #require(sound)
        #expect(samples.count == 32_000)
        // The silence after it has crossings of its own, of the resampler.
        let rises = zip(samples.prefix(15_800), samples.dropFirst()).count { $0 < 0 && $1 >= 0 }
        #expect((685...697).contains(rises), "\(rises)")
    }

    @Test("Of more than 120 s the newest are kept")
    func limit() throws {
        var turn = HeardTurn(rateHz: 8_000, pause: .seconds(1))
        for second in 0..<130 { turn.take([Int16](repeating: second < 5 ? 20_000 : 1_000, count: 8_000)) }
        let seconds = turn.seconds
        let sound = turn.recognisable()
        let samples = try #require(sound)
        #expect(seconds == 130)
        #expect(samples.count <= 120 * 16_000)
    }
}

@Suite("The file of a call that an agent hears")
struct CallEarTests {
    private static func folder() throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("ear-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder
    }

    @Test("The peer's channel is read while the file grows, and to its end when it has its name")
    func growing() throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("call.wav").path
        var writer = try WAVWriter(path: PartFile.path(of: path), channels: 2)
        let ear = try CallEar(path: path)
        #expect(try ear.read() == [])
        try writer.append(left: [1, 2, 3].span, right: [7, 8, 9].span)
        try writer.flush()
        #expect(try ear.read() == [1, 2, 3])
        #expect(ear.rateHz == 48_000)
        try writer.append(left: [4].span, right: [5].span)
        try writer.finish()
        _ = try PartFile.complete(path)
        #expect(try ear.read() == [4])
        #expect(try ear.read() == [])
    }

    @Test("Old sound is left out, and takes no room")
    func trimming() throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("call.wav").path
        var writer = try WAVWriter(path: PartFile.path(of: path), sampleRate: 8_000)
        for second in 0..<200 { try writer.append([Int16](repeating: Int16(second), count: 8_000).span) }
        try writer.flush()
        let ear = try CallEar(path: path)
        try ear.trim(toSeconds: 2)
        var heard: [Int16] = []
        while case let new = try ear.read(), !new.isEmpty { heard += new }
        #expect(heard.count == 16_000 && heard.first == 198 && heard.last == 199)
        var information = stat()
        #expect(stat(PartFile.path(of: path), &information) == 0)
        #expect(information.st_blocks * 512 < 400_000, "\(information.st_blocks)")
    }
}
