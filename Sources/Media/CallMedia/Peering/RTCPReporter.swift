internal import Core
internal import RTP

/// A call's RTCP: writes our reports when they are due, and keeps the peer's until they are taken.
struct RTCPReporter: ~Copyable {
    private let inPlace = InPlace()
    private var session: RTCPSession
    /// Spreads reports in time.
    private var random: SplitMix64
    private let startedAt: Instant
    /// The newest round trip that is known exactly: of ICE's checks or of the peer's reports.
    private(set) var roundTripNanoseconds: Int64?
    private var report: ReportBlock?
    private var missing = 0

    init(_ plan: PeerPlan, at now: Instant) {
        session = RTCPSession(
            configuration: .init(
                ssrc: plan.localSSRC, canonicalName: plan.canonicalName, clockRate: max(1, plan.clockRate)), at: now)
        random = SplitMix64(seed: plan.randomSeed)
        startedAt = now
    }

    /// How long the first report waits for media of the peer to report on.
    private static var firstReportPatienceNanoseconds: Int64 {
        @_noAllocation @_noLocks get { 5_000_000_000 }
    }

    /// The counts of the stream received; nil before its first packet.
    var reception: ReceptionStatistics? {
        @_noAllocation @_noLocks get { session.reception }
    }

    /// Whether a report is due.
    ///
    /// The first is sent as soon as the peer's media has come, because it shows the peer that its media arrives
    /// (RFC 3550 §6.2 lets a unicast session do so).
    @_noAllocation @_noLocks
    func isDue(at now: Instant, hasReceivedMedia: Bool) -> Bool {
        guard session.nextDeadline.nanoseconds <= now.nanoseconds else { return false }
        return hasReceivedMedia || startedAt.nanoseconds(to: now) >= Self.firstReportPatienceNanoseconds
    }

    /// Writes the report that is due.
    ///
    /// - Returns: Its length; 0 if there is nothing to send.
    @_noAllocation @_noLocks
    mutating func write(at now: Instant, wallNanoseconds: Int64, into packet: inout MutableRawSpan) -> Int {
        session.writeReport(
            at: now, ntp: NTPTimestamp(unixNanoseconds: wallNanoseconds), random: random.next(), into: &packet)
    }

    /// Writes a last report with a goodbye (RFC 3550 §6.6).
    ///
    /// - Returns: Its length; 0 if there is no peer to send a BYE to.
    @_noAllocation @_noLocks
    mutating func writeGoodbye(at now: Instant, wallNanoseconds: Int64, into packet: inout MutableRawSpan) -> Int {
        session.writeGoodbye(
            reason: ShortText(), at: now, ntp: NTPTimestamp(unixNanoseconds: wallNanoseconds), into: &packet)
    }

    /// Writes what goes in front of feedback: nothing where that may go alone (RFC 5506).
    ///
    /// - Returns: Its length.
    @_noAllocation @_noLocks
    mutating func writeFront(isReducedSize: Bool, into packet: inout MutableRawSpan) -> Int {
        isReducedSize ? 0 : session.writeEmptyReport(into: &packet)
    }

    /// Takes a compound packet of the peer, or feedback alone.
    @_noAllocation @_noLocks
    mutating func receive(
        _ datagram: borrowing MutableRawSpan, at arrival: Instant
    ) throws(RTCPParseError) -> RTCPSession.Feedback {
        let feedback = try readReports(datagram, &session, at: arrival)
        if let reportOnUs = feedback.reportOnUs { report = reportOnUs }
        if let measured = feedback.roundTripNanoseconds { roundTripNanoseconds = measured }
        missing += feedback.newlyMissingPackets
        return feedback
    }

    /// Records that a media packet is sent.
    @_noAllocation @_noLocks
    mutating func sentMedia(payloadBytes: Int, timestamp: UInt32, at now: Instant) {
        session.sentMedia(payloadOctets: payloadBytes, timestamp: timestamp, at: now)
    }

    /// A media packet of the peer has been accepted.
    ///
    /// - Returns: Its extended sequence number; nil if it carries our own SSRC.
    @_noAllocation @_noLocks
    mutating func receivedMedia(
        _ header: RTPHeader, measuresJitter: Bool, clockRate: Int, at arrival: Instant
    ) -> Int64? {
        switch session.receivedMedia(header, at: arrival, measuresJitter: measuresJitter, clockRate: clockRate) {
        case .known(let packet), .newSource(let packet): packet.number
        case .ownSource: nil
        }
    }

    /// Sets the clock rate, in Hz, of our timestamps from the next packet on.
    @_noAllocation @_noLocks
    mutating func setSentClockRate(_ clockRate: Int) { session.sendsNow(clockRate: clockRate) }

    /// Sets the round-trip time that ICE's checks have measured.
    @_noAllocation @_noLocks
    mutating func setRoundTrip(nanoseconds: Int64) { roundTripNanoseconds = nanoseconds }

    /// The next sent packet that the peer has asked for.
    @_noAllocation @_noLocks
    mutating func takeRequested() -> UInt16? { session.takeRequested() }

    /// The peer's newest report on our stream, once.
    @_noAllocation @_noLocks
    mutating func takeReport() -> ReportBlock? {
        let taken = report
        report = nil
        return taken
    }

    /// How many of our packets the peer has asked for, each counted once, since this was last asked.
    @_noAllocation @_noLocks
    mutating func takeMissing() -> Int {
        let taken = missing
        missing = 0
        return taken
    }
}

// Looks at a datagram without changing it; see the end of PeerSession.swift.
@_semantics("no_performance_analysis") @inline(__always)
private func readReports(
    _ datagram: borrowing MutableRawSpan, _ session: inout RTCPSession, at arrival: Instant
) throws(RTCPParseError) -> RTCPSession.Feedback {
    try session.received(datagram.bytes, at: arrival)
}
