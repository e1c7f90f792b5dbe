import LoopbackAnalysis
import TestSupport

@testable import VoiceActivity

/// Sounds for the tests, at 8 kHz unless said otherwise.
enum CallScene {
    /// Synthetic sentences at 48 kHz with pauses of half a second, brought to `rateHz`.
    static func speech(seed: UInt64, seconds: Double, levelDBFS: Double = -26, rateHz: Int = 8_000) -> [Int16] {
        var speaker = SyntheticSpeech(seed: seed, levelDBFS: levelDBFS)
        return resampled(speaker.samples(seconds: seconds), rateHz)
    }

    static func resampled(_ samples: [Int16], _ rateHz: Int) -> [Int16] {
        let ratio = 48_000 / rateHz
        guard ratio > 1 else { return samples }
        // Twice the mean of `ratio` samples: what aliases is far below the voice.
        let once = averaged(samples, ratio)
        return stride(from: 0, through: once.count - ratio, by: ratio).map { start in
            Int16(once[start..<start + ratio].reduce(0) { $0 + Int($1) } / ratio)
        }
    }

    private static func averaged(_ samples: [Int16], _ span: Int) -> [Int16] {
        var sum = 0
        return samples.indices.map { index in
            sum += Int(samples[index]) - (index >= span ? Int(samples[index - span]) : 0)
            return Int16(sum / span)
        }
    }

    /// White noise.
    static func noise(seed: UInt64, count: Int, amplitude: Int) -> [Int16] {
        var random = SeededGenerator(seed: seed)
        return (0..<count).map { _ in Int16.random(in: Int16(-amplitude)...Int16(amplitude), using: &random) }
    }

    static func sum(_ first: [Int16], _ second: [Int16], at offset: Int = 0, dividedBy divisor: Int = 1) -> [Int16] {
        var result = first
        for index in second.indices where index + offset < result.count {
            let value = Int(result[index + offset]) + Int(second[index]) / divisor
            result[index + offset] = Int16(max(-32_768, min(32_767, value)))
        }
        return result
    }

    /// All events of `heard`, in frames of `frame` samples; what remains at the end is left out.
    static func events(_ heard: [Int16], said: [Int16] = [], rateHz: Int = 8_000, frame: Int) -> [VoiceEvent] {
        var voice = VoiceActivity(rateHz: rateHz)
        var result: [VoiceEvent] = []
        for start in stride(from: 0, through: heard.count - frame, by: frame) {
            let received = heard.span.extracting(start..<start + frame)
            let from = min(start, said.count)
            let found = voice.take(received, sent: said.span.extracting(from..<min(start + frame, said.count)))
            for index in 0..<found.count { result.append(found[index]) }
        }
        return result
    }

    /// Where speech begins after at least 0.3 s of silence: 10 ms within 22 dB of full level, as Benchmarks/Voice has it.
    static func onsets(_ speech: [Int16], rateHz: Int = 8_000) -> [Int] {
        let step = rateHz / 100
        let powers = stride(from: 0, through: speech.count - step, by: step).map { start in
            speech[start..<start + step].reduce(0.0) { $0 + Double($1) * Double($1) } / Double(step)
        }
        let active = powers.filter { $0 > (powers.max() ?? 0) * 1e-3 }
        let threshold = active.reduce(0, +) / Double(max(1, active.count)) * 0.006_3
        var quiet = 30
        var result: [Int] = []
        for (index, power) in powers.enumerated() {
            if power > threshold {
                if quiet >= 30 { result.append(index * step) }
                quiet = 0
            } else {
                quiet += 1
            }
        }
        return result
    }
}

/// Nearest rank.
func percentile(_ values: [Int], _ percent: Int) -> Int {
    let sorted = values.sorted()
    return sorted.isEmpty ? .max : sorted[max(0, (sorted.count * percent + 99) / 100 - 1)]
}
