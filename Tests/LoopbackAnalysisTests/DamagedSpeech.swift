import AudioKit
import Foundation
import TestSupport

/// What can happen to speech on its way, the same each time.
enum DamagedSpeech {
    /// Through Opus, 20 ms at a time; frames are lost at random, and concealed.
    static func opus(_ speech: [Int16], bitrate: Int, loss: Double = 0) throws -> [Int16] {
        var settings = EncoderSettings()
        settings.bitrateBps = bitrate
        settings.application = .voip
        settings.fec = false
        var encoder = try OpusEncoder(settings: settings)
        var decoder = try OpusDecoder()
        var random = SeededGenerator(seed: 4)
        var heard: [Int16] = []
        for start in stride(from: 0, to: speech.count - 959, by: 960) {
            var packet = [UInt8](repeating: 0, count: 1_275)
            var room = packet.mutableSpan
            let length = encoder.encode(speech.span.extracting(start..<start + 960), into: &room)
            var frame = [Int16](repeating: 0, count: 960)
            var samples = frame.mutableSpan
            if Double.random(in: 0..<1, using: &random) < loss {
                _ = decoder.conceal(samples: 960, into: &samples)
            } else {
                _ = decoder.decode(packet.span.bytes.extracting(0..<length), into: &samples)
            }
            heard += frame
        }
        return heard
    }

    /// Through G.711 at 8 kHz.
    static func aLaw(_ speech: [Int16]) -> [Int16] {
        let low = resampled(speech, from: 48_000, to: 8_000)
        var bytes = [UInt8](repeating: 0, count: low.count)
        var byteRoom = bytes.mutableSpan
        _ = G711.aLaw.encode(low.span, into: &byteRoom)
        var back = low
        var room = back.mutableSpan
        _ = G711.aLaw.decode(bytes.span, into: &room)
        return resampled(back, from: 8_000, to: 48_000)
    }

    private static func resampled(_ samples: [Int16], from: Int, to: Int) -> [Int16] {
        guard var resampler = Resampler(from: from, to: to, quality: 8) else { return [] }
        var made = [Int16](repeating: 0, count: samples.count * to / from + 960)
        var (taken, given) = (0, 0)
        while taken < samples.count, given < made.count {
            var room = made.mutableSpan
            let progress = resampler.process(samples.span.extracting(taken...), into: &room, at: given)
            guard progress.consumed + progress.produced > 0 else { break }
            taken += progress.consumed
            given += progress.produced
        }
        return Array(made.prefix(given))
    }

    /// White noise, so far below the speech where it sounds, which is at −26 dBFS.
    static func noise(_ speech: [Int16], decibels: Double) -> [Int16] {
        var random = SeededGenerator(seed: 5)
        let rms = 32_767 / 2.0.squareRoot() * pow(10, (-26 - decibels) / 20)
        return speech.map { clamped(Double($0) + rms * random.normal()) }
    }

    /// Silence of `length` ms in each `interval` ms.
    static func gaps(_ speech: [Int16], length: Int, each interval: Int) -> [Int16] {
        speech.indices.map { $0 / 48 % interval >= interval - length ? 0 : speech[$0] }
    }

    /// The delay changes by so many milliseconds at evenly spread places: longer repeats, shorter skips.
    static func jumps(_ speech: [Int16], _ changes: [Int]) -> [Int16] {
        var made: [Int16] = []
        var last = 0
        for (index, change) in changes.enumerated() {
            let place = speech.count * (index + 1) / (changes.count + 1)
            made += speech[last..<place]
            last = place - change * 48
        }
        return made + speech[last...]
    }

    /// Clipped so far below its peak.
    static func clipped(_ speech: [Int16], decibels: Double) -> [Int16] {
        let peak = Double(speech.map { abs(Int($0)) }.max() ?? 0) * pow(10, -decibels / 20)
        return speech.map { clamped(max(-peak, min(peak, Double($0)))) }
    }

    static func louder(_ speech: [Int16], decibels: Double) -> [Int16] {
        speech.map { clamped(Double($0) * pow(10, decibels / 20)) }
    }

    /// So much silence before it.
    static func later(_ speech: [Int16], samples: Int) -> [Int16] { [Int16](repeating: 0, count: samples) + speech }

    private static func clamped(_ value: Double) -> Int16 { Int16(max(-32_768, min(32_767, value.rounded()))) }
}
