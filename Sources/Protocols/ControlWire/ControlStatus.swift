/// A device's status, as clients receive it. Nothing in it is secret.
public struct ControlStatus: Codable, Hashable, Sendable {
    /// The program's version.
    public var version: String
    /// The device's process.
    public var pid: Int32
    /// Seconds since the device listens to clients.
    public var uptimeSeconds: Double
    /// The device's name.
    public var device: String
    /// `connecting`, `connected`, `reconnecting` or `disconnected`.
    public var connection: String
    /// The device's user at its service; nil before it has connected.
    public var user: String?
    /// The service's host, and its port if that is not the default.
    public var server: String
    /// The behaviour of calls: `card`, `echo`, `play`, `tone`, `silence` or `exec`.
    public var behaviour: String
    /// How loud; nil if calls do not use a sound card.
    public var sound: ControlSound?
    /// The sound card; nil likewise.
    public var card: ControlCard?
    /// The levels on the meters; nil while no call uses the card.
    public var levels: ControlLevels?
    /// Whether new calls are refused, on request or because the device is about to end; nil from a device that does not
    /// report it.
    public var isDraining: Bool?
    /// How busy the device is with its calls' sound.
    public var load: ControlLoad?
    /// The accounts of a device that has several, in the order of its configuration; nil if they have no names. The
    /// members for one account then describe the first, or the one that was asked for.
    public var accounts: [ControlAccount]?
    /// All calls, those that are not listed too.
    public var callCount: Int
    /// The newest ``ControlLimits/listedCalls``, the oldest of them first.
    public var calls: [ControlCall]

    enum CodingKeys: String, CodingKey {
        case version, pid, device, connection, user, server, behaviour, sound, card, levels, load, calls, accounts
        case uptimeSeconds = "uptime_s"
        case callCount = "call_count"
        case isDraining = "draining"
    }

    /// Makes the status of a device without calls.
    public init(
        version: String, pid: Int32, uptimeSeconds: Double, device: String, connection: String, user: String?,
        server: String, behaviour: String
    ) {
        self.version = version
        self.pid = pid
        self.uptimeSeconds = uptimeSeconds
        self.device = device
        self.connection = connection
        self.user = user
        self.server = server
        self.behaviour = behaviour
        callCount = 0
        calls = []
    }
}

extension ControlStatus {
    /// Host and port of a URL, without a name and password before them, and without its path and query.
    public static func server(ofURL url: String) -> String {
        let rest = url.firstRange(of: "://").map { url[$0.upperBound...] } ?? url[...]
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        return String(authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority)
    }
}

/// One of a device's accounts.
public struct ControlAccount: Codable, Hashable, Sendable {
    /// The account's name.
    public var account: String
    /// The name of its device.
    public var device: String
    /// `connecting`, `connected`, `reconnecting`, `disconnected`, or `waiting` after a failure.
    public var connection: String
    /// Its user at its service; nil before it has connected.
    public var user: String?
    /// The service's host, and its port if that is not the default.
    public var server: String
    /// The behaviour of its calls.
    public var behaviour: String
    /// Whether it takes no new calls.
    public var isDraining: Bool
    /// Its calls.
    public var callCount: Int
    /// Why it failed last, if it has not connected since.
    public var failure: String?

    enum CodingKeys: String, CodingKey {
        case account, device, connection, user, server, behaviour, failure
        case isDraining = "draining"
        case callCount = "call_count"
    }

    /// Makes the state of an account without calls.
    public init(account: String, device: String, connection: String, server: String, behaviour: String) {
        self.account = account
        self.device = device
        self.connection = connection
        self.server = server
        self.behaviour = behaviour
        isDraining = false
        callCount = 0
    }
}

/// The load of a device's media workers, and its countermeasures.
public struct ControlLoad: Codable, Hashable, Sendable {
    /// Share of its time that the busiest worker works, 0…1.
    public var busy: Double
    /// The highest complexity that Opus encoders may use now, 0…10; 10 limits nothing.
    public var complexityLimit: Int
    /// Whether one more call would be taken.
    public var takesCalls: Bool

    enum CodingKeys: String, CodingKey {
        case busy
        case complexityLimit = "complexity_limit"
        case takesCalls = "takes_calls"
    }

    /// Makes a load, its share to a hundredth.
    public init(busy: Double, complexityLimit: Int, takesCalls: Bool) {
        self.busy = (max(0, min(1, busy)) * 100).rounded() / 100
        self.complexityLimit = complexityLimit
        self.takesCalls = takesCalls
    }
}

/// Mute and volumes.
public struct ControlSound: Codable, Hashable, Sendable {
    /// Whether the microphone is muted.
    public var isMuted: Bool
    /// Volume of the loudspeaker, in dB, −60…20.
    public var volumeDB: Double
    /// Volume of the microphone after all processing, in dB, −60…20.
    public var microphoneDB: Double

    enum CodingKeys: String, CodingKey {
        case isMuted = "muted"
        case volumeDB = "volume_db"
        case microphoneDB = "microphone_db"
    }

    /// Makes settings.
    public init(isMuted: Bool, volumeDB: Double, microphoneDB: Double) {
        self.isMuted = isMuted
        self.volumeDB = volumeDB
        self.microphoneDB = microphoneDB
    }
}

/// The sound card and the line to it.
public struct ControlCard: Codable, Hashable, Sendable {
    /// The card to play on, as it is configured; nil for none.
    public var playback: String?
    /// The card to capture from; nil for none.
    public var capture: String?
    /// Whether it is there, and sound flows.
    public var isRunning: Bool
    /// How often it has gone away.
    public var losses: Int
    /// How often it ran out of samples.
    public var playbackXruns: Int
    /// How often it ran out of room.
    public var captureXruns: Int

    enum CodingKeys: String, CodingKey {
        case playback, capture, losses
        case isRunning = "running"
        case playbackXruns = "playback_xruns"
        case captureXruns = "capture_xruns"
    }

    /// Makes the state of a card.
    public init(
        playback: String?, capture: String?, isRunning: Bool, losses: Int, playbackXruns: Int, captureXruns: Int
    ) {
        self.playback = playback
        self.capture = capture
        self.isRunning = isRunning
        self.losses = losses
        self.playbackXruns = playbackXruns
        self.captureXruns = captureXruns
    }
}

/// Levels on the meters, in dBFS; −100 is silence.
public struct ControlLevels: Codable, Hashable, Sendable {
    /// The microphone, after all processing.
    public var microphoneDBFS: Double
    /// Its held peak.
    public var microphonePeakDBFS: Double
    /// The loudspeaker.
    public var loudspeakerDBFS: Double
    /// Its held peak.
    public var loudspeakerPeakDBFS: Double

    enum CodingKeys: String, CodingKey {
        case microphoneDBFS = "microphone_dbfs"
        case microphonePeakDBFS = "microphone_peak_dbfs"
        case loudspeakerDBFS = "loudspeaker_dbfs"
        case loudspeakerPeakDBFS = "loudspeaker_peak_dbfs"
    }

    /// Makes levels, to a tenth of a dB.
    public init(
        microphoneDBFS: Double, microphonePeakDBFS: Double, loudspeakerDBFS: Double, loudspeakerPeakDBFS: Double
    ) {
        func tenths(_ value: Double) -> Double { value.isFinite ? (max(-100, value) * 10).rounded() / 10 : -100 }
        self.microphoneDBFS = tenths(microphoneDBFS)
        self.microphonePeakDBFS = tenths(microphonePeakDBFS)
        self.loudspeakerDBFS = tenths(loudspeakerDBFS)
        self.loudspeakerPeakDBFS = tenths(loudspeakerPeakDBFS)
    }
}

/// One call.
public struct ControlCall: Codable, Hashable, Sendable {
    /// The state of a call.
    public enum State: String, Codable, Sendable {
        /// It is outgoing, and not answered yet.
        case calling
        /// It comes in, and waits for an answer.
        case ringing
        /// It was answered, and cannot carry media yet.
        case connecting
        /// It is established.
        case talking
        /// It ended; its last reports are still to be sent.
        case ending
    }

    /// Its number, never used again by this process.
    public var call: UInt64
    /// The id of the call at the service and the remote party; nil until the service has accepted it.
    public var invite: String?
    /// The other side.
    public var peer: String
    /// Whether it came in.
    public var isIncoming: Bool
    /// Its state.
    public var state: State
    /// Seconds for which it has been established; nil before that.
    public var durationSeconds: Double?
    /// Whether it waits in silence because another call has the card.
    public var isHeld: Bool
    /// Whether it is being recorded.
    public var isRecorded: Bool
    /// The account that it is of, if that has a name.
    public var account: String?
    /// Figures of its sound; nil while it has none.
    public var media: ControlCallMedia?
    /// The slot in which it is parked; nil if it is not.
    public var slot: Int?

    enum CodingKeys: String, CodingKey {
        case call, invite, peer, state, account, media, slot
        case isIncoming = "incoming"
        case durationSeconds = "duration_s"
        case isHeld = "held"
        case isRecorded = "recorded"
    }

    /// Makes a call's entry.
    public init(
        call: UInt64, invite: String? = nil, peer: String, isIncoming: Bool, state: State,
        durationSeconds: Double? = nil, isHeld: Bool = false, isRecorded: Bool = false,
        account: String? = nil
    ) {
        self.account = account
        self.call = call
        self.invite = invite
        self.peer = peer
        self.isIncoming = isIncoming
        self.state = state
        self.durationSeconds = durationSeconds
        self.isHeld = isHeld
        self.isRecorded = isRecorded
    }
}
