public import Identifiers

/// The name of a call in one user agent.
public enum SIPCall: Hashable, Sendable {
    /// An outgoing call; the owner, which places it, chooses the number.
    case outgoing(UInt64)
    /// An incoming call; the user agent chooses the number.
    case incoming(UInt64)

    /// Sorts calls in the same order in each run.
    public var order: UInt64 {
        switch self {
        case .outgoing(let number): number * 2
        case .incoming(let number): number * 2 + 1
        }
    }
}

/// The settings of a user agent.
public struct UserAgentConfiguration: Sendable {
    /// Our address of record, as others call us.
    public var address: NameAddress
    /// The requests that are served.
    public var screen = RequestScreen.userAgent
    /// The interval of session timers that we ask for, in seconds; with `nil`, only a peer's timers are served.
    public var sessionSeconds: UInt32? = 1_800
    /// The shortest interval that we accept, in seconds; not below 90 (RFC 4028 §4).
    public var shortestSessionSeconds: UInt32 = 90
    /// How long a call may ring, in either direction; not above ``TransactionTimers/answerLimit``.
    public var ringLimit: Duration = .seconds(180)
    /// Whether calls are relayed to another service: calls in a circle are then refused, and none is replaced.
    public var passesOn = false
    /// The callees that a third party may name: by a transfer that a peer asks for, or a redirection.
    public var callees = CalleeList()
    /// Whether our call follows a redirection (3xx) by our server, if its target is one of ``callees``.
    public var followsRedirections = true
    /// `User-Agent` and `Server`; `nil` sends none.
    public var product: String?
    /// The timers of transactions.
    public var timers = TransactionTimers()
    /// Bytes that the transactions of peers may take up.
    public var transactionMemory = SIPLimits.transactionMemory.lowerBound

    /// Makes a configuration.
    public init(address: NameAddress) { self.address = address }

    /// Where redirections may lead our calls.
    var redirectionTargets: CalleeList { followsRedirections ? callees : CalleeList() }
}

/// A command of a call's owner.
public enum CallCommand: Sendable {
    /// Place a call, with an offer. `replacing` is a dialog that the peer is to give up for it; the INVITE has `headers` besides its own.
    case place(to: AnyURI, offer: [UInt8], SIPFlow, replacing: Replaces?, headers: SIPHeaders = SIPHeaders())
    /// Send ringing to the caller (180), or with an answer early media (183).
    case ring(answer: [UInt8]?)
    /// Accept the call, with the answer, or with an offer if the INVITE had none.
    case accept([UInt8])
    /// Refuse the call with that status.
    case refuse(Int)
    /// End the call in any state. The cause goes into `Reason: SIP`.
    case end(cause: Int?)
    /// Make a new offer: hold, other media or addresses. It waits while an offer of either side or an ACK is in
    /// progress; a second offer that would wait is refused with 491.
    case offer([UInt8])
    /// Take back an offer that still waits, or that crossed the peer's and is to be made again.
    case withdrawOffer
    /// Answer ``CallEvent/offered(_:)``; or make the offer that an empty one requests.
    case answer([UInt8])
    /// Refuse the peer's offer with 488; the session stays as it was.
    case refuseOffer
    /// Send a digit (`0`…`9`, `*`, `#`, `A`…`D`, or `!` for the flash) by INFO, after earlier ones.
    case digit(Character, milliseconds: Int)
    /// Ask the peer to call another party, which may be the remote party of another of our calls (attended transfer).
    case transfer(to: AnyURI, replacing: SIPCall?)
    /// Do what the peer asked with ``CallEvent/transferRequested(_:replaces:)``: place that call with this offer, and
    /// notify the peer of its progress. The call uses that flow, or the existing call's.
    case acceptTransfer(placing: UInt64, offer: [UInt8], by: SIPFlow? = nil, headers: SIPHeaders = SIPHeaders())
    /// Refuse it with 603.
    case refuseTransfer
    /// Send OPTIONS to the peer in the dialog, to find out whether it is still there; ``CallEvent/probed(_:)`` follows
    /// while the call lasts.
    case probe
}

/// Why a call ended.
public enum CallEnd: Equatable, Sendable {
    /// We ended it.
    case local
    /// The peer ended it: BYE, or CANCEL with the cause of its `Reason: SIP`, such as 200 if another device answered.
    case remote(cause: Int?)
    /// Our INVITE was refused with that status, the last one if it was redirected; `contacts` are the addresses of a
    /// 3xx that was not followed.
    case refused(Int, contacts: [AnyURI])
    /// No answer came in time.
    case unanswered
    /// Our password is wrong, or the challenge is of an unsupported kind.
    case unauthorized
    /// The peer is gone: no ACK, no answer to a request, or the session was not refreshed.
    case lost
    /// The flow failed, or there are too many transactions.
    case failed
    /// Another call replaced it.
    case replaced
}

/// An event of a call.
public enum CallEvent: Equatable, Sendable {
    /// A call comes in; without an offer, one is to be made when the call is accepted.
    case incoming(from: NameAddress, offer: [UInt8]?, replacing: SIPCall?)
    /// A provisional response with that status; with a description there is early media.
    case progress(Int, early: [UInt8]?)
    /// The peer accepted our call, with its answer, which may have come early.
    case accepted([UInt8]?)
    /// The caller has acknowledged our acceptance; with the answer, if ours was the offer.
    case confirmed([UInt8]?)
    /// The peer makes a new offer, or (`nil`) asks for an offer.
    case offered([UInt8]?)
    /// The peer took its offer back before it was answered; the session is unchanged.
    case offerWithdrawn
    /// Our offer was answered; `nil` if the answer came early, or there was none.
    case answered([UInt8]?)
    /// Our offer was refused with that status; the session is unchanged.
    case offerRefused(Int)
    /// A digit came by INFO.
    case digit(Character, milliseconds: Int)
    /// The peer refused our digit with that status, or did not answer it (408).
    case digitRefused(Int)
    /// Another INFO came, and was answered with 200.
    case info(MediaType?, [UInt8])
    /// The peer asks us to call another party, in place of a dialog that the peer has.
    case transferRequested(AnyURI, replaces: Replaces?)
    /// The peer carries out our transfer, and its call has this status; the last one is final.
    case transferProgress(Int, isFinal: Bool)
    /// The peer does not do what we asked.
    case transferRefused(Int)
    /// The status of the answer to our probe, 408 if none came in time; nil if the probe could not be sent.
    case probed(Int?)
    /// The call ended. No event follows.
    case ended(CallEnd)
}

/// An input of ``UserAgent``.
public enum UserAgentInput: Sendable {
    /// A message came in on that flow; the top `Via` of a request is stamped already.
    case received(SIPMessage, SIPFlow)
    /// A command for a call. Commands that have no meaning in the call's state, or for a call that has ended, are ignored.
    case command(SIPCall, CallCommand)
    /// The registration has given us another contact, such as a GRUU, or a `Service-Route`; for new calls and the next
    /// requests of those that there are.
    case registered(contact: AnyURI, routes: [NameAddress])
    /// The flow is gone. Established calls, calls that ring, and a BYE without an answer wait for ``moved``; calls that
    /// ring on a peer's flow end.
    case flowFailed(SIPFlow)
    /// Another flow replaces one that is gone: calls in progress continue on it. With `refreshes` the peers receive our
    /// new contact at once.
    case moved(SIPFlow, to: SIPFlow, refreshes: Bool)
    /// The account's mailbox has changed; nil if it has none. Without one SUBSCRIBE is not served.
    case mailbox(SIPMailbox?)
    /// The owner's answer to ``UserAgentOutput/subscription(_:_:_:)``, with the peer's name as the owner knows it; nil if no host that is
    /// trusted says who it is.
    case subscription(SIPRequest, TransactionID, SIPFlow, subscriber: Callee?)
    /// The account is registered over that flow.
    case served(SIPFlow)
    /// The account ends: so do all subscriptions.
    case endSubscriptions
    /// ``UserAgent/nextDeadline`` has come. Early calls are harmless.
    case timerFired
}

/// An output of ``UserAgent``.
public enum UserAgentOutput: Equatable, Sendable {
    /// Put the message on the wire.
    case transmit(SIPMessage, SIPFlow)
    /// Something happened to a call.
    case call(SIPCall, CallEvent)
    /// A peer asks to subscribe to the mailbox. The owner answers at once, by ``UserAgentInput/subscription(_:_:_:subscriber:)``.
    case subscription(SIPRequest, TransactionID, SIPFlow)
    /// Something happened to a notification of the mailbox.
    case mailbox(MailboxEvent)
}
