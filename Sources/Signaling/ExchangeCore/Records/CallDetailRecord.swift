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
