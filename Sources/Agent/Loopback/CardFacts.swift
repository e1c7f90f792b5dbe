internal import AudioDevices
internal import AudioKit
internal import LoopbackAnalysis

/// The report's facts about the card, and the parts of its delay.
struct CardFacts {
    let configuration: AudioDeviceConfiguration
    let playback: CardGrant
    let capture: CardGrant
    let statistics: DuplexStatistics

    /// The delay of the card's buffers, and of what is behind them, in milliseconds; nil if no samples were moved.
    var ownMilliseconds: Double? {
        guard statistics.exchanges > 0 else { return nil }
        return time(statistics.meanQueue + statistics.meanBehind, playback) + time(statistics.meanAvailable, capture)
    }

    private func time(_ frames: Double, _ grant: CardGrant) -> Double { frames * 1_000 / Double(grant.rate) }

    /// The report's facts about the card.
    var facts: [LoopbackRun.Fact] {
        var facts = [
            LoopbackRun.Fact("Played on", "\(Self.name(configuration.playback)) (\(Self.text(playback)))"),
            LoopbackRun.Fact("Captured from", "\(Self.name(configuration.capture)) (\(Self.text(capture)))"),
            LoopbackRun.Fact("Played, buffer ran empty", "\(statistics.playbackXruns)"),
            LoopbackRun.Fact("Captured, buffer ran over", "\(statistics.captureXruns)"),
        ]
        facts += troubles
        return facts
    }

    /// The same of cards that measure a call, which has a card of its own.
    var factsOfMeasuringCards: [LoopbackRun.Fact] {
        [
            LoopbackRun.Fact(
                "Mouth",
                "\(Self.name(configuration.playback)) (\(Self.text(playback))), ran empty \(statistics.playbackXruns) times"
            ),
            LoopbackRun.Fact(
                "Ear",
                "\(Self.name(configuration.capture)) (\(Self.text(capture))), ran over \(statistics.captureXruns) times"
            ),
        ] + troubles
    }

    private var troubles: [LoopbackRun.Fact] {
        var facts: [LoopbackRun.Fact] = []
        if statistics.ownXruns > 0 {
            facts.append(
                .init(
                    "Because Handset's thread was held up",
                    "\(statistics.ownXruns) of these, for \(Self.tenths(statistics.longestHoldUpMilliseconds)) ms at worst"
                ))
        }
        if statistics.suspends > 0 { facts.append(.init("Suspended", "\(statistics.suspends)")) }
        if statistics.losses > 0 { facts.append(.init("Card went away", "\(statistics.losses)")) }
        if statistics.lateFrames > 0 {
            facts.append(.init("Frames lost to this program being late", "\(statistics.lateFrames)"))
        }
        if statistics.isPriorityRefused { facts.append(.init("Real-time priority", "refused")) }
        return facts
    }

    /// A PCM's name, and that of its card if it names one.
    private static func name(_ pcm: String?) -> String {
        pcm.map { CardDirectory().label(of: $0) } ?? ""
    }

    private static func text(_ grant: CardGrant) -> String {
        "\(grant.rate) Hz, \(grant.channels) ch, \(grant.format.name), period \(tenths(grant.periodMilliseconds)) ms, "
            + "buffer \(tenths(grant.bufferMilliseconds)) ms"
    }

    private static func tenths(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }

    /// The parts of the delay that the card reports, and the remainder: converters, cable and air.
    func stages(ofDelay milliseconds: Double?) -> [LoopbackRun.Stage] {
        guard let milliseconds, statistics.exchanges > 0 else { return [] }
        var parts = told
        // If a card updates its position only at interrupts, the buffer seems fuller than it is, and a server's
        // estimate of its own delay may be off by more: any excess is subtracted from these, in this order.
        var surplus = parts.reduce(0) { $0 + $1.milliseconds } - milliseconds
        for index in parts.indices where surplus > 0 {
            let taken = min(surplus, parts[index].milliseconds)
            parts[index] = LoopbackRun.Stage(parts[index].name, milliseconds: parts[index].milliseconds - taken)
            surplus -= taken
        }
        let rest = max(0, milliseconds - parts.reduce(0) { $0 + $1.milliseconds })
        parts.insert(LoopbackRun.Stage("Converters, cable, air", milliseconds: rest), at: 2)
        return parts.filter { $0.milliseconds > 0.0005 }
    }

    /// The card's report on its parts of the delay.
    private var told: [LoopbackRun.Stage] {
        [
            LoopbackRun.Stage("Buffer to play from", milliseconds: time(statistics.meanQueue, playback)),
            LoopbackRun.Stage(
                "Behind that buffer: driver, sound server", milliseconds: time(statistics.meanBehind, playback)),
            LoopbackRun.Stage("Buffer of what is captured", milliseconds: time(statistics.meanAvailable, capture)),
        ]
    }

    /// Reported if the card's own parts exceed the measured delay by a tenth of a millisecond: they are guesses.
    func factsOfStages(ofDelay milliseconds: Double?) -> [LoopbackRun.Fact] {
        guard let milliseconds, statistics.exchanges > 0 else { return [] }
        let told = told.reduce(0) { $0 + $1.milliseconds }
        guard told > milliseconds + 0.1 else { return [] }
        return [
            .init(
                "Parts of the delay",
                "the card reports \(Self.tenths(told)) ms, which is more than was measured: they are shortened to fit")
        ]
    }

    /// Periods by which its gaps may recur.
    var periods: [LoopbackRun.Period] {
        [
            .init("a period's boundary of the playing card", frames: playback.periodFrames, rate: playback.rate),
            .init("a period's boundary of the capturing card", frames: capture.periodFrames, rate: capture.rate),
            .init("the end of the playing card's buffer", frames: playback.bufferFrames, rate: playback.rate),
            .init("the end of the capturing card's buffer", frames: capture.bufferFrames, rate: capture.rate),
        ]
    }

    /// Sound ahead beyond `DuplexCard`'s default, in milliseconds, if `milliseconds` are requested. The card's buffer
    /// limits it.
    func extraAhead(asked milliseconds: Double) -> Double {
        let periods = statistics.isPriorityRefused ? 6.0 : 2
        return max(0, min(milliseconds, playback.bufferMilliseconds) - periods * playback.periodMilliseconds)
    }

    /// Problems of the card and its thread, for the verdict.
    var trouble: CardTrouble {
        CardTrouble(
            playbackXruns: statistics.playbackXruns, captureXruns: statistics.captureXruns,
            ownXruns: statistics.ownXruns, longestHoldUpMilliseconds: statistics.longestHoldUpMilliseconds,
            lateFrames: statistics.lateFrames, isPriorityRefused: statistics.isPriorityRefused,
            aheadMilliseconds: time(statistics.meanQueue, playback))
    }
}
