public import AudioKit
internal import Core

/// The decoder of a stream's packets: Opus or G.711.
public struct StreamDecoder: ~Copyable {
    private let inPlace = InPlace()
    // Exactly one of the two, unless it is empty.
    private var opus: OpusDecoder?
    private var narrowband: G711Decoder?
    /// Samples at 48 kHz for each tick of the stream's timestamps.
    let samplesPerTick: Int64

    /// An empty decoder, which decodes nothing.
    public init() { samplesPerTick = 0 }

    /// Whether it decodes nothing.
    public var isEmpty: Bool {
        @_noAllocation @_noLocks get { samplesPerTick == 0 }
    }

    private var isNarrowband: Bool {
        @_noAllocation @_noLocks get { samplesPerTick > 1 }
    }

    /// Decodes Opus with `decoder`, which must be a mono decoder.
    public init(_ decoder: consuming OpusDecoder) {
        precondition(decoder.channels == 1, "playout is mono: give it a decoder with one channel")
        opus = consume decoder
        samplesPerTick = 1
    }

    /// Decodes G.711.
    public init(_ decoder: consuming G711Decoder) {
        narrowband = consume decoder
        samplesPerTick = 6
    }

    /// Samples that a payload decodes to; 0 if it cannot be decoded.
    @_noAllocation @_noLocks
    func samples(in payload: RawSpan) -> Int {
        guard !isEmpty else { return 0 }
        guard isNarrowband else { return OpusPacket.samples(in: payload) }
        let samples = G711Decoder.samples(inBytes: payload.byteCount)
        return samples <= OpusPacket.maximumSamples ? samples : 0
    }

    /// Whether a payload is too small to hold sound: the sender is silent.
    @_noAllocation @_noLocks
    func isDiscontinuous(_ payload: RawSpan) -> Bool {
        guard isNarrowband else { return OpusPacket.isDiscontinuous(payload) }
        return false
    }

    /// Samples before a packet that it can restore.
    @_noAllocation @_noLocks
    func restorableSamples(_ payload: RawSpan) -> Int {
        guard !isNarrowband, OpusPacket.hasFEC(payload) else { return 0 }
        return OpusPacket.samplesInFrame(of: payload)
    }

    @_noAllocation @_noLocks
    mutating func decode(_ payload: RawSpan, into pcm: inout MutableSpan<Int16>) -> Int {
        if !isNarrowband { return opus?.decode(payload, into: &pcm) ?? -1 }
        return decodeBytes(payload, &pcm)
    }

    /// Begins the comfort noise that a payload describes (RFC 3389) and fills `samples` with it.
    @_noAllocation @_noLocks
    mutating func decodeNoise(_ payload: RawSpan, samples: Int, into pcm: inout MutableSpan<Int16>) -> Int {
        beginNoise(payload)
        return conceal(samples: samples, into: &pcm)
    }

    @_noAllocation @_noLocks
    mutating func conceal(samples: Int, into pcm: inout MutableSpan<Int16>) -> Int {
        if !isNarrowband { return opus?.conceal(samples: samples, into: &pcm) ?? -1 }
        return narrowband?.conceal(samples: samples, into: &pcm) ?? -1
    }

    @_noAllocation @_noLocks
    mutating func recoverFEC(fromNext payload: RawSpan, samples: Int, into pcm: inout MutableSpan<Int16>) -> Int {
        opus?.recoverFEC(fromNext: payload, samples: samples, into: &pcm) ?? -1
    }

    @_noAllocation @_noLocks
    mutating func save() {
        opus?.save()
        narrowband?.save()
    }

    @_noAllocation @_noLocks
    mutating func restore() {
        opus?.restore()
        narrowband?.restore()
    }

    @_noAllocation @_noLocks
    mutating func reset() {
        opus?.reset()
        narrowband?.reset()
    }

    // The two below look at a payload as bytes. Unoptimised code counts the end of such a view as a deallocation, though
    // there is nothing to free, so they are not analysed; what they call is.

    @_semantics("no_performance_analysis") @inline(__always)
    private mutating func decodeBytes(_ payload: RawSpan, _ pcm: inout MutableSpan<Int16>) -> Int {
        narrowband?.decode(unsafe payload._unsafeView(as: UInt8.self), into: &pcm) ?? -1
    }

    @_semantics("no_performance_analysis") @inline(__always)
    private mutating func beginNoise(_ payload: RawSpan) {
        guard let noise = ComfortNoise(unsafe payload._unsafeView(as: UInt8.self)) else { return }
        narrowband?.begin(noise)
    }
}
