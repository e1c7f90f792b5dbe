internal import Core

/// The peers that a TURN server lets through: their permissions and channels (RFC 8656 §9, §12).
///
/// At most ``TURNClient/maximumPeers`` have a permission, and as many a channel. What the server has granted is
/// refreshed before it ends; a channel's number stays with its peer.
struct TURNPeers: Sendable {
    private struct Channel: Sendable {
        let peer: SocketAddress
        let number: UInt16
        /// `nil` until the server has agreed.
        var refreshAt: Instant?
    }

    /// A permission for a peer's address with any port. `refreshAt` is nil until the server has agreed.
    private struct Permission: Sendable {
        var refreshAt: Instant?
    }

    /// Permissions last 5 minutes and channels 10; both are refreshed well before.
    private static let refreshInterval = Duration.seconds(240)

    /// By the peer's address, with port 0.
    private var permissions: [SocketAddress: Permission] = [:]
    private var channels: [Channel] = []

    var nextDeadline: Instant? {
        (permissions.values.compactMap(\.refreshAt) + channels.compactMap(\.refreshAt)).min()
    }

    // MARK: Permissions, each for an address with any port

    /// Whether the peer's address has a permission, or one was asked for.
    func isKnown(_ peer: SocketAddress) -> Bool { permissions[peer.withPort(0)] != nil }

    /// Begins a permission. False if there are too many.
    mutating func addPermission(for peer: SocketAddress) -> Bool {
        guard permissions.count < TURNClient.maximumPeers else { return false }
        permissions[peer.withPort(0)] = Permission()
        return true
    }

    /// The server has agreed.
    mutating func permit(_ peer: SocketAddress, at now: Instant) {
        permissions[peer.withPort(0)] = Permission(refreshAt: now.advanced(by: Self.refreshInterval))
    }

    /// The server has not agreed, or no longer agrees.
    mutating func refuse(_ peer: SocketAddress) { permissions[peer.withPort(0)] = nil }

    /// Whether the server may pass on what this peer sends.
    func isAccepted(_ peer: SocketAddress) -> Bool { isKnown(peer) || channels.contains { $0.peer == peer } }

    // MARK: Channels

    /// The number of the peer's channel, once the server has agreed to it.
    func channel(of peer: SocketAddress) -> UInt16? {
        channels.first { $0.peer == peer && $0.refreshAt != nil }?.number
    }

    func peer(ofChannel number: UInt16) -> SocketAddress? { channels.first { $0.number == number }?.peer }

    /// Begins a channel. Nil if the peer has one, or there are too many.
    mutating func addChannel(for peer: SocketAddress) -> UInt16? {
        guard channels.count < TURNClient.maximumPeers, !channels.contains(where: { $0.peer == peer }) else {
            return nil
        }
        let number = ChannelData.numbers.lowerBound + UInt16(truncatingIfNeeded: channels.count)
        channels.append(Channel(peer: peer, number: number))
        return number
    }

    /// The server has agreed to the peer's channel. True if it had not agreed before.
    mutating func bindChannel(of peer: SocketAddress, at now: Instant) -> Bool {
        guard let index = channels.firstIndex(where: { $0.peer == peer }) else { return false }
        let isNew = channels[index].refreshAt == nil
        channels[index].refreshAt = now.advanced(by: Self.refreshInterval)
        return isNew
    }

    /// A refused channel keeps its number, because no other peer may use the number until five minutes after the
    /// binding's ten minutes (RFC 8656 §12). Data is sent without the channel.
    mutating func dropChannel(of peer: SocketAddress) {
        for index in channels.indices where channels[index].peer == peer { channels[index].refreshAt = nil }
    }

    // MARK: Refreshing

    /// The channels and permissions to ask for again now.
    mutating func takeRefreshes(at now: Instant) -> [TURNTransactions.Purpose] {
        var due: [TURNTransactions.Purpose] = []
        let next = now.advanced(by: Self.refreshInterval)
        for index in channels.indices {
            guard let refreshAt = channels[index].refreshAt, refreshAt <= now else { continue }
            channels[index].refreshAt = next
            due.append(.channel(channels[index].peer, channels[index].number))
        }
        let aged = permissions.filter { $0.value.refreshAt.map { $0 <= now } ?? false }.keys
        for host in aged.sorted(by: { $0.description < $1.description }) {
            permissions[host]?.refreshAt = next
            due.append(.permission(host.withPort(1)))
        }
        return due
    }
}
