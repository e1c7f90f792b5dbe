internal import ArgumentParser
internal import AudioDevices

/// `handset devices`: what there is to play on and to capture from, and whether it works.
struct DevicesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "List the sound cards and what each can do, or try one.",
        discussion: "docs/sound.md says how a card is named.")

    @Flag(help: "Try a card: play a tone that comes and goes, and measure what is captured.")
    var test = false

    @Option(help: "The card to try, for both directions.", completion: Completions.cards)
    var device = "default"

    @Option(help: "The card to play on, if it is not that one; \"none\" for none.", completion: Completions.cards)
    var playback: String?

    @Option(help: "The card to capture from, if it is not that one; \"none\" for none.", completion: Completions.cards)
    var capture: String?

    @Option(name: .customLong("period-ms"), help: "Milliseconds between the card's wake-ups to ask for, 1…100.")
    var periodMilliseconds = 10

    @Option(help: "Seconds to try it for, 2…60.")
    var seconds = 4

    @Flag(help: "List also the names that only reshape others, such as surround51.")
    var all = false

    @Flag(help: "Print one JSON object.")
    var json = false

    func validate() throws {
        if !test {
            // A value that equals the default cannot be distinguished from an absent option.
            let idle = [
                ("--device", device != "default"), ("--playback", playback != nil), ("--capture", capture != nil),
                ("--period-ms", periodMilliseconds != 10), ("--seconds", seconds != 4),
            ]
            if let (name, _) = idle.first(where: { $0.1 }) {
                throw ValidationError("\(name) needs --test.")
            }
        }
        guard (1...100).contains(periodMilliseconds) else {
            throw ValidationError("--period-ms must be 1…100, not \(periodMilliseconds).")
        }
        guard (2...60).contains(seconds) else { throw ValidationError("--seconds must be 2…60, not \(seconds).") }
        if test, names.playback == nil, names.capture == nil {
            throw ValidationError("There is nothing to try: --playback and --capture are both none.")
        }
    }

    private var names: (playback: String?, capture: String?) {
        func chosen(_ name: String?) -> String? { name == "none" ? nil : name ?? device }
        return (chosen(playback), chosen(capture))
    }

    func run() throws {
        guard test else {
            let listing = SoundListing(
                cards: CardDirectory().cards, entries: SoundCatalogue.entries(includingVariants: all))
            return Terminal.print(json ? listing.json : listing.text)
        }
        var configuration = AudioDeviceConfiguration(playback: names.playback, capture: names.capture)
        configuration.periodMilliseconds = periodMilliseconds
        var trial = SoundTrial(configuration)
        trial.seconds = seconds
        if !json {
            ProgressLines().say("Playing a tone in every other half second, and listening, for \(seconds) s.")
        }
        let result = try trial.run()
        let report = SoundTrialReport(result: result)
        Terminal.print(json ? report.json : report.text)
        guard result.isWell else { throw ExitCode(ExitStatus.failed.rawValue) }
    }
}
