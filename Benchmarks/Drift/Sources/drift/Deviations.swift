import AudioDevices

/// How far one direction's delay, as heard, was from the target that it had at the time.
struct Deviations {
    private(set) var count = 0
    /// Impulses that were not heard.
    private(set) var lost = 0
    /// Those further off than 2 ms.
    private(set) var beyond = 0
    private var sum = 0.0
    private var squares = 0.0
    private(set) var greatest = 0.0
    private var rates = (least: Double.infinity, most: -Double.infinity)
    private var targets = (least: Double.infinity, most: -Double.infinity)

    mutating func add(_ delay: Double?, _ line: LineStatistics) {
        guard let delay else {
            lost += 1
            return
        }
        let deviation = delay - line.targetMilliseconds
        count += 1
        sum += deviation
        squares += deviation * deviation
        if abs(deviation) > abs(greatest) { greatest = deviation }
        if abs(deviation) > 2 { beyond += 1 }
        rates = (min(rates.least, line.correctionPPM), max(rates.most, line.correctionPPM))
        targets = (min(targets.least, line.targetMilliseconds), max(targets.most, line.targetMilliseconds))
    }

    /// The figures as JSON, with what the line itself has counted.
    func object(_ line: LineStatistics) -> String {
        let number = Double(max(count, 1))
        return """
            {"heard": \(count), "lost": \(lost), "beyond_2_ms": \(beyond), "mean_ms": \(rounded(sum / number)), \
            "rms_ms": \(rounded((squares / number).squareRoot())), "greatest_ms": \(rounded(greatest)), \
            "correction_ppm": [\(rounded(rates.least)), \(rounded(rates.most))], "drift_ppm": \(rounded(line.driftPPM)), \
            "target_ms": [\(rounded(targets.least)), \(rounded(targets.most))], "jumps": \(line.jumps), \
            "xruns": \(line.xruns), "missing_samples": \(line.missingSamples)}
            """
    }

    private func rounded(_ value: Double) -> Double { (value * 1_000).rounded() / 1_000 }
}
