import AudioKit
import Foundation
import LoopbackAnalysis
import TestSupport
import Testing

/// Held to what wideband PESQ (P.862.2) said of the same samples, which these tests write as WAV files into the folder
/// that HANDSET_SPEECH_PAIRS names; Benchmarks/Quality says how it was asked.
@Suite("Quality of speech")
struct SpeechQualityTests {
    private static let speech: [Int16] = {
        var speaker = SyntheticSpeech()
        return speaker.samples(seconds: 5)
    }()

    /// The same in noise, and its score.
    private static let noisy = DamagedSpeech.noise(speech, decibels: 25)
    private static let noisyScore = SpeechQualityAnalysis().compare(reference: speech, degraded: noisy)?.score

    struct Known: Sendable, CustomStringConvertible {
        let name: String
        let pesq: Double
        /// How far a score may be from PESQ's. Over Benchmarks/Quality's 492 pairs the RMS of it is 0.17.
        var tolerance = 0.4
        let damage: @Sendable ([Int16]) throws -> [Int16]
        var description: String { name }
    }

    /// What PESQ gives, and how.
    static let known = [
        Known(name: "opus8", pesq: 2.16) { try DamagedSpeech.opus($0, bitrate: 8_000) },
        Known(name: "opus32", pesq: 3.99) { try DamagedSpeech.opus($0, bitrate: 32_000) },
        Known(name: "opus24-loss5", pesq: 2.69) { try DamagedSpeech.opus($0, bitrate: 24_000, loss: 0.05) },
        Known(name: "opus24-loss20", pesq: 1.58) { try DamagedSpeech.opus($0, bitrate: 24_000, loss: 0.2) },
        Known(name: "alaw", pesq: 1.92) { DamagedSpeech.aLaw($0) },
        Known(name: "noise20", pesq: 1.13) { DamagedSpeech.noise($0, decibels: 20) },
        Known(name: "gaps", pesq: 2.14) { DamagedSpeech.gaps($0, length: 40, each: 1_000) },
        Known(name: "clipped", pesq: 1.13) { DamagedSpeech.clipped($0, decibels: 15) },
        // PESQ does not find all of its way after a jump inside a sentence; see docs/loopback.md.
        Known(name: "jumps", pesq: 4.14, tolerance: 0.8) { DamagedSpeech.jumps($0, [20, -40, 60]) },
        Known(name: "same", pesq: 4.64) { $0 },
    ]

    private func measure(_ degraded: [Int16], reference: [Int16] = Self.speech) throws -> SpeechQuality {
        try #require(SpeechQualityAnalysis().compare(reference: reference, degraded: degraded))
    }

    @Test("Damage that is known costs what PESQ says that it does", arguments: known)
    func likePESQ(_ known: Known) throws {
        let heard = DamagedSpeech.later(try known.damage(Self.speech), samples: 4_321)
        if let folder = ProcessInfo.processInfo.environment["HANDSET_SPEECH_PAIRS"] {
            for (name, samples) in [("reference", Self.speech), (known.name, heard)] {
                var writer = try WAVWriter(path: "\(folder)/known.\(name).wav")
                try writer.append(samples.span)
                try writer.finish()
            }
        }
        let measured = try measure(heard)
        #expect(abs(measured.score - known.pesq) < known.tolerance, "\(measured.score) for \(known.pesq)")
        #expect(SpeechQuality.range.contains(measured.score) && measured.worstScore <= measured.score)
    }

    @Test("The less of it, the better: of noise")
    func order() throws {
        let (most, least) = try (
            measure(DamagedSpeech.noise(Self.speech, decibels: 10)).score,
            measure(DamagedSpeech.noise(Self.speech, decibels: 40)).score
        )
        let scores = [most, try #require(Self.noisyScore), least]
        #expect(scores == scores.sorted() && scores[0] < 1.5 && scores[2] > 2.5, "\(scores)")
    }

    @Test("Level and polarity make no difference")
    func level() throws {
        let score = try #require(Self.noisyScore)
        for (change, sign) in [(10.0, 1), (-10, -1)] as [(Double, Int16)] {
            let changed = try measure(DamagedSpeech.louder(Self.noisy, decibels: change).map { sign &* $0 }).score
            #expect(abs(changed - score) < 0.06, "\(changed) for \(score)")
        }
    }

    @Test("A delay that changes is followed, counted, and costs little; the same without being followed would cost all")
    func jumps() throws {
        let measured = try measure(DamagedSpeech.jumps(Self.speech, [60, -20]))
        #expect(measured.delayChanges == 2 && measured.score > 3.5, "\(measured)")
        // Other words are not a delay.
        var other = SyntheticSpeech(seed: 2)
        #expect(try measure(other.samples(seconds: 6)).score < 2)
    }

    @Test("Silence, noise and the shortest of recordings are bad or no answer, and never an end")
    func nonsense() throws {
        let silence = [Int16](repeating: 0, count: Self.speech.count)
        let analysis = SpeechQualityAnalysis()
        #expect(analysis.compare(reference: silence, degraded: Self.speech) == nil)
        #expect(try measure(silence).score < 1.5)
        var random = SeededGenerator(seed: 8)
        let noise = silence.map { _ in Int16.random(in: .min ... .max, using: &random) }
        #expect(try measure(noise).score < 1.3)
        for count in [0, 1, 959, 48_000, 95_999] {
            let short = Array(Self.speech.prefix(count))
            #expect(analysis.compare(reference: short, degraded: Self.speech) == nil, "\(count)")
            #expect(analysis.compare(reference: Self.speech, degraded: short) == nil, "\(count)")
        }
    }

    @Test("Synthetic speech is the same each time, is at its level, and says other things with another seed")
    func synthetic() {
        var (again, other) = (SyntheticSpeech(), SyntheticSpeech(seed: 2))
        #expect(again.samples(seconds: 5) == Self.speech)
        #expect(other.samples(seconds: 2) != Array(Self.speech.prefix(96_000)))
        var meter = LevelMeter()
        meter.add(Self.speech.span)
        #expect((-29 ... -25).contains(meter.rmsDBFS), "\(meter.rmsDBFS)")
        #expect(meter.peakDBFS < -3)
    }
}
