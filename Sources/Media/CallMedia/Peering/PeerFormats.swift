internal import RTP

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
