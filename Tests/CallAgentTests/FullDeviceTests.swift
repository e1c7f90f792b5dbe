import BotCalls
import BotWire
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
        _ = try await caller.flowing()
        await caller.device.hangUp(call)
        #expect(try await caller.ended().record.reason == .completed)
        try await site.close(caller, echo)
    }

    /// Has the worker of shared media say that it has room for one more call.
    private func leaveRoomForOne(_ media: SharedMedia) {
        var load = WorkerLoad(costOfCall: 0.01)
        load.canLower = false
        // A refusal holds until the load has fallen.
        media.engine.note(load, of: media.engine.workers[0])
        _ = media.engine.hasRoom(besides: 0)
        load.share = LoadGovernor.highMark - 0.015
        media.engine.note(load, of: media.engine.workers[0])
    }

    @Test("INV-11: Of two accounts that ask for the last room of a machine at the same instant, one gets it")
    func lastRoom() async throws {
        let site = try await Site()
        let media = try site.media()
        let owners = [media.join().owner, media.join().owner]
        for _ in 0..<2_000 {
            for owner in owners { media.note(unplaced: 0, of: owner) }
            leaveRoomForOne(media)
            let admitted = await withTaskGroup { group in
                for owner in owners {
                    group.addTask { media.hasRoom(streams: 1, besides: 0, isCall: true, of: owner).hasRoom }
                }
                return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            try #require(admitted == 1)
        }
        await media.close()
        try await site.close()
    }

    @Test("INV-11: A bot's WebRTC leg counts for the calls of its behaviour, and not for those of others")
    func legs() async throws {
        let site = try await Site()
        let media = try site.media()
        let address = try #require(WebAddress("http://localhost:9/api/offer", WebAddress.Scheme.requests))
        func device(_ name: String, _ change: (inout DeviceConfiguration, BotPlan) -> Void) async throws -> Handheld {
            try await site.device(
                "caller", named: name, answer: AnswerPolicy(manner: .ring, callLimit: .automatic), sharing: media
            ) { change(&$0, BotPlan(address: address, wire: .leg(.smallWebRTC))) }
        }
        let beside = try await device("a") { configuration, bot in
            configuration.behaviour.source = .program
            configuration.behaviours["bot"] = BehaviourConfiguration()
            configuration.behaviours["bot"]?.source = .bot(bot)
        }
        leaveRoomForOne(media)
        await #expect(throws: Never.self) { try await beside.device.placeCall(to: "echo") }
        await beside.device.shutDown()
        let bot = try await device("b") { $0.behaviour.source = .bot($1) }
        leaveRoomForOne(media)
        await #expect(throws: CallObstacle.self) { try await bot.device.placeCall(to: "echo") }
        await bot.device.shutDown()
        await media.close()
        try await site.close()
    }

    @Test("INV-11: Of two accounts that place a call at once, one gets the last room, and the other is told why not")
    func lastCall() async throws {
        let site = try await Site(users: ["echo", "caller", "third"])
        let media = try site.media()
        let answer = AnswerPolicy(manner: .ring, callLimit: .automatic)
        let first = try await site.device("caller", named: "mobile", answer: answer, sharing: media)
        let second = try await site.device("third", named: "other", answer: answer, sharing: media)
        leaveRoomForOne(media)
        let refusals = await withTaskGroup(of: CallObstacle?.self) { group in
            for device in [first.device, second.device] {
                group.addTask {
                    do throws(CallObstacle) {
                        _ = try await device.placeCall(to: "echo")
                        return nil
                    } catch {
                        return error
                    }
                }
            }
            return await group.reduce(into: [CallObstacle?]()) { $0.append($1) }.compactMap(\.self)
        }
        #expect(refusals.map(\.reason) == [.machineFull])
        await first.device.setDraining(true)
        await #expect(throws: CallObstacle.self) { try await first.device.placeCall(to: "echo") }
        for handheld in [first, second] { await handheld.device.shutDown() }
        await media.close()
        try await site.close()
    }

    @Test("INV-11: A number of calls overrides what the machine says")
    func number() async throws {
        let site = try await Site()
        let answer = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(1))
        let echo = try await site.device("echo", named: "desk", answer: answer)
        let caller = try await site.device("caller", named: "mobile")
        await report(busy: 0.9, echo)
        let call = await caller.device.call("echo", audio: tone)
        _ = try await caller.flowing()
        await caller.device.hangUp(call)
        #expect(try await caller.ended().record.reason == .completed)
        try await site.close(caller, echo)
    }
}
