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

/// How a call is recorded.
public struct RecordingFormat: Sendable, Equatable {
    /// The kinds of files, by the names of configurations.
    public enum Container: String, CaseIterable, Sendable {
        /// 16 bits at 48 kHz: 96 kB a second for each channel.
        case wav
        /// Ogg Opus (RFC 7845): some 4 kB a second for each channel.
        case opus
    }

    /// The kind of file.
    public var container: Container
    /// 1: the peer. 2: the peer left, this side right, aligned to a frame.
    public var channels: Int

    /// Makes a format.
    public init(container: Container = .wav, channels: Int = 1) {
        self.container = container
        self.channels = channels
    }

    /// The ending of files' names.
    public var fileExtension: String { container.rawValue }
}
