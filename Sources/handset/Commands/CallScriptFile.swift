internal import AudioKit
internal import CallScript
internal import ConfigReader
internal import Loopback
internal import Realtime
internal import Files
internal import Core

/// A call's script with all that it plays and compares with, read and checked before the call is placed.
struct CallScriptFile {
    let path: String
    let script: CallScript
    /// What is played, said or compared with, by line.
    let sounds: [Int: [Int16]]
    private let startedAt = MonotonicClock.wallTime.rfc3339

    /// - Parameter path: The script. Files that it names are found from its folder.
    init(_ path: String) throws {
        self.path = path
        let text: String
        do throws(CommandFailure) {
            text = String(decoding: try InputFile.bytes(of: path), as: UTF8.self)
        } catch {
            throw CommandFailure(
                .configuration, "\(error.description). --script takes a file as in docs/call-scripts.md.")
        }
        var sounds: [Int: [Int16]] = [:]
        var problems: [ConfigProblem] = []
        script = CallScript(reading: text, file: path, &problems)
        func add(_ line: Int, _ key: String, _ message: String) {
            problems.append(ConfigProblem(file: path, line: line, key: key, message: message))
        }
        for (line, name) in script.soundFiles {
            do throws(AudioFileError) {
                sounds[line] = try AudioFileReader.samples(ofFile: Self.place(name, beside: path))
            } catch {
                add(line, name, "\(error)")
            }
        }
        let played = script.soundFiles.compactMap { FileIdentity(path: Self.place($0.path, beside: path)) }
        for (line, name) in script.recordings {
            do throws(AudioFileError) {
                try WAVWriter.check(path: Self.place(name, beside: path), sparing: played)
            } catch {
                add(line, name, "\(error)")
            }
        }
        if problems.isEmpty {
            for (line, text) in script.texts {
                do throws(CommandFailure) {
                    sounds[line] = try SpokenText.samples(text, script.voice)
                } catch {
                    add(script.voiceLine, "voice", error.description)
                    break
                }
            }
        }
        guard problems.isEmpty else { throw ConfigError(problems) }
        self.sounds = sounds
    }

    private static func place(_ name: String, beside script: String) -> String {
        guard !name.hasPrefix("/"), let slash = script.lastIndex(of: "/") else { return name }
        return script[...slash] + name
    }

    /// Writes what was recorded.
    func writeRecordings(of caller: ScriptedCaller) throws(AudioFileError) {
        for recording in caller.recordings {
            var writer = try WAVWriter(path: Self.place(recording.path, beside: path))
            try writer.append(recording.samples.span)
            try writer.finish()
        }
    }

    /// Each statement as a test.
    func report(_ caller: ScriptedCaller, callee: String) -> TestReport {
        let cases = caller.results.map { result in
            let outcome: LoopbackVerdict.Outcome =
                switch result.outcome {
                case .passed: .passed
                case .failed: .failed
                case .skipped: .unmeasured
                }
            return TestReport.Case(
                name: "line \(result.statement.line): \(result.statement.text)", outcome: outcome, text: result.text,
                advice: result.outcome == .failed ? "\(path):\(result.statement.line): \(result.statement.text)" : "",
                seconds: Double(result.length) / Double(AudioFormat.sampleRate))
        }
        return TestReport(
            program: "handset call", suite: "call", startedAt: startedAt, origin: .here,
            facts: [.init("Called", callee), .init("Script", path)], failureKind: "script",
            seconds: cases.reduce(0) { $0 + $1.seconds }, cases: cases)
    }

    /// What went wrong, as `file:line: statement: reason`; nil if nothing did.
    func failure(_ caller: ScriptedCaller) -> CommandFailure? {
        guard !caller.isPass else { return nil }
        let failed = caller.results.first { $0.outcome != .passed }
        let text = failed.map { "\(path):\($0.statement.line): \($0.statement.text): \($0.text)" } ?? path
        return CommandFailure(.scriptFailed, "the call did not go as its script expects: \(text)")
    }
}
