internal import CALSA
internal import Glibc

/// Negotiates rate, format, channels, period and buffer with a card, for the lowest delay that it supports. Used while
/// its stream is open.
@safe
struct ALSASetup {
    private let pcm: OpaquePointer

    init(_ pcm: OpaquePointer) { unsafe self.pcm = pcm }

    /// Sets the card up, and reads back what it has granted.
    func apply(
        periodMilliseconds: Int, leastBufferMilliseconds: Int = 0, channels: Int = 1
    ) throws(ALSAFailure) -> CardGrant {
        let parameters = try HardwareParameters()
        defer { parameters.free() }
        // The rates that the card has itself, if it has any: our resampler is better than libasound's own.
        // The period that was asked for, if it can be had at all.
        var failure: ALSAFailure?
        for (convertsRate, period) in [
            (false, periodMilliseconds), (true, periodMilliseconds), (false, nil), (true, nil),
        ] {
            do throws(ALSAFailure) {
                return try apply(
                    parameters, convertsRate, periodMilliseconds: period,
                    leastBufferMilliseconds: leastBufferMilliseconds, channels: channels)
            } catch {
                failure = failure ?? error
            }
        }
        throw failure ?? ALSAFailure(step: "setting it up", errno: EINVAL)
    }

    private func apply(
        _ parameters: HardwareParameters, _ convertsRate: Bool, periodMilliseconds: Int?, leastBufferMilliseconds: Int,
        channels wanted: Int
    ) throws(ALSAFailure) -> CardGrant {
        let params = unsafe parameters.pointer
        try check(unsafe snd_pcm_hw_params_any(pcm, params), "asking what it can do")
        // Plug-ins that cannot convert do not know the question.
        _ = unsafe snd_pcm_hw_params_set_rate_resample(pcm, params, convertsRate ? 1 : 0)
        let isMemoryMapped = try unsafe setAccess(params)
        let format = try unsafe setFormat(params)
        var channels = UInt32(max(1, wanted))
        try check(unsafe snd_pcm_hw_params_set_channels_near(pcm, params, &channels), "setting the channels")
        var rate: UInt32 = 48_000
        try check(unsafe snd_pcm_hw_params_set_rate_near(pcm, params, &rate, nil), "setting the rate")
        if let periodMilliseconds {
            var period = snd_pcm_uframes_t(max(16, Int(rate) * periodMilliseconds / 1_000))
            try check(
                unsafe snd_pcm_hw_params_set_period_size_near(pcm, params, &period, nil), "setting the period")
            // More than is ever filled: room costs no delay, and for capture it is time to be late in.
            var buffer = max(period * 8, snd_pcm_uframes_t(Int(rate) * leastBufferMilliseconds / 1_000))
            try check(unsafe snd_pcm_hw_params_set_buffer_size_near(pcm, params, &buffer), "setting the buffer")
        }
        try check(unsafe snd_pcm_hw_params(pcm, params), "setting it up")
        return try unsafe readBack(params, format, isMemoryMapped)
    }

    /// - Returns: Whether samples go through mapped memory, which is the second choice: it gains nothing where frames
    ///   are converted anyway.
    private func setAccess(_ params: OpaquePointer) throws(ALSAFailure) -> Bool {
        if unsafe snd_pcm_hw_params_set_access(pcm, params, SND_PCM_ACCESS_RW_INTERLEAVED) >= 0 { return false }
        try check(
            unsafe snd_pcm_hw_params_set_access(pcm, params, SND_PCM_ACCESS_MMAP_INTERLEAVED),
            "asking for interleaved samples")
        return true
    }

    private func setFormat(_ params: OpaquePointer) throws(ALSAFailure) -> CardSampleFormat {
        for format in CardSampleFormat.allCases {
            if unsafe snd_pcm_hw_params_set_format(pcm, params, format.alsa) >= 0 { return format }
        }
        throw ALSAFailure(step: "asking for a sample format", errno: EINVAL)
    }

    private func readBack(_ params: OpaquePointer, _ format: CardSampleFormat, _ isMemoryMapped: Bool)
        throws(ALSAFailure) -> CardGrant
    {
        var (rate, channels) = (UInt32(0), UInt32(0))
        var (period, buffer) = (snd_pcm_uframes_t(0), snd_pcm_uframes_t(0))
        try check(unsafe snd_pcm_hw_params_get_rate(params, &rate, nil), "reading back the rate")
        try check(unsafe snd_pcm_hw_params_get_channels(params, &channels), "reading back the channels")
        try check(unsafe snd_pcm_hw_params_get_period_size(params, &period, nil), "reading back the period")
        try check(unsafe snd_pcm_hw_params_get_buffer_size(params, &buffer), "reading back the buffer")
        guard rate > 0, channels > 0, period > 0, buffer >= period, buffer < 1 << 24 else {
            throw ALSAFailure(step: "reading back what it granted", errno: EINVAL)
        }
        return CardGrant(
            rate: Int(rate), channels: Int(channels), format: format, periodFrames: Int(period),
            bufferFrames: Int(buffer), isMemoryMapped: isMemoryMapped)
    }

    /// Says when a stream starts by itself (nil for never) and when it wakes its thread, in frames.
    func setThresholds(start: Int?, wakeAvailable: Int) throws(ALSAFailure) {
        var allocated: OpaquePointer?
        try check(unsafe snd_pcm_sw_params_malloc(&allocated), "taking memory")
        guard let params = unsafe allocated else { throw ALSAFailure(step: "taking memory", errno: ENOMEM) }
        defer { unsafe snd_pcm_sw_params_free(params) }
        try check(unsafe snd_pcm_sw_params_current(pcm, params), "asking for its thresholds")
        var boundary: snd_pcm_uframes_t = 0
        try check(unsafe snd_pcm_sw_params_get_boundary(params, &boundary), "asking for its boundary")
        try check(
            unsafe snd_pcm_sw_params_set_start_threshold(pcm, params, start.map { snd_pcm_uframes_t($0) } ?? boundary),
            "setting the start threshold")
        try check(
            unsafe snd_pcm_sw_params_set_avail_min(pcm, params, snd_pcm_uframes_t(max(1, wakeAvailable))),
            "setting the wake-up threshold")
        try check(unsafe snd_pcm_sw_params(pcm, params), "setting its thresholds")
    }

    private func check(_ result: Int32, _ step: String) throws(ALSAFailure) {
        if result < 0 { throw ALSAFailure(step: step, errno: -result) }
    }
}

/// libasound's description of what a card can do, narrowed down step by step.
@safe
struct HardwareParameters {
    let pointer: OpaquePointer

    init() throws(ALSAFailure) {
        var allocated: OpaquePointer?
        let result = unsafe snd_pcm_hw_params_malloc(&allocated)
        guard result >= 0, let made = unsafe allocated else {
            throw ALSAFailure(step: "taking memory", errno: result < 0 ? -result : ENOMEM)
        }
        unsafe pointer = made
    }

    func free() { unsafe snd_pcm_hw_params_free(pointer) }
}

extension CardSampleFormat {
    /// libasound's constant.
    var alsa: snd_pcm_format_t {
        switch self {
        case .s16LE: SND_PCM_FORMAT_S16_LE
        case .s32LE: SND_PCM_FORMAT_S32_LE
        case .s24In3LE: SND_PCM_FORMAT_S24_3LE
        case .s24LE: SND_PCM_FORMAT_S24_LE
        case .float32LE: SND_PCM_FORMAT_FLOAT_LE
        case .s16BE: SND_PCM_FORMAT_S16_BE
        case .s32BE: SND_PCM_FORMAT_S32_BE
        case .u8: SND_PCM_FORMAT_U8
        }
    }
}
