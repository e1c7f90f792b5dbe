public import Core

/// One DTLS association that agrees on a call's media keys (DTLS-SRTP, RFC 5764).
///
/// ``DTLSEndpoint`` is the real one. Tests in virtual time use a scripted one, because OpenSSL's timer runs on the
/// machine's clock.
public protocol DTLSHandshake: ProtocolCore, ~Copyable where Input == DTLSInput, Output == DTLSOutput {}

/// Which side starts: the values of SDP's `setup` attribute (RFC 4145 §4, RFC 8842 §5.2).
public enum DTLSRole: String, Sendable, CaseIterable {
    /// Sends the first flight: the client in the terms of DTLS.
    case active
    /// Waits for it; the server.
    case passive
}

/// Inputs of a ``DTLSHandshake``.
public enum DTLSInput: Equatable, Sendable {
    /// There is a path to the peer: begin. Datagrams that come before are lost, and the peer sends them again.
    case start
    /// The description of the peer has come, with these fingerprints; none at all match no certificate.
    ///
    /// May come before or after ``start``, even when the peer has finished its part of the handshake: keys are given
    /// out only when its certificate is known to be the promised one. Without effect once they are.
    case expect([DTLSFingerprint])
    /// A datagram of the peer, whose first byte is in 20...63 (RFC 7983 §7). Any length, any bytes.
    case received([UInt8])
    /// `nextDeadline` has come. Early calls are harmless.
    case timerFired
    /// The call has ended: notify the peer, and end.
    case close
}

/// Outputs of a ``DTLSHandshake``.
public enum DTLSOutput: Equatable, Sendable {
    /// Send this datagram to the peer; of at most ``DTLSConfiguration/maximumDatagramBytes``.
    case transmit([UInt8])
    /// The peer has the certificate of the description. Emitted once.
    ///
    /// - Parameters:
    ///   - send: Keys of our media.
    ///   - receive: Keys of the peer's media; of the same suite.
    case established(send: SRTPKey, receive: SRTPKey)
    /// There are no keys and will be none, or the association broke later. Said once, and the last thing said.
    case failed(DTLSError)
    /// The peer has closed an established association. Said once, and the last thing said.
    case closed
}

/// How a handshake is made.
public struct DTLSConfiguration: Equatable, Sendable {
    /// The permitted SRTP suites, in order of preference; one with a long tag at least, because the short one is not offered.
    public var suites: [SRTPSuite] = [.aeadAES128GCM, .aesCM128HMACSHA1]
    /// The largest datagram, as bytes of UDP payload: 256 or more. Larger flights are cut into several.
    public var maximumDatagramBytes = 1200
    /// How long to wait for an answer before a flight is retransmitted; doubled each time, up to
    /// ``longestRetransmission``. In 20 ms...4 s: OpenSSL treats less than 15 ms as an expired timer.
    public var firstRetransmission: Duration = .milliseconds(50)
    /// How long the handshake may take in all, with the wait for the peer's description.
    ///
    /// One flight is sent at most 13 times, which is 30 s with the first at 50 ms.
    public var patience: Duration = .seconds(30)

    /// The longest wait between two transmissions of a flight.
    public static let longestRetransmission: Duration = .seconds(4)

    /// The defaults, to be changed one by one.
    public init() {}
}
