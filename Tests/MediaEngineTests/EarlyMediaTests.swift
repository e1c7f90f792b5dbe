import Foundation
import Testing

@testable import CallMedia
@testable import MediaEngine

@Suite("Calls that are heard before they are answered")
struct EarlyMediaTests {
    /// A second of 440 Hz.
    private static let voice = (0..<48_000).map { Int16(8_000 * sin(2 * Double.pi * 440 * Double($0) / 48_000)) }

    /// Samples of the peer's recording in blocks of 20 ms that are loud.
    private static func loud(_ samples: [Int16]) -> Int {
        stride(from: 0, to: samples.count - 960, by: 960).filter { start in
            samples[start..<(start + 960)].contains { abs(Int($0)) > 2_000 }
        }.count * 960
    }

    @Test("Silence is sent until the answer, and nothing of what is played then is lost")
    func sourceWaits() throws {
        var call = try VirtualCall(voice: Self.voice) { plan in plan.isEarly = plan.peer.localSSRC == 1 }
        try call.run(seconds: 2)
        #expect(call.reports.right.peer.packetsReceived > 0)
        let before = call.takeHeard()
        #expect(before.count > 48_000 && Self.loud(before) == 0)
        call.left.pointee.answered()
        try call.run(seconds: 2)
        #expect((46_000...50_000).contains(Self.loud(call.takeHeard())))
    }
}
