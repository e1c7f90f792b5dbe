@testable import AudioDevices
import Glibc
import Testing
import Core

@Suite("The delay of a sound card's lines")
struct DelayTests {
    @Test(
        "Sound's delay, heard impulse by impulse, stays within 2 ms of its target at any drift of either clock",
        arguments: [(0.0, 0.0), (1_500, 1_500), (-1_500, -1_500), (1_500, -1_500), (-1_500, 1_500)])
    func drift(playbackPPM: Double, capturePPM: Double) {
        let bench = CardBench()
        bench.world.playback.ppm = playbackPPM
        bench.world.capture.ppm = capturePPM
        bench.workerJitterNanoseconds = 1_000_000
        bench.cardJitterNanoseconds = 500_000
        bench.start()
        bench.run(seconds: 2)
        let before = bench.worker
        bench.forget()
        bench.run(seconds: 40)

        let statistics = bench.statistics
        #expect(bench.playbackDelays.count >= 38)
        #expect(bench.captureDelays.count >= 38)
        for delay in bench.playbackDelays { #expect(abs(delay - statistics.playback.targetMilliseconds) < 2) }
        for delay in bench.captureDelays { #expect(abs(delay - statistics.capture.targetMilliseconds) < 2) }
        #expect(abs(statistics.playback.driftPPM - playbackPPM) < 60, "\(statistics.playback.driftPPM)")
        #expect(abs(statistics.capture.driftPPM - capturePPM) < 60, "\(statistics.capture.driftPPM)")
        #expect(statistics.playback.missingSamples == 0 && statistics.capture.missingSamples == 0)
        #expect(statistics.playback.jumps == 0 && statistics.capture.jumps == 0)
        #expect(statistics.playback.xruns == 0 && statistics.capture.xruns == 0)
        #expect(bench.worker == before)
    }

    @Test(
        "Cards of other rates, periods and buffers have the delay that their statistics report, stage by stage",
        arguments: [(44_100, 10), (16_000, 20), (96_000, 5), (8_000, 10), (48_000, 5)])
    func rates(rate: Int, period: Int) {
        let bench = CardBench()
        bench.world.playback = SimulatedWorld.Side(rate: rate, periodMilliseconds: period)
        bench.world.capture = SimulatedWorld.Side(rate: rate, periodMilliseconds: period)
        bench.world.playback.behindFrames = rate / 200
        bench.start()
        bench.run(seconds: 5)
        bench.forget()
        bench.run(seconds: 20)
        let (playback, capture) = (bench.statistics.playback, bench.statistics.capture)
        #expect(bench.playbackDelays.count >= 18 && bench.captureDelays.count >= 18)
        #expect(abs(playback.behindCardMilliseconds - 5) < 0.1)
        for delay in bench.playbackDelays { #expect(abs(delay - playback.targetMilliseconds - 5) < 0.5) }
        for delay in bench.captureDelays { #expect(abs(delay - capture.targetMilliseconds) < 0.5) }
        // What a stage holds changes from moment to moment; their sum does not.
        let sum = playback.ringMilliseconds + playback.resamplerMilliseconds + playback.cardMilliseconds
        #expect(abs(sum - playback.heldMilliseconds) < 0.5)
    }

    @Test(
        "A worker that keeps to the card's beats has captured sound within 6 ms of the air, at any drift",
        arguments: [(0.0, 10), (30, 10), (-300, 5), (1_500, 5), (-1_500, 10)])
    func beats(ppm: Double, period: Int) {
        let bench = CardBench(frameMilliseconds: 10)
        bench.world.capture = SimulatedWorld.Side(rate: 48_000, periodMilliseconds: period)
        bench.world.playback.ppm = -ppm
        bench.world.capture.ppm = ppm
        bench.workerJitterNanoseconds = 500_000
        bench.cardJitterNanoseconds = 500_000
        bench.followsPeriods = true
        bench.start()
        bench.run(seconds: 8)
        let before = bench.worker
        bench.forget()
        bench.run(seconds: 20)

        let statistics = bench.statistics.capture
        #expect(bench.captureDelays.count >= 18)
        for delay in bench.captureDelays { #expect(delay > 0 && delay < 6, "\(statistics.targetMilliseconds)") }
        #expect(bench.worker == before)
        #expect(statistics.missingSamples == 0 && statistics.jumps == 0)
        // The worker's clock has become the card's.
        #expect(abs(statistics.driftPPM) < 60, "\(statistics.driftPPM)")
        for delay in bench.playbackDelays { #expect(abs(delay - bench.statistics.playback.targetMilliseconds) < 2) }
    }

    @Test("A worker that keeps to beats takes frames at any time again when the card's thread comes up to 6 ms late")
    func lostBeats() {
        let bench = CardBench(frameMilliseconds: 10)
        bench.followsPeriods = true
        bench.start()
        bench.run(seconds: 15)
        #expect(bench.statistics.capture.targetMilliseconds < 6)
        bench.cardJitterNanoseconds = 6_000_000
        bench.run(seconds: 60)
        let before = bench.worker
        bench.run(seconds: 30)
        #expect(bench.worker.captureUnderrun - before.captureUnderrun < 480)
        #expect(bench.statistics.capture.targetMilliseconds < 25)
    }

    @Test("A card's thread that is late once costs a moment of sound, after which the rate does not swing")
    func lateOnce() {
        let bench = CardBench(frameMilliseconds: 10)
        bench.followsPeriods = true
        bench.start()
        bench.run(seconds: 10)
        bench.cardJitterNanoseconds = 9_000_000
        bench.run(milliseconds: 60)
        bench.cardJitterNanoseconds = 0
        let missing = bench.statistics.capture.missingSamples
        #expect(missing > 0)
        for _ in 0..<20 {
            bench.run(milliseconds: 500)
            let statistics = bench.statistics.capture
            #expect(abs(statistics.driftPPM) < 1_500, "\(statistics)")
        }
        let statistics = bench.statistics.capture
        #expect(statistics.missingSamples - missing < 480)
        #expect(abs(statistics.heldMilliseconds - statistics.targetMilliseconds) < 0.5, "\(statistics)")
        #expect(abs(statistics.driftPPM) < 100)
    }

    @Test("Frames that come earlier from now on, and leave out as much, change neither delay nor rate")
    func advance() {
        let bench = CardBench(frameMilliseconds: 10)
        bench.start()
        bench.run(seconds: 10)
        let before = bench.statistics.playback
        bench.advanceFrames(milliseconds: 6)
        for _ in 0..<10 {
            bench.run(milliseconds: 200)
            let statistics = bench.statistics.playback
            #expect(abs(statistics.driftPPM - before.driftPPM) < 50)
            #expect(abs(statistics.heldMilliseconds - before.heldMilliseconds) < 0.5)
        }
        #expect(bench.statistics.playback.jumps == before.jumps)
        #expect(bench.statistics.playback.missingSamples == before.missingSamples)
    }

    @Test("With 10 ms periods, both lines together hold sound for less than 32 ms")
    func budget() {
        let bench = CardBench()
        bench.start()
        bench.run(seconds: 5)
        let statistics = bench.statistics
        #expect(statistics.playback.delayMilliseconds + statistics.capture.delayMilliseconds < 32)
    }

    @Test("A worker that stalls for 200 ms loses that sound, and the delay is back at its target within a second")
    func stall() {
        let bench = CardBench()
        bench.start()
        bench.run(seconds: 5)
        bench.workerStallsUntil = bench.world.now.advanced(by: .milliseconds(200))
        bench.run(seconds: 1)
        #expect(bench.statistics.playback.missingSamples > 0)
        bench.forget()
        bench.run(seconds: 10)
        let statistics = bench.statistics
        #expect(bench.playbackDelays.count >= 9 && bench.captureDelays.count >= 9)
        for delay in bench.playbackDelays { #expect(abs(delay - statistics.playback.targetMilliseconds) < 2) }
        for delay in bench.captureDelays { #expect(abs(delay - statistics.capture.targetMilliseconds) < 2) }
    }

    @Test("A worker that comes 8 ms late at times is given a margin that grows, and soon nothing is missing")
    func margin() {
        let bench = CardBench()
        bench.workerJitterNanoseconds = 8_000_000
        bench.start()
        bench.run(seconds: 60)
        let before = bench.statistics
        bench.run(seconds: 30)
        let after = bench.statistics
        #expect(before.playback.missingSamples + before.capture.missingSamples > 0)
        #expect(after.playback.missingSamples - before.playback.missingSamples < 480)
        #expect(after.capture.missingSamples - before.capture.missingSamples < 480)
        #expect(after.playback.targetMilliseconds < 30 && after.capture.targetMilliseconds < 25)
    }

    @Test("Between calls nothing counts as missing, and the next call's delay is right from its first second")
    func pause() {
        let bench = CardBench()
        bench.world.playback.ppm = 300
        bench.world.capture.ppm = 300
        bench.start()
        bench.run(seconds: 20)
        bench.pause()
        bench.run(seconds: 30)
        let before = bench.statistics
        #expect(!before.playback.isInUse && !before.capture.isInUse)
        #expect(before.playback.missingSamples == 0 && before.capture.missingSamples == 0)
        bench.forget()
        bench.isWorking = true
        bench.run(seconds: 5)
        let after = bench.statistics
        #expect(after.playback.missingSamples == 0)
        #expect(bench.playbackDelays.count >= 4 && bench.captureDelays.count >= 4)
        for delay in bench.playbackDelays { #expect(abs(delay - after.playback.targetMilliseconds) < 2) }
        for delay in bench.captureDelays { #expect(abs(delay - after.capture.targetMilliseconds) < 2) }
    }
}
