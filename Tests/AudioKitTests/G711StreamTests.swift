import Glibc
import TestSupport
import Testing

@testable import AudioKit

@Suite("G.711 at 48 kHz")
struct G711StreamTests {
    private func encode(_ law: G711, _ samples: [Int16]) -> [UInt8] {
        var encoder = G711Encoder(law)
        var bytes = [UInt8](repeating: 0, count: samples.count / 6)
        var span = bytes.mutableSpan
        // In frames, as calls do it.
        var written = 0
        for start in stride(from: 0, to: samples.count - 959, by: 960) {
            var room = span._mutatingExtracting(written..<(written + 160))
            written += encoder.encode(samples.span.extracting(start..<(start + 960)), into: &room)
        }
        return bytes
    }

    private func decode(_ decoder: inout G711Decoder, _ bytes: [UInt8]) -> [Int16] {
        var samples = [Int16](repeating: 0, count: bytes.count * 6)
        var span = samples.mutableSpan
        #expect(decoder.decode(bytes.span, into: &span) == samples.count)
        return samples
    }

    private func conceal(_ decoder: inout G711Decoder, _ count: Int) -> [Int16] {
        var samples = [Int16](repeating: 0, count: count)
        var span = samples.mutableSpan
        #expect(decoder.conceal(samples: count, into: &span) == count)
        return samples
    }

    private func level(_ samples: some Sequence<Int16>) -> Double {
        var meter = LevelMeter()
        meter.add(Array(samples).span)
        return meter.rmsDBFS
    }

    @Test(
        "Tones within the telephone's band come through at their level", arguments: [G711.muLaw, .aLaw],
        [300.0, 1_000, 3_300])
    func passes(law: G711, frequency: Double) {
        var decoder = G711Decoder(law)
        let heard = decode(&decoder, encode(law, TestSignal.tone(frequency, samples: 48_000)))
        #expect(abs(level(heard.dropFirst(4_800)) + 12) < 0.5)
    }

    @Test(
        "Tones above the telephone's band are kept out, so that they do not come back as others",
        arguments: [4_400.0, 5_000, 7_000, 12_000])
    func rejects(frequency: Double) {
        var decoder = G711Decoder(.aLaw)
        let heard = decode(&decoder, encode(.aLaw, TestSignal.tone(frequency, samples: 48_000)))
        #expect(level(heard.dropFirst(4_800)) < -60)
    }

    @Test("Sound comes out later by the filters of encoder and decoder, to the sample")
    func delay() {
        var random = SeededGenerator(seed: 4)
        let noise = (0..<19_200).map { _ in Int16.random(in: -8_000...8_000, using: &random) }
        var decoder = G711Decoder(.aLaw)
        let heard = decode(&decoder, encode(.aLaw, noise))
        let alike = (0..<400).map { lag in
            var sum = 0.0
            for index in 4_800..<14_400 { sum += Double(noise[index]) * Double(heard[index + lag]) }
            return (lag: lag, sum: sum)
        }
        let told = G711Encoder.delaySamples + G711Decoder.delaySamples
        #expect(alike.max { $0.sum < $1.sum }?.lag == told)
    }

    @Test("Nothing is added above the telephone's band")
    func noImages() {
        var decoder = G711Decoder(.muLaw)
        let heard = decode(&decoder, encode(.muLaw, TestSignal.tone(1_000, samples: 48_000))).dropFirst(4_800)
        // A whole number of periods of the tone: what it does not explain is noise and images.
        let count = 24_000
        let samples = Array(heard.prefix(count))
        let clean = TestSignal.tone(1_000, samples: count + 48)
        let best =
            (0..<48).map { shift in
                level(zip(samples, clean[shift...]).map { Int16(clamping: Int($0) - Int($1)) })
            }.min() ?? 0
        #expect(best < -35)
    }

    @Test("What is lost is made up as the tone went on, and fades out over 60 ms")
    func concealment() {
        var decoder = G711Decoder(.aLaw)
        _ = decode(&decoder, encode(.aLaw, TestSignal.tone(400, samples: 9_600)))
        let first = conceal(&decoder, 480)
        #expect(abs(level(first) + 12) < 1)
        let second = conceal(&decoder, 960)
        #expect(level(second) < -12.5 && level(second) > -24)
        _ = conceal(&decoder, 1_920)
        #expect(level(conceal(&decoder, 960)) < -80)
    }

    @Test("Concealment that is taken back leaves no trace")
    func takenBack() {
        let bytes = encode(.muLaw, TestSignal.tone(400, samples: 9_600))
        var straight = G711Decoder(.muLaw)
        var disturbed = G711Decoder(.muLaw)
        _ = decode(&straight, Array(bytes.prefix(800)))
        _ = decode(&disturbed, Array(bytes.prefix(800)))
        disturbed.save()
        _ = conceal(&disturbed, 960)
        disturbed.restore()
        let rest = Array(bytes.dropFirst(800))
        let (wanted, heard) = (decode(&straight, rest), decode(&disturbed, rest))
        #expect(heard == wanted)
    }

    @Test("Comfort noise continues at its level until sound comes")
    func noise() {
        var decoder = G711Decoder(.aLaw)
        _ = decode(&decoder, encode(.aLaw, TestSignal.tone(400, samples: 9_600)))
        decoder.begin(ComfortNoise(attenuation: 50))
        _ = conceal(&decoder, 960)
        var heard: [Int16] = []
        for _ in 0..<50 { heard += conceal(&decoder, 960) }
        // RFC 3389's level is of the root of the mean square against a square wave; the meter's against a sine.
        #expect(abs(level(heard) - (-47)) < 2)
        let sound = decode(&decoder, encode(.aLaw, TestSignal.tone(400, samples: 9_600)))
        #expect(abs(level(sound.dropFirst(4_800)) + 12) < 0.5)
    }

    @Test("Nothing heard yet gives silence, and odd lengths are refused")
    func edges() {
        var decoder = G711Decoder(.muLaw)
        #expect(conceal(&decoder, 480).allSatisfy { $0 == 0 })
        var samples = [Int16](repeating: 0, count: 10)
        var span = samples.mutableSpan
        #expect(decoder.conceal(samples: 10, into: &span) == -1)
        #expect(decoder.conceal(samples: 12, into: &span) == -1)
    }

    /// The filter's taps: a low-pass of 3 850 Hz in Kaiser's window for 60 dB.
    private static let taps: [Float] = {
        func bessel(_ x: Double) -> Double {
            var (sum, term) = (1.0, 1.0)
            for step in 1...30 {
                term *= (x / 2 / Double(step)) * (x / 2 / Double(step))
                sum += term
            }
            return sum
        }
        let made = (0..<192).map { index in
            let (offset, cutoff) = (Double(index) - 95.5, 3_850.0 / 48_000)
            let position = offset / 95.5
            let window = bessel(5.65 * max(0, 1 - position * position).squareRoot()) / bessel(5.65)
            return sin(2 * .pi * cutoff * offset) / (.pi * offset) * window
        }
        let sum = made.reduce(0, +)
        return made.map { Float($0 / sum) }
    }()

    private static func rounded(_ value: Float) -> Int16 {
        Int16(max(-32_768, min(32_767, value + (value < 0 ? -0.5 : 0.5))))
    }

    private static func noise(_ count: Int) -> [Int16] {
        var random = SeededGenerator(seed: 9)
        return (0..<count).map { _ in Int16.random(in: -20_000...20_000, using: &random) }
    }

    @Test(
        "Each byte is that of the sum of 192 products, to the bit, for sound encoded in any pieces",
        arguments: [1, 7, 80, 81, 160, 250])
    func encodesExactly(piece: Int) {
        let samples = Self.noise(500 * 6)
        var encoder = G711Encoder(.muLaw)
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: 500, by: piece) {
            let count = min(piece, 500 - start)
            var part = [UInt8](repeating: 0, count: count)
            var room = part.mutableSpan
            let written = encoder.encode(samples.span.extracting((start * 6)..<((start + count) * 6)), into: &room)
            #expect(written == count)
            bytes += part
        }
        let exact = (0..<500).map { byte in
            var sum: Float = 0
            for age in 0..<192 where byte * 6 + 5 - age >= 0 {
                sum += Self.taps[age] * Float(samples[byte * 6 + 5 - age])
            }
            return G711.muLaw.byte(Self.rounded(sum))
        }
        #expect(bytes == exact)
    }

    @Test(
        "Each sample is that of the sum of 32 products, to the bit, for sound decoded in any pieces",
        arguments: [1, 7, 80, 81, 160, 250])
    func decodesExactly(piece: Int) {
        let bytes = Self.noise(500).map { UInt8(truncatingIfNeeded: $0) }
        var decoder = G711Decoder(.aLaw)
        var samples: [Int16] = []
        for start in stride(from: 0, to: 500, by: piece) {
            samples += decode(&decoder, Array(bytes[start..<min(start + piece, 500)]))
        }
        let exact = (0..<3_000).map { index in
            var sum: Float = 0
            for age in 0..<32 where index / 6 - age >= 0 {
                sum += Self.taps[index % 6 + age * 6] * Float(G711.aLaw.sample(bytes[index / 6 - age]))
            }
            return Self.rounded(sum * 6)
        }
        #expect(samples == exact)
    }
}
