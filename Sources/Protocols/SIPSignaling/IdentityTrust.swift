internal import Core
public import SIP

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
