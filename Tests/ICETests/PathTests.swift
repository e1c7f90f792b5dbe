import Datagrams
import ICE
import TestSupport
import Testing
import Timekeeping

@Suite("Finding a path")
struct PathTests {
    private static let pairings: [(SimulatedNAT.Kind?, SimulatedNAT.Kind?)] = {
        let kinds: [SimulatedNAT.Kind?] = [nil] + SimulatedNAT.Kind.allCases
        return kinds.flatMap { first in kinds.map { (first, $0) } }
    }()

    @Test("Through every pairing of NATs, with loss and reordering, both sides settle on a path that carries data")
    func pairings() {
        for (first, second) in Self.pairings {
            for seed: UInt64 in 0..<Self.seeds {
                let world = Scenes.natWorld(
                    first, second, seed: seed, weather: World.Weather(delay: 5...60, loss: 0.1, duplication: 0.02))
                world.start()
                let isSettled = world.run(for: .seconds(10)) { world.isSettled }
                let name = "\(first?.rawValue ?? "open") to \(second?.rawValue ?? "open"), seed \(seed)"
                guard isSettled, world.exchange() else {
                    Issue.record("\(name): \(world.peers.map { $0.agent.statistics })")
                    continue
                }
                let isHard =
                    Set([first, second]).isSubset(of: [.symmetric, .portRestricted]) && first != .portRestricted
                    || first == .portRestricted && second == .symmetric
                let isRelayed = world.peers.contains { $0.agent.path?.isRelayed ?? true }
                if isHard {
                    #expect(
                        isRelayed || world.peers.contains { $0.agent.path?.remote.host == Scenes.server.host },
                        "\(name)")
                }
            }
        }
    }

    private static let seeds: UInt64 = 5

    @Test("On a quick network with addresses known at once the path is there within a round trip or two")
    func speed() {
        let world = Scenes.plainWorld(weather: World.Weather(delay: 0.1...0.2))
        world.signalingDelay = .milliseconds(1)
        world.start()
        #expect(world.run(for: .seconds(1)) { world.isSettled })
        #expect(Instant.zero.duration(to: world.now) < .milliseconds(3))
    }
}
