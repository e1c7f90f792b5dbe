internal import AudioKit

/// The moments at which blocks were read and written, with which differences between sample numbers become times
/// between hand-over and reading.
///
/// The number of the captured sample less that of the played one is a delay only as long as both clocks agree. At each
/// moment at which a block was read and another written, both numbers are known. The delay of samples played then is
/// the carrier's delay minus the difference of these two numbers. Drift, which is in both, cancels.
public struct BlockAlignment: Equatable, Sendable {
    private var count = 0.0
    private var positions = 0.0
    private var offsets = 0.0
    /// Sums of squares and products about the means.
    private var (spread, creep) = (0.0, 0.0)

    /// Nothing is known: numbers agree from the beginning to the end.
    public init() {}

    /// A block was read and another written.
    ///
    /// - Parameters:
    ///   - captured: Number of the first sample of the block that was read, at 48 kHz.
    ///   - played: Number of the first sample of the block that was written, at 48 kHz.
    public mutating func add(captured: Double, played: Double) {
        let before = count == 0 ? (captured, captured - played) : (positions / count, offsets / count)
        count += 1
        positions += captured
        offsets += captured - played
        spread += (captured - before.0) * (captured - positions / count)
        creep += (captured - before.0) * (captured - played - offsets / count)
    }

    /// By how many samples a sample both numbers move apart: how much faster the capturing clock is than the playing one,
    /// independent of changes of the delay between them.
    public var clockRate: Double { spread > 0 ? creep / spread : 0 }

    /// How far both numbers are apart at captured sample `position`, if they drift by `rate` samples a sample.
    func offset(at position: Double, rate: Double) -> Double {
        count == 0 ? 0 : offsets / count + rate * (position - positions / count)
    }
}

extension TimingSummary {
    /// The same with delays as times from hand-over to reading, free of drift.
    ///
    /// - Parameter clockRate: How much faster the capturing clock is, in samples a sample, if the path's delay itself
    ///   changes; nil if all drift comes from the clocks.
    public func aligned(to alignment: BlockAlignment, clockRate: Double? = nil) -> TimingSummary {
        let rate = clockRate ?? (driftPPM?.value ?? 0) * 1e-6
        func offset(_ position: Double) -> Double { alignment.offset(at: position, rate: rate) }
        return mapped(
            point: {
                $0.moved(
                    by: -offset(Double($0.position) + Double(history.span) / 2), drift: rate * Double(history.span))
            },
            event: { $0.moved(by: 0, delays: -offset(Double($0.position))) })
    }
}

extension TimingSummary {
    /// The same with delays less by `samples`: the part that is known not to belong to the measured path.
    public func without(_ samples: Double) -> TimingSummary {
        mapped(point: { $0.moved(by: -samples, drift: 0) }, event: { $0.moved(by: 0, delays: -samples) })
    }
}

extension SoakMonitor.Minute {
    /// The same with delays as times from hand-over to reading, free of the minute's drift.
    public func aligned(to alignment: BlockAlignment) -> SoakMonitor.Minute {
        guard let delay else { return self }
        let rate = (driftPPM ?? 0) * 1e-6
        let length = 60.0 * Double(AudioFormat.sampleRate)
        let change = alignment.offset(at: (Double(number) + 0.5) * length, rate: rate)
        let creep = abs(rate) * length / 2
        let mean = delay.mean - change
        var minute = self
        minute.delay = (min(mean, delay.least - change + creep), mean, max(mean, delay.greatest - change - creep))
        return minute
    }
}

extension DelayHistory.Point {
    /// With another delay, and without the `drift` that it has from its beginning to its end.
    func moved(by change: Double, drift: Double) -> DelayHistory.Point {
        var point = self
        point.sum += change * Double(count)
        point.least = min(point.mean, least + change + abs(drift) / 2)
        point.greatest = max(point.mean, greatest + change - abs(drift) / 2)
        return point
    }
}
