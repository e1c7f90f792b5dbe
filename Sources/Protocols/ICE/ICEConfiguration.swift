public import Core

/// A server that helps to find a path. Host names are resolved before.
public struct ICEServer: Hashable, Sendable {
    /// How a TURN server is reached.
    public enum Transport: Hashable, Sendable {
        /// Datagrams.
        case udp
        /// A TCP connection.
        case tcp
        /// TLS over TCP. The server's certificate must be for this host name, or for this literal address.
        case tls(hostName: String)
    }

    /// The server's purpose.
    public enum Kind: Hashable, Sendable {
        /// Reports our address; queried over UDP from each local address.
        case stun
        /// Relays. Name and password may be permanent, or assigned for a limited time by a service.
        case turn(Transport, username: String, password: String)
    }

    /// Whether it is a STUN or a TURN server, and its transport.
    public var kind: Kind
    /// Its address.
    public var address: SocketAddress

    /// Makes a server's description.
    public init(_ kind: Kind, at address: SocketAddress) {
        self.kind = kind
        self.address = address
    }
}

extension ICEServer: CustomStringConvertible {
    /// Description of the server, such as "turns (TLS) relay.example at 192.0.2.1:5349". Contains no secret.
    public var description: String {
        switch kind {
        case .stun: "stun at \(address)"
        case .turn(.udp, _, _): "turn (UDP) at \(address)"
        case .turn(.tcp, _, _): "turn (TCP) at \(address)"
        case .turn(.tls(let hostName), _, _): "turns (TLS) \(hostName) at \(address)"
        }
    }
}

/// The settings of an agent.
public struct ICEConfiguration: Sendable {
    /// Which addresses may be used.
    public enum Policy: Sendable {
        /// All.
        case all
        /// Only relayed ones, so that the peer learns none of our addresses.
        case relayOnly
    }

    /// Which addresses may be used.
    public var policy = Policy.all
    /// STUN and TURN servers; those beyond ``maximumServers`` are left out.
    public var servers: [ICEServer] = []
    /// We are the offering side, and so controlling; changed if the peer turns out to be controlling too (RFC 8445
    /// §6.1.1).
    public var isControlling: Bool
    /// Ta: the time between first checks of pairs, at least 5 ms. The minimum, and not the default of 50 ms (RFC 8445
    /// §14.2), because a call should not wait for the pairs that are tried before the one that works.
    public var pacing = Duration.milliseconds(5)
    /// The time after which an unanswered check is repeated; it doubles up to ``maximumRetransmission``. RFC 8445 §14.3
    /// has a minimum of 500 ms; this is shorter, because each of our checks is a separate transaction, and lossy paths
    /// are found sooner.
    public var retransmission = Duration.milliseconds(100)
    /// The most time between two tries.
    public var maximumRetransmission = Duration.milliseconds(500)
    /// How long a pair is tried.
    public var checkTimeout = Duration.seconds(10)
    /// How long gathering may take.
    public var gatheringTimeout = Duration.seconds(8)
    /// How long, from the start of checks, nothing is called failed (RFC 8863).
    public var patience = Duration.milliseconds(39_500)
    /// How long a working direct pair waits for a better one before it is nominated.
    public var directGrace = Duration.milliseconds(50)
    /// How long a working relayed pair waits for a better one before it is nominated.
    public var relayedGrace = Duration.milliseconds(500)
    /// The time between consent checks, before it is varied by a fifth (RFC 7675 §5.1).
    public var consentInterval = Duration.seconds(5)
    /// How long the peer may go without answering a consent check before sending must stop (RFC 7675 §5.1).
    public var consentTimeout = Duration.seconds(30)
    /// The time between checks of the selected pair while there is an alternative: less than the 4 s of RFC 7675 §5.1,
    /// so that a dead path is noticed.
    public var livenessInterval = Duration.seconds(1)
    /// How long the selected pair may stay silent, once a check is overdue, before another that works takes over.
    public var switchDelay = Duration.milliseconds(1_000)
    /// The same when the media has fallen silent, too (``ICEInput/pathIsQuiet``): two tries, and the time for a third.
    public var quietSwitchDelay = Duration.milliseconds(400)

    /// Local addresses beyond this number are left out.
    public static let maximumLocalAddresses = 16
    /// Servers beyond this many are left out.
    public static let maximumServers = 8
    /// Candidates of the peer beyond this many are dropped and counted.
    public static let maximumRemoteCandidates = 64
    /// The most pairs; beyond it those of the lowest priority are dropped and counted (RFC 8445 §6.1.2.5).
    public static let maximumPairs = 100

    /// The default, for an offering or an answering side.
    public init(isControlling: Bool) { self.isControlling = isControlling }
}
