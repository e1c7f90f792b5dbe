public import ConfigReader
public import LoopbackReport

/// A threshold, as people write it: on the command line (`--max-delay 20ms`) and in a file (`max_delay: 20ms`).
public enum LoopbackLimit: String, CaseIterable, Sendable {
    case maxDelay = "max_delay"
    case maxDelayRange = "max_delay_range"
    case maxDrift = "max_drift"
    case maxGaps = "max_gaps"
    case maxDisturbed = "max_disturbed"
    case minLikeness = "min_likeness"
    case minQuality = "min_quality"
    case minSignalToNoise = "min_signal_to_noise"
    case maxDistortion = "max_distortion"
    case maxRipple = "max_ripple"
    case maxClipped = "max_clipped"

    /// The option of the command line.
    public var option: String { "--" + rawValue.replacing("_", with: "-") }

    /// The unit that may stand behind the number, and is meant if none does.
    var unit: String {
        switch self {
        case .maxDelay, .maxDelayRange, .maxDisturbed: "ms"
        case .maxDrift: "ppm"
        case .minSignalToNoise, .maxRipple: "dB"
        case .maxDistortion: "%"
        case .maxGaps, .minLikeness, .minQuality, .maxClipped: ""
        }
    }

    private var range: ClosedRange<Double> {
        switch self {
        case .minLikeness: 0...1
        case .minQuality: 1...5
        case .maxDistortion: 0...100
        case .minSignalToNoise: -100...200
        default: 0...1e9
        }
    }

    private var isWhole: Bool { self == .maxGaps || self == .maxClipped }

    /// What is allowed, for messages.
    public var allowed: String {
        let number = isWhole ? "a whole number" : "a number"
        let bounds = range.upperBound < 1e9 ? ", \(Int(range.lowerBound)) to \(Int(range.upperBound))" : ", 0 or more"
        return number + (unit.isEmpty ? "" : " of \(unit)") + bounds + ", or off"
    }

    /// Sets the threshold in `thresholds`.
    ///
    /// - Returns: False if `text` is not ``allowed``.
    public func set(_ text: String, in thresholds: inout LoopbackThresholds) -> Bool {
        guard text != "off" else {
            set(nil, &thresholds)
            return true
        }
        var digits = Substring(text)
        if !unit.isEmpty, digits.lowercased().hasSuffix(unit.lowercased()) { digits = digits.dropLast(unit.count) }
        while digits.last == " " { digits = digits.dropLast() }
        guard let value = Double(digits), range.contains(value), !isWhole || value == value.rounded() else {
            return false
        }
        set(value, &thresholds)
        return true
    }

    private func set(_ value: Double?, _ thresholds: inout LoopbackThresholds) {
        switch self {
        case .maxDelay: thresholds.delayMilliseconds = value
        case .maxDelayRange: thresholds.delayRangeMilliseconds = value
        case .maxDrift: thresholds.driftPPM = value
        case .maxGaps: thresholds.events = value.map { Int($0) }
        case .maxDisturbed: thresholds.disturbedMillisecondsPerMinute = value
        case .minLikeness: thresholds.likeness = value
        case .minQuality: thresholds.quality = value
        case .minSignalToNoise: thresholds.signalToNoiseDB = value
        case .maxDistortion: thresholds.distortionPercent = value
        case .maxRipple: thresholds.speechRippleDB = value
        case .maxClipped: thresholds.clippedSamples = value.map { Int($0) }
        }
    }

    /// Reads the thresholds of a file over those in `thresholds`.
    ///
    /// - Throws: ``ConfigError`` with every problem.
    public static func read(path: String, into thresholds: inout LoopbackThresholds) throws(ConfigError) {
        let root = try ConfigDocument.read(path: path)
        var problems: [ConfigProblem] = []
        root.rejectUnknownKeys(known: ["thresholds"], &problems)
        root.require(["thresholds"], &problems)
        if let section = root.section("thresholds", &problems) {
            section.rejectUnknownKeys(known: allCases.map(\.rawValue), &problems)
            for limit in allCases {
                guard let text = section.string(limit.rawValue, &problems) else { continue }
                guard limit.set(text, in: &thresholds) else {
                    problems.append(section.problem(limit.rawValue, "\"\(text)\" is not \(limit.allowed)"))
                    continue
                }
            }
        }
        guard problems.isEmpty else { throw ConfigError(problems) }
    }
}
