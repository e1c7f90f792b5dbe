/// Mixes several calls on one card, and gives each call what it shall hear: all others and the microphone.
///
/// Sums are kept in 32 bits and brought down by a limiter that turns down at once and up again over 200 ms, so that three
/// people who speak together are not clipped.
public struct CallMixer: Sendable {
    /// Most samples in a frame: 20 ms at 48 kHz.
    public static let maximumSamples = 960

    private var sum = InlineArray<960, Int32>(repeating: 0)
    private var count = 0
    private var gain: Float = 1

    /// Makes a mixer of nothing.
    public init() {}

    /// Begins a frame of so many samples, 1…960. Real-time safe.
    @_noAllocation @_noLocks
    public mutating func begin(samples: Int) {
        precondition(samples >= 1 && samples <= Self.maximumSamples, "a frame has 1 to 960 samples")
        count = samples
        for index in 0..<samples { sum[index] = 0 }
    }

    /// Adds a source; one that is shorter than the frame is silent behind its end. Real-time safe.
    @_noAllocation @_noLocks
    public mutating func add(_ source: Span<Int16>) {
        for index in 0..<min(count, source.count) { sum[index] &+= Int32(source[index]) }
    }

    /// The sum of all sources, limited. Real-time safe.
    @_noAllocation @_noLocks
    public mutating func mix(into output: inout MutableSpan<Int16>) {
        let wanted = limit(loudest())
        let step = (wanted - gain) / Float(count)
        for index in 0..<min(count, output.count) {
            // Down at once, up along a line.
            gain = step < 0 ? wanted : gain + step
            output[index] = Self.narrowed(Float(sum[index]) * gain)
        }
    }

    /// The sum without `own`, which was added before: what that source shall hear. Real-time safe.
    @_noAllocation @_noLocks
    public func mix(without own: Span<Int16>, into output: inout MutableSpan<Int16>) {
        var peak: Int32 = 0
        for index in 0..<min(count, output.count) { peak = max(peak, abs(rest(own, index))) }
        let factor = min(gain, peak > 32_767 ? 32_767 / Float(peak) : 1)
        for index in 0..<min(count, output.count) {
            output[index] = Self.narrowed(Float(rest(own, index)) * factor)
        }
    }

    @_noAllocation @_noLocks
    private func rest(_ own: Span<Int16>, _ index: Int) -> Int32 {
        index < own.count ? sum[index] &- Int32(own[index]) : sum[index]
    }

    @_noAllocation @_noLocks
    private func loudest() -> Int32 {
        var peak: Int32 = 0
        for index in 0..<count { peak = max(peak, abs(sum[index])) }
        return peak
    }

    /// The gain at the end of this frame.
    @_noAllocation @_noLocks
    private func limit(_ peak: Int32) -> Float {
        let fitting = peak > 32_767 ? 32_767 / Float(peak) : 1
        return fitting < gain ? fitting : min(fitting, gain + (1 - gain) * Float(count) / 9_600)
    }

    @_noAllocation @_noLocks
    private static func narrowed(_ value: Float) -> Int16 {
        Int16(max(-32_768, min(32_767, value < 0 ? value - 0.5 : value + 0.5)))
    }
}
