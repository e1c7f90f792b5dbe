internal import AudioDevices
internal import CallControl
internal import Logging
internal import MediaEngine
internal import Realtime
internal import SignalingClient
internal import Core

extension Device {
    /// What a line of the log says of the call that it is about: its number here, and what the other end and the service know it by.
    func about(_ id: CallID, _ more: Logger.Metadata = [:]) -> Logger.Metadata {
        var metadata = more
        metadata["call"] = "\(id)"
        if let invite = calls[id]?.session.inviteID { metadata["invite"] = "\(invite)" }
        return metadata
    }

    /// How the device is doing.
    public var status: DeviceStatus {
        DeviceStatus(
            connection: connection, user: user,
            calls: calls.inOrder.map { call in
                let session = call.session
                return CallStatus(
                    id: session.id, invite: session.inviteID, peer: session.peer, direction: session.direction,
                    progress: session.progress, usesCard: session.usesCard, isHeld: isHeld(call))
            }, sound: shared.sound, card: cardStatistics)
    }

    private func isHeld(_ call: ActiveCall) -> Bool {
        guard call.session.usesCard, configuration.audio.severalCalls == .hold, let media = call.media.negotiated.id
        else { return false }
        return engine.cardHolder != media
    }
}

// What a device does when its machine is about to have more to do than it can: first its encoders spend less effort, which
// the media workers see to, and when none is left to save new calls are refused as busy. Present calls continue.
extension Device {
    /// How busy the device is.
    public var load: DeviceLoad { shared.load }

    /// Whether the machine carries one more outgoing call without harm to those that it has.
    ///
    /// The answer may be another one a moment later: ``placeCall(to:)`` asks and calls in one step.
    public var hasRoomForCall: Bool {
        hasRoom(streams: streams(of: configuration.behaviour.audio(named: "").source), isCall: false)
    }

    /// Streams of a call that plays this: its own, and that of its bot's leg.
    func streams(of source: AudioBehaviour.Source) -> Int { source == .program && configuration.hasLegs ? 2 : 1 }

    /// Whether the machine carries one more call without harm to those that it has. Reports changes of that.
    ///
    /// - Parameter id: The call that asks, which is among `calls` already.
    func hasRoom(for id: CallID) -> Bool {
        hasRoom(streams: calls[id].map { streams(of: $0.session.audio.source) } ?? 1, besides: id, isCall: true)
    }

    /// The same of a call that begins next, without a suspension in between, and for which the room is reserved.
    func reserveRoom(for source: AudioBehaviour.Source) -> Bool {
        hasRoom(streams: streams(of: source), isCall: true)
    }

    /// What is in the way of a call; nil if nothing is, and then room for it is reserved: it must begin without a suspension.
    func obstacle(toCallPlaying source: AudioBehaviour.Source) -> CallObstacle? {
        if isDraining { return CallObstacle(.draining) }
        switch connection {
        case .connected, .reconnecting: break
        case .connecting, .disconnected: return CallObstacle(.notConnected)
        }
        if case .calls(let limit) = configuration.answer.callLimit, calls.ongoingCount() >= limit {
            return CallObstacle(.callLimit(limit))
        }
        return reserveRoom(for: source) ? nil : CallObstacle(.machineFull)
    }

    /// - Parameters:
    ///   - streams: What the call takes of the workers.
    ///   - id: The call, if it is among `calls`.
    ///   - isCall: Whether there is, or will be at once, a call for which the room is reserved.
    private func hasRoom(streams: Int, besides id: CallID? = nil, isCall: Bool) -> Bool {
        guard configuration.answer.callLimit == .automatic else { return true }
        let (hasRoom, isChange) = shared.hasRoom(
            streams: streams, besides: unplacedCount(besides: id), isCall: isCall, of: owner)
        if isChange { publish(.loadChanged(load)) }
        return hasRoom
    }

    private func unplacedCount(besides id: CallID?) -> Int {
        calls.unplacedCount(besides: id, legs: configuration.hasLegs ? legs : nil)
    }

    /// Reports to the devices that share the media what this one's calls need of the workers and do not have yet.
    func noteUnplaced() {
        if !ownsMedia { shared.note(unplaced: unplacedCount(besides: nil), of: owner) }
    }

    /// The workers have measured their loads.
    func noteLoad() {
        if shared.isFull { _ = hasRoomForCall }
    }
}
