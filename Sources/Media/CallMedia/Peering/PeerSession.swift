public import Core
public import Realtime
public import RTP
public import SecureTransport

/// One call's network half: authenticates, counts and reports what comes; numbers and protects what goes.
///
/// It does no I/O and reads no clock. Each of its parts keeps its state to itself; the session passes on to the others what
/// one of them finds out.
public struct PeerSession: ~Copyable {
    private let inPlace = InPlace()
    private var route: MediaRoute
    private var protection: MediaProtection
    private var sender: MediaSender
    private var receiver: MediaReceiver
    private var reporter: RTCPReporter
    private var arrivals: ArrivalFeedback
    private var repairs: RepairRequests
    private var flow = MediaFlow()
    private var readiness: MediaReadiness
    private var unreadEvents = Events(rawValue: 0)
    private var counters = PeerStatistics()

    /// Starts a session.
    public init(_ plan: PeerPlan, at now: Instant) throws(SRTPError) {
        route = MediaRoute(plan, at: now)
        protection = try MediaProtection(plan.protection)
        sender = MediaSender(plan)
        receiver = MediaReceiver(plan)
        reporter = RTCPReporter(plan, at: now)
        arrivals = ArrivalFeedback(plan, at: now)
        repairs = RepairRequests(ssrc: plan.localSSRC)
        readiness = MediaReadiness(plan)
        if readiness.isReady { unreadEvents.insert(.ready) }
    }

    /// The result for a datagram.
    public enum Received: Equatable, Sendable {
        /// Audio for the playout buffer.
        case media(ReceivedPacket)
        /// What the noise is like in the silence that begins (RFC 3389).
        case comfortNoise(ReceivedPacket)
        /// Audio with earlier frames besides its own, as ``RedundantPayload``.
        case redundantMedia(ReceivedPacket)
        /// A telephone event, whose duration counts in ticks of `clockRate` Hz.
        case telephoneEvent(ReceivedPacket, clockRate: Int)
        /// RTCP, and dealt with.
        case control
        /// Counted and dropped.
        case dropped
        /// Apparently not from the peer, and not counted: it may belong to another call.
        case refused(Refusal)
    }

    /// Why a datagram is not taken for the peer's.
    public enum Refusal: Equatable, BitwiseCopyable, Sendable {
        /// Its authentication tag is wrong.
        case unauthenticated
        /// Its number was received before, or is too old to know.
        case replayed
        /// There are no keys yet: the peer was done with the handshake a moment before us.
        case early
        /// It is too short for its protection, or malformed.
        case malformed
        /// It has no protection, and comes from an address that is not the peer's.
        case unknownSource
        /// The peer sends with more new SSRCs than a call may have (``SRTPContext/mostSources``).
        case otherStream
    }

    /// Something that has happened since it was last asked for.
    public struct Events: OptionSet, Sendable {
        /// The bits.
        public let rawValue: UInt8
        /// The set with these bits.
        @_noAllocation @_noLocks
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The peer's first packet has come.
        public static var mediaReceived: Events {
            @_noAllocation @_noLocks get { Events(rawValue: 1) }
        }
        /// Media flows both ways.
        public static var flowing: Events {
            @_noAllocation @_noLocks get { Events(rawValue: 2) }
        }
        /// The peer has left (RTCP BYE).
        public static var goodbyeReceived: Events {
            @_noAllocation @_noLocks get { Events(rawValue: 4) }
        }
        /// The peer's address or SSRC is another now.
        public static var routeChanged: Events {
            @_noAllocation @_noLocks get { Events(rawValue: 8) }
        }
        /// The call can carry media: there is a path, and keys if packets are protected.
        public static var ready: Events {
            @_noAllocation @_noLocks get { Events(rawValue: 16) }
        }
    }
}

// MARK: What is known

extension PeerSession {
    /// What has happened since the last time this was asked.
    @_noAllocation @_noLocks
    public mutating func takeEvents() -> Events {
        let taken = unreadEvents
        unreadEvents = Events(rawValue: 0)
        return taken
    }

    /// Whether packets are protected: without contexts yet, nothing is sent or taken.
    public var isProtected: Bool {
        @_noAllocation @_noLocks get { protection.isRequired }
    }

    /// The SSRC that the peer sends with; nil until it is known.
    public var remoteSSRC: UInt32? {
        @_noAllocation @_noLocks get { receiver.remoteSSRC }
    }

    /// The formats of the peer's payload types.
    public var received: ReceivedFormats {
        @_noAllocation @_noLocks get { receiver.formats }
    }

    /// Whether any media of the peer has come.
    public var hasReceivedMedia: Bool {
        @_noAllocation @_noLocks get { flow.hasReceived }
    }

    /// Whether an authenticated packet of the peer, RTP or RTCP, has arrived: the peer knows our description, so it plays
    /// what we send if the path carries it. Sound begins then; it takes longer to be sure that media flows both ways.
    public var hasHeardPeer: Bool {
        @_noAllocation @_noLocks get { flow.hasHeardPeer }
    }

    /// Whether media has been seen to flow both ways.
    public var isFlowing: Bool {
        @_noAllocation @_noLocks get { flow.isFlowing }
    }

    /// The way of our packets; nil while there is none.
    public var path: MediaPath? {
        @_noAllocation @_noLocks get { route.path }
    }

    /// Whether what comes from there may be a stranger's: there are no keys, and neither description nor signaling names its host.
    @_noAllocation @_noLocks
    public func isGuess(_ source: SocketAddress) -> Bool { !protection.isRequired && route.isGuess(source) }

    /// The way of our RTCP: with the media, wherever that has moved to, unless the peer asked otherwise.
    public var controlPath: MediaPath? {
        @_noAllocation @_noLocks get { route.controlPath }
    }

    /// Where the peer's RTCP comes from, if that is another address than its media's.
    public var separateControlAddress: SocketAddress? {
        @_noAllocation @_noLocks get { route.separateControlAddress }
    }

    /// The address that the peer's description names, of a call without ICE.
    public var describedAddress: SocketAddress? {
        @_noAllocation @_noLocks get { route.describedAddress }
    }

    /// The call's own sockets, if it has any.
    public var sockets: CallSockets? {
        @_noAllocation @_noLocks get { route.sockets }
    }

    /// Whether media can be sent: there is a path, and keys if protection is required.
    public var canSend: Bool {
        @_noAllocation @_noLocks get {
            guard case .some = route.path else { return false }
            return protection.isReady
        }
    }

    /// The newest round trip; nil if none was measured yet. It comes from ICE's checks, the peer's reports, or, before
    /// there are any, from its feedback on arrivals.
    public var roundTripNanoseconds: Int64? {
        @_noAllocation @_noLocks mutating get {
            guard case .none = reporter.roundTripNanoseconds else { return reporter.roundTripNanoseconds }
            return sender.roundTripBoundNanoseconds
        }
    }

    /// What the peer's feedback has reported of our packets' arrivals, once.
    @_noAllocation @_noLocks
    public mutating func takeObservation() -> PathObservation? { sender.takeObservation() }

    /// How many of our packets the peer has asked for, each counted once, since this was last asked.
    @_noAllocation @_noLocks
    public mutating func takeMissing() -> Int { reporter.takeMissing() }

    /// The peer's newest report on our stream, once.
    @_noAllocation @_noLocks
    public mutating func takeReport() -> ReportBlock? { reporter.takeReport() }

    /// Bytes that a media packet has before its payload.
    public var mediaHeaderBytes: Int {
        @_noAllocation @_noLocks get { sender.headerBytes }
    }

    /// Whether media packets carry their audio level (RFC 6464).
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

    /// Whether the peer can ask us to send packets again that it misses.
    public var resendsPackets: Bool {
        @_noAllocation @_noLocks get { sender.keepsPackets }
    }

    /// Whether both ask for packets that they miss, and send them again.
    public var repairsLoss: Bool {
        @_noAllocation @_noLocks get { sender.formats.repairsLoss }
    }

    /// Ticks a second of the telephone events that we send; nil if there are none.
    public var telephoneEventClockRate: Int? { sender.formats.kinds.firstEvents?.clockRate }

    /// RTP packets sent.
    public var packetsSent: Int {
        @_noAllocation @_noLocks get { counters.packetsSent }
    }

    /// The session's statistics so far.
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

// MARK: What others decide

extension PeerSession {
    /// Sets the agreed directions of media: media flows once it has been seen to flow in these. Both by default.
    @_noAllocation @_noLocks
    public mutating func setDirection(sends: Bool, receives: Bool) {
        flow.setDirection(sends: sends, receives: receives)
    }

    /// Sends by another way from now on, or by none: a call that ICE connects.
    ///
    /// - Parameter roundTripNanoseconds: What ICE's checks took on it; nil keeps what is known.
    @_noAllocation @_noLocks
    public mutating func use(_ path: MediaPath?, roundTripNanoseconds: Int64? = nil) {
        route.use(path)
        var exists = false
        if case .some = path { exists = true }
        if readiness.noted(path: exists) { unreadEvents.insert(.ready) }
        if let roundTripNanoseconds { reporter.setRoundTrip(nanoseconds: roundTripNanoseconds) }
        unreadEvents.insert(.routeChanged)
    }

    /// Sends to where a later description of the peer wants media; a call that ICE connects keeps its path.
    ///
    /// - Parameter control: Where the peer wants its RTCP; nil with its media.
    @_noAllocation @_noLocks
    public mutating func redirect(to remote: SocketAddress, control: SocketAddress?, at now: Instant) {
        if route.redirect(to: remote, control: control, at: now) { unreadEvents.insert(.routeChanged) }
    }

    /// Sends to the described address again if the address in use was a guess and has fallen silent. To be called now and then.
    ///
    /// - Returns: Whether it does: of the described address it is not known that the peer is there.
    @_noAllocation @_noLocks
    public mutating func endGuess(at now: Instant) -> Bool {
        guard !protection.isRequired, route.endGuess(at: now) else { return false }
        unreadEvents.insert(.routeChanged)
        return true
    }

    /// The network has changed: the local address for packets is to be found again.
    @_noAllocation @_noLocks
    public mutating func releaseLocalAddress() { route.releaseLocalAddress() }

    /// Protects with these contexts from now on, and leaves those that are of no more use in their place, to be freed
    /// elsewhere. Packets of the peer's that were protected with the keys of before are taken for a while yet.
    ///
    /// The first ones come from a handshake over the path that media takes, so each side is known to reach the other.
    @_noAllocation @_noLocks
    public mutating func install(_ pair: inout SRTPPair, at now: Instant) {
        let isHandshaken = !protection.isReady
        protection.install(&pair, at: now)
        sender.forgetSent()
        if isHandshaken { noteConfirmation() }
        if readiness.notedKeys() { unreadEvents.insert(.ready) }
    }

    /// Another one has answered than the one that was heard before: path, keys and the flow of media are those to that one.
    @_noAllocation @_noLocks
    public mutating func beginFlow() {
        flow.begin()
        if readiness.begin() { unreadEvents.insert(.ready) }
    }

    /// Takes packets of these formats from now on, and those of the formats before that still come (RFC 3264 §8.3.2).
    ///
    /// - Parameter decoder: The number of the format that the playout has given to the sound.
    @_noAllocation @_noLocks
    public mutating func expect(_ change: borrowing PeerChange, decoder: UInt8) {
        receiver.expect(change.formats.kinds, decoder: decoder)
        arrivals.expect(change.formats.remoteTransportSequenceIdentifier)
    }

    /// Sends in these formats from the next packet on.
    @_noAllocation @_noLocks
    public mutating func send(by change: inout PeerChange) {
        sender.change(to: &change)
        reporter.setSentClockRate(sender.formats.clockRate)
    }
}

// MARK: Receiving

extension PeerSession {
    /// Takes one datagram, decrypting it in place. What is refused may be of another call: it is counted only by
    /// ``count(_:)``, and may be half decrypted.
    ///
    /// - Parameters:
    ///   - isControl: It is RTCP by its first bytes (RFC 5761 §4), and else RTP.
    ///   - origin: The way back to where it came from. Only a packet that is taken can move the peer's address.
    ///   - arrival: When the kernel took it in.
    @_noAllocation @_noLocks
    public mutating func receive(
        _ datagram: inout MutableRawSpan, isControl: Bool, from origin: DatagramPath, at arrival: Instant
    ) -> Received {
        do throws(SRTPContext.Failure) {
            let plain = try protection.unprotect(
                &datagram, isControl: isControl, keeping: receiver.remoteSSRC, at: arrival)
            guard let length = plain else { return .refused(.early) }
            datagram = datagram._consumingExtracting(..<length)
        } catch {
            return refuse(error)
        }
        return isControl
            ? receiveControl(datagram, from: origin, at: arrival) : receiveMedia(datagram, from: origin, at: arrival)
    }

    /// A datagram that was counted as early was kept, and taken once the keys were there.
    @_noAllocation @_noLocks
    public mutating func discountEarly() { counters.dropped.early = max(0, counters.dropped.early &- 1) }

    /// Counts a datagram that was refused and is dropped.
    @_noAllocation @_noLocks
    public mutating func count(_ refusal: Refusal) {
        switch refusal {
        case .unauthenticated: counters.dropped.unauthenticated += 1
        case .replayed: counters.dropped.replayed += 1
        case .early: counters.dropped.early += 1
        case .malformed: counters.dropped.malformed += 1
        case .unknownSource: counters.dropped.ofUnknownSource += 1
        case .otherStream: counters.dropped.ofOtherStream += 1
        }
    }

    @_noAllocation @_noLocks
    private mutating func receiveMedia(
        _ datagram: borrowing MutableRawSpan, from origin: DatagramPath, at arrival: Instant
    ) -> Received {
        do throws(RTPParseError) {
            let header = try parseHeader(datagram)
            let verdict = judge(header, from: origin.remote, at: arrival)
            if case .refused = verdict { return .refused(.unknownSource) }
            guard let (kind, formats) = receiver.take(header) else {
                counters.dropped.unknownPayloadType += 1
                return .dropped
            }
            // Packets of before were not the peer's, so their stream holds up none of the peer's.
            if case .displaces = verdict { receiver.forgetStreams() }
            guard follow(header, from: origin, at: arrival) else { return .dropped }
            guard let number = count(header, kind, clockRate: formats.clockRate, at: arrival) else { return .dropped }
            arrivals.received(header, in: datagram, at: arrival)
            note(flow.received(at: arrival), .mediaReceived)
            let packet = ReceivedPacket(header, number: number, format: formats.format, arrival: arrival)
            switch kind {
            case .sound: return .media(packet)
            case .comfortNoise: return .comfortNoise(packet)
            case .redundantSound: return .redundantMedia(packet)
            case .telephoneEvent(let clockRate): return .telephoneEvent(packet, clockRate: clockRate)
            }
        } catch {
            counters.dropped.malformed += 1
            return .dropped
        }
    }

    /// Whether a packet's address is one that the peer may send from. Protected packets need no such check.
    @_noAllocation @_noLocks
    private mutating func judge(
        _ header: RTPHeader, from source: SocketAddress, at arrival: Instant
    ) -> AddressLatch.Verdict {
        guard !protection.isRequired else { return .accepted }
        return route.judgeMedia(from: source, isOfStream: receiver.isOfStream(header), at: arrival)
    }

    /// Lets address and SSRC follow a packet that was accepted.
    ///
    /// - Returns: Whether the packet belongs to the selected stream of the peer, and is not one that this side sent.
    @_noAllocation @_noLocks
    private mutating func follow(_ header: RTPHeader, from origin: DatagramPath, at arrival: Instant) -> Bool {
        var movesPath = true
        switch receiver.receive(header, at: arrival) {
        case .current(let isNewest): movesPath = isNewest
        case .takesOver: unreadEvents.insert(.routeChanged)
        case .ofOtherStream:
            counters.dropped.ofOtherStream += 1
            return false
        case .looped:
            counters.dropped.looped += 1
            return false
        }
        if movesPath, route.follow(origin, at: arrival) { unreadEvents.insert(.routeChanged) }
        return true
    }

    /// Counts a packet of the peer's stream.
    ///
    /// - Returns: Its extended sequence number; nil if it is one that this side sent.
    @_noAllocation @_noLocks
    private mutating func count(
        _ header: RTPHeader, _ kind: PayloadKinds.Kind, clockRate: Int, at arrival: Instant
    ) -> Int64? {
        var isEvent = false
        if case .telephoneEvent = kind { isEvent = true }
        let roundTrip = roundTripNanoseconds
        let isRepair = repairs.received(header.sequenceNumber, roundTrip: roundTrip, at: arrival)
        if isRepair { counters.feedback.packetsRepaired += 1 }
        let number = reporter.receivedMedia(
            header, measuresJitter: !isEvent && !isRepair, clockRate: clockRate, at: arrival)
        counters.packetsReceived += 1
        counters.payloadBytesReceived += header.payload.count
        if !isEvent, !isRepair {
            counters.senderClock.take(
                ssrc: header.ssrc, timestamp: header.timestamp, clockRateHz: clockRate, at: arrival)
        }
        return number
    }

    @_noAllocation @_noLocks
    private mutating func receiveControl(
        _ datagram: borrowing MutableRawSpan, from origin: DatagramPath, at arrival: Instant
    ) -> Received {
        if !protection.isRequired, !route.acceptsControl(from: origin.remote, at: arrival) {
            return .refused(.unknownSource)
        }
        do throws(RTCPParseError) {
            let feedback = try reporter.receive(datagram, at: arrival)
            counters.controlPacketsReceived += 1
            flow.receivedControl()
            take(feedback)
            if feedback.transportFeedbacks > 0 { try sender.receivedFeedback(datagram, at: arrival) }
            return .control
        } catch {
            counters.dropped.malformed += 1
            return .dropped
        }
    }

    @_noAllocation @_noLocks
    private mutating func take(_ feedback: RTCPSession.Feedback) {
        if let report = feedback.reportOnUs {
            counters.confirmingReports += 1
            counters.remotePacketsLost = Int(report.cumulativeLost)
            counters.remoteFractionLost = Int(report.fractionLost)
            noteConfirmation()
        }
        if let roundTrip = feedback.roundTripNanoseconds { counters.roundTripNanoseconds = roundTrip }
        counters.feedback.missingPackets += feedback.missingPackets
        counters.feedback.pictureRequests += feedback.pictureRequests
        counters.feedback.bitrateLimits += feedback.bitrateLimits
        counters.feedback.transportWide += feedback.transportFeedbacks
        // It is about packets of ours that arrived.
        counters.confirmingReports += feedback.transportFeedbacks
        if feedback.saidGoodbye { unreadEvents.insert(.goodbyeReceived) }
    }

    @_noAllocation @_noLocks
    private mutating func refuse(_ failure: SRTPContext.Failure) -> Received {
        switch failure {
        case .authentication: return .refused(.unauthenticated)
        case .replay: return .refused(.replayed)
        case .tooManySources: return .refused(.otherStream)
        case .malformed: return .refused(.malformed)
        }
    }
}

// MARK: Sending

extension PeerSession {
    /// Puts the header in front of a payload that lies behind ``mediaHeaderBytes`` of `packet`, and protects both.
    ///
    /// - Parameters:
    ///   - timestamp: Media time, in ticks of the codec.
    ///   - isRedundant: The payload is one of those that repeat earlier frames, which the peer must take.
    ///   - isNoise: The payload describes noise (RFC 3389), which the peer must take.
    ///   - level: How loud the payload is, for packets that carry it.
    ///   - packet: Has ``maximumProtectionBytes`` of room behind the payload.
    /// - Returns: The packet's length; 0 if it could not be protected.
    @_noAllocation @_noLocks
    public mutating func writeMedia(
        payloadBytes: Int, timestamp: UInt32, marker: Bool, isRedundant: Bool = false, isNoise: Bool = false,
        level: AudioLevel = AudioLevel(attenuation: 127, isVoice: false),
        at now: Instant, into packet: inout MutableRawSpan
    ) -> Int {
        var payload = MediaSender.Payload.sound
        if isRedundant { payload = .redundantSound }
        if isNoise { payload = .comfortNoise }
        let length = sender.write(
            payload, bytes: payloadBytes, timestamp: timestamp, marker: marker, level: level, at: now, into: &packet,
            with: &protection)
        if length > 0 { noteSent(payloadBytes: payloadBytes, mediaTime: timestamp, at: now) }
        return length
    }

    /// Writes a packet of a telephone event, and protects it.
    ///
    /// - Parameters:
    ///   - mediaTime: The position of our sound, for reports.
    ///   - packet: Has ``maximumProtectionBytes`` of room behind header and payload.
    /// - Returns: The packet's length; 0 if it could not be protected, or events were not agreed on.
    @_noAllocation @_noLocks
    public mutating func writeTelephoneEvent(
        _ event: TelephoneEventSender.Packet, mediaTime: UInt32, at now: Instant, into packet: inout MutableRawSpan
    ) -> Int {
        guard let format = sender.formats.kinds.firstEvents else { return 0 }
        let (start, bytes) = (mediaHeaderBytes, TelephoneEventPayload.size)
        guard packet.byteCount >= start + bytes + Self.maximumProtectionBytes else { return 0 }
        var writer = ByteWriter(packet._mutatingExtracting(start..<(start + bytes)))
        event.payload.write(into: &writer)
        let length = sender.write(
            .telephoneEvent(payloadType: format.sendPayloadType), bytes: bytes, timestamp: event.timestamp,
            marker: event.marker, level: AudioLevel(attenuation: 127, isVoice: false), at: now, into: &packet,
            with: &protection)
        if length > 0 { noteSent(payloadBytes: bytes, mediaTime: mediaTime, at: now) }
        return length
    }

    /// Records that a media packet is sent.
    @_noAllocation @_noLocks
    private mutating func noteSent(payloadBytes: Int, mediaTime: UInt32, at now: Instant) {
        counters.packetsSent += 1
        counters.payloadBytesSent += payloadBytes
        reporter.sentMedia(payloadBytes: payloadBytes, timestamp: mediaTime, at: now)
        if case .flowing = flow.sent(at: now) { unreadEvents.insert(.flowing) }
    }
}

// MARK: RTCP

extension PeerSession {
    /// Whether ``writeControl(at:wallNanoseconds:into:)`` has something to send.
    @_noAllocation @_noLocks
    public func isControlDue(at now: Instant) -> Bool { reporter.isDue(at: now, hasReceivedMedia: hasReceivedMedia) }

    /// Writes the report that is due, protected.
    ///
    /// - Parameter wallNanoseconds: Time of day at `now`, since 1970.
    /// - Returns: The datagram's length; 0 if there is nothing to send.
    @_noAllocation @_noLocks
    public mutating func writeControl(
        at now: Instant, wallNanoseconds: Int64, into packet: inout MutableRawSpan
    ) -> Int {
        let length = reporter.write(at: now, wallNanoseconds: wallNanoseconds, into: &packet)
        return protectControl(&packet, length)
    }

    /// Whether ``writeFeedback(at:into:)`` has something to send: ten times a second if packets that are counted come.
    @_noAllocation @_noLocks
    public func isFeedbackDue(at now: Instant) -> Bool { arrivals.isDue(at: now) }

    /// Writes when the peer's packets have come, protected; 256 of them at most, and the rest the next time.
    ///
    /// - Returns: The datagram's length; 0 if there is nothing to send.
    @_noAllocation @_noLocks
    public mutating func writeFeedback(at now: Instant, into packet: inout MutableRawSpan) -> Int {
        guard let media = receiver.remoteSSRC else { return 0 }
        let start = reporter.writeFront(isReducedSize: sender.formats.usesReducedSizeRTCP, into: &packet)
        var rest = packet._mutatingExtracting(start...)
        let length = arrivals.write(on: media, at: now, into: &rest)
        guard length > 0 else { return 0 }
        let protected = protectControl(&packet, start + length)
        if protected > 0 { counters.feedback.sent += 1 }
        return protected
    }

    /// Writes a last report with a goodbye (RFC 3550 §6.6), protected.
    ///
    /// - Returns: The datagram's length; 0 if there is no peer to send a BYE to.
    @_noAllocation @_noLocks
    public mutating func writeGoodbye(
        at now: Instant, wallNanoseconds: Int64, into packet: inout MutableRawSpan
    ) -> Int {
        let length = reporter.writeGoodbye(at: now, wallNanoseconds: wallNanoseconds, into: &packet)
        return protectControl(&packet, length)
    }

    @_noAllocation @_noLocks
    private mutating func protectControl(_ packet: inout MutableRawSpan, _ length: Int) -> Int {
        guard length > 0 else { return 0 }
        let protected = protection.protectControl(&packet, length: length)
        if protected > 0 { counters.controlPacketsSent += 1 }
        return protected
    }
}

// MARK: Packets that are lost and sent again (RFC 4585 §6.2.1)

extension PeerSession {
    /// How long after we ask for a packet it comes; nil while that is not known, or if the peer does not answer.
    @_noAllocation @_noLocks
    public mutating func repairNanoseconds(at now: Instant) -> Int64? {
        guard sender.formats.repairsLoss else { return nil }
        let roundTrip = roundTripNanoseconds
        return repairs.answerNanoseconds(roundTrip: roundTrip, at: now)
    }

    /// Asks for a packet of the peer's with the next ``writeRequests(into:)``, if it can come in time. To be called in the
    /// order of the numbers.
    ///
    /// - Parameter nanosecondsLeft: Until it must be there.
    /// - Returns: Whether it is asked for.
    @_noAllocation @_noLocks
    public mutating func ask(for number: UInt16, nanosecondsLeft: Int64, at now: Instant) -> Bool {
        guard sender.formats.repairsLoss, let media = receiver.remoteSSRC else { return false }
        let roundTrip = roundTripNanoseconds
        guard repairs.ask(for: number, of: media, nanosecondsLeft: nanosecondsLeft, roundTrip: roundTrip, at: now)
        else { return false }
        counters.feedback.packetsRequested += 1
        return true
    }

    /// Writes the request for the packets that ``ask(for:nanosecondsLeft:at:)`` has gathered, protected.
    ///
    /// - Returns: The datagram's length; 0 if nothing is asked for.
    @_noAllocation @_noLocks
    public mutating func writeRequests(into packet: inout MutableRawSpan) -> Int {
        guard !repairs.isEmpty else { return 0 }
        let start = reporter.writeFront(isReducedSize: sender.formats.usesReducedSizeRTCP, into: &packet)
        var rest = packet._mutatingExtracting(start...)
        let length = repairs.write(into: &rest)
        guard length > 0 else { return 0 }
        return protectControl(&packet, start + length)
    }

    /// Writes the next sent packet that the peer has requested again and that may be retransmitted, unchanged.
    ///
    /// - Returns: The packet's length; 0 if there is none.
    @_noAllocation @_noLocks
    public mutating func writeRepair(at now: Instant, into packet: inout MutableRawSpan) -> Int {
        guard sender.formats.repairsLoss else { return 0 }
        let roundTrip = roundTripNanoseconds
        while let number = reporter.takeRequested() {
            let length = sender.writeAgain(number, roundTrip: roundTrip, at: now, into: &packet)
            if length > 0 {
                counters.feedback.packetsResent += 1
                return length
            }
            counters.feedback.packetsNotResent += 1
        }
        return 0
    }
}

// MARK: What becomes known

extension PeerSession {
    /// Takes over what the flow has found out.
    @_noAllocation @_noLocks
    private mutating func note(_ change: MediaFlow.Change, _ other: Events) {
        switch change {
        case .nothing: return
        case .begun: unreadEvents.insert(other)
        case .flowing:
            unreadEvents.insert(other)
            unreadEvents.insert(.flowing)
        }
    }

    /// Takes over what the peer's report says about our packets' arrival.
    @_noAllocation @_noLocks
    private mutating func noteConfirmation() {
        if case .flowing = flow.confirmed() { unreadEvents.insert(.flowing) }
    }
}

// What follows looks at a datagram without changing it. Unoptimised code counts the end of such a view as a
// deallocation, though there is nothing to free, so it is not analysed; what it calls is.

@_semantics("no_performance_analysis") @inline(__always)
private func parseHeader(_ datagram: borrowing MutableRawSpan) throws(RTPParseError) -> RTPHeader {
    try RTPHeader(parsing: datagram.bytes)
}
