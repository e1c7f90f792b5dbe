/// What the payload types of a call's packets stand for: a plan's formats without anything that is counted by reference.
struct PayloadKinds: BitwiseCopyable {
    let sound: UInt8
    let firstEvents: TelephoneEventFormat?
    let secondEvents: TelephoneEventFormat?

    /// What a packet of the peer holds.
    enum Kind: BitwiseCopyable {
        case sound
        case telephoneEvent(clockRate: Int)
    }

    init(_ plan: PeerPlan) {
        sound = plan.receivePayloadType
        firstEvents = plan.telephoneEvents.first
        secondEvents = plan.telephoneEvents.dropFirst().first
    }

    /// What the peer means by a payload type; nil if it was not agreed on.
    @_noAllocation @_noLocks
    func kind(_ payloadType: UInt8) -> Kind? {
        if payloadType == sound { return .sound }
        if let events = firstEvents, events.receivePayloadType == payloadType {
            return .telephoneEvent(clockRate: events.clockRate)
        }
        if let events = secondEvents, events.receivePayloadType == payloadType {
            return .telephoneEvent(clockRate: events.clockRate)
        }
        return nil
    }
}
