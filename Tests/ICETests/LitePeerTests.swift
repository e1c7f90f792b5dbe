import ICE
import Core
import TestSupport
import Testing

@Suite("Lite peers")
struct LitePeerTests {
    /// Answers checks and sends none (RFC 8445 §7.3, lite).
    private final class LitePeer {
        let credentials: ICECredentials
        let address = Scenes.address("192.0.2.99", 7_000)
        var nominated: SocketAddress?

        init() {
            var generator = SeededGenerator(seed: 99)
            credentials = ICECredentials(using: &generator)
        }

        func answer(_ bytes: [UInt8], from source: SocketAddress) -> [UInt8]? {
            guard let message = try? STUNMessage(parsing: bytes), message.messageClass == .request,
                message.integrity(STUNKey(shortTerm: credentials.password)) == .valid,
                message.contains(.iceControlling)
            else { return nil }
            if message.contains(.useCandidate) { nominated = source }
            var builder = STUNBuilder(.success, answering: message)
            builder.append(.xorMappedAddress, source)
            return builder.finish(key: STUNKey(shortTerm: credentials.password), fingerprint: true)
        }
    }

    @Test("We control a lite peer even as the answering side, through a NAT and with loss", arguments: 0..<20)
    func litePeer(seed: UInt64) {
        let lite = LitePeer()
        let peer = Scenes.peer(0, seed: seed, nat: .portRestricted) { $0.isControlling = false }
        let world = World(seed: seed, weather: World.Weather(delay: 5...40, loss: 0.1), [peer])
        world.filter = { [unowned world] source, destination, bytes in
            guard destination == lite.address, Double.random(in: 0..<1, using: &world.random) > 0.1 else {
                return destination != lite.address
            }
            if let answer = lite.answer(bytes, from: source) {
                world.schedule(after: .milliseconds(20)) { world.route(answer, from: lite.address, to: source) }
            }
            return false
        }
        world.feed(0, .start(localAddresses: peer.addresses))
        world.feed(0, .remoteCredentials(lite.credentials, isLite: true))
        world.feed(
            0,
            .remoteCandidate(
                Candidate(foundation: "1", priority: 2_130_706_431, address: lite.address, type: .host)))
        world.feed(0, .remoteEndOfCandidates)
        #expect(world.run(for: .seconds(5)) { world.isSettled })
        #expect(lite.nominated != nil)
        #expect(peer.agent.isControlling)
        world.run(for: .seconds(60))
        #expect(peer.agent.path?.remote == lite.address)
        #expect(peer.agent.state == .completed)
    }
}
