public import Core

/// One allocation at a TURN server, over datagrams or a byte stream (RFC 8656).
///
/// At most ``maximumPeers`` peers have permissions and channels; more are refused.
public struct TURNClient: ProtocolCore, Sendable {
    /// Peers beyond this many are refused.
    public static let maximumPeers = 64

    private enum State: Equatable, Sendable {
        case idle
        case allocating
        case allocated
        /// Giving the allocation back.
        case ending
        case ended
    }

    private static let keepAliveInterval = Duration.seconds(15)

    private var state = State.idle
    private var transactions: TURNTransactions
    private var allocation: TURNAllocation
    private var peers = TURNPeers()
    private var framer = STUNStreamFramer()
    private var lastSent = Instant.zero
    /// Messages dropped because they were malformed, unprotected, or answered no open request.
    public private(set) var dropped = 0

    /// Makes a client for one connection.
    ///
    /// - Parameters:
    ///   - isStream: The connection is a byte stream (TCP, TLS), so nothing is repeated and messages are cut out of it.
    ///   - generator: Draws transaction IDs; must be unpredictable to others.
    public init(
        username: String, password: String, isStream: Bool, generator: some RandomNumberGenerator & Sendable
    ) {
        transactions = TURNTransactions(
            username: username, password: password, isStream: isStream, generator: generator)
        allocation = TURNAllocation(families: .both)
    }

    /// A client for another connection like that of `other`, with the same name and password.
    ///
    /// - Parameter families: The addresses to ask for; nil means those that `other` asks for.
    init(
        like other: TURNClient, families: TURNAllocation.Families? = nil,
        generator: some RandomNumberGenerator & Sendable
    ) {
        transactions = TURNTransactions(
            username: other.transactions.username, password: other.transactions.password,
            isStream: other.transactions.isStream, generator: generator)
        allocation = TURNAllocation(families: families ?? other.allocation.families)
    }

    /// The earliest of all that is due.
    public var nextDeadline: Instant? {
        switch state {
        case .idle, .ended: nil
        case .allocating, .ending: transactions.nextDeadline
        case .allocated:
            [
                transactions.nextDeadline, allocation.refreshAt, peers.nextDeadline,
                lastSent.advanced(by: Self.keepAliveInterval),
            ].compactMap(\.self).min()
        }
    }

    /// The relayed addresses, once there are any: one of each family at most.
    public var relays: [SocketAddress] { allocation.relays }

    /// The number of the peer's channel, once the server has agreed to it.
    public func channel(of peer: SocketAddress) -> UInt16? { peers.channel(of: peer) }

    /// The relayed address that reaches a peer: the one of its family.
    public func relay(for peer: SocketAddress) -> SocketAddress? { allocation.relay(for: peer) }

    /// The server gave an IPv4 address and did not mention IPv6: it supports no allocations of both.
    var givesOneFamily: Bool { allocation.givesOneFamily }

    /// This client has failed or ended.
    var hasEnded: Bool { state == .ended }

    /// Takes one input at time `now`.
    public mutating func handle(_ input: TURNInput, at now: Instant, into outbox: inout [TURNOutput]) {
        let before = outbox.count
        switch input {
        case .opened:
            guard state == .idle else { break }
            state = .allocating
            request(.allocate(allocation.families), at: now, into: &outbox)
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

    // MARK: What the user asks for

    private mutating func permit(_ peer: SocketAddress, at now: Instant, into outbox: inout [TURNOutput]) {
        guard state == .allocated, !peers.isKnown(peer) else { return }
        guard relay(for: peer) != nil, peers.addPermission(for: peer) else {
            outbox.append(.refused(peer.withPort(0)))
            return
        }
        request(.permission(peer), at: now, into: &outbox)
    }

    private mutating func bindChannel(_ peer: SocketAddress, at now: Instant, into outbox: inout [TURNOutput]) {
        guard state == .allocated, let number = peers.addChannel(for: peer) else { return }
        request(.channel(peer, number), at: now, into: &outbox)
    }

    private mutating func send(_ data: [UInt8], to peer: SocketAddress, into outbox: inout [TURNOutput]) {
        guard state == .allocated, data.count <= 60_000 else { return }
        if let number = channel(of: peer) {
            let message = ChannelData(channel: number, data: data)
            outbox.append(.transmit(message.encoded(padded: transactions.isStream)))
            return
        }
        var builder = STUNBuilder(.indication, .send, transactions.transactionID())
        builder.append(.xorPeerAddress, peer)
        builder.append(.data, data)
        outbox.append(.transmit(builder.finish()))
    }

    private mutating func end(at now: Instant, into outbox: inout [TURNOutput]) {
        switch state {
        case .allocated:
            state = .ending
            transactions.abandonAll()
            request(.release, at: now, into: &outbox)
        case .idle, .allocating: finish(into: &outbox)
        case .ending, .ended: break
        }
    }

    private mutating func request(
        _ purpose: TURNTransactions.Purpose, at now: Instant, into outbox: inout [TURNOutput]
    ) {
        outbox.append(.transmit(transactions.begin(purpose, at: now)))
    }

    // MARK: Time

    private mutating func timerFired(at now: Instant, into outbox: inout [TURNOutput]) {
        let due = transactions.takeDue(at: now)
        outbox += due.repeats.map { .transmit($0) }
        for purpose in due.overdue { giveUp(purpose, at: now, into: &outbox) }
        guard state == .allocated else { return }
        if allocation.takeRefresh(at: now) { request(.refresh, at: now, into: &outbox) }
        for purpose in peers.takeRefreshes(at: now) { request(purpose, at: now, into: &outbox) }
        if lastSent.advanced(by: Self.keepAliveInterval) <= now {
            // Keeps the NAT bindings open (RFC 8489 §2, on indications).
            outbox.append(.transmit(STUNBuilder(.indication, .binding, transactions.transactionID()).finish()))
        }
    }

    private mutating func giveUp(
        _ purpose: TURNTransactions.Purpose, at now: Instant, into outbox: inout [TURNOutput]
    ) {
        switch purpose {
        case .allocate: fail(TURNFailure(.timeout), into: &outbox)
        case .refresh: allocation.refreshFailed(at: now)
        case .release: finish(into: &outbox)
        case .permission(let peer): refuse(peer, into: &outbox)
        case .channel(let peer, _): peers.dropChannel(of: peer)
        }
    }

    // MARK: What the server sends

    /// Cuts what came into messages.
    private mutating func take(_ bytes: [UInt8], at now: Instant, into outbox: inout [TURNOutput]) {
        guard state != .idle, state != .ended else { return }
        guard transactions.isStream else {
            takeFrame(bytes, at: now, into: &outbox)
            return
        }
        for frame in framer.push(bytes) { takeFrame(frame, at: now, into: &outbox) }
        if framer.isBroken { fail(TURNFailure(.notTURN), into: &outbox) }
    }

    private mutating func takeFrame(_ bytes: [UInt8], at now: Instant, into outbox: inout [TURNOutput]) {
        if let message = ChannelData(parsing: bytes) {
            guard let peer = peers.peer(ofChannel: message.channel) else {
                dropped += 1
                return
            }
            outbox.append(.received(message.data, from: peer))
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
            state == .allocated, peers.isAccepted(peer)
        else {
            dropped += 1
            return
        }
        outbox.append(.received(Array(data), from: peer))
    }

    private mutating func takeResponse(_ message: STUNMessage, at now: Instant, into outbox: inout [TURNOutput]) {
        switch transactions.take(message, at: now) {
        case .dropped: dropped += 1
        case .granted(let purpose): granted(purpose, message, at: now, into: &outbox)
        case .refused(let purpose, let code, let text): refused(purpose, message, code, text, at: now, into: &outbox)
        case .unauthorized(.release, _, _): finish(into: &outbox)
        case .unauthorized(_, let code, let text):
            fail(TURNFailure(.unauthorized, code: code.rawValue, serverText: text), into: &outbox)
        case .challenged(let bytes): outbox.append(.transmit(bytes))
        }
    }

    private mutating func granted(
        _ purpose: TURNTransactions.Purpose, _ message: STUNMessage, at now: Instant, into outbox: inout [TURNOutput]
    ) {
        switch purpose {
        case .allocate:
            guard allocation.granted(by: message, at: now) else {
                fail(TURNFailure(.notTURN), into: &outbox)
                return
            }
            state = .allocated
            outbox += relays.map { .allocated(relay: $0) }
        case .refresh: allocation.refreshed(by: message, at: now)
        case .release: finish(into: &outbox)
        case .permission(let peer):
            peers.permit(peer, at: now)
            outbox.append(.permitted(peer.withPort(0)))
        case .channel(let peer, let number):
            if peers.bindChannel(of: peer, at: now) { outbox.append(.channelBound(peer, channel: number)) }
        }
    }

    private mutating func refused(
        _ purpose: TURNTransactions.Purpose, _ message: STUNMessage, _ code: STUNErrorCode, _ text: String,
        at now: Instant, into outbox: inout [TURNOutput]
    ) {
        switch purpose {
        case .allocate:
            if code == .tryAlternate, let other = message.address(.alternateServer) {
                state = .ended
                outbox.append(.redirected(other))
                return
            }
            if allocation.changeFamilies(after: code) {
                request(.allocate(allocation.families), at: now, into: &outbox)
                return
            }
            let reason: TURNFailure.Reason =
                switch code {
                case .allocationMismatch: .connectionInUse
                case .wrongCredentials: .unauthorized
                default: .refused
                }
            fail(TURNFailure(reason, code: code.rawValue, serverText: text), into: &outbox)
        case .refresh:
            guard code == .allocationMismatch || code == .wrongCredentials else {
                allocation.refreshFailed(at: now)
                return
            }
            fail(TURNFailure(.allocationLost, code: code.rawValue, serverText: text), into: &outbox)
        case .release: finish(into: &outbox)
        case .permission(let peer): refuse(peer, into: &outbox)
        case .channel(let peer, _): peers.dropChannel(of: peer)
        }
    }

    private mutating func refuse(_ peer: SocketAddress, into outbox: inout [TURNOutput]) {
        peers.refuse(peer)
        outbox.append(.refused(peer.withPort(0)))
    }

    // MARK: The end

    private mutating func finish(into outbox: inout [TURNOutput]) {
        connectionLost()
        outbox.append(.ended)
    }

    private mutating func fail(_ failure: TURNFailure, into outbox: inout [TURNOutput]) {
        guard state != .ended else { return }
        connectionLost()
        outbox.append(.failed(failure))
    }

    /// The connection is gone, and the allocation with it.
    mutating func connectionLost() {
        state = .ended
        transactions.abandonAll()
    }
}
