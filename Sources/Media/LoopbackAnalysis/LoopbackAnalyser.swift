public import AudioKit
internal import Glibc

/// Measures a whole ``LoopbackSignal`` that was captured.
public struct LoopbackAnalyser: Sendable {
    private let signal: LoopbackSignal
    private let maximumDelay: Int
    private let steadiness: Double
    private let interpolator = Interpolator()

    /// - Parameters:
    ///   - signal: What was played.
    ///   - maximumDelay: The longest delay looked for, in samples.
    ///   - steadiness: A larger change of the delay during sweep or tones, in samples, makes them unusable. Cards skip
    ///     and repeat single samples; calls stretch time, by 2.5 ms and more.
    public init(_ signal: LoopbackSignal, maximumDelay: Int = 2 * AudioFormat.sampleRate, steadiness: Double = 1) {
        self.signal = signal
        self.maximumDelay = maximumDelay
        self.steadiness = steadiness
    }

    /// Measures what was captured; its first sample is of the moment at which the signal's first one was played.
    ///
    /// - Parameter interruptions: Captured samples in which the card is known to have been interrupted.
    /// - Complexity: O(n log n); about a twentieth of the signal's length in a release build.
    public func analyse(_ captured: [Int16], interruptions: [Range<Int>] = []) -> LoopbackMeasurement {
        var meter = LevelMeter()
        meter.add(captured.span)
        var clipping = ClippingCounter()
        clipping.add(captured.span)
        var pieces: [CarrierPiece] = []
        for section in signal.sections where section.kind == .carrier {
            pieces.append(
                CarrierPiece(
                    signal.carrier, section.range, in: captured, maximumDelay: maximumDelay,
                    expectedRate: pieces.lazy.compactMap(\.line).first?.rate ?? 0))
        }
        var timing = TimingSummary()
        for piece in pieces {
            timing.beginPiece()
            for finding in piece.findings { timing.add(finding) }
        }
        var measurement = LoopbackMeasurement(
            timing: timing, capturedSamples: captured.count, levelDBFS: meter.rmsDBFS, peakDBFS: meter.peakDBFS,
            clipping: clipping)
        measurement.carrierDBFS = signal.carrier.levelDBFS
        guard let line = pieces.lazy.compactMap(\.line).first else {
            measurement.noise = noise(captured, nil)
            return measurement
        }
        measurement.noise = noise(captured, line)
        let trust = SectionTrust(
            pieces: pieces, rate: line.rate, steadiness: steadiness, interruptions: interruptions)
        if let silence = signal.sections.first?.range, let reason = trust.interruption(of: 0..<silence.upperBound, line)
        {
            measurement.noise = nil
            measurement.withheld.append(Withheld(.noise, reason))
        }
        measurement.unseenChanges = trust.changes
        if let start = pieces.first, let end = pieces.last, pieces.count > 1 {
            measurement.delayChangeAtEnd = start.change(to: end, rate: line.rate)?.samples
        }
        measureSweeps(captured, trust, &measurement)
        measureTones(captured, trust, &measurement)
        return measurement
    }

    /// Takes the first sweep that nothing happened to, if another agrees with it.
    private func measureSweeps(_ captured: [Int16], _ trust: SectionTrust, _ measurement: inout LoopbackMeasurement) {
        var reasons: [WithholdingReason] = []
        var found: [FrequencyResponse] = []
        for section in signal.sections where section.kind == .sweep {
            guard let line = trust.line(before: section.range) else { continue }
            if let reason = trust.reason(section.range) ?? gap(captured, section.range, line) {
                reasons.append(reason)
                continue
            }
            let around =
                section.range.lowerBound - FrequencyResponse.lead..<section.range.upperBound + FrequencyResponse.tail
            if let response = FrequencyResponse(captured: aligned(captured, around, line)) { found.append(response) }
        }
        if found.count > 1, let difference = found[0].greatestSpeechDifferenceDB(to: found[1]),
            difference > Self.mostDifferenceDB
        {
            reasons.insert(.repeatsDiffer(decibels: difference), at: 0)
            found = []
        }
        measurement.response = found.first
        if found.isEmpty, let reason = reasons.first { measurement.withheld.append(Withheld(.response, reason)) }
    }

    /// Two sweeps that differ by more between 300 Hz and 3.4 kHz were not both whole.
    private static let mostDifferenceDB = 6.0

    /// Takes each tone from the first round in which nothing happened to it.
    private func measureTones(_ captured: [Int16], _ trust: SectionTrust, _ measurement: inout LoopbackMeasurement) {
        var frequencies: [Double] = []
        for section in signal.sections {
            if case .tone(let frequency) = section.kind, !frequencies.contains(frequency) {
                frequencies.append(frequency)
            }
        }
        for frequency in frequencies {
            var reasons: [WithholdingReason] = []
            var found: ToneAnalysis?
            for section in signal.sections where found == nil && section.kind == .tone(frequencyHz: frequency) {
                guard let line = trust.line(before: section.range) else { continue }
                let inner = section.range.lowerBound + 4_800..<section.range.upperBound - 2_400
                let tone = ToneAnalysis(captured: heard(captured, inner, line), expectedHz: frequency)
                if let reason = trust.reason(section.range) {
                    reasons.append(reason)
                } else if tone?.hasGlitch == true {
                    reasons.append(.glitch)
                } else {
                    found = tone
                }
            }
            if let found {
                measurement.tones.append(found)
            } else if let reason = reasons.first {
                measurement.withheld.append(Withheld(.tone(frequencyHz: frequency), reason))
            }
        }
    }

    /// Whether half a millisecond or more of a sweep is silent, between 100 Hz and 10 kHz.
    private func gap(_ captured: [Int16], _ played: Range<Int>, _ line: DelayLine) -> WithholdingReason? {
        let inner = played.lowerBound + Sweep.position(ofHz: 100)..<played.lowerBound + Sweep.position(ofHz: 10_000)
        let samples = heard(captured, inner, line)
        let reach = 960
        let peaks = stride(from: 0, to: samples.count, by: reach).map { start in
            samples[start..<min(start + reach, samples.count)].reduce(Float(0)) { max($0, abs($1)) }
        }
        var run = 0
        for (index, sample) in samples.enumerated() {
            let block = index / reach
            let peak = peaks[max(0, block - 1)...min(peaks.count - 1, block + 1)].max() ?? 0
            // Softer sound counts as absent.
            run = peak > 100 && abs(sample) <= 0.01 * peak ? run + 1 : 0
            if run >= 24 { return .gap }
        }
        return nil
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
        let start = Int(line.place(of: played.lowerBound))
        let end = min(captured.count, Int(line.place(of: played.upperBound)))
        return start >= 0 && end > start ? captured[start..<end].map(Float.init) : []
    }

    /// Captured samples of these played ones, one for each, by the playing clock.
    private func aligned(_ captured: [Int16], _ played: Range<Int>, _ line: DelayLine) -> [Float] {
        let first = Int(line.place(of: played.lowerBound)) - 2 * Interpolator.reach
        let last = Int(line.place(of: played.upperBound)) + 2 * Interpolator.reach
        let samples = (first..<max(first, last)).map { captured.indices.contains($0) ? Float(captured[$0]) : 0 }
        return played.map { number in
            interpolator.value(of: samples, at: line.place(of: number) - Double(first))
        }
    }
}
