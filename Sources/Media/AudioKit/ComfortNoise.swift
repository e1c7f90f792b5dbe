/// The content of a comfort noise payload (RFC 3389 §3): the level of the noise, and its spectrum.
public struct ComfortNoise: Sendable {
    /// Decibels below overload: 0…127.
    public var attenuation: UInt8
    /// Coefficients of reflection, as many as the payload has, up to 12.
    public private(set) var order = 0
    private var coefficients = InlineArray<12, Float>(repeating: 0)

    /// Most coefficients that are read and written.
    public static var maximumOrder: Int { @_noAllocation @_noLocks get { 12 } }

    /// White noise.
    @_noAllocation @_noLocks
    public init(attenuation: UInt8) { self.attenuation = min(127, attenuation) }

    /// Reads a payload; `nil` if it is empty. Coefficients beyond the twelfth change little and are left out.
    @_noAllocation @_noLocks
    public init?(_ payload: borrowing Span<UInt8>) {
        guard payload.count > 0 else { return nil }
        attenuation = payload[0] & 0x7F
        while order < Self.maximumOrder, order + 1 < payload.count {
            // 127 means zero, and 254 the greatest value; 255 is not used (§3.2).
            let steps = Int(min(payload[order + 1], 254)) - 127
            coefficients[order] = Float(steps) * 258 / 32_768
            order += 1
        }
    }

    /// Measures noise: its level, and its colour with as many coefficients.
    ///
    /// - Parameters:
    ///   - samples: At least one sample; 80 to 240 make sense.
    ///   - order: 0…12.
    @_noAllocation @_noLocks
    public init(measuring samples: borrowing Span<Int16>, order: Int) {
        self.init(attenuation: 127)
        guard samples.count > 0 else { return }
        var correlation = InlineArray<13, Double>(repeating: 0)
        let wanted = max(0, min(Self.maximumOrder, min(order, samples.count - 1)))
        for lag in 0...wanted {
            var sum = 0.0
            for index in lag..<samples.count { sum += Double(samples[index]) * Double(samples[index - lag]) }
            correlation[lag] = sum
        }
        let meanSquare = correlation[0] / Double(samples.count)
        attenuation = Self.attenuation(meanSquare)
        guard correlation[0] > 0 else { return }
        // A little white noise below all keeps the recursion well behaved.
        correlation[0] *= 1.000_1
        reflect(correlation, wanted)
    }

    /// Levinson's recursion: the coefficients of reflection of a correlation.
    @_noAllocation @_noLocks
    private mutating func reflect(_ correlation: InlineArray<13, Double>, _ wanted: Int) {
        var predictor = InlineArray<13, Double>(repeating: 0)
        predictor[0] = 1
        var error = correlation[0]
        while order < wanted, error > 0 {
            var sum = 0.0
            for index in 0...order { sum += predictor[index] * correlation[order + 1 - index] }
            let reflection = max(-0.999, min(0.999, -sum / error))
            var next = predictor
            for index in 1...(order + 1) { next[index] += reflection * predictor[order + 1 - index] }
            predictor = next
            error *= 1 - reflection * reflection
            coefficients[order] = Float(reflection)
            order += 1
        }
    }

    /// The coefficient at `index`, -1…1; zero beyond the last.
    @_noAllocation @_noLocks
    public func coefficient(_ index: Int) -> Float { index >= 0 && index < order ? coefficients[index] : 0 }

    /// Writes the payload, cut where `payload` ends.
    ///
    /// - Returns: Bytes written.
    @_noAllocation @_noLocks
    public func write(into payload: inout MutableSpan<UInt8>) -> Int {
        guard payload.count > 0 else { return 0 }
        payload[0] = attenuation & 0x7F
        let count = min(order, payload.count - 1)
        for index in 0..<count {
            // Moved above zero, so that adding a half and cutting rounds to the nearest.
            let steps = max(0, min(254, coefficients[index] * 32_768 / 258 + 127))
            payload[index + 1] = UInt8(truncatingIfNeeded: Int(steps + 0.5))
        }
        return count + 1
    }

    @_noAllocation @_noLocks
    static func attenuation(_ meanSquare: Double) -> UInt8 {
        let ratio = meanSquare / (32_767 * 32_767)
        var limit = 0.8912509381337456
        var attenuation: UInt8 = 0
        while attenuation < 127, ratio < limit {
            limit *= 0.7943282347242815
            attenuation += 1
        }
        return attenuation
    }

    /// The share of the noise's power that linear prediction leaves, 0…1: little of a tone, nearly all of white noise.
    var residue: Float {
        @_noAllocation @_noLocks get {
            var share: Float = 1
            for index in 0..<order { share *= max(0, 1 - coefficients[index] * coefficients[index]) }
            return share
        }
    }

    /// Power that white noise must have so that the noise has the described level, in squared sample units.
    var excitation: Float {
        @_noAllocation @_noLocks get {
            var power: Float = 32_767 * 32_767
            var step = 0
            while step < Int(attenuation) {
                power *= 0.794_328_2
                step += 1
            }
            return power * residue
        }
    }
}

/// Makes comfort noise as payloads describe it (RFC 3389 §3): white noise through a lattice of all poles.
public struct ComfortNoiseGenerator: Sendable {
    private var noise = ComfortNoise(attenuation: 127)
    private var amplitude: Float = 0
    private var state: UInt64
    private var backward = InlineArray<13, Float>(repeating: 0)

    /// Makes a generator of silence.
    ///
    /// - Parameter seed: Any number; equal ones make equal noise.
    @_noAllocation @_noLocks
    public init(seed: UInt64) { state = seed | 1 }

    /// The noise to make from now on.
    @_noAllocation @_noLocks
    public mutating func set(_ noise: ComfortNoise) {
        self.noise = noise
        // Even chances between -a and a have a third of a² as their power.
        amplitude = squareRoot(noise.excitation * 3)
    }

    /// Fills `samples` with the next noise. Real-time safe.
    @_noAllocation @_noLocks
    public mutating func fill(_ samples: inout MutableSpan<Int16>) {
        for index in 0..<samples.count { samples[index] = Int16(max(-32_768, min(32_767, next()))) }
    }

    /// The next sample of the noise, which may lie a little beyond 16 bits. Real-time safe.
    @_noAllocation @_noLocks
    mutating func next() -> Float {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        let even = Float(Int32(truncatingIfNeeded: state >> 32)) / 2_147_483_648
        var forward = even * amplitude
        var stage = noise.order
        while stage > 0 {
            let reflection = noise.coefficient(stage - 1)
            forward -= reflection * backward[stage - 1]
            backward[stage] = backward[stage - 1] + reflection * forward
            stage -= 1
        }
        backward[0] = forward
        return forward
    }
}

/// One instruction, which the compiler sees through in optimised builds only.
@_semantics("no_performance_analysis") @inline(__always)
private func squareRoot(_ value: Float) -> Float { value.squareRoot() }
