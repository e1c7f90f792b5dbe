import SignalWire

/// How many invites may be open: docs/protocol.md has the numbers, and tests take smaller ones.
struct InviteLimits: Sendable {
    /// From one user; to one user that has still to answer; in one group. Contract and memory both want a bound.
    var open = SignalLimits.openInvites
    /// From one user to one other, and from one member in a group.
    var ofPair = SignalLimits.openInvitesOfPair
    /// Open invites to one user from all users that it does not know.
    var ofStrangers = SignalLimits.openInvitesOfStrangers
    /// In one group beyond the first of each member, the owner's not counted.
    var beyondFirst = SignalLimits.openInvitesBeyondFirst
}
