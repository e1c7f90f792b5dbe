import CallMedia
import MediaEngine
import Core
import Testing

@Suite("A call whose peer's description names another address")
struct RedirectTests {
    @Test("Its media goes there")
    func redirected() async throws {
        let pair = try EnginePair()
        defer { pair.shutdown() }
        let nobody = try #require(SocketAddress(host: "127.0.0.1", port: 9))
        let ids = try pair.call(
            callerAudio: AudioBehaviour(source: .silence), deviceAudio: AudioBehaviour(source: .silence)
        ) { plan in plan.peer.transport = .direct(to: nobody) }
        #expect(!pair.deviceEvents.all.contains { if case .mediaReceived = $0 { true } else { false } })
        pair.caller.redirect(ids.caller, to: pair.device.place().localAddress, control: nil)
        // The device answers to where it is written from.
        try await pair.deviceEvents.flowing(ids.device)
        try await pair.callerEvents.flowing(ids.caller)
    }
}
