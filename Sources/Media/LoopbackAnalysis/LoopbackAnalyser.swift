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
        let centred = Self.centred(captured)
        var pieces: [CarrierPiece] = []
        for section in signal.sections where section.kind == .carrier {
            pieces.append(
                CarrierPiece(
                    signal.carrier, section.range, in: centred, maximumDelay: maximumDelay,
                    expectedRate: pieces.lazy.compactMap(\.line).first?.rate ?? 0))
        }
        let sound = sound(captured, pieces)
        var timing = TimingSummary()
        for piece in pieces {
            timing.beginPiece()
            for finding in piece.findings where !Self.isClipping(finding, captured, sound) { timing.add(finding) }
        }
        var measurement = LoopbackMeasurement(
            timing: timing, capturedSamples: captured.count, levelDBFS: meter.rmsDBFS, peakDBFS: meter.peakDBFS,
            clipping: clipping)
        measurement.carrierDBFS = signal.carrier.levelDBFS
        guard let line = pieces.lazy.compactMap(\.line).first else {
            let silence = silence(captured, nil)
            measurement.noise = NoiseFloor(captured: silence)
            measurement.evidence.hum = PathEvidence.Hum(silence)
            findSpeed(captured, &measurement)
            return measurement
        }
        // The delay may have moved since the silence: it ends where the carrier began.
        let onset = pieces.lazy.compactMap(\.onset).first ?? line
        let silence = silence(captured, onset)
        measurement.noise = NoiseFloor(captured: silence)
        let trust = SectionTrust(
            pieces: pieces, rate: line.rate, steadiness: steadiness, interruptions: interruptions)
        let played = signal.sections.first?.range.upperBound ?? 0
        if let reason = trust.interruption(of: 0..<played, onset) {
            measurement.noise = nil
            measurement.withheld.append(Withheld(.noise, reason))
        }
        measurement.unseenChanges = trust.changes
        if let start = pieces.first, let end = pieces.last, pieces.count > 1 {
            measurement.delayChangeAtEnd = start.change(to: end, rate: line.rate)?.samples
        }
        measureSweeps(captured, trust, &measurement)
        measureTones(captured, trust, &measurement)
        if measurement.noise != nil {
            measurement.evidence.hum = PathEvidence.Hum(silence)
            measurement.evidence.offsetPercent = Self.offsetPercent(silence)
        }
        // A carrier that is a little too fast, or shifted, is found now and then, and few of the tones are.
        if 2 * measurement.tones.count < tonesHz.count { findSpeed(captured, &measurement) }
        examine(captured, pieces, sound, &measurement)
        return measurement
    }

    private func findSpeed(_ captured: [Int16], _ measurement: inout LoopbackMeasurement) {
        switch SpeedSearch.find(captured, tonesHz: tonesHz) {
        case .speed(let speed):
            if measurement.timing.history.agrees(withSpeed: speed) { measurement.evidence.speed = speed }
        case .shift(let shift): measurement.evidence.shiftHz = shift
        case nil: break
        }
    }

    /// Without a constant offset, which would count as level, and as sound that is not the carrier.
    private static func centred(_ captured: [Int16]) -> [Int16] {
        guard !captured.isEmpty else { return [] }
        let mean = captured.reduce(0) { $0 + Int($1) } / captured.count
        return abs(mean) < 16 ? captured : captured.map { Int16(clamping: Int($0) - mean) }
    }

    /// Frequencies of the tones, each once.
    private var tonesHz: [Double] {
        var frequencies: [Double] = []
        for section in signal.sections {
            if case .tone(let frequency) = section.kind, !frequencies.contains(frequency) {
                frequencies.append(frequency)
            }
        }
        return frequencies
    }

    /// The samples of the first carrier, as captured.
    private func sound(_ captured: [Int16], _ pieces: [CarrierPiece]) -> CarrierSound? {
        guard let piece = pieces.first(where: { $0.line != nil }), let onset = piece.onset, let line = piece.line else {
            return nil
        }
        let start = Int(max(onset.place(of: piece.played.lowerBound), line.place(of: piece.played.lowerBound)))
        let end = Int(min(onset.place(of: piece.played.upperBound), line.place(of: piece.played.upperBound)))
        return start >= 0 && start < end ? CarrierSound(captured[start..<max(start, min(end, captured.count))]) : nil
    }

    /// Whether this is no gap but a peak that was cut off.
    private static func isClipping(_ finding: CarrierFinding, _ captured: [Int16], _ sound: CarrierSound?) -> Bool {
        guard let sound, sound.isClipped, case .event(let event) = finding, event.kind == .disturbance,
            abs(event.delayAfter - event.delayBefore) < 0.5
        else { return false }
        let hole = event.position - 16..<event.position + event.holeSamples + 16
        return sound.isCut(captured[hole.clamped(to: 0..<captured.count)])
    }

    private static func offsetPercent(_ silence: [Float]) -> Double? {
        guard silence.count >= 4_096 else { return nil }
        return silence.reduce(0.0) { $0 + Double($1) } / Double(silence.count) / 32_768 * 100
    }

    /// Collects what faults are named by.
    private func examine(
        _ captured: [Int16], _ pieces: [CarrierPiece], _ sound: CarrierSound?, _ measurement: inout LoopbackMeasurement
    ) {
        measurement.evidence.crestDB = sound?.crestDB
        measurement.evidence.stepSize = sound?.stepSize
        measurement.evidence.ceilingDBFS = sound.flatMap { $0.isFlat ? $0.peakDBFS : nil }
        measurement.evidence.level = LevelEvidence(pieces)
        if let response = measurement.response, let gain = measurement.timing.gainDB {
            measurement.evidence.level?.againstSweepDB = gain - response.carrierGainDB
        }
        measurement.evidence.staleBlocks = StaleBlocks.count(measurement.timing.events, captured, signal.carrier)
        guard let piece = pieces.first(where: { $0.line != nil }), let line = piece.line else { return }
        let ends = piece.findings.compactMap { finding -> Int? in
            guard case .event(let event) = finding, !Self.isClipping(finding, captured, sound) else { return nil }
            return event.position + event.holeSamples - Int(event.delayAfter) + AudioFormat.sampleRate / 20
        }
        let start = max(piece.played.lowerBound, ends.last ?? 0)
        guard start < piece.played.upperBound else { return }
        let echo = EchoSearch.find(
            captured, signal.carrier, played: start..<piece.played.upperBound, line: line)
        // The carrier's end, if it comes late, is no copy of it.
        let isLateEnd = echo.map { echo in
            measurement.unseenChanges.contains { abs($0.samples - Double(echo.delaySamples)) < Self.sameDelay }
        }
        measurement.evidence.echo = isLateEnd == true ? nil : echo
    }

    /// An echo and a change of the delay that differ by less, in samples, are the same: 2 ms.
    private static let sameDelay = 96.0

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
        for frequency in tonesHz {
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
            } else {
                measurement.unheardTonesHz.append(frequency)
            }
        }
    }

    /// Whether half a millisecond or more of a sweep is silent, between 100 Hz and 10 kHz, and it sounds on both sides of
    /// that: where a path's band ends there is silence too, and no sound behind it.
    private func gap(_ captured: [Int16], _ played: Range<Int>, _ line: DelayLine) -> WithholdingReason? {
        let inner = played.lowerBound + Sweep.position(ofHz: 100)..<played.lowerBound + Sweep.position(ofHz: 10_000)
        let samples = heard(captured, inner, line)
        guard !samples.isEmpty else { return nil }
        let mean = samples.reduce(0, +) / Float(samples.count)
        let sizes = samples.map { abs($0 - mean) }
        // A period of 100 Hz.
        let reach = 480
        func peak(_ range: Range<Int>) -> Float {
            sizes[range.clamped(to: 0..<sizes.count)].reduce(0) { max($0, $1) }
        }
        let faint = 0.01 * peak(0..<sizes.count)
        var start = 0
        while start < sizes.count {
            guard sizes[start] <= faint else {
                start += 1
                continue
            }
            var end = start
            while end < sizes.count, sizes[end] <= faint { end += 1 }
            if end - start >= 24 {
                let around = min(peak(start - reach..<start), peak(end..<end + reach))
                // Softer sound counts as absent.
                if around > 100, peak(start..<end) <= 0.01 * around { return .gap }
            }
            start = end
        }
        return nil
    }

    /// The silence before the carrier comes, without the first tenth of a second, in which cards crackle.
    private func silence(_ captured: [Int16], _ onset: DelayLine?) -> [Float] {
        guard let first = signal.sections.first, first.kind == .silence else { return [] }
        let heard = onset.map { Int($0.place(of: first.range.upperBound)) } ?? first.range.upperBound
        let end = min(captured.count, heard - 960)
        let start = max(min(4_800, end / 4), end - AudioFormat.sampleRate)
        return end > start ? captured[start..<end].map(Float.init) : []
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
