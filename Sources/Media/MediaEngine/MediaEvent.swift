public import AudioDevices
public import AudioKit
public import CallMedia
public import ICE
public import Core
public import Realtime
public import TLS

/// What a media engine reports about its calls.
public enum MediaEvent: Sendable {
    /// The peer's first packet has come.
    case mediaReceived(MediaCallID, at: Instant)
    /// The call can carry media: there is a path to the peer, and keys if packets are protected.
    case ready(MediaCallID, at: Instant)
    /// Media flows both ways. Nothing waits for this.
    case flowing(MediaCallID, at: Instant)
    /// The file being played has ended.
    case playbackEnded(MediaCallID)
    /// A file that was played in place of the call's source has ended (``MediaEngine/play(_:on:)``).
    case announcementEnded(MediaCallID, path: String, AnnouncementEnd)
    /// The call hears the one that it was joined to (``MediaEngine/bridge(_:to:)``); until then it heard what it did before.
    case bridgeHeard(MediaCallID)
    /// A recording has ended, and its file has its name if it is whole. If its disk is slow, this comes after ``ended(_:_:)``.
    case recordingEnded(MediaCallID, RecordingEnd)
    /// The peer has pressed a telephone key (RFC 4733): `0`…`9`, `*`, `#`, `A`…`D`, or `!` for the flash of the hook.
    case digit(MediaCallID, Character, heldFor: Duration)
    /// The call stopped sending, because sending has become useless or harmful (RFC 8083).
    case sendingStopped(MediaCallID, SendingStop)
    /// The call sends again.
    case sendingResumed(MediaCallID)
    /// A candidate to signal to the peer: the value of a `candidate` attribute.
    case candidate(MediaCallID, String)
    /// The end of candidates, to signal to the peer.
    case candidatesComplete(MediaCallID)
    /// There is a path to the peer, or another one now.
    case connected(MediaCallID, by: ICEPath)
    /// DTLS has agreed on keys, over the path that ICE has found: media can flow.
    case secured(MediaCallID)
    /// The peer has not answered on any path for some seconds; it may come back by itself, or by an ICE restart.
    case connectionQuiet(MediaCallID)
    /// The peer answers again.
    case connectionBack(MediaCallID)
    /// The path to the peer is lost; another may still be found.
    case pathLost(MediaCallID)
    /// A TURN server failed: which one, and why, as text for people. The call may have other paths.
    case relayFailed(MediaCallID, server: String, reason: String)
    /// The connection to a TURN server, by TCP or TLS, is closed, and was too slow at times: the numbers of media packets
    /// that were dropped, to the server and from it.
    case relayOverrun(MediaCallID, server: String, notSent: Int, notReceived: Int)
    /// The call cannot be connected, or its connection has ended.
    case connectionFailed(MediaCallID, ConnectionFailure)
    /// The peer's media has said goodbye (RTCP BYE, or the end of its DTLS association).
    case goodbyeReceived(MediaCallID)
    /// A file being played or recorded has failed, or its disk does not answer; the call continues.
    case fileFailed(MediaCallID, AudioFileError)
    /// The worker has as many calls as it may have.
    case refused(MediaCallID)
    /// The call has ended, and its files are finished, unless their disk takes longer than two seconds for that.
    case ended(MediaCallID, MediaReport)
    /// An event of the sound card; its statistics are reported once a second.
    case card(CardEvent)
    /// A worker lets its encoders spend another effort at most from now on: less because it is about to have more to do
    /// than it can, or more because it has room again.
    case effortLimited(worker: Int, WorkerLoad)
    /// ``MediaEngine/loads`` has a new measurement: four times a second while there are calls.
    case loadMeasured
    /// The media threads run without real-time priority; reported once for each.
    case realtimePriorityRefused(RealtimeError)
}

/// Why a file has stopped playing in place of a call's source.
public enum AnnouncementEnd: String, Sendable {
    /// It was played to its end.
    case played
    /// Playing was stopped, or another file is played.
    case stopped
    /// The call has ended.
    case callEnded = "call_ended"
    /// The file failed.
    case failed
}

/// What has become of a recording.
public struct RecordingEnd: Sendable {
    /// The file; of a recording that failed, as far as it is whole.
    public let path: String
    /// The file that was asked for. ``path`` differs if the recording failed, or if another file has got this name meanwhile.
    public let requestedPath: String
    /// How long the sound is that the file has.
    public let duration: Duration
    /// Sound that was not recorded: after a failure, or because the disk did not take it in time.
    public let missed: Duration
    /// Why it is not whole.
    public let failure: AudioFileError?
}

/// How a media engine is laid out.
public struct MediaEngineConfiguration: Sendable {
    /// Where media sockets are bound; with port 0 each worker gets a port of the system's choice, else worker `n`
    /// (from zero) gets port + `n`.
    public var bindAddress: SocketAddress
    /// UDP ports of calls without ICE, one each (``MediaEngine/openPort(at:)``); nil leaves them to the system.
    public var callPorts: ClosedRange<UInt16>?
    /// Media threads, each with a socket. `scripts/bench overload` measures how many calls one carries.
    public var workerCount: Int
    /// Calls that one worker may have.
    public var callLimitPerWorker: Int
    /// SCHED_FIFO priority of the media threads, 1…99; nil does not ask for it.
    public var realtimePriority: Int32?
    /// Certificate authorities for TURN servers over TLS.
    public var relayTrust: TrustRoots
    /// The sound card that calls may use; nil for none.
    public var sound: CallSound?

    /// Makes a configuration.
    public init(
        bindAddress: SocketAddress, callPorts: ClosedRange<UInt16>? = nil, workerCount: Int = 1,
        callLimitPerWorker: Int = 256, realtimePriority: Int32? = 20,
        relayTrust: TrustRoots = .system, sound: CallSound? = nil
    ) {
        self.bindAddress = bindAddress
        self.callPorts = callPorts
        self.workerCount = max(1, workerCount)
        self.callLimitPerWorker = max(1, callLimitPerWorker)
        self.realtimePriority = realtimePriority
        self.relayTrust = relayTrust
        self.sound = sound
    }
}

/// Where a new call is going to run.
public struct MediaPlacement: Sendable {
    let worker: Int
    /// The address that the call receives media at; the host may be the wildcard address.
    public let localAddress: SocketAddress
    /// Whose call it is going to be, of those who share the engine (``MediaCallID/owner``).
    public var owner: UInt16 = 0
}
