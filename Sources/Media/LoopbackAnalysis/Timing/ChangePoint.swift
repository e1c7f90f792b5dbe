internal import Glibc

/// Finds to the sample where a captured piece stops being one thing and begins to be another.
///
/// Up to some sample it is what was expected before, then perhaps a hole, then what is expected after; of all such
/// places the likeliest is taken, the differences being normal noise.
struct ChangePoint {
    /// Number of samples of the piece up to the change, and up to the end of the hole.
    let start: Int
    let end: Int
    /// The hole is silent rather than filled with other sound.
    let isSilent: Bool
    /// How much likelier (natural logarithm) this is than that nothing happened.
    let evidence: Double

    /// Mean squares, in sample units.
    struct Noise {
        /// Of what differs from what was expected when all is well.
        let residual: Double
        /// Of the captured carrier.
        let signal: Double
    }

    /// A hole must be this much likelier than none: what random noise reaches in days.
    private static let holePenalty = 16.0

    /// Differences count down to −30 dB of the signal, because a newly found delay is not more accurate.
    private static let leastResidual = 1e-3

    /// - Parameters:
    ///   - captured: The piece.
    ///   - before: What was expected there with the delay before; nil if the piece begins within the hole.
    ///   - after: The same with the delay after; nil if the piece ends within the hole.
    static func find(captured: [Float], before: [Float]?, after: [Float]?, noise: Noise) -> ChangePoint {
        let residual = max(noise.residual, noise.signal * Self.leastResidual, 0.4)
        let signal = max(noise.signal, 2 * residual)
        let asBefore = before.map { costs(captured, $0, residual) }
        let asAfter = after.map { costs(captured, $0, residual) }
        let silent = captured.map { cost(Double($0), residual) }
        let other = captured.map { cost(Double($0), signal) }
        let options = [
            best(asBefore, silent, asAfter, isSilent: true), best(asBefore, other, asAfter, isSilent: false),
        ]
        return options.min { $0.cost < $1.cost }.map {
            let nothing = asBefore.map { $0.reduce(0, +) } ?? .infinity
            return ChangePoint(start: $0.start, end: $0.end, isSilent: $0.isSilent, evidence: nothing - $0.cost)
        } ?? ChangePoint(start: 0, end: 0, isSilent: true, evidence: 0)
    }

    private struct Option {
        var cost: Double
        var start: Int
        var end: Int
        var isSilent: Bool
    }

    /// The best `start` and `end` for one kind of hole, in one pass.
    private static func best(_ before: [Double]?, _ hole: [Double], _ after: [Double]?, isSilent: Bool) -> Option {
        let count = hole.count
        var rest = after?.reduce(0, +) ?? 0
        // Of all starts so far: the one that is best with a hole behind it. Costs are prefix sums.
        var bestStart = (cost: before == nil ? 0 : Self.holePenalty, start: 0)
        var (asBefore, asHole) = (0.0, 0.0)
        var best = Option(cost: .infinity, start: 0, end: 0, isSilent: isSilent)
        for end in 0...count {
            let withHole = bestStart.cost + asHole + rest
            let allowed = after != nil || end == count
            if allowed, withHole < best.cost {
                best = Option(cost: withHole, start: bestStart.start, end: end, isSilent: isSilent)
            }
            if allowed, before != nil, asBefore + rest < best.cost {
                best = Option(cost: asBefore + rest, start: end, end: end, isSilent: isSilent)
            }
            guard end < count else { break }
            if let before { asBefore += before[end] }
            asHole += hole[end]
            if let after { rest -= after[end] }
            if before != nil, asBefore - asHole + Self.holePenalty < bestStart.cost {
                bestStart = (asBefore - asHole + Self.holePenalty, end + 1)
            }
        }
        return best
    }

    private static func costs(_ captured: [Float], _ expected: [Float], _ variance: Double) -> [Double] {
        zip(captured, expected).map { cost(Double($0 - $1), variance) }
    }

    /// Negative logarithm of a normal density, except for a constant.
    private static func cost(_ difference: Double, _ variance: Double) -> Double {
        (difference * difference / variance + log(variance)) / 2
    }
}
