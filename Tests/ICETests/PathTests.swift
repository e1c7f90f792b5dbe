import ICE
import Core
import TestSupport
import Testing

@Suite("Finding a path")
struct PathTests {
    /// Two kinds of access to the Internet; `nil` is a public address.
    struct Pairing: CustomStringConvertible, Sendable {
        let first: SimulatedNAT.Kind?
        let second: SimulatedNAT.Kind?

        /// No direct way: each side's checks come from a port that the other's NAT cannot expect.
        var needsRelay: Bool {
            switch (first, second) {
            case (.symmetric, .symmetric), (.symmetric, .portRestricted), (.portRestricted, .symmetric): true
            default: false
            }
        }

        var description: String { "\(first?.rawValue ?? "open") and \(second?.rawValue ?? "open")" }

        static let all: [Pairing] = {
            let kinds: [SimulatedNAT.Kind?] = SimulatedNAT.Kind.allCases + [nil]
            return kinds.indices.flatMap { first in
                kinds[first...].map { Pairing(first: kinds[first], second: $0) }
            }
        }()
    }

    @Test(
        "Through every pairing of NATs, with loss and reordering, both sides settle on a path that carries data",
        arguments: Pairing.all)
    func pairings(pairing: Pairing) {
        for seed: UInt64 in 0..<200 {
            // Either may be the one that controls.
            let isSwapped = seed % 2 == 1
            let world = Scenes.natWorld(
                isSwapped ? pairing.second : pairing.first, isSwapped ? pairing.first : pairing.second, seed: seed,
                weather: World.Weather(delay: 5...60, loss: 0.1, duplication: 0.02))
            world.start()
            guard world.run(for: .seconds(10), until: { world.isSettled }), world.exchange() else {
                Issue.record("seed \(seed): \(world.peers.map { $0.agent.statistics })")
                continue
            }
            if pairing.needsRelay { #expect(world.isRelayed, "seed \(seed)") }
        }
    }

    @Test("Without loss a direct path is found wherever there is one, and a relay is used only where there is none")
    func directWherePossible() {
        for pairing in Pairing.all {
            for seed: UInt64 in 0..<5 {
                let world = Scenes.natWorld(pairing.first, pairing.second, seed: seed)
                world.start()
                #expect(world.run(for: .seconds(4)) { world.isSettled }, "\(pairing), seed \(seed)")
                world.run(for: .seconds(4))
                #expect(world.isRelayed == pairing.needsRelay, "\(pairing), seed \(seed)")
            }
        }
    }

    @Test("With a third of all packets lost the call still comes about, and both end on the same path")
    func heavyLoss() {
        for seed: UInt64 in 0..<20 {
            let world = Scenes.natWorld(
                .portRestricted, .portRestricted, seed: seed, weather: World.Weather(delay: 5...60, loss: 0.33))
            world.start()
            #expect(world.run(for: .seconds(30)) { world.isSettled }, "seed \(seed)")
            world.weather.loss = 0
            world.run(for: .seconds(15))
            #expect(world.exchange())
            let relayed = world.peers.map { $0.agent.path?.isRelayed ?? false }
            let throughServer = world.peers.map { $0.agent.path?.remote.withPort(0) == Scenes.server.withPort(0) }
            #expect(relayed[0] == throughServer[1] && relayed[1] == throughServer[0], "seed \(seed)")
        }
    }

    @Test("On a quick network the path is there within two round trips of the candidates, and settled within three")
    func speed() throws {
        let world = Scenes.plainWorld(weather: World.Weather(delay: 0.1...0.2))
        world.signalingDelay = .milliseconds(1)
        world.start()
        #expect(world.run(for: .seconds(1)) { world.isSettled })
        for peer in world.peers {
            let first = try #require(peer.paths.first)
            #expect(Instant.zero.duration(to: first.at) <= .microseconds(1_400))
        }
        #expect(Instant.zero.duration(to: world.now) < .microseconds(2_000))
    }

    @Test("With the peer's checks there before its candidates, all ways are tried all the same, to change to later")
    func allWays() {
        for seed: UInt64 in 0..<20 {
            let peers = (0..<2).map { number in
                Scenes.peer(
                    number, seed: seed,
                    addresses: (0..<2).map { Scenes.address("192.0.2.\(number * 10 + $0 + 1)") })
            }
            let world = World(seed: seed, weather: World.Weather(delay: 1...5), peers)
            world.signalingDelay = .milliseconds(200)
            world.start()
            #expect(world.run(for: .seconds(10)) { world.isSettled })
            world.run(for: .seconds(3))
            #expect(peers.allSatisfy { $0.agent.validPaths.count == 4 }, "seed \(seed)")
        }
    }

    @Test("Both sides settle on the two ends of one pair")
    func samePair() {
        for seed: UInt64 in 0..<50 {
            let peers = (0..<2).map { number in
                Scenes.peer(
                    number, seed: seed,
                    addresses: (0..<4).map { Scenes.address("192.0.2.\(number * 10 + $0 + 1)") })
            }
            let world = World(seed: seed, weather: World.Weather(delay: 1...80, loss: 0.05), peers)
            world.start()
            #expect(world.run(for: .seconds(10)) { world.isSettled })
            world.run(for: .seconds(10))
            let ends = peers.map { $0.agent.path }
            guard case .direct(let first) = ends[0]?.route, case .direct(let second) = ends[1]?.route else {
                Issue.record("no path")
                continue
            }
            #expect(first == ends[1]?.remote && second == ends[0]?.remote, "seed \(seed)")
        }
    }
}

extension World {
    /// Whether a relay is on the way, on either side.
    fileprivate var isRelayed: Bool {
        peers.contains { $0.agent.path?.isRelayed ?? false }
            || peers.contains { $0.agent.path?.remote.withPort(0) == Scenes.server.withPort(0) }
    }
}
