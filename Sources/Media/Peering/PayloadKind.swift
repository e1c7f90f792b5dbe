/// The meaning of the payload types of a call's packets: a plan's formats without reference-counted values.
struct PayloadKinds: BitwiseCopyable {
    let sound: UInt8
    let comfortNoise: UInt8?
    let redundancy: RedundancyFormat?
    let firstEvents: TelephoneEventFormat?
    let secondEvents: TelephoneEventFormat?
    /// Ticks a second of the sound's timestamps.
    let clockRate: Int
    /// The number of the decoder for the sound, counted by changes.
    var format: UInt8 = 0

    /// The content of a packet of the peer.
    enum Kind: BitwiseCopyable {
        case sound
        case redundantSound
        case comfortNoise
        case telephoneEvent(clockRate: Int)
    }

    init(_ plan: PeerPlan) {
        sound = plan.receivePayloadType
        comfortNoise = plan.comfortNoisePayloadType
        redundancy = plan.redundancy
        firstEvents = plan.telephoneEvents.first
        secondEvents = plan.telephoneEvents.dropFirst().first
        clockRate = max(1, plan.clockRate)
    }

    /// The meaning of a payload type of the peer; nil if it was not agreed on.
    @_noAllocation @_noLocks
    func kind(_ payloadType: UInt8) -> Kind? {
        if payloadType == sound { return .sound }
        if let comfortNoise, comfortNoise == payloadType { return .comfortNoise }
        if let redundancy, redundancy.receivePayloadType == payloadType { return .redundantSound }
        if let events = firstEvents, events.receivePayloadType == payloadType {
            return .telephoneEvent(clockRate: events.clockRate)
        }
        if let events = secondEvents, events.receivePayloadType == payloadType {
            return .telephoneEvent(clockRate: events.clockRate)
        }
        return nil
    }
}

/// The meaning of the peer's payload types, now and before the last change, because older packets may still be on their
/// way.
public struct ReceivedFormats: Sendable, BitwiseCopyable {
    private var now: PayloadKinds
    private var before: PayloadKinds?

    init(_ kinds: PayloadKinds) { now = kinds }

    /// Other formats from now on, whose sound is decoded with the format of this number.
    @_noAllocation @_noLocks
    mutating func change(to kinds: PayloadKinds, format: UInt8) {
        before = now
        now = kinds
        now.format = format
    }

    /// The content of a packet, and which of the two tables gave it; nil if its type was not agreed on.
    @_noAllocation @_noLocks
    func find(_ payloadType: UInt8) -> (kind: PayloadKinds.Kind, in: PayloadKinds)? {
        if let kind = now.kind(payloadType) { return (kind, now) }
        guard let before, let kind = before.kind(payloadType) else { return nil }
        return (kind, before)
    }

    /// Which of the formats that were counted a block within a packet that repeats frames is of: it may hold nothing but
    /// sound.
    @_noAllocation @_noLocks
    public func format(ofBlock payloadType: UInt8) -> UInt8? {
        guard let found = find(payloadType), case .sound = found.kind else { return nil }
        return found.in.format
    }
}
