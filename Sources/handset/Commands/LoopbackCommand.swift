internal import ArgumentParser

/// `handset loopback`: what a way that sound takes does to it.
struct LoopbackCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "loopback",
        abstract: "Measure delay, drift, gaps, noise, distortion and frequency response of a sound path.",
        discussion: """
            docs/loopback.md explains each figure and its accuracy. Ends with 0 if all is within the thresholds, 12 \
            if something is not, and 13 if the test signal did not come back at all.
            """,
        subcommands: [
            LoopbackDeviceCommand.self, LoopbackSoakCommand.self, LoopbackCallCommand.self,
            LoopbackBotCommand.self,
        ])
}

/// The cards that are measured.
struct LoopbackCardOptions: ParsableArguments {
    @Option(help: "The card to play on and to capture from.", completion: Completions.cards)
    var device = "default"

    @Option(help: "The card to play on, if it is not that one.", completion: Completions.cards)
    var playback: String?

    @Option(help: "The card to capture from, if it is not that one.", completion: Completions.cards)
    var capture: String?

    @Option(name: .customLong("period-ms"), help: "Milliseconds between the card's wake-ups to ask for, 1…100.")
    var periodMilliseconds = 10

    @Option(
        name: .customLong("buffer-ms"),
        help: "Milliseconds of sound that the card is kept ahead, 1…1000; without it, two of its periods.")
    var bufferMilliseconds: Double?

    @Option(name: .customLong("longest-delay-ms"), help: "The longest delay to look for, in milliseconds, 100…10000.")
    var longestDelayMilliseconds = 2_000

    func validate() throws {
        guard (1...100).contains(periodMilliseconds) else {
            throw ValidationError("--period-ms must be 1…100, not \(periodMilliseconds).")
        }
        if let bufferMilliseconds, !(1...1_000).contains(bufferMilliseconds) {
            throw ValidationError("--buffer-ms must be 1…1000, not \(bufferMilliseconds).")
        }
        guard (100...10_000).contains(longestDelayMilliseconds) else {
            throw ValidationError("--longest-delay-ms must be 100…10000, not \(longestDelayMilliseconds).")
        }
    }
}

/// What is good enough, and where the reports go.
struct LoopbackReportOptions: ParsableArguments {
    @OptionGroup var files: LoopbackFileOptions

    @Option(
        help: "A YAML file with thresholds, as config/loopback.yaml has them; options go before it.",
        completion: .file())
    var thresholds: String?

    @Option(help: "Maximum mean delay, such as 20ms; \"off\" disables it, as with every threshold.")
    var maxDelay: String?

    @Option(help: "Maximum difference between the longest and the shortest delay, such as 2ms.")
    var maxDelayRange: String?

    @Option(help: "Maximum difference between the clocks, either way, such as 100ppm.")
    var maxDrift: String?

    @Option(help: "Maximum number of gaps and repeats.")
    var maxGaps: String?

    @Option(help: "Maximum time in gaps and repeats, for each minute, such as 20ms.")
    var maxDisturbed: String?

    @Option(help: "Minimum likeness of the captured sound to the played one, 0 to 1, of nine readings in ten.")
    var minLikeness: String?

    @Option(help: "Minimum quality of speech through a call, 1 to 4.64 (MOS-LQO), such as 3.5.")
    var minQuality: String?

    @Option(help: "Minimum distance of the signal from the noise, such as 40dB.")
    var minSignalToNoise: String?

    @Option(parsing: .unconditional, help: "Minimum level of the captured sound against the played one, such as -20dB.")
    var minGain: String?

    @Option(name: .customLong("max-dc"), help: "Maximum constant offset, in percent of full scale, such as 0.5%.")
    var maxDC: String?

    @Option(help: "Frequency up to which sound must come through, at most 10 dB softer, such as 15000Hz.")
    var minBand: String?

    @Option(help: "Frequency from which on sound must come through, such as 200Hz.")
    var maxBandLow: String?

    @Option(help: "Maximum number of tones that are not heard.")
    var maxUnheard: String?

    @Option(help: "Maximum distortion and noise of a tone (THD+N), such as 1%.")
    var maxDistortion: String?

    @Option(help: "Maximum unevenness of the frequency response from 300 Hz to 3.4 kHz, such as 6dB.")
    var maxRipple: String?

    @Option(help: "Maximum number of clipped samples.")
    var maxClipped: String?

    @Option(parsing: .unconditional, help: "Maximum crosstalk from one channel of a card to the other, such as -40dB.")
    var maxCrosstalk: String?

    @Option(help: "Maximum number of faults of a card's channels: swapped, inverted, of opposite polarity.")
    var maxChannelFaults: String?

    @Option(help: "Minimum number of a card's channels that carry sound, out and back in: 2 requires both.")
    var minChannels: String?

    @Option(help: "Maximum number of figures that are withheld, or missing although there is a threshold.")
    var maxWithheld: String?

    @Option(help: "Maximum number of faults that no other threshold covers: hum, echo, gain control, coarse samples.")
    var maxFaults: String?
}

/// Where reports go, and with which earlier one they are compared.
struct LoopbackFileOptions: ParsableArguments {
    @Option(
        name: .customLong("json"), help: "Write the report as JSON to this file; - for standard output.",
        completion: .file())
    var jsonPath: String?

    @Option(
        name: .customLong("html"), help: "Write the report as one HTML page, with plots, to this file.",
        completion: .file())
    var htmlPath: String?

    @Option(
        name: .customLong("junit"), help: "Write the checks as JUnit's XML to this file; - for standard output.",
        completion: .file())
    var junitPath: String?

    @Option(
        name: .customLong("ktap"), help: "Write the checks as KTAP to this file; - for standard output.",
        completion: .file())
    var ktapPath: String?

    @Option(
        name: .customLong("baseline"),
        help: "An earlier report (--json): a figure that is clearly worse than there fails, as a threshold does.",
        completion: .file())
    var baselinePath: String?

    /// Only one report can be on standard output.
    func validate() throws {
        let paths = [("--json", jsonPath), ("--junit", junitPath), ("--ktap", ktapPath)].filter { $0.1 == "-" }
        if paths.count > 1 {
            throw ValidationError(
                "\(paths[0].0) and \(paths[1].0) would both be on standard output. Give one of them a file.")
        }
    }
}
