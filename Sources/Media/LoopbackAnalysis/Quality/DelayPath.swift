internal import AudioKit

/// The position of each moment of the reference in the degraded speech: the most likely delay over time, with few
/// jumps, over a piece of some seconds.
///
/// First the delay of the whole piece is searched, then around it those of windows of 100 ms, all together (Viterbi). A
/// change must be justified by a better match after it, so that a vowel, which is similar to itself one period later,
/// does not shift what a consonant has fixed. All at 8 kHz.
struct DelayPath: Equatable, Sendable {
    /// Delay of each window, in samples at 8 kHz.
    let delays: [Int]
    /// Where the first window begins in the reference, in samples at 8 kHz.
    private let start: Int

    static let sampleRate = 8_000
    static let windowSamples = 800
    static let hopSamples = 320
    /// Range of delays around that of the piece.
    static let radius = 1_600
    /// The longest delay of a piece.
    static let longestDelay = 3 * sampleRate
    /// How much of a piece's end may be missing, in samples at 8 kHz.
    static let tolerance = sampleRate / 4
    /// Cost of a jump, in windows of perfect match.
    private static let jumpCost: Float = 1.6
    /// Cost of a step of one sample.
    private static let stepCost: Float = 0.02
    /// A position is good if its correlation is at least this share of the highest.
    private static let goodShare: Float = 0.7

    /// Follows the delay over the samples `piece` of `reference`; both signals at 8 kHz.
    init(_ reference: [Float], _ degraded: [Float], piece: Range<Int>) {
        start = piece.lowerBound
        let whole = Self.wholeDelay(reference, degraded, piece)
        let starts = Array(
            stride(from: start, to: max(start + 1, piece.upperBound - Self.hopSamples), by: Self.hopSamples))
        let weights = Self.weights(reference, starts)
        let powers = Self.runningPowers(degraded)
        let transform = FourierTransform(minimumCount: Self.windowSamples + 2 * Self.radius)
        let lags = 2 * Self.radius + 1
        var scores = [Float](repeating: 0, count: lags)
        // For each window and lag the step by which it was reached: −1, 0, 1, or 2 for a jump from the best.
        var steps: [[Int8]] = []
        var best: [Int] = []
        for (window, place) in starts.enumerated() {
            let bestLag = scores.indices.max { scores[$0] < scores[$1] } ?? Self.radius
            best.append(bestLag)
            let jump = scores[bestLag] - Self.jumpCost
            let likeness =
                weights[window] > 0
                ? Self.likeness(reference, degraded, powers, at: place, around: whole, transform)
                : [Float](repeating: 0, count: lags)
            var (next, from) = (scores, [Int8](repeating: 0, count: lags))
            var lag = 0
            while lag < lags {
                var (reached, step) = (scores[lag], Int8(0))
                let below = lag > 0 ? scores[lag - 1] - Self.stepCost : 0
                let above = lag + 1 < lags ? scores[lag + 1] - Self.stepCost : 0
                if below > reached { (reached, step) = (below, -1) }
                if above > reached { (reached, step) = (above, 1) }
                if jump > reached { (reached, step) = (jump, 2) }
                next[lag] = reached + weights[window] * likeness[lag]
                from[lag] = step
                lag += 1
            }
            scores = next
            steps.append(from)
        }
        var lag = scores.indices.max { scores[$0] < scores[$1] } ?? Self.radius
        var delays = [Int](repeating: whole, count: starts.count)
        for window in starts.indices.reversed() {
            delays[window] = whole + lag - Self.radius
            let step = steps[window][lag]
            lag = step == 2 ? best[window] : lag + Int(step)
        }
        self.delays = delays
    }

    /// The possible delays at the sample `place` of the reference, the most likely first; more than one near a jump.
    func candidates(at place: Int) -> [Int] {
        let nearest = (place - start - Self.windowSamples / 2 + Self.hopSamples / 2) / Self.hopSamples
        var found: [Int] = []
        for window in [nearest, nearest - 1, nearest + 1, nearest - 2, nearest + 2] {
            let delay = delays[min(max(0, window), delays.count - 1)]
            if found.allSatisfy({ abs($0 - delay) > 2 }) { found.append(delay) }
        }
        return found
    }

    /// How often the delay changed by more than a millisecond.
    var jumps: Int { zip(delays, delays.dropFirst()).count { abs($0 - $1) > Self.sampleRate / 1_000 } }

    // MARK: - Looking

    private static func wholeDelay(_ reference: [Float], _ degraded: [Float], _ piece: Range<Int>) -> Int {
        guard piece.lowerBound < degraded.count else { return 0 }
        let heard = degraded[piece.lowerBound..<min(degraded.count, piece.upperBound + longestDelay)]
        let transform = FourierTransform(minimumCount: piece.count + heard.count)
        let correlation = transform.correlate(reference[piece], heard)
        // With a delay at which the piece's end was not captured, nothing could be rated.
        let latest = max(0, degraded.count + tolerance - piece.upperBound)
        let places = correlation[...min(longestDelay, heard.count - 1, latest)]
        let strongest = places.max() ?? 0
        guard strongest > 0 else { return 0 }
        // Of several good positions the earliest is right, and the best one near it: words may be repeated, and a voice
        // is similar to itself one period earlier.
        let first = places.firstIndex { $0 >= strongest * goodShare } ?? 0
        let near = places.dropFirst(first).prefix(radius / 2)
        return near.indices.max { near[$0] < near[$1] } ?? first
    }

    /// How much each window has to say: nothing where the reference is silent, all where it is as loud as usual.
    private static func weights(_ reference: [Float], _ starts: [Int]) -> [Float] {
        let powers = starts.map { start in
            reference[min(start, reference.count)..<min(reference.count, start + windowSamples)].reduce(0) {
                $0 + $1 * $1
            }
        }
        let loud = powers.sorted()[powers.count * 19 / 20]
        guard loud > 0 else { return powers.map { _ in 0 } }
        return powers.map { power in
            let share = power / loud
            return share > 0.03 ? 1 : share > 0.0003 ? 0.3 : 0
        }
    }

    /// Sums of squares up to each sample.
    private static func runningPowers(_ signal: [Float]) -> [Double] {
        var sums = [Double](repeating: 0, count: signal.count + 1)
        for index in signal.indices { sums[index + 1] = sums[index] + Double(signal[index] * signal[index]) }
        return sums
    }

    /// The normalised correlation, 0…1, at each lag around `delay`.
    private static func likeness(
        _ reference: [Float], _ degraded: [Float], _ powers: [Double], at place: Int, around delay: Int,
        _ transform: FourierTransform
    ) -> [Float] {
        let window = reference[place..<min(reference.count, place + windowSamples)]
        let own = window.reduce(0.0) { $0 + Double($1 * $1) }
        let begin = place + delay - radius
        var heard = [Float](repeating: 0, count: window.count + 2 * radius)
        let inside = (begin..<begin + heard.count).clamped(to: 0..<degraded.count)
        for index in inside { heard[index - begin] = degraded[index] }
        let correlation = transform.correlate(window, heard[...])
        // Silence matches nothing.
        let least = own * 1e-3 + 1
        var found = [Float](repeating: 0, count: 2 * radius + 1)
        var lag = 0
        while lag < found.count {
            let low = min(max(0, begin + lag), degraded.count)
            let high = min(max(0, begin + lag + window.count), degraded.count)
            let power = max(least, powers[high] - powers[low])
            if correlation[lag] > 0 { found[lag] = correlation[lag] / Float((own * power).squareRoot() + 1) }
            lag += 1
        }
        return found
    }
}
