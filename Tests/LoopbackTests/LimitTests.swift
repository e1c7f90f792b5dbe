import ConfigReader
import Foundation
import Loopback
import Testing

@Suite("Thresholds of a loopback")
struct LimitTests {
    private static let example = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("config/loopback.yaml").path

    @Test("config/loopback.yaml has every threshold, with the usual values of a device")
    func example() throws {
        var thresholds = LoopbackThresholds(.soak)
        try LoopbackLimit.read(path: Self.example, into: &thresholds)
        #expect(thresholds == LoopbackThresholds(.device))
        let text = try String(contentsOfFile: Self.example, encoding: .utf8)
        for limit in LoopbackLimit.allCases { #expect(text.contains("  \(limit.rawValue): "), "\(limit)") }
    }

    @Test("A threshold is a number with its unit or without, or off")
    func texts() {
        var thresholds = LoopbackThresholds(.device)
        #expect(LoopbackLimit.maxDelay.set("20 ms", in: &thresholds) && thresholds.delayMilliseconds == 20)
        #expect(LoopbackLimit.maxDelay.set("off", in: &thresholds) && thresholds.delayMilliseconds == nil)
        #expect(LoopbackLimit.maxDistortion.set("0.5%", in: &thresholds) && thresholds.distortionPercent == 0.5)
        #expect(LoopbackLimit.maxGaps.set("3", in: &thresholds) && thresholds.events == 3)
        for text in ["", "ms", "-1", "20s", "nan", "inf"] {
            #expect(!LoopbackLimit.maxDelay.set(text, in: &thresholds), "\(text)")
        }
        #expect(
            !LoopbackLimit.maxGaps.set("1.5", in: &thresholds) && !LoopbackLimit.minLikeness.set("2", in: &thresholds))
    }
}
