internal import Glibc
internal import Realtime

/// Brings samples of 8 to 48 kHz to 8 kHz, at −1…1, and removes what is constant. Delays by 0.75 ms.
struct NarrowbandDecimator: ~Copyable, Sendable {
    /// The filter's length at 8 kHz; it is that much longer at other rates.
    private static var span: Int { @_noAllocation @_noLocks get { 12 } }
    /// Room for 48 kHz.
    private static var longest: Int { @_noAllocation @_noLocks get { 72 } }

    /// The most samples that it takes at once.
    static var block: Int { @_noAllocation @_noLocks get { 480 } }

    let ratio: Int
    private let length: Int
    private var taps = FloatBuffer(capacity: NarrowbandDecimator.longest)
    /// The latest samples, as many as there are taps, and behind them a block.
    private var line = FloatBuffer(capacity: NarrowbandDecimator.longest + NarrowbandDecimator.block)
    /// Samples since the last result.
    private(set) var phase = 0
    private var lastInput: Float = 0
    private var lastOutput: Float = 0

    init(ratio: Int) {
        self.ratio = ratio
        length = min(Self.longest, Self.span * ratio)
        guard ratio > 1 else { return }
        let cutoff = 3_700 / (8_000 * Double(ratio))
        var sum: Float = 0
        for index in 0..<length {
            let distance = Double(index) - Double(length - 1) / 2
            let sinc = sin(2 * Double.pi * cutoff * distance) / (Double.pi * distance)
            let window = 0.54 - 0.46 * cos(2 * Double.pi * Double(index) / Double(length - 1))
            taps[index] = Float(sinc * window)
            sum += taps[index]
        }
        for index in 0..<length { taps[index] /= sum }
    }

    /// Takes the samples from `start` to `end`, up to a block of them. Those behind the last that there is are silent.
    ///
    /// - Returns: How many it has written: one for each `ratio` samples.
    @_noAllocation @_noLocks
    mutating func take(_ samples: Span<Int16>, from start: Int, to end: Int, into output: inout FloatBuffer) -> Int {
        line.set(samples, from: start, to: end, times: 1 / 32_768, at: length)
        return decimate(end &- start, into: &output)
    }

    /// The same of samples of which those behind the first `there` are silent.
    @_noAllocation @_noLocks
    mutating func take(
        _ samples: borrowing MutableSpan<Int16>, there: Int, from start: Int, to end: Int,
        into output: inout FloatBuffer
    ) -> Int {
        line.set(samples, there: there, from: start, to: end, times: 1 / 32_768, at: length)
        return decimate(end &- start, into: &output)
    }

    @_noAllocation @_noLocks
    private mutating func decimate(_ count: Int, into output: inout FloatBuffer) -> Int {
        var made = 0
        var end = ratio &- phase
        while end <= count {
            let value = ratio > 1 ? line.sumOfProducts(from: end, count: length, with: taps) : line[length &+ end &- 1]
            output[made] = withoutConstant(value)
            made &+= 1
            end &+= ratio
        }
        phase = count &- (end &- ratio)
        line.shift(by: count, keeping: length)
        return made
    }

    /// High-pass of the first order at 60 Hz.
    @_noAllocation @_noLocks
    private mutating func withoutConstant(_ value: Float) -> Float {
        lastOutput = value - lastInput + 0.954 * lastOutput
        // Numbers that fade out must not become denormal: they are slow.
        if abs(lastOutput) < 1e-12 { lastOutput = 0 }
        lastInput = value
        return lastOutput
    }
}
