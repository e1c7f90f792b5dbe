/// Limits of how many invites may be open, so that nobody's keep those of others out.
extension SignalLimits {
    /// Open invites from one user, to one user, and in one group.
    public static let openInvites = 256
    /// Open invites that one user has still to answer to one other, and that one member has open in a group.
    public static let openInvitesOfPair = 8
    /// Open invites that a user has still to answer to all those together with whom it is not acquainted.
    public static let openInvitesOfStrangers = 64
    /// Open invites in a group beyond the first of each member, of all members but the owner together.
    public static let openInvitesBeyondFirst = 48
    /// Groups that a user is in and whose owners it is not acquainted with, past which no such owner adds it to another.
    public static let groupsOfStrangers = 64
    /// Transfers in a row, each of a call that the one before has made.
    public static let transfersInARow = 5
    /// Acquaintances that are remembered for one user.
    public static let acquaintances = 512
}
