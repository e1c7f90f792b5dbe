internal import Glibc
internal import Realtime

/// The low-pass filter between 8 000 and 48 000 samples a second: flat to 3.4 kHz, 60 dB down from 4.3 kHz, and 2 ms long.
///
/// It computes a block of outputs at a time, tap by tap: no output depends on another, so the loop over them becomes vectors, and
/// each output remains the sum of its products in the order of the taps.
struct NarrowbandFilter: ~Copyable, Sendable {
    /// Samples at 48 kHz for each at 8 kHz.
    static var ratio: Int { @_noAllocation @_noLocks get { 6 } }
    /// Coefficients, 32 for each of the six phases.
    static var length: Int { @_noAllocation @_noLocks get { 192 } }
    /// Samples at 8 kHz that one at 48 kHz depends on.
    static var span: Int { @_noAllocation @_noLocks get { 32 } }
    /// Outputs of one computation: 10 ms of samples at 8 kHz.
    static var block: Int { @_noAllocation @_noLocks get { 80 } }

    /// Their sum is 1.
    private var taps = FloatBuffer(capacity: NarrowbandFilter.length)
    private var outputs = FloatBuffer(capacity: NarrowbandFilter.block)

    init() {
        // Windowed as Kaiser has it, for 60 dB.
        let (cutoff, shape) = (3_850.0 / 48_000, 5.65)
        let middle = Double(Self.length - 1) / 2
        var made: [Double] = []
        for index in 0..<Self.length {
            let offset = Double(index) - middle
            let position = offset / middle
            let window = Self.bessel(shape * max(0, 1 - position * position).squareRoot()) / Self.bessel(shape)
            made.append(sin(2 * .pi * cutoff * offset) / (.pi * offset) * window)
        }
        let sum = made.reduce(0, +)
        for index in 0..<Self.length { taps[index] = Float(made[index] / sum) }
    }

    /// The modified Bessel function of the first kind and order 0.
    private static func bessel(_ x: Double) -> Double {
        var (sum, term) = (1.0, 1.0)
        for step in 1...30 {
            term *= (x / 2 / Double(step)) * (x / 2 / Double(step))
            sum += term
        }
        return sum
    }

    /// Begins with outputs of zero.
    @_noAllocation @_noLocks
    mutating func begin() {
        for index in 0..<Self.block { outputs[index] = 0 }
    }

    /// Adds the products of a tap with the numbers from `first` on, one to each output.
    @_noAllocation @_noLocks
    mutating func add(_ numbers: borrowing FloatBuffer, from first: Int, tap: Int) {
        outputs.add(numbers, from: first, times: taps[tap])
    }

    /// An output, rounded.
    @_noAllocation @_noLocks
    func output(_ index: Int, times factor: Float) -> Int16 {
        let value = outputs[index] * factor
        return Int16(max(-32_768, min(32_767, value + (value < 0 ? -0.5 : 0.5))))
    }
}

/// Encodes sound at 48 kHz as G.711, which has 8 000 samples a second. Its memory is allocated separately, because most calls have
/// no such encoder.
public struct G711Encoder: ~Copyable, Sendable {
    private let law: G711
    private var filter = NarrowbandFilter()
    /// The samples of each of the six phases: the newest 31 of former blocks, and then those of a block.
    private var phases = FloatBuffer(capacity: NarrowbandFilter.ratio * G711Encoder.phaseLength)

    private static var former: Int { @_noAllocation @_noLocks get { NarrowbandFilter.span - 1 } }
    private static var phaseLength: Int { @_noAllocation @_noLocks get { former + NarrowbandFilter.block } }

    /// Delay of the encoded sound in samples at 48 kHz. G.711 itself does not look ahead; this is half the length of
    /// the filter before it, up to the end of the six samples of a byte.
    public static var delaySamples: Int { @_noAllocation @_noLocks get { 90 } }

    /// Makes an encoder.
    public init(_ law: G711) { self.law = law }

    /// Encodes six samples into each byte, as many as both hold. Real-time safe.
    ///
    /// - Returns: Bytes written.
    @_noAllocation @_noLocks
    public mutating func encode(_ samples: Span<Int16>, into bytes: inout MutableSpan<UInt8>) -> Int {
        let count = min(samples.count / NarrowbandFilter.ratio, bytes.count)
        var start = 0
        while start < count {
            let length = min(NarrowbandFilter.block, count - start)
            encode(samples, from: start, length, into: &bytes)
            start += length
        }
        return count
    }

    /// Encodes the samples of at most a block of bytes.
    @_noAllocation @_noLocks
    private mutating func encode(
        _ samples: Span<Int16>, from start: Int, _ length: Int, into bytes: inout MutableSpan<UInt8>
    ) {
        for phase in 0..<NarrowbandFilter.ratio {
            let first = phase * Self.phaseLength + Self.former
            for index in 0..<length {
                phases[first + index] = Float(samples[(start + index) * NarrowbandFilter.ratio + phase])
            }
        }
        filter.begin()
        for age in 0..<NarrowbandFilter.length {
            let phase = NarrowbandFilter.ratio - 1 - age % NarrowbandFilter.ratio
            let first = phase * Self.phaseLength + Self.former - age / NarrowbandFilter.ratio
            filter.add(phases, from: first, tap: age)
        }
        for index in 0..<length { bytes[start + index] = law.byte(filter.output(index, times: 1)) }
        for phase in 0..<NarrowbandFilter.ratio {
            let first = phase * Self.phaseLength
            for index in first..<(first + Self.former) { phases[index] = phases[index + length] }
        }
    }
}
