import RTP
import TestSupport
import Testing
import Core

@Suite("When reports are due")
struct RTCPSchedulerTests {
    private func seconds(_ value: Double) -> Instant { Instant(nanoseconds: Int64(value * 1e9)) }

    /// Times of the reports in `duration` seconds, with the peer heard throughout.
    private func reportTimes(_ duration: Double, seed: UInt64, bitsPerSecond: Int = 80_000) -> [Double] {
        var generator = SeededGenerator(seed: seed)
        var scheduler = RTCPScheduler(configuration: .init(sessionBitsPerSecond: bitsPerSecond), at: .zero)
        var times: [Double] = []
        while scheduler.nextDeadline < seconds(duration) {
            let now = scheduler.nextDeadline
            scheduler.heardMedia(at: now)
            guard scheduler.timerFired(at: now, weSent: true, random: generator.next()) else { continue }
            scheduler.sent(octets: 100, at: now, weSent: true, random: generator.next())
            times.append(Double(now.nanoseconds) / 1e9)
        }
        return times
    }

    @Test("The first report of a call may go at once (RFC 3550 §6.2)")
    func firstReport() {
        #expect(reportTimes(1, seed: 1) == [0])
    }

    @Test("Reports are 2 to 6.2 s apart and about 5 s on average: 5 s, spread by chance, over e − 3/2, reconsidered")
    func spread() {
        let times = reportTimes(40_000, seed: 2)
        let gaps = zip(times.dropFirst(), times).map { $0 - $1 }
        #expect(gaps.allSatisfy { $0 >= 5 * 0.5 / 1.22 && $0 <= 5 * 1.5 / 1.218 })
        let mean = gaps.reduce(0, +) / Double(gaps.count)
        #expect((4.7...5.3).contains(mean))
    }

    @Test("A session of little bandwidth reports more seldom (§6.3.1)")
    func littleBandwidth() {
        // 5 % of 2 kb/s is 12.5 bytes a second; two members with packets of 128 bytes want 20 s.
        let times = reportTimes(40_000, seed: 3, bitsPerSecond: 2_000)
        let mean = times.last.map { $0 / Double(times.count - 1) } ?? 0
        #expect((18...22).contains(mean))
    }

    @Test("Timers that fire early ask for nothing")
    func earlyTimer() {
        var scheduler = RTCPScheduler(configuration: .init(), at: .zero)
        scheduler.sent(octets: 100, at: .zero, weSent: true, random: 0)
        let deadline = scheduler.nextDeadline
        let isDue = scheduler.timerFired(at: deadline.advanced(by: .milliseconds(-1)), weSent: true, random: 0)
        #expect(!isDue)
        #expect(scheduler.nextDeadline == deadline)
    }

    @Test("A longer interval drawn on reconsideration puts the report off (§6.3.6)")
    func reconsideration() {
        var scheduler = RTCPScheduler(configuration: .init(), at: .zero)
        scheduler.sent(octets: 100, at: .zero, weSent: true, random: 0)
        let early = scheduler.nextDeadline
        let isDueAtOnce = scheduler.timerFired(at: early, weSent: true, random: .max)
        #expect(!isDueAtOnce)
        #expect(scheduler.nextDeadline > early)
        let isDueThen = scheduler.timerFired(at: scheduler.nextDeadline, weSent: true, random: 0)
        #expect(isDueThen)
    }

    @Test("The peer's goodbye brings the next report nearer (§6.3.4)")
    func reverseReconsideration() {
        var scheduler = RTCPScheduler(configuration: .init(), at: .zero)
        scheduler.heardMedia(at: .zero)
        scheduler.sent(octets: 100, at: .zero, weSent: true, random: .max)
        let before = scheduler.nextDeadline
        scheduler.heardGoodbye(octets: 60, at: seconds(1))
        #expect(!scheduler.isPeerMember(at: seconds(1)))
        #expect(scheduler.nextDeadline < before)
        #expect(scheduler.nextDeadline >= seconds(1))
    }

    @Test("A peer that is not heard for five intervals is not a member any more (§6.3.5)")
    func silentPeer() {
        var scheduler = RTCPScheduler(configuration: .init(), at: .zero)
        #expect(!scheduler.isPeerMember(at: .zero))
        scheduler.heardReport(octets: 80, at: .zero)
        #expect(scheduler.isPeerMember(at: seconds(24.9)))
        #expect(!scheduler.isPeerMember(at: seconds(25.1)))
    }
}
