import RTP
import Testing
import Core

@Suite("What a sender learns from feedback on arrivals")
struct TransportLogTests {
    private static func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

    /// Sends numbers from 65,530 on every 20 ms; all but the lost ones arrive 30 ms later, and the peer tells of them.
    private static func told(
        lost: Set<Int>, feedbackAfter: [Int], again: [Int] = [], delay: (Int) -> Int64 = { _ in 30 }
    ) throws -> [PathObservation?] {
        var log = TransportLog()
        var writer = TransportFeedbackWriter(sender: 2)
        var seen: [PathObservation?] = []
        for index in 0..<((feedbackAfter.max() ?? 0) + 1) {
            let number = UInt16(65_530) &+ UInt16(index)
            log.sent(number, at: at(Int64(index) * 20))
            if !lost.contains(index) { writer.received(number, at: at(Int64(index) * 20 + delay(index))) }
            if again.contains(index) { log.sentAgain(number) }
            guard feedbackAfter.contains(index) else { continue }
            var bytes = [UInt8](repeating: 0, count: 600)
            let size = bytes.withMutableRawSpan { writer.write(media: 1, into: &$0) }
            let packet = Array(bytes.prefix(size))
            seen.append(try log.received(packet.span.bytes, at: at(Int64(index) * 20 + 60)))
        }
        return seen
    }

    @Test("Each packet is counted once, also those that are lost between two feedbacks, across the number's wrap")
    func counts() throws {
        let seen = try Self.told(lost: [3, 5, 6], feedbackAfter: [4, 9])
        #expect(seen.count == 2)
        #expect(seen[0]?.received == 4 && seen[0]?.lost == 1)
        #expect(seen[1]?.received == 3 && seen[1]?.lost == 2)
        #expect(seen[0]?.oldestSentAt == .zero && seen[1]?.oldestSentAt == Self.at(100))
    }

    @Test("A packet that is sent again counts as lost, though the second one arrives before the feedback")
    func repaired() throws {
        let seen = try Self.told(lost: [], feedbackAfter: [9], again: [4, 7])
        #expect(seen[0]?.received == 8 && seen[0]?.lost == 2)
    }

    @Test("A queue counts only if all packets of half a second are late, and jitter is none")
    func queue() throws {
        let feedback = Array(stride(from: 4, to: 100, by: 5))
        let jitter = try Self.told(lost: [], feedbackAfter: feedback) { $0 % 5 == 0 ? 30 : 130 }
        #expect(jitter.last??.queueNanoseconds == 0)
        let standing = try Self.told(lost: [], feedbackAfter: feedback) { $0 < 50 ? 30 : 130 }
        #expect(standing.last??.queueNanoseconds == 100_000_000)
        #expect(standing[0]?.queueNanoseconds == nil, "before half a second is known")
    }
}
