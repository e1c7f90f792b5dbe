import CallControl
import Testing

@testable import CallAgent

@Suite("What a device knows of its connection")
struct SignalingStateTests {
    @Test("A device that has logged in is connected, also before it has handled the event of that")
    func connectedAtOnce() {
        var state = SignalingState()
        #expect(state.connection == .connecting)
        state.noteLogin(of: "bob")
        #expect(state.connection == .connected)
    }

    @Test(
        "A login that is noted late does not hide that the connection has dropped since",
        arguments: [
            SignalingEvent.reconnecting, .disconnected,
        ])
    func droppedMeanwhile(last: SignalingEvent) {
        var state = SignalingState()
        for event in [SignalingEvent.connected, last] { state.note(event) }
        let before = state.connection
        state.noteLogin(of: "bob")
        #expect(state.connection == before && before != .connected)
    }
}
