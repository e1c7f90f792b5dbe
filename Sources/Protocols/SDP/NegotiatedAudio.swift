/// The result of offer and answer.
public struct NegotiatedAudio: Equatable, Sendable {
    /// Target of our packets. With ICE it is the peer's default candidate and may be all zeros: ICE finds the path.
    public var remote: MediaEndpoint
    /// Target of our RTCP.
    public var control: ControlRoute
    /// The codecs; we send with the first (RFC 3264 §7), and the peer may send with any (§5.1).
    public var codecs: [NegotiatedCodec]
    /// Opus parameters of what the peer receives: our encoder keeps to them.
    public var remoteOpus: OpusParameters
    /// Our own number for ``codec``, if the peer's offer assigns it another: a server that connects two telephones
    /// directly may let the second telephone send with our number.
    public var ownReceivePayloadType: UInt8?
    /// Redundancy around Opus (RFC 2198), if both have it.
    public var redundancy: PayloadTypes?
    /// Comfort noise at 8 000 ticks (RFC 3389), if both have it.
    public var comfortNoise: PayloadTypes?
    /// Telephone events, once for each clock rate that both have.
    public var telephoneEvents: [NegotiatedTelephoneEvents]
    /// Length of packets that we send: 10, 20, 40 or 60 ms.
    public var packetTimeMilliseconds: Int
    /// Longest packet that the peer accepts, in milliseconds, if it announces one.
    public var remoteMaximumPacketTimeMilliseconds: Int?
    /// The highest bitrate that the peer is willing to receive, in bits per second of payloads, from its `b=` lines;
    /// `nil` without a limit, and 0 if nothing is to be sent, which ``direction`` says as well.
    public var remoteMaximumBitrate: Int?
    /// Direction of media, as seen from here.
    public var direction: MediaDirection
    /// The direction that the peer allows, from its point of view: if it does not receive, it has put us on hold.
    public var remoteDirection: MediaDirection
    /// The peer's streams that were announced, in their order.
    public var remoteSources: [UInt32]
    /// The peer's canonical name, if it was announced.
    public var remoteCanonicalName: String?
    /// Streams that the peer's sound belongs to.
    public var remoteStreams: [MediaStreamName]
    /// Name of the section, which the `mid` header extension carries.
    public var mid: String?
    /// Header extensions that may be sent or received.
    public var headerExtensions: [NegotiatedHeaderExtension]
    /// Header extensions of the one-byte and the two-byte form may be mixed (RFC 8285 §4.1.2).
    public var mixesHeaderExtensionForms: Bool
    /// RTCP packets need not begin with a report (RFC 5506).
    public var usesReducedSizeRTCP: Bool
    /// Feedback that both have.
    public var feedback: [RTCPFeedbackKind]
    /// How media is protected.
    public var keying: NegotiatedKeying
    /// The peer's name for its end of the DTLS association (RFC 8842 §4), if it gives one.
    public var remoteTLSID: String?
    /// Parameters of ICE; `nil` if the peer or we do not use ICE.
    public var ice: NegotiatedICE?

    /// The peer's stream, if it was announced.
    public var remoteSSRC: UInt32? { remoteSources.first }

    /// The codec with which we send.
    public var codec: AudioCodec { codecs.first?.codec ?? .opus }

    /// Payload type of ``codec`` in packets that we send.
    public var sendPayloadType: UInt8 { codecs.first?.payloadTypes.send ?? 0 }

    /// Payload type of ``codec`` in packets that we receive.
    public var receivePayloadType: UInt8 { codecs.first?.payloadTypes.receive ?? 0 }

    /// The peer does not listen.
    public var isHeldByPeer: Bool { !remoteDirection.receives }

    /// Number of a header extension in packets that we send; `nil` if it may not be sent.
    public func sendIdentifier(_ kind: RTPHeaderExtensionKind) -> UInt8? {
        headerExtensions.first { $0.kind == kind && $0.direction.sends }?.identifier
    }

    /// Number of a header extension in packets that we receive; `nil` if it is not to be expected.
    public func receiveIdentifier(_ kind: RTPHeaderExtensionKind) -> UInt8? {
        headerExtensions.first { $0.kind == kind && $0.direction.receives }?.identifier
    }
}

/// An address and a port, as a description names them.
public struct MediaEndpoint: Equatable, Hashable, Sendable, CustomStringConvertible {
    /// IPv4 or IPv6, in text; all zeros when the peer is on hold in the old manner.
    public var address: String
    /// 1…65535.
    public var port: UInt16

    /// Makes an endpoint.
    public init(address: String, port: UInt16) {
        self.address = address
        self.port = port
    }

    /// Address and port, as in a URL.
    public var description: String { address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)" }

    /// The address in the lines while none is known (RFC 8840 §4.1.1).
    static let unknown = MediaEndpoint(address: "0.0.0.0", port: 9)
}

/// Target of RTCP.
public enum ControlRoute: Equatable, Sendable {
    /// With RTP (RFC 5761).
    case muxed
    /// To a separate address.
    case separate(MediaEndpoint)
}

/// How media is protected.
public enum NegotiatedKeying: Equatable, Sendable {
    /// By keys from DTLS, with our part in it. The peer's certificate must have one of the fingerprints (RFC 8122
    /// §5.1).
    case dtls(remote: [Fingerprint], role: DTLSRole)
    /// By keys from the descriptions. Each side protects what it sends with the key that it wrote (RFC 4568 §5.1).
    case sdes(send: SDESKey, receive: SDESKey)
    /// Not at all.
    case plain
}

/// In what an agreement differs from the one before it.
public struct NegotiationChanges: OptionSet, Equatable, Hashable, Sendable {
    /// One bit for each change.
    public let rawValue: UInt8

    /// Makes a set of bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Nothing was agreed before.
    public static let first = NegotiationChanges(rawValue: 1)
    /// The peer's ICE credentials are new (RFC 8839 §4.4.1.1.1), or ICE has come or gone.
    public static let ice = NegotiationChanges(rawValue: 2)
    /// Keys are new: a new DTLS association (RFC 8842 §3.1), or new keys of SDES.
    public static let keys = NegotiationChanges(rawValue: 4)
    /// The direction of media changes: hold, or resume.
    public static let direction = NegotiationChanges(rawValue: 8)
    /// Codecs, payload types, header extensions, feedback, bitrate, or lengths of packets.
    public static let formats = NegotiationChanges(rawValue: 16)
    /// Addresses; with ICE they do not count.
    public static let address = NegotiationChanges(rawValue: 32)

    /// Compares two agreements; new candidates are no change.
    public init(from old: NegotiatedAudio?, to new: NegotiatedAudio) {
        guard let old else {
            self = .first
            return
        }
        var changes: NegotiationChanges = []
        if old.ice?.remote.usernameFragment != new.ice?.remote.usernameFragment
            || old.ice?.remote.password != new.ice?.remote.password
        {
            changes.insert(.ice)
        }
        if old.keying != new.keying || DTLSAgreement.differs(old.remoteTLSID, new.remoteTLSID) { changes.insert(.keys) }
        if old.direction != new.direction || old.remoteDirection != new.remoteDirection {
            changes.insert(.direction)
        }
        if new.ice == nil, old.remote != new.remote || old.control != new.control { changes.insert(.address) }
        if Self.formats(of: old) != Self.formats(of: new) { changes.insert(.formats) }
        self = changes
    }

    /// The agreement with all else taken out.
    private static func formats(of audio: NegotiatedAudio) -> NegotiatedAudio {
        var audio = audio
        audio.remote = .unknown
        audio.control = .muxed
        audio.direction = .inactive
        audio.remoteDirection = .inactive
        audio.remoteSources = []
        audio.remoteCanonicalName = nil
        audio.remoteStreams = []
        audio.keying = .plain
        audio.remoteTLSID = nil
        audio.ice = nil
        return audio
    }
}
