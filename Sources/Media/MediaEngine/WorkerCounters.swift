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
