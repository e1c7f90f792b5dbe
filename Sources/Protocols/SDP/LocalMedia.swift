/// Our side of a call's offer or answer.
public struct LocalMedia: Sendable {
    /// Address that the peer is to send to: IPv4 or IPv6, in text. With ICE, only peers without ICE use it; all zeros
    /// then mean the default among the candidates.
    public var address: String
    /// Port for RTP and RTCP both.
    public var port: UInt16
    /// Our stream.
    public var ssrc: UInt32
    /// Our canonical name.
    public var canonicalName: String
    /// Number that identifies the session in the `o=` line.
    public var sessionID: UInt64
    /// Codecs that we allow, the preferred one first.
    public var codecs: [AudioCodec]
    /// Opus parameters of what we receive.
    public var opus: OpusParameters
    /// Payload type to offer for Opus: 96…127.
    public var payloadType: Int
    /// Length of packets that we ask to receive, and that we send unless the peer asks for another: 10, 20, 40 or 60
    /// ms.
    public var packetTimeMilliseconds: Int
    /// Longest packet that we accept, in milliseconds; `nil` announces no limit.
    public var maximumPacketTimeMilliseconds: Int?
    /// Directions that we allow.
    public var direction: MediaDirection
    /// Kinds of media protection that we allow, the preferred one first. An offer is made with the first.
    public var keying: [LocalKeying]
    /// Names our end of the DTLS association in offers, and in answers to peers that name theirs (RFC 8842 §4): at least 20 letters and digits, new
    /// with each association; `nil` never names it.
    public var tlsID: String?
    /// Our parameters for ICE; without them the peer sends to ``address``.
    public var ice: LocalICE?
    /// Name of the local section in an offer: letters and digits, at most 16. It is needed for bundling.
    public var mid: String?
    /// The stream that our sound belongs to (RFC 8830).
    public var stream: MediaStreamName?
    /// Redundant Opus is read and written (RFC 2198).
    public var usesRedundancy: Bool
    /// Comfort noise of G.711 is read and written (RFC 3389).
    public var usesComfortNoise: Bool
    /// Telephone events that we accept, such as `0-16`; `nil` if we accept none (RFC 4733 §2.4.1).
    public var telephoneEvents: String?
    /// Header extensions that are read and written.
    public var headerExtensions: [RTPHeaderExtensionKind]
    /// Kinds of feedback that we send and use (RFC 4585); they need a profile with feedback.
    public var feedback: [RTCPFeedbackKind]

    /// Opus in both directions, in packets of 20 ms, to an address that the peer can reach.
    public init(
        address: String, port: UInt16, ssrc: UInt32, canonicalName: String, sessionID: UInt64, keying: [LocalKeying]
    ) {
        self.address = address
        self.port = port
        self.ssrc = ssrc
        self.canonicalName = canonicalName
        self.sessionID = sessionID
        self.keying = keying
        codecs = [.opus]
        opus = OpusParameters()
        opus.usesInbandFEC = true
        opus.minimumPacketTimeMilliseconds = 10
        payloadType = 111
        packetTimeMilliseconds = 20
        direction = .sendrecv
        usesRedundancy = false
        usesComfortNoise = false
        headerExtensions = []
        feedback = []
    }

    /// Opus in both directions over ICE, with telephone events and the header extensions and feedback of browsers.
    public init(
        ice: LocalICE, ssrc: UInt32, canonicalName: String, sessionID: UInt64, keying: [LocalKeying]
    ) {
        self.init(
            address: "0.0.0.0", port: 9, ssrc: ssrc, canonicalName: canonicalName, sessionID: sessionID,
            keying: keying)
        self.ice = ice
        mid = "0"
        stream = MediaStreamName(stream: nil, track: nil)
        usesRedundancy = true
        telephoneEvents = "0-16"
        headerExtensions = RTPHeaderExtensionKind.allCases
        feedback = [.transportWide]
    }
}

/// A kind of media protection, with our parameters.
public enum LocalKeying: Equatable, Sendable {
    /// Keys from a DTLS handshake on the media path (RFC 5764), whose ends know each other by these fingerprints of our
    /// certificate. `answeringAs` is our part where an offer leaves it to us; active saves a round trip.
    case dtls(fingerprints: [Fingerprint], answeringAs: DTLSRole = .active)
    /// Keys written in the descriptions (RFC 4568), so only where signaling is itself protected. One fresh key for each
    /// suite, the preferred suite first; never a key that another call has.
    case sdes([SDESKey])
    /// None. Anyone on the path can listen.
    case plain
}

/// The value of an `msid` attribute (RFC 8830): the stream that a section's sound belongs to.
public struct MediaStreamName: Equatable, Hashable, Sendable {
    /// `nil` if it belongs to none, which is written as a dash.
    public var stream: String?
    /// Name of the track, which many peers do not write. We always write one, because Janus 1.1 refuses a section
    /// without it: ``LocalMedia/canonicalName`` where this is `nil`.
    public var track: String?

    /// Makes a name; both parts are letters, digits and the marks of a token, at most 64.
    public init(stream: String?, track: String?) {
        self.stream = stream
        self.track = track
    }

    init?(parsing value: String) {
        let fields = value.split(separator: " ", omittingEmptySubsequences: true)
        guard let first = fields.first, fields.count <= 2 else { return nil }
        self.init(stream: first == "-" ? nil : String(first), track: fields.count > 1 ? String(fields[1]) : nil)
    }

    /// The attribute's value.
    ///
    /// - Parameter fallback: The track's name if it has none.
    func text(orTrack fallback: String) -> String { "\(stream ?? "-") \(track ?? fallback)" }
}

/// A kind of feedback in RTCP (RFC 4585 §4.2), as `rtcp-fb` lines write it.
public enum RTCPFeedbackKind: String, Equatable, Hashable, Sendable, CaseIterable {
    /// Arrival times of all packets of the transport, for estimating bandwidth.
    case transportWide = "transport-cc"
    /// Packets that are missing (RFC 4585 §6.2.1).
    case nack = "nack"
}
