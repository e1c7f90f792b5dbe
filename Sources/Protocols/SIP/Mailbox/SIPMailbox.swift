public import Identifiers

/// The mailbox of an account, and who is notified of what waits in it.
public struct SIPMailbox: Sendable {
    /// What waits.
    public var summary: MessageSummary
    /// The peers that may subscribe to it, as far as their names are vouched for.
    public var subscribers: CalleeList
    /// Addresses that are notified without a subscription; of more than ``SIPLimits/mailboxTargets``, the first ones.
    public var targets: [AnyURI]

    /// Describes a mailbox.
    public init(summary: MessageSummary, subscribers: CalleeList = CalleeList(), targets: [AnyURI] = []) {
        self.summary = summary
        self.subscribers = subscribers
        self.targets = targets
    }
}

/// What became of a notification of the mailbox, for the log.
public enum MailboxEvent: Hashable, Sendable {
    /// This peer has subscribed, for this number of seconds.
    case subscribed(String, seconds: UInt32)
    /// The subscription of this peer has ended by its own request, or after its time.
    case unsubscribed(String)
    /// The subscription of this peer has ended, because a NOTIFY got this status.
    case lost(String, status: Int)
    /// A peer was refused: its address, and the number of refusals since the account began.
    case refused(SIPHost?, count: Int)
    /// An address that is notified without a subscription answered with this status.
    case undelivered(String, status: Int)
}
