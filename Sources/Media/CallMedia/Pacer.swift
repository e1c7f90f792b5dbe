package import Core

/// Decides at which instants a call's frames are due.
///
/// Frames are due on a grid of slots, so that a worker with many calls wakes once for all calls of a slot. A slot gets calls
/// until its time is full, and then the calls are spread over the slots, so that these carry equal loads.
package enum Pacer {
    /// The grid: eight slots in a frame of 20 ms.
    package static var slotNanoseconds: Int64 {
        @_noAllocation @_noLocks get { 2_500_000 }
    }

    /// The least time from a packet's arrival until its frame is due, so that ordinary jitter does not make it late.
    static var marginNanoseconds: Int64 {
        @_noAllocation @_noLocks get { 1_000_000 }
    }

    /// A slot that a call may be put into.
    package struct Slot: BitwiseCopyable {
        package var due: Instant
        /// How many calls have their frames then.
        package var calls = 0

        @_noAllocation @_noLocks
        package init(due: Instant) { self.due = due }
    }

    /// The slot that takes one more call: of the first `count`, the fullest with room for it, because each wake-up finds
    /// cold caches. If none has room, the emptiest.
    ///
    /// - Parameter room: How many calls fit into one slot.
    @_noAllocation @_noLocks
    package static func choice(among slots: InlineArray<3, Slot>, count: Int, room: Int) -> Slot {
        var emptiest = slots[0]
        var fullest: Slot?
        for number in 0..<min(count, slots.count) {
            let slot = slots[number]
            if slot.calls < emptiest.calls { emptiest = slot }
            if slot.calls < room, slot.calls > fullest?.calls ?? -1 { fullest = slot }
        }
        return fullest ?? emptiest
    }

    /// A call that is more than this many frames late skips them: sending all of them late is useless.
    static var catchUpFrames: Int64 {
        @_noAllocation @_noLocks get { 8 }
    }

    /// The instants at which a call with frames of one length may have them run.
    package struct Grid: BitwiseCopyable {
        package let periodNanoseconds: Int64

        @_noAllocation @_noLocks
        init(periodNanoseconds: Int64) { self.periodNanoseconds = periodNanoseconds }

        /// The first slot for the second frame of a call whose first was handled at `first`.
        @_noAllocation @_noLocks
        package func earliestSlot(after first: Instant) -> Instant {
            let earliest = first.nanoseconds + periodNanoseconds + Pacer.marginNanoseconds
            let slot = Pacer.slotNanoseconds
            return Instant(nanoseconds: (earliest + slot - 1) / slot * slot)
        }

        /// How many calls fit into one slot, if each takes this share of a core: their frames are done before the next slot.
        @_noAllocation @_noLocks
        package func room(costOfCall: Double) -> Int {
            let frame = costOfCall * Double(periodNanoseconds)
            return Int(Double(Pacer.slotNanoseconds) / max(frame, 10_000))
        }

        /// The slot after `slot`.
        @_noAllocation @_noLocks
        package func slot(following slot: Instant) -> Instant { slot.advanced(byNanoseconds: Pacer.slotNanoseconds) }

        /// Whether frames due at the two instants are due in one slot, in this period or another.
        @_noAllocation @_noLocks
        package func share(_ one: Instant, _ other: Instant) -> Bool {
            (one.nanoseconds / Pacer.slotNanoseconds - other.nanoseconds / Pacer.slotNanoseconds)
                % (periodNanoseconds / Pacer.slotNanoseconds) == 0
        }
    }
}
