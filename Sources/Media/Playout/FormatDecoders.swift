internal import Core

/// The decoders of a stream that changes its format while it is played: that of the format in use, and one for packets of
/// the format before, or of the one to come (RFC 3264 §8.3.2). Formats are counted by changes.
struct FormatDecoders: ~Copyable {
    private var current: StreamDecoder
    private var other = StreamDecoder()
    private var currentFormat: UInt8 = 0
    private var otherFormat: UInt8 = 0
    /// The format of the newest change.
    private(set) var newestFormat: UInt8 = 0
    /// The state of `current` from before the concealment that is held has been saved.
    private var canRestore = false

    init(_ decoder: consuming StreamDecoder) { current = decoder }

    /// Makes `decoder` that of a new format, and leaves one that is of no more use in its place. An empty one changes
    /// nothing.
    ///
    /// - Returns: The number of the newest format.
    @_noAllocation @_noLocks
    mutating func change(to decoder: inout StreamDecoder) -> UInt8 {
        guard !decoder.isEmpty else { return newestFormat }
        exchange(&other, &decoder)
        newestFormat &+= 1
        otherFormat = newestFormat
        return newestFormat
    }

    /// Decodes with the decoder of a format from now on.
    @_noAllocation @_noLocks
    mutating func use(_ format: UInt8) {
        guard format != currentFormat, format == otherFormat, !other.isEmpty else { return }
        exchange(&current, &other)
        (currentFormat, otherFormat) = (otherFormat, currentFormat)
        // What was saved is of the other's state.
        canRestore = false
    }

    /// Begins with another stream, in a format.
    @_noAllocation @_noLocks
    mutating func reset(to format: UInt8) {
        use(format)
        current.reset()
        canRestore = false
    }

    // MARK: What a payload is

    /// Samples at 48 kHz for each tick of the timestamps, in the format in use.
    var samplesPerTick: Int64 {
        @_noAllocation @_noLocks get { current.samplesPerTick }
    }

    @_noAllocation @_noLocks
    func samplesPerTick(of format: UInt8) -> Int64 {
        format == currentFormat ? current.samplesPerTick : other.samplesPerTick
    }

    /// Samples that a payload decodes to; 0 if it cannot be decoded.
    @_noAllocation @_noLocks
    func samples(in payload: RawSpan, of format: UInt8) -> Int {
        if format == currentFormat { return current.samples(in: payload) }
        return format == otherFormat ? other.samples(in: payload) : 0
    }

    /// Describes a packet of a format; its payload has been found to decode to `duration` samples.
    @_noAllocation @_noLocks
    func entry(
        _ sequence: Int64, _ timestamp: Int64, _ payload: RawSpan, _ duration: Int, of format: UInt8, arrival: Instant
    ) -> PacketStore.Entry {
        var entry = PacketStore.Entry()
        entry.sequence = sequence
        entry.timestamp = timestamp
        entry.arrivalNanoseconds = arrival.nanoseconds
        entry.samples = Int32(truncatingIfNeeded: duration)
        entry.format = format
        entry.isDiscontinuous = isDiscontinuous(payload, of: format)
        entry.restorableSamples = Int32(truncatingIfNeeded: restorableSamples(payload, of: format))
        return entry
    }

    @_noAllocation @_noLocks
    private func isDiscontinuous(_ payload: RawSpan, of format: UInt8) -> Bool {
        if format == currentFormat { return current.isDiscontinuous(payload) }
        return other.isDiscontinuous(payload)
    }

    @_noAllocation @_noLocks
    private func restorableSamples(_ payload: RawSpan, of format: UInt8) -> Int {
        if format == currentFormat { return current.restorableSamples(payload) }
        return other.restorableSamples(payload)
    }

    // MARK: Decoding

    /// Saves the state before concealment that may have to be taken back, unless an earlier one is saved.
    @_noAllocation @_noLocks
    mutating func save() {
        guard !canRestore else { return }
        current.save()
        canRestore = true
    }

    /// Takes the concealment back that came after the saved state, if there is one.
    @_noAllocation @_noLocks
    mutating func restore() {
        guard canRestore else { return }
        current.restore()
        canRestore = false
    }

    /// Takes concealment back, and decodes with the decoder of a format from now on.
    @_noAllocation @_noLocks
    mutating func prepare(for format: UInt8) {
        restore()
        use(format)
    }

    /// Keeps the concealment that came after the saved state.
    @_noAllocation @_noLocks
    mutating func discardSaved() { canRestore = false }

    /// Decodes a payload; gives 0 if its format is not in use. After two changes in quick succession there may be no decoder
    /// for what came between them.
    @_noAllocation @_noLocks
    mutating func decode(_ payload: RawSpan, of format: UInt8, into pcm: inout MutableSpan<Int16>) -> Int {
        format == currentFormat ? current.decode(payload, into: &pcm) : 0
    }

    /// As ``StreamDecoder/decodeNoise(_:samples:into:)``; gives 0 if the payload's format is not in use.
    @_noAllocation @_noLocks
    mutating func decodeNoise(
        _ payload: RawSpan, of format: UInt8, samples: Int, into pcm: inout MutableSpan<Int16>
    ) -> Int {
        format == currentFormat ? current.decodeNoise(payload, samples: samples, into: &pcm) : 0
    }

    /// Restores what was lost before a payload from that; gives 0 if its format is not in use.
    @_noAllocation @_noLocks
    mutating func recoverFEC(
        fromNext payload: RawSpan, of format: UInt8, samples: Int, into pcm: inout MutableSpan<Int16>
    ) -> Int {
        format == currentFormat ? current.recoverFEC(fromNext: payload, samples: samples, into: &pcm) : 0
    }

    @_noAllocation @_noLocks
    mutating func conceal(samples: Int, into pcm: inout MutableSpan<Int16>) -> Int {
        current.conceal(samples: samples, into: &pcm)
    }
}

// Swaps in place: decoders are freed by neither.
@_semantics("no_performance_analysis") @inline(__always)
private func exchange(_ one: inout StreamDecoder, _ other: inout StreamDecoder) { swap(&one, &other) }
