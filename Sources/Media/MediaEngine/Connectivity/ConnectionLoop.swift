internal import ICE
internal import Core
internal import CallMedia
internal import Realtime
internal import SecureTransport
internal import TLS

/// The connection thread's state: all sessions, and whose a datagram is.
struct ConnectionLoop {
    private var sessions: [MediaCallID: ConnectionSession] = [:]
    /// Ended sessions whose TURN servers must still be notified, with the deadline for that.
    private var leaving: [MediaCallID: Instant] = [:]
    private let workers: [any ConnectionTransport]
    private let streams: RelayStreams
    private let names = NameLookup()
    private let tell: @Sendable (ConnectionThread.Event) -> Void
    private(set) var isStopped = false

    /// How long to wait until TURN servers confirm that an allocation is released.
    private static let leavingTime = Duration.seconds(2)

    init(
        workers: [any ConnectionTransport], streams: RelayStreams,
        tell: @escaping @Sendable (ConnectionThread.Event) -> Void
    ) {
        self.workers = workers
        self.streams = streams
        self.tell = tell
    }

    /// Readable when ``step(at:)`` has something to do.
    var descriptor: Int32 { streams.descriptor }

    /// When ``step(at:)`` must next be called even if nothing comes.
    var nextDeadline: Instant? {
        let deadlines = sessions.values.compactMap { $0.connection.nextDeadline } + Array(leaving.values)
        return (deadlines + [streams.nextDeadline, names.nextDeadline].compactMap(\.self)).min()
    }

    /// Handles forwarded datagrams of the workers, input and output of streams, and timers.
    mutating func step(at now: Instant) {
        streams.step(at: now) { owner, event in
            guard let session = sessions[owner.session] else { return }
            take(event, from: owner.server, session, at: now)
        }
        names.step(at: now) { id, candidate in
            with(id) { handle(.ice(.remoteCandidate(candidate)), $0, at: now) }
        }
        for (number, worker) in workers.enumerated() {
            while let datagram = worker.nextForwarded() { take(datagram, worker: number, at: now) }
        }
        for session in Array(sessions.values) {
            if let deadline = session.connection.nextDeadline, deadline <= now {
                handle(.timerFired, session, at: now)
            }
        }
        for (id, end) in leaving where end <= now { forget(id) }
    }

    mutating func handle(_ command: ConnectionThread.Command, at now: Instant) {
        switch command {
        case .open(let box):
            let session = box.session
            sessions[session.id] = session
            let pending = session.pending
            session.pending = []
            carryOut(pending, session, at: now)
        case .remote(let id, let remote): with(id) { take(remote, $0, at: now) }
        case .candidate(let id, let text):
            guard let candidate = Candidate(parsing: text) else { return }
            with(id) { handle(.ice(.remoteCandidate(candidate)), $0, at: now) }
        case .endOfCandidates(let id): with(id) { handle(.ice(.remoteEndOfCandidates), $0, at: now) }
        case .restart(let id, let credentials): with(id) { handle(.ice(.restart(credentials)), $0, at: now) }
        case .fellSilent(let id): with(id) { handle(.ice(.pathIsQuiet), $0, at: now) }
        case .close(let id): with(id) { close($0, at: now) }
        case .stop:
            for session in Array(sessions.values) { close(session, at: now) }
            for id in Array(sessions.keys) { forget(id) }
            isStopped = true
        }
    }

    private func with(_ id: MediaCallID, _ body: (ConnectionSession) -> Void) {
        if let session = sessions[id] { body(session) }
    }
}

// MARK: Inputs

extension ConnectionLoop {
    private mutating func take(_ datagram: ForwardedDatagram, worker: Int, at now: Instant) {
        let (bytes, origin) = (datagram.bytes, datagram.origin)
        for session in sessions.values where session.worker == worker {
            let server = session.relays.first { relay in
                // A TURN server's data is not authenticated: only the address excludes a stranger's.
                if case .datagrams(origin.socket, origin.remote) = relay.value { true } else { false }
            }
            guard let server = server?.key else { continue }
            handle(.ice(.serverBytes(bytes, server: server)), session, at: now)
            return
        }
        guard let session = owner(of: bytes, origin, worker: worker) else { return }
        guard let first = bytes.first, first > 3 else {  // RFC 7983 §7
            guard let local = localAddress(of: origin, session) else { return }
            handle(.ice(.datagram(bytes, local: local, source: origin.remote)), session, at: now)
            return
        }
        handle(.handshake(bytes, from: origin), session, at: now)
    }

    /// Whose a datagram is: by its socket if one call alone has that, else by the name in a check, by the question that
    /// it answers, or by where the peer's authenticated checks come from.
    private func owner(of bytes: [UInt8], _ origin: DatagramPath, worker: Int) -> ConnectionSession? {
        let here = sessions.values.lazy.filter { $0.worker == worker }
        if origin.socket >= SocketSet.firstExtraSlot { return here.first { $0.ownSlots.contains(origin.socket) } }
        guard let first = bytes.first, first <= 3 else {
            return here.first { $0.ownSlots.isEmpty && $0.connection.ice.hasPeer(at: origin.remote) }
        }
        let view = unsafe bytes.span.bytes
        if let range = STUNPeek.receiverFragment(view) {
            let fragment = String(decoding: bytes[range], as: UTF8.self)
            return here.first { $0.connection.ice.answers(to: fragment) }
        }
        guard let id = STUNPeek.transactionID(view) else { return nil }
        return here.first { $0.connection.ice.isAwaiting(id) }
    }

    /// The local address at which a datagram arrived, as ICE knows it.
    private func localAddress(of origin: DatagramPath, _ session: ConnectionSession) -> SocketAddress? {
        guard let bound = workers[session.worker].boundAddress(origin.socket) else { return nil }
        guard var local = origin.local else { return bound }
        local.port = bound.port
        return local
    }

    private func take(_ remote: RemoteConnection, _ session: ConnectionSession, at now: Instant) {
        if remote.isAnother { handle(.ice(.anotherPeer), session, at: now) }
        switch remote.way {
        case .ice(let peer): take(peer, session, at: now)
        case .direct(let address):
            guard let slot = session.ownSlots.first(where: { isIPv6($0, session) == address.isIPv6 }) else {
                let family = address.isIPv6 ? "IPv6" : "IPv4"
                let reason = "the peer's address is one of \(family), which the call's socket does not have"
                tell(.failed(session.id, ConnectionFailure(.unusableAddress, reason)))
                return
            }
            handle(.direct(DatagramPath(socket: slot, local: nil, remote: address)), session, at: now)
        }
        guard let (role, fingerprints) = remote.handshake, let ours = session.plan.handshake else { return }
        do throws(DTLSError) {
            session.role = role
            let endpoint = try DTLSEndpoint(role, identity: ours.identity, configuration: ours.configuration)
            var outputs: [Connection<DTLSEndpoint>.Output] = []
            session.connection.begin(endpoint, at: now, into: &outputs)
            carryOut(outputs, session, at: now)
            handle(.expect(fingerprints), session, at: now)
        } catch {
            tell(.failed(session.id, ConnectionFailure(error)))
        }
    }

    private func take(_ peer: RemoteCandidates, _ session: ConnectionSession, at now: Instant) {
        handle(.ice(.remoteCredentials(peer.credentials, isLite: peer.isLite)), session, at: now)
        for candidate in peer.candidates.compactMap({ Candidate(parsing: $0) }) {
            handle(.ice(.remoteCandidate(candidate)), session, at: now)
        }
        if peer.hasEnded { handle(.ice(.remoteEndOfCandidates), session, at: now) }
    }

    private func isIPv6(_ slot: Int, _ session: ConnectionSession) -> Bool? {
        workers[session.worker].boundAddress(slot)?.isIPv6
    }
}

// MARK: Outputs

extension ConnectionLoop {
    private func handle(_ input: Connection<DTLSEndpoint>.Input, _ session: ConnectionSession, at now: Instant) {
        var outputs: [Connection<DTLSEndpoint>.Output] = []
        session.connection.handle(input, at: now, into: &outputs)
        carryOut(outputs, session, at: now)
    }

    private func carryOut(
        _ outputs: [Connection<DTLSEndpoint>.Output], _ session: ConnectionSession, at now: Instant
    ) {
        // The worker gets the keys before the peer learns of the handshake's end and sends media.
        for case .keys(let send, let receive) in outputs { install(send, receive, session) }
        for output in outputs {
            switch output {
            case .ice(let output): carryOut(output, session, at: now)
            case .path(let path): use(path, session)
            case .transmit(let bytes, let path): worker(of: session).transmit(bytes, by: path)
            case .direct(let path):
                worker(of: session).use(MediaPath(path), roundTripNanoseconds: nil, for: session.id)
            case .keys: break  // Above.
            case .failed(let failure):
                settle(session)
                // Without a local address, a TURN server failed.
                let isStranded = session.connection.ice.localCandidates.isEmpty
                tell(.failed(session.id, failure.adding(isStranded ? session.relayFailure : nil)))
            case .closed: tell(.closed(session.id))
            }
        }
    }

    private func carryOut(_ output: ICEOutput, _ session: ConnectionSession, at now: Instant) {
        switch output {
        case .transmit(let bytes, let local, let remote):
            guard let slot = session.slots[local] else { return }
            worker(of: session).transmit(bytes, by: DatagramPath(socket: slot, local: local, remote: remote))
        case .openServer(let server, let transport, let address):
            open(server, transport, address, session, at: now)
        case .sendToServer(let bytes, let server): send(bytes, to: server, session, at: now)
        case .serverFailed(let server, let failure): note("\(failure)", of: server, session)
        case .closeServer(let server): closeRelay(server, session)
        case .localCandidate(let candidate): tell(.candidate(session.id, candidate.attributeValue))
        case .gatheringComplete: tell(.candidatesComplete(session.id))
        case .unresolvedName(let candidate): lookUp(candidate, session, at: now)
        case .stateChanged(let state): note(state, session)
        case .pathSelected, .pathLost, .received: break  // Handled within the connection.
        }
    }

    private func note(_ state: ICEState, _ session: ConnectionSession) {
        switch state {
        case .disconnected:
            guard !session.isQuiet else { return }
            session.isQuiet = true
            tell(.quiet(session.id))
        case .connected, .completed:
            guard session.isQuiet else { return }
            session.isQuiet = false
            tell(.back(session.id))
        case .new, .checking, .failed, .closed: break
        }
    }

    /// Browsers hide addresses behind names of multicast DNS. Where only relays may be used, no host of the link may
    /// learn of us, and no relay reaches such an address.
    private func lookUp(_ candidate: Candidate, _ session: ConnectionSession, at now: Instant) {
        guard session.plan.ice.policy == .all else { return }
        names.find(
            candidate, for: session.id, through: Array(session.slots.keys), at: now, watch: streams.watch)
    }

    private func use(_ path: ICEPath?, _ session: ConnectionSession) {
        let roundTrip = path == nil ? nil : session.connection.ice.statistics.roundTrip?.nanoseconds
        worker(of: session).use(
            session.mediaPath(for: path), roundTripNanoseconds: roundTrip, for: session.id)
        guard let path else {
            tell(.pathLost(session.id))
            return
        }
        if session.plan.handshake == nil { settle(session) }
        tell(.connected(session.id, path))
    }

    private func install(_ send: SRTPKey, _ receive: SRTPKey, _ session: ConnectionSession) {
        do throws(SRTPError) {
            let pair = try SRTPPair(send: send, receive: receive, precedesPeer: session.role == .passive)
            worker(of: session).install(pair, for: session.id)
            settle(session)
            tell(.secured(session.id))
        } catch {
            tell(.failed(session.id, ConnectionFailure(.fault, "\(error)")))
        }
    }

    /// The worker need not hurry for this connection any more.
    private func settle(_ session: ConnectionSession) {
        guard session.isConnecting else { return }
        session.isConnecting = false
        worker(of: session).setConnecting(false)
    }

    private mutating func close(_ session: ConnectionSession, at now: Instant) {
        handle(.end, session, at: now)
        settle(session)
        if session.relays.isEmpty {
            forget(session.id)
        } else {
            leaving[session.id] = now.advanced(by: Self.leavingTime)
        }
    }

    private mutating func forget(_ id: MediaCallID) {
        leaving[id] = nil
        guard let session = sessions.removeValue(forKey: id) else { return }
        for server in Array(session.relays.keys) { closeRelay(server, session) }
        for slot in session.ownSlots { worker(of: session).closeSocket(slot) }
    }

    private func worker(of session: ConnectionSession) -> any ConnectionTransport { workers[session.worker] }
}

// The ways to TURN servers: by a socket of the worker's for datagrams, by TCP or TLS here.
extension ConnectionLoop {
    private func open(
        _ server: Int, _ transport: ICEServer.Transport, _ address: SocketAddress, _ session: ConnectionSession,
        at now: Instant
    ) {
        do {
            switch transport {
            case .udp:
                let any = SocketAddress(host: address.isIPv6 ? "::" : "0.0.0.0", port: 0) ?? address
                let slot = try worker(of: session).openSocket(boundTo: any)
                session.relays[server] = .datagrams(slot: slot, address: address)
                handle(.ice(.serverOpened(server)), session, at: now)
            case .tcp: try connect(server, address, hostName: nil, session, at: now)
            case .tls(let hostName): try connect(server, address, hostName: hostName, session, at: now)
            }
        } catch {
            note("\(error)", of: server, session)
            handle(.ice(.serverClosed(server)), session, at: now)
        }
    }

    private func connect(
        _ server: Int, _ address: SocketAddress, hostName: String?, _ session: ConnectionSession, at now: Instant
    ) throws {
        let owner = RelayStreams.Owner(session: session.id, server: server)
        let stream = try streams.open(
            owner, at: address, hostName: hostName, of: worker(of: session), at: now)
        session.relays[server] = .stream(stream)
    }

    private func send(_ bytes: [UInt8], to server: Int, _ session: ConnectionSession, at now: Instant) {
        switch session.relays[server] {
        case .datagrams?:
            guard let path = session.relays[server]?.path else { return }
            worker(of: session).transmit(bytes, by: path)
        case .stream(let stream)?:
            if let failure = streams.send(bytes, through: stream) { take(failure, from: server, session, at: now) }
        case nil: return
        }
    }

    /// Takes what came of a connection by TCP or TLS.
    private func take(_ event: RelayStream.Event, from server: Int, _ session: ConnectionSession, at now: Instant) {
        switch event {
        case .opened: handle(.ice(.serverOpened(server)), session, at: now)
        case .message(let bytes): handle(.ice(.serverBytes(bytes, server: server)), session, at: now)
        case .closed(let reason):
            note("the connection to the TURN server is gone: \(reason)", of: server, session)
            closeRelay(server, session)
            handle(.ice(.serverClosed(server)), session, at: now)
        }
    }

    private func closeRelay(_ server: Int, _ session: ConnectionSession) {
        guard let relay = session.relays.removeValue(forKey: server) else { return }
        if case .stream(let stream) = relay {
            streams.close(stream)
            let (notSent, notReceived) = (stream.mediaNotSent, stream.mediaNotReceived)
            if notSent + notReceived > 0 {
                tell(
                    .relayOverrun(
                        session.id, server: name(of: server, session), notSent: notSent, notReceived: notReceived))
            }
        }
        worker(of: session).closeSocket(relay.path.socket)
    }

    /// Reports why a server is unusable. After the end of the call the reason is dropped.
    private func note(_ reason: String, of server: Int, _ session: ConnectionSession) {
        guard session.connection.ice.state != .closed else { return }
        session.relayFailure = reason
        tell(.relayFailed(session.id, server: name(of: server, session), reason: reason))
    }

    private func name(of server: Int, _ session: ConnectionSession) -> String {
        let servers = session.plan.ice.servers
        // Above are the second connections to the same servers, for IPv6.
        let server = server % ICEConfiguration.maximumServers
        return servers.indices.contains(server) ? "\(servers[server])" : "number \(server)"
    }
}
