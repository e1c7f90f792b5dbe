internal import Files
internal import AudioKit
internal import CallPrograms

/// Texts that a speech synthesiser makes sound of, before a call.
enum SpokenText {
    private static let longest = Duration.seconds(60)

    /// Runs the command of a voice.
    ///
    /// - Parameter voice: Its words, with `{file}` for where it writes and `{text}` for what it says.
    static func samples(_ text: String, _ voice: [String]) throws(CommandFailure) -> [Int16] {
        let file: TemporaryFile
        do throws(SystemError) {
            file = try TemporaryFile("handset-voice", ending: ".wav")
        } catch {
            throw CommandFailure(.failed, "cannot make a file in the folder TMPDIR, or /tmp: \(error)")
        }
        let path = file.path
        let words = voice.map { $0.replacing("{file}", with: path).replacing("{text}", with: text) }
        try run(words)
        do throws(AudioFileError) {
            return try AudioFileReader.samples(ofFile: file.path)
        } catch {
            throw CommandFailure(.audioFileUnusable, "\(words[0]) made no sound: \(error) Run it by hand to see why.")
        }
    }

    private static func run(_ words: [String]) throws(CommandFailure) {
        do throws(FilterProgram.Failure) {
            _ = try FilterProgram.run(words, output: .dropped, within: longest)
        } catch {
            switch error {
            case .notStarted(let why): throw CommandFailure(.failed, "\(why) Is it installed?")
            case .failed: throw CommandFailure(.failed, "\(words[0]) failed: run it by hand to see why")
            case .tooSlow, .tooMuch:
                throw CommandFailure(.failed, "\(words[0]) took longer than a minute: run it by hand to see why")
            }
        }
    }
}
