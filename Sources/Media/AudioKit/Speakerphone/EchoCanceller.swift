internal import CSpeexDSP
internal import Glibc

/// speexdsp's echo canceller and preprocessor, in one small wrapper. All their memory is taken in the initialiser.
@safe
struct EchoCanceller: ~Copyable, @unchecked Sendable {
    // Sendable: the states are reached only through this owner, which has one holder at a time.
    private let echo: OpaquePointer
    private let preprocessor: OpaquePointer
    /// The played sound, and the output: one frame each.
    private let reference: UnsafeMutablePointer<Int16>
    private let output: UnsafeMutablePointer<Int16>

    static let frame = 480
    static let rate = 48_000

    init(tailMilliseconds: Int) throws(SpeakerphoneError) {
        let tail = min(500, max(32, tailMilliseconds)) * Self.rate / 1_000
        guard let echo = unsafe speex_echo_state_init(Int32(Self.frame), Int32(tail)) else {
            throw SpeakerphoneError(what: "echo canceller")
        }
        guard let preprocessor = unsafe speex_preprocess_state_init(Int32(Self.frame), Int32(Self.rate)) else {
            unsafe speex_echo_state_destroy(echo)
            throw SpeakerphoneError(what: "preprocessor")
        }
        unsafe self.echo = echo
        unsafe self.preprocessor = preprocessor
        unsafe reference = .allocate(capacity: Self.frame)
        unsafe reference.initialize(repeating: 0, count: Self.frame)
        unsafe output = .allocate(capacity: Self.frame)
        unsafe output.initialize(repeating: 0, count: Self.frame)
        var rate = Int32(Self.rate)
        _ = unsafe speex_echo_ctl(echo, SPEEX_ECHO_SET_SAMPLING_RATE, &rate)
    }

    deinit {
        unsafe speex_preprocess_state_destroy(preprocessor)
        unsafe speex_echo_state_destroy(echo)
        unsafe reference.deallocate()
        unsafe output.deallocate()
    }

    /// Takes the frame that was played `delay` samples ago as the reference; its mean square. Real-time safe.
    @_noAllocation @_noLocks
    mutating func setReference(
        _ played: borrowing SampleHistory, delay: Int, following follower: inout ReferenceFollower
    ) -> Double {
        var sum = 0.0
        for index in 0..<Self.frame {
            let value = follower.sample(played, delay: delay + Self.frame - 1 - index)
            follower.note(value)
            unsafe reference[index] = Int16(max(-32_768, min(32_767, value < 0 ? value - 0.5 : value + 0.5)))
            sum += Double(value * value)
        }
        return sum / Double(Self.frame)
    }

    /// Switches the preprocessor's parts. Real-time safe.
    @_noAllocation @_noLocks
    mutating func apply(_ settings: SpeakerphoneSettings) {
        set(SPEEX_PREPROCESS_SET_DENOISE, settings.noiseSuppression ? 1 : 0)
        set(SPEEX_PREPROCESS_SET_NOISE_SUPPRESS, -Int32(min(40, max(0, settings.noiseSuppressionDB))))
        set(SPEEX_PREPROCESS_SET_AGC, settings.gainControl ? 1 : 0)
        set(SPEEX_PREPROCESS_SET_AGC_MAX_GAIN, Int32(min(30, max(0, settings.maximumGainDB))))
        // RMS of speech after the gain control: about −18 dBFS.
        set(SPEEX_PREPROCESS_SET_AGC_TARGET, 6_000)
        set(SPEEX_PREPROCESS_SET_ECHO_SUPPRESS, -40)
        set(SPEEX_PREPROCESS_SET_ECHO_SUPPRESS_ACTIVE, -15)
        attachEcho(settings.echoCancellation)
    }

    // The following five work in memory that the states own, and take no lock.

    @_semantics("no_performance_analysis") @inline(__always)
    private func set(_ request: Int32, _ value: Int32) {
        var value = value
        _ = unsafe speex_preprocess_ctl(preprocessor, request, &value)
    }

    /// Residual echo is lowered by the preprocessor, which asks the canceller how much of it there may be.
    @_semantics("no_performance_analysis") @inline(__always)
    private func attachEcho(_ isAttached: Bool) {
        _ = unsafe speex_preprocess_ctl(
            preprocessor, SPEEX_PREPROCESS_SET_ECHO_STATE, isAttached ? UnsafeMutableRawPointer(echo) : nil)
    }

    /// Takes the echo of the reference out of 480 captured samples.
    @_semantics("no_performance_analysis") @inline(__always)
    mutating func cancel(_ captured: inout MutableSpan<Int16>) {
        unsafe captured.withUnsafeMutableBufferPointer { room in
            guard let heard = room.baseAddress else { return }
            unsafe speex_echo_cancellation(echo, heard, reference, output)
            unsafe heard.update(from: output, count: Self.frame)
        }
    }

    /// Noise suppression, gain control and the rest of the echo, of 480 samples.
    @_semantics("no_performance_analysis") @inline(__always)
    mutating func preprocess(_ samples: inout MutableSpan<Int16>) {
        unsafe samples.withUnsafeMutableBufferPointer { room in
            guard let room = room.baseAddress else { return }
            _ = unsafe speex_preprocess_run(preprocessor, room)
        }
    }

    /// How much the gain control amplifies powers at the moment, as a factor.
    @_semantics("no_performance_analysis") @inline(__always)
    func gainOfPower() -> Double {
        var decibels: Int32 = 0
        _ = unsafe speex_preprocess_ctl(preprocessor, SPEEX_PREPROCESS_GET_AGC_GAIN, &decibels)
        return pow(10, Double(decibels) / 10)
    }

    /// Forgets the room.
    @_semantics("no_performance_analysis") @inline(__always)
    mutating func reset() { unsafe speex_echo_state_reset(echo) }
}
