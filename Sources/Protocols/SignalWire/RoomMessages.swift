public import JSON

/// A participant's role in a room, from its signed token; the exchange relays it, and applications decide by it.
public enum RoomRole: String, Codable, Sendable {
    case publisher, subscriber, moderator
}

/// `room.join`: joins a room by name; it is made if it is not there.
public struct RoomJoin: RPCMethod {
    /// The method's name on the wire.
    public static let method = "room.join"

    /// One connection in a room.
    public struct Participant: Codable, Hashable, Sendable {
        /// The connection's id.
        public var connection: ConnectionName
        /// The user of the connection.
        public var user: UserID
        /// Its role, if it joined with a signed token.
        public var role: RoomRole?
        /// Its connection data, if it has some.
        public var data: String?

        /// Makes a participant.
        public init(connection: ConnectionName, user: UserID, role: RoomRole? = nil, data: String? = nil) {
            self.connection = connection
            self.user = user
            self.role = role
            self.data = data
        }
    }

    /// The room's participants.
    public struct Result: Codable, Hashable, Sendable {
        /// Earlier participants, in the order of joining: as many as fit into one message.
        public var participants: [Participant]
        /// There are more: join again with this as `after`.
        public var next: UInt64?

        /// Makes a result.
        public init(participants: [Participant], next: UInt64? = nil) {
            self.participants = participants
            self.next = next
        }
    }

    /// The room's name.
    public var room: RoomName
    /// A signed token for this room, with role and connection data (AUTH-5).
    public var token: Redacted<String>?
    /// Connection data for the others to see, at most ``SignalLimits/connectionDataBytes``; a token's own go first.
    public var data: String?
    /// `next` of the answer before; absent: from the start.
    public var after: UInt64?

    /// Makes the parameters.
    public init(room: RoomName, token: Redacted<String>? = nil, data: String? = nil, after: UInt64? = nil) {
        self.room = room
        self.token = token
        self.data = data
        self.after = after
    }
}

/// `room.leave`: leaves a room.
public struct RoomLeave: RPCMethod {
    /// The method's name on the wire.
    public static let method = "room.leave"
    /// Empty.
    public typealias Result = Empty

    /// The room's name.
    public var room: RoomName

    /// Makes the parameters.
    public init(room: RoomName) { self.room = room }
}

/// `room.signal`: a message to one connection of a room, or to all others (SIG-1).
public struct RoomSignal: RPCMethod {
    /// The method's name on the wire.
    public static let method = "room.signal"
    /// Empty.
    public typealias Result = Empty

    /// The room's name.
    public var room: RoomName
    /// The connection that receives it; absent: all in the room, including the sender.
    public var to: ConnectionName?
    /// The kind of signal; at most ``SignalLimits/signalTypeBytes``.
    public var type: String
    /// The signal; at most ``SignalLimits/signalDataBytes`` as JSON text.
    public var data: JSONValue?

    /// Makes the parameters.
    public init(room: RoomName, to: ConnectionName? = nil, type: String, data: JSONValue? = nil) {
        self.room = room
        self.to = to
        self.type = type
        self.data = data
    }
}

/// Data of `roomSignal`: to the receivers of a signal in a room (SIG-1).
public struct RoomSignalled: Codable, Hashable, Sendable {
    /// The room's name.
    public var room: RoomName
    /// The kind of signal.
    public var type: String
    /// The signal, unchanged.
    public var data: JSONValue?
    /// The connection that sent it.
    public var from: ConnectionName
    /// The user of that connection.
    public var user: UserID

    /// Makes the data.
    public init(room: RoomName, type: String, data: JSONValue? = nil, from: ConnectionName, user: UserID) {
        self.room = room
        self.type = type
        self.data = data
        self.from = from
        self.user = user
    }
}

/// Data of `connectionCreated`: to all other connections in a room, when one joins (CONN-7).
public struct ConnectionCreated: Codable, Hashable, Sendable {
    /// The room's name.
    public var room: RoomName
    /// The connection that joined.
    public var connection: ConnectionName
    /// The user of the connection.
    public var user: UserID
    /// Its role, if it joined with a signed token.
    public var role: RoomRole?
    /// Its connection data, if it has some.
    public var data: String?

    /// Makes the data.
    public init(room: RoomName, connection: ConnectionName, user: UserID, role: RoomRole? = nil, data: String? = nil) {
        self.room = room
        self.connection = connection
        self.user = user
        self.role = role
        self.data = data
    }
}

/// Data of `connectionDestroyed`: to all other connections in a room, when one leaves (CONN-7), and to that one if it was removed.
public struct ConnectionDestroyed: Codable, Hashable, Sendable {
    /// The room's name.
    public var room: RoomName
    /// The connection that left.
    public var connection: ConnectionName
    /// Why: `left`, `disconnected` (a clean goodbye), `connectionLost`, or `removed` by the operator.
    public var reason: String

    /// Makes the data.
    public init(room: RoomName, connection: ConnectionName, reason: String) {
        self.room = room
        self.connection = connection
        self.reason = reason
    }
}
