public import AudioDevices
internal import Call
public import CallControl
public import Core
internal import CallMedia
public import MediaEngine
internal import SignalingClient

/// How a device is doing, at one moment.
public struct DeviceStatus: Sendable {
    /// The state of the connection to the service.
    public enum Connection: String, Sendable {
        /// There has been none yet.
        case connecting
        /// It is established.
        case connected
        /// It dropped, and the device reconnects.
        case reconnecting
        /// It is down, and nothing is being done about it.
        case disconnected
    }

    /// The state of the connection to the service.
    public let connection: Connection
    /// The device's identity at the service; nil before it has connected.
    public let user: UserID?
    /// Calls that have not ended, the oldest first.
    public let calls: [CallStatus]
    /// How loud; nil if no call uses a sound card.
    public let sound: SoundSettings?
    /// The card's statistics, at most a second old; nil likewise.
    public let card: CardStatistics?

    /// - Parameter holder: The stream that has the card where other calls wait for it; nil where calls do not wait.
    init(
        _ signaling: SignalingState, _ table: CallTable, _ media: SharedMedia, cardGoesTo holder: MediaCallID??,
        slot: (CallID) -> Int?
    ) {
        connection = signaling.connection
        user = signaling.user
        calls = table.inOrder.map { call in
            let isHeld = holder.map { $0 != call.session.stream } ?? false
            return CallStatus(
                call.session, isHeld: isHeld && call.session.usesCard && call.session.stream != nil,
                slot: slot(call.session.id))
        }
        sound = media.sound
        card = media.cardStatistics
    }
}

/// How loud a device's sound card is.
public struct SoundSettings: Hashable, Sendable {
    /// Whether the microphone is muted.
    public var isMuted: Bool
    /// Volume of the loudspeaker, in dB, −60…20.
    public var volumeDB: Double
    /// Volume of the microphone after all processing, in dB, −60…20.
    public var microphoneDB: Double

    static func limited(_ decibels: Double) -> Double { min(20, max(-60, decibels)) }
}

/// How one of a device's calls is doing.
public struct CallStatus: Sendable {
    /// The call.
    public let id: CallID
    /// By what the other end and the service know it; nil until the service has taken it.
    public let invite: InviteID?
    /// The other side.
    public let peer: UserID
    /// The direction of the call.
    public let direction: CallRecord.Direction
    /// Its state.
    public let progress: CallProgress
    /// Whether its sound is the sound card's.
    public let usesCard: Bool
    /// Whether it waits in silence because another call has the card.
    public let isHeld: Bool
    /// Whether it is being recorded.
    public let isRecorded: Bool
    /// The slot in which it is parked; nil if it is not.
    public let slot: Int?

    init(_ call: CallSession, isHeld: Bool, slot: Int?) {
        self.slot = slot
        id = call.id
        invite = call.inviteID
        peer = call.peer
        direction = call.direction
        progress = call.progress
        usesCard = call.usesCard
        self.isHeld = isHeld
        isRecorded = call.recording != nil
    }

    /// For how long the call has been established at `now`; nil if it is not.
    public func duration(at now: Instant) -> Duration? {
        guard case .established(let since) = progress else { return nil }
        return since.duration(to: now)
    }
}

/// How busy a device's media workers are, and what it does about that.
public struct DeviceLoad: Sendable, Equatable {
    /// Each worker's load, in their order.
    public let workers: [WorkerLoad]
    /// Whether one more call would be taken; always true where a number of calls is configured.
    public let takesCalls: Bool

    /// That of the busiest worker.
    public var busiest: WorkerLoad { workers.max { $0.share < $1.share } ?? WorkerLoad() }
    /// The highest complexity that every worker's Opus encoders may use; 10 limits nothing.
    public var complexityLimit: Int { workers.map(\.complexityLimit).min() ?? 10 }
}

extension DeviceStatus.Connection {
    /// Where this event leaves the connection; nil if it says nothing of it.
    init?(after event: SignalingEvent) {
        switch event {
        case .connected, .reconnected: self = .connected
        case .reconnecting: self = .reconnecting
        case .disconnected: self = .disconnected
        case .error, .inviteReceived, .inviteHandled, .inviteModified, .inviteCancelled, .inviteMissed, .inviteSent,
            .inviteAccepted, .inviteRejected, .inviteEnded, .inviteTimedOut, .callSignal, .callEnded,
            .connectionCreated, .connectionDestroyed, .roomSignal, .streamDropped, .streamResumed, .groupChanged,
            .roomLost, .moveRequested, .iceServersChanged, .notification, .unknown:
            return nil
        }
    }
}
