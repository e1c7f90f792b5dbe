public import Realtime
public import Core

/// The media worker's end of a sound card: samples of 48 kHz to play and samples that were captured.
///
/// Made once for each ``AudioDevice`` and given to one thread. Frames of any size, usually 10 ms or 20 ms, go in and
/// out at the worker's pace; the device's thread compensates the difference between the worker's clock and the card's.
/// This works in the same way without a card: then played sound is dropped, and captured sound is silence.
public struct SoundLine: ~Copyable, Sendable {
    private var playing: AudioRing.Producer
    private var playingMarks: SPSCRing<LineMark>.Producer
    private var capturing: AudioRing.Consumer
    private var referring: AudioRing.Consumer
    private var capturingMarks: SPSCRing<LineMark>.Producer
    private var boundaries: SPSCRing<PeriodBoundary>.Consumer
    /// Wakes the device's thread for the first frame after a pause: it may sleep for seconds.
    private let wakeup: WakeupHandle?
    private var isPaused = true
    private var played = 0
    private var captured = 0
    /// Samples that this end has dropped or lacked.
    public private(set) var counters = Counters()

    /// Samples that did not fit, and samples that were not there.
    public struct Counters: BitwiseCopyable, Equatable, Sendable {
        /// Samples for playback that were dropped because the ring was full: the device's thread stalls.
        public var playOverrun = 0
        /// Samples of silence handed out because nothing captured was there.
        public var captureUnderrun = 0
    }

    /// When the card last delivered captured samples, as far as ``capture(into:at:afterBoundary:)`` has seen.
    public private(set) var lastBoundary: PeriodBoundary?

    init(
        playing: consuming AudioRing.Producer, playingMarks: consuming SPSCRing<LineMark>.Producer,
        capturing: consuming AudioRing.Consumer, referring: consuming AudioRing.Consumer,
        capturingMarks: consuming SPSCRing<LineMark>.Producer, boundaries: consuming SPSCRing<PeriodBoundary>.Consumer,
        wakeup: WakeupHandle?
    ) {
        self.wakeup = wakeup
        self.playing = playing
        self.playingMarks = playingMarks
        self.capturing = capturing
        self.referring = referring
        self.capturingMarks = capturingMarks
        self.boundaries = boundaries
    }

    /// Hands over the next samples to be played, at the worker's rhythm. Real-time safe.
    ///
    /// - Parameters:
    ///   - now: When the frame was due, or is handed over, on the machine's monotonic clock.
    ///   - skipping: Samples on their way to the card that are not to be played: a worker whose frames come earlier from
    ///     now on leaves out as much, and the delay stays what it was.
    @_noAllocation @_noLocks
    public mutating func play(_ samples: Span<Int16>, at now: Instant, skipping: Int = 0) {
        let mark = LineMark(count: played, nanoseconds: now.nanoseconds, skipped: Int32(clamping: skipping))
        let taken = playing.write(samples)
        played &+= taken
        counters.playOverrun &+= samples.count - taken
        // Full of marks: the device's thread stalls, and will need only the latest ones.
        _ = playingMarks.push(mark)
        if isPaused { endPause() }
    }

    /// Fills `samples` with captured sound, and with silence if there is not enough. Real-time safe.
    ///
    /// - Parameters:
    ///   - reference: Is filled with what the card played while it captured that: as many samples, in the card's own time,
    ///     so that a sample's echo keeps its distance while delays are corrected. 2 ms early.
    ///   - now: When the frame was due, or is taken, on the machine's monotonic clock.
    ///   - wait: How long after the card's boundaries frames are taken, in ns, if that is constant: then samples need not
    ///     wait for frames at any time between two boundaries. Nil if it is not constant.
    @_noAllocation @_noLocks
    public mutating func capture(
        into samples: inout MutableSpan<Int16>, reference: inout MutableSpan<Int16>, at now: Instant,
        afterBoundary wait: Int64? = nil
    ) {
        let read = read(into: &samples, at: now, afterBoundary: wait)
        var place = Self.read(read, from: &referring, into: &reference)
        while place < reference.count {
            reference[place] = 0
            place &+= 1
        }
    }

    /// Fills `samples` as ``capture(into:reference:at:afterBoundary:)`` does, for those who do not care what was played.
    @_noAllocation @_noLocks
    public mutating func capture(
        into samples: inout MutableSpan<Int16>, at now: Instant, afterBoundary wait: Int64? = nil
    ) {
        referring.skip(read(into: &samples, at: now, afterBoundary: wait))
    }

    @_noAllocation @_noLocks
    private static func read(
        _ count: Int, from ring: inout AudioRing.Consumer, into samples: inout MutableSpan<Int16>
    ) -> Int {
        var room = samples._mutatingExtracting(0..<min(count, samples.count))
        return ring.read(into: &room)
    }

    @_noAllocation @_noLocks
    private mutating func read(into samples: inout MutableSpan<Int16>, at now: Instant, afterBoundary wait: Int64?)
        -> Int
    {
        while let boundary = boundaries.pop() { lastBoundary = boundary }
        let read = capturing.read(into: &samples)
        captured &+= read
        for index in read..<samples.count { samples[index] = 0 }
        counters.captureUnderrun &+= samples.count - read
        _ = capturingMarks.push(
            LineMark(
                count: captured, nanoseconds: now.nanoseconds, missing: Int32(clamping: samples.count - read),
                wait: Int32(clamping: wait ?? -1)))
        if isPaused { endPause() }
        return read
    }

    /// Pauses the exchange of frames, so that their absence does not count as a fault. Real-time safe. The next frame
    /// ends the pause.
    @_noAllocation @_noLocks
    public mutating func pause(at now: Instant) {
        isPaused = true
        _ = playingMarks.push(LineMark(count: played, nanoseconds: now.nanoseconds, isPause: true))
        _ = capturingMarks.push(LineMark(count: captured, nanoseconds: now.nanoseconds, isPause: true))
    }

    @_noAllocation @_noLocks
    private mutating func endPause() {
        isPaused = false
        wakeup?.signal()
    }
}

/// A moment at which a card delivered captured samples, and the interval at which it does.
@frozen
public struct PeriodBoundary: BitwiseCopyable, Equatable, Sendable {
    /// When, on the monotonic clock.
    public let nanoseconds: Int64
    /// The card's period in nanoseconds.
    public let periodNanoseconds: Int64

    @_noAllocation @_noLocks
    init(nanoseconds: Int64, periodNanoseconds: Int64) {
        self.nanoseconds = nanoseconds
        self.periodNanoseconds = periodNanoseconds
    }

    /// Boundaries that may wait for the worker: more than between two frames of any length.
    static var capacity: Int { 64 }
}

/// One frame at the worker's end of a line: how far it was, and when. From these the device's thread knows the worker's
/// clock.
@frozen @usableFromInline
struct LineMark: BitwiseCopyable, Sendable {
    /// Samples played before this frame, or captured with it.
    @usableFromInline let count: Int
    /// When, on the monotonic clock.
    @usableFromInline let nanoseconds: Int64
    /// Samples that the worker asked for in vain.
    @usableFromInline let missing: Int32
    /// How long after the card's boundaries frames are taken, in ns; negative if they are taken at any time.
    @usableFromInline let wait: Int32
    /// Samples before this frame that are to be left out.
    @usableFromInline let skipped: Int32
    @usableFromInline let isPause: Bool

    @_noAllocation @_noLocks
    init(
        count: Int, nanoseconds: Int64, missing: Int32 = 0, wait: Int32 = -1, skipped: Int32 = 0, isPause: Bool = false
    ) {
        self.count = count
        self.nanoseconds = nanoseconds
        self.missing = missing
        self.wait = wait
        self.skipped = skipped
        self.isPause = isPause
    }

    /// The worker's position at `now` in samples, extrapolated from the last mark.
    @_noAllocation @_noLocks
    func position(at now: Instant) -> Double { Double(count) + Double(now.nanoseconds &- nanoseconds) * 48e-6 }

    /// Whether the worker is known to be at work at `now`: it may miss a dozen frames.
    @_noAllocation @_noLocks
    func isCurrent(at now: Instant) -> Bool { !isPause && now.nanoseconds &- nanoseconds < 250_000_000 }

    /// Marks that may wait: a third of a second of 10 ms frames, as much as the rings of samples hold.
    static var capacity: Int { 64 }
    /// Samples of 48 kHz that each ring holds: a third of a second.
    static var ringSamples: Int { 16_384 }
}

/// The device thread's ends of a line.
@frozen @usableFromInline
struct LineEnds: ~Copyable {
    @usableFromInline var playing: AudioRing.Consumer
    @usableFromInline var playingMarks: SPSCRing<LineMark>.Consumer
    @usableFromInline var capturing: AudioRing.Producer
    /// What was played meanwhile: always as many samples as were captured.
    @usableFromInline var referring: AudioRing.Producer
    @usableFromInline var capturingMarks: SPSCRing<LineMark>.Consumer
    @usableFromInline var boundaries: SPSCRing<PeriodBoundary>.Producer
}

/// Both ends of a new line.
@frozen @usableFromInline
struct LinePair: ~Copyable {
    @usableFromInline var worker: SoundLine
    @usableFromInline var device: LineEnds

    /// - Parameter wakeup: Wakes the device's thread, if it has one.
    init(wakeup: WakeupHandle? = nil) {
        let playing = AudioRing(capacity: LineMark.ringSamples)
        let capturing = AudioRing(capacity: LineMark.ringSamples)
        let referring = AudioRing(capacity: LineMark.ringSamples)
        let playingMarks = SPSCRing<LineMark>(capacity: LineMark.capacity)
        let capturingMarks = SPSCRing<LineMark>(capacity: LineMark.capacity)
        let boundaries = SPSCRing<PeriodBoundary>(capacity: PeriodBoundary.capacity)
        worker = SoundLine(
            playing: playing.producer, playingMarks: playingMarks.producer, capturing: capturing.consumer,
            referring: referring.consumer, capturingMarks: capturingMarks.producer, boundaries: boundaries.consumer,
            wakeup: wakeup)
        device = LineEnds(
            playing: playing.consumer, playingMarks: playingMarks.consumer, capturing: capturing.producer,
            referring: referring.producer, capturingMarks: capturingMarks.consumer, boundaries: boundaries.producer)
    }
}
