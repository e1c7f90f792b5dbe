import CallMedia
import TestSupport
import Testing

@testable import MediaEngine

@Suite("Workers that are asked whether they work", .timeLimit(.minutes(1)))
struct WorkerPulsesTests {
    @Test("They work if each has answered the last question, and runs its calls")
    func answers() {
        var pulses = WorkerPulses()
        func ask() -> Bool { pulses.ask(workers: 2) }
        #expect(ask())
        #expect(!ask())
        pulses.note(overdueNanoseconds: 0, of: 0)
        #expect(!ask())
        pulses.note(overdueNanoseconds: 0, of: 0)
        pulses.note(overdueNanoseconds: WorkerPulses.longestOverdueNanoseconds - 1, of: 1)
        #expect(ask())
        pulses.note(overdueNanoseconds: 0, of: 0)
        pulses.note(overdueNanoseconds: WorkerPulses.longestOverdueNanoseconds, of: 1)
        #expect(!ask())
    }

    @Test("A worker answers without calls and with them, and not when it has ended")
    func engine() async throws {
        let pair = try EnginePair()
        #expect(pair.caller.areWorkersAlive())
        try await until { pair.caller.areWorkersAlive() }
        let call = try pair.call(
            callerAudio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)),
            deviceAudio: AudioBehaviour(source: .echo))
        try await pair.callerEvents.flowing(call.caller)
        _ = pair.caller.areWorkersAlive()
        try await until { pair.caller.areWorkersAlive() }
        pair.shutdown()
        _ = pair.caller.areWorkersAlive()
        #expect(!pair.caller.areWorkersAlive())
    }
}
