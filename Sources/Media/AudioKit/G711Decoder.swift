/// Decodes G.711 to sound at 48 kHz, conceals losses, and generates comfort noise (RFC 3389).
///
/// Concealment repeats the last period of the voice, and fades out over 60 ms as in ITU-T G.711 appendix I. All of it
/// is real-time safe.
///
/// It has a separate allocation, because most calls have none, and each has room for two.
@safe
public struct G711Decoder: ~Copyable, @unchecked Sendable {
    // Not shared: the struct is non-copyable, so its memory may move with it between threads.
    private let memory: UnsafeMutablePointer<NarrowbandVoice>

    /// Samples at 48 kHz by which what is decoded comes later: half the length of the filter behind the decoder.
    public static var delaySamples: Int { @_noAllocation @_noLocks get { 96 } }

    /// Makes a decoder in its initial state.
    public init(_ law: G711) {
        unsafe memory = .allocate(capacity: 1)
        unsafe memory.initialize(to: NarrowbandVoice(law))
    }

    deinit {
        unsafe memory.deinitialize(count: 1)
        unsafe memory.deallocate()
    }

    /// Samples at 48 kHz in a payload of so many bytes.
    @_noAllocation @_noLocks
    public static func samples(inBytes count: Int) -> Int { count * NarrowbandFilter.ratio }

    /// Decodes a payload, as much as both hold.
    ///
    /// - Returns: Samples written.
    @_noAllocation @_noLocks
    public mutating func decode(_ bytes: Span<UInt8>, into pcm: inout MutableSpan<Int16>) -> Int {
        unsafe memory.pointee.decode(bytes, into: &pcm)
    }

    /// From now on concealment is this noise, until a packet of sound arrives.
    @_noAllocation @_noLocks
    public mutating func begin(_ noise: ComfortNoise) { unsafe memory.pointee.begin(noise) }

    /// Makes up sound for packets that are not there.
    ///
    /// - Parameter samples: Samples wanted, a multiple of 6.
    /// - Returns: Samples written, or −1 if they do not fit.
    @_noAllocation @_noLocks
    public mutating func conceal(samples: Int, into pcm: inout MutableSpan<Int16>) -> Int {
        unsafe memory.pointee.conceal(samples: samples, into: &pcm)
    }

    /// Saves the state, so that concealment can be undone.
    @_noAllocation @_noLocks
    public mutating func save() { unsafe memory.pointee.save() }

    /// Goes back to the state last saved.
    @_noAllocation @_noLocks
    public mutating func restore() { unsafe memory.pointee.restore() }

    /// Resets the state.
    @_noAllocation @_noLocks
    public mutating func reset() { unsafe memory.pointee.reset() }
}

/// The state of a ``G711Decoder``, and its decoding.
private struct NarrowbandVoice {
    private let law: G711
    private let filter = NarrowbandFilter()
    private var state = State()
    private var saved = State()

    private struct State {
        var memory = NarrowbandMemory()
        /// The newest samples that were decoded, at 8 kHz.
        var history = InlineArray<256, Int16>(repeating: 0)
        var newest = 0
        /// Concealed samples since then, and the period that they repeat.
        var madeUp = 0
        var period = 0
        var noise = ComfortNoiseGenerator(seed: 0x5EED)
        var isNoise = false

        @_noAllocation @_noLocks
        init() {}
    }

    init(_ law: G711) { self.law = law }

    @_noAllocation @_noLocks
    mutating func decode(_ bytes: Span<UInt8>, into pcm: inout MutableSpan<Int16>) -> Int {
        state.isNoise = false
        state.madeUp = 0
        let count = min(bytes.count, pcm.count / NarrowbandFilter.ratio)
        for index in 0..<count {
            let sample = law.sample(bytes[index])
            state.newest = (state.newest + 1) & 255
            state.history[state.newest] = sample
            put(Float(sample), at: index, into: &pcm)
        }
        return count * NarrowbandFilter.ratio
    }

    @_noAllocation @_noLocks
    mutating func begin(_ noise: ComfortNoise) {
        state.noise.set(noise)
        state.isNoise = true
    }

    @_noAllocation @_noLocks
    mutating func conceal(samples: Int, into pcm: inout MutableSpan<Int16>) -> Int {
        guard samples > 0, samples <= pcm.count, samples % NarrowbandFilter.ratio == 0 else { return -1 }
        if state.madeUp == 0, !state.isNoise { state.period = period() }
        for index in 0..<(samples / NarrowbandFilter.ratio) {
            put(state.isNoise ? state.noise.next() : repeated(), at: index, into: &pcm)
        }
        return samples
    }

    @_noAllocation @_noLocks
    mutating func save() { saved = state }

    @_noAllocation @_noLocks
    mutating func restore() { state = saved }

    @_noAllocation @_noLocks
    mutating func reset() { state = State() }

    @_noAllocation @_noLocks
    private mutating func put(_ sample: Float, at index: Int, into pcm: inout MutableSpan<Int16>) {
        state.memory.push(sample)
        for phase in 0..<NarrowbandFilter.ratio {
            pcm[index * NarrowbandFilter.ratio + phase] = state.memory.output(phase: phase, filter)
        }
    }

    /// The next sample of the last period: as it was for 10 ms, and then fainter.
    @_noAllocation @_noLocks
    private mutating func repeated() -> Float {
        let sample = state.history[(state.newest - state.period + 1 + state.madeUp % state.period) & 255]
        let gain = min(1, max(0, Float(480 - state.madeUp) / 400))
        // After a minute the count stops: the output has long been silence.
        if state.madeUp < 480_000 { state.madeUp += 1 }
        return Float(sample) * gain
    }

    /// Samples after which the voice looks most like itself: 5 to 15 ms.
    @_noAllocation @_noLocks
    private func period() -> Int {
        var (best, bestLikeness) = (80, Float(0))
        for lag in 40...120 {
            var (product, energy) = (Float(0), Float(1))
            for age in 0..<80 {
                let now = Float(state.history[(state.newest - age) & 255])
                let before = Float(state.history[(state.newest - age - lag) & 255])
                product += now * before
                energy += before * before
            }
            // The correlation squared over the energy, which spares a root.
            let likeness = product > 0 ? product * product / energy : 0
            if likeness > bestLikeness { (best, bestLikeness) = (lag, likeness) }
        }
        return best
    }
}
