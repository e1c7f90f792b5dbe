internal import AudioKit
internal import BlockingWork
public import CallFlow
internal import CallPrograms
internal import Files
internal import Synchronization

/// Speaks texts by a command, such as a speech synthesiser: the text on its standard input, a WAV on its standard output.
///
/// What was spoken is kept by command and text, so that a menu is spoken once.
final class FlowVoice: Sendable {
    /// The threads on which commands run: as many at once as a small computer has cores.
    static let threads = BlockingThreads(name: "voices", most: 4)
    /// A command that takes longer is killed.
    static let timeout = Duration.seconds(15)
    /// What a command may write: six minutes at 22.05 kHz.
    static let mostBytes = 16 << 20
    /// Samples that are kept: eleven minutes, which are 64 MB. Beyond that the sound that was used longest ago is dropped.
    static let mostSamples = 32 << 20

    private struct Key: Hashable {
        let command: [String]
        let text: String
    }

    private struct Cache {
        var sounds: [Key: (samples: [Int16], usedAt: Int)] = [:]
        var samples = 0
        var uses = 0
    }

    private let cache = Mutex(Cache())

    /// The sound of a text, at 48 kHz. Blocks until the command has ended.
    ///
    /// - Parameter withheld: Variables of this process that the command does not inherit.
    func samples(
        of text: String, by command: [String], withholding withheld: Set<String>
    ) throws(FlowUnusable) -> [Int16] {
        guard !command.isEmpty else {
            throw FlowUnusable("there is no voice: behaviour.flow.say in the configuration names the command of one")
        }
        let key = Key(command: command, text: text)
        if let kept = kept(key) { return kept }
        let samples = try Self.samples(ofWAV: Self.wav(of: text, by: command, withholding: withheld), command)
        keep(samples, key)
        return samples
    }

    private static func unusable(_ failure: FilterProgram.Failure, _ command: [String]) -> FlowUnusable {
        let name = command.first ?? ""
        switch failure {
        case .notStarted(let why): return FlowUnusable("cannot start the voice \"\(name)\": \(why)")
        case .failed(let how): return FlowUnusable("the voice \(name) failed: \(how). Run it by hand to see why")
        case .tooSlow: return FlowUnusable("the voice \(name) took longer than \(timeout.components.seconds) s")
        case .tooMuch: return FlowUnusable("the voice \(name) wrote more than \(mostBytes >> 20) MiB")
        }
    }

    private static func samples(ofWAV wav: [UInt8], _ command: [String]) throws(FlowUnusable) -> [Int16] {
        let name = command.first ?? ""
        let file = try file(of: wav)
        do throws(AudioFileError) {
            return try AudioFileReader.samples(ofFile: file.path, maximumSamples: mostSamples)
        } catch {
            throw FlowUnusable(
                "the voice \(name) must write a WAV to its standard output: \(error.reason). Run it by hand to see what it writes"
            )
        }
    }

    private static func file(of wav: [UInt8]) throws(FlowUnusable) -> TemporaryFile {
        do throws(SystemError) {
            let file = try TemporaryFile("handset-voice", ending: ".wav")
            try file.write(wav)
            return file
        } catch {
            throw unwritable(error)
        }
    }

    /// The sound of a text that is spoken once, as a file.
    fileprivate static func spoken(
        _ text: String, by command: [String], withholding withheld: Set<String>
    ) throws(FlowUnusable) -> TemporaryFile {
        try file(of: wav(of: text, by: command, withholding: withheld))
    }

    private static func wav(
        of text: String, by command: [String], withholding withheld: Set<String>
    ) throws(FlowUnusable) -> [UInt8] {
        do throws(FilterProgram.Failure) {
            return try FilterProgram.run(
                command, input: Array("\(text)\n".utf8), output: .kept(maximumBytes: mostBytes), within: timeout,
                withholding: withheld)
        } catch {
            throw unusable(error, command)
        }
    }

    private static func unwritable(_ error: SystemError) -> FlowUnusable {
        FlowUnusable("the voice's sound needs a file in the folder TMPDIR, or /tmp: \(error)")
    }

    private func kept(_ key: Key) -> [Int16]? {
        cache.withLock { cache in
            guard let sound = cache.sounds[key] else { return nil }
            cache.uses += 1
            cache.sounds[key]?.usedAt = cache.uses
            return sound.samples
        }
    }

    private func keep(_ samples: [Int16], _ key: Key) {
        cache.withLock { cache in
            cache.uses += 1
            cache.samples += samples.count - (cache.sounds[key]?.samples.count ?? 0)
            cache.sounds[key] = (samples, cache.uses)
            while cache.samples > Self.mostSamples,
                let oldest = cache.sounds.min(by: { $0.value.usedAt < $1.value.usedAt })
            {
                cache.samples -= oldest.value.samples.count
                cache.sounds[oldest.key] = nil
            }
        }
    }
}

/// A text that was spoken to a file, which is removed with this.
public final class SpokenText: Sendable {
    private let file: TemporaryFile

    /// The path of the WAV file.
    public var path: String { file.path }

    private init(_ file: consuming TemporaryFile) { self.file = file }

    /// Speaks a text by a command, as `Say` in call flows. Blocks until the command has ended, up to 15 s.
    ///
    /// - Parameter withheld: Variables of this process that the command does not inherit.
    public static func speak(
        _ text: String, by command: [String], withholding withheld: Set<String>
    ) -> Result<SpokenText, FlowUnusable> {
        do throws(FlowUnusable) {
            return .success(SpokenText(try FlowVoice.spoken(text, by: command, withholding: withheld)))
        } catch {
            return .failure(error)
        }
    }
}
