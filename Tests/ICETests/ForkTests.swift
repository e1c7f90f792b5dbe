import ICE
import Core
import TestSupport
import Testing

@Suite("An offer that several peers answer")
struct ForkTests {
    /// A caller and two who answer its offer; nobody is told of anybody by himself.
    private func world(_ seed: UInt64, _ nat: SimulatedNAT.Kind?) -> World {
        let peers = (0..<3).map { number in
            Scenes.peer(number, seed: seed, nat: nat) { $0.servers = Scenes.servers() }
        }
        for peer in peers { peer.tellsCandidates = false }
        let world = World(seed: seed, peers, servers: [SimulatedServer(Scenes.server)])
        for (index, peer) in peers.enumerated() { world.feed(index, .start(localAddresses: peer.addresses)) }
        world.run(for: .seconds(6)) { peers.allSatisfy(\.hasGathered) }
        return world
    }

    /// One side learns all of another one's.
    private func introduce(_ world: World, _ teller: Int, to hearer: Int) {
        let peer = world.peers[teller]
        world.feed(hearer, .remoteCredentials(peer.agent.credentials, isLite: false))
        for candidate in peer.candidates { world.feed(hearer, .remoteCandidate(candidate)) }
        world.feed(hearer, .remoteEndOfCandidates)
    }

    @Test(
        "The caller connects with the latest to answer, by the same credentials, and the one before is not heard any more",
        arguments: [nil, SimulatedNAT.Kind.portRestricted], [false, true])
    func another(nat: SimulatedNAT.Kind?, firstIsGone: Bool) {
        for seed: UInt64 in 0..<10 {
            let world = world(seed, nat)
            let caller = world.peers[0].agent.credentials
            for answerer in 1...2 { introduce(world, 0, to: answerer) }
            introduce(world, 1, to: 0)
            if firstIsGone {
                // Its checks fail, and so does the agent.
                world.peers[1].blocksUDP = true
                world.run(for: .seconds(60)) { world.peers[0].states.last?.state == .failed }
                #expect(world.peers[0].states.last?.state == .failed)
            } else {
                #expect(world.run(for: .seconds(8)) { world.peers[0].isSettled && world.peers[1].isSettled })
            }
            world.feed(0, .anotherPeer)
            #expect(world.peers[0].agent.path == nil)
            #expect(world.peers[0].agent.credentials == caller)
            introduce(world, 2, to: 0)
            #expect(world.run(for: .seconds(8)) { world.peers[0].isSettled && world.peers[2].isSettled })
            let mark = world.peers[2].inbox.count
            world.send(0, [0x16])
            world.run(for: .seconds(1))
            #expect(world.peers[2].inbox.count == mark + 1)
            // The one before goes on checking, and moves nothing.
            let path = world.peers[0].agent.path
            world.run(for: .seconds(20))
            #expect(world.peers[0].agent.path == path)
            #expect(world.peers[0].states.last?.state == .completed)
        }
    }
}
