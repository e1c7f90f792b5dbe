public import SignalWire
public import Core

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
