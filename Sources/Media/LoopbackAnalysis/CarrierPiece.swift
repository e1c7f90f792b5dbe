internal import AudioKit

/// The result of following one piece of carrier.
struct CarrierPiece {
    /// Numbers of its samples as played.
    let played: Range<Int>
    let findings: [CarrierFinding]
    /// The delay at its beginning and at its end, each the mean of some readings; nil if it was not heard.
    let first: Place?
    let last: Place?
    /// Where it ended, with the slope over all of it; nil if it was not heard.
    let line: DelayLine?

    /// Where it began, with the slope over all of it; nil if it was not heard.
    var onset: DelayLine? {
        guard let first, let line else { return nil }
        return DelayLine(delay: first.delay, rate: line.rate, origin: first.position, age: 60)
    }

    /// A delay at a captured sample, both in samples.
    struct Place {
        var position: Double
        var delay: Double
    }

    /// Readings of which a mean is taken.
    private static let few = 8

    /// Follows `played` through `captured`.
    ///
    /// - Parameter expectedRate: Drift that is known from a longer piece, in samples a sample; 0 if none is.
    init(
        _ carrier: Carrier, _ played: Range<Int>, in captured: [Int16], maximumDelay: Int, expectedRate: Double
    ) {
        var tracker = CarrierTracker(
            carrier: carrier, active: played, maximumDelay: maximumDelay, expectedRate: expectedRate)
        var outbox: [CarrierFinding] = []
        tracker.add(captured.span, into: &outbox)
        tracker.finish(into: &outbox)
        self.played = played
        findings = outbox
        let readings = outbox.compactMap { finding in
            if case .reading(let reading) = finding { reading } else { nil as CarrierReading? }
        }
        // The first readings find the delay; those behind them know it.
        first = Self.mean(readings.dropFirst(min(4, readings.count / 2)).prefix(Self.few))
        last = Self.mean(readings.suffix(Self.few))
        var summary = TimingSummary()
        for finding in outbox { summary.add(finding) }
        line = readings.last.map { last in
            // The slope over the whole piece is more accurate than that of the last half second.
            let rate = summary.driftPPM.map { $0.value * 1e-6 } ?? last.rate
            return DelayLine(delay: last.delaySamples, rate: rate, origin: Double(last.position), age: 60)
        }
    }

    private static func mean(_ readings: some Collection<CarrierReading>) -> Place? {
        guard !readings.isEmpty else { return nil }
        let sum = readings.reduce((0.0, 0.0)) { ($0.0 + Double($1.position), $0.1 + $1.delaySamples) }
        return Place(position: sum.0 / Double(readings.count), delay: sum.1 / Double(readings.count))
    }

    /// By how many samples the delay grew from this piece to `later`, beyond a drift of `rate` samples a sample.
    func change(to later: CarrierPiece, rate: Double) -> DelayChange? {
        guard let last, let first = later.first, first.position > last.position else { return nil }
        return DelayChange(
            positions: Int(last.position)..<Int(first.position),
            samples: first.delay - last.delay - rate * (first.position - last.position))
    }
}
