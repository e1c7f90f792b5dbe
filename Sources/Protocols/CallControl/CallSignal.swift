public import JSON

/// What the two ends of a call signal to each other about it.
public enum CallMessage: Hashable, Sendable {
    case candidate(CallCandidate)
    /// A new offer in an established call; one that is wanted is to be made by the receiver.
    case offer(CallDescription)
    case answer(CallDescription)
    /// An answer that comes before the call is answered, so that the caller hears what the other side plays meanwhile (early media).
    /// Another one may follow, and so does the callee's answer.
    case earlyAnswer(CallDescription)
    /// The other side's new offer cannot be taken: what was agreed before stays, and nothing waits for an answer any more.
    case offerRefused
    /// A request that the other side calls a third party in place of this call.
    case transfer(CallTransfer.Request)
    /// How that proceeds.
    case transferProgress(CallTransfer.Progress)
    /// A telephone key.
    case key(CallKey)
    /// The caller has our answer. A service that confirms an accept before that reports it so: over SIP, when the ACK comes.
    ///
    /// - Parameter host: Where it came from, if that is known: that host has received what we sent to it.
    case acknowledged(host: String?)
    /// A peer at an exchange probes the call. A device that does not know the call, such as one that was started again, hangs up.
    case probe

    /// The kinds of messages. Their names are the types of signals.
    public enum Kind: String, CaseIterable, Hashable, Sendable {
        case candidate, offer, answer, earlyAnswer, offerRefused, transfer, transferProgress
        case key = "digit"
        case acknowledged, probe
    }

    /// Its kind.
    public var kind: Kind {
        switch self {
        case .candidate: .candidate
        case .offer: .offer
        case .answer: .answer
        case .earlyAnswer: .earlyAnswer
        case .offerRefused: .offerRefused
        case .transfer: .transfer
        case .transferProgress: .transferProgress
        case .key: .key
        case .acknowledged: .acknowledged
        case .probe: .probe
        }
    }
}

/// A message between the two ends of a call: candidates, renegotiation, or an application's own.
public struct CallSignal: Hashable, Sendable {
    /// The call's invite.
    public var invite: InviteID
    /// What it says of the call; nil in an application's own signal, and if it cannot be read.
    public var message: CallMessage?
    /// Up to 128 bytes.
    public var type: String
    /// What an application sends, up to 8 KiB as JSON text; of a received signal everything that was sent.
    public var data: JSONValue
    /// Who sent it; nil on the way out.
    public var from: UserID?
    /// The receiver, in outgoing signals; needed once several have accepted the invite.
    public var peer: UserID?

    /// Makes a signal about the call.
    public init(invite: InviteID, _ message: CallMessage, from: UserID? = nil, peer: UserID? = nil) {
        self.init(invite: invite, type: message.kind.rawValue, data: .null, message, from: from, peer: peer)
    }

    /// Makes a signal of an application, or one that was received.
    public init(
        invite: InviteID, type: String, data: JSONValue, _ message: CallMessage? = nil, from: UserID? = nil,
        peer: UserID? = nil
    ) {
        self.invite = invite
        self.message = message
        self.type = type
        self.data = data
        self.from = from
        self.peer = peer
    }

    /// The kind of message that its type names; nil for types of applications.
    public var kind: CallMessage.Kind? { CallMessage.Kind(rawValue: type) }
}

/// A telephone key that signaling carries, and not the media.
public struct CallKey: Hashable, Sendable {
    /// `0`…`9`, `*`, `#`, `A`…`D`, or `!` for the flash of the hook.
    public let key: Character
    /// How long it was held, or is to be taken as held; up to 60 s.
    public let held: Duration

    /// Makes one; nil if there is no such key.
    public init?(_ key: Character, held: Duration) {
        guard "0123456789*#ABCD!".contains(key) else { return nil }
        self.key = key
        self.held = min(max(held, .zero), .seconds(60))
    }
}
