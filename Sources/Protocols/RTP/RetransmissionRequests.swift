public import Core

/// Decides which lost packets to request again (RFC 4585 §6.2.1), and measures how long a peer takes to send them.
///
/// A packet is requested only if it can arrive before it is played, and once more if the answer seems to be lost too.
/// At most one packet is requested for every four that arrive, because on a path that loses more, requests make it
/// worse.
public struct RetransmissionRequests: Sendable {
    private struct Entry: Sendable, BitwiseCopyable {
        var number: UInt16 = 0
        /// 0 if nothing was asked for.
        var times: UInt8 = 0
        var askedAt: Int64 = 0

        @_noAllocation @_noLocks
        init() {}
    }

    private var entries = InlineArray<64, Entry>(repeating: Entry())
    /// From request to packet: mean and mean deviation, in nanoseconds, as RFC 6298 §2 smooths them.
    private var smoothed: Int64 = 0
    private var deviation: Int64 = 0
    private var hasMeasured = false
    /// Quarters of packets that may be asked for.
    private var credit = 64
    /// Packets asked for since the last one that came.
    private var unanswered = 0
    private var lastAskedAt = Instant(nanoseconds: 0)

    /// Packets that may be asked for at once: a burst of 320 ms.
    private static var mostCredit: Int { @_noAllocation @_noLocks get { 64 } }
    private static var mostTimes: UInt8 { @_noAllocation @_noLocks get { 2 } }
    /// A peer that runs its calls frame by frame answers with the next one.
    private static var usualAnswer: Int64 { @_noAllocation @_noLocks get { 20_000_000 } }
    private static var longestAnswer: Int64 { @_noAllocation @_noLocks get { 100_000_000 } }
    /// Older requests are forgotten, because their numbers are reused.
    private static var memory: Int64 { @_noAllocation @_noLocks get { 3_000_000_000 } }
    /// Unanswered requests after which a packet is no longer waited for.
    private static var patience: Int { @_noAllocation @_noLocks get { 8 } }
    /// After this pause without a request, the peer is asked again.
    private static var pause: Int64 { @_noAllocation @_noLocks get { 10_000_000_000 } }

    /// Nothing asked for yet.
    @_noAllocation @_noLocks
    public init() {}

    /// How long after a request its packet comes, in nanoseconds; `nil` while no round trip is known.
    @_noAllocation @_noLocks
    public func answerNanoseconds(roundTrip: Int64?) -> Int64? {
        guard let roundTrip else { return nil }
        guard hasMeasured else { return roundTrip + Self.usualAnswer }
        return min(max(smoothed + 2 * deviation, roundTrip), roundTrip + Self.longestAnswer)
    }

    /// Whether the peer sends what it is asked for, as far as is known.
    @_noAllocation @_noLocks
    public func isAnswered(at now: Instant) -> Bool {
        unanswered < Self.patience || lastAskedAt.nanoseconds(to: now) >= Self.pause
    }

    /// Decides whether to ask for a packet that has not come; then it counts as asked for.
    ///
    /// - Parameters:
    ///   - nanosecondsLeft: Until it must be there.
    ///   - roundTrip: In nanoseconds, if it is known.
    @_noAllocation @_noLocks
    public mutating func ask(
        for number: UInt16, nanosecondsLeft: Int64, roundTrip: Int64?, at now: Instant
    ) -> Bool {
        guard let answer = answerNanoseconds(roundTrip: roundTrip), answer <= nanosecondsLeft, credit >= 4 else {
            return false
        }
        let index = Int(number & 63)
        var entry = entries[index]
        if isOpen(entry, number, now) {
            guard entry.times < Self.mostTimes, now.nanoseconds - entry.askedAt >= answer else { return false }
            entry.times += 1
        } else {
            entry.number = number
            entry.times = 1
        }
        entry.askedAt = now.nanoseconds
        entries[index] = entry
        credit -= 4
        if lastAskedAt.nanoseconds(to: now) >= Self.pause { unanswered = 0 }
        unanswered += 1
        lastAskedAt = now
        return true
    }

    /// A packet has come.
    ///
    /// - Returns: Whether it is a retransmission. A packet that arrives before the peer can have received the request
    ///   was only late.
    @_noAllocation @_noLocks
    public mutating func received(_ number: UInt16, roundTrip: Int64?, at now: Instant) -> Bool {
        credit = min(credit + 1, Self.mostCredit)
        let index = Int(number & 63)
        let entry = entries[index]
        guard isOpen(entry, number, now) else { return false }
        entries[index].times = 0
        let elapsed = now.nanoseconds - entry.askedAt
        guard elapsed >= (roundTrip ?? 0) / 2 else { return false }
        unanswered = 0
        // After two requests it is not known which one the packet answers.
        if entry.times == 1 { measure(elapsed) }
        return true
    }

    @_noAllocation @_noLocks
    private func isOpen(_ entry: Entry, _ number: UInt16, _ now: Instant) -> Bool {
        entry.times > 0 && entry.number == number && now.nanoseconds - entry.askedAt < Self.memory
    }

    @_noAllocation @_noLocks
    private mutating func measure(_ elapsed: Int64) {
        guard hasMeasured else {
            hasMeasured = true
            smoothed = elapsed
            deviation = elapsed / 4
            return
        }
        deviation += (abs(elapsed - smoothed) - deviation) / 4
        smoothed += (elapsed - smoothed) / 8
    }
}
