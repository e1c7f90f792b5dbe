import AudioKit
import Foundation
import Testing

@Suite("Tones of a telephone")
struct CallToneTests {
    static func sound(_ tone: CallTone, _ country: String, milliseconds: Int, piece: Int = 960) -> [Int16] {
        var generator = CallToneGenerator(CallToneSet(country: country).pattern(tone))
        var made: [Int16] = []
        while made.count < milliseconds * 48 {
            var frame = [Int16](repeating: 0, count: piece)
            var span = frame.mutableSpan
            generator.fill(&span)
            made += frame
        }
        return made
    }

    /// Share of a tone's power at one frequency.
    static func power(_ samples: ArraySlice<Int16>, _ hertz: Double) -> Double {
        var (cosine, sine) = (0.0, 0.0)
        for (index, sample) in samples.enumerated() {
            let angle = 2 * Double.pi * hertz * Double(index) / 48_000
            cosine += Double(sample) * cos(angle)
            sine += Double(sample) * sin(angle)
        }
        return (cosine * cosine + sine * sine) * 2 / Double(samples.count * samples.count)
    }

    @Test("Each country's tones have their rhythm", arguments: CallToneSet.countries + ["ZZ", "de"])
    func rhythm(_ country: String) {
        for tone in CallTone.allCases {
            let pattern = CallToneSet(country: country).pattern(tone)
            guard !pattern.cadence.isEmpty else { continue }
            #expect(pattern.cadence.count % 2 == 0 && pattern.cadence.count <= 8)
            let made = Self.sound(tone, country, milliseconds: 2 * pattern.cadence.reduce(0, +), piece: 480)
            var start = 0
            for (piece, length) in (pattern.cadence + pattern.cadence).enumerated() {
                let inner = made[start + 400..<start + length * 48 - 400]
                #expect((inner.contains { abs(Int($0)) > 2_000 }) == (piece % 2 == 0), "\(country) \(tone) \(piece)")
                start += length * 48
            }
        }
    }

    @Test("A country is named by its ISO 3166 code, in either case, whether it has tones of its own or not")
    func codes() {
        for code in CallToneSet.countries + ["de", "PL", "Zw"] { #expect(CallToneSet.isCountry(code), "\(code)") }
        for text in ["Germany", "UK", "ZZ", "D", "", "DE AT"] { #expect(!CallToneSet.isCountry(text), "\(text)") }
    }

    @Test("Frequencies are the country's")
    func frequencies() {
        let british = Self.sound(.ringBack, "gb", milliseconds: 400)[4_800..<14_400]
        #expect(Self.power(british, 400) > 1e6 && Self.power(british, 450) > 1e6 && Self.power(british, 425) < 1e5)
        let german = Self.sound(.dial, "DE", milliseconds: 400)[4_800..<14_400]
        #expect(Self.power(german, 425) > 1e6 && Self.power(german, 350) < 1e5)
        let ring = Self.sound(.ring, "FR", milliseconds: 1_500)
        #expect(Self.power(ring[0..<1_920], 784) > 1e6 && Self.power(ring[1_920..<3_840], 988) > 1e6)
    }

    @Test("What sounds does not hang on the length of the pieces, and has no clicks")
    func pieces() {
        let whole = Self.sound(.ring, "US", milliseconds: 100, piece: 4_800)
        let small = Self.sound(.ring, "US", milliseconds: 100, piece: 480)
        #expect(zip(whole, small).allSatisfy { abs(Int($0) - Int($1)) <= 1 })
        let busy = Self.sound(.busy, "US", milliseconds: 2_000)
        #expect(zip(busy, busy.dropFirst()).allSatisfy { abs(Int($0) - Int($1)) < 1_000 })
    }
}

@Suite("Volume, level and mix")
struct VolumeTests {
    @Test("Volume changes without steps, mute is silent, and unmuting brings back what was")
    func volume() {
        var control = VolumeControl()
        func next(_ control: inout VolumeControl) -> [Int16] {
            var frame = [Int16](repeating: 10_000, count: 960)
            var span = frame.mutableSpan
            control.apply(&span)
            return frame
        }
        #expect(next(&control) == [Int16](repeating: 10_000, count: 960))
        control.set(gainDB: -20)
        let down = next(&control)
        #expect(zip(down, down.dropFirst()).allSatisfy { abs(Int($0) - Int($1)) < 12 })
        #expect(next(&control).allSatisfy { abs(Int($0) - 1_000) <= 1 })
        control.set(isMuted: true)
        _ = next(&control)
        #expect(next(&control).allSatisfy { $0 == 0 })
        control.set(isMuted: false)
        _ = next(&control)
        #expect(next(&control).allSatisfy { abs(Int($0) - 1_000) <= 1 })
        control.set(gainDB: 500)
        #expect(control.gainDB == 20)
        _ = next(&control)
        #expect(next(&control).allSatisfy { $0 == 32_767 })
    }

    @Test("The display rises at once, holds the peak, and falls by 20 dB a second")
    func display() {
        var display = LevelDisplay()
        let loud = [Int16](repeating: 16_384, count: 4_800)
        let silence = [Int16](repeating: 0, count: 4_800)
        display.add(loud.span)
        let (level, peak) = (display.levelDBFS, display.peakDBFS)
        #expect(abs(peak - -6.02) < 0.01)
        for _ in 0..<10 { display.add(silence.span) }
        #expect(abs(level - display.levelDBFS - 20) < 0.01)
        #expect(display.peakDBFS == peak)
        for _ in 0..<10 { display.add(silence.span) }
        #expect(display.peakDBFS < peak)
    }

    static func everything(_ mixer: inout CallMixer) -> [Int16] {
        var output = [Int16](repeating: 0, count: 480)
        var span = output.mutableSpan
        mixer.mix(into: &span)
        return output
    }

    static func rest(_ mixer: inout CallMixer, without own: [Int16], _ limiter: inout MixLimiter) -> [Int16] {
        var output = [Int16](repeating: 0, count: 480)
        var span = output.mutableSpan
        mixer.mix(without: own.span, into: &span, through: &limiter)
        return output
    }

    @Test("Each call hears all others, and three loud ones are not clipped")
    func mixer() {
        var mixer = CallMixer()
        let frames = [(100, 480), (20, 480), (3, 240)].map { [Int16](repeating: Int16($0.0), count: $0.1) }
        mixer.begin(samples: 480)
        for frame in frames { mixer.add(frame.span) }
        let all = Self.everything(&mixer)
        #expect(all[0] == 123 && all[479] == 120)
        var limiter = MixLimiter()
        let others = Self.rest(&mixer, without: frames[1], &limiter)
        #expect(others[0] == 103 && others[479] == 100)

        let loud = (0..<480).map { Int16(20_000 * sin(Double($0) * 0.1)) }
        mixer.begin(samples: 480)
        for _ in 0..<3 { mixer.add(loud.span) }
        let output = Self.everything(&mixer)
        // The shape is kept once the gain has fallen: a clipped sine would be flat where it is greatest.
        let factor = Double(output[79]) / Double(loud[79])
        #expect(output.indices.dropFirst(48).allSatisfy { abs(Double(output[$0]) - factor * Double(loud[$0])) < 3 })
        #expect(output.map { abs(Int($0)) }.max() ?? 0 > 32_000)
    }

    @Test("The limiter's gain does not jump, within a frame or at its edge, when others become loud or quiet")
    func continuousGain() {
        var mixer = CallMixer()
        var own = MixLimiter()
        // Steady, so that the output shows the gain; the loudness of the others changes from frame to frame.
        let levels = [3_000, 30_000, 30_000, 3_000, 20_000, 3_000].flatMap { [Int16](repeating: $0, count: 480) }
        let steady = [Int16](repeating: 9_000, count: 480)
        var gains: [[Double]] = [[], []]
        for frame in 0..<6 {
            let others = Array(levels[(frame * 480)..<(frame * 480 + 480)])
            mixer.begin(samples: 480)
            for source in [steady, others, others] { mixer.add(source.span) }
            let sum = 9_000 + 2 * Double(others[0])
            gains[0] += Self.everything(&mixer).map { Double($0) / sum }
            gains[1] += Self.rest(&mixer, without: steady, &own).map { Double($0) / (sum - 9_000) }
        }
        for gains in gains {
            // What is cut in the first half millisecond of a loud frame is no gain.
            let steps = gains.indices.dropFirst().filter { $0 % 480 > 24 || $0 / 480 == 3 || $0 / 480 == 5 }
                .map { abs(gains[$0] - gains[$0 - 1]) }
            #expect(steps.max() ?? 1 < 0.02, "\(steps.max() ?? 1)")
            #expect(gains.min() ?? 1 < 0.6)
        }
    }
}
