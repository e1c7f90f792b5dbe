import Realtime
import FoundationEssentials
import Core
import SecureTransport

/// This side of one call's media: a socket, the key of what leaves it, and the stream's name.
final class LocalEnd: Sendable {
    /// Where the device sends to. Closed with this object, which frees the port for loadgen.
    let socket: UDPSocket
    let key: SRTPKey
    let ssrc = UInt32.random(in: .min ... .max)
    /// The payload type of Opus, both ways.
    static let payloadType = 111

    /// - Parameter port: 0 for one of the system's choice.
    init(_ suite: SRTPSuite, port: UInt16 = 0) throws {
        guard let loopback = SocketAddress(host: "127.0.0.1", port: port) else { throw CallFailure("no IPv4 loopback") }
        socket = try UDPSocket(boundTo: loopback)
        var generator = SystemRandomNumberGenerator()
        key = SRTPKey.random(suite, using: &generator)
    }

    /// The offer of this end, written out by hand: a peer that is not made of the device's own code.
    var offer: String {
        """
        v=0\r
        o=- \(ssrc) 1 IN IP4 127.0.0.1\r
        s=-\r
        c=IN IP4 127.0.0.1\r
        t=0 0\r
        m=audio \(socket.localAddress.port) RTP/SAVP \(Self.payloadType)\r
        a=rtpmap:\(Self.payloadType) opus/48000/2\r
        a=fmtp:\(Self.payloadType) minptime=10;useinbandfec=1\r
        a=ptime:20\r
        a=crypto:1 \(key.suite.rawValue) inline:\(key.base64)\r
        a=ssrc:\(ssrc) cname:callers\r
        a=rtcp-mux\r
        a=sendrecv\r

        """
    }
}

extension SRTPKey {
    /// As SDES carries it (RFC 4568 §6.1).
    var base64: String { Data(keyAndSalt).base64EncodedString() }

    init?(suite: SRTPSuite, base64: some StringProtocol) {
        guard let bytes = Data(base64Encoded: String(base64)) else { return nil }
        self.init(suite: suite, keyAndSalt: Array(bytes))
    }
}
