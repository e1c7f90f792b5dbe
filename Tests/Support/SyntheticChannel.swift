import Glibc

/// A way from a loudspeaker to a microphone of which everything is known.
public struct SyntheticChannel: Sendable {
    /// In samples; need not be whole.
    public var delay: Double
    /// How much faster the capturing clock is than the playing one.
    public var driftPPM: Double
    /// Negative: inverted.
    public var gain: Double
    /// Root of the mean square of noise that is added, in sample units.
    public var noise: Double
    /// An impulse response; its first tap is that without delay.
    public var taps: [Double]
    /// Share of the third power that is added, for samples as −1…1.
    public var cubic: Double
    /// What happens to the sound, in any order.
    public var faults: [Fault]

    /// Something that happens when the capture's sample `position` is due.
    public struct Fault: Sendable {
        /// Number of the captured sample.
        public var position: Int
        /// Samples captured that are not of what was played.
        public var hole: Int
        /// Samples of what was played that are left out; negative: played again.
        public var missing: Int
        /// The hole is noise of this RMS rather than silence.
        public var noise: Double

        /// Samples that are missing, and a hole in their place.
        public init(position: Int, hole: Int = 0, missing: Int = 0, noise: Double = 0) {
            (self.position, self.hole, self.missing, self.noise) = (position, hole, missing, noise)
        }
    }

    /// A channel that changes nothing but what is given.
    public init(
        delay: Double = 0, driftPPM: Double = 0, gain: Double = 1, noise: Double = 0, taps: [Double] = [1],
        cubic: Double = 0, faults: [Fault] = []
    ) {
        (self.delay, self.driftPPM, self.gain, self.noise) = (delay, driftPPM, gain, noise)
        (self.taps, self.cubic, self.faults) = (taps, cubic, faults)
    }

    /// The first `count` samples that are captured.
    public func capture(_ played: [Int16], count: Int) -> [Int16] {
        var random = SeededGenerator(seed: 99)
        let source = bent(filtered(played.map(Double.init)))
        var made = [Int16](repeating: 0, count: count)
        var place = -delay
        var pending = faults.sorted { $0.position < $1.position }[...]
        var hole = 0
        var holeNoise = 0.0
        for index in 0..<count {
            if let fault = pending.first, fault.position == index {
                pending = pending.dropFirst()
                hole = fault.hole
                holeNoise = fault.noise
                place += Double(fault.missing)
            }
            var value = 0.0
            if hole > 0 {
                hole -= 1
                value = holeNoise > 0 ? holeNoise * random.normal() : 0
            } else {
                value = gain * Self.interpolate(source, at: place)
                place += 1 / (1 + driftPPM * 1e-6)
            }
            if noise > 0 { value += noise * random.normal() }
            made[index] = Int16(max(-32_768, min(32_767, value.rounded())))
        }
        return made
    }

    private func filtered(_ samples: [Double]) -> [Double] {
        guard taps != [1] else { return samples }
        return samples.indices.map { index in
            var sum = 0.0
            for (tap, weight) in taps.enumerated() where index >= tap { sum += weight * samples[index - tap] }
            return sum
        }
    }

    private func bent(_ samples: [Double]) -> [Double] {
        guard cubic != 0 else { return samples }
        return samples.map { $0 + cubic * 32_768 * pow($0 / 32_768, 3) }
    }

    private static let table: [[Double]] = (0..<1_024).map { phase in
        (0..<48).map { tap in
            let distance = Double(tap - 23) - Double(phase) / 1_024
            let sinc = distance == 0 ? 1 : sin(.pi * distance) / (.pi * distance)
            return sinc * pow(cos(.pi * distance / 50), 2)
        }
    }

    /// A windowed sinc, longer than the one under test.
    private static func interpolate(_ samples: [Double], at place: Double) -> Double {
        var whole = Int(place.rounded(.down))
        var phase = Int(((place - Double(whole)) * 1_024).rounded())
        if phase == 1_024 { (whole, phase) = (whole + 1, 0) }
        guard whole >= 0, whole < samples.count else { return 0 }
        if phase == 0 { return samples[whole] }
        let weights = table[phase]
        var sum = 0.0
        var tap = 0
        while tap < 48 {
            let index = whole + tap - 23
            if index >= 0, index < samples.count { sum += weights[tap] * samples[index] }
            tap += 1
        }
        return sum
    }
}

extension SeededGenerator {
    /// Nearly normal, with variance 1.
    public mutating func normal() -> Double {
        var sum = 0.0
        for _ in 0..<4 { sum += Double.random(in: -1...1, using: &self) }
        return sum * (3.0 / 4).squareRoot()
    }
}
