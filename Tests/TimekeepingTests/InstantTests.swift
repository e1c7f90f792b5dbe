import Testing
import Core

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

    @Test("A duration is written for people in milliseconds or seconds, with three digits or so")
    func text() {
        let texts: [(Duration, String)] = [
            (.zero, "0 s"), (.microseconds(40), "0 s"), (.microseconds(400), "0.4 ms"),
            (.microseconds(9_949), "9.9 ms"),
            (.microseconds(9_960), "10 ms"), (.seconds(0.07939876563445597), "79 ms"),
            (.microseconds(999_400), "999 ms"),
            (.microseconds(999_600), "1 s"), (.milliseconds(1_260), "1.3 s"), (.seconds(10), "10 s"),
            (.seconds(90), "90 s"),
            (.seconds(3_600), "3600 s"), (.milliseconds(-250), "-250 ms"), (.milliseconds(-0.01), "0 s"),
        ]
        for (duration, text) in texts { #expect(duration.text == text) }
    }

    @Test("A duration longer than 64 bits of nanoseconds is clamped, not wrapped")
    func clamping() {
        #expect(Duration.seconds(Int64.max).nanoseconds == .max)
        #expect(Duration.seconds(Int64.min).nanoseconds == .min)
        #expect(Duration.milliseconds(-1.5).nanoseconds == -1_500_000)
        #expect((Duration.seconds(9_223_372_036) + .milliseconds(900)).nanoseconds == .max)
    }

    @Test("An instant moved beyond the last one is the last one, as with a token that is good for 300 years")
    func farAway() {
        let now = Instant(nanoseconds: 5)
        #expect(now.advanced(by: .seconds(9_999_999_999)) == Instant(nanoseconds: .max))
        #expect(Instant(nanoseconds: -5).advanced(by: .seconds(Int64.min)) == Instant(nanoseconds: .min))
        let ends = (first: Instant(nanoseconds: .min), last: Instant(nanoseconds: .max))
        #expect(ends.first.duration(to: ends.last) == .nanoseconds(Int64.max))
        #expect(ends.last.duration(to: ends.first) == .nanoseconds(Int64.min))
    }
}
