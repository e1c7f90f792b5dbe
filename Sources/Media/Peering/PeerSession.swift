public import Datagrams
public import RTP
public import SecureTransport
public import Timekeeping

/// One call's network half: authenticates, counts and reports what comes; numbers and protects what goes.
///
/// It does no I/O and reads no clock. The peer's address follows its authenticated packets (symmetric RTP, RFC 4961),
/// so that a peer behind a translator is reached.
public struct PeerSession: ~Copyable {
    /// Where our packets go.
    public private(set) var remoteAddress: SocketAddress
    /// The SSRC that the peer sends with; nil until it is known.
    public private(set) var remoteSSRC: UInt32?
    var inbound: SRTPContext?
    var outbound: SRTPContext?
    let plan: PeerPlan
    var rtcp: RTCPSession
    var random: UInt64
    let startedAt: Instant
    var counters = PeerStatistics()
    private var flow = MediaFlow()
    private var nextSequenceNumber: UInt16

    /// Starts a session.
    public init(_ plan: PeerPlan, at now: Instant) throws(SRTPError) {
        self.plan = plan
        remoteAddress = plan.remoteAddress
        remoteSSRC = plan.remoteSSRC
        if let key = plan.receiveKey { inbound = try SRTPContext(key, .inbound) }
        if let key = plan.sendKey { outbound = try SRTPContext(key, .outbound) }
        // The top bit clear: no wrap-around in the first 32,768 packets (RFC 3711 §3.3.1 on lost first packets).
        nextSequenceNumber = UInt16(truncatingIfNeeded: plan.randomSeed) & 0x7FFF
        rtcp = RTCPSession(
            configuration: .init(ssrc: plan.localSSRC, canonicalName: plan.canonicalName), at: now)
        random = plan.randomSeed
        startedAt = now
    }

    /// What became of a datagram.
    public enum Received: Equatable, Sendable {
        /// Audio for the playout buffer; `header.payload` says where in the datagram, now plain, it lies.
        case media(RTPHeader)
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

    /// Where our RTCP goes: with the media, wherever that has moved to, unless the peer asked otherwise.
    public var controlAddress: SocketAddress {
        @_noAllocation @_noLocks get {
            if let separate = plan.remoteControlAddress { return separate }
            return remoteAddress
        }
    }

    /// Bytes that a media packet has before its payload.
    public static var mediaHeaderBytes: Int {
        @_noAllocation @_noLocks get { RTPHeader.fixedSize }
    }

    /// The most bytes that protection adds behind a payload.
    public static var maximumProtectionBytes: Int {
        @_noAllocation @_noLocks get { SRTPSuite.maximumOverheadBytes }
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
    ///   - source: Where it came from. Only an authenticated packet can move the peer's address.
    ///   - arrival: When the kernel took it in.
    @_noAllocation @_noLocks
    public mutating func receive(
        _ datagram: inout MutableRawSpan, from source: SocketAddress, at arrival: Instant
    ) -> Received {
        switch classify(datagram) {
        case .rtp: return receiveMedia(&datagram, from: source, at: arrival)
        case .rtcp: return receiveControl(&datagram, at: arrival)
        case .stun, .dtls, .turnChannel, .unknown:
            counters.dropped.malformed += 1
            return .dropped
        }
    }

    @_noAllocation @_noLocks
    private mutating func receiveMedia(
        _ datagram: inout MutableRawSpan, from source: SocketAddress, at arrival: Instant
    ) -> Received {
        do throws(SRTPContext.Failure) {
            if let length = try inbound?.unprotect(&datagram) { datagram = datagram._consumingExtracting(..<length) }
        } catch {
            return drop(error)
        }
        do throws(RTPParseError) {
            let header = try parseHeader(datagram)
            guard header.payloadType == plan.receivePayloadType else {
                counters.dropped.unknownPayloadType += 1
                return .dropped
            }
            if case .ownSource = rtcp.receivedMedia(header, at: arrival) {
                counters.dropped.looped += 1
                return .dropped
            }
            follow(header, from: source)
            counters.packetsReceived += 1
            counters.payloadBytesReceived += header.payload.count
            note(flow.received(at: arrival), .mediaReceived)
            return .media(header)
        } catch {
            counters.dropped.malformed += 1
            return .dropped
        }
    }

    /// Lets address and SSRC follow an authenticated packet.
    @_noAllocation @_noLocks
    private mutating func follow(_ header: RTPHeader, from source: SocketAddress) {
        if remoteSSRC != header.ssrc {
            remoteSSRC = header.ssrc
            news.insert(.routeChanged)
        }
        if !remoteAddress.isSame(as: source) {
            remoteAddress = source
            news.insert(.routeChanged)
        }
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

    /// Takes over what the peer's report says about our packets' arrival.
    @_noAllocation @_noLocks
    mutating func noteConfirmation() {
        if case .established = flow.confirmed() { news.insert(.established) }
    }

    @_noAllocation @_noLocks
    mutating func noteGoodbye() { news.insert(.goodbyeReceived) }
}

// MARK: Outgoing

extension PeerSession {
    /// Puts the header in front of a payload that lies behind ``mediaHeaderBytes`` of `packet`, and protects both.
    ///
    /// - Parameters:
    ///   - timestamp: Media time at 48 kHz.
    ///   - packet: Has ``maximumProtectionBytes`` of room behind the payload.
    /// - Returns: The packet's length; 0 if it could not be protected.
    @_noAllocation @_noLocks
    public mutating func writeMedia(
        payloadBytes: Int, timestamp: UInt32, marker: Bool, at now: Instant, into packet: inout MutableRawSpan
    ) -> Int {
        let header = RTPHeader(
            payloadType: plan.sendPayloadType, sequenceNumber: nextSequenceNumber, timestamp: timestamp,
            ssrc: plan.localSSRC, marker: marker)
        let headerBytes = header.write(into: &packet)
        nextSequenceNumber &+= 1
        let plain = headerBytes + payloadBytes
        let length = outbound == nil ? plain : outbound?.protect(&packet, length: plain) ?? 0
        guard length > 0 else { return 0 }
        counters.packetsSent += 1
        counters.payloadBytesSent += payloadBytes
        rtcp.sentMedia(payloadOctets: payloadBytes, timestamp: timestamp, at: now)
        if case .established = flow.sent(at: now) { news.insert(.established) }
        return length
    }
}

// The two below look at a datagram without changing it. Unoptimised code counts the end of such a view as a
// deallocation, though there is nothing to free, so they are not analysed; what they call is.

@_semantics("no_performance_analysis") @inline(__always)
private func classify(_ datagram: borrowing MutableRawSpan) -> DatagramKind { DatagramKind(of: datagram.bytes) }

@_semantics("no_performance_analysis") @inline(__always)
private func parseHeader(_ datagram: borrowing MutableRawSpan) throws(RTPParseError) -> RTPHeader {
    try RTPHeader(parsing: datagram.bytes)
}
