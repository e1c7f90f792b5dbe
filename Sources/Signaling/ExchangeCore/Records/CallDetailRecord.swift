public import SignalWire
public import Core

/// The record of one call, answered or missed (CALL-7): of one invitee of one invite.
public struct CallDetailRecord: Hashable, Sendable {
    /// The invite's id.
    public var invite: InviteID
    /// Who called.
    public var inviter: UserID
    /// With which device.
    public var inviterDevice: DeviceID
    /// Who was called.
    public var invitee: UserID
    /// The device that accepted, if one did.
    public var inviteeDevice: DeviceID?
    /// The group that was called, if it was one.
    public var group: GroupID?
    /// When the invite was sent.
    public var sentAt: WallClock
    /// When it was accepted.
    public var answeredAt: WallClock?
    /// When it ended; `nil` while it rings or is established.
    public var endedAt: WallClock?
    /// Why it ended, as in CALL-5, or a reason that a device gave.
    public var reason: String?
    /// How long media flowed, in milliseconds, as reported by the device that hung up.
    public var durationMilliseconds: Int64?

    /// Makes a record that has just begun.
    package init(
        invite: InviteID, inviter: UserID, inviterDevice: DeviceID, invitee: UserID, sentAt: WallClock
    ) {
        self.invite = invite
        self.inviter = inviter
        self.inviterDevice = inviterDevice
        self.invitee = invitee
        self.sentAt = sentAt
    }
}

/// A step in the record of one call: of one invitee of one invite (CALL-7).
public struct CallStep: Hashable, Sendable {
    /// What happened.
    public enum Kind: Hashable, Sendable {
        /// The invite was sent; the record begins.
        case rang(inviter: UserID, inviterDevice: DeviceID, group: GroupID?)
        /// A device accepted.
        case answered(device: DeviceID)
        /// It ended, for a reason of CALL-5 or one that a device supplied. The duration is the one that the device that
        /// hung up reported, 0 if the call was not answered.
        case ended(reason: String, durationMilliseconds: Int64)
    }

    /// The invite's id.
    public var invite: InviteID
    /// Whose answer it is about.
    public var invitee: UserID
    /// What happened.
    public var kind: Kind
    /// When it happened.
    public var at: Instant

    /// Makes a step.
    public init(invite: InviteID, invitee: UserID, kind: Kind, at: Instant) {
        self.invite = invite
        self.invitee = invitee
        self.kind = kind
        self.at = at
    }
}

/// How many records of calls are kept. Past it the oldest are removed, those of the same caller before those of other
/// users.
///
/// A record belongs to its caller, so that one user's calls do not displace those of another.
public struct RecordLimits: Hashable, Sendable {
    /// Of calls that one user has made.
    public var perCaller = 10_000
    /// In all.
    public var total = 1_000_000

    /// The limits unless configured.
    public init() {}
}
