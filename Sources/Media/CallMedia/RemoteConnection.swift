public import Core
public import ICE
public import SecureTransport

/// What the peer's description says about its end of the connection.
public struct RemoteConnection: Sendable {
    /// How the peer is found.
    public enum Way: Sendable {
        /// By ICE.
        case ice(RemoteCandidates)
        /// At this address, or wherever its part of the DTLS handshake comes from.
        case direct(SocketAddress)
    }

    /// How the peer is found.
    public var way: Way
    /// Our side in the handshake, and the certificates that the peer may have; nil without a handshake.
    public var handshake: (role: DTLSRole, fingerprints: [DTLSFingerprint])?
    /// Whether it is another peer than before, which has answered the same offer.
    public var isAnother = false

    /// Makes it.
    public init(_ way: Way, handshake: (role: DTLSRole, fingerprints: [DTLSFingerprint])?) {
        self.way = way
        self.handshake = handshake
    }
}

/// The peer's parameters for ICE.
public struct RemoteCandidates: Sendable {
    /// The peer's name and secret in checks.
    public var credentials: ICECredentials
    /// The peer only answers checks (RFC 8445 §2.5).
    public var isLite: Bool
    /// Values of `candidate` attributes.
    public var candidates: [String]
    /// No more candidates will come.
    public var hasEnded: Bool

    /// Makes it.
    public init(credentials: ICECredentials, isLite: Bool, candidates: [String], hasEnded: Bool) {
        self.credentials = credentials
        self.isLite = isLite
        self.candidates = candidates
        self.hasEnded = hasEnded
    }
}
