import AudioKit
import Foundation
import Loopback
import LoopbackAnalysis
import LoopbackReport
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
            #expect(abs(Double(played.count) / 48_000 - loopback.seconds) < 0.001)
            let recorded = [Int16](repeating: 0, count: 4_800) + played + [Int16](repeating: 0, count: 24_000)
            let run = loopback.run(startedAt: "2025-06-01T12:00:00Z", recorded: recorded, path: nil)
            let quality = try #require(run.quality)
            #expect(quality.score > 4.5 && quality.delayChanges == 0, "\(quality)")
            #expect((seconds - 2...seconds + 4).contains(quality.seconds), "\(quality.seconds)")
            #expect(try #require(run.speech).likeness > 0.99)
        }
    }
}
