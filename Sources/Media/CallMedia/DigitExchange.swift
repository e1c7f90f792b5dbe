internal import RTP
internal import Core

/// A call's telephone keys: our own, which are sent in place of sound, and the peer's (RFC 4733).
package struct DigitExchange {
    private var sender: TelephoneEventSender?
    private var receiver = TelephoneEventReceiver()
    private var receivedClockRate = 8_000
    /// Keys of the peer that are not reported yet: one packet ends at most two, and they are taken after each packet.
    private var heard = InlineArray<4, Digit>(repeating: Digit(code: 0, milliseconds: 0))
    private var heardCount = 0

    /// A key of the peer that has ended.
    package struct Digit: BitwiseCopyable {
        package var code: UInt8
        package var milliseconds: Int32
    }

    /// - Parameter clockRate: Ticks a second of the events that we send; nil if we may not send any.
    init(clockRate: Int?, frameMilliseconds: Int) {
        guard let clockRate else { return }
        sender = TelephoneEventSender(.init(clockRate: clockRate, packetMilliseconds: frameMilliseconds))
    }

    /// Whether one of our keys is being sent.
    var isPressing: Bool {
        @_noAllocation @_noLocks get { sender?.isPressing ?? false }
    }

    /// Changes the clock rate of sent keys, or stops sending keys; waiting keys use the new rate. Not while
    /// ``isPressing``.
    @_noAllocation @_noLocks
    mutating func change(clockRate: Int?, frameMilliseconds: Int) {
        guard let clockRate else {
            sender = nil
            return
        }
        let configuration = TelephoneEventSender.Configuration(
            clockRate: clockRate, packetMilliseconds: frameMilliseconds)
        var changed = sender ?? TelephoneEventSender(configuration)
        changed.change(to: configuration)
        sender = changed
    }

    /// Queues one of our keys.
    ///
    /// - Returns: False if too many wait, or we may not send any.
    @_noAllocation @_noLocks
    mutating func press(_ code: UInt8) -> Bool {
        guard var sending = sender else { return false }
        let isTaken = sending.press(TelephoneEvent(code: code))
        sender = sending
        return isTaken
    }

    /// What to send in place of the frame that begins at `timestamp`; nil if that is to be sent.
    @_noAllocation @_noLocks
    mutating func next(at timestamp: UInt32) -> TelephoneEventSender.Packet? {
        guard var sending = sender, sending.isActive else { return nil }
        let packet = sending.next(at: timestamp)
        sender = sending
        return packet
    }

    /// Takes an event of the peer, in a packet with an extended sequence number.
    @_noAllocation @_noLocks
    mutating func receive(
        _ payload: TelephoneEventPayload, number: Int64, timestamp: UInt32, ssrc: UInt32, clockRate: Int,
        at arrival: Instant
    ) {
        receivedClockRate = clockRate
        let outcome = receiver.receive(payload, number: number, timestamp: timestamp, ssrc: ssrc, at: arrival)
        if let lost = outcome.lost { note(lost) }
        if let finished = outcome.finished { note(finished) }
    }

    /// Ends a key of the peer whose end does not come.
    @_noAllocation @_noLocks
    mutating func expire(at now: Instant) {
        if let finished = receiver.expire(at: now) { note(finished) }
    }

    /// The next finished key of the peer that has not been reported.
    @_noAllocation @_noLocks
    mutating func takeHeard() -> Digit? {
        guard heardCount > 0 else { return nil }
        let first = heard[0]
        heardCount -= 1
        var index = 0
        while index < heardCount {
            heard[index] = heard[index + 1]
            index += 1
        }
        return first
    }

    @_noAllocation @_noLocks
    private mutating func note(_ finished: TelephoneEventReceiver.Finished) {
        guard heardCount < 4 else { return }
        let milliseconds = finished.durationTicks * 1_000 / max(1, receivedClockRate)
        heard[heardCount] = Digit(
            code: finished.event.code, milliseconds: Int32(truncatingIfNeeded: min(milliseconds, 1 << 30)))
        heardCount += 1
    }
}
