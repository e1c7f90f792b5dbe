internal import AudioKit
internal import Glibc

/// The test signal: pieces in sequence, each for another measurement.
///
/// | Piece | Lasts | For |
/// | --- | --- | --- |
/// | silence | 0.6 s | noise floor |
/// | ``Carrier`` | as asked | delay, drift, gaps and repeats, level, likeness |
/// | exponential sweep 20 Hz … 20 kHz | 2.5 s | frequency response, harmonics over frequency |
/// | tones, of 997 Hz and others | 1 s, the others 0.4 s | THD and THD+N |
/// | carrier on the left channel, then on the right one | 0.5 s each | level, crosstalk and polarity of each channel |
/// | carrier again | 0.5 s, before and behind the sweep, and behind the tones | whether the delay is still what it was |
///
/// with half a second or so of silence between them for the room to ring out. The pieces after the long carrier are one
/// round; a second round repeats the measurements that were disturbed in the first.
public struct LoopbackSignal: Equatable, Sendable {
    /// The carrier of this signal. Its numbers are positions in the signal.
    public let carrier: Carrier
    /// The pieces, in order.
    public let sections: [Section]

    /// One piece of the signal.
    public struct Section: Equatable, Sendable {
        /// What sounds in it.
        public let kind: Kind
        /// Its samples' numbers, from the beginning of the signal.
        public let range: Range<Int>
    }

    /// What a piece is.
    public enum Kind: Equatable, Sendable {
        case silence, carrier, sweep
        case tone(frequencyHz: Double)
        /// A separate carrier, on one channel only.
        case solo(SoundChannel)
    }

    /// Frequency of the first tone: prime, so that its harmonics meet nothing of the sample rate's or the mains'.
    public static let toneHz = 997.0
    /// The usual tones, half a decade apart: what disturbs one of them by chance, or hides beneath it, does not reach all.
    public static let usualTonesHz = [toneHz, 97, 313, 3_163, 9_973]
    /// Frequencies that a tone can have, in Hz: those of the sweep.
    public static let toneRangeHz = Sweep.fromHz...Sweep.toHz
    /// The most tones that a signal can have.
    public static let mostTones = 16
    /// How often sweep and tones can be played.
    public static let roundRange = 1...9
    /// Level of the tone and of the sweep, in dBFS.
    public static let steadyLevelDBFS = -12.0

    /// A whole measurement.
    ///
    /// - Parameters:
    ///   - carrierSeconds: 1 or more; how long gaps are watched for and drift is followed.
    ///   - rounds: How often sweep and tones are played, in ``roundRange``.
    ///   - tonesHz: The tones' frequencies, each in ``toneRangeHz`` and no two alike, ``mostTones`` at the most; the first
    ///     lasts longest.
    ///   - channels: Whether each channel is played alone at the end.
    public init(
        carrierSeconds: Double = 10, rounds: Int = 1, tonesHz: [Double] = usualTonesHz, carrier: Carrier = Carrier(),
        channels: Bool = false
    ) {
        self.carrier = carrier
        var pieces: [(Kind, Double)] = [(.silence, 0.6), (.carrier, max(1, carrierSeconds))]
        for _ in 0..<max(1, rounds) {
            // A call makes its delay shorter in the first pause behind a long sound.
            pieces += [(.silence, 0.5), (.carrier, 0.5), (.silence, 0.3)]
            pieces += [(.sweep, Sweep.seconds), (.silence, 0.5), (.carrier, 0.5), (.silence, 0.3)]
            for (index, frequency) in tonesHz.enumerated() {
                pieces += [(.tone(frequencyHz: frequency), index == 0 ? 1 : 0.4), (.silence, 0.1)]
            }
            pieces += [(.silence, 0.2), (.carrier, 0.5)]
        }
        if channels {
            for channel in SoundChannel.allCases { pieces += [(.silence, 0.4), (.solo(channel), 0.5)] }
        }
        pieces.append((.silence, 0.2))
        var start = 0
        sections = pieces.map { kind, seconds in
            defer { start += Int(seconds * Double(AudioFormat.sampleRate)) }
            return Section(kind: kind, range: start..<start + Int(seconds * Double(AudioFormat.sampleRate)))
        }
    }

    /// A soak: silence, and then the carrier for ever.
    public init(soakWith carrier: Carrier) {
        self.carrier = carrier
        let start = AudioFormat.samples(milliseconds: 600)
        sections = [Section(kind: .silence, range: 0..<start), Section(kind: .carrier, range: start..<Int.max)]
    }

    /// Samples from the beginning to the end; `Int.max` for a soak.
    public var count: Int { sections.last?.range.upperBound ?? 0 }

    /// Makes the samples from number `position` on; silence behind the end.
    public func fill(_ samples: inout MutableSpan<Int16>, at position: Int) {
        for index in 0..<samples.count { samples[index] = 0 }
        let wanted = position..<position + samples.count
        for section in sections {
            let part = section.range.clamped(to: wanted)
            guard !part.isEmpty else { continue }
            let made = values(of: section, part)
            for (index, value) in made.enumerated() {
                samples[part.lowerBound - position + index] = Int16(value)
            }
        }
    }

    /// All samples with these numbers.
    public func samples(_ numbers: Range<Int>) -> [Int16] {
        var made = [Int16](repeating: 0, count: numbers.count)
        var span = made.mutableSpan
        fill(&span, at: numbers.lowerBound)
        return made
    }

    /// The numbers of the samples that only this channel is to play, and of those of silence around them; nil if there are
    /// none.
    public func soloRange(_ channel: SoundChannel) -> Range<Int>? {
        guard let range = range(of: .solo(channel)) else { return nil }
        let edge = AudioFormat.samples(milliseconds: 150)
        return range.lowerBound - edge..<range.upperBound + edge
    }

    /// The carrier that is played on one channel alone; its numbers begin at 0 with the piece.
    static func soloCarrier(_ channel: SoundChannel) -> Carrier { Carrier(seed: channel == .left ? 11 : 12) }

    /// The numbers of the first piece of that kind.
    func range(of kind: Kind) -> Range<Int>? { sections.first { $0.kind == kind }?.range }

    /// Whole numbers within 16 bits.
    private func values(of section: Section, _ part: Range<Int>) -> [Float] {
        switch section.kind {
        case .silence: return [Float](repeating: 0, count: part.count)
        case .carrier: return carrier.samples(part)
        case .solo(let channel):
            let start = section.range.lowerBound
            return Self.soloCarrier(channel).samples(part.lowerBound - start..<part.upperBound - start)
        case .sweep: return part.map { Float(Sweep.value(at: $0 - section.range.lowerBound).rounded()) }
        case .tone(let frequency):
            let amplitude = 32_767 * pow(10, Self.steadyLevelDBFS / 20)
            return part.map { number in
                let index = number - section.range.lowerBound
                let edge = min(index, section.range.count - 1 - index)
                let turn = (frequency * Double(index) / Double(AudioFormat.sampleRate)).truncatingRemainder(
                    dividingBy: 1)
                return Float((amplitude * min(1, Double(edge) / 480) * sin(2 * Double.pi * turn)).rounded())
            }
        }
    }
}

/// A sine whose frequency grows exponentially: after deconvolution, each harmonic that the channel adds is separate
/// from the linear response (A. Farina, AES 108, 2000).
enum Sweep {
    static let seconds = 2.5
    static let count = Int(seconds * Double(AudioFormat.sampleRate))
    static let fromHz = 20.0
    static let toHz = 20_000.0
    /// Time in which the frequency grows by e, in samples.
    static let growthSamples = Double(count) / log(toHz / fromHz)

    /// The sample at which it comes to this frequency.
    static func position(ofHz frequency: Double) -> Int { Int(growthSamples * log(frequency / fromHz)) }

    /// The sample with that number, in sample units.
    static func value(at index: Int) -> Double {
        guard index >= 0, index < count else { return 0 }
        let turns =
            fromHz / Double(AudioFormat.sampleRate) * growthSamples * (exp(Double(index) / growthSamples) - 1)
        let rising = min(1, Double(index) / 960)
        let falling = min(1, Double(count - 1 - index) / 240)
        let fade = sin(Double.pi / 2 * rising) * sin(Double.pi / 2 * falling)
        let amplitude = 32_767 * pow(10, LoopbackSignal.steadyLevelDBFS / 20)
        return amplitude * fade * sin(2 * Double.pi * turns.truncatingRemainder(dividingBy: 1))
    }
}
