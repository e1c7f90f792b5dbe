internal import Playout
package import Realtime
package import AudioKit
package import Core

/// A call as the sound card's mixer sees it, on their common worker: a port for sound, and the times of its ticks.
///
/// A view without ownership: valid as long as the worker has the call.
@safe
package struct CardCall: BitwiseCopyable {
    /// Samples that the mixer moves in a tick: 10 ms.
    package static var tickSamples: Int { @_noAllocation @_noLocks get { CardPort.tickSamples } }

    private let call: UnsafeMutablePointer<MediaCall>

    /// A view of a call.
    @_noAllocation @_noLocks
    package init(_ call: UnsafeMutablePointer<MediaCall>) { unsafe self.call = call }

    /// The call's name.
    package var id: MediaCallID {
        @_noAllocation @_noLocks get { unsafe call.pointee.id }
    }

    /// Microphone and loudspeaker of the call are those of the card.
    package var usesCard: Bool {
        @_noAllocation @_noLocks get { unsafe call.pointee.usesCard }
    }

    /// The call's frames are due at the microphone's ticks.
    package var isPlaced: Bool {
        @_noAllocation @_noLocks get { unsafe call.pointee.audio.port?.isPlaced ?? false }
    }

    /// What the call's port at the card has counted.
    package var counters: CardPortCounters {
        @_noAllocation @_noLocks get { unsafe call.pointee.audio.port?.counters ?? CardPortCounters() }
        @_noAllocation @_noLocks nonmutating set { unsafe call.pointee.audio.port?.counters = newValue }
    }

    /// Records that the call's frames are due at the microphone's ticks.
    @_noAllocation @_noLocks
    package func notePlaced() { unsafe call.pointee.audio.port?.isPlaced = true }

    /// Puts the call on hold at the card, or takes it back: on hold it gets silence, and is not played.
    @_noAllocation @_noLocks
    package func setHeld(_ isHeld: Bool) { unsafe call.pointee.audio.port?.isHeld = isHeld }

    /// Lets the call decode 10 ms for the loudspeaker's tick, and contribute them to it.
    @_noAllocation @_noLocks
    package func hear(at due: Instant, through work: inout SampleBuffer) {
        unsafe call.pointee.hearTick(at: due, through: &work)
    }

    /// By how many nanoseconds the loudspeaker's ticks should come earlier, because the call's packets wait.
    @_noAllocation @_noLocks
    package func worthwhileAdvance(at due: Instant) -> Int64 {
        unsafe call.pointee.worthwhileAdvance(at: due)
    }

    /// Advances the loudspeaker's ticks from now on.
    @_noAllocation @_noLocks
    package func advancePulls(nanoseconds: Int64) { unsafe call.pointee.advanceTicks(nanoseconds: nanoseconds) }

    // What follows hands out views of samples, which unoptimised code counts as reference counting. It is not analysed;
    // what it calls is.

    /// Adds what the call contributed to the loudspeaker's last tick.
    @_semantics("no_performance_analysis")
    package func contribute(to mixer: inout CallMixer) {
        unsafe call.pointee.audio.withContribution { mixer.add($0) }
    }

    /// Fills `frame` with the mix of all others, for this call to send.
    @_semantics("no_performance_analysis")
    package func mixOthers(of mixer: inout CallMixer, into frame: inout SampleBuffer) {
        var samples = frame.mutableSamples(Self.tickSamples)
        var limiter = unsafe call.pointee.audio.port?.limiter ?? MixLimiter()
        unsafe call.pointee.audio.withContribution { mixer.mix(without: $0, into: &samples, through: &limiter) }
        unsafe call.pointee.audio.port?.limiter = limiter
    }

    /// Gives the call 10 ms to send.
    @_semantics("no_performance_analysis")
    package func hand(_ frame: borrowing SampleBuffer) {
        unsafe call.pointee.audio.port?.hand(frame.samples(Self.tickSamples))
    }
}

/// The calls of a worker as the sound card's mixer sees them. A view without ownership, like ``CardCall``.
@safe
package struct CardCalls: BitwiseCopyable {
    private let calls: UnsafeMutablePointer<UnsafeMutablePointer<MediaCall>>
    /// How many there are.
    package let count: Int

    /// A view of the first `count` calls at `calls`.
    @_noAllocation @_noLocks
    package init(_ calls: UnsafeMutablePointer<UnsafeMutablePointer<MediaCall>>, count: Int) {
        unsafe self.calls = calls
        self.count = count
    }

    /// The call at `index`, below ``count``.
    package subscript(index: Int) -> CardCall {
        @_noAllocation @_noLocks get { unsafe CardCall(calls[index]) }
    }
}
