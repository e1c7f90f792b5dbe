/// Gaps and repeats at equal intervals: something with that period causes them.
public struct Recurrence: Equatable, Sendable {
    /// Captured samples from one to the next.
    public let periodSamples: Double
    /// How many gaps and repeats follow the period.
    public let events: Int

    /// Fewer are chance.
    private static let leastEvents = 5
    /// Positions are accurate to some samples, so anything more frequent is not a period.
    private static let tolerance = 12.0
    private static let leastPeriod = 200.0
    /// Some may be missed, or be of another cause.
    private static let leastShare = 0.8

    /// - Returns: nil if `events`, in order, follow no period.
    public init?(_ events: [LoopbackEvent]) {
        let positions = events.map { Double($0.position) }
        guard positions.count >= Self.leastEvents else { return nil }
        let steps = zip(positions, positions.dropFirst()).map { $1 - $0 }.filter { $0 > 2 * Self.tolerance }
        guard steps.count >= Self.leastEvents - 1 else { return nil }
        // If an event was missed, a step is several periods. Most steps are one period, or the smallest step divides
        // all others.
        var best: (period: Double, fitting: Int)?
        for step in Set(steps) {
            for divisor in 1...4 {
                guard let (period, fitting) = Self.fit(steps, step / Double(divisor)) else { continue }
                let isBetter = best.map { fitting > $0.fitting || fitting == $0.fitting && period > $0.period } ?? true
                if isBetter { best = (period, fitting) }
            }
        }
        guard let best, Double(best.fitting) >= Self.leastShare * Double(steps.count) else { return nil }
        periodSamples = best.period
        self.events = best.fitting + 1
    }

    /// The period near `guess` of which most steps are multiples, and how many are; nil of a guess that fits by chance.
    private static func fit(_ steps: [Double], _ guess: Double) -> (Double, Int)? {
        guard guess >= leastPeriod else { return nil }
        var (sum, periods, fitting) = (0.0, 0.0, 0)
        for step in steps {
            let count = (step / guess).rounded()
            // The more periods a step spans, the less it proves.
            guard (1...8).contains(count), abs(step - count * guess) <= tolerance else { continue }
            sum += step
            periods += count
            fitting += 1
        }
        return fitting >= leastEvents - 1 ? (sum / periods, fitting) : nil
    }
}
