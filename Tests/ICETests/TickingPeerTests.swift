import ICE
import Core
import TestSupport
import Testing

@Suite("Peers that nominate at a tick of their own")
struct TickingPeerTests {
    /// A side that controls as Pion does: it checks once, and nominates when a check reaches it on a pair that works
    /// for it. Its own tick, at which it would nominate too, never comes.
    private final class TickingPeer {
        let address = Scenes.address("192.0.2.90", 7_000)
        private(set) var checksReceived = 0
        private var works = false
        private var random = SeededGenerator(seed: 90)
        private let credentials: ICECredentials
        private unowned let world: World

        init(_ world: World) {
            self.world = world
            credentials = ICECredentials(using: &random)
            world.filter = { [unowned self] source, destination, bytes in
                guard destination == address else { return true }
                world.schedule(after: .milliseconds(10)) { self.take(bytes, from: source) }
                return false
            }
            world.feed(0, .start(localAddresses: world.peers[0].addresses))
            world.feed(0, .remoteCredentials(credentials, isLite: false))
            world.feed(
                0,
                .remoteCandidate(
                    Candidate(foundation: "1", priority: 2_130_706_431, address: address, type: .host)))
        }

        private func take(_ bytes: [UInt8], from source: SocketAddress) {
            guard let message = try? STUNMessage(parsing: bytes) else { return }
            switch message.messageClass {
            case .request:
                checksReceived += 1
                var answer = STUNBuilder(.success, answering: message)
                answer.append(.xorMappedAddress, source)
                send(answer.finish(key: STUNKey(shortTerm: credentials.password), fingerprint: true))
                if works { check(nominates: true) }
            case .success: works = true
            case .failure, .indication: break
            }
        }

        func check(nominates: Bool = false) {
            let there = world.peers[0].agent.credentials
            var builder = STUNBuilder(.request, .binding, TransactionID(using: &random))
            builder.append(.username, "\(there.usernameFragment):\(credentials.usernameFragment)")
            builder.append(.priority, 1_862_270_975 as UInt32)
            builder.append(.iceControlling, UInt64.max)
            if nominates { builder.append(.useCandidate, []) }
            send(builder.finish(key: STUNKey(shortTerm: there.password), fingerprint: true))
        }

        private func send(_ bytes: [UInt8]) {
            world.route(bytes, from: address, to: world.peers[0].addresses[0])
        }
    }

    private func scene() -> (World, TickingPeer) {
        let peer = Scenes.peer(0, seed: 7) { $0.isControlling = false }
        let world = World(seed: 7, weather: World.Weather(delay: 10...10), [peer])
        return (world, TickingPeer(world))
    }

    @Test(
        "A peer that nominates when it is checked on a pair that works is checked once more, and not made to wait",
        arguments: [5, 12, 25, 100])
    func prompted(itsFirstCheck milliseconds: Int) {
        let (world, peer) = scene()
        world.schedule(after: .milliseconds(milliseconds)) { peer.check() }
        let isNominated = world.run(for: .milliseconds(milliseconds + 60)) {
            world.peers[0].agent.path?.isNominated ?? false
        }
        #expect(isNominated, "its check goes there, our answer and prompt back, and its nomination there again")
    }

    @Test("A peer that checks and never nominates is prompted three times, and then left to itself")
    func bounded() {
        let (world, peer) = scene()
        world.filter = { [filter = world.filter] source, destination, bytes in
            // It hears none of our answers, so that the pair never works for it.
            let isAnswer = (try? STUNMessage(parsing: bytes))?.messageClass == .success
            return isAnswer && destination == peer.address ? false : filter(source, destination, bytes)
        }
        world.run(for: .milliseconds(100))
        let before = peer.checksReceived
        for _ in 0..<50 {
            peer.check()
            world.run(for: .milliseconds(20))
        }
        #expect(peer.checksReceived - before == 3)
    }
}
