/// Statistics of one call's network half. A plain value, copied on the media thread.
public struct PeerStatistics: BitwiseCopyable, Sendable {
    /// RTP packets sent.
    public internal(set) var packetsSent = 0
    /// Bytes of Opus sent, without headers and tags.
    public internal(set) var payloadBytesSent = 0
    /// RTP packets received and authenticated.
    public internal(set) var packetsReceived = 0
    /// Bytes of Opus received.
    public internal(set) var payloadBytesReceived = 0
    /// Packets of the peer that never came, by RFC 3550 A.3's count; below zero if there were duplicates.
    public internal(set) var packetsLost = 0
    /// Interarrival jitter (RFC 3550 §6.4.1), in nanoseconds.
    public internal(set) var jitterNanoseconds: Int64 = 0
    /// Round-trip time by the peer's latest report; zero if it has made none.
    public internal(set) var roundTripNanoseconds: Int64 = 0
    /// How many of our packets the peer reports as lost, in all; zero if it has made no report.
    public internal(set) var remotePacketsLost = 0
    /// The share of our packets that the peer lost lately, in 256ths (RFC 3550 §6.4.1).
    public internal(set) var remoteFractionLost = 0
    /// Reports and feedback of the peer that confirm packets of this side. If ``controlPacketsReceived`` increases and this does not, the
    /// peer receives no packet of this side.
    public internal(set) var confirmingReports = 0
    /// How fast the timestamps of the peer's packets advance.
    public internal(set) var senderClock = SenderClock()
    /// RTCP packets sent.
    public internal(set) var controlPacketsSent = 0
    /// RTCP packets received and authenticated.
    public internal(set) var controlPacketsReceived = 0
    /// Feedback beside the reports.
    public internal(set) var feedback = FeedbackCounters()
    /// What was dropped, and why.
    public internal(set) var dropped = DropCounters()

    /// Nothing seen yet.
    public init() {}
}

/// Feedback in RTCP beside the reports (RFC 4585).
public struct FeedbackCounters: BitwiseCopyable, Sendable {
    /// Sent packets that reported the arrivals of the peer's packets.
    public internal(set) var sent = 0
    /// Received packets that reported the arrivals of our packets.
    public internal(set) var transportWide = 0
    /// Our packets that the peer requested again.
    public internal(set) var missingPackets = 0
    /// Those that were sent again.
    public internal(set) var packetsResent = 0
    /// Those that were not: discarded before, on their way already, or too many.
    public internal(set) var packetsNotResent = 0
    /// Packets of the peer's that we asked for again.
    public internal(set) var packetsRequested = 0
    /// Those that came.
    public internal(set) var packetsRepaired = 0
    /// Requests for a whole picture: nothing to us, who send sound.
    public internal(set) var pictureRequests = 0
    /// Limits that the peer set to the bitrate of all that it receives (REMB).
    public internal(set) var bitrateLimits = 0

    /// Nothing seen yet.
    public init() {}
}

/// Packets that reached a call and were dropped, by reason.
public struct DropCounters: BitwiseCopyable, Sendable {
    /// Their authentication tag was wrong: another key, or changed on the way.
    public internal(set) var unauthenticated = 0
    /// They came before keys were agreed on, and were not kept until then.
    public internal(set) var early = 0
    /// They had been received before, or were too old to know.
    public internal(set) var replayed = 0
    /// They were no RTP or RTCP, or cut short.
    public internal(set) var malformed = 0
    /// Their payload type was not negotiated.
    public internal(set) var unknownPayloadType = 0
    /// They carried our own SSRC (RFC 3550 §8.2).
    public internal(set) var looped = 0

    /// They belonged to a stream that another has replaced (``StreamSelector``).
    public internal(set) var ofOtherStream = 0
    /// They had no protection, and came from an address that is not the peer's.
    public internal(set) var ofUnknownSource = 0

    /// The reasons for which packets were dropped, and how many for each, such as "early 1, replayed 2"; empty if none were.
    public var reasons: String {
        counts.filter { $0.count > 0 }.map { "\($0.reason) \($0.count)" }.joined(separator: ", ")
    }

    /// The number for each reason.
    package var counts: [(reason: String, count: Int)] {
        [
            ("unauthenticated", unauthenticated), ("early", early), ("replayed", replayed), ("malformed", malformed),
            ("unknown payload type", unknownPayloadType), ("looped", looped), ("other stream", ofOtherStream),
            ("unknown source", ofUnknownSource),
        ]
    }

    /// All of them.
    public var total: Int {
        unauthenticated + early + replayed + malformed + unknownPayloadType + looped + ofOtherStream + ofUnknownSource
    }

    /// Nothing seen yet.
    public init() {}
}
