public import JSON

/// `invite.send`: asks one user's devices to ring, or those of several users.
public struct InviteSend: RPCMethod {
    /// The method's name on the wire.
    public static let method = "invite.send"

    /// The invite that the exchange made.
    public struct Result: Codable, Hashable, Sendable {
        /// The invite's id: unique, and the same for each retry with one idempotency key (INV-1).
        public var invite: InviteID
        /// The users that are asked.
        public var invitees: [UserID]

        /// Makes a result.
        public init(invite: InviteID, invitees: [UserID]) {
            self.invite = invite
            self.invitees = invitees
        }
    }

    private var addressees: OneOrMany
    /// Public ids or user ids, 1 to ``SignalLimits/invitees``; on the wire a single one may be a plain string.
    public var to: [UserID] {
        get { addressees.values }
        set { addressees.values = newValue }
    }
    /// A group that all of ``to`` are members of. It receives the invite and each answer (GRP-2).
    public var group: GroupID?
    /// For the invitee's application; for a call an object with the key `offer`.
    public var data: JSONValue?
    /// Seconds until the invite times out; 0 is never (INV-9).
    public var ttl: Double
    /// Payload of a push to a device that is not connected.
    public var payload: JSONValue?
    /// Payload of pending invitees' push on cancel and time-out: a missed call.
    public var timeoutPayload: JSONValue?
    /// Fail with `noDeviceOnline` rather than wait for a device to appear. Absent: false.
    public var onlineOnly: Bool?
    /// Chosen by the client; a retry with the same key gives the same invite (INV-1).
    public var idempotencyKey: IdempotencyKey

    /// Makes the parameters.
    public init(
        to: [UserID], group: GroupID? = nil, data: JSONValue? = nil, ttl: Double, payload: JSONValue? = nil,
        timeoutPayload: JSONValue? = nil, onlineOnly: Bool? = nil, idempotencyKey: IdempotencyKey
    ) {
        addressees = OneOrMany(to)
        self.group = group
        self.data = data
        self.ttl = ttl
        self.payload = payload
        self.timeoutPayload = timeoutPayload
        self.onlineOnly = onlineOnly
        self.idempotencyKey = idempotencyKey
    }

    /// Makes the parameters of an invite to one user.
    public init(
        to: UserID, data: JSONValue? = nil, ttl: Double, payload: JSONValue? = nil, timeoutPayload: JSONValue? = nil,
        onlineOnly: Bool? = nil, idempotencyKey: IdempotencyKey
    ) {
        self.init(
            to: [to], data: data, ttl: ttl, payload: payload, timeoutPayload: timeoutPayload, onlineOnly: onlineOnly,
            idempotencyKey: idempotencyKey)
    }

    private enum CodingKeys: String, CodingKey {
        case group, data, ttl, payload
        case addressees = "to"
        case timeoutPayload = "timeout_payload"
        case onlineOnly = "online_only"
        case idempotencyKey = "idempotency_key"
    }
}

/// `invite.accept`: this device takes the invite.
public struct InviteAccept: RPCMethod {
    /// The method's name on the wire.
    public static let method = "invite.accept"
    /// Empty.
    public typealias Result = Empty

    /// The invite.
    public var invite: InviteID
    /// For the inviter; for a call an object with the key `answer`.
    public var data: JSONValue?

    /// Makes the parameters.
    public init(invite: InviteID, data: JSONValue? = nil) {
        self.invite = invite
        self.data = data
    }
}

/// `invite.reject`: this user does not take the invite.
public struct InviteReject: RPCMethod {
    /// The method's name on the wire.
    public static let method = "invite.reject"
    /// Empty.
    public typealias Result = Empty

    /// The invite.
    public var invite: InviteID
    /// For the inviter; an object whose key `reason` says `busy` or `declined` (INV-11).
    public var data: JSONValue?

    /// Makes the parameters.
    public init(invite: InviteID, data: JSONValue? = nil) {
        self.invite = invite
        self.data = data
    }
}

/// `invite.cancel`: the inviter withdraws the invite from all invitees that have not answered.
public struct InviteCancel: RPCMethod {
    /// The method's name on the wire.
    public static let method = "invite.cancel"
    /// Empty.
    public typealias Result = Empty

    /// The invite.
    public var invite: InviteID
    /// For the pending invitees.
    public var data: JSONValue?

    /// Makes the parameters.
    public init(invite: InviteID, data: JSONValue? = nil) {
        self.invite = invite
        self.data = data
    }
}

/// One user, or a list of them: on the wire, a string is a list of one.
struct OneOrMany: Codable, Hashable, Sendable {
    var values: [UserID]

    init(_ values: [UserID]) { self.values = values }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if (try? container.decode(String.self)) != nil {
            values = [try container.decode(UserID.self)]
            return
        }
        do {
            values = try container.decode([UserID].self)
        } catch DecodingError.typeMismatch {
            throw DecodingError.typeMismatch(
                Self.self, .init(codingPath: decoder.codingPath, debugDescription: "neither a string nor strings"))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if values.count == 1, let one = values.first {
            try container.encode(one)
        } else {
            try container.encode(values)
        }
    }
}
