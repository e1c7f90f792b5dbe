internal import Realtime

/// A call's place at the ``SoundDesk``: what the microphone has for it, and what it has for the loudspeaker.
///
/// The desk moves 10 ms at a time, the call a frame of its own length; both run on one thread. A call's frames are due at
/// turns of the desk, so that nothing waits here longer than its frame lasts.
struct CardPort: ~Copyable {
    private var microphone = SampleQueue(capacity: 8_192)
    private var heard = SampleQueue(capacity: 8_192)
    /// What the call brought to the desk's last turn.
    private var latest = SampleBuffer(capacity: SoundDesk.turnSamples)
    /// The call is on hold at the card: it hears silence, and is not heard.
    var isHeld = false
    /// Its frames are due at turns of the desk.
    var isPlaced = false
    private(set) var counters = Counters()

    /// Samples that were not there in time, or came too late.
    struct Counters: BitwiseCopyable {
        /// Samples of silence that the call sent because the desk had nothing for it.
        var underrun = 0
        /// Samples that were dropped so that they did not delay those after them.
        var dropped = 0
    }

    /// The call's side: gives a frame for the loudspeaker and takes one from the microphone.
    @_noAllocation @_noLocks
    mutating func exchange(received: Span<Int16>, sending: inout MutableSpan<Int16>) {
        let length = sending.count
        // What is left from before is late. A turn of the desk may lie between.
        counters.dropped += heard.keep(newest: SoundDesk.turnSamples)
        heard.append(received)
        // Before the call's first frame, more has gathered than it takes.
        let surplus = microphone.keep(newest: length + SoundDesk.turnSamples)
        counters.dropped += surplus
        if surplus > 0 { _ = microphone.keep(newest: length) }
        let taken = microphone.take(into: &sending)
        for index in taken..<length { sending[index] = 0 }
        if !isHeld { counters.underrun += length - taken }
    }

    /// The desk's side: 10 ms of what the call is to send.
    @_noAllocation @_noLocks
    mutating func hand(_ samples: Span<Int16>) { microphone.append(samples) }

    /// The desk's side: takes 10 ms of what the call has for the loudspeaker, with silence for what is missing.
    @_noAllocation @_noLocks
    mutating func advance() { Self.advance(&latest, &heard) }

    /// What ``advance()`` took.
    var contribution: Span<Int16> {
        @_semantics("no_performance_analysis") @inline(__always)
        @_lifetime(borrow self)
        get { latest.samples(SoundDesk.turnSamples) }
    }

    @_noAllocation @_noLocks
    private static func advance(_ latest: inout SampleBuffer, _ heard: inout SampleQueue) {
        var samples = latest.mutableSamples(SoundDesk.turnSamples)
        let taken = heard.take(into: &samples)
        for index in taken..<samples.count { samples[index] = 0 }
    }
}
