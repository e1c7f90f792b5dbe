internal import AudioKit
internal import ConfigReader

/// What an answered call does: one source of sound, and perhaps a recording.
public struct BehaviourConfiguration: Sendable, Equatable {
    /// Where the sound that the caller hears comes from.
    public enum Source: Sendable, Equatable {
        case silence
        case echo
        /// `levelDBFS` is the peak's.
        case tone(frequencyHz: Double, levelDBFS: Double)
        /// A WAV or Ogg Opus file.
        case file(path: String, loops: Bool)
        /// The sound card: its microphone is heard, and the caller is on its loudspeaker.
        case card
    }

    /// Where the sound that the caller hears comes from.
    public var source = Source.echo
    /// A folder in which each call's received audio is kept as a WAV named after its invite. It is made if it is missing.
    public var recordingFolder: String?

    /// Makes an echo.
    public init() {}

    private enum Kind: String, CaseIterable {
        case echo, play, tone, silence, card
    }

    init(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        let kind = section.enumeration("source", of: Kind.self, &problems) ?? .echo
        let file = section.path("file", readable: true, &problems)
        let loops = section.bool("loop", &problems) ?? false
        let frequency = section.number("frequency_hz", in: 20...20_000, &problems) ?? 440
        let level = section.number("level_dbfs", in: -96...0, &problems) ?? -12
        recordingFolder = section.outputFolder("record_folder", &problems)
        switch kind {
        case .echo: source = .echo
        case .silence: source = .silence
        case .card: source = .card
        case .tone: source = .tone(frequencyHz: frequency, levelDBFS: level)
        case .play:
            if let file {
                source = .file(path: file, loops: loops)
                Self.play(file, section, &problems)
            } else if !section.has("file") {
                problems.append(section.problem("file", "is required with source: play"))
            }
        }
        section.rejectUnknownKeys(
            known: ["source", "file", "loop", "frequency_hz", "level_dbfs", "record_folder"], &problems)
    }

    /// Reads the beginning of a file as a call would: one that cannot be played would fail every call.
    private static func play(_ file: String, _ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        guard section.fileChecks != .none else { return }
        do throws(AudioFileError) {
            var reader = try AudioFileReader(path: file)
            var block = [Int16](repeating: 0, count: 4_800)
            var room = block.mutableSpan
            _ = try reader.read(into: &room)
        } catch {
            problems.append(section.problem("file", "\(error)"))
        }
    }
}
