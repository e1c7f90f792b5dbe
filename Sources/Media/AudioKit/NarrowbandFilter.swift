internal import Glibc

/// The low-pass filter between 8 000 and 48 000 samples a second: flat to 3.4 kHz, 60 dB down from 4.3 kHz, and 2 ms long.
struct NarrowbandFilter: Sendable {
    /// Samples at 48 kHz for each at 8 kHz.
    static var ratio: Int { @_noAllocation @_noLocks get { 6 } }
    /// Coefficients, 32 for each of the six phases.
    static var length: Int { @_noAllocation @_noLocks get { 192 } }

    /// Their sum is 1.
    private var taps = InlineArray<192, Float>(repeating: 0)

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

    subscript(index: Int) -> Float { @_noAllocation @_noLocks get { taps[index] } }

    @_noAllocation @_noLocks
    static func sample(_ value: Float) -> Int16 { Int16(max(-32_768, min(32_767, value + (value < 0 ? -0.5 : 0.5)))) }
}

/// The state of a filter between samples at 8 kHz: the 32 newest.
struct NarrowbandMemory: Sendable {
    private var recent = InlineArray<32, Float>(repeating: 0)
    private var newest = 0

    @_noAllocation @_noLocks
    init() {}

    @_noAllocation @_noLocks
    mutating func push(_ sample: Float) {
        newest = (newest + 1) & 31
        recent[newest] = sample
    }

    /// One of the six samples at 48 kHz for the newest sample.
    @_noAllocation @_noLocks
    func output(phase: Int, _ filter: borrowing NarrowbandFilter) -> Int16 {
        var sum: Float = 0
        for age in 0..<32 { sum += filter[phase + age * NarrowbandFilter.ratio] * recent[(newest - age) & 31] }
        return NarrowbandFilter.sample(sum * 6)
    }
}

/// Encodes sound at 48 kHz as G.711, which has 8 000 samples a second. It has a separate allocation, because most calls
/// have none.
@safe
public struct G711Encoder: ~Copyable, @unchecked Sendable {
    // Not shared: the struct is non-copyable, so its memory may move with it between threads.
    private let memory: UnsafeMutablePointer<Memory>

    /// Delay of the encoded sound in samples at 48 kHz. G.711 itself does not look ahead; this is half the length of
    /// the filter before it, up to the end of the six samples of a byte.
    public static var delaySamples: Int { @_noAllocation @_noLocks get { 90 } }

    private struct Memory {
        let law: G711
        let filter = NarrowbandFilter()
        var recent = InlineArray<256, Float>(repeating: 0)
        var newest = 0

        @_noAllocation @_noLocks
        mutating func push(_ sample: Int16) {
            newest = (newest + 1) & 255
            recent[newest] = Float(sample)
        }

        /// What the newest six samples are coded as.
        @_noAllocation @_noLocks
        func byte() -> UInt8 {
            var sum: Float = 0
            for age in 0..<NarrowbandFilter.length { sum += filter[age] * recent[(newest - age) & 255] }
            return law.byte(NarrowbandFilter.sample(sum))
        }
    }

    /// Makes an encoder.
    public init(_ law: G711) {
        unsafe memory = .allocate(capacity: 1)
        unsafe memory.initialize(to: Memory(law: law))
    }

    deinit {
        unsafe memory.deinitialize(count: 1)
        unsafe memory.deallocate()
    }

    /// Encodes six samples into each byte, as many as both hold. Real-time safe.
    ///
    /// - Returns: Bytes written.
    @_noAllocation @_noLocks
    public mutating func encode(_ samples: Span<Int16>, into bytes: inout MutableSpan<UInt8>) -> Int {
        let count = min(samples.count / NarrowbandFilter.ratio, bytes.count)
        for index in 0..<count {
            for phase in 0..<NarrowbandFilter.ratio {
                unsafe memory.pointee.push(samples[index * NarrowbandFilter.ratio + phase])
            }
            bytes[index] = unsafe memory.pointee.byte()
        }
        return count
    }
}
