import ICE
import Core
import TestSupport
import Testing

@Suite("Relays")
struct RelayTests {
    @Test(
        "Where a firewall lets no datagrams out, TURN over a stream carries the call",
        arguments: [ICEServer.Transport.tcp, .tls(hostName: "turn.example")])
    func streams(transport: ICEServer.Transport) {
        for seed: UInt64 in 0..<20 {
            let peers = (0..<2).map { number in
                Scenes.peer(number, seed: seed) { $0.servers = Scenes.servers(number == 0 ? transport : .udp) }
            }
            peers[0].blocksUDP = true
            let server = SimulatedServer(Scenes.server)
            let world = World(seed: seed, weather: World.Weather(delay: 5...40, loss: 0.05), peers, servers: [server])
            world.start()
            #expect(world.run(for: .seconds(8)) { world.isSettled }, "seed \(seed)")
            #expect(world.exchange())
            #expect(peers[0].agent.path?.isRelayed == true)
            let data = server.channelDataOut
            world.run(for: .seconds(1))
            #expect(world.exchange())
            #expect(server.channelDataOut > data, "by now there is a channel")
        }
    }

    @Test("A relayed call lasts: allocation, permissions and channels are refreshed in time")
    func longCall() {
        let world = Scenes.natWorld(.symmetric, .symmetric, seed: 6, weather: World.Weather(delay: 5...30, loss: 0.02))
        world.servers[0].conduct.lifetime = 600
        world.servers[0].conduct.nonceUses = 7
        world.start()
        #expect(world.run(for: .seconds(10)) { world.isSettled })
        for _ in 0..<5 {
            world.run(for: .seconds(300))
            #expect(world.exchange())
        }
        let granted = world.servers[0].granted
        // Two allocations, each refreshed every 540 s over 1 500 s.
        #expect((4...6).contains(granted[.refresh] ?? 0))
        #expect((granted[.channelBind] ?? 0) >= 6)
        #expect(world.peers.allSatisfy { $0.paths.allSatisfy { $0.path != nil } })
    }

    @Test("A server that offers better digests gets them; one that does not gets MD5 and SHA-1")
    func algorithms() {
        for isOffered in [true, false] {
            let world = Scenes.natWorld(.symmetric, .symmetric, seed: 8)
            world.servers[0].conduct.offersAlgorithms = isOffered
            world.start()
            #expect(world.run(for: .seconds(8)) { world.isSettled })
            #expect(world.servers[0].lastIntegrity == (isOffered ? .sha256 : .sha1))
        }
    }

    @Test("Wrong credentials end with an error that says so, and gathering continues without the relay")
    func wrongPassword() throws {
        let peers = (0..<2).map { number in
            Scenes.peer(number, seed: 1) { $0.servers = Scenes.servers(password: "wrong") }
        }
        let server = SimulatedServer(Scenes.server)
        let world = World(seed: 1, peers, servers: [server])
        world.start()
        #expect(world.run(for: .seconds(2)) { peers.allSatisfy(\.hasGathered) && world.isSettled })
        let failure = try #require(peers[0].serverFailures.first)
        #expect(failure.reason == .unauthorized)
        #expect(failure.code == 401)
        #expect(failure.description.contains("user name and password"))
        #expect(peers[0].connections.isEmpty)
        #expect(peers[0].candidates.allSatisfy { $0.type != .relayed })
    }

    @Test(
        "A refused allocation is reported with the server's code",
        arguments: [
            STUNErrorCode.forbidden, .wrongCredentials, .unsupportedTransport, .allocationQuotaReached, .serverError,
            .insufficientCapacity,
        ])
    func refusals(code: STUNErrorCode) {
        let world = Scenes.natWorld(nil, nil, seed: 1)
        world.servers[0].conduct.allocateError = code
        world.start()
        #expect(world.run(for: .seconds(2)) { world.peers.allSatisfy(\.hasGathered) })
        #expect(world.peers.allSatisfy { $0.serverFailures.map(\.code) == [code.rawValue] })
        #expect(world.run(for: .seconds(2)) { world.isSettled })
    }

    @Test("A dead server does not hold gathering up for more than 8 s")
    func deadServer() {
        let world = Scenes.natWorld(nil, nil, seed: 1)
        world.servers[0].conduct.isDead = true
        world.start()
        #expect(world.run(for: .seconds(9)) { world.peers.allSatisfy(\.hasGathered) })
        #expect(world.peers.allSatisfy { $0.serverFailures.map(\.reason) == [.timeout] })
        #expect(world.isSettled)
    }

    @Test("A connection that has an allocation already is given up for another")
    func mismatch() {
        let world = Scenes.natWorld(.symmetric, .symmetric, seed: 3)
        world.servers[0].conduct.mismatchesOnce = true
        world.servers[0].conduct.families = .onlyIPv4
        world.start()
        #expect(world.run(for: .seconds(8)) { world.isSettled })
        #expect(world.peers.map { $0.nextConnectionPort - 30_000 }.sorted() == [1, 2])
    }

    @Test("A server that sends elsewhere is followed")
    func redirect() {
        let other = Scenes.address("203.0.113.6", 3_479)
        let peers = (0..<2).map { number in
            Scenes.peer(number, seed: 2, nat: .symmetric) { $0.servers = Scenes.servers() }
        }
        let first = SimulatedServer(Scenes.server)
        first.conduct.redirect = other
        let second = SimulatedServer(other)
        let world = World(seed: 2, peers, servers: [first, second])
        world.start()
        #expect(world.run(for: .seconds(8)) { world.isSettled })
        #expect(first.allocations.isEmpty)
        #expect(second.allocations.count == 2)
        #expect(world.exchange())
    }

    @Test("Servers that send each other's clients round in a circle are given up")
    func redirectLoop() {
        let world = Scenes.natWorld(nil, nil, seed: 2)
        world.servers[0].conduct.redirect = Scenes.server
        world.start()
        #expect(world.run(for: .seconds(4)) { world.peers.allSatisfy(\.hasGathered) && world.isSettled })
        #expect(world.peers.allSatisfy { $0.connections.isEmpty && $0.nextConnectionPort == 30_003 })
        #expect(world.peers.allSatisfy { $0.serverFailures.map(\.reason) == [.redirectedTooOften] }, "said once")
    }

    @Test("A server that takes each connection for another's is given up, which is reported")
    func mismatchLoop() {
        let world = Scenes.natWorld(nil, nil, seed: 2)
        world.servers[0].conduct.mismatchesAlways = true
        world.servers[0].conduct.families = .onlyIPv4
        world.start()
        #expect(world.run(for: .seconds(4)) { world.peers.allSatisfy(\.hasGathered) && world.isSettled })
        #expect(world.peers.allSatisfy { $0.serverFailures.map(\.reason) == [.connectionInUse] })
    }

    @Test("A server that refuses permissions costs its relay, not the call")
    func refusedPermissions() {
        let world = Scenes.natWorld(.portRestricted, .portRestricted, seed: 2)
        world.servers[0].conduct.permissionError = .forbidden
        world.start()
        #expect(world.run(for: .seconds(8)) { world.isSettled })
        #expect(world.exchange())
        #expect(world.peers.allSatisfy { $0.agent.path?.isRelayed == false })
    }

    @Test("A server that restarts is noticed, and the call continues on another path if there is one")
    func forgottenAllocation() {
        let world = Scenes.natWorld(.symmetric, nil, seed: 2)
        world.start()
        #expect(world.run(for: .seconds(8)) { world.isSettled })
        world.servers[0].forgetAllocations()
        world.run(for: .seconds(600))
        #expect(world.peers.allSatisfy { $0.serverFailures.map(\.reason) == [.allocationLost] })
        #expect(world.exchange())
    }

    @Test("When the connection to the only relay breaks, the path is lost at once, and a restart finds another")
    func brokenConnection() {
        let world = Scenes.natWorld(.symmetric, .symmetric, seed: 5) { $0.policy = .relayOnly }
        world.start()
        #expect(world.run(for: .seconds(8)) { world.isSettled })
        world.feed(0, .serverClosed(1))
        #expect(world.peers[0].agent.path == nil)
        var generator = SeededGenerator(seed: 77)
        for index in 0...1 {
            let fresh = ICECredentials(using: &generator)
            world.feed(index, .restart(fresh))
            world.tell(1 - index, .remoteCredentials(fresh, isLite: false))
        }
        #expect(world.run(for: .seconds(8)) { world.peers[0].agent.path?.isNominated == true })
        #expect(world.exchange())
    }

    @Test("Every pair through a relay that works has a channel, for the peer may send by any of them")
    func channels() {
        let others = [Scenes.address("203.0.113.41"), Scenes.address("203.0.113.42")]
        let peers = [
            Scenes.peer(0, seed: 4) {
                $0.servers = Scenes.servers(.udp)
                $0.policy = .relayOnly
            },
            Scenes.peer(1, seed: 4, addresses: others),
        ]
        let world = World(seed: 4, peers, servers: [SimulatedServer(Scenes.server)])
        world.start()
        #expect(world.run(for: .seconds(5)) { world.isSettled })
        world.run(for: .seconds(2))
        let bound = world.servers[0].allocations.values.flatMap { $0.channels.values.map { $0.withPort(0) } }
        for other in others { #expect(bound.contains(other.withPort(0)), "\(bound)") }
    }

    @Test("Data to a peer goes in an indication until its channel is bound, and then in channel data")
    func dataBeforeTheChannel() {
        let world = Scenes.natWorld(.symmetric, .symmetric, seed: 9) { $0.policy = .relayOnly }
        world.start()
        #expect(world.run(for: .seconds(8)) { world.peers.allSatisfy { $0.agent.path != nil } })
        guard case .relayed(_, _, nil) = world.peers[0].agent.path?.route else {
            Issue.record("the first path has no channel yet")
            return
        }
        for _ in 0..<3 { world.send(0, [0x16, 1, 2, 3]) }
        world.run(for: .milliseconds(200))
        #expect(world.peers[1].inbox.contains([0x16, 1, 2, 3]))
        #expect(world.run(for: .seconds(2)) { world.isSettled })
        world.run(for: .seconds(1))
        guard case .relayed(1, _, let channel?) = world.peers[0].agent.path?.route else {
            Issue.record("no channel")
            return
        }
        #expect(ChannelData.numbers.contains(channel))
    }

    @Test(
        "Anything that a server may send is taken without harm, over datagrams and streams", arguments: [false, true])
    func damage(isStream: Bool) {
        var generator = SeededGenerator(seed: 2)
        var client = TURNClient(username: "user", password: "secret", isStream: isStream, generator: generator)
        var outputs: [TURNOutput] = []
        client.handle(.opened, at: .zero, into: &outputs)
        for round in 0..<5_000 {
            var bytes = Vector.allocateError
            for _ in 0..<3 { bytes[.random(in: 0..<bytes.count, using: &generator)] ^= UInt8(1) << UInt8(round % 8) }
            bytes = Array(bytes.prefix(.random(in: 0...bytes.count, using: &generator)))
            client.handle(.bytes(bytes), at: .zero, into: &outputs)
        }
        #expect(client.relays.isEmpty)
        #expect(isStream || client.dropped > 1_000)
        // Streams that are not TURN are given up, and that is told once.
        #expect(outputs.count == (isStream ? 2 : 1))
    }

    private enum Vector {
        static let allocateError: [UInt8] = {
            var builder = STUNBuilder(.failure, .allocate, TransactionID(high: 1, low: 2))
            builder.append(.errorCode, [0, 0, 4, 1] + Array("Unauthenticated".utf8))
            builder.append(.realm, "example.org")
            builder.append(.nonce, "abc")
            return builder.finish()
        }()
    }
}
