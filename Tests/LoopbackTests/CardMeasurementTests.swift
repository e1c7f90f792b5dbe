@testable import AudioDevices
import AudioKit
import CScriptedCard
import CardSupport
import Foundation
@testable import Loopback
import LoopbackAnalysis
import Testing
import Core

/// The scripted card behind the real libasound, in virtual time; one test after another, for libasound's configuration is
/// the process's.
@Suite("Measuring a card", .serialized)
struct CardMeasurementTests {
    private func bench(
        _ signal: LoopbackSignal, rate: UInt32 = 48_000, bufferMilliseconds: Double? = nil,
        _ set: (inout scripted_card) -> Void = { _ in }
    ) throws -> DuplexBench {
        let card = try ScriptedCard(rate: rate)
        set(&card.control)
        return try #require(DuplexBench(card, signal, bufferMilliseconds: bufferMilliseconds))
    }

    /// A run in which the response and the tone of 997 Hz are withheld, and a later measurement that has both.
    private func withheld() throws -> (run: LoopbackRun, later: LoopbackMeasurement) {
        let signal = LoopbackSignal(carrierSeconds: 1)
        let whole = try bench(signal).measure(signal)
        var run = LoopbackRun(mode: .device, startedAt: "2025-06-01T12:00:00Z", measurement: whole)
        run.measurement.response = nil
        run.measurement.withheld = [Withheld(.response, .gap)]
        return (run, whole)
    }

    @Test("What is withheld is played again, twice at most; a repeat that fails or is interrupted keeps the first run")
    func playedAgain() throws {
        var (run, later) = try withheld()
        var tries = 0
        CardLoopback.playAgain(for: &run, mustStop: { false }, tell: { _ in }) { () throws(LoopbackError) in
            tries += 1
            return tries == 2 ? later : nil
        }
        #expect(tries == 2 && run.measurement.withheld.isEmpty && run.measurement.response == later.response)

        (run, later) = try withheld()
        tries = 0
        CardLoopback.playAgain(for: &run, mustStop: { false }, tell: { _ in }) { () throws(LoopbackError) in
            tries += 1
            return nil
        }
        #expect(tries == 2 && run.measurement.withheld == [Withheld(.response, .gap)])

        let before = run.measurement
        CardLoopback.playAgain(for: &run, mustStop: { false }, tell: { _ in }) { () throws(LoopbackError) in
            throw LoopbackError(.cardLost, "the sound card went away")
        }
        #expect(run.measurement == before && run.facts.last?.value == "the sound card went away")

        var isStopped = false
        CardLoopback.playAgain(for: &run, mustStop: { isStopped }, tell: { _ in }) { () throws(LoopbackError) in
            isStopped = true
            return later
        }
        #expect(run.measurement == before)
    }

    @Test(
        "The delay is that of buffer and cable to 0.1 ms, regardless of the cable, the buffer and the lateness of the thread",
        arguments: [(0, nil, 0), (777, nil, 0), (777, nil, 3_000_000), (96, 35, 0), (4_800, 15, 2_000_000)]
            as [(UInt32, Double?, Int64)])
    func delay(cable: UInt32, buffer: Double?, jitter: Int64) throws {
        let signal = LoopbackSignal(carrierSeconds: 2)
        let bench = try bench(signal, bufferMilliseconds: buffer) { $0.cable_delay = cable }
        bench.jitterNanoseconds = jitter
        let measured = bench.measure(signal)
        // Two periods of 10 ms, or what was asked for, and the cable.
        let expected = (buffer ?? 20) * 48 + Double(cable)
        #expect(abs(try #require(measured.timing.meanDelay) - expected) < 4.8, "\(measured.timing.meanDelay ?? -1)")
        let range = try #require(measured.timing.delayRange)
        #expect(range.upperBound - range.lowerBound < 0.5)
        let drift = try #require(measured.timing.driftPPM)
        #expect(measured.timing.eventCount == 0 && abs(drift.value) < 0.5)
        #expect(try #require(measured.response).speechRippleDB < 0.1)
        #expect(try #require(measured.tone).thdPlusNoisePercent < 0.1)
        #expect(bench.told.isEmpty, "\(bench.told)")
    }

    @Test(
        "Clocks that differ are reported in ppm, to 1 ppm, and do not change the delay",
        arguments: [(1_500, -1_500), (-1_500, 0), (0, 750), (40, -40)] as [(Double, Double)])
    func drift(playback: Double, capture: Double) throws {
        let signal = LoopbackSignal(carrierSeconds: 6)
        let bench = try bench(signal) {
            $0.ppm = (playback, capture)
            $0.cable_delay = 480
        }
        let measured = bench.measure(signal)
        let drift = try #require(measured.timing.driftPPM)
        let expected = (1 - (1 + playback * 1e-6) / (1 + capture * 1e-6)) * 1e6
        #expect(abs(drift.value - expected) < 1, "\(drift.value) for \(expected)")
        #expect(measured.timing.eventCount == 0, "\(measured.timing.events)")
        // The playing side's interrupts move against those of the capturing side, and with them what waits in its buffer,
        // by a period; the mean lies within that of the depth it is filled to.
        let delay = AudioFormat.milliseconds(samples: Int(try #require(measured.timing.meanDelay)))
        #expect((19.0...30.5).contains(delay), "\(delay)")
        let range = try #require(measured.timing.delayRange)
        #expect(range.upperBound - range.lowerBound < 2, "\(range)")
    }

    @Test("A card at 44.1 kHz is measured through a resampler that adds nothing to the delay")
    func otherRate() throws {
        let signal = LoopbackSignal(carrierSeconds: 2)
        let bench = try bench(signal, rate: 44_100)
        let measured = bench.measure(signal)
        #expect(abs(try #require(measured.timing.meanDelay) - 960) < 4.8, "\(measured.timing.meanDelay ?? -1)")
        #expect(measured.timing.eventCount == 0)
    }

    @Test("Holes in the cable are found one by one, to the sample, and nothing else is")
    func holes() throws {
        let signal = LoopbackSignal(carrierSeconds: 4)
        let bench = try bench(signal) {
            $0.hole_every = 48_000
            $0.hole_length = 333
        }
        let timing = bench.measure(signal).timing
        // Those at 1, 2 and 3 s; what was held back by the buffer had not begun at the first.
        #expect(timing.counts == [.silence: 3], "\(timing.events)")
        for event in timing.events {
            #expect(abs(event.holeSamples - 333) <= 3 && abs(event.missingSamples - 333) <= 3, "\(event)")
        }
        for (one, next) in zip(timing.events, timing.events.dropFirst()) {
            #expect(abs(next.position - one.position - 48_000) <= 3)
        }
    }

    @Test("Each xrun is one gap in its place, after which the delay is what it was", arguments: [0, 1])
    func xruns(direction: Int) throws {
        let signal = LoopbackSignal(carrierSeconds: 5)
        let bench = try bench(signal) { $0.cable_delay = 100 }
        var places = [96_000, 144_000, 216_000]
        bench.script = { bench in
            guard let place = places.first, bench.samples.count >= place else { return }
            places.removeFirst()
            if direction == 0 { bench.card.control.xrun.0 = 1 } else { bench.card.control.xrun.1 = 1 }
        }
        let timing = bench.measure(signal).timing
        #expect(bench.statistics.playbackXruns == (direction == 0 ? 3 : 0))
        #expect(bench.statistics.captureXruns == (direction == 0 ? 0 : 3))
        // The thread came in time: these are the card's own.
        #expect(bench.statistics.ownXruns == 0 && bench.interruptions.count == 3)
        #expect(timing.eventCount == 3, "\(timing.events)")
        for (event, place) in zip(timing.events, [96_000, 144_000, 216_000]) {
            #expect(abs(event.position - place) < 1_200, "\(event)")
            // What was in the buffer and on the cable is lost, and the time until both directions run again.
            #expect((1_000...2_200).contains(event.lengthSamples), "\(event)")
            #expect(abs(event.delayAfter - event.delayBefore) < 4.8)
        }
        let range = try #require(timing.delayRange)
        #expect(range.upperBound - range.lowerBound < 4.8)
        #expect(abs(try #require(timing.meanDelay) - 1_060) < 4.8)
    }

    @Test(
        "A card that goes away for three seconds and comes back is a gap of that length, and the delay is what it was")
    func unplugged() throws {
        let signal = LoopbackSignal(carrierSeconds: 8)
        let bench = try bench(signal)
        bench.script = { bench in
            let isAway = (2_500_000_000..<5_500_000_000).contains(bench.now.nanoseconds - 1_000_000_000)
            bench.card.control.absent_errno = isAway ? ENODEV : 0
        }
        let timing = bench.measure(signal).timing
        #expect(bench.statistics.losses == 1 && bench.statistics.absence == nil, "\(bench.told)")
        #expect(timing.eventCount == 1, "\(timing.events)")
        let event = try #require(timing.events.first)
        #expect(event.kind == .silence && (3_000...3_700).contains(event.lengthMilliseconds), "\(event)")
        #expect(abs(event.delayAfter - event.delayBefore) < 4.8)
    }

    @Test("A card that runs costs its thread no allocation")
    func allocations() throws {
        let signal = LoopbackSignal(carrierSeconds: 4)
        let bench = try bench(signal)
        bench.run(samples: 48_000)
        bench.forgetAllocations()
        bench.run(samples: 144_000)
        #expect(bench.allocations == 0)
    }

    @Test(
        "Each channel is played alone and heard apart, to the frame, and costs the card's thread no allocation",
        arguments: [
            (((1, 0), (0, 1)), nil), (((0, 0.5), (1, 0)), ChannelFigures.Fault.swapped),
            (((1, 0.01), (-0.01, -1)), .oppositePolarity),
        ] as [(((Double, Double), (Double, Double)), ChannelFigures.Fault?)])
    func channels(wires: ((Double, Double), (Double, Double)), fault: ChannelFigures.Fault?) throws {
        let signal = LoopbackSignal(carrierSeconds: 1, tonesHz: [997], channels: true)
        let card = try ScriptedCard()
        card.control.wires = wires
        card.control.cable_delay = 777
        // A buffer that is refilled in long pieces must not smear the boundary.
        let bench = try #require(DuplexBench(card, signal, bufferMilliseconds: 60, keepsPairs: true))
        bench.jitterNanoseconds = 20_000_000
        bench.run(samples: 9_600)
        bench.forgetAllocations()
        let measured = bench.measure(signal)
        #expect(bench.allocations == 0)
        let channels = try #require(measured.channels)
        #expect(channels.faults == (fault.map { [$0] } ?? []) && channels.heardCount == 2, "\(channels)")
        for (played, heard, gain) in [
            (SoundChannel.left, SoundChannel.left, wires.0.0), (.left, .right, wires.0.1), (.right, .left, wires.1.0),
            (.right, .right, wires.1.1),
        ] {
            let path = try #require(channels.path(played, heard))
            #expect(path.isHeard == (gain != 0), "\(path)")
            guard gain != 0 else { continue }
            #expect(abs(path.gainDB - 20 * log10(abs(gain))) < 0.3, "\(path)")
            if abs(gain) > 0.1 { #expect(path.isInverted == (gain < 0), "\(path)") }
        }
        // Both signs at once are silence: the report must say why.
        #expect(measured.timing.isFound == (fault != .oppositePolarity))
    }

    @Test("A card with one channel has no figures of channels", arguments: [false, true])
    func oneChannel(keepsPairs: Bool) throws {
        let signal = LoopbackSignal(carrierSeconds: 1, tonesHz: [997], channels: true)
        let card = try ScriptedCard(channels: 1)
        let bench = try #require(DuplexBench(card, signal, keepsPairs: keepsPairs))
        let measured = bench.measure(signal)
        #expect(measured.channels == nil && measured.timing.isFound && measured.withheld.isEmpty)
        #expect(measured.timing.eventCount == 0)
    }

    @Test("An xrun while a channel is played alone withholds the figures of channels")
    func interruptedChannels() throws {
        let signal = LoopbackSignal(carrierSeconds: 1, tonesHz: [997], channels: true)
        let solo = try #require(signal.soloRange(.right))
        let card = try ScriptedCard()
        card.control.wires = ((1, 0), (0, 1))
        let bench = try #require(DuplexBench(card, signal, keepsPairs: true))
        var isDue = true
        bench.script = { bench in
            guard isDue, bench.samples.count >= (solo.lowerBound + solo.upperBound) / 2 else { return }
            isDue = false
            bench.card.control.xrun.0 = 1
        }
        let measured = bench.measure(signal)
        #expect(measured.channels == nil && measured.withheld == [Withheld(.channels, .interrupted(times: 1))])
    }

    @Test("A thread that is held up is named as the cause of its xrun, and what was played meanwhile is withheld")
    func heldUp() throws {
        let signal = LoopbackSignal(carrierSeconds: 2)
        let sweep = try #require(signal.sections.first { $0.kind == .sweep }?.range)
        let bench = try bench(signal)
        var isDue = true
        bench.script = { bench in
            guard isDue, bench.samples.count >= (sweep.lowerBound + sweep.upperBound) / 2 else { return }
            isDue = false
            bench.holdUp(milliseconds: 60)
        }
        let measured = bench.measure(signal)
        #expect(bench.statistics.playbackXruns == 1 && bench.statistics.ownXruns == 1, "\(bench.statistics)")
        #expect((60...62).contains(bench.statistics.longestHoldUpMilliseconds), "\(bench.statistics)")
        #expect(measured.withheld == [Withheld(.response, .interrupted(times: 1))], "\(measured.withheld)")
        #expect(measured.tones.count == LoopbackSignal.usualTonesHz.count)
        #expect(measured.tones.allSatisfy { $0.thdPlusNoisePercent < 0.1 })
    }

    @Test("A thread without priority keeps six periods ahead, and survives being held up for 40 ms")
    func withoutPriority() throws {
        let signal = LoopbackSignal(carrierSeconds: 2)
        let card = try ScriptedCard()
        let bench = try #require(DuplexBench(card, signal, hasPriority: false))
        var times = 0
        bench.script = { bench in
            guard times < 3, bench.samples.count >= 48_000 * (times + 1) else { return }
            times += 1
            bench.holdUp(milliseconds: 40)
        }
        let timing = bench.measure(signal).timing
        #expect(bench.queueFrames == 2_880 && bench.statistics.playbackXruns == 0 && timing.eventCount == 0)
    }

    @Test("A measurement that its own thread spoiled is made again with more ahead, twice at the most; others are not")
    func bufferChoice() {
        let spoiled = CardTrouble(playbackXruns: 1, ownXruns: 1, longestHoldUpMilliseconds: 31, aheadMilliseconds: 20)
        var choice = BufferChoice(asked: nil)
        #expect(choice.milliseconds == nil && choice.facts.isEmpty)
        #expect(!choice.isWorthAnother(CardTrouble(playbackXruns: 3, aheadMilliseconds: 20)))
        #expect(choice.isWorthAnother(spoiled))
        choice.grow(after: spoiled)
        #expect(choice.milliseconds == 80)
        let again = CardTrouble(playbackXruns: 1, ownXruns: 1, longestHoldUpMilliseconds: 190, aheadMilliseconds: 78)
        #expect(choice.isWorthAnother(again))
        choice.grow(after: again)
        #expect(choice.milliseconds == 300 && choice.facts.count == 2)
        #expect(choice.facts.allSatisfy { $0.value.contains("kept Handset's thread waiting") })
        #expect(!choice.isWorthAnother(again))
        #expect(!BufferChoice(asked: 20).isWorthAnother(spoiled))
    }

    @Test("Sound ahead beyond the default of two periods, or six without priority, is known, up to the card's buffer")
    func extraAhead() {
        let grant = CardGrant(
            rate: 48_000, channels: 2, format: .s16LE, periodFrames: 480, bufferFrames: 9_600, isMemoryMapped: false)
        func extra(_ milliseconds: Double, isRefused: Bool = false) -> Double {
            var statistics = DuplexStatistics()
            if isRefused {
                statistics.take(
                    DuplexNote(event: .priorityRefused(errno: 1), at: Instant(nanoseconds: 1), captured: 0, played: 0))
            }
            return CardFacts(
                configuration: AudioDeviceConfiguration(), playback: grant, capture: grant, statistics: statistics
            ).extraAhead(asked: milliseconds)
        }
        #expect(extra(50) == 30 && extra(20) == 0 && extra(5_000) == 180)
        #expect(extra(50, isRefused: true) == 0 && extra(90, isRefused: true) == 30)
    }

    @Test(
        "An xrun right after a hold-up is the machine's, also if that same step exchanged a block; others are the card's"
    )
    func ownXruns() {
        func own(_ events: [(Int64, DuplexNote.Event)]) -> Int {
            var statistics = DuplexStatistics()
            for (at, event) in events {
                statistics.take(DuplexNote(event: event, at: Instant(nanoseconds: at), captured: 0, played: 0))
            }
            #expect(statistics.playbackXruns == 1)
            return statistics.ownXruns
        }
        let exchanged = DuplexNote.Event.exchanged(available: 480, queue: 100, behind: 0)
        #expect(own([(1, .heldUp(nanoseconds: 50)), (1, .xrun(.playback))]) == 1)
        #expect(own([(1, .heldUp(nanoseconds: 50)), (1, exchanged), (2, .xrun(.playback))]) == 1)
        #expect(own([(1, .heldUp(nanoseconds: 50)), (1, exchanged), (2, exchanged), (3, .xrun(.playback))]) == 0)
        #expect(own([(1, exchanged), (2, .xrun(.playback))]) == 0)
    }

    @Test("A gap is the machine's only if it begins at an xrun that a hold-up caused")
    func ownGaps() {
        let signal = LoopbackSignal(carrierSeconds: 1)
        guard var stream = LoopbackStream(signal, playbackRate: 48_000, captureRate: 48_000) else {
            Issue.record("48 kHz needs no resampler")
            return
        }
        let notes: [(DuplexNote.Event, Int)] = [
            (.heldUp(nanoseconds: 60_000_000), 48_000), (.xrun(.playback), 48_000),
            (.exchanged(available: 480, queue: 480, behind: 0), 96_000), (.xrun(.playback), 96_000),
        ]
        for (number, (event, captured)) in notes.enumerated() {
            let at = Instant(nanoseconds: Int64(number))
            stream.take(DuplexNote(event: event, at: at, captured: captured, played: captured))
        }
        let (own, others) = (stream.ownGaps(at: [48_000, 50_000]), stream.ownGaps(at: [47_000, 60_000, 96_000]))
        #expect(own == 2 && others == 0)
    }

    @Test("A gap where the thread was held up is the machine's, and one at an xrun of the card is not")
    func ownGapsOfCard() throws {
        let signal = LoopbackSignal(carrierSeconds: 5)
        let bench = try bench(signal)
        var places = [96_000, 168_000]
        bench.script = { bench in
            guard let place = places.first, bench.samples.count >= place else { return }
            places.removeFirst()
            if place == 96_000 { bench.holdUp(milliseconds: 60) } else { bench.card.control.xrun.0 = 1 }
        }
        let timing = bench.measure(signal).timing
        #expect(bench.statistics.playbackXruns == 2 && bench.statistics.ownXruns == 1, "\(bench.statistics)")
        #expect(timing.eventCount == 2 && bench.ownGaps(timing) == 1, "\(timing.events)")
    }

    @Test("A measuring program that is late is reported as such; it is a gap, and the delay behind it is what it was")
    func late() throws {
        let signal = LoopbackSignal(carrierSeconds: 6)
        let bench = try bench(signal)
        bench.script = { bench in bench.isFeeding = !(72_000..<216_000).contains(bench.samples.count) }
        let timing = bench.measure(signal).timing
        #expect((1_000..<100_000).contains(bench.statistics.lateFrames), "\(bench.statistics)")
        #expect(timing.eventCount == 1, "\(timing.events)")
        let event = try #require(timing.events.first)
        #expect(abs(event.lengthSamples - bench.statistics.lateFrames) <= 3, "\(event), \(bench.statistics)")
        #expect(abs(event.delayAfter - event.delayBefore) < 0.1)
    }

    @Test("The parts of a delay add up to it, and a card that reports its position late makes none of them negative")
    func stages() throws {
        let signal = LoopbackSignal(carrierSeconds: 1)
        let bench = try bench(signal)
        bench.run(samples: 48_000)
        let facts = CardFacts(
            configuration: AudioDeviceConfiguration(playback: "card", capture: "card"),
            playback: grant, capture: grant, statistics: bench.statistics)
        for delay in [33.25, 20, 12, 5] {
            let stages = facts.stages(ofDelay: delay)
            #expect(abs(stages.reduce(0) { $0 + $1.milliseconds } - delay) < 0.001, "\(stages)")
            #expect(stages.allSatisfy { $0.milliseconds > 0 })
        }
        #expect(facts.factsOfStages(ofDelay: 33.25).isEmpty)
        #expect(facts.factsOfStages(ofDelay: 5).contains { $0.value.contains("more than was measured") })
        #expect(facts.stages(ofDelay: 33.25).contains { $0.name.hasPrefix("Converters") && $0.milliseconds > 13 })
    }

    private var grant: CardGrant {
        CardGrant(
            rate: 48_000, channels: 2, format: .s16LE, periodFrames: 480, bufferFrames: 3_840, isMemoryMapped: false)
    }
}
