internal import Files
internal import ArgumentParser
internal import AudioKit
internal import ConfigReader
internal import Glibc
internal import Loopback
internal import LoopbackAnalysis

extension LoopbackReportOptions {
    private var limits: [(LoopbackLimit, String?)] {
        [
            (.maxDelay, maxDelay), (.maxDelayRange, maxDelayRange), (.maxDrift, maxDrift), (.maxGaps, maxGaps),
            (.maxDisturbed, maxDisturbed), (.minLikeness, minLikeness), (.minQuality, minQuality),
            (.minSignalToNoise, minSignalToNoise), (.maxDistortion, maxDistortion), (.maxRipple, maxRipple),
            (.maxClipped, maxClipped), (.maxCrosstalk, maxCrosstalk), (.maxChannelFaults, maxChannelFaults),
            (.minChannels, minChannels), (.minGain, minGain), (.maxDC, maxDC), (.minBand, minBand),
            (.maxBandLow, maxBandLow), (.maxUnheard, maxUnheard), (.maxWithheld, maxWithheld), (.maxFaults, maxFaults),
        ]
    }

    /// Whether every threshold of the command line can be read.
    func checkLimits() throws {
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
    private let files: ReportFiles
    private let thresholds: LoopbackThresholds
    private let baseline: LoopbackBaseline?

    /// Reads the thresholds, and tries whether the reports can be written, before anything is measured.
    init(_ options: LoopbackReportOptions, mode: LoopbackRun.Mode) throws {
        thresholds = try options.thresholds(mode)
        baseline = try ReportFiles.baseline(options.files.baselinePath) { text throws(LoopbackBaseline.Problem) in
            try LoopbackBaseline(reading: text, mode: mode)
        }
        files = try ReportFiles(options.files)
    }

    /// Writes the reports, says how it went, and ends the command with what follows from it.
    func finish(_ run: inout LoopbackRun, isInterrupted: Bool) throws {
        run.thresholds = thresholds
        run.origin = .here
        run.baseline = baseline
        let report = run
        try files.deliver(
            json: { report.jsonText }, html: { LoopbackHTML(report).text }, tests: { TestReport(report) },
            summary: { LoopbackSummary(report, $0).text })
        if isInterrupted { throw ExitCode(ExitStatus.interrupted.rawValue) }
        guard run.measurement.timing.isFound else { throw ExitCode(ExitStatus.nothingMeasured.rawValue) }
        guard LoopbackVerdict(run).isPass else { throw ExitCode(ExitStatus.thresholdsFailed.rawValue) }
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
            let reason = SystemError.last
            // One that may not be written to, but is there, is as good.
            guard unsafe access(made, F_OK) != 0 else { continue }
            throw LoopbackError(
                .fileNotWritten,
                "cannot make the folder \(made) for the worst moments: \(reason). Choose another with --moments.")
        }
    }
}
