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
