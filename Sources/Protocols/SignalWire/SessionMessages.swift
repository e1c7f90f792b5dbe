/// A device as it describes itself.
public struct DeviceDescription: Codable, Hashable, Sendable {
    /// Chosen by the device, the same at each start, unique among its user's devices.
    public var id: DeviceID
    /// Display name.
    public var name: String
    /// The device's capabilities, such as `audio`; the exchange relays them and does not interpret them.
    public var capabilities: [Capability]
    /// Push token for invites while the device is not connected.
    public var pushToken: Redacted<String>?

    /// Makes a description.
    public init(id: DeviceID, name: String, capabilities: [Capability] = [], pushToken: Redacted<String>? = nil) {
        self.id = id
        self.name = name
        self.capabilities = capabilities
        self.pushToken = pushToken
    }

    private enum CodingKeys: String, CodingKey { case id, name, capabilities, pushToken = "push_token" }
}

/// `session.start`: identifies the client of the connection. Before it, only `ping` works.
public struct SessionStart: RPCMethod {
    /// The method's name on the wire.
    public static let method = "session.start"

    /// A session to resume after a connection was lost.
    public struct Resume: Codable, Hashable, Sendable {
        /// The session's id, from the result of the start.
        public var session: SessionID
        /// The number of the newest event that was received.
        public var after: UInt64

        /// Makes a request to resume.
        public init(session: SessionID, after: UInt64) {
            self.session = session
            self.after = after
        }
    }

    /// The session, new or resumed.
    public struct Result: Codable, Hashable, Sendable {
        /// The session's id, for resuming.
        public var session: SessionID
        /// This connection's id, by which room participants and call peers know it.
        public var connection: ConnectionName
        /// The user's id.
        public var user: UserID
        /// The ids by which the user can be called.
        public var publicIDs: [UserID]
        /// Whether the session that was asked for continues; the events that it missed follow.
        public var resumed: Bool
        /// The number of the user's newest event: later events have higher numbers.
        public var sequence: UInt64
        /// Interval of the exchange's pings, in seconds; a client that receives nothing for twice that time has lost
        /// the exchange.
        public var keepaliveSeconds: Int
        /// The login was anonymous: rooms only (AUTH-3).
        public var isAnonymous: Bool

        /// Makes a result.
        public init(
            session: SessionID, connection: ConnectionName, user: UserID, publicIDs: [UserID], resumed: Bool,
            sequence: UInt64,
            keepaliveSeconds: Int, isAnonymous: Bool
        ) {
            self.session = session
            self.connection = connection
            self.user = user
            self.publicIDs = publicIDs
            self.resumed = resumed
            self.sequence = sequence
            self.keepaliveSeconds = keepaliveSeconds
            self.isAnonymous = isAnonymous
        }

        private enum CodingKeys: String, CodingKey {
            case session, connection, user, resumed, sequence
            case publicIDs = "public_ids"
            case keepaliveSeconds = "keepalive_seconds"
            case isAnonymous = "anonymous"
        }
    }

    /// The access token that the login gave.
    public var token: Redacted<String>
    /// The device; it is registered by `device.register`, not by this.
    public var device: DeviceDescription
    /// A session to resume, if there was one.
    public var resume: Resume?
    /// The user that the client takes the token to be of: refused if it is another's (AUTH-4).
    public var user: UserID?
    /// The application that the client takes the token to be of: refused if it is another's (AUTH-8).
    public var application: ApplicationKey?

    /// Makes the parameters.
    public init(
        token: Redacted<String>, device: DeviceDescription, resume: Resume? = nil, user: UserID? = nil,
        application: ApplicationKey? = nil
    ) {
        self.token = token
        self.device = device
        self.resume = resume
        self.user = user
        self.application = application
    }
}

/// `session.renew`: the session continues with another token, before its present one ends (AUTH-4).
public struct SessionRenew: RPCMethod {
    /// The method's name on the wire.
    public static let method = "session.renew"

    /// Until when.
    public struct Result: Codable, Hashable, Sendable {
        /// Seconds until the new token ends.
        public var expiresIn: Double

        /// Makes a result.
        public init(expiresIn: Double) { self.expiresIn = expiresIn }

        private enum CodingKeys: String, CodingKey { case expiresIn = "expires_in" }
    }

    /// The new token, of the same user; with a session token, for the same session.
    public var token: Redacted<String>

    /// Makes the parameters.
    public init(token: Redacted<String>) { self.token = token }
}

/// `session.end`: a clean goodbye, which ends the device's calls (CONN-9). The client then closes the socket.
public struct SessionEnd: RPCMethod {
    /// The method's name on the wire.
    public static let method = "session.end"
    /// Empty.
    public typealias Result = Empty

    /// Makes the parameters: none.
    public init() {}
}

/// `device.register`: from now on the device receives invites (DEV-1).
public struct DeviceRegister: RPCMethod {
    /// The method's name on the wire.
    public static let method = "device.register"
    /// Empty.
    public typealias Result = Empty

    /// Which group invites a device receives when it registers (INV-14).
    public enum Start: String, Codable, Sendable {
        /// Its program has just started: those of the last 30 s.
        case cold
        /// Its program has run all the time: all of them.
        case warm
    }

    /// One push target of the device.
    public struct PushTarget: Codable, Hashable, Sendable {
        /// The push service: `apns`, `fcm` or any other name.
        public var kind: PushKind
        /// The service's token of the device.
        public var token: Redacted<String>

        /// Makes a target.
        public init(kind: PushKind, token: Redacted<String>) {
            self.kind = kind
            self.token = token
        }
    }

    /// The device, with the id that `session.start` gave.
    public var device: DeviceDescription
    /// Which group invites the device receives. Absent: ``Start/cold``.
    public var start: Start?
    /// Push targets while the device is not connected, which replace the earlier ones; absent: unchanged (DEV-2).
    public var push: [PushTarget]?

    /// Makes the parameters.
    public init(device: DeviceDescription, start: Start? = nil, push: [PushTarget]? = nil) {
        self.device = device
        self.start = start
        self.push = push
    }
}

/// `device.unregister`: from now on the device receives no invites and no pushes (DEV-2).
public struct DeviceUnregister: RPCMethod {
    /// The method's name on the wire.
    public static let method = "device.unregister"
    /// Empty.
    public typealias Result = Empty

    /// Makes the parameters: none.
    public init() {}
}

/// `ping`: a keepalive for clients that cannot send WebSocket pings.
public struct Ping: RPCMethod {
    /// The method's name on the wire.
    public static let method = "ping"
    /// Empty.
    public typealias Result = Empty

    /// Makes the parameters: none.
    public init() {}
}
