internal import AudioKit

/// Reads a recording of a measuring caller.
public struct BotAnalysis: Sendable {
    /// A bot that falls silent and resumes within this time has not stopped; it may stop as late after an interruption.
    static let resumption = AudioFormat.sampleRate
    /// How long the lateness of the measuring program spoils what follows, in samples.
    private static let slipReach = AudioFormat.samples(milliseconds: 100)

    private let recording: ProbeRecording
    private let levels: SoundLevels
    private let pieces: [SoundPiece]

    /// Prepares for a recording.
    public init(_ recording: ProbeRecording) {
        self.recording = recording
        var levels = SoundLevels()
        levels.append(recording.heard)
        self.levels = levels
        pieces = levels.pieces(of: recording.heard)
    }

    /// Measures.
    ///
    /// - Parameter greeting: What the bot says first, at 48 kHz, to find out what is missing of it; nil if that is not known.
    public func measure(greeting: [Int16]? = nil) -> BotMeasurement {
        var result = BotMeasurement()
        result.samples = recording.heard.count
        result.noiseDBFS = levels.floor
        result.hasSound = !pieces.isEmpty
        result.hangUp = hangUp
        guard !levels.isNeverQuiet else {
            result.withheld = [.turns, .interruptions].map {
                BotMeasurement.Withheld(figure: $0, reason: .noise(levels.floor))
            }
            if greeting != nil { result.withheld.append(.init(figure: .cut, reason: .noise(levels.floor))) }
            return result
        }
        let firstSaid = recording.utterances.first?.range.lowerBound ?? recording.heard.count
        result.greetingStart = pieces.first.map(\.range.lowerBound).flatMap { $0 < firstSaid ? $0 : nil }
        for (index, utterance) in recording.utterances.enumerated() {
            switch utterance.purpose {
            case .question:
                result.turns.append(turn(utterance.range, until: end(after: index)))
                result.questionTalkOver += levels.soundSamples(in: utterance.range)
            case .interruption:
                let outcome = interruption(utterance.range)
                result.interruptions.append(outcome)
                if outcome != .doubtful, outcome != .missed {
                    result.interruptionTalkOver.append(levels.soundSamples(in: utterance.range))
                }
            }
        }
        result.presses = recording.presses.indices.map(press)
        withholdDoubtful(&result)
        if let greeting { measureCut(greeting, until: firstSaid, &result) }
        return result
    }

    private func withholdDoubtful(_ result: inout BotMeasurement) {
        let turns = result.turns.count { $0 == .doubtful }
        if turns > 0 { result.withheld.append(.init(figure: .turns, reason: .late(turns))) }
        let interruptions = result.interruptions.count { $0 == .doubtful }
        if interruptions > 0 { result.withheld.append(.init(figure: .interruptions, reason: .late(interruptions))) }
    }

    private func measureCut(_ greeting: [Int16], until firstSaid: Int, _ result: inout BotMeasurement) {
        // A caller that waited in vain for the end of the greeting has talked into it.
        let isUnfinished = pieces.contains { $0.range.lowerBound < firstSaid && $0.range.upperBound > firstSaid }
        guard !isUnfinished else {
            result.withheld.append(.init(figure: .cut, reason: .greetingUnfinished))
            return
        }
        let found = GreetingComparison(greeting).compare(Array(recording.heard.prefix(firstSaid)))
        if found.share >= GreetingComparison.leastShare {
            result.cut = found.cut
        } else {
            result.withheld.append(.init(figure: .cut, reason: .otherGreeting(found.share)))
        }
    }

    /// Where what follows an utterance ends: at the next thing that the caller does.
    private func end(after index: Int) -> Int {
        let range = recording.utterances[index].range
        let next = recording.utterances.dropFirst(index + 1).first?.range.lowerBound
        let press = recording.presses.first { $0.position >= range.upperBound }?.position
        return min(next ?? .max, press ?? .max, recording.heard.count)
    }

    private func isDoubtful(_ range: Range<Int>) -> Bool {
        recording.slips.contains { $0 >= range.lowerBound - Self.slipReach && $0 <= range.upperBound }
    }

    private func turn(_ said: Range<Int>, until end: Int) -> BotMeasurement.Turn {
        if pieces.contains(where: { $0.range.contains(said.upperBound) }) {
            return isDoubtful(said) ? .doubtful : .overlapped
        }
        let answer = pieces.map(\.range.lowerBound).first { $0 >= said.upperBound && $0 < end }
        if isDoubtful(said.upperBound..<max(said.upperBound, answer ?? end)) { return .doubtful }
        return answer.map { .answered($0 - said.upperBound) } ?? .unanswered
    }

    private func interruption(_ said: Range<Int>) -> BotMeasurement.Interruption {
        guard let first = pieces.firstIndex(where: { $0.range.contains(said.lowerBound) }) else { return .missed }
        var end = pieces[first].range.upperBound
        for piece in pieces[(first + 1)...]
        where piece.range.lowerBound < said.upperBound && piece.range.lowerBound - end < Self.resumption {
            end = piece.range.upperBound
        }
        if isDoubtful(said.lowerBound..<max(said.lowerBound, min(end, said.upperBound))) { return .doubtful }
        let time = end - said.lowerBound
        return end <= said.upperBound + Self.resumption ? .stopped(time) : .ignored(time)
    }

    private func press(_ index: Int) -> BotMeasurement.Press {
        let press = recording.presses[index]
        let next = recording.presses.dropFirst(index + 1).first?.position ?? recording.heard.count + 1
        let sounds = pieces.map(\.range.lowerBound) + [recording.hungUp].compactMap(\.self)
        let response = sounds.filter { $0 >= press.position && $0 < next }.min()
        return BotMeasurement.Press(key: press.key, response: response.map { $0 - press.position })
    }

    private var hangUp: BotMeasurement.HangUp {
        guard let awaited = recording.hangUpAwaited else { return recording.hungUp == nil ? .notAwaited : .early }
        return recording.hungUp.map { .came($0 - awaited) } ?? .missing
    }
}
