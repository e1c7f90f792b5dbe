public import JSON

/// `call.signal`: a message to the peer of a call, such as a candidate.
public struct CallSignal: RPCMethod {
    /// The method's name on the wire.
    public static let method = "call.signal"
    /// Nothing to tell.
    public typealias Result = Empty

    /// The invite that became, or is to become, the call.
    public var invite: String
    /// What kind of signal; at most ``SignalLimits/signalTypeBytes``.
    public var type: String
    /// The signal; at most ``SignalLimits/signalDataBytes`` as JSON text.
    public var data: JSONValue?

    /// Makes the parameters.
    public init(invite: String, type: String, data: JSONValue? = nil) {
        self.invite = invite
        self.type = type
        self.data = data
    }
}

/// `call.end`: hangs up. The peer hears `callEnded` (CALL-3).
public struct CallEnd: RPCMethod {
    /// The method's name on the wire.
    public static let method = "call.end"
    /// Nothing to tell.
    public typealias Result = Empty

    /// The invite that became the call.
    public var invite: String
    /// Why, as in CALL-5: `completed` for an ordinary hang-up.
    public var reason: String
    /// How long the call was established, in milliseconds.
    public var durationMilliseconds: Int64

    /// Makes the parameters.
    public init(invite: String, reason: String, durationMilliseconds: Int64) {
        self.invite = invite
        self.reason = reason
        self.durationMilliseconds = durationMilliseconds
    }

    private enum CodingKeys: String, CodingKey { case invite, reason, durationMilliseconds = "duration_ms" }
}

/// `room.join`: joins a room by name; it is made if it is not there.
public struct RoomJoin: RPCMethod {
    /// The method's name on the wire.
    public static let method = "room.join"

    /// One connection in a room.
    public struct Participant: Codable, Hashable, Sendable {
        /// The connection's id.
        public var connection: String
        /// Whose connection it is.
        public var user: String

        /// Makes a participant.
        public init(connection: String, user: String) {
            self.connection = connection
            self.user = user
        }
    }

    /// Who is there.
    public struct Result: Codable, Hashable, Sendable {
        /// Everybody who was there already.
        public var participants: [Participant]

        /// Makes a result.
        public init(participants: [Participant]) { self.participants = participants }
    }

    /// The room's name.
    public var room: String

    /// Makes the parameters.
    public init(room: String) { self.room = room }
}

/// `room.leave`: leaves a room.
public struct RoomLeave: RPCMethod {
    /// The method's name on the wire.
    public static let method = "room.leave"
    /// Nothing to tell.
    public typealias Result = Empty

    /// The room's name.
    public var room: String

    /// Makes the parameters.
    public init(room: String) { self.room = room }
}
