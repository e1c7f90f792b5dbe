import ICE
import Core
import TestSupport
import Testing

@Suite("Role conflicts")
struct RoleConflictTests {
    @Test("The check that the peer refused for our role is repeated at once in the other, though pairs change places")
    func repeatsTheRefused() throws {
        let addresses = [Scenes.address("192.0.2.1"), Scenes.address("192.0.2.2")]
        let peer = Scenes.peer(0, seed: 3, addresses: addresses)
        let world = World(seed: 3, weather: World.Weather(delay: 10...10), [peer])
        var generator = SeededGenerator(seed: 8)
        let credentials = ICECredentials(using: &generator)
        world.feed(0, .start(localAddresses: addresses))
        let own = peer.candidates.sorted { $0.priority > $1.priority }
        try #require(own.count == 2)
        // The peer's candidates have the same two priorities, so that the pairs across differ in nothing but who
        // controls: they change places with our role.
        let there = [Scenes.address("192.0.2.90", 7_000), Scenes.address("192.0.2.91", 7_000)]
        let refused = (from: own[0].address, to: there[1])
        var checks: [(at: Instant, controls: Bool)] = []
        world.filter = { [unowned world] source, destination, bytes in
            guard let message = try? STUNMessage(parsing: bytes), message.messageClass == .request,
                source == refused.from, destination == refused.to
            else { return false }
            checks.append((world.now, message.contains(.iceControlling)))
            guard checks.count == 1 else { return false }
            let refusal = STUNBuilder(refusing: message, .roleConflict).finish(
                key: STUNKey(shortTerm: credentials.password), fingerprint: true)
            world.schedule(after: .milliseconds(40)) {
                world.feed(0, .datagram(refusal, local: source, source: destination))
            }
            return false
        }
        world.feed(0, .remoteCredentials(credentials, isLite: false))
        for (address, priority) in zip(there, own.map(\.priority)) {
            world.feed(
                0,
                .remoteCandidate(
                    Candidate(foundation: "\(priority)", priority: priority, address: address, type: .host)))
        }
        world.run(for: .milliseconds(90))
        #expect(peer.agent.statistics.roleChanges == 1)
        try #require(checks.count == 2, "without the refusal the next check would come after 100 ms")
        #expect(checks.map(\.controls) == [true, false])
        #expect(checks[0].at.duration(to: checks[1].at) < .milliseconds(60))
    }
}
