import ICE
import CallMedia
import MediaEngine
import Core
import Realtime
import SecureTransport
import Testing

/// Calls between two engines whose keys come by DTLS, and whose peers have no ICE (RFC 5763), on real sockets.
@Suite("Calls with DTLS and without ICE, on the loopback", .timeLimit(.minutes(5)))
struct DirectHandshakeTests {
    private struct Side {
        let engine: MediaEngine
        let events: EventLog
        let placement: MediaPlacement
        let identity: DTLSIdentity
        let id: MediaCallID
        let address: SocketAddress

        init(_ engine: MediaEngine, _ events: EventLog) throws {
            self.engine = engine
            self.events = events
            placement = engine.place()
            var plan = try ConnectedCall.plan(isCaller: false)
            plan.gathers = false
            identity = try #require(plan.handshake).identity
            let (id, addresses) = try engine.connectDirectly(plan, at: placement)
            self.id = id
            address = try #require(addresses.first)
        }

        func start(
            _ role: DTLSRole, _ peer: Side, at address: SocketAddress? = nil, _ numbers: (UInt32, UInt32)
        ) throws {
            let plan = ConnectedCall.media(
                local: numbers.0, remote: numbers.1, AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)),
                .handshaken(hasControl: true))
            _ = try engine.start(plan, at: placement, connection: id)
            let way = RemoteConnection.Way.direct(address ?? peer.address)
            engine.connect(id, to: RemoteConnection(way, handshake: (role, [peer.identity.fingerprint(.sha256)])))
        }
    }

    @Test("Two calls to one peer, one after the other, shake hands and are heard both ways")
    func calls() async throws {
        let pair = try EnginePair()
        for number: UInt32 in 1...2 {
            let caller = try Side(pair.caller, pair.callerEvents)
            let device = try Side(pair.device, pair.deviceEvents)
            #expect(device.address.port != device.placement.localAddress.port, "the call has a port of its own")
            try device.start(.active, caller, (number * 2 + 1, number * 2))
            try caller.start(.passive, device, (number * 2, number * 2 + 1))
            try await pair.callerEvents.flowing(caller.id)
            try await pair.deviceEvents.flowing(device.id)
            try await pair.device.receives(20, on: device.id)
            try await pair.caller.receives(20, on: caller.id)
            pair.caller.stop(caller.id)
            pair.device.stop(device.id)
            let report = try await pair.deviceEvents.ended(device.id)
            #expect(report.peer.dropped.unauthenticated == 0)
        }
        pair.shutdown()
    }

    @Test("A peer whose description has a wrong address is found by where its handshake comes from")
    func elsewhere() async throws {
        let pair = try EnginePair()
        let caller = try Side(pair.caller, pair.callerEvents)
        let device = try Side(pair.device, pair.deviceEvents)
        let nobody = try #require(SocketAddress(host: "127.0.0.1", port: 9))
        try device.start(.passive, caller, at: nobody, (3, 2))
        try caller.start(.active, device, (2, 3))
        try await pair.deviceEvents.flowing(device.id)
        try await pair.caller.receives(20, on: caller.id)
        pair.shutdown()
    }
}
