public import CallControl
public import Core
public import SIP

/// A request of an application to an account.
public enum AccountRequest: Sendable {
    /// Open a flow, register, and keep both.
    case connect
    /// Remove the registration, end the calls, and close.
    case disconnect
    /// Invite to a call: the options have an offer.
    case invite(InviteOptions)
    /// Accept an invite, with an answer, or the offer that its caller wants.
    case accept(InviteID, InviteAcceptance)
    /// Refuse an invite.
    case reject(InviteID, InviteRejection)
    /// Take an invite back.
    case cancel(InviteID, InviteWithdrawal)
    /// End a call.
    case hangUp(CallHangUp)
    /// Send an offer, an answer or a candidate in a call.
    case send(CallSignal)
    /// Find out whether the peer of a call is still there.
    case probe(InviteID)
    /// Notify others of what waits in the mailbox, now and whenever they subscribe; nil if there is none. It may come before `connect`.
    case notify(WaitingMessages?)
}

/// The result of a request.
public enum AccountAnswer: Hashable, Sendable {
    /// It is done, or under way.
    case done
    /// The invite is under way to these.
    case sent(InviteID, invitees: [UserID])
    /// The result of the probe.
    case probed(PeerProbe)
    /// It cannot be done.
    case failed(SignalingError)
}

/// An input of ``AccountMachine``.
public enum AccountInput: Sendable {
    /// A request; its answer names the number, which is used once.
    case request(UInt64, AccountRequest)
    /// The answer to ``AccountOutput/resolve``.
    case resolved([SIPTarget])
    /// The answer to ``AccountOutput/lookUp(_:)``: a name's addresses; empty if none are known.
    case found(String, [SIPHost])
    /// The answer to ``AccountOutput/open(_:_:)``.
    case opened(SIPFlow)
    /// The flow of that number could not be opened, or has ended.
    case failed(Int, FlowFailure? = nil)
    /// A message came in on that flow; the top `Via` of a request is stamped already.
    case received(SIPMessage, SIPFlow)
    /// The peer answered a ping by the flow of that number.
    case ponged(Int)
    /// A response came from the server's host, but not from the port that the flow of that number uses. It was dropped.
    case misplaced(Int, SocketAddress)
    /// The server reported, on the flow of that number, the source address of our datagrams.
    case mapped(Int, SocketAddress)
    /// The network has changed. With the address from which packets to the server leave now; nil if there is no route.
    case networkChanged(source: SIPHost?)
    /// ``AccountMachine/nextDeadline`` has come. Early calls are harmless.
    case timerFired
}

/// Why there is no flow.
public struct FlowFailure: Equatable, Sendable {
    /// The failure, to be read after the server's name.
    public var text: String
    /// Whether the server's certificate is not trusted, or has another name.
    public var isUntrusted: Bool

    /// Makes one.
    public init(_ text: String, isUntrusted: Bool = false) {
        self.text = text
        self.isUntrusted = isUntrusted
    }
}

/// An output of ``AccountMachine``.
public enum AccountOutput: Equatable, Sendable {
    /// Look the server up.
    case resolve
    /// Look up a host that is a call's peer, or in its route.
    case lookUp(String)
    /// Open a flow of that number.
    case open(Int, SIPTarget)
    /// Close the flow of that number, or stop opening it.
    case close(Int)
    /// Keep the flow alive.
    case ping(SIPFlow, LinkMachine.Keepalive)
    /// Put the message on the wire.
    case transmit(SIPMessage, SIPFlow)
    /// Send the event to the application.
    case event(SignalingEvent)
    /// Answer a request.
    case answer(UInt64, AccountAnswer)
    /// Write to the log.
    case note(AccountNote)
}

/// A note for the log of the account's owner. Programs do not receive it.
public enum AccountNote: Equatable, Sendable {
    /// The server keeps our address for this number of seconds.
    case registered(seconds: UInt32)
    /// It did not work, and is tried again.
    case registrationFailed(status: Int, retryAfter: Duration)
    /// No address of the server can be used, and why.
    case unreachable(retryAfter: Duration, FlowFailure)
    /// The flow to the server has ended.
    case flowLost(SIPTransport)
    /// A call was ended because its caller asked for an offer, and did not answer it.
    case answerMissing(InviteID, from: UserID)
    /// The device did not answer a peer's new offer in time; the call continues unchanged.
    case offerUnanswered(InviteID)
    /// The peer took a new offer back before the device had answered it.
    case offerWithdrawn(InviteID)
    /// The peer refused our new offer with that status.
    case offerRefused(InviteID, Int)
    /// The peer did not take a key by INFO.
    case keyRefused(InviteID, Int)
    /// There was no room for requests of peers, which got 503: their number since the account began.
    case overloaded(count: Int)
    /// Messages that name a call or a request of ours came from an address of neither, and were refused: the last one's
    /// method and source, and their number since the account began.
    case foreign(SIPMethod?, SIPHost?, count: Int)
    /// A host other than the server's sent an INVITE, which `calls_from: server` drops: the last such host, and the number of these
    /// INVITEs since the account began.
    case strangerRefused(SIPHost?, count: Int)
    /// Something happened to a notification of the mailbox.
    case mailbox(MailboxEvent)
}

extension SignalingTraits {
    /// How calls over SIP differ from those of other services.
    public static let sip: SignalingTraits = {
        var traits = SignalingTraits()
        traits.acknowledgesAnswers = true
        traits.gathersForAccept = true
        traits.takesOfferRequests = true
        traits.hasEarlyMedia = true
        traits.carriesKeys = true
        traits.ordersOffers = true
        traits.judgesTargets = true
        traits.carriesForeignCalls = true
        return traits
    }()
}
