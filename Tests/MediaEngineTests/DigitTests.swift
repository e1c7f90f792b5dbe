import CallMedia
import MediaEngine
import Playout
import Testing

@Suite("Telephone keys on the loopback", .timeLimit(.minutes(2)))
struct DigitTests {
    @Test(
        "Keys that are pressed are reported at the other end, in order, and cost no packet", arguments: [48_000, 8_000])
    func pressed(clockRate: Int) async throws {
        let pair = try EnginePair()
        let call = try pair.call(
            callerAudio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)),
            deviceAudio: AudioBehaviour(source: .silence)
        ) { plan in
            plan.peer.telephoneEvents = [
                TelephoneEventFormat(clockRate: clockRate, sendPayloadType: 126, receivePayloadType: 126)
            ]
        }
        try await pair.callerEvents.flowing(call.caller)
        try await pair.deviceEvents.flowing(call.device)
        #expect(pair.caller.press("1#D", on: call.caller))
        _ = try await pair.deviceEvents.first { if case .digit(_, "D", _) = $0 { true } else { false } }
        pair.caller.stop(call.caller)
        let sent = try await pair.callerEvents.ended(call.caller)
        pair.device.stop(call.device)
        let heard = try await pair.deviceEvents.ended(call.device)
        pair.shutdown()

        var keys = ""
        for case .digit(call.device, let key, let time) in pair.deviceEvents.all {
            keys.append(key)
            #expect(time == .milliseconds(100), "whatever the clock of the event")
        }
        #expect(keys == "1#D")
        #expect(sent.call.digitsSent == 3 && heard.call.digitsReceived == 3)
        #expect(heard.playout.packetsLost == 0, "their packets hold no sound, and are no loss")
        #expect(heard.peer.dropped.total == 0)
    }

    @Test("What is no key presses nothing, and a peer that takes no keys gets none")
    func refused() async throws {
        let pair = try EnginePair()
        let call = try pair.call(
            callerAudio: AudioBehaviour(source: .silence), deviceAudio: AudioBehaviour(source: .silence))
        try await pair.callerEvents.flowing(call.caller)
        #expect(!pair.caller.press("12x", on: call.caller))
        #expect(pair.caller.press("9", on: call.caller))
        pair.caller.stop(call.caller)
        let report = try await pair.callerEvents.ended(call.caller)
        #expect(!pair.caller.press("1", on: call.caller), "the call is over")
        pair.shutdown()
        #expect(report.call.digitsSent == 0 && report.call.digitsDropped == 1)
    }
}
