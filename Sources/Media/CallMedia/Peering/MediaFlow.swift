internal import Core

/// Finds out when media flows both ways: the peer's packets reach us, and the peer reports that it receives.
///
/// That is a fact to report, and nothing waits for it: a call is established when it can carry media (``MediaReadiness``).
///
/// The peer says so with its first report (RTCP) about our stream, which a Handset sends at once (RFC 3550 §6.2 allows
/// it in a unicast session). A peer that sends media but no report for three seconds is taken to have none to send.
/// Where media is agreed on for one way only, that way is all that is waited for.
struct MediaFlow: BitwiseCopyable {
    /// How long a report of the peer is waited for.
    private static var patienceNanoseconds: Int64 {
        @_noAllocation @_noLocks get { 3_000_000_000 }
    }

    /// Media has been seen to flow each way that it is to.
    private(set) var isFlowing = false
    private var isConfirmed = false
    private var hasSent = false
    private(set) var hasReceived = false
    /// An authenticated packet of the peer, media or RTCP, has come in: the peer is ready, and knows our description.
    private(set) var hasHeardPeer = false
    private var firstReceived = Instant(nanoseconds: 0)
    private var firstSent = Instant(nanoseconds: 0)
    private var (sends, receives) = (true, true)

    /// What an observation has changed.
    enum Change: BitwiseCopyable {
        case nothing
        /// The first packet in this direction.
        case begun
        /// With this, media flows both ways.
        case flowing
    }

    /// One of our media packets was sent.
    @_noAllocation @_noLocks
    mutating func sent(at now: Instant) -> Change {
        let isFirst = !hasSent
        if isFirst { firstSent = now }
        hasSent = true
        giveUpWaiting(at: now)
        return change(isFirst)
    }

    /// An authenticated media packet of the peer has come in.
    @_noAllocation @_noLocks
    mutating func received(at now: Instant) -> Change {
        let isFirst = !hasReceived
        if isFirst { firstReceived = now }
        hasReceived = true
        hasHeardPeer = true
        return change(isFirst)
    }

    /// An authenticated RTCP packet of the peer has come in.
    @_noAllocation @_noLocks
    mutating func receivedControl() { hasHeardPeer = true }

    /// The peer has reported on our stream: it receives it.
    @_noAllocation @_noLocks
    mutating func confirmed() -> Change {
        isConfirmed = true
        return change(false)
    }

    /// Which ways media is agreed on from now on.
    @_noAllocation @_noLocks
    mutating func setDirection(sends: Bool, receives: Bool) {
        self.sends = sends
        self.receives = receives
    }

    /// Forgets what was seen: the remote party has changed.
    @_noAllocation @_noLocks
    mutating func begin() {
        var flow = MediaFlow()
        flow.setDirection(sends: sends, receives: receives)
        self = flow
    }

    @_noAllocation @_noLocks
    private mutating func giveUpWaiting(at now: Instant) {
        guard !isConfirmed, hasReceived || !receives else { return }
        let since = receives ? firstReceived : firstSent
        if since.nanoseconds(to: now) >= Self.patienceNanoseconds { isConfirmed = true }
    }

    private var flowsNow: Bool {
        @_noAllocation @_noLocks get {
            let isSent = !sends || isConfirmed && hasSent
            let isReceived = !receives || hasReceived
            return isSent && isReceived && (sends || receives)
        }
    }

    @_noAllocation @_noLocks
    private mutating func change(_ isFirst: Bool) -> Change {
        if !isFlowing, flowsNow {
            isFlowing = true
            return .flowing
        }
        return isFirst ? .begun : .nothing
    }
}
