/// Limits on open invites, so that one user's invites do not keep out those of others.
extension SignalLimits {
    /// Open invites from one user, to one user, and in one group.
    public static let openInvites = 256
    /// Unanswered open invites from one user to one other, and open invites of one member in a group.
    public static let openInvitesOfPair = 8
    /// Unanswered open invites to one user, from all users together with which it is not acquainted.
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
