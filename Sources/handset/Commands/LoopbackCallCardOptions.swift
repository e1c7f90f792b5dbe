internal import ArgumentParser
internal import AudioDevices
internal import CallAgent
internal import Loopback

/// The cards of a call that is measured from outside.
struct LoopbackCallCardOptions: ParsableArguments {
    @Option(
        help: "The call's sound card, if --mouth is given; without it, that of the configuration's `audio`.",
        completion: Completions.cards)
    var device: String?

    @Option(help: "The card that the call plays on, if it is not --device.", completion: Completions.cards)
    var playback: String?

    @Option(
        help: "The card that the call captures from, if it is not --device.", completion: Completions.cards)
    var capture: String?

    @Option(
        help: "Measure through sound cards: the card that speaks, wired to the microphone of the call's card.",
        completion: Completions.cards)
    var mouth: String?

    @Option(
        help: "The card that listens, wired to the call's loudspeaker, if it is not --mouth.",
        completion: Completions.cards)
    var ear: String?

    @Flag(
        name: .customLong("one-way"),
        help: "The ear is wired to the other side's loudspeaker: measure from mouth to ear, and not there and back.")
    var oneWay = false

    @Option(
        name: .customLong("own-delay"),
        help: """
            The measuring cards' own delay, such as 52.4ms, as `handset loopback device` measures it with \
            a cable and the same --buffer-ms; without it, the figure of libasound.
            """)
    var ownDelay: String?

    @Option(
        name: .customLong("buffer-ms"),
        help: "Milliseconds of sound that the mouth is kept ahead, 10…1000; they are no part of the figures.")
    var bufferMilliseconds: Double?

    @Flag(
        help: """
            Leave echo cancellation, noise suppression and gain control of the call as the configuration has them. Without \
            this they are off, because they would remove parts of the test signal.
            """)
    var speakerphone = false

    /// How far the mouth is kept ahead: its delay is taken out, so there is no reason to be sparing.
    private static let usualBufferMilliseconds = 50.0

    /// Whether the options make sense together.
    func check(callsSomebody: Bool) throws {
        for (option, name) in [
            ("--device", device), ("--playback", playback), ("--capture", capture), ("--mouth", mouth), ("--ear", ear),
        ] where name == "none" || name == "" {
            throw ValidationError("\(option) must name a card: a whole call is measured, in both directions.")
        }
        let callCards = [("--device", device), ("--playback", playback), ("--capture", capture)]
        let others =
            callCards + [("--ear", ear), ("--own-delay", ownDelay)]
            + [
                ("--buffer-ms", bufferMilliseconds.map { "\($0)" }), ("--one-way", oneWay ? "" : nil),
                ("--speakerphone", speakerphone ? "" : nil),
            ]
        if mouth == nil, let given = others.first(where: { $0.1 != nil }) {
            throw ValidationError(
                "\(given.0) needs --mouth: the card that speaks into the microphone of the call's card. Without sound cards, "
                    + "leave \(given.0) out, and the test signal is played into the call as a file.")
        }
        if !callsSomebody, let given = callCards.first(where: { $0.1 != nil }) {
            throw ValidationError("\(given.0) names the card of a call; give the callee, or leave it out.")
        }
        if let bufferMilliseconds, !(10...1_000).contains(bufferMilliseconds) {
            throw ValidationError("--buffer-ms must be 10…1000, not \(bufferMilliseconds).")
        }
        if let ownDelay, ownMilliseconds == nil {
            throw ValidationError("--own-delay must be 0…2000 ms, such as 52.4ms, not \(ownDelay).")
        }
    }

    /// `--own-delay` in milliseconds.
    var ownMilliseconds: Double? {
        guard let ownDelay else { return nil }
        let digits = ownDelay.hasSuffix("ms") ? ownDelay.dropLast(2) : Substring(ownDelay)
        guard let value = Double(digits.split(separator: " ").joined()), (0...2_000).contains(value) else { return nil }
        return value
    }

    /// Puts the call on its card.
    func apply(to configuration: inout DeviceConfiguration) {
        guard mouth != nil else { return }
        configuration.behaviour.source = .card
        if let name = playback ?? device { configuration.audio.playback = name }
        if let name = capture ?? device { configuration.audio.capture = name }
        guard !speakerphone else { return }
        configuration.audio.cancelsEcho = false
        configuration.audio.suppressesNoise = false
        configuration.audio.controlsGain = false
    }

    /// The cards that measure; nil without any.
    func measuring(startedAt: String) -> CardLoopback? {
        guard let mouth else { return nil }
        var configuration = AudioDeviceConfiguration(playback: mouth, capture: ear ?? mouth)
        configuration.realtimePriority = 20
        var loopback = CardLoopback(configuration, startedAt: startedAt)
        loopback.bufferMilliseconds = bufferMilliseconds ?? Self.usualBufferMilliseconds
        return loopback
    }
}
