// Peering: one call's network half as one core: protected RTP and RTCP in and out, statistics, and whether media flows.

public import Core
public import SecureTransport
internal import Realtime
internal import RTP

/// What offer and answer have settled about a call's media transport.
public struct PeerPlan: Sendable {
    /// How the peer is reached.
    public enum Transport: Sendable, Equatable {
        /// At an address, and from then on wherever its authenticated packets come from (symmetric RTP, RFC 4961).
        ///
        /// `control` is where the peer wants its RTCP; nil with its media (RFC 5761).
        case direct(to: SocketAddress, control: SocketAddress? = nil)
        /// By the path that ICE finds: see ``PeerSession/use(_:)``.
        case connected
        /// Where a DTLS handshake without ICE has found it (``PeerSession/use(_:)``), and from then on wherever its
        /// authenticated packets come from.
        ///
        /// Without `hasControl` no RTCP is sent: the peer expects it on a separate port, with separate keys (RFC 5764
        /// §4), and there is only one handshake.
        case handshaken(hasControl: Bool)
    }

    /// How packets are protected.
    public enum Protection: Sendable, Equatable {
        /// Not at all: anyone on the way can listen.
        case plain
        /// With keys that the descriptions gave.
        case keys(send: SRTPKey, receive: SRTPKey)
        /// With keys that DTLS agrees on: nothing is sent or taken before ``PeerSession/install(_:)``.
        case handshake
    }

    /// How the peer is reached.
    public var transport: Transport
    /// How packets are protected.
    public var protection: Protection
    /// The call's own sockets, which get no other call's packets; nil for the ones that all calls share.
    public var sockets: CallSockets?
    /// Where the peer's signaling comes from, whose port means nothing: packets without protection may come from that host,
    /// while the address in the description is silent. Nil if it is not known.
    public var signalingSource: SocketAddress?
    /// The peer's SSRC, if its description has it (RFC 5576).
    public var remoteSSRC: UInt32?
    /// Our SSRC.
    public var localSSRC: UInt32
    /// Our canonical name in RTCP (RFC 3550 §6.5.1).
    public var canonicalName: String
    /// The payload type we send.
    public var sendPayloadType: UInt8
    /// The payload type that the peer sends.
    public var receivePayloadType: UInt8
    /// Another payload type of the same codec that the peer may send with.
    public var otherReceivePayloadType: UInt8?
    /// Ticks a second of RTP timestamps, both ways: 48 000 for Opus, 8 000 for G.711.
    public var clockRate = 48_000
    /// The payload type of comfort noise (RFC 3389) in packets that the peer sends, if it may send any.
    public var comfortNoisePayloadType: UInt8?
    /// The same in packets that we send, if the peer takes it.
    public var sendComfortNoisePayloadType: UInt8?
    /// Telephone events that may come and go, once for each clock rate; we send with the first. Two at most.
    public var telephoneEvents: [TelephoneEventFormat] = []
    /// Packets that repeat earlier frames (RFC 2198), if both have them.
    public var redundancy: RedundancyFormat?
    /// Header extensions of packets.
    public var headerExtensions = HeaderExtensionPlan()
    /// Feedback may go without a report in front of it (RFC 5506).
    public var usesReducedSizeRTCP = false
    /// Lost packets are asked for, and sent again (RFC 4585 §6.2.1): `nack` was agreed on.
    public var repairsLoss = false
    /// Our first sequence number and the seed of RTCP's random timing: unpredictable, from outside.
    public var randomSeed: UInt64

    /// Makes a plan.
    public init(
        transport: Transport, protection: Protection, remoteSSRC: UInt32?, localSSRC: UInt32, canonicalName: String,
        sendPayloadType: UInt8, receivePayloadType: UInt8, randomSeed: UInt64
    ) {
        self.transport = transport
        self.protection = protection
        self.remoteSSRC = remoteSSRC
        self.localSSRC = localSSRC
        self.canonicalName = canonicalName
        self.sendPayloadType = sendPayloadType
        self.receivePayloadType = receivePayloadType
        self.randomSeed = randomSeed
    }
}

/// The payload types of packets that repeat earlier frames (RFC 2198).
public struct RedundancyFormat: Equatable, Sendable, BitwiseCopyable {
    /// In packets that we send.
    public var sendPayloadType: UInt8
    /// In packets that the peer sends.
    public var receivePayloadType: UInt8
    /// We may repeat frames; else only the peer may.
    public var isSent: Bool

    /// Makes a format.
    public init(sendPayloadType: UInt8, receivePayloadType: UInt8, isSent: Bool = true) {
        self.sendPayloadType = sendPayloadType
        self.receivePayloadType = receivePayloadType
        self.isSent = isSent
    }
}

/// How telephone events travel at one clock rate (RFC 4733).
public struct TelephoneEventFormat: Equatable, Sendable, BitwiseCopyable {
    /// Ticks a second of their durations: 8 000 or 48 000.
    public var clockRate: Int
    /// The payload type in packets that we send.
    public var sendPayloadType: UInt8
    /// The payload type in packets that the peer sends.
    public var receivePayloadType: UInt8

    /// Makes a format.
    public init(clockRate: Int, sendPayloadType: UInt8, receivePayloadType: UInt8) {
        self.clockRate = clockRate
        self.sendPayloadType = sendPayloadType
        self.receivePayloadType = receivePayloadType
    }
}

/// The sockets of a call's own, on one port, by their slots: one for each family of addresses that the machine has.
public struct CallSockets: Equatable, BitwiseCopyable, Sendable {
    private let ipv4: Int
    private let ipv6: Int

    /// Says which slots they have; nil where there is none.
    public init(ipv4: Int?, ipv6: Int?) {
        self.ipv4 = ipv4 ?? -1
        self.ipv6 = ipv6 ?? -1
    }

    /// The slot of the socket for a family; nil if there is none.
    @_noAllocation @_noLocks
    public func slot(isIPv6: Bool) -> Int? {
        let slot = isIPv6 ? ipv6 : ipv4
        return slot >= 0 ? slot : nil
    }

    /// Whether a slot is one of theirs.
    @_noAllocation @_noLocks
    public func contains(_ slot: Int) -> Bool { slot >= 0 && (slot == ipv4 || slot == ipv6) }

    /// Their slots.
    public var slots: [Int] { [ipv4, ipv6].filter { $0 >= 0 } }
}

/// The numbers that a call's packets go by, which later descriptions may change: a plan's formats without anything that
/// is counted by reference, so that a media thread can take them over.
public struct PeerFormats: Sendable {
    let kinds: PayloadKinds
    let sendPayloadType: UInt8
    let sendComfortNoisePayloadType: UInt8?
    let clockRate: Int
    let extensions: PacketExtensions
    let remoteTransportSequenceIdentifier: UInt8?
    let usesReducedSizeRTCP: Bool
    let repairsLoss: Bool

    /// The formats of a plan; its addresses, streams and keys are left aside.
    public init(_ plan: PeerPlan) {
        kinds = PayloadKinds(plan)
        sendPayloadType = plan.sendPayloadType
        sendComfortNoisePayloadType = plan.sendComfortNoisePayloadType
        clockRate = max(1, plan.clockRate)
        extensions = PacketExtensions(plan.headerExtensions)
        remoteTransportSequenceIdentifier = plan.headerExtensions.remoteTransportSequenceIdentifier
        usesReducedSizeRTCP = plan.usesReducedSizeRTCP
        repairsLoss = plan.repairsLoss
    }
}

/// New formats for an existing session, with the memory that they need. The control side allocates it, and frees what
/// the session returns.
public struct PeerChange: ~Copyable {
    /// The formats.
    public let formats: PeerFormats
    private var kept: SentPackets?

    /// The change to a plan's formats.
    public init(_ plan: PeerPlan) {
        formats = PeerFormats(plan)
        if plan.repairsLoss { kept = SentPackets() }
    }

    /// Exchanges the memory for packets sent.
    @_noAllocation @_noLocks
    mutating func exchangeMemory(_ other: inout SentPackets?) { exchange(&kept, &other) }
}

// Swaps in place, so that no memory is freed here.
@_semantics("no_performance_analysis") @inline(__always)
private func exchange(_ one: inout SentPackets?, _ other: inout SentPackets?) { swap(&one, &other) }
