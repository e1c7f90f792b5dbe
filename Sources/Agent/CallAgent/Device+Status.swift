internal import AudioDevices
internal import Call
internal import CallBridging
internal import CallControl
internal import CallMedia
internal import MediaEngine

// How the device is, and whether it has room for calls.
extension Device {
    /// How the device is doing.
    public var status: DeviceStatus {
        DeviceStatus(
            signaling, calls, share.media,
            cardGoesTo: configuration.audio.severalCalls == .hold ? .some(engine.cardHolder) : nil,
            slot: participants.parking.slot)
    }

    /// How busy the device is.
    public var load: DeviceLoad { share.media.load }

    /// What decides whether the device takes one more call now.
    var admission: CallAdmission {
        CallAdmission(configuration, share, among: calls, participants.legs, isDraining: isDraining)
    }

    /// Whether the machine carries one more outgoing call without harm to those that it has.
    ///
    /// The answer may be another one a moment later: ``placeCall(to:)`` asks and calls in one step.
    public var hasRoomForCall: Bool {
        note(admission.room(for: [placedPart(configuration.behaviour.audio(named: ""))], isCall: false))
    }

    /// What is in the way of a call; nil if nothing is, and then room for it is reserved: it must begin without a suspension.
    func obstacle(toCallWith part: CallPart) -> CallObstacle? {
        if let obstacle = admission.obstacle(while: signaling.connection) { return obstacle }
        return note(admission.room(for: [part], isCall: true)) ? nil : CallObstacle(.machineFull)
    }

    /// The part of a call that this device places: that of the section `behaviour`, unless another behaviour is named.
    func placedPart(_ audio: AudioBehaviour, behaviour: String = "") -> CallPart {
        CallPart(audio, configuration.rules(for: audio, behaviour: behaviour))
    }

    /// Reports a change of whether there is room.
    func note(_ room: (hasRoom: Bool, isChange: Bool)) -> Bool {
        if room.isChange { publish(.loadChanged(load)) }
        return room.hasRoom
    }

    /// Reports to the devices that share the media what this one's calls need of the workers and do not have yet.
    func noteUnplaced() { share.note { admission.unplacedCount() } }
}
