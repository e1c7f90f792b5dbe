// Peering: one call's network half as one core: protected RTP and RTCP in and out, statistics, and whether media flows.

public import Datagrams
public import SecureTransport

/// What offer and answer have settled about a call's media transport.
public struct PeerPlan: Sendable {
    /// Where the peer wants its media.
    public var remoteAddress: SocketAddress
    /// Where the peer wants its RTCP; nil with its media (RFC 5761).
    public var remoteControlAddress: SocketAddress?
    /// The peer's SSRC, if its description told (RFC 5576).
    public var remoteSSRC: UInt32?
    /// Our SSRC.
    public var localSSRC: UInt32
    /// Our canonical name in RTCP (RFC 3550 §6.5.1).
    public var canonicalName: String
    /// The payload type we send.
    public var sendPayloadType: UInt8
    /// The payload type that the peer sends.
    public var receivePayloadType: UInt8
    /// What our packets are protected with; nil sends plain RTP.
    public var sendKey: SRTPKey?
    /// What the peer's packets are protected with; nil takes plain RTP.
    public var receiveKey: SRTPKey?
    /// Our first sequence number and the seed of RTCP's random timing: unpredictable, from outside.
    public var randomSeed: UInt64

    /// Makes a plan.
    public init(
        remoteAddress: SocketAddress, remoteSSRC: UInt32?, localSSRC: UInt32, canonicalName: String,
        sendPayloadType: UInt8, receivePayloadType: UInt8, sendKey: SRTPKey?, receiveKey: SRTPKey?, randomSeed: UInt64
    ) {
        self.remoteAddress = remoteAddress
        self.remoteSSRC = remoteSSRC
        self.localSSRC = localSSRC
        self.canonicalName = canonicalName
        self.sendPayloadType = sendPayloadType
        self.receivePayloadType = receivePayloadType
        self.sendKey = sendKey
        self.receiveKey = receiveKey
        self.randomSeed = randomSeed
    }
}
