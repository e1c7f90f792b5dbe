internal import AudioKit

/// What callers hear in place of a program or bot that has failed: up to a minute, at 48 kHz.
public struct FallbackSound: Sendable {
    /// The most of a file that is kept, in samples: a minute.
    public static let capacity = 60 * 48_000
    /// At 48 kHz; at least one.
    public let samples: [Int16]

    /// A file cannot be used as a fallback.
    public struct Unusable: Error, Sendable, CustomStringConvertible {
        /// What is wrong with it, as a sentence without its full stop.
        public let description: String
    }

    /// Reads a WAV or Ogg Opus file.
    public init(path: String) throws(Unusable) {
        do throws(AudioFileError) {
            samples = try AudioFileReader.samples(ofFile: path, maximumSamples: Self.capacity)
        } catch {
            throw Unusable(description: "there is no fallback: \(error)")
        }
        guard !samples.isEmpty else { throw Unusable(description: "there is no fallback: \(path) has no sound") }
    }
}
