@testable import CallControl
import Testing
import TestSupport
import Core

@Suite("ConnectionMachine")
struct ConnectionMachineTests {
    private typealias Output = ConnectionMachine.Output

    private func events(_ timeline: Timeline<ConnectionMachine>) -> [SignalingEvent] {
        timeline.outputs.compactMap { if case .event(let event) = $0 { event } else { nil } }
    }

    @Test("CONN-1: Resources come from the event manager first, and a connect while connected makes no second link")
    func resourcesFirst() {
        var timeline = Timeline(ConnectionMachine(seed: 1))
        timeline.feed(.connect)
        timeline.feed(.connect)
        timeline.feed(.link(.resourcesFetched(someResources), attempt: 1))
        timeline.feed(.link(.socketOpened, attempt: 1))
        timeline.feed(.link(.sessionStarted(someGrant), attempt: 1))
        timeline.feed(.connect)
        let expected: [Output] = [
            .fetchResources(attempt: 1), .stateChanged(.connecting), .openSocket(someResources, attempt: 1),
            .startSession(resume: nil, attempt: 1), .stateChanged(.connected), .event(.connected),
        ]
        #expect(timeline.outputs == expected)
    }

    @Test("CONN-3: A drop gives reconnecting, then reconnected, and the session is asked to continue where it was")
    func dropAndReturn() {
        var timeline = Timeline(ConnectionMachine.standing())
        timeline.feed(.link(.received(sequence: 12), attempt: 1))
        timeline.feed(.link(.received(sequence: nil), attempt: 1))
        timeline.feed(.link(.socketClosed(code: nil), attempt: 1))
        timeline.advance(by: .milliseconds(501), firing: .timerFired)
        timeline.feed(.link(.resourcesFetched(someResources), attempt: 2))
        timeline.feed(.link(.socketOpened, attempt: 2))
        #expect(timeline.outputs.last == .startSession(resume: ResumePoint(session: "s1", after: 12), attempt: 2))
        timeline.feed(.link(.sessionStarted(someGrant), attempt: 2))
        #expect(events(timeline) == [.reconnecting, .reconnected])
        #expect(timeline.core.state == .connected)
    }

    @Test(
        "CONN-4: After a change of the network a link that does not answer within half a second is replaced at once")
    func deadAfterNetworkChange() {
        var timeline = Timeline(ConnectionMachine.standing())
        #expect(timeline.feed(.networkChanged) == [.sendPing])
        #expect(timeline.feed(.networkChanged).isEmpty)
        timeline.advance(by: .milliseconds(499), firing: .timerFired)
        #expect(timeline.core.state == .connected)
        timeline.advance(by: .milliseconds(1), firing: .timerFired)
        #expect(timeline.core.state == .reconnecting)
        timeline.advance(by: .milliseconds(1), firing: .timerFired)
        #expect(timeline.outputs.last == .fetchResources(attempt: 2))
        // The way may be another one again.
        #expect(timeline.feed(.networkChanged) == [.abandon(attempt: 2), .fetchResources(attempt: 3)])
    }

    @Test("CONN-4: After a change of the network a link that answers stays, and may be silent as long as before")
    func alivePastNetworkChange() {
        var timeline = Timeline(ConnectionMachine.standing())
        timeline.feed(.networkChanged)
        timeline.feed(.link(.pong, attempt: 1))
        let count = timeline.outputs.count
        timeline.advance(by: .seconds(2), firing: .timerFired)
        #expect(timeline.outputs.count == count && timeline.core.state == .connected)
    }

    @Test(
        "CONN-12: Asked to move, a device resumes at the new address and leaves the old link then, and no drop is reported"
    )
    func moving() {
        var timeline = Timeline(ConnectionMachine.standing())
        timeline.feed(.link(.received(sequence: 12), attempt: 1))
        timeline.feed(.move(to: "wss://other.example/v1/rtc"))
        guard case .openSocket(let resources, attempt: 2)? = timeline.outputs.last else {
            Issue.record("no socket is opened: \(timeline.outputs)")
            return
        }
        #expect(resources.webSocketURL == "wss://other.example/v1/rtc")
        timeline.feed(.link(.received(sequence: 13), attempt: 1))
        timeline.feed(.link(.socketOpened, attempt: 2))
        #expect(timeline.outputs.last == .startSession(resume: ResumePoint(session: "s1", after: 13), attempt: 2))
        #expect(timeline.core.isChangingLinks && timeline.core.state == .connected)
        // The old link may say something more, and its end is no news.
        timeline.feed(.link(.received(sequence: 14), attempt: 1))
        #expect(timeline.feed(.link(.socketClosed(code: 1008), attempt: 1)).isEmpty)
        var grant = someGrant
        grant.isResumed = true
        #expect(
            timeline.feed(.link(.sessionStarted(grant), attempt: 2))
                == [.moved(attempt: 2), .stateChanged(.connected)])
        #expect(events(timeline).isEmpty && !timeline.core.isChangingLinks)
        // From the next drop on it goes on behind the last event of either link.
        timeline.feed(.link(.socketClosed(code: nil), attempt: 2))
        timeline.advance(by: .milliseconds(501), firing: .timerFired)
        timeline.feed(.link(.resourcesFetched(someResources), attempt: 3))
        timeline.feed(.link(.socketOpened, attempt: 3))
        #expect(timeline.outputs.last == .startSession(resume: ResumePoint(session: "s1", after: 14), attempt: 3))
    }

    @Test(
        "CONN-12: A device that cannot reach the other address stays, and is dropped in the usual way if it has to be")
    func nowhereToMove() {
        var timeline = Timeline(ConnectionMachine.standing())
        timeline.feed(.move(to: "wss://other.example/v1/rtc"))
        #expect(
            timeline.feed(.link(.socketFailed(passingFailure), attempt: 2))
                == [.abandon(attempt: 2), .stayed(because: passingFailure.error)])
        #expect(events(timeline).isEmpty && timeline.core.state == .connected)
        timeline.feed(.link(.socketClosed(code: 1001), attempt: 1))
        timeline.advance(by: .milliseconds(501), firing: .timerFired)
        #expect(timeline.outputs.last == .fetchResources(attempt: 3))
        #expect(events(timeline) == [.reconnecting])
    }

    @Test("CONN-5: Events that came before the session counts as started are not asked for again")
    func heardEarly() {
        var timeline = Timeline(ConnectionMachine(seed: 1))
        timeline.feed(.connect)
        timeline.feed(.link(.resourcesFetched(someResources), attempt: 1))
        timeline.feed(.link(.socketOpened, attempt: 1))
        timeline.feed(.link(.received(sequence: 9), attempt: 1))
        timeline.feed(.link(.sessionStarted(someGrant), attempt: 1))
        timeline.feed(.link(.socketClosed(code: nil), attempt: 1))
        timeline.advance(by: .milliseconds(501), firing: .timerFired)
        timeline.feed(.link(.resourcesFetched(someResources), attempt: 2))
        timeline.feed(.link(.socketOpened, attempt: 2))
        #expect(timeline.outputs.last == .startSession(resume: ResumePoint(session: "s1", after: 9), attempt: 2))
    }

    @Test("CONN-3: A refused token while reconnecting gives the error before disconnected")
    func fatalError() {
        var timeline = Timeline(ConnectionMachine.standing())
        timeline.feed(.link(.socketClosed(code: 1001), attempt: 1))
        timeline.advance(by: .milliseconds(501), firing: .timerFired)
        timeline.feed(.link(.resourcesFailed(fatalFailure), attempt: 2))
        #expect(events(timeline) == [.reconnecting, .error(fatalFailure.error), .disconnected])
        #expect(timeline.core.state == .failed)
        #expect(timeline.core.nextDeadline == nil)
    }

    @Test("CONN-3: For any inputs in any order, no event comes twice in a row", arguments: 0..<200)
    func neverTwoOfAKind(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var timeline = Timeline(ConnectionMachine(seed: seed))
        var attempt = 0
        for _ in 0..<300 {
            let choices: [ConnectionMachine.Input] = [
                .connect, .disconnect, .timerFired, .link(.resourcesFetched(someResources), attempt: attempt),
                .link(.resourcesFailed(passingFailure), attempt: attempt), .link(.socketOpened, attempt: attempt),
                .link(.resourcesFailed(fatalFailure), attempt: attempt),
                .link(.socketClosed(code: nil), attempt: attempt), .link(.sessionStarted(someGrant), attempt: attempt),
                .link(.sessionRefused(fatalFailure), attempt: attempt), .link(.pong, attempt: attempt),
            ]
            guard let input = choices.randomElement(using: &generator) else { return }
            for output in timeline.feed(input) {
                if case .fetchResources(let number) = output { attempt = number }
            }
            if Bool.random(using: &generator) { timeline.advance(by: .seconds(1), firing: .timerFired) }
            for case .fetchResources(let number) in timeline.outputs.suffix(4) { attempt = max(attempt, number) }
        }
        let told = events(timeline).map(caseName)
        for (first, second) in zip(told, told.dropFirst()) { #expect(first != second) }
    }

    @Test("CONN-4: While the server is away the attempts never stop and never come more than 30 s apart")
    func persistence() {
        var timeline = Timeline(ConnectionMachine.standing())
        timeline.feed(.link(.socketClosed(code: nil), attempt: 1))
        var gaps: [Duration] = []
        for number in 2..<60 {
            let before = timeline.now
            timeline.runToQuiescence(firing: .timerFired, limit: 1)
            gaps.append(before.duration(to: timeline.now))
            #expect(timeline.outputs.last == .fetchResources(attempt: number))
            timeline.feed(.link(.resourcesFailed(passingFailure), attempt: number))
        }
        #expect(gaps.allSatisfy { $0 <= .seconds(30) })
        #expect(gaps.dropFirst(7).contains { $0 > .seconds(15) })
    }

    @Test("CONN-4: A silent link is pinged after one keepalive interval and given up after two")
    func deadLink() {
        var timeline = Timeline(ConnectionMachine.standing())
        timeline.advance(by: .seconds(50), firing: .timerFired)
        let relevant = timeline.log.filter { $0.output == .sendPing || $0.output == .event(.reconnecting) }
        #expect(relevant.map(\.output) == [.sendPing, .event(.reconnecting)])
        #expect(relevant.map(\.at) == [.seconds(25), .seconds(50)])
    }

    @Test("CONN-4: A link that answers its pings stays up for a day")
    func livelyLink() {
        var timeline = Timeline(ConnectionMachine.standing())
        for _ in 0..<(24 * 3_600 / 26) {
            timeline.advance(by: .seconds(25), firing: .timerFired)
            timeline.advance(by: .seconds(1), firing: .timerFired)
            timeline.feed(.link(.pong, attempt: 1))
        }
        #expect(events(timeline).isEmpty)
        #expect(timeline.core.state == .connected)
    }

    @Test("CONN-4: A closed link is noticed at once")
    func closedLink() {
        var timeline = Timeline(ConnectionMachine.standing())
        #expect(timeline.feed(.link(.socketClosed(code: nil), attempt: 1)).contains(.event(.reconnecting)))
    }

    @Test("CONN-4: A server that takes us in and drops us at once sees the waits grow all the same")
    func flapping() {
        var timeline = Timeline(ConnectionMachine.standing(seed: 5))
        var delays: [Duration] = []
        for number in 1..<12 {
            for case .retrying(let delay, _) in timeline.feed(.link(.socketClosed(code: nil), attempt: number)) {
                delays.append(delay)
            }
            timeline.runToQuiescence(firing: .timerFired, limit: 1)
            timeline.feed(.link(.resourcesFetched(someResources), attempt: number + 1))
            timeline.feed(.link(.socketOpened, attempt: number + 1))
            timeline.feed(.link(.sessionStarted(someGrant), attempt: number + 1))
        }
        #expect(delays.count == 11)
        #expect(delays.contains { $0 > .seconds(8) })
    }

    @Test("CONN-4: An attempt that hangs is given up after its time and another one follows")
    func hangingAttempt() {
        var timeline = Timeline(ConnectionMachine(seed: 1))
        timeline.feed(.connect)
        timeline.feed(.link(.resourcesFetched(someResources), attempt: 1))
        timeline.advance(by: .seconds(11), firing: .timerFired)
        #expect(timeline.outputs.contains(.abandon(attempt: 1)))
        #expect(timeline.outputs.last == .fetchResources(attempt: 2))
        // The socket of the first attempt opens after all: nobody cares.
        #expect(timeline.feed(.link(.socketOpened, attempt: 1)).isEmpty)
    }

    @Test("CONN-4: With a limit on first attempts the last failure is reported and the connection has failed")
    func limitedAttempts() {
        var timings = ConnectionTimings()
        timings.firstAttempts = 3
        var timeline = Timeline(ConnectionMachine(timings: timings, seed: 1))
        timeline.feed(.connect)
        for number in 1...3 {
            timeline.feed(.link(.resourcesFailed(passingFailure), attempt: number))
            timeline.runToQuiescence(firing: .timerFired, limit: 1)
        }
        #expect(events(timeline) == [.error(passingFailure.error), .disconnected])
        #expect(timeline.core.state == .failed)
    }

    @Test("AUTH-11: Retry-After is obeyed though the backoff would come back sooner")
    func retryAfter() {
        var timeline = Timeline(ConnectionMachine(seed: 1))
        timeline.feed(.connect)
        let failure = ServiceFailure(passingFailure.error, remedy: .retry(after: .seconds(90)))
        timeline.feed(.link(.resourcesFailed(failure), attempt: 1))
        #expect(timeline.core.nextDeadline == Instant.zero.advanced(by: .seconds(90)))
    }

    @Test("CONN-9: A clean disconnect says goodbye, closes with 1000, and does not reconnect")
    func cleanDisconnect() {
        var timeline = Timeline(ConnectionMachine.standing())
        timeline.feed(.disconnect)
        #expect(timeline.outputs == [.endSession, .closeSocket(code: 1000), .stateChanged(.disconnecting)])
        timeline.feed(.link(.socketClosed(code: 1000), attempt: 1))
        timeline.runToQuiescence(firing: .timerFired)
        #expect(events(timeline) == [.disconnected])
        #expect(timeline.core.state == .notConnected)
    }

    @Test("CONN-9: A peer that does not answer the close frame delays the end by a second at most")
    func unansweredClose() {
        var timeline = Timeline(ConnectionMachine.standing())
        timeline.feed(.disconnect)
        timeline.runToQuiescence(firing: .timerFired)
        #expect(timeline.now == Instant.zero.advanced(by: .seconds(1)))
        #expect(events(timeline) == [.disconnected])
    }

    @Test("CONN-10: Events wait for the first listener, in order, and past the bound the oldest go and are counted")
    func backlog() {
        var backlog = EventBacklog<Int>(capacity: 3)
        for event in 1...5 { #expect(backlog.offer(event) == nil) }
        #expect(backlog.attach() == [3, 4, 5])
        #expect(backlog.droppedCount == 2)
        #expect(backlog.offer(6) == 6)
        #expect(backlog.attach().isEmpty)
    }
}
