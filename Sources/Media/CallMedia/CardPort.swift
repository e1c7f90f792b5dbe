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
    private(set) var counters = Counters()

    /// Samples that were not there in time, or came too late.
    struct Counters: BitwiseCopyable {
        /// Samples of silence that the call sent because the mixer had nothing for it.
        var underrun = 0
        /// Samples that were dropped so that they did not delay those after them.
        var dropped = 0
    }

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
