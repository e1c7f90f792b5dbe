public import RTP
public import Core

/// A media packet of the peer, and what is known of it since it was accepted.
public struct ReceivedPacket: Equatable, Sendable {
    /// Its header; `header.payload` says where in the datagram, now plain, the payload lies.
    public let header: RTPHeader
    /// Its sequence number, extended so that it never wraps: see ``ReceptionStatistics/Arrival/number``.
    public let number: Int64
    /// The number of the format that its payload type belongs to: what its sound or noise is decoded with.
    public let format: UInt8
    /// When the kernel took it in.
    public let arrival: Instant

    @_noAllocation @_noLocks
    init(_ header: RTPHeader, number: Int64, format: UInt8, arrival: Instant) {
        self.header = header
        self.number = number
        self.format = format
        self.arrival = arrival
    }
}
