/// A transfer (contract CALL-8), as messages of the call that is given up and the invite that takes its place have it.
public enum CallTransfer {
    /// A party of a call asks the other to call a third one in its place.
    public struct Request: Hashable, Sendable {
        /// The user to call.
        public var target: UserID
        /// The requester's call with the target, which the new call replaces.
        public var replaces: InviteID?
        /// The target is none of the service's own users: a call there may cost money.
        public var isOutside: Bool
        /// The target is none of those that the account lists for calls on a stranger's word.
        public var isUnlisted: Bool

        /// Makes one.
        public init(
            target: UserID, replaces: InviteID? = nil, isOutside: Bool = false, isUnlisted: Bool = false
        ) {
            self.target = target
            self.replaces = replaces
            self.isOutside = isOutside
            self.isUnlisted = isUnlisted
        }
    }

    /// The progress of the new call, as the requester receives it.
    public enum Progress: String, CaseIterable, Hashable, Sendable {
        /// The target is being called.
        case trying
        /// It rings there.
        case ringing
        /// The target took the call.
        case accepted
        /// The peer does not do what it was asked.
        case refused
        /// The target did not take the call.
        case failed

        /// Whether nothing comes after it.
        public var isFinal: Bool {
            switch self {
            case .trying, .ringing: false
            case .accepted, .refused, .failed: true
            }
        }
    }

    /// Which call an invite takes the place of.
    public struct Origin: Hashable, Sendable {
        /// The call in which the transfer was asked for; `nil` if the service does not say.
        public var invite: InviteID?
        /// Who asked for it, as the service says.
        public var by: UserID?
        /// The target's call that ends with this one's answer.
        public var replaces: InviteID?

        /// Makes one.
        public init(invite: InviteID? = nil, by: UserID? = nil, replaces: InviteID? = nil) {
            self.invite = invite
            self.by = by
            self.replaces = replaces
        }
    }
}
