public import AudioKit

/// Watches a soak for hours: a line for each minute, and the worst moments with the sound around them.
///
/// Memory is bounded: the tracker's two seconds, five seconds of sound, and ``keptMoments`` pieces of three seconds.
public struct SoakMonitor: Sendable {
    /// One minute.
    public struct Minute: Equatable, Sendable {
        /// Counted from 0.
        public var number: Int
        /// Least, mean and greatest delay in it, in samples; nil if the carrier was not heard.
        public var delay: (least: Double, mean: Double, greatest: Double)?
        /// Drift in it, in ppm.
        public var driftPPM: Double?
        /// Gaps and repeats that began in it, and their length together, in samples.
        public var events = 0
        /// Length of all its gaps and repeats, in samples.
        public var disturbedSamples = 0
        /// Level, in dBFS.
        public var levelDBFS: Double
        /// Median of the likeness of its readings, 0…1.
        public var likeness: Double?

        /// Whether both are of the same minute and say the same.
        public static func == (left: Self, right: Self) -> Bool {
            left.number == right.number && left.driftPPM == right.driftPPM && left.events == right.events
                && left.disturbedSamples == right.disturbedSamples && left.levelDBFS == right.levelDBFS
                && left.likeness == right.likeness && left.delay?.least == right.delay?.least
                && left.delay?.mean == right.delay?.mean && left.delay?.greatest == right.delay?.greatest
        }
    }

    /// A moment worth listening to.
    public struct Moment: Equatable, Sendable {
        /// What happened.
        public let event: LoopbackEvent
        /// Number of the first captured sample of ``samples``.
        public let start: Int
        /// The captured sound from a second before the event to a second after it, at most three seconds.
        public let samples: [Int16]
    }

    /// Worst moments kept.
    public static let keptMoments = 8

    /// All of it so far.
    public var timing: TimingSummary { history.timing }
    /// The worst moments, worst first.
    public var moments: [Moment] { history.moments }
    /// Samples that did not fit.
    public private(set) var clipping = ClippingCounter()
    /// Level of all of it.
    public private(set) var meter = LevelMeter()
    private var tracker: CarrierTracker
    private var history = SoakHistory()
    private var minuteMeter = LevelMeter()
    private var received = 0
    /// The last of what was captured, from number `recentStart` on.
    private(set) var recent: [Int16] = []
    private var recentStart = 0
    private var outbox: [CarrierFinding] = []
    private let lead: Int

    /// Sound kept for possible worst moments, in samples; up to a second more until it is discarded.
    static let keptSamples = 5 * AudioFormat.sampleRate

    /// Makes a monitor of a signal made by ``LoopbackSignal/init(soakWith:)``.
    ///
    /// - Parameters:
    ///   - maximumDelay: The longest delay looked for, in samples.
    ///   - lead: The largest negative delay, in samples: without clock correction, hours of drift can move captured
    ///     samples before the time at which they were played.
    public init(_ signal: LoopbackSignal, maximumDelay: Int = 2 * AudioFormat.sampleRate, lead: Int = 0) {
        let active = signal.range(of: .carrier) ?? 0..<Int.max
        self.lead = max(0, lead)
        tracker = CarrierTracker(
            carrier: signal.carrier, active: active, maximumDelay: maximumDelay + self.lead)
        // To the tracker all was captured that much later.
        tracker.add([Int16](repeating: 0, count: self.lead).span, into: &outbox)
    }

    /// Takes the next captured samples, a second at most at a time to keep memory bounded; answers with the minutes that
    /// ended in them.
    public mutating func add(_ samples: Span<Int16>, into minutes: inout [Minute]) {
        meter.add(samples)
        minuteMeter.add(samples)
        clipping.add(samples)
        for index in 0..<samples.count { recent.append(samples[index]) }
        received += samples.count
        tracker.add(samples, into: &outbox)
        take()
        keepMoments(all: false)
        if history.isMinuteOver(received: received) { minutes.append(endMinute()) }
        let surplus = recent.count - Self.keptSamples
        if surplus > AudioFormat.sampleRate {
            recent.removeFirst(surplus)
            recentStart += surplus
        }
    }

    /// Ends: the minute that was begun, and a gap that was not over.
    public mutating func finish() -> Minute {
        tracker.finish(into: &outbox)
        take()
        keepMoments(all: true)
        return endMinute()
    }

    private mutating func take() {
        for finding in outbox { history.take(finding.moved(by: -lead)) }
        outbox.removeAll(keepingCapacity: true)
    }

    private mutating func keepMoments(all: Bool) {
        let (recent, recentStart) = (recent, recentStart)
        history.keepMoments(received: received, all: all) { range in
            let start = max(recentStart, range.lowerBound)
            guard start < range.upperBound else { return nil }
            return (start, Array(recent[start - recentStart..<range.upperBound - recentStart]))
        }
    }

    private mutating func endMinute() -> Minute {
        defer { minuteMeter = LevelMeter() }
        return history.endMinute(levelDBFS: minuteMeter.rmsDBFS)
    }
}
