internal import Realtime

/// Mixes several calls on one card, and gives each call its mix: all others and the microphone.
///
/// A ``MixLimiter`` reduces sums, so that three people who speak at the same time are not clipped. Sums are
/// floating-point numbers, which represent up to 511 sources exactly.
public struct CallMixer: ~Copyable, Sendable {
    /// Most samples in a frame: 20 ms at 48 kHz.
    public static let maximumSamples = 960

    private var sum = FloatBuffer(capacity: CallMixer.maximumSamples)
    /// The sum without one of its sources.
    private var rest = FloatBuffer(capacity: CallMixer.maximumSamples)
    private var count = 0
    private var limiter = MixLimiter()

    /// Makes a mixer of nothing.
    public init() {}

    /// Begins a frame of `samples` samples, 1…960. Real-time safe.
    @_noAllocation @_noLocks
    public mutating func begin(samples: Int) {
        precondition(samples >= 1 && samples <= Self.maximumSamples, "a frame has 1 to 960 samples")
        count = samples
        for index in 0..<samples { sum[index] = 0 }
    }

    /// Adds a source; one that is shorter than the frame is silent behind its end. Real-time safe.
    @_noAllocation @_noLocks
    public mutating func add(_ source: Span<Int16>) {
        for index in 0..<min(count, source.count) { sum[index] += Float(source[index]) }
    }

    /// The sum of all sources, limited. Real-time safe.
    @_noAllocation @_noLocks
    public mutating func mix(into output: inout MutableSpan<Int16>) { limiter.apply(sum, count, into: &output) }

    /// The sum without `own`, which was added before: the mix for that source. Real-time safe.
    ///
    /// - Parameter limiter: That source's limiter, the same in each frame.
    @_noAllocation @_noLocks
    public mutating func mix(
        without own: Span<Int16>, into output: inout MutableSpan<Int16>, through limiter: inout MixLimiter
    ) {
        for index in 0..<count { rest[index] = index < own.count ? sum[index] - Float(own[index]) : sum[index] }
        limiter.apply(rest, count, into: &output)
    }
}

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
