internal import Realtime

/// Limits sums of sources to 16 bits, and restores the gain over 200 ms.
///
/// The gain is piecewise linear and continuous from frame to frame, because a jump would be audible as a click. It
/// begins to fall at the start of the frame that is too loud, just fast enough that nothing exceeds the range, but over
/// at least half a millisecond; samples that exceed the range within that time are clipped, which is inaudible.
public struct MixLimiter: Sendable {
    private var gain: Float = 1

    /// Samples that a fall takes at least.
    private static var shortestFall: Int { @_noAllocation @_noLocks get { 24 } }
    /// Samples in which the gain comes back to 1 − 1/e.
    private static var recovery: Float { @_noAllocation @_noLocks get { 9_600 } }

    /// Makes a limiter that has limited nothing.
    @_noAllocation @_noLocks
    public init() {}

    /// Limits the first `count` of `sums`, which follow those of the call before. Real-time safe.
    @_noAllocation @_noLocks
    mutating func apply(
        _ sums: borrowing FloatBuffer, _ count: Int, into output: inout MutableSpan<Int16>
    ) {
        var (least, slope) = (Float(1), Float(0))
        for index in 0..<count {
            let loudness = abs(sums[index])
            guard loudness > 32_767 else { continue }
            let fitting = 32_767 / loudness
            least = min(least, fitting)
            slope = max(slope, (gain - fitting) / Float(max(index + 1, Self.shortestFall)))
        }
        // Without a fall it rises, as far as the loudest sample lets it.
        let isFalling = slope > 0
        let wanted = isFalling ? least : min(least, gain + (1 - gain) * Float(count) / Self.recovery)
        let step = isFalling ? -slope : (wanted - gain) / Float(max(count, 1))
        let start = gain
        for index in 0..<min(count, output.count) {
            let line = start + step * Float(index + 1)
            gain = isFalling ? max(line, wanted) : line
            output[index] = Self.narrowed(sums[index] * gain)
        }
    }

    @_noAllocation @_noLocks
    private static func narrowed(_ value: Float) -> Int16 {
        Int16(max(-32_768, min(32_767, value < 0 ? value - 0.5 : value + 0.5)))
    }
}
