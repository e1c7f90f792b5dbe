/// What waits in a device's mailbox, and who is notified of it by the service.
public struct WaitingMessages: Hashable, Sendable {
    /// Messages that were not heard.
    public var new: Int
    /// Messages that were heard.
    public var old: Int
    /// The users who may ask to be notified.
    public var subscribers: CalleeList
    /// The users who are notified without asking.
    public var targets: [UserID]

    /// Counts messages.
    public init(new: Int, old: Int, subscribers: CalleeList = CalleeList(), targets: [UserID] = []) {
        self.new = new
        self.old = old
        self.subscribers = subscribers
        self.targets = targets
    }
}
