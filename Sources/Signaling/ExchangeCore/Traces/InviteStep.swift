package import Core
package import SignalWire
package import Tracing

/// A step of an invite, or of a call that it has become, for those who trace calls (docs/tracing.md).
///
/// It leaves the core in order with the other outputs, so a driver that waits for its disk takes it when what it reports is on disk.
package struct InviteStep: Hashable, Sendable {
    /// Where an invite comes from.
    package struct Origin: Hashable, Sendable {
        /// The user that has sent it.
        package let inviter: UserID
        /// Who is asked, in the order of asking.
        package let invitees: [UserID]
        /// The caller's span; nil if it sends none.
        package let parent: TraceContext?
        /// A trunk brings it from a telephone network.
        package let isForeign: Bool
    }

    /// How an invite ended for those who had not answered.
    package enum End: String, Hashable, Sendable {
        case cancelled
        case timedOut
        /// Another stranger needed the place.
        case gaveWay
        /// The operator has ended it.
        case operatorEnded = "operator"
    }

    /// What has happened.
    package enum Kind: Hashable, Sendable {
        /// The invite was taken.
        case sent(Origin)
        /// It is sent to devices of an invitee that are connected.
        case delivered(UserID, devices: Int)
        /// A push has to reach a device of an invitee.
        case pushing(PushID, UserID)
        /// The push's webhook has taken it, or it was given up for a reason.
        case pushed(PushID, gaveUp: DeadPush.Reason?)
        /// An invitee has answered.
        case answered(UserID, InviteHandled.Action)
        /// It ended for some.
        case ended(End)
        /// It ended for all.
        case finished
        /// The call with an invitee has ended. The reason is one of a closed set of words.
        case callEnded(UserID, reason: String, isFailure: Bool)
    }

    /// The invite.
    package let invite: InviteID
    /// When it happened.
    package let at: Instant
    /// What has happened.
    package let kind: Kind
}
