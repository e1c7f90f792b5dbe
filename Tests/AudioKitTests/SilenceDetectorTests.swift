import TestSupport
import Testing

@testable import AudioKit

@Suite("Sound and the silence between it")
struct SilenceDetectorTests {
    /// What was decided of each frame of 20 ms.
    private enum Said: Equatable {
        case sound
        case noise(attenuation: Int)
        case nothing
    }

    private static func decide(_ samples: [Int16]) -> [Said] {
        var detector = SilenceDetector()
        return stride(from: 0, to: samples.count - 159, by: 160).map { start in
            switch detector.take(samples.span.extracting(start..<(start + 160))) {
            case .sound: .sound
            case .noise(let noise): .noise(attenuation: Int(noise.attenuation))
            case .nothing: .nothing
            }
        }
    }

    /// White noise so many decibels below overload.
    private static func noise(_ attenuation: UInt8, milliseconds: Int, seed: UInt64 = 1) -> [Int16] {
        var generator = ComfortNoiseGenerator(seed: seed)
        generator.set(ComfortNoise(attenuation: attenuation))
        var samples = [Int16](repeating: 0, count: milliseconds * 8)
        var span = samples.mutableSpan
        generator.fill(&span)
        return samples
    }

    /// A buzz with the overtones of a voice, louder and softer four times a second.
    private static func voice(milliseconds: Int) -> [Int16] {
        (0..<(milliseconds * 8)).map { index in
            let phase = Double(index % 64) / 64
            let swell = 0.6 + 0.4 * Double((index / 8) % 250) / 250
            return Int16((phase < 0.2 ? 1 - 5 * phase : 0) * 9_000 * swell - 800)
        }
    }

    @Test("All of a voice is sent, and what follows it for a fifth of a second")
    func voice() {
        let quiet = 100
        let said = Self.decide(
            Self.noise(60, milliseconds: 20 * quiet) + Self.voice(milliseconds: 1_000)
                + Self.noise(60, milliseconds: 2_000))
        #expect(said[quiet..<(quiet + 50)].allSatisfy { $0 == .sound })
        #expect(said[(quiet + 50)..<(quiet + 60)].allSatisfy { $0 == .sound }, "the hangover")
        guard case .noise(let attenuation) = said[quiet + 60] else {
            Issue.record("the silence begins with a description of it, not \(said[quiet + 60])")
            return
        }
        #expect(abs(attenuation - 60) <= 2)
    }

    @Test("A silence costs two packets a second and one at its start", arguments: [UInt8(45), 60, 72, 127])
    func silence(attenuation: UInt8) {
        let said = Self.decide(Self.noise(attenuation, milliseconds: 10_000))
        let settled = said.dropFirst(100)
        #expect(!settled.contains(.sound))
        let told = settled.count { if case .noise = $0 { true } else { false } }
        #expect((14...24).contains(told), "of 400 frames")
    }

    @Test("Noise that changes by more than 3 dB is described again within the half second")
    func change() {
        let said = Self.decide(Self.noise(66, milliseconds: 6_000) + Self.noise(62, milliseconds: 2_000, seed: 2))
        let after = said[300...].prefix(20)
        let told = after.contains { if case .noise(let attenuation) = $0 { attenuation < 65 } else { false } }
        #expect(told && !after.contains(.sound))
    }

    @Test("Noise that has become much louder is sound at first, and noise again within five seconds")
    func louder() {
        let said = Self.decide(Self.noise(66, milliseconds: 4_000) + Self.noise(54, milliseconds: 8_000, seed: 2))
        #expect(said[200] == .sound)
        #expect(!said[450...].contains(.sound))
    }

    @Test("A tone is never taken for noise, however long and faint it is", arguments: [-12.0, -30, -50])
    func tone(level: Double) {
        let said = Self.decide(TestSignal.tone(425 * 6, samples: 8_000 * 20, levelDBFS: level))
        #expect(said.allSatisfy { $0 == .sound })
    }

    @Test("Digital silence is described as the faintest noise")
    func nothing() {
        let said = Self.decide([Int16](repeating: 0, count: 8_000))
        #expect(said.contains(.noise(attenuation: 127)) && said.last == .nothing)
    }
}
