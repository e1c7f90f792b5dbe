public import Core
// ICE: finding a path to a peer (RFC 8445, RFC 8838) and keeping its consent (RFC 7675), with TURN (RFC 8656), without I/O.

/// One address at which a side may be reached, as sent to the other side (RFC 8445 §5.1, RFC 8839 §5.1).
public struct Candidate: Hashable, Sendable {
    /// The address of a candidate: known, or a name that is still to be looked up.
    public enum Location: Hashable, Sendable {
        /// A literal address.
        case address(SocketAddress)
        /// A host name, as sent by browsers that hide their addresses (".local", by multicast DNS).
        case name(String, port: UInt16)
    }

    /// Candidates of the same kind, base and server share it: 1 to 32 letters, digits, "+" or "/".
    public var foundation: String
    /// 1 for RTP and everything multiplexed with it; 2 for separate RTCP.
    public var component: Int
    /// "udp" or "tcp", in lower case. Only UDP candidates are used.
    public var transport: String
    /// The higher, the better.
    public var priority: UInt32
    /// Where.
    public var location: Location
    /// How it came to be.
    public var type: CandidateType
    /// The address behind it, for all types except host. Only for diagnosis, and often hidden.
    public var relatedAddress: SocketAddress?
    /// The user name fragment of its generation, if given (RFC 8838, RFC 8840).
    public var usernameFragment: String?

    /// Makes a candidate for UDP and the first component.
    public init(
        foundation: String, priority: UInt32, address: SocketAddress, type: CandidateType,
        relatedAddress: SocketAddress? = nil, usernameFragment: String? = nil
    ) {
        self.foundation = foundation
        component = 1
        transport = "udp"
        self.priority = priority
        location = .address(address)
        self.type = type
        self.relatedAddress = relatedAddress
        self.usernameFragment = usernameFragment
    }

    /// The literal address; `nil` while there is only a name.
    public var address: SocketAddress? {
        switch location {
        case .address(let address): address
        case .name: nil
        }
    }

    /// The same candidate with its name looked up.
    public func resolved(to address: SocketAddress) -> Candidate {
        var copy = self
        if case .name(_, let port) = location { copy.location = .address(address.withPort(port)) }
        return copy
    }
}
