internal import Playout
internal import Core

/// Lets the frames of a call without a card wait a little for a packet that is just late, and stay where that has come.
///
/// Frames begin soon after a call's first packet, which may have been an early one, and the peer's clock may run slower
/// than the local one. No sound is lost or made by a wait; the peer gets a packet that much later. When the frames have moved so far
/// that packets wait for long, the jitter buffer plays a whole step earlier, as ever.
struct LatePacketWait: BitwiseCopyable, Sendable {
    private var waited: Int64 = 0
    private var movesLeft = LatePacketWait.mostMoves
    private var nextMove = LatePacketWait.renewal
    private var nextTry: Int64 = 0
    private var pause = LatePacketWait.shortestPause
    /// Sound that frames have run for.
    private var elapsed: Int64 = 0

    /// The longest wait: 10 ms, because Chromium holds a packet back by up to 8.5 ms behind its path probes, every 5 s.
    /// This is little compared with the usual delay of jitter buffers.
    private static var longest: Int64 { @_noAllocation @_noLocks get { 4 &* Pacer.slotNanoseconds } }
    /// With more the jitter buffer has the room that it thinks worth its delay: 15 ms.
    private static var littleRoom: Int64 { @_noAllocation @_noLocks get { 15_000_000 } }
    /// Moves that are available, and the time after which there is one more. They are limited because two devices could
    /// drive each other on: the packets of one come later when those of the other do.
    private static var mostMoves: Int { @_noAllocation @_noLocks get { 4 } }
    private static var renewal: Int64 { @_noAllocation @_noLocks get { 10_000_000_000 } }
    /// After a useless wait, for example for a lost packet, there is no wait for 1 to 16 s, twice as long after each.
    private static var shortestPause: Int64 { @_noAllocation @_noLocks get { 1_000_000_000 } }
    private static var longestPause: Int64 { @_noAllocation @_noLocks get { 16_000_000_000 } }

    @_noAllocation @_noLocks
    init() {}

    @_noAllocation @_noLocks
    private static func nanoseconds(_ samples: Int) -> Int64 { Int64(samples) &* 1_000_000_000 / 48_000 }

    /// How many nanoseconds to delay a frame of `frameSamples` samples that is due at `due`; 0: it may run.
    @_noAllocation @_noLocks
    mutating func wait(
        for playout: borrowing PlayoutBuffer, _ frameSamples: Int, due: Instant, at now: Instant
    ) -> Int64 {
        guard playout.mayAwait(forPull: frameSamples) else { return 0 }
        // The first slot that is yet to come.
        let behind = max(due.nanoseconds(to: now), 0)
        let wait = (behind / Pacer.slotNanoseconds &+ 1) &* Pacer.slotNanoseconds
        guard wait <= patience(with: playout, frameSamples, due: due) else { return 0 }
        waited &+= wait
        return wait
    }

    /// How many nanoseconds a frame of `frameSamples` samples that is due at `due` would wait from then on.
    @_noAllocation @_noLocks
    func patience(with playout: borrowing PlayoutBuffer, _ frameSamples: Int, due: Instant) -> Int64 {
        guard movesLeft > 0, elapsed >= nextTry,
            waited > 0 || playout.room(forPull: frameSamples, at: due) <= Self.littleRoom
        else { return 0 }
        // Half a frame at most: what is sent after a wait in vain is to be no trouble for a peer that has 10 ms frames.
        return min(Self.longest, Self.nanoseconds(frameSamples) / 2) &- waited
    }

    /// Notes that a frame of `frameSamples` samples runs.
    ///
    /// - Returns: How many nanoseconds earlier the next one must come: the time that was waited in vain.
    @_noAllocation @_noLocks
    mutating func noteRun(_ playout: borrowing PlayoutBuffer, _ frameSamples: Int) -> Int64 {
        elapsed &+= Self.nanoseconds(frameSamples)
        if elapsed >= nextMove {
            nextMove = elapsed &+ Self.renewal
            movesLeft = min(movesLeft &+ 1, Self.mostMoves)
        }
        guard waited > 0 else { return 0 }
        let shift = waited
        waited = 0
        if playout.hasSound(forPull: frameSamples) {
            movesLeft &-= 1
            pause = Self.shortestPause
            return 0
        }
        nextTry = elapsed &+ pause
        pause = min(2 &* pause, Self.longestPause)
        return shift
    }
}
