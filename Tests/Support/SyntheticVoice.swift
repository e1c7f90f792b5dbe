import Glibc

/// Sound for tests that behaves like speech: pitched, and swelling and fading as syllables do.
public enum SyntheticVoice {
    /// A voice of sorts: a rounded saw of gliding pitch, swelling and fading three times a second; 48 kHz.
    public static func samples(_ count: Int, pitchHz: Double = 130) -> [Int16] {
        var pitch = 0.0
        var swell = 0.0
        var smooth = (0.0, 0.0)
        return (0..<count).map { _ in
            swell = swell >= 1 ? swell - 1 : swell + 3.0 / 48_000
            let level = swell < 0.5 ? 2 * swell : 2 - 2 * swell
            pitch = pitch >= 1 ? pitch - 1 : pitch + (pitchHz + 30 * level) / 48_000
            smooth.0 += 0.25 * (2 * pitch - 1 - smooth.0)
            smooth.1 += 0.25 * (smooth.0 - smooth.1)
            return Int16(12_000 * smooth.1 * (0.2 + 0.8 * level))
        }
    }

    /// Syllables with pauses between them, each of other harmonics and noise, so that no part is like another; 48 kHz.
    public static func syllables(seconds: Double, seed: UInt64) -> [Int16] {
        var random = SeededGenerator(seed: seed)
        let count = Int(seconds * 48_000)
        var samples = [Int16](repeating: 0, count: count)
        var start = 0
        while start < count {
            let length = Int.random(in: 7_000...16_000, using: &random)
            let pitch = Double.random(in: 90...240, using: &random)
            let glide = Double.random(in: -0.3...0.3, using: &random)
            let weights = (1...20).map { Double.random(in: 0.1...1, using: &random) / Double($0) }
            for index in 0..<min(length, count - start) {
                let place = Double(index) / Double(length)
                let phase = 2 * Double.pi * pitch * (1 + glide * place / 2) * Double(index) / 48_000
                var value = Double.random(in: -0.2...0.2, using: &random)
                for (harmonic, weight) in weights.enumerated() { value += weight * sin(phase * Double(harmonic + 1)) }
                samples[start + index] = Int16(value * sin(Double.pi * place) * 5_000)
            }
            start += length + Int.random(in: 500...6_000, using: &random)
        }
        return samples
    }
}
