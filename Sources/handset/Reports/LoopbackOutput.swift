internal import ArgumentParser
internal import AudioKit
internal import ConfigReader
internal import Glibc
internal import Loopback
internal import LoopbackAnalysis
internal import LoopbackReport

extension LoopbackReportOptions {
    private var limits: [(LoopbackLimit, String?)] {
        [
            (.maxDelay, maxDelay), (.maxDelayRange, maxDelayRange), (.maxDrift, maxDrift), (.maxGaps, maxGaps),
            (.maxDisturbed, maxDisturbed), (.minLikeness, minLikeness), (.minQuality, minQuality),
            (.minSignalToNoise, minSignalToNoise), (.maxDistortion, maxDistortion), (.maxRipple, maxRipple),
            (.maxClipped, maxClipped), (.maxCrosstalk, maxCrosstalk), (.maxChannelFaults, maxChannelFaults),
            (.minChannels, minChannels),
        ]
    }

    /// Whether every threshold of the command line can be read.
    func checkLimits() throws {
        let paths = [("--json", jsonPath), ("--junit", junitPath), ("--ktap", ktapPath)].filter { $0.1 == "-" }
        if paths.count > 1 {
            throw ValidationError(
                "\(paths[0].0) and \(paths[1].0) would both be on standard output. Give one of them a file.")
        }
        var thresholds = LoopbackThresholds(.device)
        for (limit, text) in limits {
            guard let text, !limit.set(text, in: &thresholds) else { continue }
            throw ValidationError("\(limit.option) \(text): must be \(limit.allowed).")
        }
    }

    /// Those of the command line over those of the file over the usual ones.
    func thresholds(_ mode: LoopbackRun.Mode) throws(ConfigError) -> LoopbackThresholds {
        var thresholds = LoopbackThresholds(mode)
        if let path = self.thresholds {
            try ConfigurationCheck.expect("loopback", path: path)
            try LoopbackLimit.read(path: path, into: &thresholds)
        }
        for (limit, text) in limits {
            if let text { _ = limit.set(text, in: &thresholds) }
        }
        return thresholds
    }
}

/// Where the reports of a measurement go, and how the command ends.
struct LoopbackOutput {
    private let options: LoopbackReportOptions
    private let thresholds: LoopbackThresholds
    private let baseline: LoopbackBaseline?

    /// Reads the thresholds, and tries whether the reports can be written, before anything is measured.
    init(_ options: LoopbackReportOptions, mode: LoopbackRun.Mode) throws {
        self.options = options
        thresholds = try options.thresholds(mode)
        baseline = try options.baselinePath.map { path in try Self.baseline(path, mode) }
        let paths = [options.jsonPath, options.htmlPath, options.junitPath, options.ktapPath]
        for path in paths.compactMap(\.self) { try Self.check(path) }
    }

    /// Tries whether a report can be written.
    static func check(_ path: String) throws(CommandFailure) {
        guard path != "-" else { return }
        let file = unsafe Glibc.open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
        guard file >= 0 else { throw failure(path, String(unsafe String(cString: strerror(errno)))) }
        close(file)
    }

    private static func baseline(_ path: String, _ mode: LoopbackRun.Mode) throws -> LoopbackBaseline {
        let text: String
        do throws(CommandFailure) {
            text = String(decoding: try InputFile.bytes(of: path), as: UTF8.self)
        } catch {
            throw CommandFailure(
                .configuration, "\(error.description). --baseline takes a report that --json has written.")
        }
        do throws(LoopbackBaseline.Problem) {
            return try LoopbackBaseline(reading: text, mode: mode)
        } catch {
            throw CommandFailure(.configuration, "cannot compare with the baseline \(path): \(error)")
        }
    }

    private static func failure(_ path: String, _ reason: String) -> CommandFailure {
        CommandFailure(
            .recordingFailed, "cannot write the report \(path): \(reason). Choose another place, or free some space.")
    }

    /// Writes the reports, says how it went, and ends the command with what follows from it.
    func finish(_ run: inout LoopbackRun, isInterrupted: Bool) throws {
        run.thresholds = thresholds
        run.origin = .here
        run.baseline = baseline
        try Self.deliver(options.jsonPath) { run.jsonText + "\n" }
        try Self.deliver(options.junitPath) { LoopbackJUnit(run).text }
        try Self.deliver(options.ktapPath) { LoopbackKTAP(run).text }
        if let path = options.htmlPath { try Self.write(LoopbackHTML(run).text, to: path) }
        // Standard output has one result.
        let hasResult = [options.jsonPath, options.junitPath, options.ktapPath].contains("-")
        let summary = LoopbackSummary(
            run, hasResult ? TerminalStyle.standardError : TerminalStyle.standardOutput)
        if hasResult { Terminal.printError(summary.text) } else { Terminal.print(summary.text) }
        if isInterrupted { throw ExitCode(ExitStatus.interrupted.rawValue) }
        guard run.measurement.timing.isFound else { throw ExitCode(ExitStatus.nothingMeasured.rawValue) }
        guard LoopbackVerdict(run).isPass else { throw ExitCode(ExitStatus.thresholdsFailed.rawValue) }
    }

    /// Writes a report that was asked for to its file, or to standard output.
    static func deliver(_ path: String?, _ text: () -> String) throws(CommandFailure) {
        guard let path else { return }
        if path == "-" { Terminal.write(text(), to: STDOUT_FILENO) } else { try write(text(), to: path) }
    }

    private static func write(_ text: String, to path: String) throws(CommandFailure) {
        let file = unsafe Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard file >= 0 else { throw failure(path, String(unsafe String(cString: strerror(errno)))) }
        defer { close(file) }
        let bytes = Array(text.utf8)
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { all in
                unsafe Glibc.write(file, all.baseAddress.map { unsafe $0 + written }, bytes.count - written)
            }
            guard count > 0 || errno == EINTR else {
                throw failure(path, String(unsafe String(cString: strerror(errno))))
            }
            written += max(0, count)
        }
    }
}

/// The folder of a soak's worst moments.
struct MomentFolder {
    let path: String

    /// Writes the moments over those that were there before, the worst first.
    ///
    /// - Returns: The files' names.
    func keep(_ moments: [SoakMonitor.Moment]) throws(LoopbackError) -> [String] {
        guard !moments.isEmpty else { return [] }
        try make()
        var names: [String] = []
        for (index, moment) in moments.enumerated() {
            let name = "\(path)/worst-\(index + 1).wav"
            do throws(AudioFileError) {
                var writer = try WAVWriter(path: name)
                try writer.append(moment.samples.span)
                try writer.finish()
            } catch {
                throw LoopbackError(.fileNotWritten, "cannot keep a worst moment: \(error)")
            }
            let event = moment.event
            names.append(
                "\(name): \(event.kind.rawValue) of \(event.lengthMilliseconds.rounded(toPlaces: 2)) ms at "
                    + "\(event.seconds.rounded(toPlaces: 3)) s")
        }
        return names
    }

    /// Makes the folder, and those that it lies in.
    private func make() throws(LoopbackError) {
        var made = path.hasPrefix("/") ? "/" : ""
        for part in path.split(separator: "/") {
            made += made.isEmpty || made == "/" ? part : "/" + part
            guard unsafe mkdir(made, 0o755) != 0, errno != EEXIST else { continue }
            let reason = String(unsafe String(cString: strerror(errno)))
            // One that may not be written to, but is there, is as good.
            guard unsafe access(made, F_OK) != 0 else { continue }
            throw LoopbackError(
                .fileNotWritten,
                "cannot make the folder \(made) for the worst moments: \(reason). Choose another with --moments.")
        }
    }
}
