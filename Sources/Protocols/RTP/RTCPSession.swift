public import Core

/// One side's RTCP in a call between two: counts what is sent and received, and writes and reads the reports.
///
/// A core: its inputs are packets and times, and its caller sends the bytes. All of it may run on a media thread.
public struct RTCPSession: Sendable {
    /// Our identity and the interval of our reports.
    public struct Configuration: Sendable {
        /// Our stream.
        public var ssrc: UInt32
        /// Our canonical name; the same for all streams of one endpoint and unlike any other's (RFC 7022).
        public var canonicalName: ShortText
        /// Ticks of the RTP timestamp per second, in both directions at first.
        public var clockRate: Int
        /// How often reports go out.
        public var timing: RTCPScheduler.Configuration

        /// Makes a configuration.
        public init(
            ssrc: UInt32, canonicalName: String, clockRate: Int = 48_000,
            timing: RTCPScheduler.Configuration = .init()
        ) {
            self.ssrc = ssrc
            self.canonicalName = ShortText(canonicalName)
            self.clockRate = clockRate
            self.timing = timing
        }
    }

    /// The result of an incoming RTP packet.
    public enum Reception: Equatable, Sendable {
        /// It belongs to the stream that we follow.
        case known(ReceptionStatistics.Arrival)
        /// The first packet of a stream that now replaces the previous one; its count starts over.
        case newSource(ReceptionStatistics.Arrival)
        /// It carries our own SSRC: a loop, or a collision to be settled by taking another (RFC 3550 §8.2).
        case ownSource
    }

    /// The content of an incoming compound packet.
    public struct Feedback: Equatable, Sendable {
        /// The stream that we receive has sent BYE.
        public var saidGoodbye = false
        /// The peer's report on our stream.
        public var reportOnUs: ReportBlock?
        /// Time from us to the peer and back, measured by this packet.
        public var roundTripNanoseconds: Int64?
        /// Packets that the peer asks for again (NACK).
        public var missingPackets = 0
        /// Missing packets that were not requested before: lost on the path to the peer.
        public var newlyMissingPackets = 0
        /// Requests for a whole picture.
        public var pictureRequests = 0
        /// Limits of the bitrate (REMB).
        public var bitrateLimits = 0
        /// Packets about arrival times over the transport.
        public var transportFeedbacks = 0

        @_noAllocation @_noLocks
        init() {}
    }

    /// Counts of the stream received; `nil` before its first packet.
    public private(set) var reception: ReceptionStatistics?
    /// The stream received; `nil` before its first packet.
    public private(set) var remoteSSRC: UInt32?
    /// Streams that replaced another.
    public private(set) var sourceChanges: Int64 = 0
    /// The peer's newest report on our stream.
    public private(set) var reportOnUs: ReportBlock?
    /// The newest round trip, from the peer's report on us.
    public private(set) var roundTripNanoseconds: Int64?
    /// RTP packets sent.
    public private(set) var packetsSent: Int64 = 0
    /// Bytes of RTP payload sent.
    public private(set) var octetsSent: Int64 = 0
    /// The peer's canonical name; empty before it is known.
    public private(set) var remoteCanonicalName = ShortText()

    private let configuration: Configuration
    /// Ticks per second of what we send.
    private var clockRate: Int
    private var scheduler: RTCPScheduler
    private var lastSent: (timestamp: UInt32, at: Instant)?
    private var packetsSentAtReport: (last: Int64, beforeLast: Int64) = (0, 0)
    private var peerReport: PeerReport?
    private var sentReports = SentReports()
    /// A reference time of a peer that only receives, to be sent back with our next report.
    private var peerReference: PeerReport?
    private var requested = RequestedPackets()
    private var requestHistory = RequestHistory()

    private struct PeerReport {
        var ssrc: UInt32
        var middle: UInt32
        var arrival: Instant
    }

    /// Joins the session at `now`.
    public init(configuration: Configuration, at now: Instant) {
        self.configuration = configuration
        clockRate = configuration.clockRate
        scheduler = RTCPScheduler(configuration: configuration.timing, at: now)
    }

    /// When ``writeReport(at:ntp:random:into:)`` is next to be called.
    public var nextDeadline: Instant {
        @_noAllocation @_noLocks get { scheduler.nextDeadline }
    }

    /// One of our RTP packets was sent.
    @_noAllocation @_noLocks
    public mutating func sentMedia(payloadOctets: Int, timestamp: UInt32, at now: Instant) {
        packetsSent += 1
        octetsSent += Int64(payloadOctets)
        lastSent = (timestamp, now)
    }

    /// Sets the clock rate of timestamps that we send, from the next packet on: the codec has changed.
    @_noAllocation @_noLocks
    public mutating func sendsNow(clockRate: Int) { self.clockRate = max(1, clockRate) }

    /// An authentic RTP packet came in.
    ///
    /// - Parameters:
    ///   - measuresJitter: Its timestamp advances with time, unlike that of a telephone event.
    ///   - clockRate: Ticks of its timestamp per second; nil: those of the configuration.
    @_noAllocation @_noLocks
    public mutating func receivedMedia(
        _ header: RTPHeader, at arrival: Instant, measuresJitter: Bool = true, clockRate: Int? = nil
    ) -> Reception {
        guard header.ssrc != configuration.ssrc else { return .ownSource }
        scheduler.heardMedia(at: arrival)
        if header.ssrc == remoteSSRC, var statistics = reception {
            let packet = statistics.receive(
                header, at: arrival, measuresJitter: measuresJitter, clockRate: clockRate)
            reception = statistics
            return .known(packet)
        }
        if case .some = remoteSSRC { sourceChanges += 1 }
        remoteSSRC = header.ssrc
        var statistics = ReceptionStatistics(clockRate: max(1, clockRate ?? configuration.clockRate))
        let packet = statistics.receive(header, at: arrival, measuresJitter: measuresJitter)
        reception = statistics
        return .newSource(packet)
    }
}

extension RTCPSession {
    /// An authentic compound packet came in, or feedback alone (RFC 5506).
    ///
    /// - Throws: ``RTCPParseError`` if it is none; then nothing of it has taken effect.
    @_noAllocation @_noLocks
    public mutating func received(_ datagram: RawSpan, at arrival: Instant) throws(RTCPParseError)
        -> Feedback
    {
        var reader = try RTCPReader(validating: datagram)
        var feedback = Feedback()
        while let packet = reader.next(in: datagram) {
            switch packet {
            case .senderReport(let ssrc, let info, let blocks):
                guard ssrc != configuration.ssrc else { break }
                if ssrc == remoteSSRC || peerReport?.ssrc != remoteSSRC {
                    peerReport = PeerReport(ssrc: ssrc, middle: info.ntp.middle, arrival: arrival)
                }
                take(blocks, in: datagram, at: arrival, into: &feedback)
            case .receiverReport(let ssrc, let blocks):
                guard ssrc != configuration.ssrc else { break }
                take(blocks, in: datagram, at: arrival, into: &feedback)
            case .sourceDescription(let descriptions):
                if let ssrc = remoteSSRC ?? peerReport?.ssrc,
                    let range = descriptions.canonicalName(of: ssrc, in: datagram)
                {
                    remoteCanonicalName = ShortText(copying: range, of: datagram)
                }
            case .goodbye(let goodbye):
                if let ssrc = remoteSSRC ?? peerReport?.ssrc, goodbye.names(ssrc, in: datagram) {
                    feedback.saidGoodbye = true
                }
            case .other(let type, let body):
                take(type, body, in: datagram, at: arrival, into: &feedback)
            }
        }
        if feedback.saidGoodbye {
            scheduler.heardGoodbye(octets: datagram.byteCount, at: arrival)
        } else {
            scheduler.heardReport(octets: datagram.byteCount, at: arrival)
        }
        return feedback
    }

    /// The next of our packets that the peer has requested and that was not taken yet. At most 64 are remembered.
    @_noAllocation @_noLocks
    public mutating func takeRequested() -> UInt16? { requested.take() }

    /// Feedback and extended reports. Malformed or unknown content within its bounds is ignored.
    @_noAllocation @_noLocks
    private mutating func take(
        _ type: UInt8, _ body: Range<Int>, in datagram: RawSpan, at arrival: Instant, into feedback: inout Feedback
    ) {
        if type == 207 {
            let report = ExtendedReport(type: type, body: body, answering: configuration.ssrc, in: datagram)
            if let time = report?.referenceTime, let ssrc = datagram.uint32(at: body.lowerBound) {
                peerReference = PeerReport(ssrc: ssrc, middle: time.middle, arrival: arrival)
            }
            return
        }
        switch RTCPFeedback(type: type, body: body, in: datagram) {
        case .nack(let media, var missing)?:
            while let number = missing.next(in: datagram) {
                feedback.missingPackets += 1
                guard media == configuration.ssrc else { continue }
                requested.append(number)
                if requestHistory.insert(number) { feedback.newlyMissingPackets += 1 }
            }
        case .transportWide?: feedback.transportFeedbacks += 1
        case .pictureRequest?: feedback.pictureRequests += 1
        case .maximumBitrate?: feedback.bitrateLimits += 1
        case .other?, nil: break
        }
    }

    @_noAllocation @_noLocks
    private mutating func take(
        _ blocks: ReportBlocks, in datagram: RawSpan, at arrival: Instant, into feedback: inout Feedback
    ) {
        guard let block = blocks.block(on: configuration.ssrc, in: datagram) else { return }
        reportOnUs = block
        feedback.reportOnUs = block
        // Measured from our own monotonic time of sending, so a stepped wall clock does not show.
        guard block.lastSenderReport != 0, let sentAt = sentReports.time(of: block.lastSenderReport)
        else { return }
        let held = Int64(block.delaySinceLastSenderReport) * 1_000_000_000 >> 16
        let roundTrip = sentAt.nanoseconds(to: arrival) - held
        // DLSR counts in 15 µs steps, so a very short trip may come out just below zero.
        guard roundTrip > -1_000_000 else { return }
        roundTripNanoseconds = max(0, roundTrip)
        feedback.roundTripNanoseconds = roundTripNanoseconds
    }

    /// Writes the report that is due, if one is.
    ///
    /// - Parameters:
    ///   - ntp: Time of day at `now`.
    ///   - random: 64 random bits.
    ///   - datagram: At least ``CompoundReport/maximumSize`` bytes.
    /// - Returns: Bytes to send, or zero if the report is not due yet; ``nextDeadline`` has moved on.
    @_noAllocation @_noLocks
    public mutating func writeReport(
        at now: Instant, ntp: NTPTimestamp, random: UInt64, into datagram: inout MutableRawSpan
    ) -> Int {
        let weSent = packetsSent > packetsSentAtReport.beforeLast
        guard scheduler.timerFired(at: now, weSent: weSent, random: random) else { return 0 }
        let size = write(goodbye: nil, weSent: weSent, at: now, ntp: ntp, into: &datagram)
        packetsSentAtReport = (packetsSent, packetsSentAtReport.last)
        // A second draw from the same bits, spread by an odd multiplier.
        let redrawn = random &* 0xD134_2543_DE82_EF95 &+ 0x9E37_79B9_7F4A_7C15
        scheduler.sent(octets: size, at: now, weSent: weSent, random: redrawn)
        return size
    }

    /// Writes a last report with a goodbye. In a session of fewer than 50 it may go at once (RFC 3550 §6.3.7).
    ///
    /// - Parameter reason: Sent to the peer; may be empty.
    /// - Returns: Bytes to send; zero if `datagram` is too short, or nothing was ever sent (then §6.3.7 forbids it).
    @_noAllocation @_noLocks
    public mutating func writeGoodbye(
        reason: ShortText, at now: Instant, ntp: NTPTimestamp, into datagram: inout MutableRawSpan
    ) -> Int {
        guard packetsSent > 0 || sentReports.hasAny else { return 0 }
        return write(
            goodbye: reason, weSent: packetsSent > packetsSentAtReport.beforeLast, at: now, ntp: ntp,
            into: &datagram)
    }

    @_noAllocation @_noLocks
    private mutating func write(
        goodbye: ShortText?, weSent: Bool, at now: Instant, ntp: NTPTimestamp,
        into datagram: inout MutableRawSpan
    ) -> Int {
        var sender: SenderInfo?
        if weSent, let last = lastSent {
            let ahead = MediaClock.ticks(
                fromNanoseconds: last.at.nanoseconds(to: now), clockRate: clockRate)
            sender = SenderInfo(
                ntp: ntp, rtpTimestamp: last.timestamp &+ UInt32(truncatingIfNeeded: ahead),
                packetCount: UInt32(truncatingIfNeeded: packetsSent),
                octetCount: UInt32(truncatingIfNeeded: octetsSent))
        }
        let report = CompoundReport(
            ssrc: configuration.ssrc, sender: sender, block: makeBlock(at: now),
            canonicalName: configuration.canonicalName, goodbye: goodbye)
        var size = report.write(into: &datagram)
        // A goodbye comes last (RFC 3550 §6.1).
        if case .none = goodbye { size += writeReference(after: size, at: now, into: &datagram) }
        var hasSender = false
        if case .some = sender { hasSender = true }
        if size > 0 { sentReports.note(ntp.middle, isSenderReport: hasSender, at: now) }
        return size
    }

    /// Writes an empty report, to precede feedback that may not be sent alone (RFC 4585 §3.1).
    ///
    /// Mutating because a session that is only borrowed is copied; it changes nothing.
    ///
    /// - Returns: Bytes written; zero if `datagram` is too short.
    @_noAllocation @_noLocks
    public mutating func writeEmptyReport(into datagram: inout MutableRawSpan) -> Int {
        CompoundReport(
            ssrc: configuration.ssrc, sender: nil, block: nil, canonicalName: configuration.canonicalName
        ).write(into: &datagram)
    }

    /// Sends the peer's reference time back behind a report (RFC 3611 §4.5), once.
    @_noAllocation @_noLocks
    private mutating func writeReference(after size: Int, at now: Instant, into datagram: inout MutableRawSpan) -> Int {
        guard size > 0, let reference = peerReference else { return 0 }
        peerReference = nil
        var report = ExtendedReport()
        report.addressee = reference.ssrc
        report.lastReference = reference.middle
        report.delaySinceLastReference = Self.delay(since: reference.arrival, at: now)
        var rest = datagram._mutatingExtracting(size...)
        return report.write(sender: configuration.ssrc, into: &rest)
    }

    /// Time since `arrival` in 1/65536 s.
    @_noAllocation @_noLocks
    private static func delay(since arrival: Instant, at now: Instant) -> UInt32 {
        let held = max(0, arrival.nanoseconds(to: now))
        let (seconds, rest) = held.quotientAndRemainder(dividingBy: 1_000_000_000)
        return UInt32(truncatingIfNeeded: min(seconds << 16 + rest << 16 / 1_000_000_000, Int64(UInt32.max)))
    }

    @_noAllocation @_noLocks
    private mutating func makeBlock(at now: Instant) -> ReportBlock? {
        guard let ssrc = remoteSSRC, var statistics = reception, statistics.isStarted else {
            return nil
        }
        var block = statistics.makeReport(on: ssrc)
        reception = statistics
        if let report = peerReport, report.ssrc == ssrc {
            block.lastSenderReport = report.middle
            block.delaySinceLastSenderReport = Self.delay(since: report.arrival, at: now)
        }
        return block
    }
}
