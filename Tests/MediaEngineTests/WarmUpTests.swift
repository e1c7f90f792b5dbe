@testable import CallMedia
@testable import MediaEngine
import Realtime
import Testing

@Suite("Memory of the media threads", .serialized, .timeLimit(.minutes(1)))
struct WarmUpTests {
    @Test("The first call of a device that has let go of its code brings hardly a page in on the media threads")
    func firstCall() async throws {
        let pair = try EnginePair()
        ProcessMemory.releaseStartUpCode()
        for engine in [pair.caller, pair.device] {
            engine.warmUp()
            engine.waitUntilWarm()
        }
        let call = try pair.call(
            callerAudio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)),
            deviceAudio: AudioBehaviour(source: .echo))
        try await pair.callerEvents.flowing(call.caller)
        try await pair.caller.receives(40, on: call.caller)
        // Without that it is eleven: the code that the control side has not used, the stack, the rings.
        for counters in pair.caller.shutdown() + pair.device.shutdown() { #expect(counters.pageFaults <= 3) }
    }

    @Test("What is warm is not warmed again until code was let go of")
    func once() throws {
        let pair = try EnginePair()
        for _ in 0..<2 { pair.caller.warmUp() }
        #expect(pair.caller.warmUps == 1)
        ProcessMemory.releaseStartUpCode()
        for _ in 0..<2 { pair.caller.warmUp() }
        #expect(pair.caller.warmUps == 2)
        pair.shutdown()
    }
}
