/// The meaning of the payload types of a call's packets: a plan's formats without reference-counted values.
struct PayloadKinds: BitwiseCopyable {
    let sound: UInt8
    let otherSound: UInt8?
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
        otherSound = plan.otherReceivePayloadType
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
        if let otherSound, otherSound == payloadType { return .sound }
        return nil
    }
}

/// The meaning of the peer's payload types, now and before the last change, because older packets may still be on their
/// way.
public struct ReceivedFormats: Sendable, BitwiseCopyable {
    /// Payload types above this are given a meaning by each description (RFC 3551 §6).
    private static var lastFixed: UInt8 { @_noAllocation @_noLocks get { 95 } }
    /// Packets in a row after which the peer is known to send its sound under a foreign number.
    private static var packetsToShow: UInt8 { @_noAllocation @_noLocks get { 5 } }
    /// Longer than a telephone event and than Opus in a pause, which show nothing.
    private static var shortBytes: Int { @_noAllocation @_noLocks get { 8 } }

    private var now: PayloadKinds
    private var before: PayloadKinds?
    /// A number that was not agreed on here, under which the peer sends its sound.
    private var foreign: UInt8?
    /// The number that was not agreed on of the last packets in a row, and how many they are.
    private var unknown: UInt8 = 0
    private var unknownCount: UInt8 = 0

    init(_ kinds: PayloadKinds) { now = kinds }

    /// The content of a received packet.
    ///
    /// A server that connects two telephones directly may give each its own number for a codec, as Asterisk does: then the sound of
    /// each comes to the other under a number that it has never heard of. A dynamic number in whose packets nothing but sound can be is
    /// taken for that of the codec, if that has a dynamic number, too, and if its packets come in place of those that were agreed on.
    @_noAllocation @_noLocks
    mutating func take(_ payloadType: UInt8, bytes: Int) -> (kind: PayloadKinds.Kind, in: PayloadKinds)? {
        if let found = find(payloadType) {
            unknownCount = 0
            return found
        }
        guard now.sound > Self.lastFixed, payloadType > Self.lastFixed, bytes > Self.shortBytes else { return nil }
        unknownCount = payloadType == unknown ? unknownCount + 1 : 1
        unknown = payloadType
        guard unknownCount >= Self.packetsToShow else { return nil }
        foreign = payloadType
        unknownCount = 0
        return (.sound, now)
    }

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
        if let before, let kind = before.kind(payloadType) { return (kind, before) }
        guard let foreign, foreign == payloadType, now.sound > Self.lastFixed else { return nil }
        return (.sound, now)
    }

    /// Which of the formats that were counted a block within a packet that repeats frames is of: it may hold nothing but
    /// sound.
    @_noAllocation @_noLocks
    public func format(ofBlock payloadType: UInt8) -> UInt8? {
        guard let found = find(payloadType), case .sound = found.kind else { return nil }
        return found.in.format
    }
}
