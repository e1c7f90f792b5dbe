/// How an address came to be a candidate (RFC 8445 §4). In the order of preference, best first.
public enum CandidateType: String, Sendable {
    /// An address of the machine itself.
    case host
    /// An address from which a peer received a check, or to which one of our checks was answered.
    case peerReflexive = "prflx"
    /// An address that a STUN or TURN server saw.
    case serverReflexive = "srflx"
    /// An address of a TURN server.
    case relayed = "relay"

    /// The type's share of a priority (RFC 8445 §5.1.2.2).
    var preference: UInt32 {
        switch self {
        case .host: 126
        case .peerReflexive: 110
        case .serverReflexive: 100
        case .relayed: 0
        }
    }

    /// A candidate's priority (RFC 8445 §5.1.2.1), for the only component.
    func priority(localPreference: UInt16) -> UInt32 {
        preference << 24 | UInt32(localPreference) << 8 | 255
    }
}
