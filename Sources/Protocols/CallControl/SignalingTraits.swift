/// How the calls of a signaling service differ from those of another. An adapter states it, so that nothing above asks which service it is.
public struct SignalingTraits: Hashable, Sendable {
    /// Whether the service confirms an accept before the caller has our answer, and reports that by ``CallMessage/acknowledged(host:)``.
    public var acknowledgesAnswers = false
    /// Whether the service waits for all candidates of our answer before it sends, and confirms, an accept.
    public var gathersForAccept = false
    /// Whether a caller may leave the offer to us (``CallDescription/Content/wanted``).
    public var takesOfferRequests = false
    /// Whether the callee may be heard before it answers (``CallMessage/earlyAnswer(_:)``).
    public var hasEarlyMedia = false
    /// Whether telephone keys come by signaling (``CallMessage/key(_:)``).
    public var carriesKeys = false
    /// Whether the service sees to it that new offers do not cross; otherwise the inviter's counts.
    public var ordersOffers = false
    /// Whether the service compares targets of transfers with the account's callees (``CallTransfer/Request/isUnlisted``).
    public var judgesTargets = false
    /// Whether calls come from peers of which nothing vouches for what their descriptions say.
    public var takesStrangers = false
    /// Whether callers may be others than users that the service has logged in, such as those of a telephone network.
    public var carriesForeignCalls = false

    /// Makes those of a service that has none of these.
    public init() {}
}
