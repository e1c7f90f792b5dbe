// AudioKit: audio files and generated sound: WAV, Ogg Opus, tones, levels, resampling, likeness of recordings.

/// The one format that samples have inside Handset: mono, signed 16-bit, 48 000 a second.
public enum AudioFormat {
    /// Samples a second.
    public static let sampleRate = 48_000

    /// The number of samples that last `milliseconds`.
    public static func samples(milliseconds: Int) -> Int { milliseconds * sampleRate / 1_000 }

    /// The time that `samples` last, in milliseconds.
    public static func milliseconds(samples: Int) -> Double { Double(samples) * 1_000 / Double(sampleRate) }
}
