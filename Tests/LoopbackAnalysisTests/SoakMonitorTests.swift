import LoopbackAnalysis
import Testing

@Suite("A soak")
struct SoakMonitorTests {
    @Test("Minutes are told one by one, and the worst moments kept with the sound around them")
    func minutes() throws {
        // Twelve seconds stand for the minute that they end; the rest of it is cut short by finishing.
        let signal = LoopbackSignal(soakWith: Carrier(seed: 3))
        var channel = SyntheticChannel(delay: 900)
        channel.faults = (0..<10).map {
            .init(position: 60_000 + $0 * 14_400, hole: 100 + 20 * $0, missing: 100 + 20 * $0)
        }
        let count = 60_000 + 11 * 14_400
        let captured = channel.capture(signal.samples(0..<count), count: count)
        var monitor = SoakMonitor(signal, maximumDelay: 4_800)
        var minutes: [SoakMonitor.Minute] = []
        for start in stride(from: 0, to: count, by: 4_800) {
            monitor.add(captured.span.extracting(start..<min(start + 4_800, count)), into: &minutes)
        }
        #expect(minutes.isEmpty)
        let last = monitor.finish()
        #expect(last.number == 0 && last.events == 10)
        #expect(try abs(#require(last.delay).mean - 900) < 0.01)
        #expect(monitor.timing.eventCount == 10)
        #expect(monitor.moments.count == SoakMonitor.keptMoments)
        #expect(monitor.moments.map(\.event.lengthSamples) == monitor.moments.map(\.event.lengthSamples).sorted(by: >))
        for moment in monitor.moments {
            #expect(moment.samples == Array(captured[moment.start..<moment.start + moment.samples.count]))
            #expect(moment.start <= moment.event.position - 9_600)
        }
    }
}
