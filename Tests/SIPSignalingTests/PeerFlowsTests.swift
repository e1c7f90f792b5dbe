import Core
import SIPSignaling
import Testing

@Suite("Flows of peers that are not the server")
struct PeerFlowsTests {
    private func peer(_ port: UInt16) throws -> SocketAddress {
        try #require(SocketAddress(host: "192.0.2.7", port: port))
    }

    @Test("A response makes no flow, and so displaces none")
    func responses() throws {
        var flows = PeerFlows(capacity: 1)
        #expect(flows.admit(try peer(1), isRequest: true, isInUse: { _ in false }) == .new(-1, evicting: nil))
        #expect(flows.admit(try peer(2), isRequest: false, isInUse: { _ in false }) == .refused)
        #expect(flows.admit(try peer(1), isRequest: false, isInUse: { _ in false }) == .known(-1))
    }

    @Test("The source that was silent for longest gives way, and never one in a call")
    func eviction() throws {
        var flows = PeerFlows(capacity: 3)
        for port in UInt16(1)...3 { _ = flows.admit(try peer(port), isRequest: true, isInUse: { _ in false }) }
        _ = flows.admit(try peer(1), isRequest: true, isInUse: { _ in false })
        #expect(flows.admit(try peer(4), isRequest: true, isInUse: { $0 == -2 }) == .new(-4, evicting: -3))
        #expect(flows.admit(try peer(5), isRequest: true, isInUse: { _ in true }) == .refused)
        #expect(Set(flows.numbers) == [-1, -2, -4])
        flows.forget { $0 == -1 }
        #expect(flows.admit(try peer(5), isRequest: true, isInUse: { _ in true }) == .new(-5, evicting: nil))
    }
}
