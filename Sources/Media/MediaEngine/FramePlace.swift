internal import Playout
internal import Timekeeping

/// Lets the frames of a call without a card wait a little for a packet that is just late, and stay where that has come.
///
/// Frames begin soon after a call's first packet, which may have been an early one, and the peer's clock may run slower
/// than ours. No sound is lost or made by a wait; the peer gets a packet that much later.
struct FramePlace: BitwiseCopyable, Sendable {
    private var waited: Int64 = 0
    private var waitsLeft = FramePlace.mostWaits
    private var elapsed: Int64 = 0

    /// The longest wait, which any jitter buffer of a peer's takes without a gap: 5 ms.
    private static var limit: Int64 { @_noAllocation @_noLocks get { 2 &* Pacer.slotNanoseconds } }
    /// A longer delay has room for jitter, as much as was worth it: 15 ms.
    private static var shortDelay: Int64 { @_noAllocation @_noLocks get { 15_000_000 } }
    /// Waits in store, and the time after which there is one more: two devices may drive each other on, for the one's
    /// packets come later when the other's do.
    private static var mostWaits: Int { @_noAllocation @_noLocks get { 4 } }
    private static var renewal: Int64 { @_noAllocation @_noLocks get { 10_000_000_000 } }

    @_noAllocation @_noLocks
    init() {}

    /// How many nanoseconds a frame of so many samples that is due at `due` is to wait; 0: it may run.
    @_noAllocation @_noLocks
    mutating func wait(for playout: borrowing PlayoutBuffer, _ frameSamples: Int, due: Instant) -> Int64 {
        guard waitsLeft > 0, waited < Self.limit, playout.lacksPacket(pullSamples: frameSamples),
            playout.delay(at: due) <= Self.shortDelay
        else { return 0 }
        waited &+= Pacer.slotNanoseconds
        return Pacer.slotNanoseconds
    }

    /// Notes that a frame runs now.
    ///
    /// - Returns: By how many nanoseconds earlier the next is to come: what was waited in vain.
    @_noAllocation @_noLocks
    mutating func run(with playout: borrowing PlayoutBuffer, _ frameSamples: Int) -> Int64 {
        elapsed &+= Int64(frameSamples) &* 1_000_000_000 / 48_000
        if elapsed >= Self.renewal {
            elapsed = 0
            waitsLeft = min(waitsLeft &+ 1, Self.mostWaits)
        }
        guard waited > 0 else { return 0 }
        let isInVain = playout.lacksPacket(pullSamples: frameSamples)
        let back = isInVain ? waited : 0
        waitsLeft &-= 1
        waited = 0
        return back
    }
}
