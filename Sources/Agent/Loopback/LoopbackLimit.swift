public import ConfigReader

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
    case minGain = "min_gain"
    case maxDC = "max_dc"
    case minBand = "min_band"
    case maxBandLow = "max_band_low"
    case maxUnheard = "max_unheard"
    case maxDistortion = "max_distortion"
    case maxRipple = "max_ripple"
    case maxClipped = "max_clipped"
    case maxCrosstalk = "max_crosstalk"
    case maxChannelFaults = "max_channel_faults"
    case minChannels = "min_channels"
    case maxWithheld = "max_withheld"
    case maxFaults = "max_faults"

    /// The option of the command line.
    public var option: String { "--" + rawValue.replacing("_", with: "-") }

    /// The unit that may follow the number, and is the default.
    var unit: String {
        switch self {
        case .maxDelay, .maxDelayRange, .maxDisturbed: "ms"
        case .maxDrift: "ppm"
        case .minSignalToNoise, .maxRipple, .maxCrosstalk, .minGain: "dB"
        case .maxDistortion, .maxDC: "%"
        case .minBand, .maxBandLow: "Hz"
        case .maxGaps, .minLikeness, .minQuality, .maxClipped, .maxChannelFaults, .minChannels, .maxUnheard,
            .maxWithheld, .maxFaults:
            ""
        }
    }

    private var range: ClosedRange<Double> {
        switch self {
        case .minLikeness: 0...1
        case .minQuality: 1...5
        case .maxDistortion, .maxDC: 0...100
        case .minGain: -100...100
        case .minBand, .maxBandLow: 0...24_000
        case .minSignalToNoise: -100...200
        case .maxCrosstalk: -200...0
        case .maxChannelFaults, .minChannels: 0...2
        default: 0...1e9
        }
    }

    private var isWhole: Bool {
        [.maxGaps, .maxClipped, .maxChannelFaults, .minChannels, .maxUnheard, .maxWithheld, .maxFaults].contains(self)
    }

    /// What is allowed, for messages.
    public var allowed: String {
        let number = isWhole ? "a whole number" : "a number"
        return number + (unit.isEmpty ? "" : " of \(unit)") + ", \(bounds), or off"
    }

    private var bounds: String {
        range.upperBound < 1e9 ? "\(Int(range.lowerBound)) to \(Int(range.upperBound))" : "0 or more"
    }

    /// What it is for.
    private var text: String {
        switch self {
        case .maxDelay: "mean delay, from hand-over to libasound until it is read from there"
        case .maxDelayRange: "longest less shortest delay"
        case .maxDrift: "difference between the clocks, either way"
        case .maxGaps: "gaps and repeats"
        case .maxDisturbed: "time in gaps and repeats, in each minute"
        case .minLikeness: "of the carrier to what was played, of nine readings in ten"
        case .minQuality: "of speech through a call (MOS-LQO), 4.64 at best"
        case .minSignalToNoise: "carrier against what is heard while nothing is played"
        case .minGain: "level of what is captured against what is played"
        case .maxDC: "constant offset, of full scale, either way"
        case .minBand: "frequency up to which the path must carry sound (−10 dB)"
        case .maxBandLow: "frequency from which on the path must carry sound (−10 dB)"
        case .maxUnheard: "tones that are not heard"
        case .maxDistortion: "THD+N of the worst of the tones"
        case .maxRipple: "loudest less softest of the frequency response, 300 Hz to 3.4 kHz"
        case .maxClipped: "samples at the end of their range"
        case .maxCrosstalk: "from one channel to the other, such as -40dB; of cards with two channels, as what follows"
        case .maxChannelFaults: "left and right swapped; one or all of them with the sign turned"
        case .minChannels: "channels that sound goes through, out and back in"
        case .maxWithheld: "figures that are withheld, or missing although there is a threshold"
        case .maxFaults: "faults that no other threshold looks at: hum, echo, gain control, coarse samples and the like"
        }
    }

    /// A threshold that is set, to a value or to nothing.
    struct Setting: Sendable {
        /// Nil looks at nothing.
        let value: Double?
    }

    /// The key of a file. Its default depends on the command.
    fileprivate var key: ConfigKey<Setting> {
        let usual = [("device", LoopbackRun.Mode.device), ("call", .call), ("soak", .soak)]
            .map { name, mode in "\(name) \(text(of: value(in: LoopbackThresholds(mode))))" }
        let kind = isWhole ? "whole number or `off`" : "number or `off`"
        return .parsed(rawValue, kind, in: bounds, unit: unit, text) { text throws(ConfigValueFault) in
            if let setting = setting(text) { return setting }
            throw ConfigValueFault("\"\(text)\" is not \(allowed)")
        }.unset(usual.joined(separator: ", "))
    }

    private func text(of value: Double?) -> String {
        guard let value else { return "off" }
        return (Int(exactly: value).map(String.init) ?? "\(value)") + unit
    }

    /// Reads what ``allowed`` says; nil if `text` is something else.
    private func setting(_ text: String) -> Setting? {
        guard text != "off" else { return Setting(value: nil) }
        var digits = Substring(text)
        if !unit.isEmpty, digits.lowercased().hasSuffix(unit.lowercased()) { digits = digits.dropLast(unit.count) }
        while digits.last == " " { digits = digits.dropLast() }
        guard let value = Double(digits), range.contains(value), !isWhole || value == value.rounded() else {
            return nil
        }
        return Setting(value: value)
    }

    /// Sets the threshold in `thresholds`.
    ///
    /// - Returns: False if `text` is not ``allowed``.
    public func set(_ text: String, in thresholds: inout LoopbackThresholds) -> Bool {
        guard let setting = setting(text) else { return false }
        set(setting.value, &thresholds)
        return true
    }

    private func value(in thresholds: LoopbackThresholds) -> Double? {
        switch self {
        case .maxDelay: thresholds.delayMilliseconds
        case .maxDelayRange: thresholds.delayRangeMilliseconds
        case .maxDrift: thresholds.driftPPM
        case .maxGaps: thresholds.events.map(Double.init)
        case .maxDisturbed: thresholds.disturbedMillisecondsPerMinute
        case .minLikeness: thresholds.likeness
        case .minQuality: thresholds.quality
        case .minSignalToNoise: thresholds.signalToNoiseDB
        case .minGain: thresholds.gainDB
        case .maxDC: thresholds.offsetPercent
        case .minBand: thresholds.bandHighHz
        case .maxBandLow: thresholds.bandLowHz
        case .maxUnheard: thresholds.unheardTones.map(Double.init)
        case .maxDistortion: thresholds.distortionPercent
        case .maxRipple: thresholds.speechRippleDB
        case .maxClipped: thresholds.clippedSamples.map(Double.init)
        case .maxCrosstalk: thresholds.crosstalkDB
        case .maxChannelFaults: thresholds.channelFaults.map(Double.init)
        case .minChannels: thresholds.channels.map(Double.init)
        case .maxWithheld: thresholds.withheld.map(Double.init)
        case .maxFaults: thresholds.faults.map(Double.init)
        }
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
        case .minGain: thresholds.gainDB = value
        case .maxDC: thresholds.offsetPercent = value
        case .minBand: thresholds.bandHighHz = value
        case .maxBandLow: thresholds.bandLowHz = value
        case .maxUnheard: thresholds.unheardTones = value.map { Int($0) }
        case .maxDistortion: thresholds.distortionPercent = value
        case .maxRipple: thresholds.speechRippleDB = value
        case .maxClipped: thresholds.clippedSamples = value.map { Int($0) }
        case .maxCrosstalk: thresholds.crosstalkDB = value
        case .maxChannelFaults: thresholds.channelFaults = value.map { Int($0) }
        case .minChannels: thresholds.channels = value.map { Int($0) }
        case .maxWithheld: thresholds.withheld = value.map { Int($0) }
        case .maxFaults: thresholds.faults = value.map { Int($0) }
        }
    }

    /// The keys of a file of thresholds.
    public static var keys: [ConfigKeyEntry] { FileKeys.entries }

    /// Reads the thresholds of a file over those in `thresholds`.
    ///
    /// - Throws: ``ConfigError`` with every problem.
    public static func read(path: String, into thresholds: inout LoopbackThresholds) throws(ConfigError) {
        var problems: [ConfigProblem] = []
        let root = KeyedSection(try ConfigDocument.read(path: path), FileKeys.self, &problems)
        if let section = root.value(\.thresholds, &problems) {
            for limit in allCases {
                if let setting = section.value(\.[limit], &problems) { limit.set(setting.value, &thresholds) }
            }
        }
        guard problems.isEmpty else { throw ConfigError(problems) }
    }

    /// The keys of a file's root.
    private struct FileKeys: ConfigKeys {
        let thresholds = ConfigKey.section("thresholds", ThresholdKeys.self, "what a run must meet to pass").required
    }

    /// The keys of the section `thresholds`: one for each limit.
    private struct ThresholdKeys: ConfigKeys {
        subscript(limit: LoopbackLimit) -> ConfigKey<Setting> { limit.key }

        var declared: [any DeclaredKey] { LoopbackLimit.allCases.map { self[$0] } }
    }
}
