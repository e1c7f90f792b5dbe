internal import Realtime
internal import AudioKit

/// A call's port at the sound card's mixer: sound from the microphone, and sound for the loudspeaker.
///
/// The mixer moves 10 ms at a time, the call sends frames of its own length; both run on one thread. A call's frames are due
/// at ticks of the mixer, so that nothing waits here longer than its frame lasts.
struct CardPort: ~Copyable {
    /// Samples of a tick of the card's mixer: 10 ms.
    static var tickSamples: Int { @_noAllocation @_noLocks get { 480 } }

    private var microphone = SampleQueue(capacity: 8_192)
    /// The call's contribution to the loudspeaker's last tick.
    private var latest = SampleBuffer(capacity: CardPort.tickSamples)
    /// Limits what the call is to send.
    var limiter = MixLimiter()
    /// The call is on hold at the card: it gets silence, and is not played.
    var isHeld = false
    /// Its frames are due at ticks of the mixer.
    var isPlaced = false
    var counters = CardPortCounters()

    /// The call's side: takes a frame from the microphone.
    @_noAllocation @_noLocks
    mutating func take(into sending: inout MutableSpan<Int16>) {
        let length = sending.count
        // Before the call's first frame, more has gathered than it takes.
        if microphone.count > length + CardPort.tickSamples { counters.dropped += microphone.keep(newest: length) }
        let taken = microphone.take(into: &sending)
        for index in taken..<length { sending[index] = 0 }
        if !isHeld { counters.underrun += length - taken }
    }

    /// The mixer's side: 10 ms of what the call is to send.
    @_noAllocation @_noLocks
    mutating func hand(_ samples: Span<Int16>) { microphone.append(samples) }

    /// The call's side: contributes 10 ms to the loudspeaker's tick.
    @_noAllocation @_noLocks
    mutating func bring(_ samples: Span<Int16>) {
        var room = latest.mutableSamples(CardPort.tickSamples)
        for index in 0..<min(room.count, samples.count) { room[index] = samples[index] }
    }

    /// The call's contribution to the last tick.
    var contribution: Span<Int16> {
        @_semantics("no_performance_analysis") @inline(__always)
        @_lifetime(borrow self)
        get { latest.samples(CardPort.tickSamples) }
    }
}

/// What a call's port has counted while the call had the card.
package struct CardPortCounters: BitwiseCopyable {
    /// What the microphone gave, before all processing.
    private(set) var captured = SoundTrace()
    /// Samples that the card had not captured in time.
    private(set) var captureUnderrun = 0
    /// Samples of the loudspeaker that the card did not take.
    private(set) var playOverrun = 0
    /// Samples of silence that the call sent because the mixer had nothing for it.
    fileprivate(set) var underrun = 0
    /// Samples that were dropped so that they did not delay those after them.
    fileprivate(set) var dropped = 0

    @_noAllocation @_noLocks
    init() {}

    /// Notes a tick of the microphone.
    ///
    /// - Parameter missing: Samples of it that the card had not captured in time.
    @_noAllocation @_noLocks
    package mutating func noteCapture(_ trace: SoundTrace, missing: Int) {
        captured.note(trace)
        captureUnderrun &+= missing
    }

    /// Notes samples of a tick of the loudspeaker that the card did not take.
    @_noAllocation @_noLocks
    package mutating func notePlayback(refused: Int) { playOverrun &+= refused }

    /// Adds them to a report.
    @_noAllocation @_noLocks
    package func add(to report: inout SoundReport) {
        report.captured = captured
        report.captureUnderrunSamples = captureUnderrun
        report.playOverrunSamples = playOverrun
        report.callSamplesLost = underrun + dropped
    }
}

/// Samples that wait for their tick within one thread, in memory that is taken once.
struct SampleQueue: ~Copyable, Sendable {
    private var memory: SampleBuffer
    private let mask: Int
    private var written = 0
    private var taken = 0

    /// - Parameter capacity: The largest number of samples; a power of two.
    init(capacity: Int) {
        precondition(capacity > 0 && capacity & (capacity - 1) == 0, "a queue's capacity is a power of two")
        memory = SampleBuffer(capacity: capacity)
        mask = capacity - 1
    }

    /// Samples that wait.
    var count: Int { @_noAllocation @_noLocks get { written - taken } }

    /// Adds samples, and drops the oldest for which there is no room.
    @_noAllocation @_noLocks
    mutating func append(_ samples: Span<Int16>) {
        for index in 0..<samples.count { memory[(written + index) & mask] = samples[index] }
        written += samples.count
        if count > mask + 1 { taken = written - mask - 1 }
    }

    /// Takes as many as there are, up to the room in `samples`, and leaves the rest of it as it was.
    ///
    /// - Returns: How many were taken.
    @_noAllocation @_noLocks
    mutating func take(into samples: inout MutableSpan<Int16>) -> Int {
        let number = min(samples.count, count)
        for index in 0..<number { samples[index] = memory[(taken + index) & mask] }
        taken += number
        return number
    }

    /// Drops the oldest, so that no more than `most` wait.
    ///
    /// - Returns: How many were dropped.
    @_noAllocation @_noLocks
    mutating func keep(newest most: Int) -> Int {
        let surplus = count - most
        guard surplus > 0 else { return 0 }
        taken += surplus
        return surplus
    }
}
