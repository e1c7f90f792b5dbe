public import Timekeeping

/// Turns received telephone events into keys (RFC 4733 §2.5.2).
///
/// All packets of a key have the same timestamp, by which repetitions and late packets are recognised. A key whose end
/// is lost ends when the next begins, or when nothing of it has arrived for 200 ms.
public struct TelephoneEventReceiver: Sendable {
    /// A key that is over.
    public struct Finished: Equatable, Sendable {
        /// Which.
        public var event: TelephoneEvent
        /// RTP ticks for which it was pressed, according to the packets so far.
        public var durationTicks: Int
        /// Its end did not come.
        public var endWasLost: Bool

        @_noAllocation @_noLocks
        init(event: TelephoneEvent, durationTicks: Int, endWasLost: Bool) {
            self.event = event
            self.durationTicks = durationTicks
            self.endWasLost = endWasLost
        }
    }

    /// The events of one packet, in order.
    public struct Outcome: Equatable, Sendable {
        /// The key before is over though its end was lost.
        public var lost: Finished?
        /// A key is pressed.
        public var began: TelephoneEvent?
        /// The key is over.
        public var finished: Finished?

        @_noAllocation @_noLocks
        init() {}
    }

    private struct Current {
        var event: TelephoneEvent
        var timestamp: UInt32
        var duration: Int
        /// Ticks of the segments before this one.
        var earlier: Int
        var heardAt: Instant
    }

    private var current: Current?
    /// The newest key that is over: its timestamp and all before are old, until timestamps may have come round.
    private var over: (timestamp: UInt32, at: Instant)?
    /// How long a key may be silent, in nanoseconds.
    private static var patience: Int64 { @_noAllocation @_noLocks get { 200_000_000 } }

    /// How long repetitions of an end may be on their way, in nanoseconds; far below half a turn of the timestamp.
    private static var memory: Int64 { @_noAllocation @_noLocks get { 10_000_000_000 } }

    /// Makes a receiver in its initial state.
    @_noAllocation @_noLocks
    public init() {}

    /// When ``expire(at:)`` is next to be called; `nil` while no key is pressed.
    public var nextDeadline: Instant? {
        @_noAllocation @_noLocks get { current?.heardAt.advanced(byNanoseconds: Self.patience) }
    }

    /// Takes one packet.
    @_noAllocation @_noLocks
    public mutating func receive(
        _ payload: TelephoneEventPayload, timestamp: UInt32, at now: Instant
    ) -> Outcome {
        var outcome = Outcome()
        if let over, Int32(bitPattern: timestamp &- over.timestamp) <= 0,
            over.at.nanoseconds(to: now) < Self.memory
        {
            return outcome
        }
        if let held = current {
            let step = Int32(bitPattern: timestamp &- held.timestamp)
            // Late, of a key or segment before.
            if step < 0 { return outcome }
            if step > 0 { settle(held, payload, step: Int(step), timestamp, &outcome) }
        }
        if case .none = current {
            outcome.began = payload.event
            current = Current(event: payload.event, timestamp: timestamp, duration: 0, earlier: 0, heardAt: now)
        }
        // One timestamp has one event; another under it is a forgery or a fault.
        guard var held = current, held.event.code == payload.event.code else { return outcome }
        held.duration = max(held.duration, Int(payload.duration))
        held.heardAt = now
        current = held
        if payload.isEnd { outcome.finished = end(held, endWasLost: false) }
        return outcome
    }

    /// Ends a key that has been silent for too long.
    @_noAllocation @_noLocks
    public mutating func expire(at now: Instant) -> Finished? {
        guard let held = current, held.heardAt.nanoseconds(to: now) >= Self.patience else { return nil }
        return end(held, endWasLost: true)
    }

    /// A newer timestamp came: a further segment of the same key, or another key.
    @_noAllocation @_noLocks
    private mutating func settle(
        _ held: Current, _ payload: TelephoneEventPayload, step: Int, _ timestamp: UInt32, _ outcome: inout Outcome
    ) {
        // A segment begins where the one before has ended, which is near the most that a duration can hold.
        let isSegment = held.event.code == payload.event.code && step > 0x8000 && step <= 0x1_0000
        guard isSegment else {
            outcome.lost = end(held, endWasLost: true)
            return
        }
        var next = held
        next.timestamp = timestamp
        next.earlier += step
        next.duration = 0
        current = next
    }

    @_noAllocation @_noLocks
    private mutating func end(_ held: Current, endWasLost: Bool) -> Finished {
        over = (held.timestamp, held.heardAt)
        current = nil
        return Finished(
            event: held.event, durationTicks: held.earlier + held.duration, endWasLost: endWasLost)
    }
}
