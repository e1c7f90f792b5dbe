/// What the payload types of a call's packets stand for: a plan's formats without anything that is counted by reference.
struct PayloadKinds: BitwiseCopyable {
    let sound: UInt8
    let comfortNoise: UInt8?
    let redundancy: RedundancyFormat?
    let firstEvents: TelephoneEventFormat?
    let secondEvents: TelephoneEventFormat?

    /// What a packet of the peer holds.
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
    }

    /// What the peer means by a payload type; nil if it was not agreed on.
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
