import Foundation
import AudioKit

/// Recorded speech, and its packets.
struct Speech {
    static let frameSamples = 960

    /// 48 kHz, one channel; a whole number of frames.
    var samples: [Int16]

    /// The WAV files (48 kHz, 16 bit, one channel) of a directory, in order of name, again and again.
    init(_ options: Options) throws {
        let directory = options.speech
        let names = try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
        var once: [Int16] = []
        for name in names where name.hasSuffix(".wav") && name != "Noise.wav" {
            let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: directory + "/" + name)))
            once += Self.samples(inWAV: bytes)
            once += [Int16](repeating: 0, count: options.pauseMilliseconds * 48)
        }
        guard !once.isEmpty else { throw SpeechError(description: "\(directory) holds no speech (*.wav)") }
        let wanted = options.seconds * 48_000 / Self.frameSamples * Self.frameSamples
        samples = (0..<wanted).map { once[$0 % once.count] }
    }

    /// One packet for each frame.
    func packets(expectedLossPercent: Int) throws -> [[UInt8]] {
        var settings = EncoderSettings()
        settings.fec = expectedLossPercent > 0
        settings.expectedLossPercent = expectedLossPercent
        var encoder = try OpusEncoder(settings: settings)
        return stride(from: 0, to: samples.count, by: Self.frameSamples).map { start in
            var packet = [UInt8](repeating: 0, count: 1_275)
            var room = packet.mutableSpan
            let length = encoder.encode(
                samples.span.extracting(start..<(start + Self.frameSamples)), into: &room)
            return Array(packet.prefix(max(length, 0)))
        }
    }

    /// The data chunk of a plain WAV file.
    private static func samples(inWAV bytes: [UInt8]) -> [Int16] {
        var offset = 12
        while offset + 8 <= bytes.count {
            let size = (0..<4).reduce(0) { $0 | Int(bytes[offset + 4 + $1]) << (8 * $1) }
            if bytes[offset..<(offset + 4)].elementsEqual("data".utf8) {
                let end = min(offset + 8 + size, bytes.count) - 1
                return stride(from: offset + 8, to: end, by: 2).map {
                    Int16(truncatingIfNeeded: Int(bytes[$0]) | Int(bytes[$0 + 1]) << 8)
                }
            }
            offset += 8 + size + size % 2
        }
        return []
    }
}

struct SpeechError: Error, CustomStringConvertible {
    var description: String
}
