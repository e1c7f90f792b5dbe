@testable import CallControl
import Testing
import Core

/// A watch on virtual time, whose media and probes a test plays.
private struct WatchedCall {
    private(set) var watch: SilenceWatch
    private(set) var now = Instant.zero
    private(set) var probes: [Duration] = []
    private(set) var ends: [Duration] = []
    /// How often the media was looked at.
    private(set) var looks = 0
    /// When a packet of the peer arrived last; nil if none has.
    var newest: Instant?
    /// Packets of a host that nothing names come all the time.
    var hasGuess = false
    var isOnHold = false
    var hasICE = false
    /// What comes of each probe at once; nil leaves it open.
    var answer: SilenceWatch.Input?

    init(period: Duration = .seconds(30)) {
        watch = SilenceWatch(period: period)
        feed(.begin)
    }

    mutating func feed(_ input: SilenceWatch.Input) {
        var outbox: [SilenceWatch.Output] = []
        watch.handle(input, at: now, into: &outbox)
        for output in outbox {
            switch output {
            case .observe:
                looks += 1
                feed(.observed(hasICE ? .covered : isOnHold ? .onHold : .expecting(newest: newest, guessed: guessed)))
            case .probe:
                probes.append(Instant.zero.duration(to: now))
                if let answer { feed(answer) }
            case .lost: ends.append(Instant.zero.duration(to: now))
            }
        }
    }

    mutating func run(_ duration: Duration) {
        let end = now.advanced(by: duration)
        while let deadline = watch.nextDeadline, deadline <= end {
            now = max(now, deadline)
            feed(.timerFired)
            guard watch.nextDeadline.map({ $0 > now }) ?? true else {
                Issue.record("the deadline does not move")
                break
            }
        }
        now = end
    }

    mutating func hear() { newest = now }

    private var guessed: Instant? { hasGuess ? now : nil }
}

@Suite("A peer that vanishes from a call")
struct SilenceWatchTests {
    private let failed = SilenceWatch.Input.probed(.failed(.noAnswer))
    private let answered = SilenceWatch.Input.probed(.answered())

    @Test("CALL-4: While packets of an unknown host come, three probes in a row must fail; they alone prove nothing")
    func guesses() {
        var call = WatchedCall()
        (call.hasGuess, call.answer) = (true, answered)
        call.run(.seconds(100))
        #expect(call.probes.count == 3 && call.ends.isEmpty, "a telephone behind a translator is asked, and is there")
        call.answer = failed
        call.run(.seconds(60))
        #expect(call.ends.isEmpty)
        call.answer = answered
        call.run(.seconds(30))
        call.answer = failed
        call.run(.seconds(60))
        #expect(call.ends.isEmpty, "an answer counts anew")
        call.run(.seconds(30))
        #expect(call.ends.count == 1)
    }

    @Test(
        "CALL-4: A peer from which nothing has come for the time is probed, and the call ends only when the probe fails"
    )
    func vanished() {
        var call = WatchedCall()
        call.run(.seconds(20))
        call.hear()
        call.run(.milliseconds(29_999))
        #expect(call.probes.isEmpty)
        call.run(.milliseconds(1))
        #expect(call.probes == [.seconds(50)])
        call.run(.seconds(32))
        #expect(call.ends.isEmpty)
        call.feed(failed)
        #expect(call.ends == [.seconds(82)])
        #expect(call.watch.nextDeadline == nil)
        call.feed(answered)
        call.run(.seconds(500))
        #expect(call.probes.count == 1 && call.ends.count == 1)
    }

    @Test("CALL-4: A peer that is silent and answers is probed again after each period, and its call continues")
    func answering() {
        var call = WatchedCall()
        call.answer = answered
        call.run(.seconds(3_600))
        #expect(call.probes == (1...120).map { .seconds(30 * $0) })
        #expect(call.ends.isEmpty)
    }

    @Test("A peer whose packets come is not probed, however seldom they come within the period")
    func heard() {
        var call = WatchedCall()
        for _ in 0..<100 {
            call.run(.seconds(29))
            call.hear()
        }
        #expect(call.probes.isEmpty)
        #expect(call.looks <= 100, "the media is looked at once in a period")
    }

    @Test("CALL-4: On hold the peer is probed each period, though packets of it come, and is lost when a probe fails")
    func hold() {
        var call = WatchedCall()
        (call.isOnHold, call.answer) = (true, answered)
        for _ in 0..<10 {
            call.hear()
            call.run(.seconds(30))
        }
        #expect(call.probes.count == 10 && call.ends.isEmpty)
        call.hear()
        call.answer = failed
        call.run(.seconds(30))
        #expect(call.ends == [.seconds(330)])
    }

    @Test("A call with ICE is left to its consent checks, until another offer takes ICE from it")
    func consent() {
        var call = WatchedCall()
        (call.hasICE, call.answer) = (true, failed)
        call.run(.seconds(600))
        #expect(call.probes.isEmpty)
        call.hasICE = false
        call.run(.seconds(30))
        #expect(call.ends.count == 1)
    }

    @Test("A peer that is heard again while its probe is under way keeps its call though the probe fails")
    func back() {
        var call = WatchedCall()
        call.run(.seconds(31))
        call.hear()
        call.run(.seconds(31))
        call.feed(failed)
        #expect(call.ends.isEmpty)
        call.run(.seconds(29))
        #expect(call.probes.count == 2, "30 s after its last packet at most it is probed again")
        call.feed(.probed(.failed(.unknownCall)))
        #expect(call.ends.count == 1)
    }

    @Test("A probe that cannot be sent, or of which nothing is heard, says nothing of the peer and is sent again")
    func unsent() {
        var call = WatchedCall()
        call.answer = .probed(nil)
        call.run(.seconds(90))
        #expect(call.probes == [.seconds(30), .seconds(60), .seconds(90)])
        call.answer = nil
        call.run(.seconds(30))
        call.run(.seconds(93))
        #expect(call.probes.count == 4)
        call.run(.seconds(1))
        #expect(call.probes.last == .seconds(214), "64 s for the one without a result, and the period")
        #expect(call.ends.isEmpty)
    }
}
