internal import AudioKit

/// What is missing of a greeting at its ends, to 20 ms, in samples at 48 kHz.
public struct GreetingCut: Equatable, Sendable {
    /// Of its beginning.
    public let first: Int
    /// Of its end.
    public let last: Int

    /// Makes one.
    public init(first: Int, last: Int) { (self.first, self.last) = (first, last) }
}

/// Finds a known greeting in what was heard, and which of its ends are missing.
///
/// Envelopes of 10 ms give candidates for its place, and samples at 8 kHz the best of them. Then each 20 ms of the greeting that has
/// sound must be like what was heard there.
struct GreetingComparison {
    /// Less of the greeting means that it is another one.
    static let leastShare = 0.5

    private static let decimation = 6
    /// Samples of an envelope's step, and of a block, at 8 kHz.
    private static let step = 80
    private static let block = 160
    /// How far a block may be from its place, at 8 kHz: 10 ms, as a jitter buffer moves it.
    private static let blockSearch = 80
    private static let candidates = 8
    /// The least distance of candidates, in steps.
    private static let apart = 5
    private static let leastLikeness: Float = 0.5

    private let reference: [Float]
    private let envelope: [Float]

    init(_ greeting: [Int16]) {
        reference = Self.narrowed(greeting)
        envelope = Self.envelope(of: reference)
    }

    /// Compares.
    ///
    /// - Returns: What is missing, and the share of the greeting's sounding blocks that was found.
    func compare(_ samples: [Int16]) -> (cut: GreetingCut, share: Double) {
        let heard = Self.narrowed(samples)
        let sounding = soundingBlocks
        let nothing = (cut: GreetingCut(first: reference.count * Self.decimation, last: 0), share: 0.0)
        guard let firstBlock = sounding.first, let lastBlock = sounding.last else { return nothing }
        // A dozen blocks suffice to choose the position.
        let few = stride(from: 0, to: sounding.count, by: max(1, sounding.count / 12)).map { sounding[$0] }
        let places = places(in: Self.envelope(of: heard)).map { place in
            (place: place, count: few.count { isFound($0, at: place, in: heard) })
        }
        guard let place = places.max(by: { $0.count < $1.count })?.place else { return nothing }
        let found = sounding.filter { isFound($0, at: place, in: heard) }
        guard let first = found.first, let last = found.last else { return nothing }
        let unit = Self.block * Self.decimation
        return (
            GreetingCut(first: (first - firstBlock) * unit, last: (lastBlock - last) * unit),
            Double(found.count) / Double(sounding.count)
        )
    }

    /// The greeting's blocks that are within 30 dB of its loudest.
    private var soundingBlocks: [Int] {
        let powers = (0..<reference.count / Self.block).map { block in
            Self.power(reference[block * Self.block..<(block + 1) * Self.block])
        }
        let loudest = powers.max() ?? 0
        return loudest > 0 ? powers.indices.filter { powers[$0] >= loudest * 1e-3 } : []
    }

    /// Places of the greeting's beginning, at 8 kHz, at which the envelopes are most alike; negative if its beginning is missing.
    private func places(in heard: [Float]) -> [Int] {
        // At least half of the greeting is there.
        let half = envelope.count / 2
        guard heard.count > half, half > 0 else { return [] }
        var scores: [(place: Int, score: Float)] = []
        for lag in -half..<max(1, heard.count - half) {
            let overlap = max(0, -lag)..<min(envelope.count, heard.count - lag)
            guard overlap.count >= half else { continue }
            let score = Self.likeness(
                envelope, from: overlap.lowerBound, heard, from: overlap.lowerBound + lag, count: overlap.count)
            scores.append((lag, score))
        }
        var best: [Int] = []
        for (place, _) in scores.sorted(by: { $0.score > $1.score }) where best.count < Self.candidates {
            if best.allSatisfy({ abs($0 - place) >= Self.apart }) { best.append(place) }
        }
        return best.map { $0 * Self.step }
    }

    private func isFound(_ block: Int, at place: Int, in heard: [Float]) -> Bool {
        let start = place + block * Self.block
        for offset in -Self.blockSearch...Self.blockSearch {
            let from = start + offset
            guard from >= 0, from + Self.block <= heard.count else { continue }
            let likeness = Self.likeness(reference, from: block * Self.block, heard, from: from, count: Self.block)
            if likeness >= Self.leastLikeness { return true }
        }
        return false
    }

    /// The correlation of two pieces, −1…1; 0 if one of them is constant.
    private static func likeness(
        _ one: [Float], from oneStart: Int, _ other: [Float], from otherStart: Int, count: Int
    ) -> Float {
        let (one, other, length) = (one.span, other.span, Float(count))
        var (sumOne, sumOther, both, ofOne, ofOther): (Float, Float, Float, Float, Float) = (0, 0, 0, 0, 0)
        for index in 0..<count {
            let (left, right) = (one[oneStart + index], other[otherStart + index])
            sumOne += left
            sumOther += right
            both += left * right
            ofOne += left * left
            ofOther += right * right
        }
        both -= sumOne * sumOther / length
        ofOne -= sumOne * sumOne / length
        ofOther -= sumOther * sumOther / length
        // Less than a step of 16 bits in each sample is nothing.
        guard ofOne > length, ofOther > length else { return 0 }
        return both / (ofOne * ofOther).squareRoot()
    }

    private static func power(_ samples: ArraySlice<Float>) -> Float { samples.reduce(0) { $0 + $1 * $1 } }

    /// Means of six samples: what is left above 4 kHz folds down alike in both.
    private static func narrowed(_ samples: [Int16]) -> [Float] {
        (0..<samples.count / decimation).map { index in
            let start = index * decimation
            return Float(samples[start..<start + decimation].reduce(0) { $0 + Int($1) }) / Float(decimation)
        }
    }

    private static func envelope(of samples: [Float]) -> [Float] {
        (0..<samples.count / step).map { index in
            (power(samples[index * step..<(index + 1) * step]) / Float(step)).squareRoot()
        }
    }
}
