import ICE
import Core
import TestSupport
import Testing

@Suite("Candidates and credentials on their way")
struct SignalingTests {
    @Test("With symmetric NATs and no relay nothing works, which is said after 39.5 s and not before")
    func patience() throws {
        let world = Scenes.natWorld(.symmetric, .symmetric, seed: 2) {
            $0.servers = [ICEServer(.stun, at: Scenes.server)]
        }
        world.start()
        world.run(for: .seconds(39))
        #expect(world.peers.allSatisfy { $0.agent.state == .checking })
        #expect(world.run(for: .seconds(15)) { world.peers.allSatisfy { $0.agent.state == .failed } })
        let failed = try #require(world.peers[0].states.last)
        #expect(failed.at >= Instant.zero.advanced(by: .milliseconds(39_540)))
        #expect(world.peers.allSatisfy { $0.paths.isEmpty })
    }

    @Test("An empty check list waits: candidates that come 35 s late still make a path (RFC 8863)")
    func lateTrickle() {
        let world = Scenes.plainWorld()
        for peer in world.peers { peer.tellsCandidates = false }
        world.start()
        world.feed(0, .remoteEndOfCandidates)
        world.run(for: .seconds(35))
        #expect(world.peers.allSatisfy { $0.agent.state == .checking })
        world.feed(1, .remoteCandidate(world.peers[0].candidates[0]))
        #expect(world.run(for: .seconds(1)) { world.isSettled })
        #expect(world.exchange())
        // The first learnt of the second only from its checks.
        #expect(world.peers[0].agent.path?.remote == world.peers[1].addresses[0])
    }

    @Test("Without any candidate: failed at 39.5 s")
    func emptyList() {
        let world = Scenes.plainWorld()
        for peer in world.peers { peer.tellsCandidates = false }
        world.start()
        #expect(world.run(for: .seconds(60)) { world.peers.allSatisfy { $0.agent.state == .failed } })
        #expect((39_530...39_560).contains(Instant.zero.duration(to: world.now).milliseconds))
    }

    @Test("Checks that come before the answer are granted, and answered with our own once the peer is known")
    func earlyChecks() {
        for seed: UInt64 in 0..<20 {
            let world = Scenes.plainWorld(seed: seed)
            world.start()
            world.run(for: .milliseconds(20))
            world.heldSignals = []
            // Only the second knows the first; its answer is slow.
            let fresh = Scenes.plainWorld(seed: seed)
            fresh.feed(0, .start(localAddresses: fresh.peers[0].addresses))
            fresh.feed(1, .start(localAddresses: fresh.peers[1].addresses))
            fresh.feed(1, .remoteCredentials(fresh.peers[0].agent.credentials, isLite: false))
            for candidate in fresh.peers[0].candidates { fresh.feed(1, .remoteCandidate(candidate)) }
            fresh.run(for: .milliseconds(500))
            #expect(fresh.peers[0].agent.statistics.requestsGranted > 0)
            #expect(fresh.peers[1].agent.path != nil)
            #expect(fresh.peers[0].agent.path == nil)
            fresh.feed(0, .remoteCredentials(fresh.peers[1].agent.credentials, isLite: false))
            #expect(fresh.run(for: .milliseconds(200)) { fresh.isSettled }, "seed \(seed)")
        }
    }

    @Test(
        "A name is passed upward once, harms nothing unresolved, and makes a path when it is resolved, after the end too"
    )
    func multicastNames() throws {
        let name = "7f1c2d4e-aaaa-4bbb-8ccc-0123456789ab.local"
        let candidate = try #require(
            Candidate(parsing: "candidate:1 1 udp 2113937151 \(name) 5000 typ host generation 0 network-cost 999"))
        #expect(candidate.location == .name(name, port: 5_000))
        let world = Scenes.plainWorld()
        for peer in world.peers { peer.tellsCandidates = false }
        world.start()
        world.feed(0, .remoteCandidate(candidate))
        world.run(for: .seconds(5))
        #expect(world.peers[0].unresolved == [candidate])
        #expect(world.peers[0].agent.state == .checking)
        #expect(world.peers[0].agent.statistics.pairs == 0)
        world.feed(0, .remoteEndOfCandidates)
        let late = try #require(Candidate(parsing: "1 1 udp 2113937151 192.0.2.77 5001 typ host"))
        world.feed(0, .remoteCandidate(late))
        #expect(world.peers[0].agent.statistics.pairs == 0, "what was not told before the end comes too late")
        world.feed(0, .remoteCandidate(candidate.resolved(to: world.peers[1].addresses[0].withPort(0))))
        #expect(world.run(for: .seconds(1)) { world.isSettled })
    }

    @Test("Candidates for TCP, for RTCP, of an old generation or of unusable addresses are ignored")
    func ignoredCandidates() throws {
        let world = Scenes.plainWorld()
        for peer in world.peers { peer.tellsCandidates = false }
        world.start()
        world.run(for: .seconds(1))
        let texts = [
            "1 1 tcp 2105524479 192.0.2.9 9 typ host tcptype active", "1 2 udp 2113937150 192.0.2.9 5001 typ host",
            "1 1 udp 2113937151 192.0.2.9 5001 typ host ufrag oldone", "1 1 udp 2113937151 0.0.0.0 5001 typ host",
            "1 1 udp 2113937151 224.0.0.251 5353 typ host", "1 1 udp 2113937151 192.0.2.9 0 typ host",
        ]
        for text in texts { world.feed(0, .remoteCandidate(try #require(Candidate(parsing: text)))) }
        #expect(world.peers[0].agent.statistics.candidatesIgnored == texts.count)
        #expect(world.peers[0].agent.statistics.pairs == 0)
    }

    @Test("A flood of candidates stops at the limits and is counted")
    func candidateFlood() {
        let world = Scenes.plainWorld()
        for peer in world.peers { peer.tellsCandidates = false }
        world.peers[0].addresses = (0..<4).map { Scenes.address("192.0.2.\($0 + 20)") }
        world.start()
        world.run(for: .seconds(1))
        for number in 0..<1_000 {
            let address = Scenes.address("198.18.\(number / 250).\(number % 250 + 1)", 9_000)
            world.feed(
                0,
                .remoteCandidate(Candidate(foundation: "\(number)", priority: 1_000, address: address, type: .host)))
        }
        let statistics = world.peers[0].agent.statistics
        #expect(statistics.candidatesOverLimit == 1_000 - ICEConfiguration.maximumRemoteCandidates)
        #expect(statistics.pairs == ICEConfiguration.maximumPairs)
        #expect(statistics.pairsOverLimit == 4 * 64 - 100)
        // 100 pairs are begun 5 ms apart, and on the whole not repeated more often than that.
        let sent = world.peers[0].transmitted
        world.run(for: .milliseconds(250))
        #expect((45...75).contains(world.peers[0].transmitted - sent))
        world.run(for: .milliseconds(2_000))
        #expect(world.peers[0].transmitted - sent < 500)
        for number in 0..<100 {
            let name = Candidate(parsing: "1 1 udp 1 host\(number).local 5000 typ host")
            if let name { world.feed(0, .remoteCandidate(name)) }
        }
        #expect(world.peers[0].unresolved.count == ICEConfiguration.maximumRemoteCandidates)
    }

    @Test("A check of the peer's is answered with ours at once, however many pairs wait for their turn")
    func triggeredCheck() {
        let world = Scenes.plainWorld()
        for peer in world.peers { peer.tellsCandidates = false }
        world.start()
        world.run(for: .seconds(1))
        for number in 0..<60 {
            let address = Scenes.address("198.18.0.\(number + 1)", 9_000)
            let candidate = Candidate(foundation: "\(number)", priority: .max / 2, address: address, type: .host)
            world.feed(0, .remoteCandidate(candidate))
        }
        let arrival = world.now.advanced(by: .milliseconds(30))
        var answered: [Instant] = []
        world.filter = { source, destination, bytes in
            let isCheck = bytes[0] == 0 && bytes[1] == 1
            if isCheck, source == world.peers[0].addresses[0], destination == world.peers[1].addresses[0] {
                answered.append(world.now)
            }
            return true
        }
        world.weather.delay = 30...30
        world.feed(1, .remoteCandidate(world.peers[0].candidates[0]))
        #expect(world.run(for: .seconds(1)) { world.isSettled })
        #expect(answered.first == arrival)
    }

    @Test("Only relayed candidates are sent, and nothing leaves a local socket, when the policy is to relay only")
    func relayOnly() {
        for seed: UInt64 in 0..<10 {
            let world = Scenes.natWorld(nil, .portRestricted, seed: seed) { configuration in
                if configuration.isControlling { configuration.policy = .relayOnly }
            }
            world.start()
            #expect(world.run(for: .seconds(8)) { world.isSettled })
            #expect(world.exchange())
            #expect(world.peers[0].transmitted == 0)
            #expect(world.peers[0].candidates.map(\.type) == [.relayed])
            #expect(world.peers[0].agent.path?.isRelayed == true)
            let told = world.peers[0].candidates.compactMap(\.relatedAddress?.host)
            #expect(!told.contains(world.peers[0].addresses[0].host))
        }
    }

    @Test("IPv6 and IPv4 candidates pair with their own kind")
    func families() {
        let peers = (0..<2).map { number in
            Scenes.peer(
                number, seed: 3,
                addresses: [Scenes.address("2001:db8::\(number + 1)"), Scenes.address("192.0.2.\(number + 1)")])
        }
        let world = World(seed: 3, peers)
        world.start()
        #expect(world.run(for: .seconds(5)) { world.isSettled })
        #expect(peers.allSatisfy { $0.agent.statistics.pairs == 2 })
        #expect(peers.allSatisfy { $0.agent.path?.remote.isIPv6 == true })
        #expect(world.exchange())
    }
}
