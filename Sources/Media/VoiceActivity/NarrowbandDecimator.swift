internal import Glibc

/// Brings samples of 8 to 48 kHz to 8 kHz, at −1…1, and removes what is constant. Delays by 0.75 ms.
struct NarrowbandDecimator: Sendable {
    /// The filter's length at 8 kHz; it is that much longer at other rates.
    private static var span: Int { @_noAllocation @_noLocks get { 12 } }
    /// Room for 48 kHz.
    private static var longest: Int { @_noAllocation @_noLocks get { 72 } }

    let ratio: Int
    private let length: Int
    private var taps = InlineArray<72, Float>(repeating: 0)
    /// Each sample stands here twice, `length` apart, so that the newest are always in one piece.
    private var line = InlineArray<144, Float>(repeating: 0)
    private var position = 0
    private var phase = 0
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

    /// Takes a sample. Returns one for each `ratio` samples.
    @_noAllocation @_noLocks
    mutating func take(_ sample: Int16) -> Float? {
        let value = Float(sample) * (1 / 32_768)
        guard ratio > 1 else { return withoutConstant(value) }
        line[position] = value
        line[position &+ length] = value
        position = position &+ 1 == length ? 0 : position &+ 1
        phase &+= 1
        guard phase == ratio else { return nil }
        phase = 0
        // Four sums, so that additions do not wait for each other.
        var sums = SIMD4<Float>.zero
        var index = 0
        while index < length {
            let at = position &+ index
            sums +=
                SIMD4(line[at], line[at &+ 1], line[at &+ 2], line[at &+ 3])
                * SIMD4(taps[index], taps[index &+ 1], taps[index &+ 2], taps[index &+ 3])
            index &+= 4
        }
        return withoutConstant(sums.sum())
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
