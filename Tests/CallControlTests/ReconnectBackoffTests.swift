@testable import CallControl
import TestSupport
import Testing
import Core

@Suite("Coming back: soon after the server is back, and never all at once")
struct ReconnectBackoffTests {
    private static let noServer = ServiceFailure(
        passingFailure.error, remedy: passingFailure.remedy, isBurden: false)

    /// The longest of the waits that connections with other seeds choose in the state that `prepare` brings about.
    private static func longestWait(_ prepare: (UInt64) -> Timeline<ConnectionMachine>) -> Double {
        (UInt64(0)..<300).map { seed in
            let timeline = prepare(seed)
            return timeline.core.nextDeadline.map { timeline.now.duration(to: $0).seconds } ?? 0
        }.max() ?? 0
    }

    @Test("CONN-4: The wait after a lost link is at most 0.5 s, and the next at most 1 s if the link had just begun")
    func firstWait() {
        func longest(after standing: Duration, retries: Bool = false) -> Double {
            Self.longestWait { seed in
                var timeline = Timeline(ConnectionMachine.standing(seed: seed))
                timeline.advance(by: standing, firing: .timerFired)
                timeline.feed(.link(.socketClosed(code: nil), attempt: 1))
                guard retries else { return timeline }
                timeline.runToQuiescence(firing: .timerFired, limit: 1)
                timeline.feed(.link(.resourcesFailed(Self.noServer), attempt: 2))
                return timeline
            }
        }
        #expect((0.45...0.5).contains(longest(after: .seconds(10))))
        #expect((0.45...0.5).contains(longest(after: .milliseconds(9_999))))
        #expect((0.45...0.5).contains(longest(after: .seconds(10), retries: true)))
        #expect((0.9...1).contains(longest(after: .milliseconds(9_999), retries: true)))
    }

    @Test("CONN-4: A device that was back for a moment has been away since it lost that connection, not the one before")
    func briefReturn() {
        let longest = Self.longestWait { seed in
            var timeline = Timeline(ConnectionMachine.standing(seed: seed))
            timeline.advance(by: .seconds(10), firing: .timerFired)
            timeline.feed(.link(.socketClosed(code: nil), attempt: 1))
            timeline.advance(by: .seconds(8), firing: .timerFired)
            timeline.feed(.link(.resourcesFetched(someResources), attempt: 2))
            timeline.feed(.link(.socketOpened, attempt: 2))
            timeline.feed(.link(.sessionStarted(someGrant), attempt: 2))
            timeline.feed(.link(.socketClosed(code: nil), attempt: 2))
            return timeline
        }
        #expect((0.4...0.5).contains(longest))
    }

    @Test("CONN-4: No wait is longer than the outage, or 2ᵏ times 0.5 s after k failed attempts, or 30 s")
    func ceilings() {
        for (away, burdens, ceiling) in [
            (0.0, 0, 0.5), (0.3, 0, 0.5), (2, 0, 2), (29, 0, 29), (31, 0, 30), (9_999, 0, 30), (0, 1, 1), (0, 5, 16),
            (0, 6, 30), (20, 5, 20), (0, 99, 30),
        ] {
            let waits = (UInt64(0)..<300).map { seed in
                var backoff = ReconnectBackoff(seed: seed)
                _ = backoff.next(at: .zero, isBurden: false)
                for _ in 0..<burdens { _ = backoff.next(at: .zero, isBurden: true) }
                return backoff.next(at: .zero.advanced(by: .seconds(away)), isBurden: false).seconds
            }
            #expect(waits.allSatisfy { $0 >= 0 && $0 <= ceiling }, "\(away) s, \(burdens)")
            #expect(waits.count { $0 < ceiling / 2 } > 100 && waits.count { $0 > ceiling / 2 } > 100)
        }
    }

    @Test("CONN-4: An attempt at which nothing listens leaves the ceiling alone, one that is answered doubles it")
    func burdens() {
        func longest(_ failure: ServiceFailure) -> Double {
            Self.longestWait { seed in
                var timeline = Timeline(ConnectionMachine(seed: seed))
                timeline.feed(.connect)
                for attempt in 1...5 {
                    timeline.feed(.link(.resourcesFailed(failure), attempt: attempt))
                    if attempt < 5 { timeline.runToQuiescence(firing: .timerFired, limit: 1) }
                }
                return timeline
            }
        }
        #expect(longest(Self.noServer) < 7)
        #expect((7...8).contains(longest(passingFailure)))
    }

    @Test(
        "CONN-4: 99.9 % of 10,000 devices are back 10 s after a kill, and 100,000 in about three times what takes them in",
        arguments: [0.05, 0.6, 1.5, 2.5])
    func crowd(outage: Double) {
        let ten = Crowd(devices: 10_000, outage: outage, sessionsPerSecond: 4_000).run()
        #expect(ten.time(of: 0.999) < 10, "\(ten)")
        #expect(ten.attemptsEach < 7, "\(ten)")
        let hundred = Crowd(devices: 100_000, outage: outage, sessionsPerSecond: 4_000).run()
        #expect(hundred.time(of: 1) < 3.2 * (outage + 100_000 / 4_000), "\(hundred)")
        #expect(hundred.attemptsEach < 9, "\(hundred)")
    }

    @Test("CONN-4: 100,000 devices that were away for a minute come evenly, within half a minute")
    func longOutage() {
        let result = Crowd(devices: 100_000, outage: 60, sessionsPerSecond: 4_000).run()
        #expect(result.time(of: 1) <= 90.5, "\(result)")
        // Waits of 15 s on average make so many, and a fifth is chance.
        #expect(result.peakPerSecond < 12 * 100_000 / 15 / 10, "\(result)")
    }
}
