import CallMedia
import Testing

@Suite("How loud sound has been")
struct SoundTraceTests {
    private func note(_ value: Int16, milliseconds: Int, in trace: inout SoundTrace) {
        for _ in 0..<milliseconds / 10 {
            let frame = [Int16](repeating: value, count: 480)
            trace.note(frame.span)
        }
    }

    @Test("The recent level follows the sound within a second, up and down, while that of the whole call stays")
    func recent() {
        var trace = SoundTrace()
        #expect(trace.recentPeakDBFS == -100 && trace.peakDBFS == -100)
        note(0, milliseconds: 700, in: &trace)
        note(-16_384, milliseconds: 10, in: &trace)
        #expect(abs(trace.recentPeakDBFS + 6.02) < 0.01)
        // It is seen for 0.5 s at least.
        note(0, milliseconds: 490, in: &trace)
        #expect(abs(trace.recentPeakDBFS + 6.02) < 0.01)
        note(0, milliseconds: 500, in: &trace)
        #expect(trace.recentPeakDBFS == -100)
        #expect(abs(trace.peakDBFS + 6.02) < 0.01)
    }

    @Test("The smallest sample has full scale, and a frame without samples changes nothing")
    func edges() {
        var trace = SoundTrace()
        trace.note([Int16]().span)
        #expect(trace == SoundTrace())
        note(.min, milliseconds: 10, in: &trace)
        #expect(trace.recentPeakDBFS == 0 && trace.peakDBFS == 0)
    }
}
