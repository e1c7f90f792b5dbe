import ExchangeServer
import ICE
import SignalWire
import Testing

@testable import CallAgent

@Suite("A device whose TURN credentials end", .timeLimit(.minutes(5)))
struct RelayRenewalTests {
    @Test("A call that begins after its device's TURN credentials have ended has new ones")
    func renewal() async throws {
        let secret = RelaySecret(Redacted("north-of-everything"), lifetime: .seconds(2))
        let site = try await Site {
            $0.iceServers = [ICEServerConfiguration(urls: ["turn:127.0.0.1:3478"], access: .own(secret))]
        }
        let handheld = try await site.device("caller", named: "c")
        var known: [String] = []
        while known.count < 3 {
            guard case .turn(_, let name, _)? = await handheld.device.media.servers.known.first?.kind else {
                Issue.record("no TURN server")
                break
            }
            if known.last != name { known.append(name) }
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(known.allSatisfy { $0.hasSuffix(":caller") } && known == known.sorted())
        try await site.close(handheld)
    }
}
