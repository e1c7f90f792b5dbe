internal import CSpeexDSP
internal import Realtime

/// Changes samples from one rate to another, and a little more or less than that, with speexdsp's resampler.
@safe
struct ClockResampler: ~Copyable, @unchecked Sendable {
    // Sendable: the state is reached only through this owner, which has one holder at a time.
    private let state: OpaquePointer
    private let inputRate: Int
    private let outputRate: Int
    private var numerator: UInt32 = 0
    /// Samples of the input that the filter holds.
    let latencySamples: Int

    /// The ratio of rates is a fraction with this denominator. The library multiplies it with numbers of its own size
    /// in 32 bits, so it must stay below 2¹⁶; being prime, it keeps the fraction from being reduced, which would change
    /// the filter. Its steps are 15 millionths; the loop above averages over them.
    private static var denominator: UInt32 {
        @_noAllocation @_noLocks get { 65_521 }
    }
    /// The widest correction, in millionths.
    private static var limitPPM: Double {
        @_noAllocation @_noLocks get { 5_000 }
    }
    /// Good for 80 dB at a delay of 40 samples.
    private static let quality: Int32 = 5

    /// - Parameters:
    ///   - inputRate: Samples a second of what goes in, 4 000…384 000.
    ///   - outputRate: Samples a second of what comes out.
    /// - Returns: `nil` if the library refuses.
    init?(from inputRate: Int, to outputRate: Int) {
        guard (4_000...384_000).contains(inputRate), (4_000...384_000).contains(outputRate) else { return nil }
        var failure: Int32 = 0
        let made = unsafe speex_resampler_init(
            1, UInt32(inputRate), UInt32(outputRate), Self.quality, &failure)
        guard let made = unsafe made else { return nil }
        unsafe state = made
        self.inputRate = inputRate
        self.outputRate = outputRate
        latencySamples = unsafe Int(speex_resampler_get_input_latency(made))
        // The longest filter first: later changes then find their memory taken already.
        setCorrection(ppm: Self.limitPPM)
        setCorrection(ppm: 0)
    }

    deinit { unsafe speex_resampler_destroy(state) }

    /// Makes the input be consumed faster by `ppm` millionths, or slower if it is negative; at most 5 000.
    @_noAllocation @_noLocks
    mutating func setCorrection(ppm: Double) {
        let limited = max(-Self.limitPPM, min(Self.limitPPM, ppm))
        let ratio = Double(inputRate) / Double(outputRate) * (1 + limited * 1e-6)
        var wanted = UInt32(ratio * Double(Self.denominator) + 0.5)
        if wanted % Self.denominator == 0 { wanted += 1 }
        guard wanted != numerator else { return }
        numerator = wanted
        setRatio()
    }

    // speex_resampler_set_rate_frac: recomputes its filter, in memory allocated by init; takes no lock.
    @_semantics("no_performance_analysis") @inline(__always)
    private func setRatio() {
        _ = unsafe speex_resampler_set_rate_frac(
            state, numerator, Self.denominator, UInt32(inputRate), UInt32(outputRate))
    }

    /// Clears the filter's state, for a stream that restarts.
    @_semantics("no_performance_analysis") @inline(__always)
    func reset() { _ = unsafe speex_resampler_reset_mem(state) }

    /// The most input samples that `count` output samples need.
    @_noAllocation @_noLocks
    func inputCount(forOutput count: Int) -> Int {
        (count &* Int(numerator) &+ Int(Self.denominator) &- 1) / Int(Self.denominator)
    }

    /// Resamples `input[start..<end]` into `output` from `offset` on, until one of them is used up.
    ///
    /// - Returns: Samples taken and samples given.
    // speex_resampler_process_int: works in memory that speex_resampler_init allocated; takes no lock.
    @_semantics("no_performance_analysis") @inline(__always)
    func process(
        _ input: Span<Int16>, from start: Int, to end: Int, into output: inout MutableSpan<Int16>, at offset: Int,
        limit: Int
    ) -> (consumed: Int, produced: Int) {
        guard start >= 0, start < end, end <= input.count, offset >= 0, offset < limit, limit <= output.count else {
            return (0, 0)
        }
        var consumed = UInt32(end - start)
        var produced = UInt32(limit - offset)
        unsafe input.withUnsafeBufferPointer { source in
            unsafe output.withUnsafeMutableBufferPointer { target in
                _ = unsafe speex_resampler_process_int(
                    state, 0, source.baseAddress?.advanced(by: start), &consumed,
                    target.baseAddress?.advanced(by: offset), &produced)
            }
        }
        return (Int(consumed), Int(produced))
    }

    /// Resamples `input[start..<end]` into the front of `output`.
    // As above. Copying a span is a plain copy; unoptimised code counts it as reference counting.
    @_semantics("no_performance_analysis") @inline(__always)
    func process(_ input: Span<Int16>, from start: Int, to end: Int, into output: inout SampleBuffer)
        -> (consumed: Int, produced: Int)
    {
        var space = output.mutableSamples(output.capacity)
        return process(input, from: start, to: end, into: &space, at: 0, limit: space.count)
    }

    /// Resamples `input[start..<end]` into `output[offset..<limit]`.
    // As above.
    @_semantics("no_performance_analysis") @inline(__always)
    func process(
        _ input: borrowing SampleBuffer, from start: Int, to end: Int, into output: inout MutableSpan<Int16>,
        at offset: Int, limit: Int
    ) -> (consumed: Int, produced: Int) {
        process(input.samples(end), from: start, to: end, into: &output, at: offset, limit: limit)
    }
}
