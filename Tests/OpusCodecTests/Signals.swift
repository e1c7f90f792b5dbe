import AudioKit
import TestSupport

/// Signals and packets that the codec's tests work on.
enum Signals {
    /// Noise of all frequencies.
    static func noise(_ count: Int) -> [Int16] {
        var generator = SeededGenerator(seed: 9)
        return (0..<count).map { _ in Int16.random(in: -8_000...8_000, using: &generator) }
    }

    /// `pcm` encoded frame by frame.
    static func packets(_ pcm: [Int16], _ settings: EncoderSettings) throws -> [[UInt8]] {
        var encoder = try OpusEncoder(settings: settings)
        return stride(from: 0, to: pcm.count - encoder.frameSampleCount + 1, by: encoder.frameSampleCount).map {
            start in
            var packet = [UInt8](repeating: 0, count: 1_275)
            var room = packet.mutableSpan
            let length = encoder.encode(pcm.span.extracting(start..<(start + encoder.frameSampleCount)), into: &room)
            return Array(packet.prefix(max(length, 0)))
        }
    }

    /// Mean square difference.
    static func error(_ left: some Collection<Int16>, _ right: some Collection<Int16>) -> Double {
        zip(left, right).reduce(0.0) { $0 + (Double($1.0) - Double($1.1)) * (Double($1.0) - Double($1.1)) }
            / Double(max(left.count, 1))
    }
}
