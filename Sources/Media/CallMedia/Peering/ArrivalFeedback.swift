internal import RTP
internal import Core

/// Reports to the peer when its packets arrived, ten times a second, if it counts them over the transport.
struct ArrivalFeedback: ~Copyable {
    /// The header extension that counts the peer's packets; nil: they are not counted.
    private var identifier: UInt8?
    private var writer: TransportFeedbackWriter
    private var writtenAt: Instant

    /// Between two packets of feedback, as browsers have it for sound.
    private static var intervalNanoseconds: Int64 {
        @_noAllocation @_noLocks get { 100_000_000 }
    }

    init(_ plan: PeerPlan, at now: Instant) {
        identifier = plan.headerExtensions.remoteTransportSequenceIdentifier
        writer = TransportFeedbackWriter(sender: plan.localSSRC)
        writtenAt = now
    }

    /// The peer counts its packets in this header extension from now on, or not at all.
    @_noAllocation @_noLocks
    mutating func expect(_ identifier: UInt8?) { self.identifier = identifier }

    /// A packet has been accepted.
    @_noAllocation @_noLocks
    mutating func received(_ header: RTPHeader, in datagram: borrowing MutableRawSpan, at arrival: Instant) {
        guard let identifier, let number = transportSequenceNumber(datagram, header, identifier) else { return }
        writer.received(number, at: arrival)
    }

    /// Whether there is something to report.
    @_noAllocation @_noLocks
    func isDue(at now: Instant) -> Bool {
        writer.pending > 0 && writtenAt.nanoseconds(to: now) >= Self.intervalNanoseconds
    }

    /// Writes when the peer's packets have come; 256 of them at most, and the rest the next time.
    ///
    /// - Parameter media: The stream that they are of.
    /// - Returns: The length; 0 if there is nothing to report.
    @_noAllocation @_noLocks
    mutating func write(on media: UInt32, at now: Instant, into packet: inout MutableRawSpan) -> Int {
        writtenAt = now
        return writer.write(media: media, into: &packet)
    }
}

// Looks at a datagram without changing it; see the end of PeerSession.swift.
@_semantics("no_performance_analysis") @inline(__always)
private func transportSequenceNumber(
    _ datagram: borrowing MutableRawSpan, _ header: RTPHeader, _ identifier: UInt8
) -> UInt16? {
    header.transportSequenceNumber(identifier, in: datagram.bytes)
}
