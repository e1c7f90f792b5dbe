internal import RTP
internal import Core

/// Takes the peer's feedback on our packets, from the first one on, for bitrate, protection and redundancy.
///
/// A peer that reports each packet's arrival does so ten times a second. With other peers, requests for missing packets
/// show losses at once, and reports show the remaining ones.
struct LossFeedback {
    /// Bitrate, protection and redundancy.
    private(set) var adaptation: LossAdaptation
    /// The peer reports each packet, so its other reports and requests add nothing.
    private var hasObservations = false
    /// Feedback since the newest report, excluding it.
    private var told = (received: 0, lost: 0)
    private var packetsSentWhenTold = 0
    private var toldAt = Instant(nanoseconds: 0)
    private var highestReported: UInt32?
    /// The least round trip lately.
    private var leastRoundTrip: Int64?
    /// Packets repeat earlier frames.
    private var sendsTwice = false

    init(_ configuration: LossAdaptation.Configuration) { adaptation = LossAdaptation(configuration) }

    /// Sends otherwise from now on.
    @_noAllocation @_noLocks
    mutating func change(to configuration: LossAdaptation.Configuration) { adaptation.change(to: configuration) }

    /// Packets begin or stop to repeat earlier frames.
    @_noAllocation @_noLocks
    mutating func noteRedundancy(_ sendsTwice: Bool) { self.sendsTwice = sendsTwice }

    /// The peer has reported which of our packets arrived.
    ///
    /// - Returns: Whether bitrate, expected loss or redundancy are others now.
    @_noAllocation @_noLocks
    mutating func observed(_ seen: PathObservation, at now: Instant) -> Bool {
        hasObservations = true
        return adaptation.observe(seen, sendsTwice: sendsTwice, at: now)
    }

    /// The peer has asked for our packets again, for `missing` of them for the first time.
    ///
    /// - Returns: Whether bitrate, expected loss or redundancy are others now.
    @_noAllocation @_noLocks
    mutating func asked(missing: Int, packetsSent: Int, at now: Instant) -> Bool {
        guard !hasObservations, missing > 0 else { return false }
        let received = max(packetsSent - packetsSentWhenTold - missing, 0)
        packetsSentWhenTold = packetsSent
        told.received += received
        told.lost += missing
        let since = toldAt
        toldAt = now
        return adaptation.observe(
            PathObservation(received: received, lost: missing, oldestSentAt: since), sendsTwice: sendsTwice, at: now)
    }

    /// A report on our stream came.
    ///
    /// - Returns: Whether bitrate, expected loss or redundancy are others now.
    @_noAllocation @_noLocks
    mutating func reported(
        _ report: ReportBlock, roundTripNanoseconds: Int64?, packetsSent: Int, at now: Instant
    ) -> Bool {
        let expected = expectedPackets(report.extendedHighestSequence, packetsSent)
        let queue = queueNanoseconds(roundTripNanoseconds)
        let before = told
        told = (0, 0)
        guard !hasObservations else { return false }
        let lost = (expected * Int(report.fractionLost) + 128) / 256
        let since = toldAt
        toldAt = now
        packetsSentWhenTold = packetsSent
        return adaptation.observe(
            PathObservation(
                received: max(expected - lost - before.received, 0), lost: max(lost - before.lost, 0),
                oldestSentAt: since, queueNanoseconds: queue), sendsTwice: sendsTwice, at: now)
    }

    /// Packets in this report that were not in the one before.
    @_noAllocation @_noLocks
    private mutating func expectedPackets(_ highest: UInt32, _ packetsSent: Int) -> Int {
        let before = highestReported
        highestReported = highest
        guard let before else { return packetsSent }
        return min(max(Int(Int32(bitPattern: highest &- before)), 0), packetsSent)
    }

    /// By how much the round trip exceeds the recent minimum. The minimum may rise by 2 ms with each report.
    @_noAllocation @_noLocks
    private mutating func queueNanoseconds(_ roundTrip: Int64?) -> Int64? {
        guard let roundTrip else { return nil }
        let least = min(roundTrip, (leastRoundTrip ?? roundTrip) + 2_000_000)
        leastRoundTrip = least
        return roundTrip - least
    }
}
