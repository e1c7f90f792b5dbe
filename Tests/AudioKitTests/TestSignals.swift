import AudioKit
import Foundation
import TestSupport

/// A folder of its own for one test, removed with it.
final class ScratchFolder {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("audiokit-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func path(_ name: String) -> String { url.appendingPathComponent(name).path }

    func write(_ bytes: [UInt8], as name: String) throws -> String {
        try Data(bytes).write(to: URL(fileURLWithPath: path(name)))
        return path(name)
    }
}

enum TestSignal {
    static func tone(_ frequencyHz: Double, samples: Int, levelDBFS: Double = -12) -> [Int16] {
        var generator = ToneGenerator(frequencyHz: frequencyHz, levelDBFS: levelDBFS)
        var made = [Int16](repeating: 0, count: samples)
        var span = made.mutableSpan
        generator.fill(&span)
        return made
    }

    static func noise(samples: Int, amplitude: Int, seed: UInt64) -> [Int16] {
        var random = SeededGenerator(seed: seed)
        return (0..<samples).map { _ in Int16(Int.random(in: -amplitude...amplitude, using: &random)) }
    }
}

func rms(_ samples: some Collection<Int16>) -> Double {
    (samples.reduce(0.0) { $0 + Double($1) * Double($1) } / Double(max(1, samples.count))).squareRoot()
}

func read(_ path: String, block: Int = 960, loops: Bool = false, limit: Int = .max) throws -> [Int16] {
    var reader = try AudioFileReader(path: path, loops: loops)
    var all: [Int16] = []
    while all.count < limit {
        var frame = [Int16](repeating: 0, count: block)
        var span = frame.mutableSpan
        let count = try reader.read(into: &span)
        all.append(contentsOf: frame.prefix(count))
        if count < block { break }
    }
    return all
}

/// Builds WAV files of every form.
struct WAVBuilder {
    var tag: UInt16 = 1
    var channels: UInt16 = 1
    var rate: UInt32 = 48_000
    var bits: UInt16 = 16
    var isExtensible = false
    var before: [(id: String, body: [UInt8], isPadded: Bool)] = []
    var after: [UInt8] = []
    var claimedDataBytes: UInt32?
    var magic = "RIFF"

    func file(_ data: [UInt8]) -> [UInt8] {
        var body = Array("WAVE".utf8)
        for chunk in before {
            body += Array(chunk.id.utf8) + le(UInt32(chunk.body.count)) + chunk.body
            if chunk.isPadded, chunk.body.count % 2 == 1 { body.append(0) }
        }
        let block = channels * ((bits + 7) / 8)
        var format = le(isExtensible ? 0xFFFE : tag) + le(channels) + le(rate) + le(rate * UInt32(block)) + le(block)
        format += le(bits)
        if isExtensible {
            format += le(UInt16(22)) + le(bits) + le(UInt32(0)) + le(tag)
            format += [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71]
        }
        body += Array("fmt ".utf8) + le(UInt32(format.count)) + format
        body += Array("data".utf8) + le(claimedDataBytes ?? UInt32(data.count)) + data + after
        return Array(magic.utf8) + le(UInt32(body.count)) + body
    }
}

func le<Value: FixedWidthInteger>(_ value: Value) -> [UInt8] {
    (0..<Value.bitWidth / 8).map { UInt8(truncatingIfNeeded: value >> Value($0 * 8)) }
}
