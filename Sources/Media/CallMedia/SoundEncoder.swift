internal import AudioKit

/// Encodes a call's frames with the codec that was agreed on.
struct SoundEncoder: ~Copyable {
    // Exactly one of the two, unless it is empty.
    private var opus: OpusEncoder?
    private var narrowband: G711Encoder?
    private let law: G711?
    private var opusDelaySamples = 0
    /// An empty encoder, which encodes nothing.
    var isEmpty: Bool {
        @_noAllocation @_noLocks get {
            guard case .none = law, case .none = settings else { return false }
            return true
        }
    }
    /// Finds the silence that is described rather than sent; none if all is sent.
    private var silence: SilenceDetector?
    /// How Opus encodes, without what only saves effort; nil for other codecs.
    private(set) var settings: EncoderSettings?
    /// The complexity of Opus, 0…10; nil for other codecs, which have none.
    var complexity: Int? {
        @_noAllocation @_noLocks get {
            guard let settings else { return nil }
            return Self.clamped(settings.complexity)
        }
    }
    private var complexityLimit = 10
    /// Opus refers to no frame before the next one.
    private var beginsAnew = false
    /// The widest band of Opus that was agreed on.
    private var widestBand = EncoderSettings.Bandwidth.fullband
    private var isNarrow = false
    /// The last encoded payload describes noise (RFC 3389).
    private(set) var isNoise = false

    /// Makes an empty one.
    init() {
        law = nil
    }

    /// - Parameter describesNoise: Silence may be described rather than sent, if the settings say so: comfort noise was
    ///   agreed on. Opus needs no such agreement.
    init(_ codec: SoundCodec, _ settings: EncoderSettings, describesNoise: Bool = false) throws(OpusError) {
        law = codec.law
        if codec.law != nil, describesNoise, settings.dtx { silence = SilenceDetector() }
        if let law = codec.law {
            narrowband = G711Encoder(law)
        } else {
            let encoder = try OpusEncoder(settings: settings)
            opusDelaySamples = encoder.lookaheadSamples
            opus = consume encoder
            self.settings = settings
            widestBand = settings.maxBandwidth
        }
    }

    /// Encodes one frame at 48 kHz.
    ///
    /// - Returns: Bytes written; negative if that failed, and 2 or fewer if nothing need be sent.
    @_noAllocation @_noLocks
    mutating func encode(_ pcm: Span<Int16>, into packet: inout MutableSpan<UInt8>) -> Int {
        if case .none = law {
            defer { continueFromHere() }
            return opus?.encode(pcm, into: &packet) ?? -1
        }
        let count = narrowband?.encode(pcm, into: &packet) ?? -1
        guard count > 0, case .some = silence, let law else { return count }
        return describe(count, law, in: &packet)
    }

    /// Replaces a frame of silence by a description of the noise, or says that nothing need be sent.
    ///
    /// It analyses the sound as the peer would hear it.
    @_noAllocation @_noLocks
    private mutating func describe(_ count: Int, _ law: G711, in packet: inout MutableSpan<UInt8>) -> Int {
        isNoise = false
        var sound = InlineArray<480, Int16>(repeating: 0)
        let heard = min(count, 480)
        for index in 0..<heard { sound[index] = law.sample(packet[index]) }
        switch decide(&silence, sound, heard) {
        case .sound, nil: return count
        case .nothing: return 1
        case .noise(let noise):
            isNoise = true
            return noise.write(into: &packet)
        }
    }

    /// Begins again behind frames that others have encoded: the next frame refers to none before it.
    ///
    /// - Parameters:
    ///   - frame: The frame directly before the next one; empty if that is not known.
    ///   - packet: Working memory.
    @_noAllocation @_noLocks
    mutating func restart(behind frame: Span<Int16>, through packet: inout MutableSpan<UInt8>) {
        guard settings != nil else { return }
        opus?.reset()
        // Its end is the beginning of the next packet, which lags behind.
        if frame.count > 0 { _ = opus?.encode(frame, into: &packet) }
        opus?.set(isIndependent: true)
        beginsAnew = true
    }

    @_noAllocation @_noLocks
    private mutating func continueFromHere() {
        guard beginsAnew else { return }
        opus?.set(isIndependent: false)
        beginsAnew = false
    }

    /// Samples at 48 kHz by which a packet lags behind the sound that it holds, besides its length.
    var delaySamples: Int {
        @_noAllocation @_noLocks get {
            if case .some = law { return G711Encoder.delaySamples }
            return opusDelaySamples
        }
    }

    /// Samples at 48 kHz by which a decoder of this codec delays sound.
    var decoderDelaySamples: Int {
        @_noAllocation @_noLocks get { if case .some = law { G711Decoder.delaySamples } else { 0 } }
    }

    /// Encodes as these settings say from the next frame on, if it is Opus; what it tunes itself for stays.
    @_noAllocation @_noLocks
    mutating func set(_ settings: EncoderSettings) {
        guard let made = self.settings else { return }
        opus?.set(settings)
        var taken = settings
        (taken.application, taken.channels) = (made.application, made.channels)
        self.settings = taken
        applyComplexity()
        widestBand = settings.maxBandwidth
        applyBand()
    }

    /// From the next frame on, the sound has nothing above half of this sampling rate.
    ///
    /// Opus spends neither bits nor time on what narrowband cannot hold: at complexity 5 that takes 0.65 of the time of
    /// fullband. Wideband takes more than fullband, so that a higher rate changes nothing. Opus narrows at once, and widens in
    /// the next pause, or after 5 s of speech.
    ///
    /// - Returns: Whether it encodes in another way from now on.
    @_noAllocation @_noLocks
    mutating func expect(soundRate rate: Int) -> Bool {
        guard (rate <= Self.narrowRate) != isNarrow else { return false }
        isNarrow.toggle()
        applyBand()
        return true
    }

    /// Samples a second of narrowband.
    private static var narrowRate: Int { @_noAllocation @_noLocks get { 8_000 } }

    @_noAllocation @_noLocks
    private mutating func applyBand() {
        let band = isNarrow ? EncoderSettings.Bandwidth.narrowband : widestBand
        settings?.maxBandwidth = band
        opus?.set(maxBandwidth: band)
    }

    /// Spends at most this effort from the next frame on, 0…10, if the codec has a choice.
    @_noAllocation @_noLocks
    mutating func limit(complexity limit: Int) {
        guard limit != complexityLimit else { return }
        complexityLimit = limit
        applyComplexity()
    }

    /// As libopus takes it: what is outside 0…10 is clamped (``EncoderSettings``).
    @_noAllocation @_noLocks
    private static func clamped(_ complexity: Int) -> Int { min(max(complexity, 0), 10) }

    @_noAllocation @_noLocks
    private mutating func applyComplexity() {
        guard let complexity else { return }
        opus?.set(complexity: min(complexity, complexityLimit))
    }

    /// Aims at a bitrate, if the codec has a choice.
    @_noAllocation @_noLocks
    mutating func set(bitrateBps: Int) {
        settings?.bitrateBps = bitrateBps
        opus?.set(bitrateBps: bitrateBps)
    }

    /// Sets the expected loss, if the codec can protect against it.
    @_noAllocation @_noLocks
    mutating func set(expectedLossPercent: Int) {
        settings?.expectedLossPercent = expectedLossPercent
        opus?.set(expectedLossPercent: expectedLossPercent)
    }
}

// Makes a view of memory in place, which neither allocates nor locks; what it calls is analysed.
@_semantics("no_performance_analysis") @inline(__always)
private func decide(
    _ detector: inout SilenceDetector?, _ sound: borrowing InlineArray<480, Int16>, _ count: Int
) -> SilenceDetector.Decision? {
    detector?.take(sound.span.extracting(0..<count))
}
