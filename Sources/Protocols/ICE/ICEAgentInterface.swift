public import Core

/// The inputs of an agent.
public enum ICEInput: Sendable {
    /// Begin: gather from these sockets, each given by the address that it is bound to.
    case start(localAddresses: [SocketAddress])
    /// The machine's addresses have changed; nothing can be sent from those that are missing.
    case localAddresses([SocketAddress])
    /// The peer's name and secret are known; checks may begin. Only the first of a generation count: others mean that
    /// the peer has restarted, which ``restart(_:)`` answers first.
    case remoteCredentials(ICECredentials, isLite: Bool)
    /// The peer signaled a candidate. A name from ``ICEOutput/unresolvedName(_:)`` is also returned by this input, with
    /// its address.
    case remoteCandidate(Candidate)
    /// The peer has no more candidates (RFC 8838 §14).
    case remoteEndOfCandidates
    /// A datagram arrived at the socket bound to `local`.
    case datagram([UInt8], local: SocketAddress, source: SocketAddress)
    /// A connection that was asked for is there: for UDP, a socket is bound.
    case serverOpened(Int)
    /// A connection is gone, or could not be made.
    case serverClosed(Int)
    /// Bytes from a TURN server: one datagram, or any piece of a stream.
    case serverBytes([UInt8], server: Int)
    /// Send this, which is no STUN, to the peer over the present path, for example DTLS.
    case send([UInt8])
    /// The media thread has received nothing on the path for longer than expected: the path and the others are checked
    /// now, and if it does not answer within ``ICEConfiguration/quietSwitchDelay`` the agent leaves it.
    case pathIsQuiet
    /// Restart ICE with other credentials; the present path stays in use until there is a new one (RFC 8445 §9).
    case restart(ICECredentials)
    /// Another peer has answered the same offer (a fork, RFC 3261 §13.1); its credentials come next. Ours stay, and all
    /// data of the previous peer is dropped.
    case anotherPeer
    /// End; allocations are given up.
    case end
    /// ``ICEAgent/nextDeadline`` has come. Early calls are harmless.
    case timerFired
}

/// The outputs of an agent.
public enum ICEOutput: Equatable, Sendable {
    /// Send a datagram from the socket bound to `local`.
    case transmit([UInt8], local: SocketAddress, to: SocketAddress)
    /// Open a connection (for UDP, bind a separate socket) to TURN server number `server` at `address`; the number
    /// counts the configuration's servers from zero.
    case openServer(Int, ICEServer.Transport, address: SocketAddress)
    /// Send bytes to a TURN server: for UDP one datagram, else a piece of the stream.
    case sendToServer([UInt8], server: Int)
    /// A TURN server failed, for this reason; the next output closes its connection.
    case serverFailed(Int, TURNFailure)
    /// Close the connection once everything has been sent.
    case closeServer(Int)
    /// Send this candidate to the peer.
    case localCandidate(Candidate)
    /// Notify the peer that there are no more candidates.
    case gatheringComplete
    /// The peer's candidate has only a name; if names are resolved, look it up and pass the candidate back.
    case unresolvedName(Candidate)
    /// How far the agent has come.
    case stateChanged(ICEState)
    /// Send by this path from now on.
    case pathSelected(ICEPath)
    /// Stop sending at once: there is no path, or the peer's consent has run out.
    case pathLost
    /// Data other than STUN that a peer sent through the relay of TURN server number `server`.
    case received([UInt8], source: SocketAddress, server: Int)
}

/// The name and the secret of one side for one generation of ICE (RFC 8445 §5.3).
public struct ICECredentials: Hashable, Sendable {
    /// Names the side in checks: 4 to 256 characters.
    public let usernameFragment: String
    /// Protects what is sent to the side: 22 to 256 characters.
    public let password: String

    /// Takes credentials from a description.
    ///
    /// - Returns: nil if either is too short, too long, or has characters that ICE does not allow.
    public init?(usernameFragment: String, password: String) {
        guard Candidate.isToken(usernameFragment, upTo: 256), usernameFragment.utf8.count >= 4,
            Candidate.isToken(password, upTo: 256), password.utf8.count >= 22
        else { return nil }
        self.usernameFragment = usernameFragment
        self.password = password
    }

    /// Draws new credentials: 48 and 144 random bits.
    public init(using generator: inout some RandomNumberGenerator) {
        usernameFragment = Self.token(8, &generator)
        password = Self.token(24, &generator)
    }

    private static func token(_ count: Int, _ generator: inout some RandomNumberGenerator) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        return String(decoding: (0..<count).map { _ in alphabet[Int(generator.next() >> 58)] }, as: UTF8.self)
    }
}

/// Statistics of an agent since its start.
public struct ICEStatistics: Equatable, Sendable {
    /// The path in use.
    public var path: ICEPath?
    /// The last round trip of a check on the path in use.
    public var roundTrip: Duration?
    /// The smoothed round trip of the checks on the path in use: each counts for an eighth.
    public var smoothedRoundTrip: Duration?
    /// Checks sent.
    public var checksSent = 0
    /// Checks answered.
    public var checksAnswered = 0
    /// Checks of the peer's that were granted.
    public var requestsGranted = 0
    /// Checks that were not protected with our password.
    public var requestsUnauthenticated = 0
    /// Checks, granted or refused, that were dropped because they exceeded the rate limit.
    public var requestsOverLimit = 0
    /// Answers that were not protected as they should be.
    public var responsesUnauthenticated = 0
    /// Answers to no open request: late, duplicate or forged.
    public var responsesUnmatched = 0
    /// Datagrams that are no STUN or make no sense.
    public var malformed = 0
    /// Datagrams from a relay or to a socket that is not in use.
    public var unexpected = 0
    /// The peer's candidates that are for TCP, for another component or have an unusable address.
    public var candidatesIgnored = 0
    /// The peer's candidates beyond the limit.
    public var candidatesOverLimit = 0
    /// Pairs beyond the limit.
    public var pairsOverLimit = 0
    /// Changes of the path after the first.
    public var pathChanges = 0
    /// Role conflicts resolved by taking the other role.
    public var roleChanges = 0
    /// Candidate pairs there are.
    public var pairs = 0

    /// Starts from nothing.
    public init() {}
}
