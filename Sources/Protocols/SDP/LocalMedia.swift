/// What we bring to a call's offer or answer.
public struct LocalMedia: Sendable {
    /// Address that the peer is to send to: IPv4 or IPv6, in text.
    public var address: String
    /// Port for RTP and RTCP both.
    public var port: UInt16
    /// Our stream.
    public var ssrc: UInt32
    /// Our canonical name.
    public var canonicalName: String
    /// Number that identifies the session in the `o=` line.
    public var sessionID: UInt64
    /// What we wish to receive.
    public var opus: OpusParameters
    /// Payload type to offer for Opus: 96…127.
    public var payloadType: Int
    /// Length of packets that we wish to receive, and send unless the peer wishes otherwise: 10, 20, 40 or 60 ms.
    public var packetTimeMilliseconds: Int
    /// What we allow.
    public var direction: MediaDirection
    /// Ways of protecting media that we allow, the preferred one first. An offer is made with the first.
    public var keying: [LocalKeying]

    /// Brings audio both ways, in packets of 20 ms.
    public init(
        address: String, port: UInt16, ssrc: UInt32, canonicalName: String, sessionID: UInt64, keying: [LocalKeying]
    ) {
        self.address = address
        self.port = port
        self.ssrc = ssrc
        self.canonicalName = canonicalName
        self.sessionID = sessionID
        self.keying = keying
        opus = OpusParameters()
        opus.usesInbandFEC = true
        opus.minimumPacketTimeMilliseconds = 10
        payloadType = 111
        packetTimeMilliseconds = 20
        direction = .sendrecv
    }
}

/// A way of protecting media, with what we bring to it.
public enum LocalKeying: Equatable, Sendable {
    /// Keys written in the descriptions (RFC 4568), so only where signaling is itself protected. One fresh key for each
    /// suite, the preferred suite first; never a key that another call has.
    case sdes([SDESKey])
    /// None. Anyone on the way can listen.
    case plain
}
