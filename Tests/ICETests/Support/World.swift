import ICE
import Core
import TestSupport

/// Two peers, a server and the Internet between them, in virtual time; the same course for the same seed.
final class World {
    struct Weather {
        var delay: ClosedRange<Double> = 5...30
        var loss = 0.0
        var duplication = 0.0
    }

    private struct Event {
        let at: Instant
        let number: Int
        let action: () -> Void
    }

    private(set) var now = Instant.zero
    var random: SeededGenerator
    var weather: Weather
    let peers: [SimulatedPeer]
    var servers: [SimulatedServer] = []
    var signalingDelay = Duration.milliseconds(40)
    /// Whether signals between the peers are held back.
    var heldSignals: [() -> Void]?
    private var events: [Event] = []
    private var eventNumber = 0
    /// Of each peer; kept, since asking takes a while in debug builds.
    private var deadlines: [Instant?]
    private var streamOwners: [Int: (peer: Int, server: Int)] = [:]
    private var nextStream = 1
    private var lastStreamArrival: [Int: Instant] = [:]
    /// Looks at, and may drop, every datagram on the open Internet.
    var filter: (_ source: SocketAddress, _ destination: SocketAddress, [UInt8]) -> Bool = { _, _, _ in true }

    init(seed: UInt64, weather: Weather = Weather(), _ peers: [SimulatedPeer], servers: [SimulatedServer] = []) {
        random = SeededGenerator(seed: seed)
        self.weather = weather
        self.peers = peers
        deadlines = peers.map(\.agent.nextDeadline)
        self.servers = servers
        for server in servers { connect(server) }
    }

    private func connect(_ server: SimulatedServer) {
        server.reply = { [unowned self, unowned server] client, bytes in
            switch client {
            case .datagrams(let address): route(bytes, from: server.address, to: address)
            case .stream(let id): streamToPeer(bytes, id)
            }
        }
        server.relayOut = { [unowned self] relay, peer, bytes in route(bytes, from: relay, to: peer) }
    }

    // MARK: Time

    func schedule(after delay: Duration, _ action: @escaping () -> Void) { schedule(now.advanced(by: delay), action) }

    private func schedule(_ at: Instant, _ action: @escaping () -> Void) {
        eventNumber += 1
        let place = events.firstIndex { $0.at <= at } ?? events.count  // The latest first.
        events.insert(Event(at: at, number: eventNumber, action: action), at: place)
    }

    /// Runs until `isDone`, or until `limit` has passed. Says whether it was done.
    @discardableResult
    func run(for limit: Duration, until isDone: () -> Bool = { false }) -> Bool {
        let end = now.advanced(by: limit)
        var turns = 0
        while !isDone() {
            turns += 1
            guard turns < 200_000 else { fatalError("The world does not come to rest at \(now.nanoseconds) ns") }
            let deadlines = deadlines
            guard let next = (deadlines + [events.last?.at]).compactMap(\.self).min(), next <= end else {
                now = end
                return isDone()
            }
            now = max(now, next)
            if let event = events.last, event.at <= now {
                events.removeLast()
                event.action()
                continue
            }
            for (index, deadline) in deadlines.enumerated() {
                if let deadline, deadline <= now { feed(index, .timerFired) }
            }
        }
        return true
    }

    // MARK: Peers

    func feed(_ index: Int, _ input: ICEInput) {
        var outputs: [ICEOutput] = []
        peers[index].agent.handle(input, at: now, into: &outputs)
        deadlines[index] = peers[index].agent.nextDeadline
        for output in outputs { perform(output, index) }
    }

    private func perform(_ output: ICEOutput, _ index: Int) {
        let peer = peers[index]
        switch output {
        case .transmit(let bytes, let local, let remote):
            peer.transmitted += 1
            sendUDP(bytes, index, from: local, to: remote)
        case .openServer(let server, let transport, let address): open(index, server, transport, address)
        case .sendToServer(let bytes, let server): sendToServer(bytes, index, server)
        case .closeServer(let server): peer.connections[server] = nil
        case .localCandidate(let candidate):
            peer.candidates.append(candidate)
            if peer.tellsCandidates { tell(1 - index, .remoteCandidate(candidate)) }
        case .gatheringComplete:
            peer.hasGathered = true
            if peer.tellsCandidates { tell(1 - index, .remoteEndOfCandidates) }
        case .unresolvedName(let candidate): peer.unresolved.append(candidate)
        case .stateChanged(let state): peer.states.append((now, state))
        case .pathSelected(let path): peer.paths.append((now, path))
        case .pathLost: peer.paths.append((now, nil))
        case .received(let bytes, _, _): peer.inbox.append(bytes)
        case .serverFailed(_, let failure): peer.serverFailures.append(failure)
        }
    }

    /// Brings something to the other side by way of signaling, which keeps its order.
    func tell(_ index: Int, _ input: ICEInput) {
        guard index < peers.count else { return }
        let delivery = { [unowned self] in schedule(after: signalingDelay) { [unowned self] in feed(index, input) } }
        if heldSignals != nil { heldSignals?.append(delivery) } else { delivery() }
    }

    func releaseSignals() {
        let held = heldSignals ?? []
        heldSignals = nil
        for signal in held { signal() }
    }

    /// Both gather, and tell each other their credentials.
    func start(isLite: Bool = false) {
        for index in peers.indices {
            feed(index, .start(localAddresses: peers[index].addresses))
            tell(1 - index, .remoteCredentials(peers[index].agent.credentials, isLite: isLite))
        }
    }

    func send(_ index: Int, _ bytes: [UInt8]) { feed(index, .send(bytes)) }

    // MARK: Datagrams

    private func sendUDP(_ bytes: [UInt8], _ index: Int, from local: SocketAddress, to remote: SocketAddress) {
        let peer = peers[index]
        guard !peer.blocksUDP, !peer.deadAddresses.contains(local) else { return }
        if peer.addresses.contains(remote) { return deliver(bytes, index, local: remote, source: local) }
        let source = peer.nat?.outbound(from: local, to: remote) ?? local
        route(bytes, from: source, to: remote)
    }

    func route(_ bytes: [UInt8], from source: SocketAddress, to destination: SocketAddress) {
        guard filter(source, destination, bytes) else { return }
        guard Double.random(in: 0..<1, using: &random) >= weather.loss else { return }
        let copies = Double.random(in: 0..<1, using: &random) < weather.duplication ? 2 : 1
        for _ in 0..<copies {
            let delay = Double.random(in: weather.delay, using: &random)
            schedule(after: .nanoseconds(Int64(delay * 1e6))) { [unowned self] in
                arrive(bytes, from: source, to: destination)
            }
        }
    }

    private func arrive(_ bytes: [UInt8], from source: SocketAddress, to destination: SocketAddress) {
        for server in servers
        where [server.address, SimulatedServer.sixth].contains(where: { $0.withPort(0) == destination.withPort(0) }) {
            if destination == server.address {
                server.received(bytes, from: .datagrams(source))
            } else {
                server.relayed(bytes, to: destination, from: source)
            }
            return
        }
        for (index, peer) in peers.enumerated() {
            if let nat = peer.nat {
                guard destination.host == nat.host, let inside = nat.inbound(port: destination.port, from: source)
                else { continue }
                return deliver(bytes, index, local: inside, source: source)
            }
            let owns = peer.addresses.contains(destination) || peer.connections.values.contains(.datagrams(destination))
            if owns { return deliver(bytes, index, local: destination, source: source) }
        }
    }

    private func deliver(_ bytes: [UInt8], _ index: Int, local: SocketAddress, source: SocketAddress) {
        let peer = peers[index]
        guard !peer.blocksUDP, !peer.deadAddresses.contains(local) else { return }
        if let server = peer.connections.first(where: { $0.value == .datagrams(local) })?.key {
            return feed(index, .serverBytes(bytes, server: server))
        }
        guard STUNPeek.looksLikeSTUN(bytes.span.bytes) else {
            peer.inbox.append(bytes)
            return
        }
        feed(index, .datagram(bytes, local: local, source: source))
    }

    // MARK: Connections to servers

    private func open(_ index: Int, _ server: Int, _ transport: ICEServer.Transport, _ address: SocketAddress) {
        let peer = peers[index]
        guard transport == .udp else {
            guard servers.contains(where: { $0.address == address && !$0.conduct.isDead }) else {
                return schedule(after: .seconds(3)) { [unowned self] in feed(index, .serverClosed(server)) }
            }
            let id = nextStream
            nextStream += 1
            streamOwners[id] = (index, server)
            peer.connections[server] = .stream(id)
            streamServers[id] = address
            return schedule(after: .milliseconds(30)) { [unowned self] in feed(index, .serverOpened(server)) }
        }
        let local = peer.addresses[0].withPort(peer.nextConnectionPort)
        peer.nextConnectionPort += 1
        peer.connections[server] = .datagrams(local)
        udpServers[local] = address
        feed(index, .serverOpened(server))
    }

    private var streamServers: [Int: SocketAddress] = [:]
    private var udpServers: [SocketAddress: SocketAddress] = [:]

    private func sendToServer(_ bytes: [UInt8], _ index: Int, _ server: Int) {
        switch peers[index].connections[server] {
        case .datagrams(let local):
            if let address = udpServers[local] { sendUDP(bytes, index, from: local, to: address) }
        case .stream(let id):
            guard let target = servers.first(where: { $0.address == streamServers[id] }) else { return }
            pieces(of: bytes, id) { target.received($0, from: .stream(id)) }
        case nil: break
        }
    }

    private func streamToPeer(_ bytes: [UInt8], _ id: Int) {
        guard let owner = streamOwners[id] else { return }
        pieces(of: bytes, -id) { [unowned self] in
            guard peers[owner.peer].connections[owner.server] == .stream(id) else { return }
            feed(owner.peer, .serverBytes($0, server: owner.server))
        }
    }

    /// A stream loses nothing, but cuts where it likes.
    private func pieces(of bytes: [UInt8], _ stream: Int, _ arrival: @escaping ([UInt8]) -> Void) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(Int.random(in: 1...200, using: &random)))
            rest = rest.dropFirst(piece.count)
            let delay = Duration.nanoseconds(Int64(Double.random(in: weather.delay, using: &random) * 1e6))
            let at = max(now.advanced(by: delay), lastStreamArrival[stream] ?? .zero).advanced(byNanoseconds: 1)
            lastStreamArrival[stream] = at
            schedule(at) { arrival(piece) }
        }
    }
}
