public import Core

/// The record of a call, answered or missed; one for each.
public struct CallRecord: Hashable, Sendable {
    /// The direction of the call.
    public enum Direction: String, Hashable, Sendable {
        case incoming
        case outgoing
    }

    /// Who brought about the end.
    public enum Ender: String, Hashable, Sendable {
        /// This device, its user or its policy.
        case local
        /// The other side.
        case remote
        /// Neither: a timer, a failure, or the service.
        case neither
    }

    /// The invite; `nil` if the service never gave it an id.
    public var invite: InviteID?
    /// The direction of the call.
    public var direction: Direction
    /// The other side.
    public var peer: UserID
    /// When the call began here, on the machine's clock: dialled or received.
    public var began: Instant
    /// From invite to accept; `nil` if it was never accepted.
    public var answeredAfter: Duration?
    /// From invite until the call could carry media; `nil` if it never could (contract CALL-2).
    public var establishedAfter: Duration?
    /// From invite to media flowing both ways; `nil` if it never did.
    public var setUpTime: Duration?
    /// For how long the call was established; zero if it never was (CALL-3).
    public var duration: Duration
    /// Why it ended (CALL-5).
    public var reason: CallEndReason
    /// Who brought about the end.
    public var endedBy: Ender
    /// Why it failed, determined here or reported by the other side.
    public var cause: CallFailureCause?
    /// What went wrong, if something did.
    public var error: SignalingError?
    /// Why this device hung up; nil if it did not.
    public var hangUpCause: HangUpCause?
    /// The user who transferred another call to this one, if any (contract CALL-8).
    public var transferredBy: UserID?
    /// The user that took over this call by a transfer, if any.
    public var transferredTo: UserID?

    /// Why a device hangs up.
    public enum HangUpCause: String, Hashable, Sendable {
        /// Its user, or a program that embeds or controls it, asked for it.
        case request
        /// The program or bot that takes part in the call is done.
        case program
        /// The file was played to its end.
        case playbackEnded = "playback_ended"
        /// The call had its longest duration.
        case maximumDuration = "max_call_seconds"
    }
}
