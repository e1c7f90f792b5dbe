import CallAgent
import CallControl
import CallMedia
import MediaEngine
import Synchronization
import TestSupport
import Testing
import Core

@Suite("Devices on an exchange, with real sockets", .witnessed(slack: .seconds(1)), .timeLimit(.minutes(5)))
struct DeviceTests {
    private let tone = AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12))
    private let answering = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(1))

    @Test("CALL-1, CALL-2, CALL-3: A call is answered, media flows both ways, and both record the same end")
    func wholeCall() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk", answer: answering)
        let caller = try await site.device("caller", named: "mobile")
        let call = await caller.device.call("echo@localhost", audio: tone)
        let setUpTime = try await caller.flowing()
        _ = try await echo.flowing()
        #expect(setUpTime > .zero)

        let live = try #require(await caller.device.mediaReport(on: call))
        #expect(live.peer.packetsReceived > 0)
        await caller.device.hangUp(call)
        let (mine, theirs) = (try await caller.ended(), try await echo.ended())
        #expect(mine.record.reason == .completed && theirs.record.reason == .completed)
        #expect(mine.record.endedBy == .local && theirs.record.endedBy == .remote)
        #expect(abs((mine.record.duration - theirs.record.duration).seconds) < 1)
        #expect(mine.report?.peer.dropped.unauthenticated == 0)
        #expect(theirs.report != nil)
        try await site.close(caller, echo)
    }

    @Test("CALL-3: The one who was called can hang up too")
    func calleeHangsUp() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk")
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: tone)
        let incoming = try await echo.incoming()
        await echo.device.answer(incoming)
        _ = try await caller.flowing()
        _ = try await echo.flowing()
        await echo.device.hangUp(incoming)
        let (mine, theirs) = (try await caller.ended(), try await echo.ended())
        #expect(mine.record.reason == .completed && mine.record.endedBy == .remote)
        #expect(theirs.record.reason == .completed && theirs.record.endedBy == .local)
        try await site.close(caller, echo)
    }

    @Test("CALL-3: A device that shuts down once its call is over has told its peer first")
    func hangUpComesBeforeTheGoodbye() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk", answer: answering)
        let caller = try await site.device("caller", named: "mobile", hangUpsTake: 10)
        let call = await caller.device.call("echo", audio: tone)
        _ = try await caller.flowing()
        _ = try await echo.flowing()
        await caller.device.hangUp(call)
        #expect(try await caller.ended().record.reason == .completed)
        await caller.device.shutDown()
        #expect(try await echo.ended().record.reason == .completed)
        try await site.close(echo)
    }

    @Test("INV-11: A device at its call limit says busy, and the caller can tell it from declined")
    func busy() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk", answer: answering)
        let caller = try await site.device("caller", named: "mobile")
        let first = await caller.device.call("echo", audio: tone)
        _ = try await caller.flowing()
        _ = await caller.device.call("echo", audio: tone)
        let second = try await caller.ended()
        #expect(second.record.reason == .busy)
        await caller.device.hangUp(first)
        #expect(try await caller.ended().record.reason == .completed)
        try await site.close(caller, echo)
    }

    @Test("INV-11: A device at its call limit takes the next call of a caller that hangs up and calls again at once")
    func nextCall() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk", answer: answering)
        let caller = try await site.device("caller", named: "mobile")
        for _ in 1...20 {
            let call = await caller.device.call("echo", audio: tone)
            while let event = await caller.next() {
                if case .flowing(call, _, _) = event { break }
                // The earlier call's end may be reported after this one has begun.
                if case .ended(_, let record, _) = event { try #require(record.reason == .completed) }
            }
            await caller.device.hangUp(call)
        }
        #expect(try await caller.ended().record.reason == .completed)
        try await site.close(caller, echo)
    }

    @Test("CALL-3: A hang-up is on its way before the device takes the next command")
    func hangUpLeavesAtOnce() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk", answer: answering)
        let hangUps = HangUpCount()
        let caller = try await site.device("caller", named: "mobile", hangUpsTake: 0, counting: hangUps)
        let call = await caller.device.call("echo", audio: tone)
        _ = try await caller.established()
        await caller.device.hangUp(call)
        #expect(hangUps.value.load(ordering: .acquiring) == 1)
        #expect(try await caller.ended().record.reason == .completed)
        try await site.close(caller, echo)
    }

    @Test("CALL-5: A call that is declined ends as declined on both sides, with no media")
    func declined() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk")
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: tone)
        let incoming = try await echo.incoming()
        await echo.device.hangUp(incoming)
        let (mine, theirs) = (try await caller.ended(), try await echo.ended())
        #expect(mine.record.reason == .declined && mine.report == nil)
        #expect(theirs.record.reason == .declined && theirs.report == nil)
        try await site.close(caller, echo)
    }

    @Test("DEV-3, INV-4: Both devices of a user ring; one answers, and the other's call ends as accepted elsewhere")
    func twoDevices() async throws {
        let site = try await Site()
        let desk = try await site.device("echo", named: "desk")
        let kitchen = try await site.device("echo", named: "kitchen")
        let caller = try await site.device("caller", named: "mobile")
        let call = await caller.device.call("echo", audio: tone)
        let atDesk = try await desk.incoming()
        _ = try await kitchen.incoming()
        await desk.device.answer(atDesk)
        #expect(try await kitchen.ended().record.reason == .acceptedElsewhere)
        _ = try await caller.flowing()
        _ = try await desk.flowing()
        await caller.device.hangUp(call)
        #expect(try await desk.ended().record.reason == .completed)
        try await site.close(caller, desk, kitchen)
    }

    @Test("INV-6: A caller who gives up cancels the invite, and the device stops ringing")
    func cancelled() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk")
        let caller = try await site.device("caller", named: "mobile")
        let call = await caller.device.call("echo", audio: tone)
        _ = try await echo.incoming()
        await caller.device.hangUp(call)
        #expect(try await echo.ended().record.reason == .cancelled)
        #expect(try await caller.ended().record.reason == .cancelled)
        try await site.close(caller, echo)
    }

    @Test("INV-7: An invite nobody answers times out on both sides")
    func noAnswer() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk")
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: tone, timeToLive: .seconds(1))
        #expect(try await echo.ended().record.reason == .noAnswer)
        #expect(try await caller.ended().record.reason == .noAnswer)
        try await site.close(caller, echo)
    }

    @Test("A device that shuts down hangs up first, and its peer hears that before the goodbye")
    func goesAway() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk", answer: answering)
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: tone)
        _ = try await caller.flowing()
        _ = try await echo.flowing()
        await echo.device.shutDown()
        let record = try await caller.ended().record
        #expect(record.reason == .completed && record.endedBy == .remote)
        try await site.close(caller)
    }

    @Test("Whom nobody knows cannot be called, and the error says so")
    func unknownUser() async throws {
        let site = try await Site()
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("nobody", audio: tone)
        let record = try await caller.ended().record
        #expect(record.reason == .dialFailed)
        #expect(record.error?.code == .unknownUser)
        try await site.close(caller)
    }
}
