import AudioKit
import Foundation
import Testing

private func measure(_ samples: [Int16], _ meter: inout LevelMeter) { meter.add(samples.span) }

@Suite struct ToneGeneratorTests {
    @Test("A tone has the frequency and the level asked for", arguments: [50.0, 440, 1_000, 3_999.5, 15_000])
    func frequencyAndLevel(frequency: Double) {
        let samples = TestSignal.tone(frequency, samples: 96_000, levelDBFS: -20)
        var meter = LevelMeter()
        measure(samples, &meter)
        #expect(abs(meter.rmsDBFS - -20) < 0.05)
        let crossings = zip(samples, samples.dropFirst()).count { $0 < 0 && $1 >= 0 }
        #expect(abs(Double(crossings) - frequency * 2) <= 1)
    }

    @Test("After five minutes the tone is where it would be without rounding, and as loud")
    func noDrift() {
        var generator = ToneGenerator(frequencyHz: 997, levelDBFS: -6)
        var second: [Int16] = []
        for _ in 0..<300 { second = next(48_000, of: &generator) }
        let amplitude = 32_767 * pow(10, -6.0 / 20)
        for index in stride(from: 0, to: 48_000, by: 37) {
            let exact = amplitude * sin(2 * Double.pi * 997 * Double(index) / 48_000)
            #expect(abs(Double(second[index]) - exact) <= 1)
        }
    }

    @Test("Frames join without a step, regardless of their length")
    func continuity() {
        let whole = TestSignal.tone(700, samples: 4_000)
        var generator = ToneGenerator(frequencyHz: 700)
        let pieces = [1, 960, 480, 7, 2_552].flatMap { next($0, of: &generator) }
        #expect(zip(pieces, whole).allSatisfy { abs(Int($0) - Int($1)) <= 1 })
    }

    @Test("Two tones sound together, and are limited where they do not fit")
    func twoTones() {
        var quiet = ToneGenerator(frequenciesHz: (697, 1_209), levelDBFS: -20)
        #expect(abs(rms(next(48_000, of: &quiet)) / 3_276.7 - 1) < 0.01)
        var loud = ToneGenerator(frequenciesHz: (697, 1_209), levelDBFS: 0)
        let samples = next(48_000, of: &loud)
        #expect(samples.max() == 32_767 && samples.min() == -32_767)
    }

    @Test("Silence is silent")
    func silence() {
        var samples: [Int16] = [1, 2, 3]
        var span = samples.mutableSpan
        Silence.fill(&span)
        #expect(samples == [0, 0, 0])
    }

    private func next(_ count: Int, of generator: inout ToneGenerator) -> [Int16] {
        var samples = [Int16](repeating: 0, count: count)
        var span = samples.mutableSpan
        generator.fill(&span)
        return samples
    }
}

@Suite struct LevelMeterTests {
    @Test("Silence has the floor's level, and the loudest sample no more than 0 dBFS by rounding")
    func extremes() {
        var meter = LevelMeter()
        #expect(meter.rmsDBFS == LevelMeter.floorDBFS)
        measure([0, 0, 0], &meter)
        #expect(meter.peakDBFS == LevelMeter.floorDBFS)
        measure([.min, .max], &meter)
        #expect(meter.peak == 32_768)
        #expect(abs(meter.peakDBFS) < 0.001)
        #expect(meter.sampleCount == 5)
        meter.reset()
        #expect(meter == LevelMeter())
    }

    @Test("A full-scale sine measures 0 dBFS and a full-scale square wave 3 dB more")
    func reference() {
        var meter = LevelMeter()
        measure(TestSignal.tone(1_000, samples: 48_000, levelDBFS: 0), &meter)
        #expect(abs(meter.rmsDBFS) < 0.01)
        meter.reset()
        measure((0..<1_000).map { $0 % 2 == 0 ? .max : -.max }, &meter)
        #expect(abs(meter.rmsDBFS - 3.01) < 0.01)
    }
}

@Suite struct ResamplerTests {
    @Test("Rates and qualities out of range are refused")
    func refusals() {
        for (from, to, quality) in [(0, 48_000, 7), (48_000, 999_999, 7), (44_100, 48_000, 11)] {
            if Resampler(from: from, to: to, quality: quality) != nil {
                Issue.record("\(from) to \(to) at quality \(quality) was allowed")
            }
        }
    }

    @Test("A call takes and gives no more than there is, and an empty input nothing")
    func progress() {
        guard let few = Self.resample(1_000, into: 100, at: 40), let none = Self.resample(0, into: 100, at: 0) else {
            Issue.record("16 kHz to 48 kHz was refused")
            return
        }
        #expect(few.produced == 60)
        #expect(few.consumed > 0 && few.consumed < 1_000)
        #expect(none.produced == 0 && none.consumed == 0)
    }

    private static func resample(_ count: Int, into room: Int, at offset: Int) -> Resampler.Progress? {
        var output = [Int16](repeating: 0, count: room)
        let input = [Int16](repeating: 5, count: count)
        if var resampler = Resampler(from: 16_000, to: 48_000) {
            var span = output.mutableSpan
            return resampler.process(input.span, into: &span, at: offset)
        }
        return nil
    }
}
