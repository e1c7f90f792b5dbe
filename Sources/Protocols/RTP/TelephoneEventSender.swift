/// Sends keys as telephone events, one after the other (RFC 4733 §2.5.1).
///
/// Called once for each packet time, it returns the packet to send instead of sound. A key's packets all carry the
/// timestamp of its beginning, the first has the marker, durations grow, and the last is sent three times. Keys longer
/// than 65 535 ticks continue in further segments (§2.5.1.3).
public struct TelephoneEventSender: Sendable {
    /// A packet to send in one packet time.
    public struct Packet: Equatable, Sendable {
        /// The payload.
        public var payload: TelephoneEventPayload
        /// The packet's timestamp, in ticks of the event's clock.
        public var timestamp: UInt32
        /// The packet's marker.
        public var marker: Bool

        @_noAllocation @_noLocks
        init(payload: TelephoneEventPayload, timestamp: UInt32, marker: Bool) {
            self.payload = payload
            self.timestamp = timestamp
            self.marker = marker
        }
    }

    /// How keys are sent.
    public struct Configuration: Equatable, Sendable {
        /// Ticks per second: 8 000 or 48 000.
        public var clockRate: Int
        /// Ticks in a packet time.
        public var packetTicks: Int
        /// How long a key is pressed, in milliseconds: 40…10 000.
        public var toneMilliseconds: Int
        /// Time between two keys, in milliseconds: 40…10 000.
        public var gapMilliseconds: Int
        /// Power in decibels below 1 mW, 0…63.
        public var volume: UInt8

        /// Keys of 100 ms, 80 ms apart, in packets of 20 ms.
        @_noAllocation @_noLocks
        public init(clockRate: Int, packetMilliseconds: Int = 20) {
            self.clockRate = max(1, clockRate)
            packetTicks = max(1, clockRate * packetMilliseconds / 1_000)
            toneMilliseconds = 100
            gapMilliseconds = 80
            volume = 10
        }
    }

    private enum Phase: Sendable {
        case idle
        /// Tone: ticks sent so far, of all segments.
        case tone(TelephoneEvent, start: UInt32, sent: Int, total: Int, isFirst: Bool)
        /// The end of a key, which is to be sent `left` times more.
        case ending(TelephoneEventPayload, timestamp: UInt32, left: Int)
        case gap(ticksLeft: Int)
    }

    private var configuration: Configuration
    private var phase = Phase.idle
    private var queue = InlineArray<32, UInt8>(repeating: 0)
    private var queued = 0
    /// Keys that found no room.
    public private(set) var dropped = 0

    /// Makes a sender with nothing to send.
    @_noAllocation @_noLocks
    public init(_ configuration: Configuration) { self.configuration = configuration }

    /// Whether a key is being sent or waits.
    public var isActive: Bool {
        @_noAllocation @_noLocks get {
            if case .idle = phase { return queued > 0 }
            return true
        }
    }

    /// Whether a key, or the pause after it, is being sent.
    public var isPressing: Bool {
        @_noAllocation @_noLocks get {
            if case .idle = phase { return false }
            return true
        }
    }

    /// Sends otherwise from the next key on. Not while ``isPressing``: a key counts in ticks of one length.
    @_noAllocation @_noLocks
    public mutating func change(to configuration: Configuration) {
        guard !isPressing else { return }
        self.configuration = configuration
    }

    /// Appends a key; the queue holds 32.
    ///
    /// - Returns: Whether there was room; else the key is counted in ``dropped``.
    @_noAllocation @_noLocks @discardableResult
    public mutating func press(_ event: TelephoneEvent) -> Bool {
        guard queued < 32 else {
            dropped += 1
            return false
        }
        queue[queued] = event.code
        queued += 1
        return true
    }

    /// Forgets all keys that wait; the one that is being sent ends with its next packet.
    @_noAllocation @_noLocks
    public mutating func cancel() {
        queued = 0
        guard case .tone(let event, let start, let sent, _, let isFirst) = phase else { return }
        phase = .tone(event, start: start, sent: sent, total: sent, isFirst: isFirst)
    }

    /// The packet for the packet time that begins at `timestamp`; `nil` if sound is to be sent.
    @_noAllocation @_noLocks
    public mutating func next(at timestamp: UInt32) -> Packet? {
        switch phase {
        case .idle:
            guard queued > 0 else { return nil }
            return continueTone(
                takeFirst(), start: timestamp, sent: 0, total: ticks(configuration.toneMilliseconds), isFirst: true)
        case .tone(let event, let start, let sent, let total, let isFirst):
            return continueTone(event, start: start, sent: sent, total: total, isFirst: isFirst)
        case .ending(let payload, let start, let left):
            phase = left > 1 ? .ending(payload, timestamp: start, left: left - 1) : gap()
            return Packet(payload: payload, timestamp: start, marker: false)
        case .gap(let ticksLeft):
            let left = ticksLeft - configuration.packetTicks
            if left > 0 { phase = .gap(ticksLeft: left) } else { phase = .idle }
            return nil
        }
    }

    @_noAllocation @_noLocks
    private mutating func continueTone(
        _ event: TelephoneEvent, start: UInt32, sent: Int, total: Int, isFirst: Bool
    ) -> Packet {
        var (start, sent, total) = (start, sent, total)
        // A duration that does not fit into 16 bits continues in a new segment, which begins where this one ended.
        if sent + configuration.packetTicks > 0xFFFF, sent > 0 {
            start = start &+ UInt32(truncatingIfNeeded: sent)
            total -= sent
            sent = 0
        }
        sent = min(0xFFFF, sent + configuration.packetTicks)
        let isEnd = sent >= total
        let payload = TelephoneEventPayload(
            event: event, isEnd: isEnd, volume: configuration.volume, duration: UInt16(truncatingIfNeeded: sent))
        if isEnd {
            phase = .ending(payload, timestamp: start, left: 2)
        } else {
            phase = .tone(event, start: start, sent: sent, total: total, isFirst: false)
        }
        return Packet(payload: payload, timestamp: start, marker: isFirst)
    }

    @_noAllocation @_noLocks
    private func gap() -> Phase {
        // The two repetitions of the end have already taken their time.
        let left = ticks(configuration.gapMilliseconds) - 2 * configuration.packetTicks
        return left > 0 ? .gap(ticksLeft: left) : .idle
    }

    @_noAllocation @_noLocks
    private func ticks(_ milliseconds: Int) -> Int {
        max(40, min(10_000, milliseconds)) * configuration.clockRate / 1_000
    }

    @_noAllocation @_noLocks
    private mutating func takeFirst() -> TelephoneEvent {
        let code = queue[0]
        queued -= 1
        var index = 0
        while index < queued {
            queue[index] = queue[index + 1]
            index += 1
        }
        return TelephoneEvent(code: code)
    }
}
