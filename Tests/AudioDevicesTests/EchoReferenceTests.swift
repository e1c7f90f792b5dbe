@testable import AudioDevices
import CScriptedCard
import CardSupport
import Glibc
import Realtime
import AudioKit
import TestSupport
import Testing
import Core

/// A worker that plays noise on the real libasound's scripted card, and keeps what was captured and what was played
/// meanwhile.
final class ReferenceBench {
    let card: ScriptedCard
    private var loop: CardLoop<ALSACard>
    private var line: SoundLine
    private var generator = SeededGenerator(seed: 11)
    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    private var nextFrame = Instant(nanoseconds: 1_004_000_000)
    private var smooth = 0.0
    /// How long the worker takes for a frame of 10 ms.
    var frameNanoseconds: Int64 = 10_000_000
    /// How late the card's thread looks at the card at the most.
    var jitterNanoseconds: Int64 = 0
    /// What the worker leaves out at its next frame, which comes as much earlier.
    var skipping = 0
    var isWorking = true
    private(set) var captured: [Int16] = []
    private(set) var reference: [Int16] = []

    init(_ card: ScriptedCard) {
        self.card = card
        let pair = LinePair()
        let ring = SPSCRing<CardEvent>(capacity: 4_096)
        line = pair.worker
        loop = CardLoop(
            ALSACard(AudioDeviceConfiguration(playback: "card", capture: "card")), pair.device,
            events: ring.producer, eventSignal: nil)
        card.control.now_ns = now.nanoseconds
        loop.start(at: now)
    }

    var statistics: CardStatistics { loop.statistics }

    func run(seconds: Int) {
        let end = now.advanced(by: .seconds(seconds))
        var nextStep = now
        while now < end {
            now = min(nextFrame, nextStep)
            card.control.now_ns = now.nanoseconds
            if nextFrame <= now { runFrame() }
            guard nextStep <= now else { continue }
            loop.step(at: now)
            let late = jitterNanoseconds == 0 ? 0 : Int64.random(in: 0...jitterNanoseconds, using: &generator)
            nextStep = now.advanced(byNanoseconds: 500_000 + late)
        }
    }

    func pause() {
        line.pause(at: now)
        isWorking = false
    }

    func forget() {
        captured = []
        reference = []
    }

    private func runFrame() {
        let due = nextFrame.advanced(byNanoseconds: Int64(-skipping) * 1_000_000 / 48)
        nextFrame = due.advanced(byNanoseconds: frameNanoseconds)
        guard isWorking else { return }
        var frame = [Int16](repeating: 0, count: 480)
        for index in frame.indices {
            // Nothing above a few kHz: between samples it is a smooth curve.
            smooth += 0.3 * (Double.random(in: -9_000...9_000, using: &generator) - smooth)
            frame[index] = Int16(smooth)
        }
        line.play(frame.span, at: now, skipping: skipping)
        skipping = 0
        let (heard, played) = take()
        captured += heard
        reference += played
    }

    private func take() -> ([Int16], [Int16]) {
        var heard = [Int16](repeating: 0, count: 480)
        var played = [Int16](repeating: 0, count: 480)
        var heardSpace = heard.mutableSpan
        var playedSpace = played.mutableSpan
        line.capture(into: &heardSpace, reference: &playedSpace, at: now)
        return (heard, played)
    }

    /// How many samples the echo comes after the reference, in each half second in which it is steady.
    var lags: [Double] {
        var expected: Int?
        return stride(from: 0, through: captured.count - 24_000, by: 24_000).compactMap { start in
            let lag = lag(from: start + 4_000, near: expected)
            expected = lag.map { Int($0) }
            return lag
        }
    }

    private func lag(from start: Int, near expected: Int?) -> Double? {
        let end = start + 4_800
        func correlation(_ lag: Int) -> Double {
            var sum = 0.0
            for index in start..<end { sum += Double(captured[index]) * Double(reference[index - lag]) }
            return sum
        }
        let lags = expected.map { $0 - 4...$0 + 4 } ?? 0...700
        let all = lags.map(correlation)
        guard let best = all.indices.max(by: { all[$0] < all[$1] }), best > 0, best < all.count - 1 else { return nil }
        let power = (start..<end).reduce(0.0) { $0 + Double(captured[$1]) * Double(captured[$1]) }
        guard all[best] > 0.8 * power else { return nil }
        let bend = all[best - 1] - 2 * all[best] + all[best + 1]
        return Double(lags.lowerBound + best) + (all[best - 1] - all[best + 1]) / (2 * bend)
    }
}

extension ReferenceBench {
    /// How much a speakerphone lowers the echo in the last two seconds of what was captured, in dB.
    func echoLowered() throws -> Double {
        var settings = SpeakerphoneSettings()
        settings.noiseSuppression = false
        settings.gainControl = false
        var phone = try SpeakerphoneProcessor(settings)
        var sent: [Int16] = []
        for start in stride(from: 0, to: captured.count - 479, by: 480) {
            var frame = Array(captured[start..<start + 480])
            let played = Array(reference[start..<start + 480])
            var space = frame.mutableSpan
            phone.process(&space, playback: played.span)
            sent += frame
        }
        func power(_ samples: [Int16]) -> Double {
            samples.suffix(96_000).reduce(0) { $0 + Double($1) * Double($1) }
        }
        return 10 * log10(power(captured) / max(1, power(sent)))
    }
}

@Suite("What a card plays while it captures", .serialized)
struct EchoReferenceTests {
    private func bench(rate: UInt32 = 48_000, change: (ScriptedCard) -> Void = { _ in }) throws -> ReferenceBench {
        let card = try ScriptedCard(rate: rate, format: 2, channels: 1)
        // 5 ms from the loudspeaker to the microphone.
        card.control.cable_delay = 240
        change(card)
        return ReferenceBench(card)
    }

    /// The lags are those of the way, and all the same.
    private func expectSteady(
        _ lags: [Double], count: Int, within limit: Double, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        #expect(lags.count >= count, sourceLocation: sourceLocation)
        let (least, most) = (
            try #require(lags.min(), sourceLocation: sourceLocation),
            try #require(lags.max(), sourceLocation: sourceLocation)
        )
        #expect(most - least < limit, "\(lags)", sourceLocation: sourceLocation)
        // 5 ms of the way and 2 ms of lead, and what the card's position may be wrong by.
        #expect(least > 240 && most < 480, "\(lags)", sourceLocation: sourceLocation)
    }

    @Test(
        "Its echo stays where it is while delays are corrected for a worker whose clock is off",
        arguments: [-1_200, 900])
    func corrections(ppm: Int64) throws {
        let bench = try bench()
        bench.frameNanoseconds += ppm * 10
        bench.jitterNanoseconds = 1_500_000
        bench.run(seconds: 20)
        bench.forget()
        bench.run(seconds: 5)
        #expect(abs(bench.statistics.capture.correctionPPM) > 500)
        try expectSteady(bench.lags, count: 9, within: 0.1)
    }

    @Test("A speakerphone takes the echo out of a call whose worker, card and threads keep time as they do in life")
    func cancellation() throws {
        let bench = try bench { $0.control.noise = 3 }
        // The card's crystal is 90 millionths off, its thread comes late, and the loops correct as they learn.
        bench.frameNanoseconds += 900
        bench.jitterNanoseconds = 1_500_000
        bench.run(seconds: 2)
        bench.forget()
        bench.run(seconds: 8)
        #expect(try bench.echoLowered() > 25)
    }

    @Test("Its echo is where it was after frames have come earlier, and after the worker has rested")
    func movesAndPauses() throws {
        let bench = try bench()
        bench.run(seconds: 3)
        bench.forget()
        bench.run(seconds: 1)
        bench.skipping = 240
        bench.run(seconds: 10)
        bench.pause()
        bench.run(seconds: 2)
        bench.isWorking = true
        bench.run(seconds: 5)
        // Meanwhile resampling stretches the way by some thousandths.
        let lags = bench.lags
        #expect(lags.count >= 30)
        let (first, last) = (try #require(lags.first), try #require(lags.last))
        #expect(abs(last - first) < 0.05, "\(lags)")
        #expect(lags.allSatisfy { abs($0 - first) < 1.5 }, "\(lags)")
    }

    @Test("After an xrun the reference is early again, by 2 ms or a little less", arguments: [0, 1])
    func xruns(direction: Int) throws {
        let bench = try bench()
        bench.run(seconds: 3)
        for _ in 0..<3 {
            if direction == 0 { bench.card.control.xrun.0 = 1 } else { bench.card.control.xrun.1 = 1 }
            bench.run(seconds: 1)
            bench.forget()
            bench.run(seconds: 2)
            try expectSteady(bench.lags, count: 3, within: 0.05)
        }
    }

    @Test(
        "A card whose directions have other rates than 48 kHz has a reference too", arguments: [16_000, 44_100, 96_000])
    func rates(rate: UInt32) throws {
        let bench = try bench(rate: rate)
        bench.frameNanoseconds += 3_000
        bench.run(seconds: 3)
        bench.forget()
        bench.run(seconds: 6)
        try expectSteady(bench.lags, count: 11, within: 0.5)
    }

    @Test("Two clocks are noticed, and the reference kept within what a canceller follows", arguments: [-250.0, 120])
    func twoClocks(ppm: Double) throws {
        let bench = try bench { $0.control.ppm = (ppm, 0) }
        bench.run(seconds: 40)
        bench.forget()
        bench.run(seconds: 10)
        let lags = bench.lags
        #expect(lags.count >= 19)
        // 60 millionths of ten seconds are 29 samples.
        #expect(abs(try #require(lags.last) - (try #require(lags.first))) < 29, "\(lags)")
        #expect(lags.allSatisfy { $0 > 100 && $0 < 620 }, "\(lags)")
    }
}

@Suite("Whether a card's directions have one clock")
struct ReferenceClocksTests {
    private func run(seconds: Int, error: (Double) -> Double) -> (clocks: ReferenceClocks, changes: Int, losses: Int) {
        var clocks = ReferenceClocks()
        var (changes, losses) = (0, 0)
        var drifted = 0.0
        for step in 0..<seconds * 100 {
            drifted += clocks.ratePPM * 10
            let told = error(Double(step) / 100) - drifted
            switch clocks.add(errorNanoseconds: told, at: Instant(nanoseconds: Int64(step) * 10_000_000)) {
            case .inStep: break
            case .rate: changes += 1
            case .off(let nanoseconds): drifted += nanoseconds
            case .lost:
                losses += 1
                drifted += told
            }
        }
        return (clocks, changes, losses)
    }

    @Test("Positions that are uncertain by a period are not taken for drift")
    func uncertainty() {
        var generator = SeededGenerator(seed: 3)
        let result = run(seconds: 600) { _ in Double.random(in: -2e6...2e6, using: &generator) }
        #expect(result.clocks.ratePPM == 0 && result.losses == 0)
    }

    @Test(
        "A difference of clocks is learnt to within what a canceller follows",
        arguments: [-3_000.0, -90, -20, 12, 45, 400])
    func drift(ppm: Double) {
        let result = run(seconds: 600) { $0 * ppm * 1_000 }
        #expect(abs(result.clocks.ratePPM - ppm) < 3, "\(result.clocks.ratePPM)")
        #expect(result.changes <= 4 && result.losses <= 1)
    }

    @Test("A jump of positions is not drift", arguments: [1e6, -5e6, 50e6])
    func jump(nanoseconds: Double) {
        let result = run(seconds: 30) { $0 < 10.4 ? 0 : nanoseconds }
        #expect(result.clocks.ratePPM == 0 && result.losses == (nanoseconds > 8e6 ? 1 : 0))
    }
}
