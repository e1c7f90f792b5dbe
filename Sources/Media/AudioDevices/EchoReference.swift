internal import Realtime
internal import Core

/// What the card plays while it captures: the reference of the echo canceller.
///
/// It is taken after the playback's resampler, as it was given to the card, and passes the same kind of resampler as
/// the captured sound. So the path from the reference to its echo consists of the card and the room. It does not change
/// when delays are corrected, frames are moved or samples are dropped. If both directions have one clock, like those of
/// one card, it does not change at all.
struct EchoReference: ~Copyable {
    /// The last frames that the card was given, at its rate.
    private var history = SampleBuffer(capacity: EchoReference.historyFrames)
    private var resampler: ClockResampler?
    private(set) var output = SampleBuffer(capacity: 4_096)
    private var clocks = ReferenceClocks()
    /// Frames given to the card, and the next of them to be resampled.
    private var written = 0
    private var position = 0
    /// Parts of a frame still to be passed over.
    private var owed = 0.0
    private var isAligned = false
    /// How far the card has said that it has played, and when it first said so.
    private var played: (frames: Int, time: Instant)?
    private var correctionPPM = 0.0
    private var (playbackRate, captureRate) = (48_000, 48_000)
    /// How much earlier the reference is than the sound that the card reports as playing: 2 ms, or a fifth of the
    /// card's period, at least a quarter of which is queued. The card's report may be wrong by as much, and an echo
    /// that precedes its reference cannot be cancelled.
    private var leadFrames = 96.0

    /// Frames remembered: 1.4 s at 48 kHz; a power of two.
    private static var historyFrames: Int { @_noAllocation @_noLocks get { 65_536 } }

    /// A card has been opened. Allocates.
    ///
    /// - Parameter captureLatencyMilliseconds: Delay of the capture's resampler; one of a lower rate delays more.
    mutating func open(playback: CardGrant, captureRate: Int, captureLatencyMilliseconds: Double) {
        (playbackRate, self.captureRate) = (playback.rate, captureRate)
        leadFrames = Double(min(playback.rate / 500, playback.periodFrames / 5))
        resampler = ClockResampler(from: playback.rate, to: 48_000)
        let latency =
            Double(resampler?.latencySamples ?? 0) - captureLatencyMilliseconds * Double(playback.rate) / 1_000
        leadFrames += max(0, latency)
        clocks = ReferenceClocks()
        correctionPPM = 0
        loseAlignment()
    }

    /// One of the directions restarts: the times at which frames are played must be determined again.
    @_noAllocation @_noLocks
    mutating func loseAlignment() {
        isAligned = false
        played = nil
        clocks.restart()
    }

    /// Remembers `samples[start..<end]`, which the card is given next.
    @_noAllocation @_noLocks
    mutating func append(_ samples: Span<Int16>, from start: Int, to end: Int) {
        let first = written &- start
        var ring = history.mutableSamples(Self.historyFrames)
        for index in start..<end { ring[(first &+ index) & (Self.historyFrames &- 1)] = samples[index] }
        written &+= end &- start
    }

    /// The card will have played all that was remembered in `delay` frames. Many cards know where they are at interrupts
    /// only, so what they say holds for the moment at which they first say it.
    @_noAllocation @_noLocks
    mutating func note(playbackDelay delay: Int, at now: Instant) {
        let frames = written &- delay
        if let played, played.frames == frames { return }
        played = (frames, now)
    }

    /// Keeps in step with a card whose next frame to be read was in the air `captureDelay` frames ago. Before ``make(_:)``
    /// or ``pass(_:)`` for what it has captured.
    @_noAllocation @_noLocks
    mutating func align(captureDelay: Int, at now: Instant) {
        guard let played else { return }
        let frames = Double(played.frames) + Double(played.time.nanoseconds(to: now) &* Int64(playbackRate)) * 1e-9
        let wanted = frames - Double(captureDelay) * ratio + leadFrames
        guard isAligned else { return begin(at: wanted) }
        let error = (wanted - Double(position)) * 1e9 / Double(playbackRate)
        switch clocks.add(errorNanoseconds: error, at: now) {
        case .inStep: break
        case .rate: setCorrection(ppm: correctionPPM)
        case .off(let nanoseconds): begin(at: Double(position) + nanoseconds * Double(playbackRate) * 1e-9)
        case .lost: begin(at: wanted)
        }
    }

    @_noAllocation @_noLocks
    private mutating func begin(at place: Double) {
        let place = Int(place)
        guard place <= written, written &- place < Self.historyFrames else { return loseAlignment() }
        position = place
        owed = 0
        if !isAligned { clocks.restart() }
        isAligned = true
        resampler?.reset()
    }

    /// Frames of playback for one of capture.
    private var ratio: Double { @_noAllocation @_noLocks get { Double(playbackRate) / Double(captureRate) } }

    /// Consumes frames faster by `ppm` millionths, as the captured ones are, and as the clocks differ.
    @_noAllocation @_noLocks
    mutating func setCorrection(ppm: Double) {
        correctionPPM = ppm
        resampler?.setCorrection(ppm: ppm + clocks.ratePPM)
    }

    /// Makes the next `count` samples of 48 kHz, in ``output``: what was played while as many were captured. Silence if
    /// that is not known.
    @_noAllocation @_noLocks
    mutating func make(_ count: Int) {
        let count = min(count, output.capacity)
        var made = 0
        while isAligned, made < count {
            let start = position & (Self.historyFrames &- 1)
            let waiting = written &- position
            let end = min(start &+ waiting, Self.historyFrames)
            guard waiting <= Self.historyFrames, start < end,
                let (read, produced) = resample(start, end, into: made, limit: count), read > 0 || produced > 0
            else {
                // The card has played what it was not given: it says so itself, or will be asked.
                loseAlignment()
                break
            }
            position &+= read
            made &+= produced
        }
        guard made < count else { return }
        var silent = output.mutableSamples(count)
        while made < count {
            silent[made] = 0
            made &+= 1
        }
    }

    @_noAllocation @_noLocks
    private mutating func resample(_ start: Int, _ end: Int, into offset: Int, limit: Int)
        -> (consumed: Int, produced: Int)?
    {
        Self.resample(history, start, end, with: &resampler, into: &output, offset, limit)
    }

    @_noAllocation @_noLocks
    private static func resample(
        _ input: borrowing SampleBuffer, _ start: Int, _ end: Int, with resampler: inout ClockResampler?,
        into output: inout SampleBuffer, _ offset: Int, _ limit: Int
    ) -> (consumed: Int, produced: Int)? {
        var space = output.mutableSamples(limit)
        return resampler?.process(input, from: start, to: end, into: &space, at: offset, limit: limit)
    }

    /// Skips what was played while `count` unused frames were captured.
    @_noAllocation @_noLocks
    mutating func pass(_ count: Int) {
        owed += Double(count) * ratio * (1 + clocks.ratePPM * 1e-6)
        let whole = Int(owed)
        position &+= whole
        owed -= Double(whole)
    }
}
