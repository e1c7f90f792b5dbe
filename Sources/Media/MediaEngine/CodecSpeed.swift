internal import AudioKit
internal import Realtime
internal import Core

/// Measures how fast this machine codes, to estimate how many calls it can carry before any call was measured.
enum CodecSpeed {
    /// Cost of a call besides coding, relative to coding: its jitter buffer, SRTP, system calls.
    private static let besidesCoding = 1.5
    private static let frames = 8

    /// The share of a core that a call takes which is encoded as the defaults say and protected against loss.
    ///
    /// Codes a few frames, which takes 2 ms on a desktop and 30 ms on a small board. The fastest frame counts, in
    /// CPU time, since others may have been interrupted.
    static func costOfCall() -> Double {
        var settings = EncoderSettings()
        settings.expectedLossPercent = 10
        do throws(OpusError) {
            var encoder = try OpusEncoder(settings: settings)
            var decoder = try OpusDecoder()
            let fastest = run(&encoder, &decoder, settings.frameDuration.samples)
            let period = Double(settings.frameDuration.rawValue) * 1e6
            return min(1, besidesCoding * Double(fastest) / period)
        } catch {
            // The first call will report what is wrong with libopus.
            return WorkerLoad().costOfCall
        }
    }

    /// Nanoseconds of the fastest frame.
    private static func run(_ encoder: inout OpusEncoder, _ decoder: inout OpusDecoder, _ count: Int) -> Int64 {
        var (samples, packet) = ([Int16](repeating: 0, count: count), [UInt8](repeating: 0, count: 1_275))
        var (fastest, noise) = (Int64.max, UInt32(1))
        for _ in 0..<frames {
            for index in samples.indices {
                noise = noise &* 1_664_525 &+ 1_013_904_223
                // A buzz of 200 Hz in noise: as much work as speech.
                samples[index] = Int16(truncatingIfNeeded: Int(noise >> 20)) + (index % 240 < 24 ? 8_000 : -800)
            }
            let start = MonotonicClock.threadCPUNanoseconds
            var room = packet.mutableSpan
            let length = encoder.encode(samples.span, into: &room)
            var sound = samples.mutableSpan
            if length > 0 { _ = unsafe decoder.decode(packet.span.bytes.extracting(0..<length), into: &sound) }
            fastest = min(fastest, MonotonicClock.threadCPUNanoseconds - start)
        }
        return fastest
    }
}
