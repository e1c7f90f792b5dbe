public import JSON

/// What one side of a call describes of its media: an offer or an answer (RFC 3264).
public struct CallDescription: Hashable, Sendable {
    /// What is described.
    public enum Content: Hashable, Sendable {
        /// An offer, as SDP (RFC 8866).
        case offer(String)
        /// An answer, as SDP.
        case answer(String)
        /// In place of an offer: the receiver is to make the offer (RFC 3261 §13.2.1), as servers that connect two telephones, and
        /// some PBXs, request it in each of their calls. The accept then has an offer, and the caller's answer is a message.
        case wanted
        /// The peer sent something that is none of these.
        case unreadable
    }

    /// What is described.
    public var content: Content
    /// The host that it came from, where signaling goes from host to host: media without protection may come from there, too.
    public var source: String?

    /// Makes a description.
    public init(_ content: Content, source: String? = nil) {
        self.content = content
        self.source = source
    }

    /// An offer of our own.
    public static func offer(_ sdp: String) -> CallDescription { CallDescription(.offer(sdp)) }

    /// An answer of our own.
    public static func answer(_ sdp: String) -> CallDescription { CallDescription(.answer(sdp)) }

    /// The text of an offer or answer; nil for anything else.
    public var sdp: String? {
        switch content {
        case .offer(let sdp), .answer(let sdp): sdp
        case .wanted, .unreadable: nil
        }
    }

    /// Whether it is an offer.
    public var isOffer: Bool {
        switch content {
        case .offer: true
        case .answer, .wanted, .unreadable: false
        }
    }
}

/// A way by which a side of a call may be reached, or the end of these (RFC 8838).
public enum CallCandidate: Hashable, Sendable {
    /// A `candidate` attribute with its name, `candidate:…` (RFC 8839 §5.1), of the media section with that identifier, if it is known.
    case candidate(String, mid: String? = nil)
    /// The media section has no more candidates.
    case end(mid: String? = nil)
}

/// Why an invite is taken back.
public enum InviteWithdrawal: Hashable, Sendable {
    /// How the call ended.
    case call(CallEndReason)
    /// An application's own data; the invite is no call.
    case application(JSONValue)
}

/// What an accept carries.
public enum InviteAcceptance: Hashable, Sendable {
    /// The answer to the call's offer, or the offer, if the caller leaves it to the callee.
    case call(CallDescription)
    /// An application's own data; the invite is no call.
    case application(JSONValue)
}
