import Testing
import Timekeeping

@Suite("Instants")
struct InstantTests {
    @Test("An instant moved by a duration lies that duration away")
    func advancing() {
        let start = Instant(nanoseconds: 5)
        let end = start.advanced(by: .milliseconds(20))
        #expect(end.nanoseconds == 20_000_005)
        #expect(start.duration(to: end) == .milliseconds(20))
        #expect(end.duration(to: start) == .milliseconds(-20))
        #expect(start < end)
        #expect(start.advanced(byNanoseconds: 20_000_000) == end)
        #expect(start.nanoseconds(to: end) == 20_000_000)
    }

    @Test("A duration longer than 64 bits of nanoseconds is clamped, not wrapped")
    func clamping() {
        #expect(Duration.seconds(Int64.max).nanoseconds == .max)
        #expect(Duration.seconds(Int64.min).nanoseconds == .min)
        #expect(Duration.milliseconds(-1.5).nanoseconds == -1_500_000)
    }
}
