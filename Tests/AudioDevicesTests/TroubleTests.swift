@testable import AudioDevices
import Glibc
import Testing
import Core

@Suite("A sound card in trouble")
struct TroubleTests {
    private func running() -> CardBench {
        let bench = CardBench()
        bench.start()
        bench.run(seconds: 3)
        return bench
    }

    private func expectSteadySound(_ bench: CardBench, sourceLocation: SourceLocation = #_sourceLocation) {
        bench.run(seconds: 1)
        bench.forget()
        bench.run(seconds: 6)
        let statistics = bench.statistics
        #expect(statistics.isRunning, sourceLocation: sourceLocation)
        #expect(
            bench.playbackDelays.count >= 5 && bench.captureDelays.count >= 5, sourceLocation: sourceLocation)
        for delay in bench.playbackDelays {
            #expect(abs(delay - statistics.playback.targetMilliseconds) < 2, sourceLocation: sourceLocation)
        }
        for delay in bench.captureDelays {
            #expect(abs(delay - statistics.capture.targetMilliseconds) < 2, sourceLocation: sourceLocation)
        }
    }

    @Test("A card opens, reports what it granted, and runs after its first stale frames are gone")
    func start() {
        let bench = CardBench()
        bench.start()
        bench.run(seconds: 1)
        #expect(
            bench.events == [
                .opened(playback: bench.world.playback.grant, capture: bench.world.capture.grant), .running,
            ])
        expectSteadySound(bench)
    }

    @Test("An xrun of either direction is recovered from at once, and the delay is what it was", arguments: [0, 1])
    func xrun(direction: Int) {
        let bench = running()
        if direction == 0 { bench.world.playback.isXrun = true } else { bench.world.capture.isXrun = true }
        bench.run(milliseconds: 30)
        #expect(bench.world.playback.xrunsRecovered + bench.world.capture.xrunsRecovered == 1)
        #expect(bench.statistics.playback.xruns == 1 - direction && bench.statistics.capture.xruns == direction)
        expectSteadySound(bench)
    }

    @Test("Three hundred xruns make few events, which count them all, and a longer queue")
    func xrunStorm() {
        let bench = running()
        let before = bench.statistics.playback.targetMilliseconds
        for _ in 0..<300 {
            bench.world.playback.isXrun = true
            bench.run(milliseconds: 40)
        }
        bench.run(seconds: 11)
        let told = bench.events.compactMap { event -> Int? in
            if case .xruns(.playback, let count) = event { count } else { nil }
        }
        #expect(told.reduce(0, +) == 300)
        #expect(told.count <= 3)
        #expect(bench.statistics.playback.xruns == 300)
        #expect(bench.statistics.losses == 0)
        #expect(bench.statistics.playback.targetMilliseconds > before + 4)
    }

    @Test("A thread that is held up for a quarter of a second recovers from the xruns that follow")
    func heldUp() {
        let bench = running()
        bench.cardJitterNanoseconds = 250_000_000
        bench.run(milliseconds: 400)
        bench.cardJitterNanoseconds = 0
        #expect(bench.statistics.playback.xruns > 0)
        expectSteadySound(bench)
    }

    @Test("Figures are reported as soon as the card runs, and as soon as it goes away, not up to a second later")
    func promptFigures() {
        let bench = CardBench()
        bench.start()
        for _ in 0..<90 where !bench.events.contains(.running) { bench.run(milliseconds: 10) }
        #expect(bench.events.contains(.running))
        #expect(bench.reported?.isRunning == true)
        bench.run(milliseconds: 20)
        bench.world.absence = ENODEV
        for _ in 0..<90 where !bench.events.contains(.lost(errno: ENODEV)) { bench.run(milliseconds: 10) }
        #expect(bench.events.contains(.lost(errno: ENODEV)))
        #expect(bench.reported?.isRunning == false)
    }

    @Test("A card that goes away costs the worker nothing but sound, and comes back by itself")
    func unplugged() {
        let bench = running()
        bench.world.absence = ENODEV
        bench.run(seconds: 30)
        let overrun = bench.worker.playOverrun
        #expect(overrun == 0)
        #expect(!bench.statistics.isRunning)
        #expect(bench.events.filter { $0 == .lost(errno: ENODEV) }.count == 1)
        #expect(
            bench.events.filter { $0 == .unavailable(CardFailure(direction: .playback, errno: ENODEV)) }.count == 1)
        #expect(bench.world.opens < 25, "it is not asked for all the time")
        bench.world.absence = 0
        bench.run(seconds: 3)
        #expect(bench.events.last == .running)
        expectSteadySound(bench)
    }

    @Test("Without any card the worker gets silence, and the card is used once it is there")
    func noCard() {
        let bench = CardBench()
        bench.world.absence = ENOENT
        bench.start()
        bench.run(seconds: 60)
        #expect(bench.events == [.unavailable(CardFailure(direction: .playback, errno: ENOENT))])
        #expect(bench.worker.playOverrun == 0)
        // But for its first frame, which came before there was silence.
        #expect(bench.worker.captureUnderrun <= 960)
        bench.world.absence = 0
        bench.run(seconds: 3)
        expectSteadySound(bench)
    }

    @Test("A card that stops without an error is opened again", arguments: [0, 1])
    func standsStill(direction: Int) {
        let bench = running()
        if direction == 0 { bench.world.playback.isStuck = true } else { bench.world.capture.isStuck = true }
        bench.run(seconds: 3)
        #expect(bench.events.contains(.stalled(direction == 0 ? .playback : .capture)))
        bench.world.playback.isStuck = false
        bench.world.capture.isStuck = false
        bench.run(seconds: 3)
        expectSteadySound(bench)
    }

    @Test(
        "After a suspend the card resumes once it can, and starts again if it cannot",
        arguments: [0, ENOSYS] as [Int32])
    func suspend(resumeErrno: Int32) {
        let bench = running()
        bench.world.isSuspended = true
        bench.world.resumeErrno = resumeErrno
        bench.world.sleepsUntil = bench.world.now.advanced(by: .seconds(4))
        bench.run(seconds: 3)
        #expect(bench.events.last == .suspended)
        #expect(bench.worker.playOverrun == 0)
        bench.run(seconds: 3)
        #expect(bench.statistics.suspends == 1 && bench.statistics.losses == 0)
        #expect(bench.events.contains(.resumed))
        expectSteadySound(bench)
    }

    @Test("A card that moves seven frames at a time is given all and asked for all")
    func shortTransfers() {
        let bench = running()
        bench.world.mostAtOnce = 7
        expectSteadySound(bench)
        #expect(bench.statistics.playback.missingSamples == 0 && bench.statistics.capture.missingSamples == 0)
    }

    @Test("A stop plays what the card still has, and no longer")
    func stop() {
        let bench = running()
        bench.stop()
        #expect(!bench.isStopped && bench.world.isOpen)
        bench.run(milliseconds: 60)
        #expect(bench.isStopped && !bench.world.isOpen)
        #expect(bench.events.last == .stopped)
    }

    @Test("A stop ends in time although the card does not move")
    func stopOfDeadCard() {
        let bench = running()
        bench.world.playback.isStuck = true
        bench.stop()
        bench.run(milliseconds: 500)
        #expect(bench.isStopped && !bench.world.isOpen)
    }

    @Test("A card whose every start fails is given up after a few tries, and tried again later")
    func failingStarts() {
        let bench = running()
        bench.world.absence = EIO
        bench.run(milliseconds: 100)
        #expect(bench.events.last == .lost(errno: EIO))
        bench.world.absence = 0
        bench.run(seconds: 3)
        expectSteadySound(bench)
    }

    @Test("A card without a clock is given sound at the pace of time, and no more")
    func noClock() {
        let bench = CardBench()
        bench.world.hasNoClock = true
        bench.start()
        bench.run(seconds: 20)
        let statistics = bench.statistics
        #expect(statistics.isRunning)
        #expect((900_000...980_000).contains(statistics.playback.cardFrames), "\(statistics.playback.cardFrames)")
        #expect((900_000...980_000).contains(statistics.capture.cardFrames), "\(statistics.capture.cardFrames)")
    }
}
