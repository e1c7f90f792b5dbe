internal import CallMedia
internal import Realtime
internal import Core
internal import SecureTransport

/// Commands of the control side to a worker. Ownership of pointers passes with the message.
@safe
enum WorkerCommand: BitwiseCopyable {
    case add(UnsafeMutablePointer<MediaCall>)
    case remove(MediaCallID)
    case report(MediaCallID, into: UnsafeMutablePointer<MediaReport>)
    /// The call's path, and the round trip that ICE measured on it; nil if there is none.
    case use(MediaCallID, MediaPath?, roundTripNanoseconds: Int64?)
    /// Where a later description of the peer wants media, and its RTCP if elsewhere: a call without ICE.
    case redirect(MediaCallID, to: SocketAddress, control: SocketAddress?)
    /// The one that the call goes to has answered, after early media.
    case answered(MediaCallID)
    case beginFlow(MediaCallID)
    /// The peer has shown by signaling that it is where the call's sound goes.
    case liftSoundLimit(MediaCallID)
    /// The network has changed: local addresses may be gone.
    case networkChanged
    /// The call's keys; what it had before comes back.
    case install(MediaCallID, UnsafeMutablePointer<SRTPPair>)
    /// The call's formats; what it had before comes back.
    case change(MediaCallID, UnsafeMutablePointer<MediaCallChange>)
    /// The call's recording, or what is heard in place of its source; what it had before comes back.
    case changeAudio(MediaCallID, UnsafeMutablePointer<AudioChange>)
    case setDirection(MediaCallID, sends: Bool, receives: Bool)
    /// A telephone key, by its number as an event.
    case press(MediaCallID, code: UInt8)
    case addSocket(UnsafeMutablePointer<UDPSocket>, slot: Int)
    case removeSocket(slot: Int)
    /// A connection is being made: datagrams are handled as they come until it is there, or given up.
    case connecting(Bool)
    /// Something for the sound card's mixer, if the worker has it.
    case sound(CardCommand)
    /// Has the worker's own memory there before a call needs it.
    case warmUp
    /// Checks that the worker works; ``WorkerEvent/pulse(overdueNanoseconds:)`` answers.
    case pulse
    case stop
}

/// Events from a worker to the control side. Ownership of pointers passes with the message.
@safe
enum WorkerEvent: BitwiseCopyable {
    /// The first authenticated packet of the peer came in.
    case mediaReceived(MediaCallID, at: Instant)
    /// The call can carry media.
    case ready(MediaCallID, at: Instant)
    /// Media flows both ways.
    case flowing(MediaCallID, at: Instant)
    case playbackEnded(MediaCallID)
    /// The announcement of this number has been played to its end.
    case announcementEnded(MediaCallID, number: UInt64)
    /// The call hears the one that it was joined to.
    case bridgeHeard(MediaCallID)
    /// The peer has pressed a telephone key, given by its event number.
    case digit(MediaCallID, code: UInt8, milliseconds: Int32)
    /// Our sending has stopped, or resumes.
    case sendingChanged(MediaCallID, SendingChange)
    /// Nothing has come from the peer for a while.
    case fellSilent(MediaCallID)
    /// The peer said goodbye (RTCP BYE).
    case goodbyeReceived(MediaCallID)
    /// The report asked for was written, or not: the worker has no such call.
    case reported(UnsafeMutablePointer<MediaReport>, found: Bool)
    /// The worker is done with this call, and will not touch it again.
    case removed(UnsafeMutablePointer<MediaCall>)
    /// There was no room for this call.
    case refused(UnsafeMutablePointer<MediaCall>)
    /// The worker has released these contexts.
    case replaced(UnsafeMutablePointer<SRTPPair>)
    /// The worker has released this.
    case changed(UnsafeMutablePointer<MediaCallChange>)
    /// The change was made, and these rings are the former ones; or the worker has no such call.
    case audioChanged(UnsafeMutablePointer<AudioChange>)
    /// The worker has released this socket.
    case socketRemoved(UnsafeMutablePointer<UDPSocket>)
    /// How busy the worker was in the last quarter of a second.
    case load(WorkerLoad)
    /// The worker works; and for how long the frame has been due that a call has waited for the longest.
    case pulse(overdueNanoseconds: Int64)
    case stopped(WorkerCounters)
}

/// Counts of a worker's datagrams before they reached a call, and its use of time.
public struct WorkerCounters: BitwiseCopyable, Sendable {
    /// Datagrams received.
    public internal(set) var datagramsReceived = 0
    /// Datagrams that are nothing that belongs on a media socket (RFC 7983), or too short or too long to be.
    public internal(set) var datagramsNotMedia = 0
    /// STUN and DTLS that came faster than they could be handled, or were too long.
    public internal(set) var datagramsNotForwarded = 0
    /// Media packets that belong to no call.
    public internal(set) var datagramsUnknown = 0
    /// Datagrams that the kernel did not take for sending.
    public internal(set) var datagramsNotSent = 0
    /// Reads of the sockets and of the wake-up that found nothing. Only a worker's only socket is read without asking whether
    /// it has something.
    public internal(set) var readsInVain = 0
    /// Turns that left datagrams to the next one, because more came than one turn may read.
    public internal(set) var turnsCutShort = 0
    /// Failed reads of the socket.
    public internal(set) var receiveErrors = 0
    /// Events that found the event ring full, and were lost.
    public internal(set) var eventsLost = 0
    /// Times the worker woke.
    public internal(set) var wakeups = 0
    /// Times that a page of memory was not there when the worker needed it, from its first call on. Those that come from a
    /// disk are among them.
    public internal(set) var pageFaults = 0
    /// The worst lateness of a frame, in nanoseconds.
    public internal(set) var worstLatenessNanoseconds: Int64 = 0

    init() {}
}
