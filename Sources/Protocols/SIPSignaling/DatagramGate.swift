package import Core
internal import SIP

/// How many datagrams of peers that are not the server are read: of each host ``perHost`` a second, and of all hosts
/// without a call together ``ofStrangers``. Peers of calls share a separate ``ofCalls``, so that other hosts cannot
/// keep them out.
///
/// A datagram that does not begin like a message counts for no limit. An IPv6 host is its /64. Capacity: ``hosts``.
/// Those that were silent for longest are forgotten, and begin again with a full bucket: only the limit for all hosts
/// bounds a flood from many addresses.
package struct DatagramGate: Sendable {
    /// Datagrams of one host that are read.
    package static let perHost = TokenBucket.Rate(burst: 200, perSecond: 100)
    /// Rate of datagrams from all peers of calls: some for each call.
    package static let ofCalls = TokenBucket.Rate(2_000, within: .seconds(1))
    /// Rate of datagrams from hosts without a call, if strangers may call.
    package static let ofStrangers = TokenBucket.Rate(1_000, within: .seconds(1))
    /// The same if strangers may not call.
    package static let ofOthers = TokenBucket.Rate(100, within: .seconds(1))
    /// Hosts that are remembered.
    package static let hosts = 1_024

    private let rate: TokenBucket.Rate
    private var all = TokenBucket()
    /// Hosts heard lately, and those before them, which are forgotten when there are too many.
    private var recent: [ClientAddress: TokenBucket] = [:]
    private var former: [ClientAddress: TokenBucket] = [:]
    /// The same for the peers of calls, kept apart so that a flood from other hosts cannot push them out.
    private var peers: [ClientAddress: TokenBucket] = [:]
    private var allPeers = TokenBucket()

    /// Makes one.
    package init(acceptsStrangers: Bool) { rate = acceptsStrangers ? Self.ofStrangers : Self.ofOthers }

    /// Whether a datagram is read.
    ///
    /// - Parameter isOfCall: Whether it comes from where the peer of a call may be.
    package mutating func admits(
        _ bytes: some Collection<UInt8>, from peer: SocketAddress, isOfCall: Bool, at now: Instant
    ) -> Bool {
        guard Self.beginsLikeMessage(bytes) else { return false }
        let host = ClientAddress(peer.host) ?? .none
        if isOfCall {
            if peers.count >= Self.hosts { peers = [:] }
            guard peers[host, default: TokenBucket()].take(Self.perHost, at: now) else { return false }
            return allPeers.take(Self.ofCalls, at: now)
        }
        var bucket = recent[host] ?? former[host] ?? TokenBucket()
        let isAdmitted = bucket.take(Self.perHost, at: now)
        if recent[host] == nil, recent.count >= Self.hosts / 2 {
            former = recent
            recent = [:]
        }
        recent[host] = bucket
        return isAdmitted && all.take(rate, at: now)
    }

    /// Whether the first line is one of SIP's: it begins or ends with the version. Longer ones are none that would be served.
    static func beginsLikeMessage(_ bytes: some Collection<UInt8>) -> Bool {
        let line = Array(bytes.drop { $0 == 13 || $0 == 10 }.prefix(longestLine).prefix { $0 != 10 })
        let version = "sip/2.0".utf8
        func isVersion(_ part: some Collection<UInt8>) -> Bool {
            part.count == version.count && zip(part, version).allSatisfy { $0 == $1 || $0 | 0x20 == $1 }
        }
        if isVersion(line.prefix(version.count)) { return true }
        return isVersion((line.last == 13 ? line.dropLast() : line[...]).suffix(version.count))
    }

    /// A method, a URI and a version.
    private static let longestLine = SIPLimits.uriBytes + 64
}
