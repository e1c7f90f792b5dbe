import ICE
import CallMedia
import MediaEngine
import Core
import RelaySupport
import SecureTransport
import TLS
import Testing

/// Calls through a real TURN server. On a machine without one they are skipped; `scripts/test` installs it.
@Suite("Calls through a TURN server (coturn)", .enabled(if: RelayServer.isInstalled), .timeLimit(.minutes(3)))
struct RelayedCallTests {
    static let transports: [ICEServer.Transport] = [.udp, .tcp, .tls(hostName: "localhost")]

    @Test("Two engines that may only use relays talk both ways, over UDP, TCP and TLS", arguments: transports)
    func call(transport: ICEServer.Transport) async throws {
        let server = try RelayServer()
        let pair = try EnginePair(relayTrust: .file(server.certificate))
        let servers = [try server.server(over: transport)]
        let call = try await ConnectedCall(pair, caller: servers, device: servers)
        try await pair.callerEvents.flowing(call.caller)
        try await pair.deviceEvents.flowing(call.device)
        for events in [pair.callerEvents, pair.deviceEvents] {
            let event = try await events.first { if case .connected = $0 { true } else { false } }
            guard case .connected(_, let path) = event else { throw EventMismatch() }
            #expect(path.isRelayed)
        }
        try await pair.device.receives(50, on: call.device)
        try await pair.caller.receives(50, on: call.caller)
        pair.caller.stop(call.caller)
        let report = try await pair.callerEvents.ended(call.caller)
        pair.device.stop(call.device)
        let deviceReport = try await pair.deviceEvents.ended(call.device)
        pair.shutdown()
        #expect(report.peer.packetsLost == 0 && deviceReport.peer.packetsLost == 0)
        #expect(report.peer.dropped.unauthenticated == 0 && deviceReport.peer.dropped.unauthenticated == 0)
    }

    @Test("A relay over a stream reaches a peer that has a plain address", arguments: transports)
    func oneSided(transport: ICEServer.Transport) async throws {
        let server = try RelayServer()
        let pair = try EnginePair(relayTrust: .file(server.certificate))
        let call = try await ConnectedCall(pair, caller: [try server.server(over: transport)])
        try await pair.callerEvents.flowing(call.caller)
        try await pair.device.receives(20, on: call.device)
        try await pair.caller.receives(20, on: call.caller)
        pair.shutdown()
    }

    @Test("A machine with IPv4 alone talks to one with IPv6 alone through a relay", arguments: transports)
    func otherFamily(transport: ICEServer.Transport) async throws {
        let server = try RelayServer(hasIPv6: true)
        let pair = try EnginePair(relayTrust: .file(server.certificate), deviceHost: "::1")
        let call = try await ConnectedCall(pair, caller: [try server.server(over: transport)])
        try await pair.callerEvents.flowing(call.caller)
        let event = try await pair.callerEvents.first { if case .connected = $0 { true } else { false } }
        guard case .connected(_, let path) = event, case .relayed(_, let relay, _) = path.route else {
            throw EventMismatch()
        }
        #expect(relay.isIPv6 && path.remote.isIPv6)
        try await pair.device.receives(50, on: call.device)
        try await pair.caller.receives(50, on: call.caller)
        pair.shutdown()
    }

    @Test(
        "A wrong password fails the call at once, and the reason names the server and no secret", arguments: transports)
    func wrongPassword(transport: ICEServer.Transport) async throws {
        let server = try RelayServer()
        let pair = try EnginePair(relayTrust: .file(server.certificate))
        let servers = [try server.server(over: transport, password: "not the password")]
        let plan = try ConnectedCall.plan(isCaller: true, servers: servers, relayOnly: true)
        let (id, _) = try pair.caller.connect(plan, at: pair.caller.place())
        let event = try await pair.callerEvents.first { if case .relayFailed(id, _, _) = $0 { true } else { false } }
        guard case .relayFailed(_, let name, let reason) = event else { throw EventMismatch() }
        #expect(name == "\(servers[0])" && !name.contains("not the password"))
        #expect(reason.contains("does not accept the credentials") && !reason.contains("not the password"))
        let end = try await pair.callerEvents.first { if case .connectionFailed(id, _) = $0 { true } else { false } }
        guard case .connectionFailed(_, let why) = end else { throw EventMismatch() }
        #expect(why.description.contains("does not accept the credentials"))
        pair.shutdown()
    }

    @Test("A server whose certificate is for another name, or from an untrusted authority, gets no password")
    func untrusted() async throws {
        let server = try RelayServer(name: "relay.example")
        let other = try RelayServer()
        for (trust, hostName, reason) in [
            (server.certificate, "localhost", "ostname mismatch"), (other.certificate, "relay.example", "self-signed"),
        ] {
            let pair = try EnginePair(relayTrust: .file(trust))
            let servers = [try server.server(over: .tls(hostName: hostName))]
            let plan = try ConnectedCall.plan(isCaller: true, servers: servers, relayOnly: true)
            let (id, _) = try pair.caller.connect(plan, at: pair.caller.place())
            let end = try await pair.callerEvents.first {
                if case .connectionFailed(id, _) = $0 { true } else { false }
            }
            guard case .connectionFailed(_, let why) = end else { throw EventMismatch() }
            #expect(why.description.contains(reason), "\(why)")
            pair.shutdown()
        }
    }

    @Test("Without a listener the call fails at once, with that error")
    func noServer() async throws {
        let server = try RelayServer()
        server.kill()
        let pair = try EnginePair()
        let plan = try ConnectedCall.plan(isCaller: true, servers: [try server.server(over: .tcp)], relayOnly: true)
        let (id, _) = try pair.caller.connect(plan, at: pair.caller.place())
        let end = try await pair.callerEvents.first { if case .connectionFailed(id, _) = $0 { true } else { false } }
        guard case .connectionFailed(_, let why) = end else { throw EventMismatch() }
        #expect(why.description.contains("Connection refused"))
        pair.shutdown()
    }

    @Test("A call outlives its relay if there is another way", arguments: transports)
    func survival(transport: ICEServer.Transport) async throws {
        let relays = [try RelayServer(), try RelayServer()]
        defer { withExtendedLifetime(relays) {} }  // A server ends with the last who knows it.
        let pair = try EnginePair(relayTrust: .file(relays[0].certificate))
        let servers = [try relays[0].server(over: transport), try relays[1].server(over: .tcp)]
        let call = try await ConnectedCall(pair, caller: servers)
        try await pair.device.receives(50, on: call.device)
        let paths = pair.callerEvents.all.compactMap { if case .connected(_, let path) = $0 { path } else { nil } }
        guard case .relayed(let inUse, _, _)? = paths.last?.route else { throw EventMismatch() }
        relays[inUse].kill()
        let before = try #require(await pair.device.report(on: call.device)).peer.packetsReceived
        try await pair.device.receives(before + 100, on: call.device)
        let back = try #require(await pair.caller.report(on: call.caller)).peer.packetsReceived
        try await pair.caller.receives(back + 50, on: call.caller)
        pair.shutdown()
    }

    @Test("A call whose only relay dies ends with the reason", arguments: transports)
    func death(transport: ICEServer.Transport) async throws {
        let server = try RelayServer()
        let pair = try EnginePair(relayTrust: .file(server.certificate))
        let call = try await ConnectedCall(pair, caller: [try server.server(over: transport)])
        try await pair.device.receives(20, on: call.device)
        server.kill()
        let end = try await pair.callerEvents.first {
            if case .connectionFailed(call.caller, _) = $0 { true } else { false }
        }
        guard case .connectionFailed(_, let why) = end else { throw EventMismatch() }
        #expect(why.description.contains("no path to the peer works"))
        if transport != .udp { #expect(why.description.contains("the connection to the TURN server is gone")) }
        pair.shutdown()
    }

    @Test("Calls through streams that are given up at any moment free their sockets")
    func givenUp() async throws {
        let server = try RelayServer()
        let pair = try EnginePair(relayTrust: .file(server.certificate))
        for number in 0..<300 {
            let transport = Self.transports[1 + number % 2]
            let plan = try ConnectedCall.plan(
                isCaller: true, servers: [try server.server(over: transport)], relayOnly: true)
            let (id, _) = try pair.caller.connect(plan, at: pair.caller.place())
            if number % 3 != 0 {
                _ = try await pair.callerEvents.first { if case .candidate(id, _) = $0 { true } else { false } }
            }
            pair.caller.stop(id)
        }
        pair.shutdown()
    }
}

extension ConnectedCall {
    static func plan(isCaller: Bool, servers: [ICEServer], relayOnly: Bool) throws -> ConnectionPlan {
        var plan = try plan(isCaller: isCaller)
        plan.ice.servers = servers
        plan.ice.policy = relayOnly ? .relayOnly : .all
        // Without an answer for this long a path is given up: shorter than in life, for tests that wait for it.
        plan.ice.consentTimeout = .seconds(8)
        return plan
    }

    /// A call between sides of which the caller, or both, may only use relays.
    init(_ pair: EnginePair, caller: [ICEServer], device: [ICEServer] = []) async throws {
        try await self.init(
            pair, Self.plan(isCaller: true, servers: caller, relayOnly: true),
            Self.plan(isCaller: false, servers: device, relayOnly: !device.isEmpty))
    }
}
