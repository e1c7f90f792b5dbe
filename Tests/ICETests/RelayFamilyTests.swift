import ICE
import Core
import TestSupport
import Testing

@Suite("Relays of IPv6")
struct RelayFamilyTests {
    private static let sixth = Scenes.address("2001:db8:7::2")

    /// A peer with IPv4 alone and a TURN server, and one with nothing but IPv6.
    private static func world(
        _ families: SimulatedServer.Families, seed: UInt64 = 3, weather: World.Weather = World.Weather(),
        transport: ICEServer.Transport = .udp
    ) -> World {
        let peers = [
            Scenes.peer(0, seed: seed, nat: .symmetric) { $0.servers = Scenes.servers(transport) },
            Scenes.peer(1, seed: seed, addresses: [sixth]),
        ]
        let world = World(seed: seed, weather: weather, peers, servers: [SimulatedServer(Scenes.server)])
        world.servers[0].conduct.families = families
        return world
    }

    @Test(
        "A peer that has IPv6 alone is reached through a relay, from a machine that has none",
        arguments: [SimulatedServer.Families.both, .one, .onlyIPv6], [ICEServer.Transport.udp, .tcp])
    func reached(families: SimulatedServer.Families, transport: ICEServer.Transport) throws {
        for seed: UInt64 in 0..<20 {
            let world = Self.world(
                families, seed: seed, weather: World.Weather(delay: 5...40, loss: 0.05), transport: transport)
            world.start()
            #expect(world.run(for: .seconds(10)) { world.isSettled }, "seed \(seed)")
            #expect(world.exchange())
            let path = try #require(world.peers[0].agent.path)
            guard case .relayed(_, let relay, _) = path.route else {
                Issue.record("not relayed")
                return
            }
            #expect(relay.isIPv6 && path.remote == Self.sixth)
            world.run(for: .seconds(1))
            #expect(world.exchange())
            #expect(world.servers[0].channelDataOut > 0, "by now there is a channel")
        }
    }

    @Test("Two addresses are had by one allocation where the server gives both, and else by two")
    func allocations() {
        for (families, count) in [(SimulatedServer.Families.both, 1), (.one, 2), (.onlyIPv6, 1), (.onlyIPv4, 1)] {
            let world = Self.world(families)
            world.start()
            #expect(world.run(for: .seconds(3)) { world.peers[0].hasGathered })
            #expect(world.servers[0].allocations.count == count)
            let relayed = world.peers[0].candidates.filter { $0.type == .relayed }.compactMap(\.address)
            #expect(relayed.contains { $0.isIPv6 } == (families != .onlyIPv4))
            #expect(relayed.contains { !$0.isIPv6 } == (families != .onlyIPv6))
            #expect(world.peers[0].serverFailures.isEmpty)
        }
    }

    @Test(
        "A server without IPv6 does no harm: the call between peers of IPv4 goes through it, and nothing is reported",
        arguments: [SimulatedServer.Families.unknown, .onlyIPv4, .intolerant])
    func without(families: SimulatedServer.Families) {
        for seed: UInt64 in 0..<20 {
            let world = Scenes.natWorld(
                .symmetric, .symmetric, seed: seed, weather: World.Weather(delay: 5...40, loss: 0.05))
            world.servers[0].conduct.families = families
            world.start()
            #expect(world.run(for: .seconds(9)) { world.isSettled && world.peers.allSatisfy(\.hasGathered) })
            #expect(world.exchange())
            #expect(world.peers.allSatisfy { $0.serverFailures.isEmpty && $0.connections.count == 1 })
        }
    }

    @Test("Both addresses of an allocation last, and both are given back with the call")
    func lasting() {
        let world = Self.world(.both)
        world.start()
        #expect(world.run(for: .seconds(10)) { world.isSettled })
        for _ in 0..<4 {
            world.run(for: .seconds(300))
            #expect(world.exchange())
        }
        world.feed(0, .end)
        world.run(for: .seconds(3))
        #expect(world.servers[0].allocations.isEmpty && world.servers[0].released == 1)
    }

    @Test("A permission for a family that the allocation has not is refused, and costs that pair alone")
    func mismatch() {
        var client = TURNClient(
            username: "user", password: "secret", isStream: false, generator: SeededGenerator(seed: 4))
        let server = SimulatedServer(Scenes.server)
        var (outputs, answers): ([TURNOutput], [[UInt8]]) = ([], [])
        server.reply = { answers.append($1) }
        func settle() {
            var index = 0
            while index < outputs.count || !answers.isEmpty {
                if !answers.isEmpty {
                    client.handle(.bytes(answers.removeFirst()), at: .zero, into: &outputs)
                } else {
                    if case .transmit(let bytes) = outputs[index] {
                        server.received(bytes, from: .datagrams(Scenes.address("192.0.2.1")))
                    }
                    index += 1
                }
            }
        }
        client.handle(.opened, at: .zero, into: &outputs)
        settle()
        outputs.removeAll()
        client.handle(.permit(Self.sixth), at: .zero, into: &outputs)
        client.handle(.permit(Scenes.address("192.0.2.2")), at: .zero, into: &outputs)
        settle()
        #expect(outputs.contains(.refused(Self.sixth.withPort(0))))
        #expect(outputs.contains(.permitted(Scenes.address("192.0.2.2", 0))))
    }
}
