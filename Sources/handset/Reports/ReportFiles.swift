internal import Files
internal import Glibc
internal import Loopback

/// The files of a measurement's reports.
struct ReportFiles {
    private let options: LoopbackFileOptions

    /// Tries whether the reports can be written, before anything is measured.
    init(_ options: LoopbackFileOptions) throws(CommandFailure) {
        self.options = options
        for path in [options.jsonPath, options.htmlPath, options.junitPath, options.ktapPath].compactMap(\.self) {
            try Self.check(path)
        }
    }

    /// Reads the earlier report that a run is compared with, if one is named.
    static func baseline(
        _ path: String?, _ read: (String) throws(LoopbackBaseline.Problem) -> LoopbackBaseline
    ) throws(CommandFailure) -> LoopbackBaseline? {
        guard let path else { return nil }
        let text: String
        do throws(CommandFailure) {
            text = String(decoding: try InputFile.bytes(of: path), as: UTF8.self)
        } catch {
            throw CommandFailure(
                .configuration, "\(error.description). --baseline takes a report that --json has written.")
        }
        do throws(LoopbackBaseline.Problem) {
            return try read(text)
        } catch {
            throw CommandFailure(.configuration, "cannot compare with the baseline \(path): \(error)")
        }
    }

    /// Writes the reports that were requested, and the summary: on standard error if standard output has a report.
    func deliver(
        json: () -> String, html: () -> String, tests: () -> TestReport, summary: (TerminalStyle) -> String
    ) throws(CommandFailure) {
        if options.jsonPath != nil { try Self.deliver(options.jsonPath, json() + "\n") }
        if options.junitPath != nil { try Self.deliver(options.junitPath, tests().junit) }
        if options.ktapPath != nil { try Self.deliver(options.ktapPath, tests().ktap) }
        if let path = options.htmlPath { try Self.write(html(), to: path) }
        if [options.jsonPath, options.junitPath, options.ktapPath].contains("-") {
            Terminal.printError(summary(.standardError))
        } else {
            Terminal.print(summary(.standardOutput))
        }
    }

    /// Tries whether a report can be written.
    static func check(_ path: String) throws(CommandFailure) {
        guard path != "-" else { return }
        do throws(SystemError) {
            _ = try OpenFile(path, O_WRONLY | O_CREAT, mode: 0o644)
        } catch {
            throw failure(path, error)
        }
    }

    /// Writes a report to its file, or to standard output; without a path, nowhere.
    static func deliver(_ path: String?, _ text: String) throws(CommandFailure) {
        guard let path else { return }
        if path == "-" { Terminal.writeResult(text) } else { try write(text, to: path) }
    }

    private static func failure(_ path: String, _ reason: SystemError) -> CommandFailure {
        CommandFailure(
            .recordingFailed, "cannot write the report \(path): \(reason). Choose another place, or free some space.")
    }

    private static func write(_ text: String, to path: String) throws(CommandFailure) {
        do throws(SystemError) {
            try OpenFile(path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o644).write(Array(text.utf8))
        } catch {
            throw failure(path, error)
        }
    }
}
