import BlockingWork
import CallControl
import Core
import ICE
import TestSupport
import Testing

@testable import CallAgent

@Suite("A device whose name servers are slow", .timeLimit(.minutes(5)))
struct SlowNamesTests {
    @Test("A device is ready before the name of a STUN server is found, and uses the server afterwards")
    func ready() async throws {
        let site = try await Site()
        let gate = Gate()
        let count = BlockingThreads.names.most
        // Names wait for a thread.
        let blocked = (0..<count).map { _ in Task { await BlockingThreads.names.run { gate.pass() } } }
        try await until { gate.arrived == count }
        let handheld = try await site.device("caller", named: "c") {
            $0.media.iceServers = [CallControl.ICEServer(urls: ["stun:localhost", "stun:192.0.2.1"])]
        }
        let known = await handheld.device.media.servers.known
        #expect(known.map { $0.address.host } == ["192.0.2.1"])
        gate.open()
        for task in blocked { #expect(await task.value) }
        try await until { await handheld.device.media.servers.known.count == 2 }
        try await site.close(handheld)
    }
}
