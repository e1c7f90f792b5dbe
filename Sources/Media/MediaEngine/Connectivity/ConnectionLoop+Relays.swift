internal import Realtime
internal import ICE
internal import Core
internal import CallMedia
internal import SecureTransport

// The ways to TURN servers: by a socket of the worker's for datagrams, by TCP or TLS here.
extension ConnectionLoop {
    func open(
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

    func send(_ bytes: [UInt8], to server: Int, _ session: ConnectionSession, at now: Instant) {
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
    func take(_ event: RelayStream.Event, from server: Int, _ session: ConnectionSession, at now: Instant) {
        switch event {
        case .opened: handle(.ice(.serverOpened(server)), session, at: now)
        case .message(let bytes): handle(.ice(.serverBytes(bytes, server: server)), session, at: now)
        case .closed(let reason):
            note("the connection to the TURN server is gone: \(reason)", of: server, session)
            closeRelay(server, session)
            handle(.ice(.serverClosed(server)), session, at: now)
        }
    }

    func closeRelay(_ server: Int, _ session: ConnectionSession) {
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
    func note(_ reason: String, of server: Int, _ session: ConnectionSession) {
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
