public import Core

/// Turns received telephone events into keys (RFC 4733 §2.5.2).
///
/// All packets of a key should have the same timestamp, and in practice some senders count it on from packet to packet. So
/// packets of one event in contiguous numbers are of one key, until its end; numbers, not timestamps, show which packets are
/// late. A key whose end is lost ends when the next begins, or when nothing of it has arrived for 200 ms.
public struct TelephoneEventReceiver: Sendable {
    /// A key that was released.
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
        /// The previous key, which ended although its end was lost.
        public var lost: Finished?
        /// The key whose press begins.
        public var began: TelephoneEvent?
        /// The key that ended.
        public var finished: Finished?

        @_noAllocation @_noLocks
        init() {}
    }

    /// A key, as its packets so far describe it.
    private struct Key {
        var event: TelephoneEvent
        /// Timestamp and number of the newest packet.
        var timestamp: UInt32
        var number: Int64
        /// Ticks by which the sender counts the timestamp on from packet to packet; 0 if it does not.
        var rise = 0
        /// The longest duration with this timestamp, and ticks before it.
        var duration = 0
        var earlier = 0
        var heardAt: Instant

        @_noAllocation @_noLocks
        init(_ event: TelephoneEvent, _ timestamp: UInt32, _ number: Int64, at now: Instant) {
            (self.event, self.timestamp, self.number, heardAt) = (event, timestamp, number, now)
        }

        /// Whether a packet with a higher number and another timestamp is of this key, which has not ended.
        @_noAllocation @_noLocks
        func continues(in payload: TelephoneEventPayload, number: Int64, timestamp: UInt32) -> Bool {
            guard payload.event.code == event.code else { return false }
            // A further segment begins where the one before has ended, which is near the most that a duration can hold.
            let step = Int(Int32(bitPattern: timestamp &- self.timestamp))
            if step > 0x8000, step <= 0x1_0000 { return true }
            // Before another key there are at least the three packets of this one's end.
            let steps = number - self.number
            return steps > 0 && (steps <= 3 || rises(by: step, in: steps))
        }

        /// Whether the timestamp has risen by `step` in `steps` packets at the same rate as before.
        @_noAllocation @_noLocks
        func rises(by step: Int, in steps: Int64) -> Bool {
            rise > 0 && steps <= Self.longestGap && step == rise * Int(steps)
        }

        /// Takes the timestamp of a further packet.
        @_noAllocation @_noLocks
        mutating func advance(to payload: TelephoneEventPayload, number: Int64, timestamp: UInt32) {
            let step = Int(Int32(bitPattern: timestamp &- self.timestamp))
            let steps = number - self.number
            if step > 0, steps > 0, steps <= 3, step % Int(steps) == 0 { rise = step / Int(steps) }
            // A duration that does not grow counts from its own timestamp, another one from the key's beginning.
            if Int(payload.duration) <= duration {
                earlier += max(step, 0)
                duration = 0
            }
            self.timestamp = timestamp
        }

        /// Packets of a key that may be lost in a row while its timestamp rises: half a second.
        private static var longestGap: Int64 { @_noAllocation @_noLocks get { 25 } }
    }

    private var current: Key?
    /// The newest key that ended, of which packets may still come, and whether its end came.
    private var ended: (key: Key, endWasLost: Bool)?
    /// The stream, its highest number so far, and when that came.
    private var stream: (ssrc: UInt32, newest: Int64, at: Instant)?

    /// How long a key may be silent, in nanoseconds.
    private static var patience: Int64 { @_noAllocation @_noLocks get { 200_000_000 } }
    /// How long an end may be repeated, in nanoseconds.
    private static var memory: Int64 { @_noAllocation @_noLocks get { 10_000_000_000 } }
    /// How far behind a packet may be and still be a late one (RFC 3550 A.1, MAX_MISORDER), and by how many nanoseconds: beyond that
    /// the stream began again.
    private static var maxMisorder: Int64 { @_noAllocation @_noLocks get { 100 } }
    private static var maxLateness: Int64 { @_noAllocation @_noLocks get { 1_000_000_000 } }

    /// Makes a receiver in its initial state.
    @_noAllocation @_noLocks
    public init() {}

    /// When ``expire(at:)`` is next to be called; `nil` while no key is pressed.
    public var nextDeadline: Instant? {
        @_noAllocation @_noLocks get { current?.heardAt.advanced(byNanoseconds: Self.patience) }
    }

    /// Takes one packet.
    ///
    /// - Parameters:
    ///   - number: Its sequence number, extended so that it never wraps: one more than that of the packet sent before
    ///     it, of any kind.
    ///   - timestamp: From the RTP header, and `ssrc` too.
    @_noAllocation @_noLocks
    public mutating func receive(
        _ payload: TelephoneEventPayload, number: Int64, timestamp: UInt32, ssrc: UInt32, at now: Instant
    ) -> Outcome {
        var outcome = Outcome()
        let isLate = place(number, ssrc, at: now, &outcome)
        if let held = current {
            if timestamp != held.timestamp, !follow(held, payload, number, timestamp, isLate, at: now, &outcome) {
                return outcome
            }
        } else if isLate || isOfEndedKey(payload, number, timestamp, at: now) {
            return outcome
        }
        if case .none = current {
            outcome.began = payload.event
            current = Key(payload.event, timestamp, number, at: now)
        }
        // One timestamp has one event; another under it is a forgery or a fault.
        guard var held = current, held.event.code == payload.event.code else { return outcome }
        held.duration = max(held.duration, Int(payload.duration))
        held.number = max(held.number, number)
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

    /// Records a packet's position in the stream. A stream that begins, or begins again, ends the previous stream's
    /// key.
    ///
    /// - Returns: Whether the packet is late: one that was sent later came before it.
    @_noAllocation @_noLocks
    private mutating func place(_ number: Int64, _ ssrc: UInt32, at now: Instant, _ outcome: inout Outcome) -> Bool {
        if let stream, stream.ssrc == ssrc, number > stream.newest - Self.maxMisorder {
            if number <= stream.newest, stream.at.nanoseconds(to: now) < Self.maxLateness { return true }
        } else {
            if let held = current { outcome.lost = end(held, endWasLost: true) }
            ended = nil
        }
        stream = (ssrc, number, now)
        return false
    }

    /// Takes another timestamp than that of the key that is pressed: of the same key, or of one that ends it.
    ///
    /// - Returns: Whether the packet counts.
    @_noAllocation @_noLocks
    private mutating func follow(
        _ held: Key, _ payload: TelephoneEventPayload, _ number: Int64, _ timestamp: UInt32, _ isLate: Bool,
        at now: Instant, _ outcome: inout Outcome
    ) -> Bool {
        guard !isLate, !isOfEndedKey(payload, number, timestamp, at: now) else { return false }
        guard held.continues(in: payload, number: number, timestamp: timestamp) else {
            outcome.lost = end(held, endWasLost: true)
            return true
        }
        var next = held
        next.advance(to: payload, number: number, timestamp: timestamp)
        current = next
        return true
    }

    /// Whether a packet in order still belongs to the newest key that ended: its end again, or, if its end did not come, what
    /// was held back of it.
    @_noAllocation @_noLocks
    private mutating func isOfEndedKey(
        _ payload: TelephoneEventPayload, _ number: Int64, _ timestamp: UInt32, at now: Instant
    ) -> Bool {
        guard let ended, ended.key.event.code == payload.event.code,
            ended.key.heardAt.nanoseconds(to: now) < Self.memory
        else { return false }
        var key = ended.key
        if timestamp == key.timestamp { return true }
        guard case .none = current else { return false }
        let (step, steps) = (Int(Int32(bitPattern: timestamp &- key.timestamp)), number - key.number)
        guard steps > 0,
            payload.isEnd && steps <= 3 && step < key.earlier + key.duration
                || ended.endWasLost && key.rises(by: step, in: steps)
        else {
            return false
        }
        key.timestamp = timestamp
        key.number = number
        self.ended = (key, ended.endWasLost)
        return true
    }

    @_noAllocation @_noLocks
    private mutating func end(_ held: Key, endWasLost: Bool) -> Finished {
        ended = (held, endWasLost)
        current = nil
        return Finished(
            event: held.event, durationTicks: held.earlier + held.duration, endWasLost: endWasLost)
    }
}
