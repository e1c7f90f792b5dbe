internal import Realtime

/// Decodes G.711 to sound at 48 kHz, conceals losses, and generates comfort noise (RFC 3389).
///
/// Concealment repeats the last period of the voice, and fades out over 60 ms as in ITU-T G.711 appendix I. All of it
/// is real-time safe.
///
/// Its memory is allocated separately, because most calls have no such decoder, and each has room for two.
public struct G711Decoder: ~Copyable, Sendable {
    private let law: G711
    private var filter = NarrowbandFilter()
    /// At 8 kHz: the newest 31 samples of former blocks, and then those of a block.
    private var recent = FloatBuffer(capacity: G711Decoder.former + NarrowbandFilter.block)
    /// The newest samples that were decoded, at 8 kHz.
    private var history = SampleBuffer(capacity: G711Decoder.historyLength)
    private var state = State()
    private var savedRecent = FloatBuffer(capacity: G711Decoder.former)
    private var savedHistory = SampleBuffer(capacity: G711Decoder.historyLength)
    private var savedState = State()

    private struct State {
        /// Where the newest sample of the history is.
        var newest = 0
        /// Concealed samples since then, and the period that they repeat.
        var madeUp = 0
        var period = 0
        var noise = ComfortNoiseGenerator(seed: 0x5EED)
        var isNoise = false

        @_noAllocation @_noLocks
        init() {}
    }

    private static var former: Int { @_noAllocation @_noLocks get { NarrowbandFilter.span - 1 } }
    private static var historyLength: Int { @_noAllocation @_noLocks get { 256 } }

    /// Samples at 48 kHz by which what is decoded comes later: half the length of the filter behind the decoder.
    public static var delaySamples: Int { @_noAllocation @_noLocks get { 96 } }

    /// Makes a decoder in its initial state.
    public init(_ law: G711) { self.law = law }

    /// Samples at 48 kHz in a payload of `count` bytes.
    @_noAllocation @_noLocks
    public static func samples(inBytes count: Int) -> Int { count * NarrowbandFilter.ratio }

    /// Decodes a payload, as much as both hold.
    ///
    /// - Returns: Samples written.
    @_noAllocation @_noLocks
    public mutating func decode(_ bytes: Span<UInt8>, into pcm: inout MutableSpan<Int16>) -> Int {
        state.isNoise = false
        state.madeUp = 0
        let count = min(bytes.count, pcm.count / NarrowbandFilter.ratio)
        var start = 0
        while start < count {
            let length = min(NarrowbandFilter.block, count - start)
            for index in 0..<length {
                let sample = law.sample(bytes[start + index])
                state.newest = (state.newest + 1) & (Self.historyLength - 1)
                history[state.newest] = sample
                recent[Self.former + index] = Float(sample)
            }
            put(length, at: start, into: &pcm)
            start += length
        }
        return count * NarrowbandFilter.ratio
    }

    /// From now on concealment is this noise, until a packet of sound arrives.
    @_noAllocation @_noLocks
    public mutating func begin(_ noise: ComfortNoise) {
        state.noise.set(noise)
        state.isNoise = true
    }

    /// Makes up sound for packets that are not there.
    ///
    /// - Parameter samples: Samples wanted, a multiple of 6.
    /// - Returns: Samples written, or −1 if they do not fit.
    @_noAllocation @_noLocks
    public mutating func conceal(samples: Int, into pcm: inout MutableSpan<Int16>) -> Int {
        guard samples > 0, samples <= pcm.count, samples % NarrowbandFilter.ratio == 0 else { return -1 }
        if state.madeUp == 0, !state.isNoise { state.period = period() }
        let count = samples / NarrowbandFilter.ratio
        var start = 0
        while start < count {
            let length = min(NarrowbandFilter.block, count - start)
            for index in 0..<length {
                recent[Self.former + index] = state.isNoise ? state.noise.next() : repeated()
            }
            put(length, at: start, into: &pcm)
            start += length
        }
        return samples
    }

    /// Saves the state, so that concealment can be undone.
    @_noAllocation @_noLocks
    public mutating func save() {
        savedState = state
        for index in 0..<Self.former { savedRecent[index] = recent[index] }
        for index in 0..<Self.historyLength { savedHistory[index] = history[index] }
    }

    /// Goes back to the state last saved.
    @_noAllocation @_noLocks
    public mutating func restore() {
        state = savedState
        for index in 0..<Self.former { recent[index] = savedRecent[index] }
        for index in 0..<Self.historyLength { history[index] = savedHistory[index] }
    }

    /// Resets the state.
    @_noAllocation @_noLocks
    public mutating func reset() {
        state = State()
        for index in 0..<Self.former { recent[index] = 0 }
        for index in 0..<Self.historyLength { history[index] = 0 }
    }

    /// Writes the next `length` samples at 8 kHz, at most a block, as six times as many at 48 kHz, behind those of `start`.
    @_noAllocation @_noLocks
    private mutating func put(_ length: Int, at start: Int, into pcm: inout MutableSpan<Int16>) {
        for phase in 0..<NarrowbandFilter.ratio {
            filter.begin()
            for age in 0..<NarrowbandFilter.span {
                filter.add(recent, from: Self.former - age, tap: phase + age * NarrowbandFilter.ratio)
            }
            for index in 0..<length {
                pcm[(start + index) * NarrowbandFilter.ratio + phase] = filter.output(
                    index, times: Float(NarrowbandFilter.ratio))
            }
        }
        recent.shift(by: length, keeping: Self.former)
    }

    /// The sample that is `age` samples older than the newest of the history.
    @_noAllocation @_noLocks
    private func sample(before age: Int) -> Int16 { history[(state.newest - age) & (Self.historyLength - 1)] }

    /// The next sample of the last period: as it was for 10 ms, and then fainter.
    @_noAllocation @_noLocks
    private mutating func repeated() -> Float {
        let sample = sample(before: state.period - 1 - state.madeUp % state.period)
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
                let now = Float(sample(before: age))
                let before = Float(sample(before: age + lag))
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
