// SIPSignaling: an account at a SIP server as a value: its flow, its registration, and its calls in the terms that all
// signaling services share.

public import Core
public import SIP

/// Our identity at a SIP server, and how to reach the server.
public struct SIPAccountSettings: Sendable {
    /// What its calls go by, and its address of record.
    public var agent: UserAgentConfiguration
    /// The name for challenges.
    public var username: String
    /// The password; never printed.
    public var password: WipedBytes
    /// The realms of the server's challenges; if empty, those that its registrar uses until it has accepted us.
    public var realms: Set<String> = []
    /// Requested lifetime of a registration, in seconds; 0 does not register.
    public var registrationSeconds: UInt32 = 600
    /// `urn:uuid:…`, the same for the life of the device (RFC 5626 §4.1); `nil` asks for neither outbound nor a GRUU.
    public var instance: String?
    /// Whether calls use the GRUU that the registrar assigns to this device (RFC 5627) as contact.
    public var usesGRUU = false
    /// Interval of keepalives, unless the server asks for another.
    public var keepalive: Duration = .seconds(25)
    /// Whether calls are taken from others than the server.
    public var acceptsStrangers = false
    /// The peers that assert callers' identities; from others, the caller's own text counts.
    public var identityTrust = IdentityTrust()
    /// With this, a failure of the first connection is final.
    public var givesUpAtOnce = false
    /// Whether the login is only tried: the registrar is asked for bindings, and none is made or changed. No call comes in.
    public var isTrial = false

    /// Makes the settings of an account.
    public init(address: NameAddress, username: String, password: String) {
        agent = UserAgentConfiguration(address: address)
        self.username = username
        self.password = WipedBytes(password.utf8)
    }

    /// The address of record, as others call us.
    public var address: NameAddress { agent.address }

    /// The domain of the address of record.
    var domain: SIPHost? { address.uri.sip?.host }
}

extension SIPAccountSettings: CustomStringConvertible, CustomReflectable {
    /// The address alone.
    public var description: String { "\(address.uri)" }
    /// Shows no secret to a debugger's or logger's reflection either.
    public var customMirror: Mirror { Mirror(self, children: ["address": "\(address.uri)"]) }
}

/// An address and a transport of a server.
public struct SIPTarget: Hashable, Sendable, CustomStringConvertible {
    /// How.
    public var transport: SIPTransport
    /// Where.
    public var address: SocketAddress

    /// Makes a target.
    public init(transport: SIPTransport, address: SocketAddress) {
        self.transport = transport
        self.address = address
    }

    /// For example `TCP 192.0.2.1:5060`.
    public var description: String { "\(transport.rawValue) \(address)" }
}

/// The peers whose assertions about a caller count (RFC 3325 §6): those that the configuration names, and no others.
public struct IdentityTrust: Sendable {
    /// The account's server, at each of its addresses.
    public var includesServer = false
    /// Other addresses, such as those of a cluster's nodes.
    public var hosts: [SIPHost] = []
    /// Addresses that the server's name resolved to.
    private var server: [SIPHost] = []

    /// Makes a trust in no peer.
    public init() {}

    /// The server has been looked up.
    mutating func resolved(_ targets: [SIPTarget]) { server = targets.compactMap { SIPHost($0.address.host) } }

    /// All addresses of the server's nodes.
    var servers: [SIPHost] { server + hosts }

    /// Whether the peer that sent a request asserts its caller's identity. The request's top `Via` is stamped.
    func vouches(for request: SIPRequest, by flow: SIPFlow?) -> Bool {
        guard let source = request.headers.topVia?.source else { return false }
        if includesServer, flow?.isToServer == true || server.contains(where: { $0.isSame(as: source) }) { return true }
        return hosts.contains { $0.isSame(as: source) }
    }
}
