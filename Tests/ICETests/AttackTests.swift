import ICE
import Core
import TestSupport
import Testing

@Suite("What others send")
struct AttackTests {
    /// A world that is settled and at rest.
    private func settled(seed: UInt64 = 1) -> World {
        let world = Scenes.plainWorld(seed: seed)
        world.start()
        world.run(for: .seconds(3))
        return world
    }

    @Test("With a wrong password nothing is believed: no path, no pair, no change")
    func wrongPassword() throws {
        let world = Scenes.plainWorld()
        for peer in world.peers { peer.tellsCandidates = false }
        for index in 0...1 { world.feed(index, .start(localAddresses: world.peers[index].addresses)) }
        for index in 0...1 {
            let real = world.peers[1 - index].agent.credentials
            let wrong = try #require(
                ICECredentials(usernameFragment: real.usernameFragment, password: "0123456789012345678901234"))
            world.feed(index, .remoteCredentials(wrong, isLite: false))
            world.feed(index, .remoteCandidate(world.peers[1 - index].candidates[0]))
        }
        world.run(for: .seconds(60))
        for peer in world.peers {
            #expect(peer.paths.isEmpty)
            #expect(peer.agent.state == .failed)
            #expect(peer.agent.statistics.requestsUnauthenticated > 10)
            #expect(peer.agent.statistics.requestsGranted == 0)
            #expect(peer.agent.statistics.pairs == 1)
        }
    }

    @Test("The peer is where its authenticated checks came from, and nowhere else")
    func sources() throws {
        let world = settled()
        let peer = world.peers[0]
        let (own, other) = (peer.agent.credentials, world.peers[1].agent.credentials)
        #expect(peer.agent.hasPeer(at: world.peers[1].addresses[0]))
        #expect(!peer.agent.hasPeer(at: world.peers[1].addresses[0].withPort(9)))
        let source = Scenes.address("198.51.100.66", 666)
        func check(_ sender: String, _ password: String) {
            var builder = STUNBuilder(.request, .binding, TransactionID(high: 7, low: 7))
            builder.append(.username, "\(own.usernameFragment):\(sender)")
            builder.append(.priority, 1 as UInt32)
            builder.append(.iceControlled, 1 as UInt64)
            let bytes = builder.finish(key: STUNKey(shortTerm: password), fingerprint: true)
            world.feed(0, .datagram(bytes, local: peer.addresses[0], source: source))
        }
        check(other.usernameFragment, "a guess")
        #expect(!peer.agent.hasPeer(at: source), "our name alone shows nothing")
        check("fork", own.password)
        #expect(!peer.agent.hasPeer(at: source), "another peer that knows the same offer")
        check(other.usernameFragment, own.password)
        #expect(peer.agent.hasPeer(at: source))
        world.feed(0, .anotherPeer)
        #expect(!peer.agent.hasPeer(at: source) && !peer.agent.hasPeer(at: world.peers[1].addresses[0]))
    }

    @Test("Everything that was ever sent, sent again from elsewhere and from the same place, changes nothing")
    func replays() {
        var recorded: [(SocketAddress, SocketAddress, [UInt8])] = []
        let world = Scenes.plainWorld(seed: 3)
        world.filter = { source, destination, bytes in
            recorded.append((source, destination, bytes))
            return true
        }
        world.start()
        world.run(for: .seconds(5))
        world.filter = { _, _, _ in true }
        let paths = world.peers.map { $0.agent.path }
        let attacker = Scenes.address("198.51.100.66", 666)
        for (source, destination, bytes) in recorded {
            world.route(bytes, from: source, to: destination)
            world.route(bytes, from: attacker, to: destination)
        }
        world.run(for: .seconds(10))
        #expect(world.peers.map { $0.agent.path } == paths)
        #expect(world.peers.allSatisfy { $0.paths.filter { $0.path?.remote == attacker }.isEmpty })
        #expect(world.peers.allSatisfy { $0.agent.statistics.responsesUnmatched > 0 })
        #expect(world.exchange())
    }

    @Test("Answers and refusals that are forged, though with the right transaction ID, are not believed")
    func forgedAnswers() {
        let world = Scenes.plainWorld(seed: 4)
        var forged = 0
        world.filter = { [unowned world] source, destination, bytes in
            guard let message = try? STUNMessage(parsing: bytes), message.messageClass == .request else { return true }
            // The attacker sees each check and is quicker than the peer.
            for refusal in [STUNErrorCode.roleConflict, .badRequest, .unauthenticated] {
                forged += 1
                let bytes = STUNBuilder(refusing: message, refusal).finish(fingerprint: true)
                for (index, peer) in world.peers.enumerated() where peer.addresses.contains(source) {
                    world.schedule(after: .milliseconds(1)) {
                        world.feed(index, .datagram(bytes, local: source, source: destination))
                    }
                }
            }
            return true
        }
        world.start()
        #expect(world.run(for: .seconds(5)) { world.isSettled })
        #expect(forged > 0)
        #expect(world.peers.map(\.agent.statistics.roleChanges) == [0, 0])
        #expect(world.peers.map(\.agent.statistics.responsesUnauthenticated).reduce(0, +) > 0)
    }

    @Test("A flood of checks is answered up to a limit, with the rest counted, and the path stays")
    func floods() throws {
        let world = settled()
        let agent = world.peers[0].agent
        let other = world.peers[1].agent.credentials
        let stranger = Scenes.address("198.51.100.9", 99)
        let sent = world.peers[0].transmitted
        for number in 0..<5_000 {
            var builder = STUNBuilder(.request, .binding, TransactionID(high: UInt64(number), low: 1))
            builder.append(.username, "\(agent.credentials.usernameFragment):\(other.usernameFragment)")
            builder.append(.priority, 1 as UInt32)
            builder.append(.iceControlled, 1 as UInt64)
            let isKnown = number % 2 == 0
            let key = STUNKey(shortTerm: isKnown ? agent.credentials.password : "a guess")
            let source = isKnown ? stranger.withPort(UInt16(1_000 + number)) : stranger
            world.feed(
                0,
                .datagram(
                    builder.finish(key: key, fingerprint: true), local: world.peers[0].addresses[0], source: source))
        }
        let statistics = world.peers[0].agent.statistics
        #expect(statistics.requestsUnauthenticated == 2_500)
        #expect(statistics.requestsGranted <= 120)
        #expect(statistics.requestsOverLimit > 4_500)
        #expect(statistics.pairs <= ICEConfiguration.maximumPairs)
        #expect(world.peers[0].transmitted - sent < 200)
        world.run(for: .seconds(20))
        #expect(world.peers[0].agent.path?.remote == world.peers[1].addresses[0])
        #expect(world.exchange())
    }

    @Test("A check with an unknown attribute that must be understood is refused with 420")
    func unknownAttribute() throws {
        let world = settled()
        let agent = world.peers[0].agent
        var builder = STUNBuilder(.request, .binding, TransactionID(high: 5, low: 5))
        builder.append(
            .username, "\(agent.credentials.usernameFragment):\(world.peers[1].agent.credentials.usernameFragment)")
        builder.append(STUNAttributeType(rawValue: 0x7001), [1])
        let bytes = builder.finish(key: STUNKey(shortTerm: agent.credentials.password), fingerprint: true)
        var outputs: [ICEOutput] = []
        world.peers[0].agent.handle(
            .datagram(bytes, local: world.peers[0].addresses[0], source: world.peers[1].addresses[0]), at: world.now,
            into: &outputs)
        guard case .transmit(let answer, _, _) = outputs.first else {
            Issue.record("no answer")
            return
        }
        let message = try STUNMessage(parsing: answer)
        #expect(message.failure?.code == .unknownAttribute)
        #expect(message.value(.unknownAttributes).map(Array.init) == [0x70, 0x01])
        #expect(message.integrity(STUNKey(shortTerm: agent.credentials.password)) == .valid)
    }

    @Test("Datagrams cut short or changed at random leave path and pairs as they are")
    func damage() {
        var recorded: [[UInt8]] = []
        let world = Scenes.plainWorld(seed: 6)
        world.filter = { _, _, bytes in
            recorded.append(bytes)
            return true
        }
        world.start()
        world.run(for: .seconds(5))
        world.filter = { _, _, _ in true }
        let path = world.peers[0].agent.path
        let pairs = world.peers[0].agent.statistics.pairs
        var generator = SeededGenerator(seed: 9)
        let stranger = Scenes.address("198.51.100.9", 99)
        for _ in 0..<5_000 {
            var bytes = recorded[.random(in: 0..<recorded.count, using: &generator)]
            if Bool.random(using: &generator) {
                bytes = Array(bytes.prefix(.random(in: 0..<bytes.count, using: &generator)))
            } else {
                bytes[.random(in: 0..<bytes.count, using: &generator)] ^=
                    1 << UInt8.random(in: 0...7, using: &generator)
            }
            world.feed(0, .datagram(bytes, local: world.peers[0].addresses[0], source: stranger))
        }
        #expect(world.peers[0].agent.path == path)
        #expect(world.peers[0].agent.statistics.pairs == pairs)
        #expect(world.peers[0].agent.statistics.malformed > 1_000)
    }
}
