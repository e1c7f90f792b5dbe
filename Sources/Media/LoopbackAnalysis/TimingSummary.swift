internal import AudioKit
internal import Glibc

/// The results of following the carrier so far, in bounded memory for any duration.
public struct TimingSummary: Equatable, Sendable {
    /// Most events kept one by one; further ones are only counted.
    public static let eventLimit = 1_000

    /// Delay over time.
    public private(set) var history = DelayHistory()
    /// Gaps and repeats, the first ``eventLimit`` of them.
    public private(set) var events: [LoopbackEvent] = []
    /// How many there were of each kind.
    public private(set) var counts: [LoopbackEvent.Kind: Int] = [:]
    /// How many there were of each length: ``lengthBounds`` are the upper ends, in milliseconds, of all but the last.
    public private(set) var lengths = [Int](repeating: 0, count: Self.lengthBounds.count + 1)
    /// Captured time in which the carrier was heard in order, in samples.
    public private(set) var heardSamples = 0
    /// Length of all gaps and repeats together, in samples.
    public private(set) var disturbedSamples = 0
    /// Least and greatest delay, in samples; nil before the carrier is found.
    public private(set) var delayRange: ClosedRange<Double>?
    /// The first and the latest delay, in samples.
    public private(set) var firstDelay: Double?
    /// The latest delay, in samples.
    public private(set) var lastDelay: Double?
    /// The channel inverts the signal.
    public private(set) var isInverted = false
    private var drift = DriftEstimate()
    private var likenesses = [Int](repeating: 0, count: 101)
    private var gainSum = 0.0

    /// Upper ends of the classes of ``lengths``, in milliseconds.
    public static let lengthBounds = [0.1, 0.5, 1, 2, 5, 10, 20, 50, 100, 500]

    /// Makes a summary of nothing.
    public init() {}

    /// Takes the next finding.
    public mutating func add(_ finding: CarrierFinding) {
        switch finding {
        case .found(_, _, let isInverted): self.isInverted = isInverted
        case .reading(let reading): add(reading)
        case .event(let event): add(event)
        }
    }

    /// The next samples are another piece of carrier, whose delay may differ.
    mutating func beginPiece() { drift.jump() }

    private mutating func add(_ reading: CarrierReading) {
        let delay = reading.delaySamples
        history.add(reading)
        drift.add(reading)
        heardSamples += CarrierReader.block
        delayRange = delayRange.map { min($0.lowerBound, delay)...max($0.upperBound, delay) } ?? delay...delay
        if firstDelay == nil { firstDelay = delay }
        lastDelay = delay
        likenesses[Int(max(0, min(1, reading.likeness)) * 100)] += 1
        gainSum += reading.gainDB
    }

    private mutating func add(_ event: LoopbackEvent) {
        if events.count < Self.eventLimit { events.append(event) }
        counts[event.kind, default: 0] += 1
        let length = event.lengthMilliseconds
        lengths[Self.lengthBounds.firstIndex { length <= $0 } ?? Self.lengthBounds.count] += 1
        disturbedSamples += event.lengthSamples
        drift.jump()
    }

    /// The same with other delays.
    func mapped(
        point: (DelayHistory.Point) -> DelayHistory.Point, event: (LoopbackEvent) -> LoopbackEvent
    ) -> TimingSummary {
        var summary = self
        summary.history = history.mapped(point)
        summary.events = events.map(event)
        let points = summary.history.points
        if let least = points.map(\.least).min(), let greatest = points.map(\.greatest).max() {
            summary.delayRange = least...max(least, greatest)
        }
        summary.firstDelay = points.first?.mean ?? firstDelay
        summary.lastDelay = points.last?.mean ?? lastDelay
        return summary
    }

    /// How many gaps and repeats there were.
    public var eventCount: Int { counts.values.reduce(0, +) }

    /// How much faster the capturing clock is than the playing one, in ppm, with its standard error.
    public var driftPPM: (value: Double, error: Double)? { drift.ppm }

    /// How far the delay wanders from what drift makes of it, gaps and repeats taken out: the root of the mean square, in
    /// samples.
    public var wanderSamples: Double? { drift.wanderSamples }

    /// The carrier was heard at all.
    public var isFound: Bool { firstDelay != nil }

    /// Mean delay, in samples.
    public var meanDelay: Double? {
        let count = history.points.reduce(0) { $0 + $1.count }
        return count == 0 ? nil : history.points.reduce(0) { $0 + $1.sum } / Double(count)
    }

    /// Mean level of what was captured against what was played, in dB.
    public var gainDB: Double? {
        heardSamples == 0 ? nil : gainSum / (Double(heardSamples) / Double(CarrierReader.block))
    }

    /// Below this normalised correlation lies `share` of the readings, to a hundredth.
    public func likeness(quantile share: Double) -> Double? {
        let count = likenesses.reduce(0, +)
        guard count > 0 else { return nil }
        var rest = share * Double(count)
        for (index, number) in likenesses.enumerated() {
            rest -= Double(number)
            if rest <= 0 { return Double(index) / 100 }
        }
        return 1
    }
}
