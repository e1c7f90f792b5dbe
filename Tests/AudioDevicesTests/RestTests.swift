@testable import AudioDevices
import Glibc
import Realtime
import Testing
import Core

@Suite("An unused sound card")
struct RestTests {
    /// A card that rests: used for three seconds, and then left alone for twelve.
    private func resting() -> CardBench {
        let bench = CardBench()
        bench.start()
        bench.run(seconds: 3)
        bench.pause()
        bench.run(seconds: 12)
        bench.forget()
        return bench
    }

    private func expectSteadySound(_ bench: CardBench, sourceLocation: SourceLocation = #_sourceLocation) {
        bench.goOn()
        bench.run(seconds: 1)
        bench.forget()
        bench.run(seconds: 6)
        #expect(
            bench.playbackDelays.count >= 5 && bench.captureDelays.count >= 5, sourceLocation: sourceLocation)
        for delay in bench.playbackDelays {
            #expect(abs(delay - bench.statistics.playback.targetMilliseconds) < 2, sourceLocation: sourceLocation)
        }
        for delay in bench.captureDelays {
            #expect(abs(delay - bench.statistics.capture.targetMilliseconds) < 2, sourceLocation: sourceLocation)
        }
    }

    @Test(
        "Until ten seconds have passed it continues; then it rests, and its thread wakes up less than once a second"
    )
    func rests() {
        let bench = CardBench()
        bench.start()
        bench.run(seconds: 3)
        bench.pause()
        bench.run(milliseconds: 9_500)
        #expect(bench.world.playback.startedAt != nil && bench.world.capture.startedAt != nil)
        bench.run(seconds: 2)
        #expect(bench.world.playback.startedAt == nil && bench.world.capture.startedAt == nil)
        #expect(bench.world.isOpen)
        bench.forget()
        bench.run(seconds: 60)
        #expect(bench.idleWakes < 60)
        #expect(bench.events == [])
        #expect(bench.statistics.isRunning)
    }

    @Test("Used again it runs, with the delay that it had, without an xrun, and without an event")
    func runsAgain() {
        let bench = resting()
        bench.goOn()
        bench.run(milliseconds: 500)
        #expect(bench.events == [])
        #expect(bench.world.opens == 1)
        expectSteadySound(bench)
        #expect(bench.statistics.playback.xruns + bench.statistics.capture.xruns == 0)
    }

    @Test("A card with one direction rests after each call, not only after the first", arguments: [true, false])
    func oneDirection(isPlayback: Bool) {
        let bench = CardBench()
        if isPlayback { bench.world.lacksCapture = true } else { bench.world.lacksPlayback = true }
        bench.start()
        for _ in 0..<3 {
            bench.goOn()
            bench.run(seconds: 3)
            #expect(bench.world.playback.startedAt != nil || bench.world.capture.startedAt != nil)
            bench.pause()
            bench.run(seconds: 12)
            #expect(bench.world.playback.startedAt == nil && bench.world.capture.startedAt == nil)
        }
    }

    @Test("A card that is unplugged is reported within three seconds, and found again once it is back")
    func unplugged() {
        let bench = resting()
        bench.world.absence = ENODEV
        bench.run(seconds: 3)
        #expect(bench.events.first == .lost(errno: ENODEV))
        bench.world.absence = 0
        bench.run(seconds: 3)
        #expect(bench.statistics.opens == 2)
        #expect(bench.events.last == .running)
        expectSteadySound(bench)
    }

    @Test("A suspend while it rests is noticed when it is used, and ended")
    func suspended() {
        let bench = resting()
        bench.world.isSuspended = true
        bench.run(seconds: 5)
        #expect(bench.events == [])
        expectSteadySound(bench)
        #expect(bench.statistics.suspends == 1)
    }

    @Test("It is stopped at once")
    func stops() {
        let bench = resting()
        bench.stop()
        #expect(bench.isStopped && !bench.world.isOpen)
        #expect(bench.events == [.stopped])
    }

    @Test("Without a card and without use the thread wakes up for its tries alone; with use the line moves at once")
    func missing() {
        let bench = CardBench()
        bench.world.absence = ENODEV
        bench.start()
        bench.run(seconds: 3)
        bench.pause()
        bench.run(seconds: 10)
        bench.forget()
        bench.run(seconds: 60)
        #expect(bench.idleWakes < 120)
        bench.goOn()
        bench.run(seconds: 1)
        let before = bench.worker
        bench.run(seconds: 5)
        #expect(bench.worker == before)
    }

    @Test("The first frame after a pause, in either direction, wakes the device's thread, and later ones do not")
    func signals() throws {
        let wakeup = try Wakeup()
        let pair = LinePair(wakeup: wakeup.handle)
        var line = pair.worker
        let frame = [Int16](repeating: 0, count: 480)
        let now = Instant(nanoseconds: 1_000_000_000)
        line.play(frame.span, at: now)
        #expect(wakeup.handle.clear())
        line.play(frame.span, at: now)
        #expect(!wakeup.handle.clear())
        line.pause(at: now)
        #expect(!wakeup.handle.clear())
        var captured = frame
        var space = captured.mutableSpan
        line.capture(into: &space, at: now)
        #expect(wakeup.handle.clear())
    }
}
