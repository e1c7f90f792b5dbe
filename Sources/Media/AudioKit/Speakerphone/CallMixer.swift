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
