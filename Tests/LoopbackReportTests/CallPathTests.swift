import AudioKit
import Loopback
import LoopbackAnalysis
import TestSupport
import Testing

/// Reports of calls whose path does nothing but code the sound, twice, as an echo does.
@Suite("Reports of calls without a fault")
struct CallPathTests {
    private static let signal = LoopbackSignal(carrierSeconds: 6, rounds: 2, tonesHz: [997, 97])
    private static let played = signal.samples(0..<signal.count)

    /// What Opus makes of the sound, 20 ms at a time; `lose` says which packet is concealed.
    private static func throughOpus(_ sound: [Int16], bitrateBps: Int, lose: Int? = nil) throws -> [Int16] {
        var settings = EncoderSettings()
        settings.bitrateBps = bitrateBps
        var encoder = try OpusEncoder(settings: settings)
        var decoder = try OpusDecoder()
        var heard: [Int16] = []
        for frame in 0..<sound.count / 960 {
            var packet = [UInt8](repeating: 0, count: 1_500)
            var room = packet.mutableSpan
            let length = encoder.encode(sound.span.extracting(frame * 960..<frame * 960 + 960), into: &room)
            var pcm = [Int16](repeating: 0, count: 960)
            var span = pcm.mutableSpan
            if frame == lose {
                _ = decoder.conceal(samples: 960, into: &span)
            } else {
                _ = decoder.decode(packet.span.bytes.extracting(0..<length), into: &span)
            }
            heard += pcm
        }
        return heard
    }

    private static func run(_ sound: [Int16], bitrateBps: Int, lose: Int? = nil) throws -> LoopbackRun {
        let there = try throughOpus(sound + [Int16](repeating: 0, count: 9_600), bitrateBps: bitrateBps, lose: lose)
        let back = try throughOpus([Int16](repeating: 0, count: 480) + there, bitrateBps: bitrateBps)
        let analyser = LoopbackAnalyser(signal, maximumDelay: 24_000, steadiness: 24)
        return LoopbackRun(
            mode: .call, startedAt: "2025-06-01T12:00:00Z",
            measurement: analyser.analyse([Int16](repeating: 0, count: 1_440) + back))
    }

    @Test(
        "A codec is no noise suppression, and its noise no gap, from 16 kb/s",
        arguments: [16_000, 24_000, 40_000, 64_000, 128_000])
    func clean(bitrateBps: Int) throws {
        let run = try Self.run(Self.played, bitrateBps: bitrateBps)
        let verdict = LoopbackVerdict(run)
        #expect(verdict.isPass && verdict.faults.isEmpty, "\(verdict.sentence)")
        #expect(run.measurement.timing.eventCount == 0, "\(run.measurement.timing.events)")
        #expect(run.measurement.withheld.isEmpty, "\(run.measurement.withheld)")
    }

    @Test("Noise suppression in front of a codec is still named", arguments: [40_000, 128_000])
    func suppressed(bitrateBps: Int) throws {
        let sound = FaultyPath(.noiseSuppression, seed: 1).capture(Self.played)
        let verdict = try LoopbackVerdict(Self.run(sound, bitrateBps: bitrateBps))
        #expect(verdict.faults.map(\.name) == [.noiseSuppression], "\(verdict.sentence)")
    }

    @Test(
        "A frame that a codec conceals is still a gap, to 10 ms, from 16 kb/s", arguments: [16_000, 40_000])
    func lost(bitrateBps: Int) throws {
        let run = try Self.run(Self.played, bitrateBps: bitrateBps, lose: 150)
        let events = run.measurement.timing.events
        #expect(events.count == 1, "\(events)")
        let event = try #require(events.first)
        #expect(abs(event.position - (150 * 960 + 1_920)) < 960 && abs(event.holeSamples - 960) < 480, "\(event)")
    }
}
