public import Datagrams
public import RTP
public import SecureTransport
public import Timekeeping

/// One call's network half: authenticates, counts and reports what comes; numbers and protects what goes.
///
/// It does no I/O and reads no clock. Without ICE the peer's address follows its authenticated packets (symmetric RTP,
/// RFC 4961), so that a peer behind a translator is reached; with it, media goes the way that ICE says.
public struct PeerSession: ~Copyable {
    /// The way of our packets; nil while there is none.
    public private(set) var path: MediaPath?
    /// The SSRC that the peer sends with; nil until it is known.
    public private(set) var remoteSSRC: UInt32?
    private var separateControlPath: MediaPath?
    /// Whether the peer's authenticated packets move its address.
    private let followsSource: Bool
    /// Whether packets are protected: without contexts yet, nothing is sent or taken.
    let isProtected: Bool
    var inbound: SRTPContext?
    var outbound: SRTPContext?
    /// What the peer's packets were protected with before the keys in use, and until when some may still come.
    var formerInbound: SRTPContext?
    var formerUntil = Instant(nanoseconds: .min)
    private var hasOutbound = false
    let plan: PeerPlan
    /// The formats that we send in.
    var sending: PeerFormats
    /// What the peer's payload types stand for.
    public internal(set) var received: ReceivedFormats
    var rtcp: RTCPSession
    var random: UInt64
    let startedAt: Instant
    var counters = PeerStatistics()
    var freshReport: ReportBlock?
    /// When packets of ours were sent over the transport, and what the peer has told of them since it was last asked.
    var transport = TransportLog()
    var freshObservation: PathObservation?
    var freshMissing = 0
    /// The newest round trip that is known exactly: of ICE's checks or of the peer's reports.
    var knownRoundTripNanoseconds: Int64?
    private var flow = MediaFlow()
    var nextSequenceNumber: UInt16
    var extensions: PacketExtensions
    /// Arrivals of the peer's packets, to be told.
    var arrivals: TransportFeedbackWriter
    var lastFeedbackAt: Instant
    /// What of the peer's is missing, and what of ours the peer may miss; the latter only where it can ask.
    var requests = RetransmissionRequests()
    var missing: NegativeAcknowledgement
    var kept: SentPackets?
    var keepsPackets: Bool
    var remoteTransportSequenceIdentifier: UInt8?

    /// Starts a session.
    public init(_ plan: PeerPlan, at now: Instant) throws(SRTPError) {
        self.plan = plan
        sending = PeerFormats(plan)
        received = ReceivedFormats(now: sending.kinds)
        extensions = sending.extensions
        remoteTransportSequenceIdentifier = sending.remoteTransportSequenceIdentifier
        arrivals = TransportFeedbackWriter(sender: plan.localSSRC)
        lastFeedbackAt = now
        missing = NegativeAcknowledgement(sender: plan.localSSRC, media: 0)
        keepsPackets = plan.repairsLoss
        if plan.repairsLoss { kept = SentPackets() }
        remoteSSRC = plan.remoteSSRC
        switch plan.transport {
        case .direct(let remote, let control):
            path = MediaPath(DatagramPath(to: remote))
            if let control { separateControlPath = MediaPath(DatagramPath(to: control)) }
            followsSource = true
        case .connected: followsSource = false
        }
        switch plan.protection {
        case .plain: isProtected = false
        case .keys(let send, let receive):
            isProtected = true
            inbound = try SRTPContext(receive, .inbound)
            outbound = try SRTPContext(send, .outbound)
            hasOutbound = true
        case .handshake: isProtected = true
        }
        // The top bit clear: no wrap-around in the first 32,768 packets (RFC 3711 §3.3.1 on lost first packets).
        nextSequenceNumber = UInt16(truncatingIfNeeded: plan.randomSeed) & 0x7FFF
        rtcp = RTCPSession(
            configuration: .init(
                ssrc: plan.localSSRC, canonicalName: plan.canonicalName, clockRate: max(1, plan.clockRate)), at: now)
        random = plan.randomSeed
        startedAt = now
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

    /// Whether any media of the peer has come.
    var hasReceivedMedia: Bool {
        @_noAllocation @_noLocks get { flow.hasReceived }
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

    /// The way of our RTCP: with the media, wherever that has moved to, unless the peer asked otherwise.
    public var controlPath: MediaPath? {
        @_noAllocation @_noLocks get {
            if let separate = separateControlPath { return separate }
            return path
        }
    }

    /// Whether media can be sent: there is a way for it, and it can be protected if it has to be.
    public var canSend: Bool {
        @_noAllocation @_noLocks get {
            guard case .some = path else { return false }
            return !isProtected || hasOutbound
        }
    }

    /// Sends by another way from now on, or by none: a call that ICE connects.
    ///
    /// - Parameter roundTripNanoseconds: What ICE's checks took on it; nil keeps what is known.
    @_noAllocation @_noLocks
    public mutating func use(_ path: MediaPath?, roundTripNanoseconds: Int64? = nil) {
        self.path = path
        if let roundTripNanoseconds { knownRoundTripNanoseconds = roundTripNanoseconds }
        news.insert(.routeChanged)
    }

    /// Protects with these contexts from now on, and leaves those that are of no more use in their place, to be freed
    /// elsewhere. Packets of the peer's that were protected with the keys of before are taken for a while yet.
    ///
    /// They come from a handshake over the path that media takes, so each side is known to reach the other.
    @_noAllocation @_noLocks
    public mutating func install(_ pair: inout SRTPPair, at now: Instant) {
        exchange(&inbound, &pair.inbound)
        exchange(&formerInbound, &pair.inbound)
        if hasOutbound { formerUntil = now.advanced(byNanoseconds: Self.formerKeysNanoseconds) }
        exchange(&outbound, &pair.outbound)
        // The peer could not read what was protected before.
        kept?.removeAll()
        hasOutbound = true
        noteConfirmation()
    }

    /// Bytes that a media packet has before its payload.
    public var mediaHeaderBytes: Int {
        @_noAllocation @_noLocks get { RTPHeader.fixedSize + extensions.wireSize }
    }

    /// Whether media packets tell how loud they are (RFC 6464).
    public var sendsAudioLevel: Bool {
        @_noAllocation @_noLocks get { extensions.hasAudioLevel }
    }

    /// The most bytes that protection adds behind a payload.
    public static var maximumProtectionBytes: Int {
        @_noAllocation @_noLocks get { SRTPSuite.maximumOverheadBytes }
    }

    /// Whether the peer takes packets that repeat earlier frames, and has room for them.
    public var takesRedundancy: Bool {
        @_noAllocation @_noLocks get {
            guard let redundancy = sending.kinds.redundancy else { return false }
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
            if let reception = rtcp.reception {
                statistics.packetsLost = Int(reception.cumulativeLost)
                statistics.jitterNanoseconds = reception.jitterNanoseconds
            }
            return statistics
        }
    }
}

// MARK: Incoming

extension PeerSession {
    /// Takes one datagram, decrypting it in place.
    ///
    /// - Parameters:
    ///   - origin: The way back to where it came from. Only an authenticated packet can move the peer's address.
    ///   - arrival: When the kernel took it in.
    @_noAllocation @_noLocks
    public mutating func receive(
        _ datagram: inout MutableRawSpan, from origin: DatagramPath, at arrival: Instant
    ) -> Received {
        switch classify(datagram) {
        case .rtp: return receiveMedia(&datagram, from: origin, at: arrival)
        case .rtcp: return receiveControl(&datagram, at: arrival)
        case .stun, .dtls, .turnChannel, .unknown:
            counters.dropped.malformed += 1
            return .dropped
        }
    }

    @_noAllocation @_noLocks
    private mutating func receiveMedia(
        _ datagram: inout MutableRawSpan, from origin: DatagramPath, at arrival: Instant
    ) -> Received {
        do throws(SRTPContext.Failure) {
            if isProtected {
                guard let length = try takeOff(&datagram, isControl: false, at: arrival) else { return dropEarly() }
                datagram = datagram._consumingExtracting(..<length)
            }
        } catch {
            return drop(error)
        }
        do throws(RTPParseError) {
            let header = try parseHeader(datagram)
            guard let (kind, format) = received.find(header.payloadType) else {
                counters.dropped.unknownPayloadType += 1
                return .dropped
            }
            var isEvent = false
            if case .telephoneEvent = kind { isEvent = true }
            let roundTrip = roundTripNanoseconds
            let isRepair = requests.received(header.sequenceNumber, roundTrip: roundTrip, at: arrival)
            if isRepair { counters.feedback.packetsRepaired += 1 }
            if case .ownSource = rtcp.receivedMedia(
                header, at: arrival, measuresJitter: !isEvent && !isRepair, clockRate: format.clockRate)
            {
                counters.dropped.looped += 1
                return .dropped
            }
            follow(header, from: origin)
            if let identifier = remoteTransportSequenceIdentifier,
                let number = transportSequenceNumber(datagram, header, identifier)
            {
                arrivals.received(number, at: arrival)
            }
            counters.packetsReceived += 1
            counters.payloadBytesReceived += header.payload.count
            note(flow.received(at: arrival), .mediaReceived)
            switch kind {
            case .sound: return .media(header)
            case .comfortNoise: return .comfortNoise(header)
            case .redundantSound: return .redundantMedia(header)
            case .telephoneEvent(let clockRate): return .telephoneEvent(header, clockRate: clockRate)
            }
        } catch {
            counters.dropped.malformed += 1
            return .dropped
        }
    }

    /// Lets address and SSRC follow an authenticated packet.
    @_noAllocation @_noLocks
    private mutating func follow(_ header: RTPHeader, from origin: DatagramPath) {
        if remoteSSRC != header.ssrc {
            remoteSSRC = header.ssrc
            news.insert(.routeChanged)
        }
        // Answers leave from the address that was written to.
        if followsSource, let path, !path.datagrams.remote.isSame(as: origin.remote) {
            self.path = MediaPath(origin)
            news.insert(.routeChanged)
        }
    }

    @_noAllocation @_noLocks
    mutating func dropEarly() -> Received {
        counters.dropped.early += 1
        return .dropped
    }

    @_noAllocation @_noLocks
    mutating func drop(_ failure: SRTPContext.Failure) -> Received {
        switch failure {
        case .authentication: counters.dropped.unauthenticated += 1
        case .replay: counters.dropped.replayed += 1
        case .malformed: counters.dropped.malformed += 1
        }
        return .dropped
    }

    /// Takes over what the flow has found out.
    @_noAllocation @_noLocks
    mutating func note(_ change: MediaFlow.Change, _ other: News) {
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

    @_noAllocation @_noLocks
    mutating func noteGoodbye() { news.insert(.goodbyeReceived) }
}

// The two below look at a datagram without changing it. Unoptimised code counts the end of such a view as a
// deallocation, though there is nothing to free, so they are not analysed; what they call is.

@_semantics("no_performance_analysis") @inline(__always)
private func classify(_ datagram: borrowing MutableRawSpan) -> DatagramKind { DatagramKind(of: datagram.bytes) }

@_semantics("no_performance_analysis") @inline(__always)
private func parseHeader(_ datagram: borrowing MutableRawSpan) throws(RTPParseError) -> RTPHeader {
    try RTPHeader(parsing: datagram.bytes)
}

@_semantics("no_performance_analysis") @inline(__always)
private func transportSequenceNumber(
    _ datagram: borrowing MutableRawSpan, _ header: RTPHeader, _ identifier: UInt8
) -> UInt16? {
    header.transportSequenceNumber(identifier, in: datagram.bytes)
}

// Swaps in place: the contexts are freed by neither.
@_semantics("no_performance_analysis") @inline(__always)
private func exchange(_ one: inout SRTPContext?, _ other: inout SRTPContext?) { swap(&one, &other) }
