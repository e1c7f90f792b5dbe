import ICE
import Core
import TestSupport
import Testing

@Suite("A path in the course of a call")
struct CallTests {
    @Test("Two sides that both think they control agree in the end", arguments: [true, false])
    func roleConflict(bothControl: Bool) {
        for seed: UInt64 in 0..<20 {
            let world = Scenes.plainWorld(seed: seed, weather: World.Weather(delay: 5...40, loss: 0.1)) {
                $0.isControlling = bothControl
            }
            world.start()
            #expect(world.run(for: .seconds(8)) { world.isSettled }, "seed \(seed)")
            #expect(world.peers[0].agent.isControlling != world.peers[1].agent.isControlling)
            // The one with the smaller number gives way, and nobody changes twice.
            #expect(world.peers.map(\.agent.statistics.roleChanges).reduce(0, +) == 1)
        }
    }

    @Test("A restart keeps the old path until the new one is settled, and data flows all the while")
    func restart() {
        for seed: UInt64 in 0..<10 {
            let world = Scenes.natWorld(.portRestricted, .endpointIndependent, seed: seed)
            world.start()
            #expect(world.run(for: .seconds(8)) { world.isSettled })
            world.run(for: .seconds(2))
            let before = world.peers.map { $0.agent.credentials }
            let marks = world.peers.map(\.paths.count)
            var generator = SeededGenerator(seed: seed &+ 900)
            for index in 0...1 {
                let fresh = ICECredentials(using: &generator)
                world.feed(index, .restart(fresh))
                world.tell(1 - index, .remoteCredentials(fresh, isLite: false))
            }
            #expect(world.exchange())
            #expect(world.run(for: .seconds(8)) { world.isSettled && world.peers.allSatisfy(\.hasGathered) })
            // The old generation is answered for three more seconds, then it is gone.
            world.run(for: .seconds(5))
            #expect(world.exchange())
            for index in 0...1 {
                let agent = world.peers[index].agent
                #expect(agent.credentials != before[index])
                #expect(agent.answers(to: agent.credentials.usernameFragment))
                #expect(!agent.answers(to: before[index].usernameFragment))
                #expect(world.peers[index].paths[marks[index]...].allSatisfy { $0.path != nil }, "never without a path")
                #expect(agent.path?.isNominated == true)
            }
        }
    }

    @Test("When the far side vanishes, sending stops 30 s after its last answer, and not before")
    func consentLoss() throws {
        for seed: UInt64 in 0..<10 {
            let world = Scenes.plainWorld(seed: seed)
            world.start()
            #expect(world.run(for: .seconds(5)) { world.isSettled })
            world.run(for: .seconds(20))
            world.filter = { _, _, _ in false }
            let cut = world.now
            #expect(world.run(for: .seconds(60)) { world.peers.allSatisfy { $0.agent.path == nil } })
            for peer in world.peers {
                let lost = try #require(peer.paths.last)
                #expect(lost.path == nil)
                // The last answer came up to 6 s before the cut.
                #expect((.seconds(23.9)...Duration.seconds(30.1)).contains(cut.duration(to: lost.at)))
                #expect(peer.states.contains { $0.state == .disconnected })
                let sent = peer.transmitted
                world.send(0, [0x16])
                world.send(1, [0x16])
                #expect(peer.transmitted == sent)
            }
            world.run(for: .seconds(15))
            for peer in world.peers { #expect(peer.agent.state == .failed) }
        }
    }

    @Test("Consent checks come every 4 to 6 s when there is nothing to change to")
    func consentInterval() {
        let world = Scenes.plainWorld(weather: World.Weather(delay: 10...10))
        world.start()
        world.run(for: .seconds(10))
        var times: [Instant] = []
        world.filter = { source, _, bytes in
            if source == world.peers[0].addresses[0], bytes[0] == 0, bytes[1] == 1 { times.append(world.now) }
            return true
        }
        world.run(for: .seconds(600))
        let gaps = zip(times, times.dropFirst()).map { $0.duration(to: $1) }
        #expect((100...150).contains(gaps.count))
        #expect(gaps.allSatisfy { (.seconds(4)...Duration.seconds(6.1)).contains($0) })
        #expect(Set(gaps.map { Int($0.seconds * 10) }).count > 5)
    }

    @Test("When the interface in use dies and another works, both sides change to it within 3 s, without a gap")
    func pathSwitch() {
        for seed: UInt64 in 0..<50 {
            let peers = (0..<2).map { number in
                Scenes.peer(
                    number, seed: seed,
                    addresses: [Scenes.address("192.0.2.\(number + 1)"), Scenes.address("192.0.2.\(number + 11)")])
            }
            let world = World(seed: seed, weather: World.Weather(delay: 5...40), peers)
            world.start()
            #expect(world.run(for: .seconds(5)) { world.isSettled })
            world.run(for: .seconds(8))
            guard case .direct(let used) = peers[0].agent.path?.route else {
                Issue.record("no path")
                continue
            }
            peers[0].deadAddresses = [used]
            let cut = world.now
            #expect(
                world.run(for: .seconds(6)) {
                    peers[0].agent.path?.route != .direct(local: used) && peers[1].agent.path?.remote != used
                        && world.isSettled
                }, "seed \(seed)")
            #expect(cut.duration(to: world.now) < .seconds(3), "seed \(seed)")
            #expect(world.exchange())
            #expect(peers.allSatisfy { $0.paths.allSatisfy { $0.path != nil } })
            #expect(peers.allSatisfy { $0.agent.statistics.pathChanges >= 1 })
        }
    }

    /// Two peers with two addresses each, in a call that stands, who seldom check their path of their own accord.
    private func twoWays(seed: UInt64, _ weather: World.Weather) -> World {
        let world = World(
            seed: seed, weather: weather,
            (0..<2).map { number in
                Scenes.peer(
                    number, seed: seed,
                    addresses: [Scenes.address("192.0.2.\(number + 1)"), Scenes.address("192.0.2.\(number + 11)")]
                ) { $0.livenessInterval = .seconds(20) }
            })
        world.start()
        world.run(for: .seconds(6))
        return world
    }

    @Test(
        "Notified that the path is quiet, both sides look at once, and are on another within half a second if it is dead"
    )
    func quietPath() {
        for seed: UInt64 in 0..<50 {
            let world = twoWays(seed: seed, World.Weather(delay: 5...40))
            guard case .direct(let used) = world.peers[0].agent.path?.route else {
                Issue.record("no path")
                continue
            }
            world.peers[0].deadAddresses = [used]
            world.run(for: .milliseconds(200))
            world.feed(0, .pathIsQuiet)
            world.feed(1, .pathIsQuiet)
            let isElsewhere = {
                world.peers[0].agent.path?.route != .direct(local: used) && world.peers[1].agent.path?.remote != used
            }
            #expect(world.run(for: .milliseconds(500), until: isElsewhere), "seed \(seed)")
            world.run(for: .seconds(2))
            #expect(world.isSettled && world.exchange() && isElsewhere(), "seed \(seed)")
        }
    }

    @Test("Notified that the path is quiet, an agent stays on it if it answers, however often, and through loss")
    func pauses() {
        for seed: UInt64 in 0..<50 {
            let world = twoWays(seed: seed, World.Weather(delay: 5...40, loss: 0.02))
            let before = world.peers.map { $0.agent.statistics.pathChanges }
            let used = world.peers.map { $0.agent.path }
            for _ in 0..<60 {
                world.feed(0, .pathIsQuiet)
                world.run(for: .seconds(1))
            }
            // Three checks in a row get lost now and then, in one seed even twice; then the other way is as good, and
            // the first gets its place back.
            let changes = zip(world.peers, before).map { $0.agent.statistics.pathChanges - $1 }
            #expect(changes.allSatisfy { $0 <= 4 }, "seed \(seed): \(changes)")
            if changes == [0, 0] { #expect(world.peers.map { $0.agent.path } == used) }
        }
    }

    @Test("A quiet path with a long round trip is given the time of three")
    func longWay() {
        let world = twoWays(seed: 3, World.Weather(delay: 300...310))
        let used = world.peers[0].agent.path?.route
        for _ in 0..<10 {
            world.feed(0, .pathIsQuiet)
            world.run(for: .seconds(3))
        }
        #expect(world.peers[0].agent.path?.route == used && used != nil)
        #expect(world.peers[0].agent.statistics.pathChanges == 0)
    }

    @Test("A relayed path takes over when the direct one dies, and gives way when it is back for good")
    func fallBackToRelay() {
        for seed: UInt64 in 0..<20 {
            let world = Scenes.natWorld(.endpointIndependent, .endpointIndependent, seed: seed)
            world.start()
            #expect(world.run(for: .seconds(8)) { world.isSettled })
            world.run(for: .seconds(8))
            #expect(world.peers.allSatisfy { $0.agent.path?.isRelayed == false })
            #expect(world.peers.allSatisfy { $0.agent.validPaths.first == $0.agent.path })
            #expect(world.peers.allSatisfy { $0.agent.validPaths.contains(where: \.isRelayed) })
            let server = Scenes.server.withPort(0)
            world.filter = { source, destination, _ in
                source.withPort(0) == server || destination.withPort(0) == server
            }
            let cut = world.now
            #expect(
                world.run(for: .seconds(10)) {
                    world.isSettled
                        && world.peers.allSatisfy {
                            ($0.agent.path?.isRelayed ?? false)
                                || $0.agent.path?.remote.withPort(0) == server
                        }
                }, "seed \(seed)")
            #expect(cut.duration(to: world.now) < .seconds(4), "seed \(seed)")
            #expect(world.exchange())
            world.filter = { _, _, _ in true }
            #expect(
                world.run(for: .seconds(30)) {
                    world.isSettled
                        && world.peers.allSatisfy {
                            $0.agent.path?.isRelayed == false && $0.agent.path?.remote.withPort(0) != server
                        }
                }, "seed \(seed)")
            #expect(world.peers.allSatisfy { $0.paths.allSatisfy { $0.path != nil } })
        }
    }

    @Test("A direct path that was gone for minutes is found again when it is back")
    func longOutage() {
        for seed: UInt64 in 0..<10 {
            let world = Scenes.natWorld(.endpointIndependent, .endpointIndependent, seed: seed)
            world.start()
            world.run(for: .seconds(8))
            let server = Scenes.server.withPort(0)
            world.filter = { source, destination, _ in
                source.withPort(0) == server || destination.withPort(0) == server
            }
            world.run(for: .seconds(150))
            #expect(world.exchange())
            world.filter = { _, _, _ in true }
            world.run(for: .seconds(60))
            for peer in world.peers {
                #expect(peer.agent.path?.isRelayed == false && peer.agent.path?.remote.withPort(0) != server)
            }
            #expect(world.peers.allSatisfy { $0.paths.allSatisfy { $0.path != nil } })
        }
    }

    @Test("A NAT that forgets its mappings costs a few seconds, not the call")
    func natReboot() {
        for seed: UInt64 in 0..<20 {
            let world = Scenes.natWorld(.portRestricted, nil, seed: seed)
            world.start()
            #expect(world.run(for: .seconds(8)) { world.isSettled })
            world.run(for: .seconds(8))
            world.peers[0].nat?.reboot()
            world.run(for: .seconds(12))
            #expect(world.exchange(), "seed \(seed)")
            #expect(world.peers.allSatisfy { $0.agent.state == .connected || $0.agent.state == .completed })
        }
    }

    @Test("When the machine's only address is replaced, the new one is checked and carries the call on")
    func addressReplaced() {
        for seed: UInt64 in 0..<20 {
            let world = Scenes.plainWorld(seed: seed)
            world.start()
            #expect(world.run(for: .seconds(8)) { world.isSettled })
            world.run(for: .seconds(2))
            let fresh = Scenes.address("192.0.2.77", 6_000)
            world.peers[0].addresses = [fresh]
            world.feed(0, .localAddresses([fresh]))
            #expect(world.peers[0].agent.path == nil)
            #expect(world.run(for: .seconds(8)) { world.isSettled && world.peers[1].agent.path?.remote == fresh })
            #expect(world.exchange())
        }
    }

    @Test("With its only address gone an agent hopes for another for 30 s, and only then calls it failed")
    func addressGone() {
        let world = Scenes.plainWorld(seed: 2)
        world.start()
        world.run(for: .seconds(10))
        world.feed(0, .localAddresses([]))
        #expect(world.peers[0].agent.path == nil)
        #expect(world.peers[0].agent.state == .disconnected)
        world.run(for: .seconds(23))
        #expect(world.peers[0].agent.state == .disconnected)
        world.run(for: .seconds(10))
        #expect(world.peers[0].agent.state == .failed)
    }

    @Test("After the end nothing is sent, and allocations are given back")
    func end() {
        let world = Scenes.natWorld(.symmetric, .symmetric, seed: 1)
        world.start()
        #expect(world.run(for: .seconds(8)) { world.isSettled })
        for index in 0...1 { world.feed(index, .end) }
        world.run(for: .seconds(10))
        #expect(world.servers[0].released == 2)
        #expect(world.servers[0].allocations.isEmpty)
        for peer in world.peers {
            #expect(peer.agent.state == .closed)
            #expect(peer.agent.nextDeadline == nil)
            #expect(peer.connections.isEmpty)
            let sent = peer.transmitted
            world.send(0, [0x16])
            world.feed(0, .timerFired)
            #expect(peer.transmitted == sent)
        }
    }
}
