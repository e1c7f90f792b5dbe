internal import AudioKit
internal import Glibc

/// Measures the pieces of a signal that were played on one channel alone.
public struct ChannelAnalysis: Sendable {
    private let signal: LoopbackSignal
    private let maximumDelay: Int
    private let interpolator = Interpolator()

    /// - Parameters:
    ///   - signal: What was played.
    ///   - maximumDelay: The longest delay looked for, in samples.
    public init(_ signal: LoopbackSignal, maximumDelay: Int) {
        (self.signal, self.maximumDelay) = (signal, maximumDelay)
    }

    /// The number of the first captured sample that is needed.
    public static func start(_ signal: LoopbackSignal) -> Int {
        max(0, (signal.range(of: .solo(.left))?.lowerBound ?? signal.count) - lead)
    }

    /// Before a piece: what is heard there is noise.
    private static let lead = AudioFormat.samples(milliseconds: 250)
    /// Ends of a piece that are left out: filters and rooms that begin to ring, and cease to.
    private static let edge = AudioFormat.samples(milliseconds: 20)
    /// How far the sound of a path may be from where the carrier was found, either way: 0.5 ms.
    private static let reach = 24

    /// The result.
    public enum Outcome: Equatable, Sendable {
        case measured(ChannelFigures)
        case withheld(WithholdingReason)
    }

    /// Measures what was captured.
    ///
    /// - Parameters:
    ///   - inputs: The captured channels, one or two, from number ``start(_:)`` on.
    ///   - outputs: Channels that were played apart, 1 or 2.
    ///   - interruptions: Captured samples in which the card is known to have been interrupted.
    /// - Returns: nil if there is only one channel each way, and if the capture ends too early.
    public func analyse(_ inputs: [[Int16]], outputs: Int, interruptions: [Range<Int>] = []) -> Outcome? {
        guard outputs > 1 || inputs.count > 1 else { return nil }
        let start = Self.start(signal)
        var pieces: [Piece] = []
        for channel in SoundChannel.allCases.prefix(outputs) {
            guard let range = signal.range(of: .solo(channel)) else { return nil }
            let local = range.lowerBound - start..<range.upperBound - start
            let carrier = LoopbackSignal.soloCarrier(channel)
            pieces.append(
                Piece(channel: channel, carrier: carrier, range: local, line: line(inputs, carrier, local)))
        }
        guard let known = pieces.lazy.compactMap(\.line).first else { return nil }
        var paths: [ChannelFigures.Path] = []
        for piece in pieces {
            // What is not found would be where the other channel is.
            let line = piece.line ?? known
            let place = Self.place(piece.range, line)
            guard inputs.allSatisfy({ place.upperBound + Self.edge <= $0.count }) else { return nil }
            let hits = interruptions.count {
                $0.overlaps(place.lowerBound - Self.lead + start..<place.upperBound + start)
            }
            if hits > 0 { return .withheld(.interrupted(times: hits)) }
            for (input, heard) in zip(inputs, SoundChannel.allCases) {
                paths.append(path(input, piece, line, heard))
            }
        }
        return .measured(
            ChannelFigures(
                outputs: outputs, inputs: inputs.count, playedDBFS: pieces[0].carrier.levelDBFS, paths: paths,
                skewSamples: Self.skew(pieces)))
    }

    /// How much later the second piece is captured than the first, less what drift makes of it.
    private static func skew(_ pieces: [Piece]) -> Double? {
        guard pieces.count == 2, let first = pieces[0].line, let second = pieces[1].line else { return nil }
        let (start, end) = (first.origin, second.origin)
        return second.delay(at: end) - first.delay(at: start) - (first.rate + second.rate) / 2 * (end - start)
    }

    /// A channel that was played alone.
    private struct Piece {
        let channel: SoundChannel
        let carrier: Carrier
        /// Its samples, in the numbers of what was captured.
        let range: Range<Int>
        let line: DelayLine?
    }

    /// Where the piece is found, on the input that is loudest while it may be heard, or else on the other; nil if it is not.
    private func line(_ inputs: [[Int16]], _ carrier: Carrier, _ range: Range<Int>) -> DelayLine? {
        let powers = inputs.map { Self.power($0, range.lowerBound..<range.upperBound + maximumDelay) }
        for index in inputs.indices.sorted(by: { powers[$0] > powers[$1] }) {
            let piece = CarrierPiece(
                carrier, 0..<range.count, in: Array(inputs[index].dropFirst(range.lowerBound)),
                maximumDelay: maximumDelay, expectedRate: 0)
            guard var line = piece.line else { continue }
            line.origin += Double(range.lowerBound)
            return line
        }
        return nil
    }

    /// Captured samples of the piece without its ends.
    private static func place(_ range: Range<Int>, _ line: DelayLine) -> Range<Int> {
        let start = max(0, Int(line.place(of: range.lowerBound)))
        return start + edge..<start + max(edge, range.count - edge)
    }

    /// Mean square without the mean.
    private static func power(_ input: [Int16], _ range: Range<Int>) -> Double {
        let samples = input[range.clamped(to: 0..<input.count)]
        guard !samples.isEmpty else { return 0 }
        let mean = samples.reduce(0.0) { $0 + Double($1) } / Double(samples.count)
        return samples.reduce(0.0) { $0 + (Double($1) - mean) * (Double($1) - mean) } / Double(samples.count)
    }

    private func path(
        _ input: [Int16], _ piece: Piece, _ line: DelayLine, _ heard: SoundChannel
    ) -> ChannelFigures.Path {
        let place = Self.place(piece.range, line)
        let numbers = Self.edge..<piece.range.count - Self.edge
        let sent = piece.carrier.samples(numbers)
        let sentPower = Double(dotProduct(sent, 0, sent, 0, sent.count)) / Double(sent.count)
        let before = max(0, place.lowerBound - Self.lead)..<max(0, place.lowerBound - 2 * Self.edge)
        // No converter is better than the rounding to its last digit.
        let noise = max(Self.power(input, before), 1.0 / 12)
        let surplus = Self.power(input, place) - noise
        let isHeard = surplus > noise / 2
        return ChannelFigures.Path(
            played: piece.channel, heard: heard, gainDB: 10 * log10((isHeard ? surplus : noise / 2) / sentPower),
            isHeard: isHeard, likeness: likeness(input, sent, numbers, piece.range.lowerBound, line))
    }

    /// The correlation that is furthest from nothing, near where the carrier was found.
    private func likeness(
        _ input: [Int16], _ sent: [Float], _ numbers: Range<Int>, _ start: Int, _ line: DelayLine
    ) -> Double {
        let margin = Self.reach + 2 * Interpolator.reach
        let first = Int(line.place(of: numbers.lowerBound + start)) - margin
        let last = Int(line.place(of: numbers.upperBound + start)) + margin
        let samples = (first..<max(first, last)).map { input.indices.contains($0) ? Float(input[$0]) : 0 }
        let wanted = numbers.lowerBound - Self.reach..<numbers.upperBound + Self.reach
        let heard = wanted.map { interpolator.value(of: samples, at: line.place(of: $0 + start) - Double(first)) }
        let sentEnergy = dotProduct(sent, 0, sent, 0, sent.count)
        var best = 0.0
        for lag in 0...2 * Self.reach {
            let energy = dotProduct(heard, lag, heard, lag, sent.count)
            guard energy > 0 else { continue }
            let likeness = Double(dotProduct(heard, lag, sent, 0, sent.count) / (energy * sentEnergy).squareRoot())
            if abs(likeness) > abs(best) { best = likeness }
        }
        return best
    }
}
