import AudioKit
import Foundation
@testable import Loopback
import LoopbackAnalysis
import Testing

@Suite("A call's loopback")
struct CallLoopbackTests {
    @Test("Speech is judged without any being given, and a file of a second is said until it can be")
    func speech() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("loopback-\(UUID()).wav").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let syllable = (0..<48_000).map { index in
            Int16(6_000 * sin(Double(index) * (0.02 + Double(index) * 1e-6)) * sin(Double(index) / 3_000))
        }
        for (speech, seconds) in [(nil, 10.0), (syllable, 6.0)] {
            let loopback = CallLoopback(carrierSeconds: 1, speech: speech)
            try loopback.write(to: path)
            let played = try AudioFileReader.samples(ofFile: path)
            #expect(abs(Double(played.count) / 48_000 - loopback.fileSeconds) < 0.001)
            let recorded = [Int16](repeating: 0, count: 4_800) + played + [Int16](repeating: 0, count: 24_000)
            let run = loopback.run(startedAt: "2025-06-01T12:00:00Z", recorded: recorded, path: nil)
            let quality = try #require(run.quality)
            #expect(quality.score > 4.5 && quality.delayChanges == 0, "\(quality)")
            #expect((seconds - 2...seconds + 4).contains(quality.seconds), "\(quality.seconds)")
            #expect(try #require(run.speech).likeness > 0.99)
        }
    }

    @Test("Sweep and tones are played as often, and at the frequencies, that are asked for; usually twice")
    func rounds() throws {
        func played(_ loopback: CallLoopback) -> [LoopbackSignal.Kind] {
            loopback.signal.sections.map(\.kind).filter { $0 != .silence && $0 != .carrier }
        }
        let once = CallLoopback(carrierSeconds: 1, rounds: 1, tonesHz: [440, 50])
        #expect(played(once) == [.sweep, .tone(frequencyHz: 440), .tone(frequencyHz: 50)])
        let usual = CallLoopback(carrierSeconds: 1)
        #expect(played(usual).filter { $0 == .sweep }.count == 2 && played(usual).count == 12)
        #expect(CallLoopback(carrierSeconds: 1, rounds: 3).seconds > usual.seconds + 5)
    }

    @Test("The parts of a call's delay are never more than the delay, though means of the whole call may be")
    func stages() {
        let path = CallLoopback.Path(
            networkMilliseconds: 12, jitterBufferMilliseconds: 60, codecMilliseconds: 6.5, frameMilliseconds: 20)
        for delay in [50.0, 85, 120] {
            let stages = path.stages(ofDelay: delay, ear: .here)
            #expect(abs(stages.reduce(0) { $0 + $1.milliseconds } - delay) < 0.001, "\(stages)")
        }
    }

    @Test("A call finds its delay before it is measured: what shrinks while the voice leads is in no figure")
    func settling() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("loopback-\(UUID()).wav").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let loopback = CallLoopback(carrierSeconds: 1)
        try loopback.write(to: path)
        let played = try AudioFileReader.samples(ofFile: path)
        // 100 ms at first; 40 ms from the fifth second on.
        let recorded = (0..<played.count + 24_000).map { index -> Int16 in
            let source = index < 240_000 ? index - 4_800 : index - 1_920
            return played.indices.contains(source) ? played[source] : 0
        }
        let run = loopback.run(startedAt: "2025-06-01T12:00:00Z", recorded: recorded, path: nil)
        let range = try #require(run.measurement.timing.delayRange)
        #expect(abs(range.lowerBound - 1_920) < 0.5 && abs(range.upperBound - 1_920) < 0.5, "\(range)")
        #expect(run.measurement.withheld.isEmpty && run.measurement.unseenChanges.isEmpty)
        #expect(try #require(run.measurement.response).speechRippleDB < 0.1)
    }
}
