import AudioKit
@testable import LoopbackAnalysis
import TestSupport
import Testing

@Suite("A soak")
struct SoakMonitorTests {
    @Test("Minutes are reported one by one, and the worst moments kept with the sound around them")
    func minutes() throws {
        // Twelve seconds stand for the minute that they end; the rest of it is cut short by finishing.
        let signal = LoopbackSignal(soakWith: Carrier(seed: 3))
        var channel = SyntheticChannel(delay: 900)
        channel.faults = (0..<10).map {
            .init(position: 60_000 + $0 * 14_400, hole: 100 + 20 * $0, missing: 100 + 20 * $0)
        }
        let count = 60_000 + 11 * 14_400
        let captured = channel.capture(signal.samples(0..<count), count: count)
        var monitor = SoakMonitor(signal, maximumDelay: 4_800)
        var minutes: [SoakMonitor.Minute] = []
        for start in stride(from: 0, to: count, by: 4_800) {
            monitor.add(captured.span.extracting(start..<min(start + 4_800, count)), into: &minutes)
        }
        #expect(minutes.isEmpty)
        let last = monitor.finish()
        #expect(last.number == 0 && last.events == 10)
        #expect(try abs(#require(last.delay).mean - 900) < 0.01)
        #expect(monitor.timing.eventCount == 10)
        #expect(monitor.moments.count == SoakMonitor.keptMoments)
        #expect(monitor.moments.map(\.event.lengthSamples) == monitor.moments.map(\.event.lengthSamples).sorted(by: >))
        for moment in monitor.moments {
            #expect(moment.samples == Array(captured[moment.start..<moment.start + moment.samples.count]))
            #expect(moment.start <= moment.event.position - 9_600)
        }
    }

    @Test("After twelve virtual hours each minute is right, and no more is kept than after one")
    func hours() throws {
        var history = SoakHistory()
        var (position, captured) = (0, 0)
        var minutes: [SoakMonitor.Minute] = []
        var lengths: [Int] = []
        var (delay, kept) = (900.0, 0)
        var expected: [(events: Int, disturbed: Int, delay: Double)] = []
        let second = AudioFormat.sampleRate
        while minutes.count < 12 * 60 {
            var minute = (events: 0, disturbed: 0, delay: 0.0)
            for tick in 0..<240 {
                // Clocks 2 ppm apart; a skip now and then, in some minutes many.
                delay += 12_000 * 2e-6
                let reading = CarrierReading(
                    position: position + 6_000, delaySamples: delay, likeness: 0.9, gainDB: -3, rate: 2e-6)
                history.take(.reading(reading))
                minute.delay += delay / 240
                if tick % 30 == 15, tick / 30 < minutes.count % 8 {
                    let length = 48 + (lengths.count * 7_919) % 4_801
                    history.take(
                        .event(
                            LoopbackEvent(
                                kind: .silence, position: position + 6_100, holeSamples: length, delayBefore: delay,
                                delayAfter: delay)))
                    lengths.append(length)
                    minute.events += 1
                    minute.disturbed += length
                }
                position += 12_000
                captured += 12_000
                history.keepMoments(received: captured, all: false) { range in
                    // Sound is thrown away after five seconds.
                    range.lowerBound < captured - 6 * second ? nil : (range.lowerBound, [0, 1])
                }
                kept = max(kept, history.keptMoments)
            }
            expected.append(minute)
            #expect(history.isMinuteOver(received: captured) && !history.isMinuteOver(received: captured - 1))
            minutes.append(history.endMinute(levelDBFS: -20))
        }
        #expect(minutes.map(\.number) == Array(0..<720))
        for (minute, right) in zip(minutes, expected) {
            #expect(minute.events == right.events && minute.disturbedSamples == right.disturbed, "\(minute)")
            #expect(try abs(#require(minute.delay).mean - right.delay) < 1e-6, "\(minute)")
            #expect(try abs(#require(minute.driftPPM) - 2) < 0.001, "\(minute)")
        }
        // Of all that is counted, only so much is kept.
        let timing = history.timing
        #expect(timing.eventCount == lengths.count && lengths.count > 2 * TimingSummary.eventLimit)
        #expect(timing.events.count == TimingSummary.eventLimit)
        #expect((1_000...2_000).contains(timing.history.points.count))
        #expect(timing.disturbedSamples == lengths.reduce(0, +))
        #expect(kept <= SoakHistory.mostKept)
        let worst = lengths.sorted(by: >).prefix(SoakMonitor.keptMoments)
        #expect(history.moments.map(\.event.lengthSamples) == Array(worst))
    }

    @Test("Of what was captured a few seconds are kept, however long it continues")
    func sound() {
        var monitor = SoakMonitor(LoopbackSignal(soakWith: Carrier()), maximumDelay: 480)
        var (most, minutes) = (0, [SoakMonitor.Minute]())
        let silence = [Int16](repeating: 0, count: 24_000)
        for _ in 0..<40 {
            monitor.add(silence.span, into: &minutes)
            most = max(most, monitor.recent.count)
        }
        #expect(most > SoakMonitor.keptSamples && most <= SoakMonitor.keptSamples + AudioFormat.sampleRate + 24_000)
    }
}
