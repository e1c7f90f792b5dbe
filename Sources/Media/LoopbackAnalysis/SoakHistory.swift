internal import AudioKit

/// The figures of a soak: the carrier's results, minute by minute, and the moments that are worth listening to. It
/// handles no sound, so hours cost almost nothing, and its memory does not grow with time.
struct SoakHistory: Sendable {
    /// All of it so far.
    private(set) var timing = TimingSummary()
    /// The worst moments, worst first.
    private(set) var moments: [SoakMonitor.Moment] = []
    private var minuteTiming = TimingSummary()
    private var minute = 0
    /// Events whose sound has not all been captured yet.
    private var waiting: [LoopbackEvent] = []

    /// Sound kept on each side of an event, and at most in all, in samples.
    private static let around = AudioFormat.sampleRate
    private static let longest = 3 * AudioFormat.sampleRate
    private static let samplesPerMinute = 60 * AudioFormat.sampleRate

    /// Moments kept, those that wait among them: the bound of memory.
    var keptMoments: Int { moments.count + waiting.count }
    static let mostKept = 5 * SoakMonitor.keptMoments

    /// Takes results of the carrier.
    mutating func take(_ finding: CarrierFinding) {
        timing.add(finding)
        minuteTiming.add(finding)
        if case .event(let event) = finding, isWorthKeeping(event) { waiting.append(event) }
    }

    private func isWorthKeeping(_ event: LoopbackEvent) -> Bool {
        let isWorse =
            moments.count < SoakMonitor.keptMoments || event.lengthSamples > (moments.last?.event.lengthSamples ?? 0)
        return isWorse && waiting.count < 4 * SoakMonitor.keptMoments
    }

    /// Keeps the moments of which enough has been captured by now.
    ///
    /// - Parameters:
    ///   - received: Samples captured so far.
    ///   - all: Nothing more will come.
    ///   - sound: Answers with the captured samples of a range, or as many of its last as there still are, and the number
    ///     of the first; nil if too many are gone.
    mutating func keepMoments(
        received: Int, all: Bool, sound: (Range<Int>) -> (start: Int, samples: [Int16])?
    ) {
        waiting.removeAll { event in
            let end = min(event.position + Self.longest - Self.around, event.position + event.holeSamples + Self.around)
            guard all || received >= end else { return false }
            let start = max(0, event.position - Self.around)
            let range = start..<max(start, min(received, end))
            guard !range.isEmpty, let piece = sound(range) else { return true }
            moments.append(SoakMonitor.Moment(event: event, start: piece.start, samples: piece.samples))
            return true
        }
        moments.sort { $0.event.lengthSamples > $1.event.lengthSamples }
        if moments.count > SoakMonitor.keptMoments { moments.removeLast(moments.count - SoakMonitor.keptMoments) }
    }

    /// Whether the current minute ends with `received` captured samples.
    func isMinuteOver(received: Int) -> Bool { received >= (minute + 1) * Self.samplesPerMinute }

    /// Ends the minute that runs.
    mutating func endMinute(levelDBFS: Double) -> SoakMonitor.Minute {
        var line = SoakMonitor.Minute(number: minute, delay: nil, driftPPM: nil, levelDBFS: levelDBFS)
        if let range = minuteTiming.delayRange, let mean = minuteTiming.meanDelay {
            line.delay = (range.lowerBound, mean, range.upperBound)
        }
        line.driftPPM = minuteTiming.driftPPM?.value
        line.events = minuteTiming.eventCount
        line.disturbedSamples = minuteTiming.disturbedSamples
        line.likeness = minuteTiming.likeness(quantile: 0.5)
        minuteTiming = TimingSummary()
        minute += 1
        return line
    }
}
