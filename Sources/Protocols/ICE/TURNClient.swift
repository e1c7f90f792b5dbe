public import Core

/// One allocation at a TURN server, over datagrams or a byte stream (RFC 8656).
///
/// At most ``maximumPeers`` peers have permissions and channels; more are refused.
public struct TURNClient: ProtocolCore, Sendable {
    /// Which relayed addresses are asked for (RFC 8656 §7.1).
    enum Families: Sendable {
        /// An IPv4 address, and an IPv6 address too from a server that assigns two at once.
        case both
        /// One of IPv6.
        case ipv6
        /// The address family of a server that does not support families.
        case unsaid
    }

    /// Peers beyond this many are refused.
    public static let maximumPeers = 64

    /// A request that waits for its answer.
    struct Request: Sendable {
        enum Purpose: Equatable, Sendable {
            case allocate
            case refresh
            case release
            case permission(SocketAddress)
            case channel(SocketAddress, UInt16)
        }

        let purpose: Purpose
        var id: TransactionID
        var bytes: [UInt8]
        var credentials: TURNCredentials?
        /// How often the server has asked for other credentials.
        var challenges = 0
        var nextSend: Instant
        var interval: Duration
        let end: Instant
    }

    enum State: Equatable, Sendable {
        case idle
        case allocating
        case allocated
        /// Giving the allocation back.
        case ending
        case ended
    }

    /// A permission for a peer's address with any port. `refreshAt` is nil until the server has agreed.
    struct Permission: Sendable {
        var refreshAt: Instant?
    }

    struct Channel: Sendable {
        let peer: SocketAddress
        let number: UInt16
        /// `nil` until the server has agreed.
        var refreshAt: Instant?
    }

    /// Permissions last 5 minutes and channels 10 (RFC 8656 §9, §12); both are refreshed well before.
    static let refreshInterval = Duration.seconds(240)
    private static let keepAliveInterval = Duration.seconds(15)

    let username: String
    let password: String
    let isStream: Bool
    var generator: any RandomNumberGenerator & Sendable
    var families: Families
    var state = State.idle
    var requests: [Request] = []
    var credentials: TURNCredentials?
    var permissions: [SocketAddress: Permission] = [:]
    var channels: [Channel] = []
    var refreshAt: Instant?
    private var framer = STUNStreamFramer()
    private var lastSent = Instant.zero
    /// The relayed addresses, once there are any: one of each family at most.
    public internal(set) var relays: [SocketAddress] = []
    /// The server gave an IPv4 address and did not mention IPv6: it supports no allocations of both.
    private(set) var givesOneFamily = false
    /// Messages dropped because they were malformed, unprotected, or answered no open request.
    public internal(set) var dropped = 0

    /// Makes a client for one connection.
    ///
    /// - Parameters:
    ///   - isStream: The connection is a byte stream (TCP, TLS), so nothing is repeated and messages are cut out of it.
    ///   - generator: Draws transaction IDs; must be unpredictable to others.
    public init(
        username: String, password: String, isStream: Bool, generator: some RandomNumberGenerator & Sendable
    ) {
        self.init(
            username: username, password: password, isStream: isStream, families: .both, generator: generator)
    }

    init(
        username: String, password: String, isStream: Bool, families: Families,
        generator: some RandomNumberGenerator & Sendable
    ) {
        self.families = families
        self.username = username
        self.password = password
        self.isStream = isStream
        self.generator = generator
    }

    /// The earliest of all that is due.
    public var nextDeadline: Instant? {
        guard state != .ended, state != .idle else { return nil }
        var times = requests.map { min($0.nextSend, $0.end) }
        if state == .allocated {
            if let refreshAt { times.append(refreshAt) }
            times += permissions.values.compactMap(\.refreshAt) + channels.compactMap(\.refreshAt)
            times.append(lastSent.advanced(by: Self.keepAliveInterval))
        }
        return times.min()
    }

    /// The number of the peer's channel, once the server has agreed to it.
    public func channel(of peer: SocketAddress) -> UInt16? {
        channels.first { $0.peer == peer && $0.refreshAt != nil }?.number
    }

    /// The relayed address that reaches a peer: the one of its family.
    public func relay(for peer: SocketAddress) -> SocketAddress? { relays.first { $0.isIPv6 == peer.isIPv6 } }

    /// Takes the addresses of an allocation. False if there is none that could be used.
    mutating func takeRelays(of message: STUNMessage) -> Bool {
        for address in message.addresses(.xorRelayedAddress)
        where !address.isUnusableAsPeer && relay(for: address) == nil { relays.append(address) }
        givesOneFamily = families == .both && relays.map(\.isIPv6) == [false] && !message.contains(.addressErrorCode)
        return !relays.isEmpty
    }

    /// Takes one input at time `now`.
    public mutating func handle(_ input: TURNInput, at now: Instant, into outbox: inout [TURNOutput]) {
        let before = outbox.count
        switch input {
        case .opened:
            guard state == .idle else { break }
            state = .allocating
            request(.allocate, at: now, into: &outbox)
        case .bytes(let bytes): take(bytes, at: now, into: &outbox)
        case .permit(let peer): permit(peer, at: now, into: &outbox)
        case .bindChannel(let peer): bindChannel(peer, at: now, into: &outbox)
        case .send(let data, let peer): send(data, to: peer, into: &outbox)
        case .end: end(at: now, into: &outbox)
        case .timerFired: timerFired(at: now, into: &outbox)
        }
        let hasSent = outbox[before...].contains { if case .transmit = $0 { true } else { false } }
        if hasSent { lastSent = now }
    }

    private mutating func permit(_ peer: SocketAddress, at now: Instant, into outbox: inout [TURNOutput]) {
        let host = peer.withPort(0)
        guard state == .allocated, permissions[host] == nil else { return }
        guard permissions.count < Self.maximumPeers, relay(for: peer) != nil else {
            outbox.append(.refused(host))
            return
        }
        permissions[host] = Permission()
        request(.permission(peer), at: now, into: &outbox)
    }

    private mutating func bindChannel(_ peer: SocketAddress, at now: Instant, into outbox: inout [TURNOutput]) {
        guard state == .allocated, channels.count < Self.maximumPeers, !channels.contains(where: { $0.peer == peer })
        else { return }
        let number = ChannelData.numbers.lowerBound + UInt16(truncatingIfNeeded: channels.count)
        channels.append(Channel(peer: peer, number: number))
        request(.channel(peer, number), at: now, into: &outbox)
    }

    private mutating func send(_ data: [UInt8], to peer: SocketAddress, into outbox: inout [TURNOutput]) {
        guard state == .allocated, data.count <= 60_000 else { return }
        if let number = channel(of: peer) {
            outbox.append(.transmit(ChannelData(channel: number, data: data).encoded(padded: isStream)))
            return
        }
        var builder = STUNBuilder(.indication, .send, TransactionID(using: &generator))
        builder.append(.xorPeerAddress, peer)
        builder.append(.data, data)
        outbox.append(.transmit(builder.finish()))
    }

    private mutating func end(at now: Instant, into outbox: inout [TURNOutput]) {
        switch state {
        case .allocated:
            state = .ending
            requests = []
            request(.release, at: now, into: &outbox)
        case .idle, .allocating:
            state = .ended
            requests = []
            outbox.append(.ended)
        case .ending, .ended: break
        }
    }

    private mutating func timerFired(at now: Instant, into outbox: inout [TURNOutput]) {
        repeatRequests(at: now, into: &outbox)
        guard state == .allocated else { return }
        if let due = refreshAt, due <= now {
            refreshAt = nil
            request(.refresh, at: now, into: &outbox)
        }
        for index in channels.indices {
            guard let due = channels[index].refreshAt, due <= now else { continue }
            channels[index].refreshAt = now.advanced(by: Self.refreshInterval)
            request(.channel(channels[index].peer, channels[index].number), at: now, into: &outbox)
        }
        let aged = permissions.filter { $0.value.refreshAt.map { $0 <= now } ?? false }.keys
        for host in aged.sorted(by: { $0.description < $1.description }) {
            permissions[host]?.refreshAt = now.advanced(by: Self.refreshInterval)
            request(.permission(host.withPort(1)), at: now, into: &outbox)
        }
        if lastSent.advanced(by: Self.keepAliveInterval) <= now {
            // Keeps the NAT bindings open (RFC 8489 §2, on indications).
            outbox.append(.transmit(STUNBuilder(.indication, .binding, TransactionID(using: &generator)).finish()))
        }
    }

    /// Cuts what came into messages.
    private mutating func take(_ bytes: [UInt8], at now: Instant, into outbox: inout [TURNOutput]) {
        guard state != .idle, state != .ended else { return }
        guard isStream else {
            takeFrame(bytes, at: now, into: &outbox)
            return
        }
        for frame in framer.push(bytes) { takeFrame(frame, at: now, into: &outbox) }
        if framer.isBroken { fail(TURNFailure(.notTURN), into: &outbox) }
    }

    private mutating func takeFrame(_ bytes: [UInt8], at now: Instant, into outbox: inout [TURNOutput]) {
        if let message = ChannelData(parsing: bytes) {
            guard let channel = channels.first(where: { $0.number == message.channel }) else {
                dropped += 1
                return
            }
            outbox.append(.received(message.data, from: channel.peer))
            return
        }
        guard let message = try? STUNMessage(parsing: bytes) else {
            dropped += 1
            return
        }
        switch message.messageClass {
        case .indication: takeIndication(message, into: &outbox)
        case .success, .failure: takeResponse(message, at: now, into: &outbox)
        case .request: dropped += 1
        }
    }

    private mutating func takeIndication(_ message: STUNMessage, into outbox: inout [TURNOutput]) {
        // An indication of an ICMP error (RFC 8656 §11.6) has no DATA: it is only a hint, and is ignored.
        guard message.method == .data, let peer = message.address(.xorPeerAddress), let data = message.value(.data),
            state == .allocated, permissions[peer.withPort(0)] != nil || channels.contains(where: { $0.peer == peer })
        else {
            dropped += 1
            return
        }
        outbox.append(.received(Array(data), from: peer))
    }

    /// This client has failed or ended.
    var hasEnded: Bool { state == .ended }

    /// The connection is gone, and the allocation with it.
    mutating func connectionLost() {
        state = .ended
        requests = []
    }

    mutating func fail(_ failure: TURNFailure, into outbox: inout [TURNOutput]) {
        guard state != .ended else { return }
        state = .ended
        requests = []
        outbox.append(.failed(failure))
    }
}
