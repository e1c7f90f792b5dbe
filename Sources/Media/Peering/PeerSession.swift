internal import Bytes
internal import Datagrams
public import NetworkAddress
public import RTP
public import SecureTransport
public import Timekeeping

/// One call's network half: authenticates, counts and reports what comes; numbers and protects what goes.
///
/// It does no I/O and reads no clock. Each of its parts keeps its state to itself; the session brings packets and what they
/// tell from one to the next.
public struct PeerSession: ~Copyable {
    private let inPlace = InPlace()
    var route: MediaRoute
    /// The SSRC that the peer sends with; nil until it is known.
    public internal(set) var remoteSSRC: UInt32?
    /// Which of the streams that the peer sends counts.
    var streams = StreamSelector()
    var protection: MediaProtection
    let plan: PeerPlan
    var sender: MediaSender
    /// What the peer's payload types stand for.
    public internal(set) var received: ReceivedFormats
    var reporter: RTCPReporter
    var counters = PeerStatistics()
    private var flow = MediaFlow()
    /// Arrivals of the peer's packets, to be told.
    var arrivals: TransportFeedbackWriter
    var lastFeedbackAt: Instant
    /// What of the peer's is missing.
    var requests = RetransmissionRequests()
    var missing: NegativeAcknowledgement
    var remoteTransportSequenceIdentifier: UInt8?

    /// Starts a session.
    public init(_ plan: PeerPlan, at now: Instant) throws(SRTPError) {
        self.plan = plan
        sender = MediaSender(plan)
        received = ReceivedFormats(now: PayloadKinds(plan))
        remoteTransportSequenceIdentifier = plan.headerExtensions.remoteTransportSequenceIdentifier
        arrivals = TransportFeedbackWriter(sender: plan.localSSRC)
        lastFeedbackAt = now
        missing = NegativeAcknowledgement(sender: plan.localSSRC, media: 0)
        remoteSSRC = plan.remoteSSRC
        route = MediaRoute(plan.transport, at: now)
        protection = try MediaProtection(plan.protection)
        reporter = RTCPReporter(plan, at: now)
    }

    /// What became of a datagram.
    public enum Received: Equatable, Sendable {
        /// Audio for the playout buffer; `header.payload` says where in the datagram, now plain, it lies.
        case media(RTPHeader)
        /// What the noise is like in the silence that begins (RFC 3389).
        case comfortNoise(RTPHeader)
        /// Audio with earlier frames besides its own, as ``RedundantPayload``.
        case redundantMedia(RTPHeader)
        /// A telephone event, whose duration counts in so many ticks a second.
        case telephoneEvent(RTPHeader, clockRate: Int)
        /// RTCP, and dealt with.
        case control
        /// Counted and dropped.
        case dropped
        /// Not the peer's, as far as can be told, and not counted: it may be of another call.
        case refused(Refusal)
    }

    /// Why a datagram is not taken for the peer's.
    public enum Refusal: Equatable, BitwiseCopyable, Sendable {
        /// Its authentication tag is wrong.
        case unauthenticated
        /// Its number has been received before, or is too old to tell.
        case replayed
        /// There are no keys yet: the peer was done with the handshake a moment before us.
        case early
        /// It is too short for its protection, or malformed.
        case malformed
        /// It has no protection, and comes from an address that is not the peer's.
        case unknownSource
    }

    /// Something that has happened since it was last asked for.
    public struct News: OptionSet, Sendable {
        /// The bits.
        public let rawValue: UInt8
        /// The set with these bits.
        @_noAllocation @_noLocks
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The peer's first packet has come.
        public static var mediaReceived: News {
            @_noAllocation @_noLocks get { News(rawValue: 1) }
        }
        /// Media flows both ways.
        public static var established: News {
            @_noAllocation @_noLocks get { News(rawValue: 2) }
        }
        /// The peer has left (RTCP BYE).
        public static var goodbyeReceived: News {
            @_noAllocation @_noLocks get { News(rawValue: 4) }
        }
        /// The peer's address or SSRC is another now.
        public static var routeChanged: News {
            @_noAllocation @_noLocks get { News(rawValue: 8) }
        }
    }

    private var news = News(rawValue: 0)

    /// What has happened since the last time this was asked.
    @_noAllocation @_noLocks
    public mutating func takeNews() -> News {
        let taken = news
        news = News(rawValue: 0)
        return taken
    }

    /// Whether packets are protected: without contexts yet, nothing is sent or taken.
    public var isProtected: Bool {
        @_noAllocation @_noLocks get { protection.isRequired }
    }

    /// Whether any media of the peer has come.
    public var hasReceivedMedia: Bool {
        @_noAllocation @_noLocks get { flow.hasReceived }
    }

    /// Whether an authenticated packet of the peer has come: the peer knows our description, so it hears what we send,
    /// as far as the path lets it. Sound begins then; to be sure that media flows both ways takes longer.
    public var hasHeardPeer: Bool {
        @_noAllocation @_noLocks get { flow.hasHeardPeer }
    }

    /// Whether media has been seen to flow both ways.
    public var isEstablished: Bool {
        @_noAllocation @_noLocks get { flow.isEstablished }
    }

    /// Says which ways media is agreed on: media flows once it has been seen to flow in these. Both unless told.
    @_noAllocation @_noLocks
    public mutating func setDirection(sends: Bool, receives: Bool) {
        flow.setDirection(sends: sends, receives: receives)
    }

    /// The way of our packets; nil while there is none.
    public var path: MediaPath? {
        @_noAllocation @_noLocks get { route.path }
    }

    /// The way of our RTCP: with the media, wherever that has moved to, unless the peer asked otherwise.
    public var controlPath: MediaPath? {
        @_noAllocation @_noLocks get { route.controlPath }
    }

    /// Where the peer's RTCP comes from, if that is another address than its media's.
    public var separateControlAddress: SocketAddress? {
        @_noAllocation @_noLocks get { route.separateControlAddress }
    }

    /// Whether media can be sent: there is a way for it, and it can be protected if it has to be.
    public var canSend: Bool {
        @_noAllocation @_noLocks get {
            guard case .some = route.path else { return false }
            return protection.isReady
        }
    }

    /// Sends by another way from now on, or by none: a call that ICE connects.
    ///
    /// - Parameter roundTripNanoseconds: What ICE's checks took on it; nil keeps what is known.
    @_noAllocation @_noLocks
    public mutating func use(_ path: MediaPath?, roundTripNanoseconds: Int64? = nil) {
        route.use(path)
        if let roundTripNanoseconds { reporter.setRoundTrip(nanoseconds: roundTripNanoseconds) }
        news.insert(.routeChanged)
    }

    /// Protects with these contexts from now on, and leaves those that are of no more use in their place, to be freed
    /// elsewhere. Packets of the peer's that were protected with the keys of before are taken for a while yet.
    ///
    /// They come from a handshake over the path that media takes, so each side is known to reach the other.
    @_noAllocation @_noLocks
    public mutating func install(_ pair: inout SRTPPair, at now: Instant) {
        protection.install(&pair, at: now)
        sender.forgetSent()
        noteConfirmation()
    }

    /// Bytes that a media packet has before its payload.
    public var mediaHeaderBytes: Int {
        @_noAllocation @_noLocks get { sender.headerBytes }
    }

    /// Whether media packets tell how loud they are (RFC 6464).
    public var sendsAudioLevel: Bool {
        @_noAllocation @_noLocks get { sender.sendsAudioLevel }
    }

    /// The most bytes that protection adds behind a payload.
    public static var maximumProtectionBytes: Int {
        @_noAllocation @_noLocks get { SRTPSuite.maximumOverheadBytes }
    }

    /// Whether the peer takes packets that repeat earlier frames, and has room for them.
    public var takesRedundancy: Bool {
        @_noAllocation @_noLocks get {
            guard let redundancy = sender.formats.kinds.redundancy else { return false }
            return redundancy.isSent
        }
    }

    /// RTP packets sent.
    public var packetsSent: Int {
        @_noAllocation @_noLocks get { counters.packetsSent }
    }

    /// What the session has seen so far.
    public var statistics: PeerStatistics {
        @_noAllocation @_noLocks get {
            var statistics = counters
            if let reception = reporter.reception {
                statistics.packetsLost = Int(reception.cumulativeLost)
                statistics.jitterNanoseconds = reception.jitterNanoseconds
            }
            return statistics
        }
    }
}

// MARK: What becomes known

extension PeerSession {
    /// A media packet of the peer has been taken.
    @_noAllocation @_noLocks
    mutating func noteMedia(at arrival: Instant) { note(flow.received(at: arrival), .mediaReceived) }

    /// The peer's address or SSRC is another now.
    @_noAllocation @_noLocks
    mutating func noteRoute() { news.insert(.routeChanged) }

    /// Takes over what the flow has found out.
    @_noAllocation @_noLocks
    private mutating func note(_ change: MediaFlow.Change, _ other: News) {
        switch change {
        case .nothing: return
        case .begun: news.insert(other)
        case .established:
            news.insert(other)
            news.insert(.established)
        }
    }

    /// A media packet of ours goes out.
    @_noAllocation @_noLocks
    mutating func noteSent(at now: Instant) {
        if case .established = flow.sent(at: now) { news.insert(.established) }
    }

    /// Takes over what the peer's report says about our packets' arrival.
    @_noAllocation @_noLocks
    mutating func noteConfirmation() {
        if case .established = flow.confirmed() { news.insert(.established) }
    }

    /// An authenticated RTCP packet of the peer has come.
    @_noAllocation @_noLocks
    mutating func noteControl() { flow.receivedControl() }

    @_noAllocation @_noLocks
    mutating func noteGoodbye() { news.insert(.goodbyeReceived) }
}
