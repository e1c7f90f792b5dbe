// Opus: Opus at 48 kHz on libopus, and properties of packets that are known without decoding.

internal import COpus

/// Encodes 48 kHz 16-bit PCM to Opus packets (RFC 6716). Owns one libopus encoder; one thread at a time.
@safe
public struct OpusEncoder: ~Copyable, @unchecked Sendable {
    // Not shared: the struct is non-copyable and frees the handle when it ends, so it may move between threads.
    private let handle: OpaquePointer

    /// Samples of all channels together in one frame: what ``encode(_:into:)`` takes.
    public private(set) var frameSampleCount: Int
    /// Samples at 48 kHz by which a packet lags behind the sound that it holds, besides its length: 312, or 120 if the
    /// encoder was made for restricted low delay.
    public let lookaheadSamples: Int
    private var samplesPerChannel: Int32
    private let channels: Int

    /// Makes an encoder. This is the only call that allocates.
    public init(settings: EncoderSettings) throws(OpusError) {
        var status: Int32 = 0
        let channels = Int32(clamping: settings.channels)
        let application = settings.application == .voip ? OPUS_APPLICATION_VOIP : OPUS_APPLICATION_AUDIO
        guard let handle = unsafe opus_encoder_create(48_000, channels, application, &status) else {
            throw OpusError(what: "encoder", code: Int(status))
        }
        unsafe self.handle = handle
        samplesPerChannel = Int32(settings.frameDuration.samples)
        frameSampleCount = settings.frameDuration.samples * settings.channels
        self.channels = settings.channels
        var lookahead: Int32 = 0
        _ = unsafe handset_opus_encoder_get(handle, OPUS_GET_LOOKAHEAD_REQUEST, &lookahead)
        lookaheadSamples = Int(lookahead)
        set(settings)
    }

    deinit { unsafe opus_encoder_destroy(handle) }

    /// Encodes as these settings say from the next frame on. ``EncoderSettings/application`` and
    /// ``EncoderSettings/channels`` stay as they were made.
    @_noAllocation @_noLocks
    public mutating func set(_ settings: EncoderSettings) {
        samplesPerChannel = Int32(truncatingIfNeeded: settings.frameDuration.samples)
        frameSampleCount = settings.frameDuration.samples &* channels
        control(OPUS_SET_VBR_REQUEST, settings.constantBitrate ? 0 : 1)
        control(OPUS_SET_INBAND_FEC_REQUEST, settings.fec ? 1 : 0)
        control(OPUS_SET_DTX_REQUEST, settings.dtx ? 1 : 0)
        control(OPUS_SET_SIGNAL_REQUEST, settings.expectsSpeech ? OPUS_SIGNAL_VOICE : OPUS_AUTO)
        set(maxBandwidth: settings.maxBandwidth)
        set(bitrateBps: settings.bitrateBps)
        set(complexity: settings.complexity)
        set(expectedLossPercent: settings.expectedLossPercent)
    }

    /// Encodes one frame.
    ///
    /// - Parameters:
    ///   - pcm: Exactly ``frameSampleCount`` samples, interleaved if stereo.
    ///   - packet: Room for the packet; 1 275 bytes always suffice, less makes the encoder spend fewer bits.
    /// - Returns: Bytes written, or a negative libopus error. With DTX, 2 or fewer mean that nothing need be sent.
    @_noAllocation @_noLocks
    public mutating func encode(_ pcm: Span<Int16>, into packet: inout MutableSpan<UInt8>) -> Int {
        guard pcm.count == frameSampleCount, packet.count > 0 else { return -1 }
        return callEncode(pcm, &packet)
    }

    /// Aims at `bitrateBps` bits a second from the next frame on; clamped to 6 000…510 000.
    @_noAllocation @_noLocks
    public mutating func set(bitrateBps: Int) {
        control(OPUS_SET_BITRATE_REQUEST, Int32(truncatingIfNeeded: min(max(bitrateBps, 6_000), 510_000)))
    }

    /// Expects this much loss from the next frame on; clamped to 0…100 percent.
    @_noAllocation @_noLocks
    public mutating func set(expectedLossPercent: Int) {
        control(OPUS_SET_PACKET_LOSS_PERC_REQUEST, Int32(truncatingIfNeeded: min(max(expectedLossPercent, 0), 100)))
    }

    /// Encodes with this effort from the next frame on; clamped to 0…10.
    @_noAllocation @_noLocks
    public mutating func set(complexity: Int) {
        control(OPUS_SET_COMPLEXITY_REQUEST, Int32(truncatingIfNeeded: min(max(complexity, 0), 10)))
    }

    /// Encodes no wider band from the next frame on.
    @_noAllocation @_noLocks
    public mutating func set(maxBandwidth: EncoderSettings.Bandwidth) {
        control(OPUS_SET_MAX_BANDWIDTH_REQUEST, maxBandwidth.request)
    }

    /// Has frames refer to no frame before them, from the next one on, or refer to those again. The first costs bits.
    @_noAllocation @_noLocks
    public mutating func set(isIndependent: Bool) {
        control(OPUS_SET_PREDICTION_DISABLED_REQUEST, isIndependent ? 1 : 0)
    }

    /// Forgets the sound so far; settings stay. The next frame begins with ``lookaheadSamples`` of silence.
    @_noAllocation @_noLocks
    public mutating func reset() { callReset() }

    /// libopus clears its memory, and allocates none.
    @_semantics("no_performance_analysis") @inline(__always)
    private func callReset() { _ = unsafe handset_opus_encoder_reset(handle) }

    /// libopus allocates only in `opus_encoder_create`, and takes no lock.
    @_semantics("no_performance_analysis") @inline(__always)
    private func callEncode(_ pcm: Span<Int16>, _ packet: inout MutableSpan<UInt8>) -> Int {
        let samples = samplesPerChannel
        return unsafe pcm.withUnsafeBufferPointer { input in
            unsafe packet.withUnsafeMutableBufferPointer { output in
                guard let source = input.baseAddress, let room = output.baseAddress else { return -1 }
                return Int(unsafe opus_encode(handle, source, samples, room, Int32(clamping: output.count)))
            }
        }
    }

    /// A control call only stores a number in the encoder.
    @_semantics("no_performance_analysis") @inline(__always)
    private func control(_ request: Int32, _ value: Int32) {
        _ = unsafe handset_opus_encoder_set(handle, request, value)
    }
}

extension EncoderSettings.Bandwidth {
    fileprivate var request: Int32 {
        @_noAllocation @_noLocks get {
            switch self {
            case .narrowband: OPUS_BANDWIDTH_NARROWBAND
            case .mediumband: OPUS_BANDWIDTH_MEDIUMBAND
            case .wideband: OPUS_BANDWIDTH_WIDEBAND
            case .superwideband: OPUS_BANDWIDTH_SUPERWIDEBAND
            case .fullband: OPUS_BANDWIDTH_FULLBAND
            }
        }
    }
}
