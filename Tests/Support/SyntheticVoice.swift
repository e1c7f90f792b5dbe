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
}
