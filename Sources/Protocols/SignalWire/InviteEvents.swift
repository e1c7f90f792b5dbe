public import JSON

/// Data of `inviteReceived`: to each registered device of each invitee (INV-2).
public struct InviteReceived: Codable, Hashable, Sendable {
    /// The invite.
    public var invite: InviteID
    /// The inviter.
    public var inviter: UserID
    /// The group that is invited, if it is a group invite.
    public var group: GroupID?
    /// Everybody who is invited.
    public var invitees: [UserID]
    /// From the inviter's application; for a call an object with the key `offer`.
    public var data: JSONValue?
    /// Seconds until the invite times out; 0 is never.
    public var ttlRemaining: Double
    /// The push payload, as given by the inviter.
    public var payload: JSONValue?

    /// Makes the data.
    public init(
        invite: InviteID, inviter: UserID, group: GroupID? = nil, invitees: [UserID], data: JSONValue? = nil,
        ttlRemaining: Double, payload: JSONValue? = nil
    ) {
        self.invite = invite
        self.inviter = inviter
        self.group = group
        self.invitees = invitees
        self.data = data
        self.ttlRemaining = ttlRemaining
        self.payload = payload
    }

    private enum CodingKeys: String, CodingKey {
        case invite, inviter, group, invitees, data, payload
        case ttlRemaining = "ttl_remaining"
    }
}

/// Data of `inviteAccepted` and `inviteRejected`: to the inviter (INV-3).
public struct InviteAnswered: Codable, Hashable, Sendable {
    /// The invite.
    public var invite: InviteID
    /// The invitee that answered.
    public var invitee: UserID
    /// With which device.
    public var device: DeviceID
    /// From the invitee's application: `answer` for an accepted call, `reason` for a rejected one.
    public var data: JSONValue?

    /// Makes the data.
    public init(invite: InviteID, invitee: UserID, device: DeviceID, data: JSONValue? = nil) {
        self.invite = invite
        self.invitee = invitee
        self.device = device
        self.data = data
    }
}

/// Data of `inviteHandled`: to the devices of an invitee once one of them has answered (INV-4).
public struct InviteHandled: Codable, Hashable, Sendable {
    /// A device's answer.
    public enum Action: String, Codable, Sendable {
        case accepted, rejected
    }

    /// The invite.
    public var invite: InviteID
    /// The device that answered.
    public var device: DeviceID
    /// The answer.
    public var action: Action

    /// Makes the data.
    public init(invite: InviteID, device: DeviceID, action: Action) {
        self.invite = invite
        self.device = device
        self.action = action
    }
}

/// Data of `inviteCancelled`: to the invitees that were pending (INV-6).
public struct InviteCancelled: Codable, Hashable, Sendable {
    /// The invite.
    public var invite: InviteID
    /// From the inviter's application.
    public var data: JSONValue?

    /// Makes the data.
    public init(invite: InviteID, data: JSONValue? = nil) {
        self.invite = invite
        self.data = data
    }
}

/// Data of `inviteTimedOut`: to both sides (INV-7).
public struct InviteTimedOut: Codable, Hashable, Sendable {
    /// The invite.
    public var invite: InviteID
    /// The invitees that did not answer in time.
    public var invitees: [UserID]

    /// Makes the data.
    public init(invite: InviteID, invitees: [UserID]) {
        self.invite = invite
        self.invitees = invitees
    }
}

/// Data of `inviteMissed`: the missed call, to invitees that were pending on cancel or time-out (INV-6, INV-7).
public struct InviteMissed: Codable, Hashable, Sendable {
    /// The invite.
    public var invite: InviteID
    /// The inviter's timeout payload.
    public var payload: JSONValue?

    /// Makes the data.
    public init(invite: InviteID, payload: JSONValue? = nil) {
        self.invite = invite
        self.payload = payload
    }
}

/// Data of `inviteEnded`: to the inviter, once every invitee is done (INV-3).
public struct InviteEnded: Codable, Hashable, Sendable {
    /// The invite.
    public var invite: InviteID

    /// Makes the data.
    public init(invite: InviteID) {
        self.invite = invite
    }
}
