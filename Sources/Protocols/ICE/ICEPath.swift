public import Core

/// The source and the destination of datagrams to the peer.
public struct ICEPath: Hashable, Sendable {
    /// The source.
    public enum Route: Hashable, Sendable {
        /// From a local socket.
        case direct(local: SocketAddress)
        /// Through a TURN server, in channel data of that number. Until there is a number (`nil`), only the agent can
        /// send: see ``ICEInput/send(_:)``.
        case relayed(server: Int, relay: SocketAddress, channel: UInt16?)
    }

    /// The source.
    public var route: Route
    /// The destination.
    public var remote: SocketAddress
    /// Both sides have selected it. Before that it is valid and may be used, but another may replace it.
    public var isNominated: Bool

    /// Whether source and destination are the same. The TURN channels may differ.
    func isSameWay(as other: ICEPath) -> Bool {
        let isSameOrigin =
            switch (route, other.route) {
            case (.direct(let local), .direct(let otherLocal)): local == otherLocal
            case (.relayed(let server, let relay, _), .relayed(let otherServer, let otherRelay, _)):
                server == otherServer && relay == otherRelay
            case (.direct, .relayed), (.relayed, .direct): false
            }
        return isSameOrigin && remote == other.remote
    }

    /// Whether it uses one of our TURN servers.
    public var isRelayed: Bool {
        switch route {
        case .direct: false
        case .relayed: true
        }
    }
}

/// How far an agent has come.
public enum ICEState: Sendable {
    /// No checks yet.
    case new
    /// Checking, nothing works yet.
    case checking
    /// A path works, and checks for others continue.
    case connected
    /// A path is nominated, and there is nothing left to check.
    case completed
    /// The path has stopped answering, and nothing else works. May come back by itself.
    case disconnected
    /// Nothing works, or the peer's consent has run out. A restart may help.
    case failed
    /// Ended by us.
    case closed
}
