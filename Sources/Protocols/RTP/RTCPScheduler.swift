public import Core

/// When a participant of a call between two sends its reports (RFC 3550 §6.2, §6.3, appendix A.7).
///
/// Reads no clock and no random source: each call that draws takes 64 random bits.
public struct RTCPScheduler: Sendable {
    /// The inputs of the interval calculation.
    public struct Configuration: Equatable, Sendable {
        /// Bytes per second that RTCP of both sides together may take: 5 % of the session's bandwidth (§6.2).
        public var octetsPerSecond: Double
        /// The least time between two reports, before it is spread by chance. RFC 3550 recommends 5 s.
        public var minimumIntervalNanoseconds: Int64

        /// Makes a configuration.
        public init(
            sessionBitsPerSecond: Int = 80_000, minimumIntervalNanoseconds: Int64 = 5_000_000_000
        ) {
            octetsPerSecond = max(1, Double(sessionBitsPerSecond)) / 8 * 0.05
            self.minimumIntervalNanoseconds = max(10_000_000, minimumIntervalNanoseconds)
        }
    }

    /// When the next report may be due; ask ``timerFired(at:weSent:random:)`` then.
    public private(set) var nextDeadline: Instant

    private let configuration: Configuration
    /// When the last report was sent; the time of joining before that.
    private var previous: Instant
    /// When the peer's last RTP or RTCP arrived; `nil` if it is not a member.
    private var peerHeardAt: Instant?
    private var peerSentAt: Instant?
    /// Members that ``nextDeadline`` was reckoned with.
    private var reckonedMembers = 1
    private var isInitial = true
    /// Average size of compound packets, UDP and IPv4 headers included, as §6.3.3 keeps it.
    private var averageSize: Double = 128

    /// UDP and IPv4 headers, which count (§6.2).
    private static var lowerLayerOctets: Int { @_noAllocation @_noLocks get { 28 } }

    /// Joins at `now`. The first report is due at once, as §6.2 allows where the destination is one address.
    @_noAllocation @_noLocks
    public init(configuration: Configuration, at now: Instant) {
        self.configuration = configuration
        previous = now
        nextDeadline = now
    }

    /// Whether the peer counts as a member: it was heard, has not left, and was not silent for five intervals (§6.3.5).
    @_noAllocation @_noLocks
    public func isPeerMember(at now: Instant) -> Bool {
        guard let heard = peerHeardAt else { return false }
        return heard.nanoseconds(to: now) < 5
            * unspreadInterval(weSent: false, members: 2, peerSent: false)
    }

    /// The peer's RTP packet came in.
    @_noAllocation @_noLocks
    public mutating func heardMedia(at now: Instant) {
        peerHeardAt = now
        peerSentAt = now
    }

    /// The peer's compound packet came in. `octets` is its UDP payload.
    @_noAllocation @_noLocks
    public mutating func heardReport(octets: Int, at now: Instant) {
        peerHeardAt = now
        average(octets)
    }

    /// The peer sent BYE: the remaining time shrinks with the membership (reverse reconsideration, §6.3.4).
    @_noAllocation @_noLocks
    public mutating func heardGoodbye(octets: Int, at now: Instant) {
        average(octets)
        guard case .some = peerHeardAt else { return }
        peerHeardAt = nil
        peerSentAt = nil
        guard reckonedMembers > 1 else { return }
        nextDeadline = now.advanced(byNanoseconds: max(0, now.nanoseconds(to: nextDeadline)) / 2)
        previous = now.advanced(byNanoseconds: -max(0, previous.nanoseconds(to: now)) / 2)
        reckonedMembers = 1
    }

    /// Whether the report is to be sent now: a new interval is drawn, and if it is not over the timer is postponed
    /// (timer reconsideration, §6.3.6). After `true`, send and call ``sent(octets:at:weSent:random:)``.
    ///
    /// - Parameter weSent: We have sent RTP since the report before the last one.
    @_noAllocation @_noLocks
    public mutating func timerFired(at now: Instant, weSent: Bool, random: UInt64) -> Bool {
        guard now >= nextDeadline else { return false }
        guard !isInitial else { return true }
        let due = previous.advanced(byNanoseconds: interval(at: now, weSent: weSent, random: random))
        if due <= now { return true }
        nextDeadline = due
        return false
    }

    /// A report of `octets` bytes of UDP payload has been sent: draws the time of the next.
    @_noAllocation @_noLocks
    public mutating func sent(octets: Int, at now: Instant, weSent: Bool, random: UInt64) {
        average(octets)
        previous = now
        isInitial = false
        nextDeadline = now.advanced(byNanoseconds: interval(at: now, weSent: weSent, random: random))
    }

    @_noAllocation @_noLocks
    private mutating func average(_ octets: Int) {
        averageSize += (Double(octets + Self.lowerLayerOctets) - averageSize) / 16
    }

    /// The randomised interval of A.7: 0.5 to 1.5 times the reckoned one, divided by e − 3/2 because
    /// reconsideration makes intervals longer than intended.
    @_noAllocation @_noLocks
    private mutating func interval(at now: Instant, weSent: Bool, random: UInt64) -> Int64 {
        let members = isPeerMember(at: now) ? 2 : 1
        reckonedMembers = members
        let base = unspreadInterval(weSent: weSent, members: members, peerSent: peerIsSender(at: now))
        let fraction = Double(random >> 11) / 9_007_199_254_740_992  // 53 bits: 0 ≤ fraction < 1
        return Int64(Double(base) * (fraction + 0.5) / 1.218_281_828_459_045)
    }

    /// The peer counts as a sender if RTP came within the last two intervals (§6.3.5).
    @_noAllocation @_noLocks
    private func peerIsSender(at now: Instant) -> Bool {
        guard let sent = peerSentAt else { return false }
        return sent.nanoseconds(to: now) < 2
            * unspreadInterval(weSent: false, members: 2, peerSent: true)
    }

    /// The interval before it is spread. Senders share a quarter of the bandwidth unless they are more than a quarter
    /// of the members; with two members and any sender they always are, so the whole is shared by all (§6.3.1).
    @_noAllocation @_noLocks
    private func unspreadInterval(weSent: Bool, members: Int, peerSent: Bool) -> Int64 {
        let senders = (weSent ? 1 : 0) + (peerSent ? 1 : 0)
        let share = senders == 0 ? 0.75 : 1.0
        let seconds = averageSize * Double(members) / (configuration.octetsPerSecond * share)
        return max(configuration.minimumIntervalNanoseconds, Int64(min(seconds, 3600) * 1e9))
    }
}
