import Testing
import Core

@testable import CallAgent

/// A supervisor on virtual time.
private struct Timeline {
    var now = Instant.zero
    var core: AccountSupervisor

    init(seed: UInt64 = 1) { core = AccountSupervisor(seed: seed) }

    mutating func feed(_ input: AccountSupervisor.Input) -> [AccountSupervisor.Output] {
        var outbox: [AccountSupervisor.Output] = []
        core.handle(input, at: now, into: &outbox)
        return outbox
    }

    /// Goes to the next deadline.
    mutating func wake() throws -> [AccountSupervisor.Output] {
        now = max(now, try #require(core.nextDeadline))
        return feed(.timerFired)
    }

    mutating func advance(_ seconds: Int64) { now = now.advanced(by: .seconds(seconds)) }
}

extension [AccountSupervisor.Output] {
    /// The wait that is told.
    fileprivate func wait() throws -> Duration {
        try #require(compactMap { if case .wait(_, let time, _) = $0 { time } else { nil } }.first)
    }
}

@Suite("Supervision of accounts, in virtual time")
struct AccountSupervisorTests {
    @Test("Accounts are started at once, and the process is ready when each has been tried, connected or not")
    func ready() throws {
        var timeline = Timeline()
        #expect(timeline.feed(.add("a")) == [.start("a")])
        #expect(timeline.feed(.add("b")) == [.start("b")])
        #expect(timeline.feed(.connected("a")) == [])
        let failed = timeline.feed(.failed("b"))
        #expect(failed.last == .ready && failed.count == 2)
        // Later accounts do not make it ready again.
        #expect(timeline.feed(.add("c")) == [.start("c")])
        #expect(timeline.feed(.connected("c")) == [])
    }

    @Test("A service that does not answer keeps the process from being ready for five seconds, and no longer")
    func patience() throws {
        var timeline = Timeline()
        _ = timeline.feed(.add("a"))
        _ = timeline.feed(.add("b"))
        _ = timeline.feed(.connected("a"))
        #expect(try timeline.wake() == [.ready])
        #expect(timeline.now == Instant.zero.advanced(by: AccountSupervisor.readyPatience))
        #expect(timeline.core.nextDeadline == nil)
        #expect(timeline.feed(.connected("b")) == [])
    }

    @Test("An account that is removed before it was tried is not waited for")
    func removedEarly() throws {
        var timeline = Timeline()
        _ = timeline.feed(.add("a"))
        _ = timeline.feed(.add("b"))
        _ = timeline.feed(.connected("a"))
        #expect(timeline.feed(.remove("b")) == [.end("b"), .ready])
        #expect(timeline.feed(.ended("b")) == [.forget("b")])
        #expect(timeline.core.state(of: "b") == nil)
    }

    @Test(
        "Waits double from failure to failure, are at least half of the longest, and end at five minutes",
        arguments: 0..<20)
    func backoff(seed: Int) throws {
        var timeline = Timeline(seed: UInt64(seed))
        _ = timeline.feed(.add("a"))
        var longest = AccountSupervisor.shortestWait
        for number in 1...12 {
            let outputs = timeline.feed(.failed("a"))
            let wait = try outputs.wait()
            #expect(outputs.first == .wait("a", wait, failures: number))
            #expect(wait <= longest && wait >= longest / 2, "\(number)")
            let began = timeline.now
            #expect(timeline.feed(.timerFired) == [], "it is woken early")
            #expect(try timeline.wake() == [.start("a")])
            #expect(began.duration(to: timeline.now) == .nanoseconds(wait.nanoseconds))
            longest = min(longest * 2, AccountSupervisor.longestWait)
        }
        #expect(longest == AccountSupervisor.longestWait)
    }

    @Test(
        "A device that worked for a minute is tried again after the shortest wait, one that did not after a longer one")
    func stability() throws {
        var timeline = Timeline()
        _ = timeline.feed(.add("a"))
        for _ in 0..<6 {
            _ = timeline.feed(.failed("a"))
            _ = try timeline.wake()
        }
        _ = timeline.feed(.connected("a"))
        timeline.advance(60)
        #expect(timeline.feed(.lost("a")) == [.end("a")])
        #expect(try timeline.feed(.ended("a")).wait() <= AccountSupervisor.shortestWait)
        _ = try timeline.wake()
        _ = timeline.feed(.connected("a"))
        timeline.advance(59)
        _ = timeline.feed(.lost("a"))
        #expect(try timeline.feed(.ended("a")).wait() >= AccountSupervisor.shortestWait)
    }

    @Test("A failure of one account touches no other")
    func isolation() throws {
        var timeline = Timeline()
        for name in ["a", "b", "c"] { _ = timeline.feed(.add(name)) }
        for name in ["a", "b", "c"] { _ = timeline.feed(.connected(name)) }
        let (a, c) = (timeline.core.state(of: "a"), timeline.core.state(of: "c"))
        for _ in 0..<10 {
            let outputs = timeline.feed(.failed("b")) + (try timeline.wake())
            #expect(
                outputs.allSatisfy {
                    $0 == .start("b") || { if case .wait("b", _, _) = $0 { true } else { false } }($0)
                })
        }
        #expect(timeline.core.state(of: "a") == a && timeline.core.state(of: "c") == c)
    }

    @Test("A changed account gets its new device when the old one has ended; without one, at once")
    func change() throws {
        var timeline = Timeline()
        _ = timeline.feed(.add("a"))
        _ = timeline.feed(.connected("a"))
        #expect(timeline.feed(.change("a")) == [.end("a")])
        #expect(timeline.feed(.change("a")) == [], "it is ending already")
        timeline.advance(600)
        #expect(timeline.feed(.ended("a")) == [.start("a")])
        _ = timeline.feed(.failed("a"))
        #expect(timeline.feed(.change("a")) == [.start("a")])
        #expect(timeline.core.nextDeadline == nil)
    }

    @Test("An account that is removed and comes back while its calls end is started again after that")
    func removedAndBack() throws {
        var timeline = Timeline()
        _ = timeline.feed(.add("a"))
        _ = timeline.feed(.connected("a"))
        #expect(timeline.feed(.remove("a")) == [.end("a")])
        #expect(timeline.feed(.add("a")) == [])
        #expect(timeline.feed(.ended("a")) == [.start("a")])
        _ = timeline.feed(.failed("a"))
        #expect(timeline.feed(.remove("a")) == [.forget("a")])
        #expect(timeline.core.nextDeadline == nil)
    }

    @Test("An account that fails while it is asked to end has ended")
    func failsAtItsEnd() throws {
        var timeline = Timeline()
        _ = timeline.feed(.add("a"))
        #expect(timeline.feed(.remove("a")).first == .end("a"))
        #expect(timeline.feed(.failed("a")) == [.forget("a")])
        // News of a device that nobody knows any more.
        #expect(
            timeline.feed(.ended("a")) == [] && timeline.feed(.failed("a")) == [] && timeline.feed(.lost("a")) == [])
    }

    @Test("What was waited for ends the wait, of an account that waits")
    func retry() throws {
        var timeline = Timeline()
        _ = timeline.feed(.add("a"))
        #expect(timeline.feed(.retry("a")) == [])
        _ = timeline.feed(.failed("a"))
        #expect(timeline.feed(.retry("a")) == [.start("a")])
        // Its failures still count.
        #expect(timeline.feed(.failed("a")).contains { if case .wait(_, _, failures: 2) = $0 { true } else { false } })
    }

    @Test("At the end of the process nothing is started any more")
    func stop() throws {
        var timeline = Timeline()
        for name in ["a", "b", "c"] { _ = timeline.feed(.add(name)) }
        _ = timeline.feed(.failed("a"))
        _ = timeline.feed(.connected("b"))
        #expect(timeline.feed(.stop) == [])
        #expect(timeline.core.nextDeadline == nil)
        timeline.advance(1_000)
        #expect(timeline.feed(.timerFired) == [] && timeline.feed(.failed("b")) == [] && timeline.feed(.add("d")) == [])
        #expect(timeline.feed(.retry("a")) == [])
    }
}
