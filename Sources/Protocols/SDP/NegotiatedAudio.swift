/// What offer and answer have agreed on.
public struct NegotiatedAudio: Equatable, Sendable {
    /// Where our packets go.
    public var remote: MediaEndpoint
    /// Where our RTCP goes.
    public var control: ControlRoute
    /// Payload type of Opus in packets that we send.
    public var sendPayloadType: UInt8
    /// Payload type of Opus in packets that we receive.
    public var receivePayloadType: UInt8
    /// What the peer wishes to receive: it binds our encoder.
    public var remoteOpus: OpusParameters
    /// Length of packets that we send: 10, 20, 40 or 60 ms.
    public var packetTimeMilliseconds: Int
    /// Which way media flows, seen from here.
    public var direction: MediaDirection
    /// The peer's stream, if it was announced.
    public var remoteSSRC: UInt32?
    /// The peer's canonical name, if it was announced.
    public var remoteCanonicalName: String?
    /// How media is protected.
    public var keying: NegotiatedKeying
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
}

/// Where RTCP goes.
public enum ControlRoute: Equatable, Sendable {
    /// With RTP (RFC 5761).
    case muxed
    /// To an address of its own.
    case separate(MediaEndpoint)
}

/// How media is protected.
public enum NegotiatedKeying: Equatable, Sendable {
    /// By keys from the descriptions. Each side protects what it sends with the key that it wrote (RFC 4568 §5.1).
    case sdes(send: SDESKey, receive: SDESKey)
    /// Not at all.
    case plain
}
