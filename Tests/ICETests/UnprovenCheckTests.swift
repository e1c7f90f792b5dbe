import ICE
import Core
import TestSupport
import Testing

@Suite("Checks to hosts that only a description names")
struct UnprovenCheckTests {
    private let named = Scenes.address("203.0.113.66")

    private func candidates(_ count: Int) -> [Candidate] {
        (0..<count).map { number in
            Candidate(
                foundation: "f\(number)", priority: UInt32(9_999 - number),
                address: named.withPort(UInt16(10_000 + number)), type: .host)
        }
    }

    /// One agent with a public address that has the peer's credentials, and no candidate of it yet.
    private func agentAlone(_ credentials: ICECredentials, isLite: Bool) -> World {
        let peer = Scenes.peer(0, seed: 5) { $0.isControlling = false }
        let world = World(seed: 5, [peer])
        world.feed(0, .start(localAddresses: peer.addresses))
        world.feed(0, .remoteCredentials(credentials, isLite: isLite))
        return world
    }

    @Test(
        "Each candidate gets a check, and their host six times what the description has at most",
        arguments: [(1, 4_300), (10, 7_000), (40, 16_000)])
    func limit(count: Int, most: Int) throws {
        let credentials = try #require(
            ICECredentials(usernameFragment: String(repeating: "a", count: 256), password: "abcdefghijklmnopqrstuvwx"))
        let world = agentAlone(credentials, isLite: false)
        var ports: Set<UInt16> = []
        var bytes = 0
        world.filter = { _, destination, datagram in
            ports.insert(destination.port)
            bytes += datagram.count
            return false
        }
        for candidate in candidates(count) { world.feed(0, .remoteCandidate(candidate)) }
        world.feed(0, .remoteEndOfCandidates)
        world.run(for: .seconds(10))
        #expect(ports.count == count)
        #expect(bytes <= most + 600 + 200 * 10)
        world.run(for: .seconds(50))
        #expect(bytes <= most + 600 + 200 * 60)
    }

    @Test(
        "Past the limit each has its turn: the last of 40 candidates of a lite peer, whose network comes up after 3 s")
    func lateLitePeer() throws {
        var generator = SeededGenerator(seed: 99)
        let credentials = ICECredentials(using: &generator)
        let world = agentAlone(credentials, isLite: true)
        let all = candidates(40)
        let last = try #require(all.last?.address)
        let host = named.withPort(0)
        world.filter = { [unowned world] source, destination, bytes in
            guard destination.withPort(0) == host else { return true }
            guard destination == last, Instant.zero.duration(to: world.now) > .seconds(3),
                let message = try? STUNMessage(parsing: bytes), message.messageClass == .request
            else { return false }
            var builder = STUNBuilder(.success, answering: message)
            builder.append(.xorMappedAddress, source)
            let answer = builder.finish(key: STUNKey(shortTerm: credentials.password), fingerprint: true)
            world.schedule(after: .milliseconds(20)) { world.route(answer, from: last, to: source) }
            return false
        }
        for candidate in all { world.feed(0, .remoteCandidate(candidate)) }
        world.feed(0, .remoteEndOfCandidates)
        #expect(world.run(for: .seconds(30)) { world.isSettled })
        #expect(world.peers[0].agent.path?.remote == last)
    }

    @Test(
        "A peer behind a path of 3 s is reached beside 36 candidates that do not answer, over IPv4 and IPv6",
        arguments: 0..<5)
    func slowPath(seed: UInt64) {
        let peers = (0..<2).map { number in
            Scenes.peer(
                number, seed: seed,
                addresses: [Scenes.address("192.0.2.\(number + 1)"), Scenes.address("2001:db8::\(number + 1)")])
        }
        let world = World(seed: seed, weather: World.Weather(delay: 1_400...1_600, loss: 0.05), peers)
        world.signalingDelay = .milliseconds(1_500)
        world.start()
        for number in 0..<36 {
            let host = number % 2 == 0 ? "203.0.113.\(number + 1)" : "2001:db8:1::\(number + 1)"
            world.tell(
                0,
                .remoteCandidate(
                    Candidate(
                        foundation: "dead\(number)", priority: UInt32(2_130_706_431 - number),
                        address: Scenes.address(host), type: .host)))
        }
        #expect(world.run(for: .seconds(30)) { world.isSettled }, "seed \(seed)")
        #expect(world.exchange(within: .seconds(10)))
    }
}
