public import AudioKit
internal import Glibc

/// Measures a whole ``LoopbackSignal`` that was captured.
public struct LoopbackAnalyser: Sendable {
    private let signal: LoopbackSignal
    private let maximumDelay: Int
    private let interpolator = Interpolator()

    /// - Parameters:
    ///   - signal: What was played.
    ///   - maximumDelay: The longest delay looked for, in samples.
    public init(_ signal: LoopbackSignal, maximumDelay: Int = 2 * AudioFormat.sampleRate) {
        self.signal = signal
        self.maximumDelay = maximumDelay
    }

    /// Measures what was captured; its first sample is of the moment at which the signal's first one was played.
    ///
    /// - Complexity: O(n log n); about a twentieth of the signal's length in a release build.
    public func analyse(_ captured: [Int16]) -> LoopbackMeasurement {
        var meter = LevelMeter()
        meter.add(captured.span)
        var clipping = ClippingCounter()
        clipping.add(captured.span)
        let carriers = signal.sections.filter { $0.kind == .carrier }.map(\.range)
        let (timing, line) = carriers.first.map { follow(captured, $0) } ?? (TimingSummary(), nil)
        var measurement = LoopbackMeasurement(
            timing: timing, capturedSamples: captured.count, levelDBFS: meter.rmsDBFS, peakDBFS: meter.peakDBFS,
            clipping: clipping)
        measurement.carrierDBFS = signal.carrier.levelDBFS
        measurement.noise = noise(captured, line)
        guard let line else { return measurement }
        if let range = signal.range(of: .sweep) {
            let around = range.lowerBound - FrequencyResponse.lead..<range.upperBound + FrequencyResponse.tail
            measurement.response = FrequencyResponse(captured: aligned(captured, around, line))
        }
        if let range = signal.range(of: .tone) {
            let inner = range.lowerBound + 4_800..<range.upperBound - 2_400
            measurement.tone = ToneAnalysis(captured: heard(captured, inner, line), expectedHz: LoopbackSignal.toneHz)
        }
        if carriers.count > 1, let range = carriers.last {
            let again = follow(captured, range)
            if let later = again.line {
                let place = Double(range.lowerBound) + later.delay(at: later.origin)
                measurement.delayChangeAtEnd = later.delay(at: place) - line.delay(at: place)
            }
        }
        return measurement
    }

    /// Follows one piece of carrier; the line is where it ended.
    private func follow(_ captured: [Int16], _ range: Range<Int>) -> (summary: TimingSummary, line: DelayLine?) {
        var tracker = CarrierTracker(carrier: signal.carrier, active: range, maximumDelay: maximumDelay)
        var outbox: [CarrierFinding] = []
        tracker.add(captured.span, into: &outbox)
        tracker.finish(into: &outbox)
        var summary = TimingSummary()
        for finding in outbox { summary.add(finding) }
        guard case .reading(let last)? = outbox.last(where: { if case .reading = $0 { true } else { false } }) else {
            return (summary, nil)
        }
        // The slope over all of it is better known than that of the last half second.
        let rate = summary.driftPPM.map { $0.value * 1e-6 } ?? last.rate
        return (summary, DelayLine(delay: last.delaySamples, rate: rate, origin: Double(last.position), age: 60))
    }

    /// The silence before the carrier comes, without the first tenth of a second, in which cards crackle.
    private func noise(_ captured: [Int16], _ line: DelayLine?) -> NoiseFloor? {
        guard let first = signal.sections.first, first.kind == .silence else { return nil }
        let delay = line.map { Int($0.delay(at: 0)) } ?? 0
        let end = min(captured.count, first.range.upperBound + max(0, delay) - 960)
        let start = max(min(4_800, end / 4), end - AudioFormat.sampleRate)
        return end > start ? NoiseFloor(captured: captured[start..<end].map(Float.init)) : nil
    }

    /// Captured samples of these played ones, by the capturing clock.
    private func heard(_ captured: [Int16], _ played: Range<Int>, _ line: DelayLine) -> [Float] {
        let start = Int(place(of: played.lowerBound, line))
        let end = min(captured.count, Int(place(of: played.upperBound, line)))
        return start >= 0 && end > start ? captured[start..<end].map(Float.init) : []
    }

    /// Captured samples of these played ones, one for each, by the playing clock.
    private func aligned(_ captured: [Int16], _ played: Range<Int>, _ line: DelayLine) -> [Float] {
        let first = Int(place(of: played.lowerBound, line)) - 2 * Interpolator.reach
        let last = Int(place(of: played.upperBound, line)) + 2 * Interpolator.reach
        let samples = (first..<max(first, last)).map { captured.indices.contains($0) ? Float(captured[$0]) : 0 }
        return played.map { number in
            interpolator.value(of: samples, at: place(of: number, line) - Double(first))
        }
    }

    /// Where the played sample `number` is captured: m with m − delay(m) = number.
    private func place(of number: Int, _ line: DelayLine) -> Double {
        (Double(number) + line.delay - line.rate * line.origin) / (1 - line.rate)
    }
}
