import CallControl
import Testing

@testable import CallAgent
@testable import CallMedia
@testable import MediaEngine

@Suite("Devices whose machine is full, with real sockets", .timeLimit(.minutes(5)))
struct FullDeviceTests {
    private let tone = AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12))

    /// Has the device's worker say that it is so busy, as a worker without calls never does by itself.
    private func report(busy share: Double, _ handheld: Handheld) async {
        var load = WorkerLoad(costOfCall: 0.01)
        load.share = share
        load.canLower = false
        let engine = await handheld.device.engine
        engine.note(load, of: engine.workers[0])
    }

    /// What the device says next of its load.
    private func load(of handheld: Handheld) async throws -> DeviceLoad {
        while let event = await handheld.next() {
            if case .loadChanged(let load) = event { return load }
        }
        throw StreamEnded()
    }

    @Test("INV-11: With max_calls: auto a full device says busy and tells so, and takes calls when it has room again")
    func full() async throws {
        let site = try await Site()
        let answer = AnswerPolicy(manner: .answer(after: .zero), callLimit: .automatic)
        let echo = try await site.device("echo", named: "desk", answer: answer)
        let caller = try await site.device("caller", named: "mobile")
        await report(busy: 0.9, echo)
        _ = await caller.device.call("echo", audio: tone)
        #expect(try await caller.ended().record.reason == .busy)
        #expect(try await load(of: echo).takesCalls == false)
        #expect(await echo.device.hasRoomForCall == false)

        await report(busy: 0.1, echo)
        #expect(try await load(of: echo).takesCalls)
        let call = await caller.device.call("echo", audio: tone)
        _ = try await caller.established()
        await caller.device.hangUp(call)
        #expect(try await caller.ended().record.reason == .completed)
        try await site.close(caller, echo)
    }

    @Test("INV-11: A number of calls overrides what the machine says")
    func number() async throws {
        let site = try await Site()
        let answer = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(1))
        let echo = try await site.device("echo", named: "desk", answer: answer)
        let caller = try await site.device("caller", named: "mobile")
        await report(busy: 0.9, echo)
        let call = await caller.device.call("echo", audio: tone)
        _ = try await caller.established()
        await caller.device.hangUp(call)
        #expect(try await caller.ended().record.reason == .completed)
        try await site.close(caller, echo)
    }
}
