internal import COpus

/// Decodes Opus packets to 48 kHz 16-bit PCM (RFC 6716). Owns one libopus decoder; one thread at a time.
///
/// A mono decoder also takes stereo packets, and a stereo decoder mono ones: libopus mixes.
@safe
public struct OpusDecoder: ~Copyable, @unchecked Sendable {
    // Not shared: the struct is non-copyable and frees the handle when it ends, so it may move between threads.
    private let handle: OpaquePointer
    // As large as the decoder; its pages cost nothing until the first `save`.
    private let saved: UnsafeMutableRawPointer
    private var hasSaved = false
    private let size: Int

    /// 1 or 2; stereo output is interleaved.
    public let channels: Int

    /// Makes a decoder. This is the only call that allocates.
    public init(channels: Int = 1) throws(OpusError) {
        var status: Int32 = 0
        guard let handle = unsafe opus_decoder_create(48_000, Int32(clamping: channels), &status) else {
            throw OpusError(what: "decoder", code: Int(status))
        }
        unsafe self.handle = handle
        self.channels = channels
        size = Int(opus_decoder_get_size(Int32(clamping: channels)))
        unsafe saved = .allocate(byteCount: size, alignment: 16)
    }

    deinit {
        unsafe opus_decoder_destroy(handle)
        unsafe saved.deallocate()
    }

    /// Remembers the state, so that concealment can be taken back when the packet comes after all.
    @_noAllocation @_noLocks
    public mutating func save() {
        hasSaved = true
        copyState(isSaving: true)
    }

    /// Goes back to the state last saved; to the initial one if none was.
    @_noAllocation @_noLocks
    public mutating func restore() {
        if hasSaved { copyState(isSaving: false) } else { reset() }
    }

    /// libopus documents that a decoder's state is contiguous and may be copied with `memcpy`; that allocates nothing.
    /// (Not inlined, so that `scripts/copies` can distinguish it from other copies.)
    @_semantics("no_performance_analysis") @inline(never)
    private mutating func copyState(isSaving: Bool) {
        let state = unsafe UnsafeMutableRawPointer(handle)
        if isSaving {
            unsafe saved.copyMemory(from: state, byteCount: size)
        } else {
            unsafe state.copyMemory(from: saved, byteCount: size)
        }
    }

    /// Decodes one packet.
    ///
    /// - Parameters:
    ///   - packet: One RTP payload. Any bytes: what cannot be decoded gives a negative result.
    ///   - pcm: Room for at least ``OpusPacket/samples(in:)`` samples of each channel.
    /// - Returns: Samples of each channel written at the front of `pcm`, or a negative libopus error.
    @_noAllocation @_noLocks
    public mutating func decode(_ packet: RawSpan, into pcm: inout MutableSpan<Int16>) -> Int {
        guard packet.byteCount > 0 else { return -1 }
        return callDecode(packet, &pcm, pcm.count / channels, fec: 0)
    }

    /// Makes up sound for a packet that is not there, from what was decoded before.
    ///
    /// - Parameter samples: Samples of each channel wanted: a multiple of 120 (2.5 ms), at most 5 760. Speech comes
    ///   out seamless only in multiples of 480 (10 ms), the least that libopus's speech half can conceal.
    /// - Returns: Samples of each channel written, or a negative libopus error.
    @_noAllocation @_noLocks
    public mutating func conceal(samples: Int, into pcm: inout MutableSpan<Int16>) -> Int {
        guard samples > 0, samples &* channels <= pcm.count else { return -1 }
        return callConceal(&pcm, samples)
    }

    /// Recovers sound that was lost just before `packet` from the coarse copy that packet carries.
    ///
    /// Decode `packet` itself next. Where it holds no copy the result is plain concealment; see
    /// ``OpusPacket/hasFEC(_:)``.
    ///
    /// - Parameter samples: How much was lost, of each channel; what exceeds the copy's length is concealed first.
    /// - Returns: Samples of each channel written, or a negative libopus error.
    @_noAllocation @_noLocks
    public mutating func recoverFEC(
        fromNext packet: RawSpan, samples: Int, into pcm: inout MutableSpan<Int16>
    ) -> Int {
        guard packet.byteCount > 0, samples > 0, samples &* channels <= pcm.count else { return -1 }
        return callDecode(packet, &pcm, samples, fec: 1)
    }

    /// Forgets what was decoded, as before the first packet.
    @_noAllocation @_noLocks
    public mutating func reset() { callReset() }

    /// libopus allocates only in `opus_decoder_create`, and takes no lock.
    @_semantics("no_performance_analysis") @inline(__always)
    private func callDecode(
        _ packet: RawSpan, _ pcm: inout MutableSpan<Int16>, _ samples: Int, fec: Int32
    ) -> Int {
        unsafe packet.withUnsafeBytes { input in
            unsafe pcm.withUnsafeMutableBufferPointer { output in
                let bytes = unsafe input.assumingMemoryBound(to: UInt8.self).baseAddress
                let length = Int32(clamping: input.count)
                let room = Int32(clamping: samples)
                guard let samples = output.baseAddress else { return -1 }
                return Int(unsafe opus_decode(handle, bytes, length, samples, room, fec))
            }
        }
    }

    /// As `callDecode`.
    @_semantics("no_performance_analysis") @inline(__always)
    private func callConceal(_ pcm: inout MutableSpan<Int16>, _ samples: Int) -> Int {
        unsafe pcm.withUnsafeMutableBufferPointer { output in
            guard let room = output.baseAddress else { return -1 }
            return Int(unsafe opus_decode(handle, nil, 0, room, Int32(clamping: samples), 0))
        }
    }

    /// A reset only clears the decoder's memory.
    @_semantics("no_performance_analysis") @inline(__always)
    private func callReset() { _ = unsafe handset_opus_decoder_reset(handle) }
}
