internal import AudioDevices
internal import AudioKit
internal import LoopbackAnalysis
internal import LoopbackReport

/// What a report says of the card, and where its delay comes from.
struct CardFacts {
    let configuration: AudioDeviceConfiguration
    let playback: CardGrant
    let capture: CardGrant
    let statistics: DuplexStatistics

    /// What the card's buffers, and what lies behind them, add to a delay, in milliseconds; nil if nothing was moved.
    var ownMilliseconds: Double? {
        guard statistics.exchanges > 0 else { return nil }
        return time(statistics.meanQueue + statistics.meanBehind, playback) + time(statistics.meanAvailable, capture)
    }

    private func time(_ frames: Double, _ grant: CardGrant) -> Double { frames * 1_000 / Double(grant.rate) }

    /// What a report says of the card.
    var facts: [LoopbackRun.Fact] {
        var facts = [
            LoopbackRun.Fact("Played on", "\(configuration.playback ?? "") (\(Self.text(playback)))"),
            LoopbackRun.Fact("Captured from", "\(configuration.capture ?? "") (\(Self.text(capture)))"),
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
                "\(configuration.playback ?? "") (\(Self.text(playback))), ran empty \(statistics.playbackXruns) times"),
            LoopbackRun.Fact(
                "Ear",
                "\(configuration.capture ?? "") (\(Self.text(capture))), ran over \(statistics.captureXruns) times"),
        ] + troubles
    }

    private var troubles: [LoopbackRun.Fact] {
        var facts: [LoopbackRun.Fact] = []
        if statistics.suspends > 0 { facts.append(.init("Suspended", "\(statistics.suspends)")) }
        if statistics.losses > 0 { facts.append(.init("Card went away", "\(statistics.losses)")) }
        if statistics.lateFrames > 0 {
            facts.append(.init("Frames lost to this program being late", "\(statistics.lateFrames)"))
        }
        if statistics.isPriorityRefused { facts.append(.init("Real-time priority", "refused")) }
        return facts
    }

    private static func text(_ grant: CardGrant) -> String {
        "\(grant.rate) Hz, \(grant.channels) ch, \(grant.format.name), period \(tenths(grant.periodMilliseconds)) ms, "
            + "buffer \(tenths(grant.bufferMilliseconds)) ms"
    }

    private static func tenths(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }

    /// The parts of the delay that the card tells, and what is left of it: converters, cable and air.
    func stages(ofDelay milliseconds: Double?) -> [LoopbackRun.Stage] {
        guard let milliseconds, statistics.exchanges > 0 else { return [] }
        var queue = time(statistics.meanQueue, playback)
        let behind = time(statistics.meanBehind, playback)
        let block = time(statistics.meanAvailable, capture)
        var rest = milliseconds - queue - behind - block
        // A card that tells its position at interrupts only lets the buffer seem fuller than it is.
        if rest < 0 {
            queue = max(0, queue + rest)
            rest = 0
        }
        return [
            LoopbackRun.Stage("Buffer to play from", milliseconds: queue),
            LoopbackRun.Stage("Behind that buffer: driver, sound server", milliseconds: behind),
            LoopbackRun.Stage("Converters, cable, air", milliseconds: rest),
            LoopbackRun.Stage("Buffer of what is captured", milliseconds: block),
        ].filter { $0.milliseconds > 0.0005 }
    }
}
