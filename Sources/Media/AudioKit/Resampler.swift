internal import CSpeexDSP

/// Changes the rate of mono samples with speexdsp's windowed-sinc resampler.
///
/// Its own delay is removed at the beginning of the output; ``flushSampleCount`` samples of silence at the end of the
/// input flush the rest.
@safe
public struct Resampler: ~Copyable, @unchecked Sendable {
    // Sendable: the state is reached only through this owner, which has one holder at a time.
    private let state: OpaquePointer

    /// Input samples that the filter still holds when the input ends.
    public let flushSampleCount: Int

    /// Makes a resampler.
    ///
    /// - Parameters:
    ///   - inputRate: Samples a second of what goes in, within ``WAVHeader/sampleRates``.
    ///   - outputRate: Samples a second of what comes out.
    ///   - quality: 0 (fast) … 10; 7 keeps aliases under −100 dB or so and is right for files.
    /// - Returns: `nil` if a rate or the quality is not allowed.
    public init?(from inputRate: Int, to outputRate: Int, quality: Int = 7) {
        guard
            WAVHeader.sampleRates.contains(inputRate), WAVHeader.sampleRates.contains(outputRate),
            (0...10).contains(quality)
        else { return nil }
        var failure: Int32 = 0
        let made = unsafe speex_resampler_init(1, UInt32(inputRate), UInt32(outputRate), Int32(quality), &failure)
        guard let made = unsafe made else { return nil }
        unsafe state = made
        unsafe speex_resampler_skip_zeros(made)
        flushSampleCount = unsafe Int(speex_resampler_get_input_latency(made))
    }

    deinit { unsafe speex_resampler_destroy(state) }

    /// Samples that one call consumed and produced.
    public struct Progress: Equatable, Sendable {
        /// Samples taken from the front of the input.
        public let consumed: Int
        /// Samples written to the output.
        public let produced: Int
    }

    /// Resamples from the front of `input` into `output` behind `offset`, until one of them is used up.
    ///
    /// Real-time safe.
    @_noAllocation @_noLocks
    public mutating func process(_ input: Span<Int16>, into output: inout MutableSpan<Int16>, at offset: Int = 0)
        -> Progress
    {
        guard offset >= 0, offset < output.count, !input.isEmpty else { return Progress(consumed: 0, produced: 0) }
        return run(input, &output, offset)
    }

    // speex_resampler_process_int: works in memory that speex_resampler_init allocated; takes no lock.
    @_semantics("no_performance_analysis") @inline(__always)
    private func run(_ input: Span<Int16>, _ output: inout MutableSpan<Int16>, _ offset: Int) -> Progress {
        var consumed = UInt32(clamping: input.count)
        var produced = UInt32(clamping: output.count - offset)
        unsafe input.withUnsafeBufferPointer { source in
            unsafe output.withUnsafeMutableBufferPointer { target in
                _ = unsafe speex_resampler_process_int(
                    state, 0, source.baseAddress, &consumed, target.baseAddress?.advanced(by: offset), &produced)
            }
        }
        return Progress(consumed: Int(consumed), produced: Int(produced))
    }
}
