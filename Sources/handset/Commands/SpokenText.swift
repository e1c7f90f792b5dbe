internal import Files
internal import AudioKit
internal import CPrograms
internal import Glibc

/// Texts that a speech synthesiser makes sound of, before a call.
enum SpokenText {
    private static let longestTenMilliseconds = 6_000

    /// Runs the command of a voice.
    ///
    /// - Parameter voice: Its words, with `{file}` for where it writes and `{text}` for what it says.
    static func samples(_ text: String, _ voice: [String]) throws(CommandFailure) -> [Int16] {
        let folder = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
        var pattern = Array("\(folder)/handset-voice-XXXXXX.wav".utf8CString)
        let file = unsafe mkstemps(&pattern, 4)
        guard file >= 0 else {
            throw CommandFailure(.failed, "cannot make a file in \(folder): \(SystemError.last)")
        }
        close(file)
        let path = String(decoding: pattern.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer { _ = unsafe unlink(path) }
        let words = voice.map { $0.replacing("{file}", with: path).replacing("{text}", with: text) }
        try run(words)
        do throws(AudioFileError) {
            return try AudioFileReader.samples(ofFile: path)
        } catch {
            throw CommandFailure(.audioFileUnusable, "\(words[0]) made no sound: \(error) Run it by hand to see why.")
        }
    }

    private static func run(_ words: [String]) throws(CommandFailure) {
        var arguments = unsafe words.map { unsafe strdup($0) } + [nil]
        var none: [UnsafeMutablePointer<CChar>?] = unsafe [nil]
        defer { unsafe arguments.forEach { unsafe free($0) } }
        var program = handset_program()
        let result = unsafe handset_program_start(&arguments, &none, &none, 4_096, &program)
        guard result == 0 else {
            throw CommandFailure(
                .failed, "cannot start \(words[0]): \(SystemError(-result)). Is it installed?")
        }
        defer { for end in [program.output, program.errors, program.events] { close(end) } }
        close(program.input)
        var status: Int32 = 0
        var scrap = [UInt8](repeating: 0, count: 65_536)
        for _ in 0..<longestTenMilliseconds {
            if unsafe handset_program_ended(program.process, &status) {
                guard status == 0 else {
                    throw CommandFailure(.failed, "\(words[0]) failed: run it by hand to see why")
                }
                return
            }
            // Its output is unused, and it must not block on a full pipe.
            for end in [program.output, program.errors] { _ = unsafe read(end, &scrap, scrap.count) }
            usleep(10_000)
        }
        kill(-program.process, SIGKILL)
        while unsafe !handset_program_ended(program.process, &status) { usleep(10_000) }
        throw CommandFailure(.failed, "\(words[0]) took longer than a minute: run it by hand to see why")
    }
}
