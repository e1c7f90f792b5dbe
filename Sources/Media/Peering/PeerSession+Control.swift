internal import Datagrams
public import RTP
internal import SecureTransport
public import Timekeeping

// The session's RTCP: reports that come and go.
extension PeerSession {
    /// The newest round trip; nil if none was measured yet. It comes from ICE's checks, the peer's reports, or, before
    /// there are any, from its feedback on arrivals.
    public var roundTripNanoseconds: Int64? {
        @_noAllocation @_noLocks mutating get {
            guard case .none = reporter.roundTripNanoseconds else { return reporter.roundTripNanoseconds }
            return sender.roundTripBoundNanoseconds
        }
    }

    /// What the peer's feedback has told of our packets' arrivals, once.
    @_noAllocation @_noLocks
    public mutating func takeObservation() -> PathObservation? { sender.takeObservation() }

    /// How many of our packets the peer has asked for, each counted once, since this was last asked.
    @_noAllocation @_noLocks
    public mutating func takeMissing() -> Int { reporter.takeMissing() }

    /// The peer's newest report on our stream, once.
    @_noAllocation @_noLocks
    public mutating func takeReport() -> ReportBlock? { reporter.takeReport() }

    /// Whether ``writeControl(at:wallNanoseconds:into:)`` has something to send.
    @_noAllocation @_noLocks
    public func isControlDue(at now: Instant) -> Bool { reporter.isDue(at: now, hasReceivedMedia: hasReceivedMedia) }

    /// Writes the report that is due, protected.
    ///
    /// - Parameter wallNanoseconds: Time of day at `now`, since 1970.
    /// - Returns: The datagram's length; 0 if there is nothing to send.
    @_noAllocation @_noLocks
    public mutating func writeControl(
        at now: Instant, wallNanoseconds: Int64, into packet: inout MutableRawSpan
    ) -> Int {
        let length = reporter.write(at: now, wallNanoseconds: wallNanoseconds, into: &packet)
        return protectControl(&packet, length)
    }

    /// Whether ``writeFeedback(at:into:)`` has something to send: ten times a second if packets that are counted come.
    @_noAllocation @_noLocks
    public func isFeedbackDue(at now: Instant) -> Bool {
        arrivals.pending > 0 && lastFeedbackAt.nanoseconds(to: now) >= Self.feedbackIntervalNanoseconds
    }

    /// Between two packets of feedback, as browsers have it for sound.
    private static var feedbackIntervalNanoseconds: Int64 {
        @_noAllocation @_noLocks get { 100_000_000 }
    }

    /// Writes when the peer's packets have come, protected; 256 of them at most, and the rest the next time.
    ///
    /// - Returns: The datagram's length; 0 if there is nothing to send.
    @_noAllocation @_noLocks
    public mutating func writeFeedback(at now: Instant, into packet: inout MutableRawSpan) -> Int {
        guard let media = remoteSSRC else { return 0 }
        lastFeedbackAt = now
        let start = reporter.writeFront(isReducedSize: sender.formats.usesReducedSizeRTCP, into: &packet)
        var rest = packet._mutatingExtracting(start...)
        let length = arrivals.write(media: media, into: &rest)
        guard length > 0 else { return 0 }
        let protected = protectControl(&packet, start + length)
        if protected > 0 { counters.feedback.sent += 1 }
        return protected
    }

    /// Writes a last report with a goodbye (RFC 3550 §6.6), protected.
    ///
    /// - Returns: The datagram's length; 0 if there is nobody to say goodbye to.
    @_noAllocation @_noLocks
    public mutating func writeGoodbye(
        at now: Instant, wallNanoseconds: Int64, into packet: inout MutableRawSpan
    ) -> Int {
        let length = reporter.writeGoodbye(at: now, wallNanoseconds: wallNanoseconds, into: &packet)
        return protectControl(&packet, length)
    }

    @_noAllocation @_noLocks
    mutating func receiveControl(
        _ datagram: inout MutableRawSpan, from origin: DatagramPath, at arrival: Instant
    ) -> Received {
        do throws(SRTPContext.Failure) {
            guard let length = try protection.unprotect(&datagram, isControl: true, at: arrival) else {
                return .refused(.early)
            }
            datagram = datagram._consumingExtracting(..<length)
            if !protection.isRequired, !route.acceptsControl(from: origin.remote) { return .refused(.unknownSource) }
        } catch {
            return refuse(error)
        }
        do throws(RTCPParseError) {
            let feedback = try reporter.receive(datagram, at: arrival)
            counters.controlPacketsReceived += 1
            noteControl()
            take(feedback)
            if feedback.transportFeedbacks > 0 { try sender.receivedFeedback(datagram, at: arrival) }
            return .control
        } catch {
            counters.dropped.malformed += 1
            return .dropped
        }
    }

    @_noAllocation @_noLocks
    private mutating func take(_ feedback: RTCPSession.Feedback) {
        if let report = feedback.reportOnUs {
            counters.remotePacketsLost = Int(report.cumulativeLost)
            counters.remoteFractionLost = Int(report.fractionLost)
            noteConfirmation()
        }
        if let roundTrip = feedback.roundTripNanoseconds { counters.roundTripNanoseconds = roundTrip }
        counters.feedback.missingPackets += feedback.missingPackets
        counters.feedback.pictureRequests += feedback.pictureRequests
        counters.feedback.bitrateLimits += feedback.bitrateLimits
        counters.feedback.transportWide += feedback.transportFeedbacks
        if feedback.saidGoodbye { noteGoodbye() }
    }

    @_noAllocation @_noLocks
    mutating func protectControl(_ packet: inout MutableRawSpan, _ length: Int) -> Int {
        guard length > 0 else { return 0 }
        let protected = protection.protectControl(&packet, length: length)
        if protected > 0 { counters.controlPacketsSent += 1 }
        return protected
    }
}
