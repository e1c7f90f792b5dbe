import Glibc

/// A path from a card's output to its input with at most one fault, all of it by calculation, and of the same seed always
/// the same.
public struct FaultyPath: Sendable {
    /// What can be wrong with it.
    public enum Fault: String, CaseIterable, Sendable {
        case lowPass3600, lowPass7200, lowPass11000, highPass400, resampled16k
        case clippedAtFullScale, clippedBelow, clippedOneSide, softClipping, crossover
        case offset, hum50, hum60, whistle, noise, quiet
        case gainControl, noiseSuppression, levelStep
        case inverted, oneInverted, swapped, crosstalk
        case rate44For48, rate48For44
        case eightBits, companded
        case echo, longEcho
        case gaps, staleBlocks, lostSamples, repeatedSamples, clicks
        case jitter, drift, longDelay
        case silence, otherSound

        /// Whether it shows in each channel apart.
        public var isOfWires: Bool { [.oneInverted, .inverted, .swapped, .crosstalk].contains(self) }
    }

    /// What is wrong; nil for nothing.
    public let fault: Fault?
    /// How loud each output is on each input.
    public var wires: (left: (Double, Double), right: (Double, Double)) {
        switch fault {
        case .oneInverted: ((1, 0), (0, -0.8))
        case .inverted: ((-1, 0), (0, -1))
        case .swapped: ((0, 1), (1, 0))
        case .crosstalk: ((1, 0.1), (0.1, 1))
        default: ((1, 0), (0, 1))
        }
    }
    private let seed: UInt64
    private let delay: Double
    private let driftPPM: Double
    private let gain: Double
    private let noise: Double
    /// Samples before the card is at work.
    private let lateStart: Int
    /// The delay moves a little, by so many samples, so often.
    private let wander: (samples: Double, everySamples: Int)

    /// A path whose harmless properties follow from the seed.
    public init(_ fault: Fault?, seed: UInt64) {
        var random = SeededGenerator(seed: seed &* 977)
        self.fault = fault
        self.seed = seed
        let whole = Int.random(in: 100...4_000, using: &random)
        let isExact = Bool.random(using: &random)
        delay = fault == .longDelay ? 9_600 : Double(whole) + (isExact ? 0 : 0.37)
        driftPPM = fault == .drift ? 600 : isExact ? 0 : Double.random(in: -60...60, using: &random)
        gain = pow(10, Double.random(in: -9...0, using: &random) / 20)
        noise = Double.random(in: 0...6, using: &random)
        lateStart = Int.random(in: 0...1, using: &random) * Int.random(in: 0...6_000, using: &random)
        wander = isExact ? (0, 1) : (Double.random(in: 0...0.1, using: &random), 96_000)
    }

    /// What is captured of `played`.
    ///
    /// - Parameter extra: Samples captured after all was played.
    public func capture(_ played: [Int16], extra: Int = 12_000) -> [Int16] {
        var random = SeededGenerator(seed: seed)
        var sound = played.map(Double.init)
        shape(&sound)
        sound = moved(sound, count: played.count + extra)
        for index in sound.indices { sound[index] *= gain }
        change(&sound)
        add(&sound, &random)
        damage(&sound, &random)
        for index in 0..<min(lateStart, sound.count) { sound[index] = 0 }
        return sound.map { value in
            var value = value + (noise > 0 ? noise * random.normal() : 0)
            if fault == .silence { value = 0 }
            if fault == .otherSound { value = 3_000 * random.normal() }
            if fault == .eightBits { value = (value / 256).rounded() * 256 }
            if fault == .companded { value = Self.companded(value) }
            return Int16(max(-32_768, min(32_767, value.rounded())))
        }
    }

    // MARK: - Before the sound moves

    private func shape(_ sound: inout [Double]) {
        switch fault {
        case .lowPass3600: Self.filter(&sound, 3_600, order: 8, isHigh: false)
        case .lowPass7200: Self.filter(&sound, 7_200, order: 8, isHigh: false)
        case .lowPass11000: Self.filter(&sound, 11_000, order: 6, isHigh: false)
        case .highPass400: Self.filter(&sound, 400, order: 4, isHigh: true)
        case .resampled16k:
            Self.filter(&sound, 6_800, order: 8, isHigh: false)
            for index in sound.indices where index % 3 != 0 {
                let first = index - index % 3
                let next = first + 3 < sound.count ? sound[first + 3] : 0
                sound[index] = sound[first] + (next - sound[first]) * Double(index % 3) / 3
            }
        default: break
        }
    }

    /// Butterworth's filter as biquads (R. Bristow-Johnson's cookbook).
    private static func filter(_ sound: inout [Double], _ frequencyHz: Double, order: Int, isHigh: Bool) {
        for pair in 0..<order / 2 {
            let quality = 1 / (2 * cos(.pi * Double(2 * pair + 1) / Double(2 * order)))
            let angle = 2 * .pi * frequencyHz / 48_000
            let alpha = sin(angle) / (2 * quality)
            let edge = isHigh ? 1 + cos(angle) : 1 - cos(angle)
            let (b0, b1) = (edge / 2 / (1 + alpha), (isHigh ? -edge : edge) / (1 + alpha))
            let (a1, a2) = (-2 * cos(angle) / (1 + alpha), (1 - alpha) / (1 + alpha))
            var (x1, x2, y1, y2) = (0.0, 0.0, 0.0, 0.0)
            for index in sound.indices {
                let value = b0 * (sound[index] + x2) + b1 * x1 - a1 * y1 - a2 * y2
                (x2, x1, y2, y1) = (x1, sound[index], y1, value)
                sound[index] = value
            }
        }
    }

    // MARK: - Time

    private func moved(_ sound: [Double], count: Int) -> [Double] {
        let rate =
            switch fault {
            case .rate44For48: 44_100.0 / 48_000
            case .rate48For44: 48_000.0 / 44_100
            default: 1 / (1 + driftPPM * 1e-6)
            }
        var shift = 0.0
        return (0..<count).map { index in
            if fault == .lostSamples, index > 0, index % 15_000 == 0 { shift += 64 }
            if fault == .repeatedSamples, index > 0, index % 15_000 == 0 { shift -= 64 }
            var place = (Double(index) - delay) * rate + shift
            if fault == .jitter { place += 3 * sin(2 * .pi * 2.3 * Double(index) / 48_000) }
            if wander.samples > 0 { place += wander.samples * sin(Double(index) / Double(wander.everySamples)) }
            return Self.value(sound, at: place)
        }
    }

    private static let reach = 16
    private static let phases = 256
    private static let table: [Double] = (0...phases).flatMap { phase in
        (0..<2 * reach).map { tap in
            let distance = Double(tap - reach + 1) - Double(phase) / Double(phases)
            let sinc = distance == 0 ? 1 : sin(.pi * distance) / (.pi * distance)
            let window = cos(.pi * distance / Double(2 * reach + 1))
            return sinc * window * window
        }
    }

    private static func value(_ sound: [Double], at place: Double) -> Double {
        let whole = Int(place.rounded(.down))
        guard whole >= reach, whole + reach + 1 < sound.count else { return 0 }
        let fraction = (place - Double(whole)) * Double(phases)
        let phase = Int(fraction.rounded())
        if phase == 0 { return sound[whole] }
        var sum = 0.0
        // A plain loop: most of the time of a build that is not optimised is spent here.
        let (samples, weights) = (sound.span, table.span)
        let (start, first) = (whole - reach + 1, phase * 2 * reach)
        var tap = 0
        while tap < 2 * reach {
            sum += samples[start &+ tap] * weights[first &+ tap]
            tap &+= 1
        }
        return sum
    }

    // MARK: - Level

    private func change(_ sound: inout [Double]) {
        let full = 32_768.0
        switch fault {
        case .clippedAtFullScale: for index in sound.indices { sound[index] = sound[index] * 5 / gain }
        case .clippedBelow: for index in sound.indices { sound[index] = max(-6_000, min(6_000, sound[index] / gain)) }
        case .clippedOneSide: for index in sound.indices { sound[index] = min(5_000, sound[index] / gain) }
        case .softClipping:
            for index in sound.indices { sound[index] = 16_000 * tanh(sound[index] / gain / 12_000) }
        case .crossover:
            for index in sound.indices {
                sound[index] = abs(sound[index]) < 250 ? 0 : sound[index] - (sound[index] > 0 ? 250 : -250)
            }
        case .quiet: for index in sound.indices { sound[index] *= 0.01 }
        case .levelStep: for index in 66_000..<sound.count { sound[index] *= 0.6 }
        case .inverted: for index in sound.indices { sound[index] = -sound[index] }
        // The mean of both inputs, as calls take it.
        case .oneInverted: for index in sound.indices { sound[index] *= 0.1 }
        case .crosstalk: for index in sound.indices { sound[index] *= 1.1 }
        case .gainControl:
            // Towards −16 dBFS, quickly down and slowly up.
            var (power, factor) = (0.0, 4.0)
            for index in sound.indices {
                power += (sound[index] * sound[index] - power) / 480
                let wanted = min(4, 0.16 * full / max(1, power.squareRoot()))
                factor += (wanted - factor) / (wanted < factor ? 2_400 : 24_000)
                sound[index] *= factor
            }
        case .noiseSuppression: Self.suppress(&sound)
        default: break
        }
    }

    /// In four bands: what stays as loud for half a second is lowered to a fifth.
    private static func suppress(_ sound: inout [Double]) {
        var rest = sound
        var sum = [Double](repeating: 0, count: sound.count)
        for cutoff in [600.0, 1_500, 4_000, 24_000] {
            var band = rest
            if cutoff < 24_000 {
                let share = 1 - exp(-2 * .pi * cutoff / 48_000)
                var low = 0.0
                for index in band.indices {
                    low += share * (rest[index] - low)
                    band[index] = low
                    rest[index] -= low
                }
            }
            var (fast, slow, factor) = (0.0, 0.0, 1.0)
            for index in band.indices {
                fast += (band[index] * band[index] - fast) / 960
                slow += (fast - slow) / (fast < slow ? 2_400 : 24_000)
                let wanted = fast < 2 * slow ? 0.2 : 1.0
                factor += (wanted - factor) / 2_400
                sum[index] += band[index] * factor
            }
        }
        sound = sum
    }

    // MARK: - What is added

    private func add(_ sound: inout [Double], _ random: inout SeededGenerator) {
        func tone(_ frequency: Double, _ amplitude: Double) {
            for index in sound.indices {
                sound[index] += amplitude * sin(2 * .pi * frequency * Double(index) / 48_000)
            }
        }
        switch fault {
        case .offset: for index in sound.indices { sound[index] += 900 }
        case .hum50:
            tone(50, 100)
            tone(150, 60)
            tone(250, 30)
        case .hum60:
            tone(120, 120)
            tone(240, 50)
        case .whistle: tone(7_000, 60)
        case .noise: for index in sound.indices { sound[index] += 200 * random.normal() }
        case .echo: Self.echo(&sound, delay: 5_760, share: 0.25)
        case .longEcho: Self.echo(&sound, delay: 24_000, share: 0.12)
        default: break
        }
    }

    private static func echo(_ sound: inout [Double], delay: Int, share: Double) {
        for index in (delay..<sound.count).reversed() { sound[index] += share * sound[index - delay] }
    }

    // MARK: - What is damaged

    private func damage(_ sound: inout [Double], _ random: inout SeededGenerator) {
        let starts = stride(from: 40_000 + Int(seed % 7) * 300, to: sound.count - 2_000, by: 21_000)
        switch fault {
        case .gaps: for start in starts { for index in start..<start + 480 { sound[index] = 0 } }
        case .staleBlocks:
            let original = sound
            for start in starts { for index in start..<start + 512 { sound[index] = original[index - 512] } }
        case .clicks:
            for start in starts { for index in start..<start + 30 { sound[index] += 6_000 * random.normal() } }
        default: break
        }
    }

    /// µ-law of 8 bits, by its formula, expanded again.
    private static func companded(_ value: Double) -> Double {
        let size = log(1 + 255 * min(1, abs(value) / 32_768)) / log(256)
        let code = (size * 127).rounded() / 127
        return (value < 0 ? -1 : 1) * 32_768 / 255 * (pow(256, code) - 1)
    }
}
