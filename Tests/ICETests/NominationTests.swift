import ICE
import Core
import TestSupport
import Testing

@Suite("What the peer asks for")
struct NominationTests {
    /// A side that controls, has two addresses, and asks for either as it is told to.
    private final class Controller {
        let credentials: ICECredentials
        /// The first has the greater priority.
        let addresses = [Scenes.address("192.0.2.90", 7_000), Scenes.address("192.0.2.91", 7_000)]
        private var random = SeededGenerator(seed: 90)
        private unowned let world: World
        private let peer: SimulatedPeer
        /// From this address nothing is answered.
        var mute: Int?

        init(_ world: World, mute: Int? = nil) {
            self.world = world
            self.mute = mute
            peer = world.peers[0]
            credentials = ICECredentials(using: &random)
            world.filter = { [unowned self] source, destination, bytes in
                guard addresses.contains(destination) else { return true }
                if addresses.firstIndex(of: destination) != self.mute, let answer = answer(bytes, from: source) {
                    world.schedule(after: .milliseconds(10)) { world.route(answer, from: destination, to: source) }
                }
                return false
            }
            world.feed(0, .start(localAddresses: peer.addresses))
            world.feed(0, .remoteCredentials(credentials, isLite: false))
            for (index, address) in addresses.enumerated() {
                let priority = UInt32(2_130_706_431 - 256 * index)
                world.feed(
                    0,
                    .remoteCandidate(
                        Candidate(foundation: "\(index)", priority: priority, address: address, type: .host)))
            }
            world.feed(0, .remoteEndOfCandidates)
        }

        private func answer(_ bytes: [UInt8], from source: SocketAddress) -> [UInt8]? {
            guard let message = try? STUNMessage(parsing: bytes), message.messageClass == .request else { return nil }
            var builder = STUNBuilder(.success, answering: message)
            builder.append(.xorMappedAddress, source)
            return builder.finish(key: STUNKey(shortTerm: credentials.password), fingerprint: true)
        }

        /// Checks a pair, and asks for it.
        func ask(_ index: Int) { check(index, nominates: true) }

        func check(_ index: Int, nominates: Bool = false) {
            let there = peer.agent.credentials
            var builder = STUNBuilder(.request, .binding, TransactionID(using: &random))
            builder.append(.username, "\(there.usernameFragment):\(credentials.usernameFragment)")
            builder.append(.priority, 1_862_270_975 as UInt32)
            builder.append(.iceControlling, UInt64.max)
            if nominates { builder.append(.useCandidate, []) }
            let bytes = builder.finish(key: STUNKey(shortTerm: there.password), fingerprint: true)
            world.route(bytes, from: addresses[index], to: peer.addresses[0])
        }

        /// Asks for a pair again and again, as browsers do in their checks.
        func keepAsking(_ index: Int, for time: Duration) {
            let end = world.now.advanced(by: time)
            while world.now < end {
                ask(index)
                world.run(for: .milliseconds(1_600))
            }
        }

        var chosen: SocketAddress? { peer.agent.path?.remote }
    }

    private func scene(seed: UInt64, mute: Int? = nil) -> (World, Controller) {
        let peer = Scenes.peer(0, seed: seed) { $0.isControlling = false }
        let world = World(seed: seed, weather: World.Weather(delay: 5...15), [peer])
        return (world, Controller(world, mute: mute))
    }

    @Test("A peer that asked for the better pair once, and keeps asking for another, is followed once and for all")
    func changeOfMind() {
        for seed: UInt64 in 0..<20 {
            let (world, controller) = scene(seed: seed)
            world.run(for: .milliseconds(200))
            controller.ask(0)
            world.run(for: .milliseconds(60))
            #expect(controller.chosen == controller.addresses[0])
            controller.keepAsking(1, for: .seconds(5))
            #expect(controller.chosen == controller.addresses[1])
            let changes = world.peers[0].paths.count
            controller.keepAsking(1, for: .seconds(120))
            #expect(world.peers[0].paths.count == changes, "seed \(seed)")
        }
    }

    @Test("Of two pairs that are asked for at once, as by a peer of RFC 5245, the better one is used")
    func bothAtOnce() {
        for seed: UInt64 in 0..<20 {
            let (world, controller) = scene(seed: seed)
            for round in 0..<4 {
                controller.ask(round % 2)
                controller.ask(1 - round % 2)
                world.run(for: .milliseconds(100))
            }
            #expect(controller.chosen == controller.addresses[0], "seed \(seed)")
        }
    }

    @Test("What was asked for before it worked counts once it works, unless the peer has moved on")
    func askedForEarly() {
        for hasMovedOn in [false, true] {
            let (world, controller) = scene(seed: 1, mute: 0)
            world.run(for: .milliseconds(200))
            controller.ask(0)
            world.run(for: .milliseconds(100))
            controller.keepAsking(1, for: hasMovedOn ? .seconds(4) : .milliseconds(100))
            #expect(controller.chosen == controller.addresses[1])
            controller.mute = nil
            controller.keepAsking(1, for: .milliseconds(100))
            #expect(controller.chosen == controller.addresses[hasMovedOn ? 1 : 0])
        }
    }

    @Test("What was asked for long before it worked does not take the place of what was asked for since")
    func askedForLongAgo() {
        let (world, controller) = scene(seed: 2, mute: 0)
        world.run(for: .milliseconds(200))
        controller.ask(0)
        world.run(for: .milliseconds(100))
        controller.ask(1)
        world.run(for: .seconds(60))
        controller.mute = nil
        controller.check(0)
        world.run(for: .seconds(5))
        #expect(world.peers[0].agent.validPaths.count == 2)
        #expect(controller.chosen == controller.addresses[1])
    }
}
