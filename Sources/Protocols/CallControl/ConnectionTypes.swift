/// The state of the connection (contract CONN-2).
public enum ConnectionState: String, CaseIterable, Hashable, Sendable {
    case notConnected
    case connecting
    case connected
    case reconnecting
    case disconnecting
    case failed
}

/// The event manager's information for a device before it connects (contract CONN-1).
public struct ConnectionResources: Hashable, Sendable {
    /// Where the WebSocket is.
    public var webSocketURL: String
    /// Servers that help media through firewalls.
    public var iceServers: [ICEServer]
    /// How long their names and passwords are good; nil for ever.
    public var iceServersLifetime: Duration?
    /// How long the connection may be silent before it is asked for a sign of life.
    public var keepalive: Duration
    /// How long after a drop the service still has what was missed.
    public var resumeWindow: Duration

    /// Makes the resources of one connection.
    public init(
        webSocketURL: String, iceServers: [ICEServer] = [], iceServersLifetime: Duration? = nil, keepalive: Duration,
        resumeWindow: Duration
    ) {
        self.webSocketURL = webSocketURL
        self.iceServers = iceServers
        self.iceServersLifetime = iceServersLifetime
        self.keepalive = keepalive
        self.resumeWindow = resumeWindow
    }
}

/// A STUN or TURN server and how to log in there.
public struct ICEServer: Hashable, Sendable {
    /// `stun:` and `turn:` addresses of the one server.
    public var urls: [String]
    /// The user name, for TURN.
    public var username: String?
    /// The password, for TURN; a secret.
    public var credential: String?

    /// Makes a server's description.
    public init(urls: [String], username: String? = nil, credential: String? = nil) {
        self.urls = urls
        self.username = username
        self.credential = credential
    }
}

/// The service's answer when it accepts a device.
public struct SessionGrant: Hashable, Sendable {
    /// The session, to be resumed after a drop.
    public var session: SessionID
    /// This connection's name among the peers.
    public var connection: ConnectionName
    /// Who this device is.
    public var user: UserID
    /// Under which names the user can be called (contract AUTH-2).
    public var publicIDs: [UserID]
    /// Whether an earlier session was resumed.
    public var isResumed: Bool
    /// The newest event's number.
    public var sequence: Int64
    /// How long the connection may be silent before it is asked for a sign of life.
    public var keepalive: Duration
    /// Whether the user has no account and may only join rooms (AUTH-3).
    public var isAnonymous: Bool

    /// Makes a grant.
    public init(
        session: SessionID, connection: ConnectionName, user: UserID, publicIDs: [UserID] = [], isResumed: Bool = false,
        sequence: Int64 = 0, keepalive: Duration, isAnonymous: Bool = false
    ) {
        self.session = session
        self.connection = connection
        self.user = user
        self.publicIDs = publicIDs
        self.isResumed = isResumed
        self.sequence = sequence
        self.keepalive = keepalive
        self.isAnonymous = isAnonymous
    }
}

/// Where to resume after a drop.
public struct ResumePoint: Hashable, Sendable {
    /// The session that dropped.
    public var session: SessionID
    /// The number of the last event that arrived.
    public var after: Int64

    /// Makes a resume point.
    public init(session: SessionID, after: Int64) {
        self.session = session
        self.after = after
    }
}

/// The connection's times and limits.
public struct ConnectionTimings: Hashable, Sendable {
    /// For the answer to a ping that was sent because the network has changed; a link without one is replaced, which costs
    /// little if the path is just slow.
    static let probeTimeout = Duration.milliseconds(500)

    /// For one attempt, from asking for resources to the session's start. Default 10 s.
    public var attemptTimeout: Duration = .seconds(10)
    /// For the close frame's answer. Default 1 s.
    public var closeTimeout: Duration = .seconds(1)
    /// A connection that lasted this long resets the backoff. Default 10 s.
    public var stableAfter: Duration = .seconds(10)
    /// Attempts at a first connection before it counts as failed; `nil` never gives up, which is the default.
    public var firstAttempts: Int?
    /// Attempts at a reconnection before it counts as failed; `nil` never gives up, which is the default.
    public var reconnectAttempts: Int?

    /// Makes the defaults.
    public init() {}
}
