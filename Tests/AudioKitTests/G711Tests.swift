import AudioKit
import TestSupport
import Testing

@Suite("G.711")
struct G711Tests {
    private func encode(_ law: G711, _ samples: [Int16]) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: samples.count)
        var span = bytes.mutableSpan
        let count = law.encode(samples.span, into: &span)
        return Array(bytes.prefix(count))
    }

    private func decode(_ law: G711, _ bytes: [UInt8]) -> [Int16] {
        var samples = [Int16](repeating: 0, count: bytes.count)
        var span = samples.mutableSpan
        let count = law.decode(bytes.span, into: &span)
        return Array(samples.prefix(count))
    }

    @Test(
        "Every byte decodes to a sample that encodes to the same byte, except µ-law's second zero",
        arguments: [
            G711.muLaw, .aLaw,
        ])
    func everyByte(law: G711) {
        let bytes = (0...255).map { UInt8($0) }
        var expected = bytes
        if law == .muLaw { expected[0x7F] = 0xFF }
        #expect(encode(law, decode(law, bytes)) == expected)
    }

    @Test(
        "Every sample comes back within half of its step, in order, and turned about with its sign",
        arguments: [
            G711.muLaw, .aLaw,
        ])
    func everySample(law: G711) {
        let samples = (-32_768...32_767).map { Int16($0) }
        let back = decode(law, encode(law, samples))
        let smallest = law == .muLaw ? 8 : 16
        for (index, (sample, copy)) in zip(samples, back).enumerated() {
            let magnitude = abs(Int(sample))
            // The step doubles with each segment; the greatest of µ-law is cut at its middle.
            let bound = law == .muLaw ? (magnitude + 132) / 32 + 4 : max(8, magnitude / 32 + 1)
            let error = abs(Int(copy) - Int(sample))
            if error > max(bound, smallest) { Issue.record("\(sample) came back as \(copy)") }
            if index > 0, copy < back[index - 1] { Issue.record("\(sample) came back below the one before it") }
            if sample >= 0, copy != 0 || law == .aLaw, back[samples.count - 1 - index] != -copy {
                Issue.record("\(sample) is not the mirror of \(~sample)")
            }
        }
    }

    @Test(
        "Values of the standard's tables",
        arguments: [
            (G711.muLaw, 0x80, 32_124), (.muLaw, 0x00, -32_124), (.muLaw, 0x8F, 16_764), (.muLaw, 0x9F, 8_316),
            (.muLaw, 0xAF, 4_092), (.muLaw, 0xBF, 1_980), (.muLaw, 0xCF, 924), (.muLaw, 0xDF, 396), (.muLaw, 0xEF, 132),
            (.muLaw, 0xFE, 8), (.muLaw, 0xFF, 0), (.muLaw, 0x7F, 0), (.muLaw, 0x7E, -8),
            (.aLaw, 0xAA, 32_256), (.aLaw, 0x2A, -32_256), (.aLaw, 0xA5, 16_896), (.aLaw, 0xB5, 8_448),
            (.aLaw, 0x85, 4_224), (.aLaw, 0x95, 2_112), (.aLaw, 0xE5, 1_056), (.aLaw, 0xF5, 528), (.aLaw, 0xC5, 264),
            (.aLaw, 0xD5, 8), (.aLaw, 0x55, -8),
        ] as [(G711, Int, Int)])
    func vectors(law: G711, byte: Int, sample: Int) {
        #expect(decode(law, [UInt8(byte)]) == [Int16(sample)])
    }

    @Test("The ends of the range and silence have the bytes of the standard")
    func ends() {
        #expect(encode(.muLaw, [32_767, -32_768, 0, -1, 4, -5]) == [0x80, 0x00, 0xFF, 0x7F, 0xFE, 0x7E])
        #expect(encode(.aLaw, [32_767, -32_768, 0, -1, 16, -17]) == [0xAA, 0x2A, 0xD5, 0x55, 0xD4, 0x54])
        #expect(G711.muLaw.silence == 0xFF && G711.aLaw.silence == 0xD5)
    }

    @Test("No more is done than both sides hold")
    func sizes() {
        var bytes = [UInt8](repeating: 9, count: 2)
        var span = bytes.mutableSpan
        #expect(G711.aLaw.encode(([0, 0, 0] as [Int16]).span, into: &span) == 2)
        var samples = [Int16](repeating: 9, count: 3)
        var out = samples.mutableSpan
        #expect(G711.aLaw.decode(bytes.span, into: &out) == 2)
        #expect(samples == [8, 8, 9])
    }
}

@Suite("Comfort noise")
struct ComfortNoiseTests {
    private func noise(_ payload: [UInt8]) -> ComfortNoise? { ComfortNoise(payload.span) }

    private func measured(_ samples: [Int16], order: Int) -> ComfortNoise {
        ComfortNoise(measuring: samples.span, order: order)
    }

    private func payload(_ noise: ComfortNoise, room: Int = 13) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: room)
        var span = bytes.mutableSpan
        let count = noise.write(into: &span)
        return Array(bytes.prefix(count))
    }

    private func made(_ noise: ComfortNoise, count: Int) -> [Int16] {
        var generator = ComfortNoiseGenerator(seed: 7)
        generator.set(noise)
        var samples = [Int16](repeating: 0, count: count)
        var span = samples.mutableSpan
        generator.fill(&span)
        return samples
    }

    @Test("Payloads of any length are read, written back the same, and cut to the room there is")
    func roundTrip() throws {
        var generator = SeededGenerator(seed: 3)
        #expect(noise([]) == nil)
        for _ in 0..<2_000 {
            let size = Int.random(in: 1...13, using: &generator)
            var bytes = (0..<size).map { _ in UInt8.random(in: 0...254, using: &generator) }
            bytes[0] &= 0x7F
            let read = try #require(noise(bytes))
            #expect(read.order == size - 1 && read.attenuation == bytes[0])
            #expect(payload(read) == bytes)
            #expect(payload(read, room: 1) == [bytes[0]])
        }
        let long = try #require(noise([UInt8](repeating: 255, count: 100)))
        #expect(long.order == 12 && long.attenuation == 127)
        #expect(abs(long.coefficient(0)) <= 1 && long.coefficient(12) == 0)
        #expect(payload(long, room: 0).isEmpty)
    }

    @Test("Noise is as loud as requested, regardless of its colour", arguments: [20, 40, 60, 75])
    func levels(attenuation: Int) throws {
        for coefficients in [[], [UInt8(60)], [UInt8(190), 100, 127, 140]] as [[UInt8]] {
            let wanted = try #require(noise([UInt8(attenuation)] + coefficients))
            let level = measured(made(wanted, count: 16_000), order: 0).attenuation
            #expect(abs(Int(level) - attenuation) <= 1)
        }
    }

    @Test("What is measured of made noise is what it was made of")
    func colour() throws {
        let wanted = try #require(noise([30, 190, 100, 150]))
        let found = measured(made(wanted, count: 32_000), order: 3)
        for index in 0..<3 { #expect(abs(found.coefficient(index) - wanted.coefficient(index)) < 0.05) }
    }

    @Test("Silence, one sample and full scale are measured without harm")
    func extremes() {
        #expect(measured([], order: 8).attenuation == 127)
        #expect(measured([Int16](repeating: 0, count: 160), order: 8).attenuation == 127)
        #expect(measured([5], order: 8).order == 0)
        let full = measured((0..<160).map { $0 % 2 == 0 ? 32_767 : -32_767 }, order: 12)
        #expect(full.attenuation == 0)
        #expect(made(full, count: 960).count == 960)
        #expect(made(ComfortNoise(attenuation: 127), count: 960).allSatisfy { abs($0) <= 1 })
    }
}
