public import Core

/// Feedback on the path of our packets since the last query.
public struct PathObservation: Equatable, Sendable, BitwiseCopyable {
    /// Packets that arrived.
    public var received: Int
    /// Packets that did not.
    public var lost: Int
    /// When the oldest of them was sent.
    public var oldestSentAt: Instant
    /// By how much the path has delayed all packets of the last half second beyond the fastest of the last 16 s, in
    /// nanoseconds: the length of a standing queue. `nil` if unknown.
    public var queueNanoseconds: Int64?

    /// Makes an observation.
    @_noAllocation @_noLocks
    public init(received: Int, lost: Int, oldestSentAt: Instant, queueNanoseconds: Int64? = nil) {
        self.received = received
        self.lost = lost
        self.oldestSentAt = oldestSentAt
        self.queueNanoseconds = queueNanoseconds
    }

    /// Number of packets that it covers.
    var packets: Int { @_noAllocation @_noLocks get { received + lost } }
}

/// Remembers when packets of the transport were sent, and reads from the peer's feedback what became of them
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01).
///
/// The last 128 packets are kept: 2.56 s of packets of 20 ms. Feedback on older ones is ignored. Allocates nothing.
public struct TransportLog: Sendable {
    private var sentAt = InlineArray<128, Int64>(repeating: .min)
    private var states = InlineArray<128, State>(repeating: .waiting)
    /// One past the newest number.
    private var end: Int64 = 0
    /// The first number that no feedback has covered.
    private var next: Int64 = 0
    private var lastFeedback: UInt8 = 255
    private var unwrapper = SequenceUnwrapper()
    private var queue = StandingQueue()
    /// The least time from sending a packet to the feedback on it; `nil` before the first feedback. Feedback waits
    /// until it is sent, so the round trip may be shorter.
    public private(set) var roundTripBoundNanoseconds: Int64?

    /// Packets that were retransmitted since the last feedback before being reported as lost.
    private var resent = 0

    private enum State: UInt8, BitwiseCopyable { case waiting, lost, received, resent }

    private static var slots: Int64 { @_noAllocation @_noLocks get { 128 } }
    /// Feedback counts time in quarters of a millisecond.
    private static var unit: Int64 { @_noAllocation @_noLocks get { 250_000 } }

    /// Makes a log of nothing.
    @_noAllocation @_noLocks
    public init() {}

    /// A packet with this number is sent.
    @_noAllocation @_noLocks
    public mutating func sent(_ number: UInt16, at now: Instant) {
        let sequence = unwrapper.unwrap(number)
        if end == 0 { next = sequence }
        sentAt[Self.slot(sequence)] = now.nanoseconds
        states[Self.slot(sequence)] = .waiting
        end = sequence + 1
        next = max(next, end - Self.slots)
    }

    /// A packet with this number is retransmitted because the peer misses it: it counts as lost, even if feedback
    /// reports the arrival of the second one. Otherwise loss would seem to fall as soon as retransmissions arrive in
    /// time.
    @_noAllocation @_noLocks
    public mutating func sentAgain(_ number: UInt16) {
        let sequence = unwrapper.peek(number)
        guard end > 0, sequence >= end - Self.slots, sequence < end else { return }
        let slot = Self.slot(sequence)
        if states[slot] == .waiting { resent += 1 }
        if states[slot] != .received { states[slot] = .resent }
    }

    /// Takes all feedback on the transport's packets in a compound packet.
    ///
    /// - Returns: What it reports for the first time; `nil` if that is nothing.
    @_noAllocation @_noLocks
    public mutating func received(_ datagram: RawSpan, at now: Instant) throws(RTCPParseError) -> PathObservation? {
        var reader = try RTCPReader(validating: datagram)
        var all: PathObservation?
        while let packet = reader.next(in: datagram) {
            guard case .other(let type, let body) = packet,
                case .transportWide(let feedback)? = RTCPFeedback(type: type, body: body, in: datagram),
                var told = take(feedback, in: datagram, at: now)
            else { continue }
            if let before = all {
                told.received += before.received
                told.lost += before.lost
                told.oldestSentAt = before.oldestSentAt
            }
            all = told
        }
        return all
    }

    /// Takes the peer's feedback.
    ///
    /// - Parameter datagram: The same bytes that the feedback was read from.
    /// - Returns: What it reports for the first time; `nil` if that is nothing.
    @_noAllocation @_noLocks
    public mutating func take(_ feedback: TransportFeedback, in datagram: RawSpan, at now: Instant) -> PathObservation?
    {
        guard end > 0 else { return nil }
        var told = PathObservation(received: 0, lost: 0, oldestSentAt: now)
        let base = unwrapper.peek(feedback.baseSequenceNumber)
        // Some peers begin with a packet that has arrived: packets between two feedbacks are lost. If a feedback itself
        // is lost, the packets that it covered are unknown.
        let follows = feedback.feedbackCount == lastFeedback &+ 1
        lastFeedback = feedback.feedbackCount
        if follows, base > next, base <= end { while next < base { note(next, arrival: nil, into: &told) } }
        var least = Int64.max
        var newestSentAt = Int64.min
        var sequence = base
        var cursor = TransportFeedback.Cursor(feedback)
        while let status = cursor.next(in: datagram) {
            if sequence >= end - Self.slots, sequence < end {
                let sent = sentAt[Self.slot(sequence)]
                let arrival = status.arrivalQuarterMilliseconds
                if note(sequence, arrival: arrival, into: &told), let arrival {
                    least = min(least, arrival &* Self.unit &- sent)
                    newestSentAt = max(newestSentAt, sent)
                }
            }
            sequence += 1
        }
        told.lost += resent
        resent = 0
        guard told.packets > 0 else { return nil }
        if newestSentAt != .min {
            queue.note(transit: least, at: now)
            let bound = now.nanoseconds - newestSentAt
            roundTripBoundNanoseconds = min(roundTripBoundNanoseconds ?? bound, bound)
        }
        told.queueNanoseconds = queue.nanoseconds
        return told
    }

    /// Notes one packet's fate, unless it is known.
    ///
    /// - Returns: Whether it was not.
    @_noAllocation @_noLocks @discardableResult
    private mutating func note(_ sequence: Int64, arrival: Int64?, into told: inout PathObservation) -> Bool {
        next = max(next, sequence + 1)
        let slot = Self.slot(sequence)
        let before = states[slot]
        var hasArrived = false
        if case .some = arrival { hasArrived = true }
        let after: State = hasArrived ? .received : .lost
        guard before == .waiting || (before == .lost && hasArrived) else { return false }
        states[slot] = after
        if hasArrived { told.received += 1 } else { told.lost += 1 }
        // A late one was counted as lost; such late feedback is rare, and the count stays above zero.
        if before == .lost, told.lost > 0 { told.lost -= 1 }
        if sentAt[slot] < told.oldestSentAt.nanoseconds { told.oldestSentAt = Instant(nanoseconds: sentAt[slot]) }
        return true
    }

    @_noAllocation @_noLocks
    private static func slot(_ sequence: Int64) -> Int { Int(sequence & (slots - 1)) }
}

/// Length of a standing queue on a path: the least delay of the last half second, minus the least of the last 16 s.
///
/// Delay that varies from packet to packet does not count, because some packets are still fast.
struct StandingQueue: Sendable {
    /// The least transit of each of the last 16 seconds, and of each of the last five feedbacks.
    private var seconds = InlineArray<16, Int64>(repeating: .max)
    private var recent = InlineArray<5, Int64>(repeating: .max)
    private var second = 0
    private var secondEnd: Int64 = .min
    private var count = 0

    @_noAllocation @_noLocks
    init() {}

    /// Records the least transit, in nanoseconds on any clock, of the packets that one feedback covers.
    @_noAllocation @_noLocks
    mutating func note(transit: Int64, at now: Instant) {
        if now.nanoseconds >= secondEnd {
            secondEnd = now.nanoseconds &+ 1_000_000_000
            second = (second &+ 1) & 15
            seconds[second] = .max
        }
        seconds[second] = min(seconds[second], transit)
        recent[count % 5] = transit
        count &+= 1
    }

    /// In nanoseconds; `nil` before half a second is known.
    var nanoseconds: Int64? {
        @_noAllocation @_noLocks get {
            guard count >= 5 else { return nil }
            var (base, standing) = (Int64.max, Int64.max)
            for index in 0..<16 { base = min(base, seconds[index]) }
            for index in 0..<5 { standing = min(standing, recent[index]) }
            return max(standing &- base, 0)
        }
    }
}
