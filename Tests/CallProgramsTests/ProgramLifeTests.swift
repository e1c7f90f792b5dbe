import TestSupport
import Testing
import Core

@testable import CallPrograms

@Suite("A program's part in a call")
struct ProgramLifeTests {
    /// The core on a timeline, with what it said and when.
    private struct Script {
        var now = Instant.zero
        var life = ProgramLife(startedAt: .zero)
        var said: [(at: Duration, output: ProgramLife.Output)] = []

        mutating func feed(_ input: ProgramLife.Input) {
            var outbox: [ProgramLife.Output] = []
            life.handle(input, at: now, into: &outbox)
            said += outbox.map { (Instant.zero.duration(to: now), $0) }
        }

        /// Jumps to the next deadline.
        mutating func pass() {
            guard let deadline = life.nextDeadline else { return }
            now = deadline
            feed(.timerFired)
        }

        mutating func wait(_ duration: Duration) { now = now.advanced(by: duration) }

        var outputs: [ProgramLife.Output] { said.map(\.output) }
    }

    @Test("A program that ends with 0 has its say, and then the call ends")
    func finished() {
        var script = Script()
        script.feed(.exited(.finished))
        #expect(script.outputs == [.drain])
        script.wait(.seconds(3))
        script.feed(.drained)
        script.pass()
        #expect(script.said.last?.output == .hangUp(failure: nil) && script.said.last?.at == .milliseconds(3_250))
        script.feed(.callEnded)
        #expect(script.outputs == [.drain, .hangUp(failure: nil), .done])
    }

    @Test("A program that hangs up is heard out, and then has a second to end before it is made to")
    func hangUp() {
        var script = Script()
        script.feed(.asksToHangUp)
        script.feed(.drained)
        script.pass()
        script.feed(.callEnded)
        script.pass()
        script.pass()
        #expect(
            script.outputs == [.drain, .hangUp(failure: nil), .close, .terminate, .kill])
        #expect(script.said.map(\.at) == [0, 250, 250, 1_250, 3_250].map(Duration.milliseconds))
        script.feed(.exited(.failed("signal 9 ended it")))
        #expect(script.outputs.last == .done && script.life.nextDeadline == nil)
    }

    @Test("A word that never gets to the caller holds the call up for 15 s at the most")
    func drainLimit() {
        var script = Script()
        script.feed(.exited(.finished))
        script.pass()
        #expect(script.said.last?.at == .seconds(15) && script.outputs.last == .hangUp(failure: nil))
    }

    @Test("A word that waits while a file is played is heard behind it, however long that is")
    func suspended() {
        var script = Script()
        script.feed(.exited(.finished))
        for _ in 0..<120 {
            script.wait(.seconds(1))
            script.feed(.suspended)
            script.feed(.timerFired)
        }
        #expect(script.outputs == [.drain])
        script.pass()
        #expect(script.said.last?.at == .seconds(135) && script.outputs.last == .hangUp(failure: nil))
    }

    @Test("A program that fails is started again, later each time, and after five times the call ends with its reason")
    func restarts() {
        var script = Script()
        for _ in 1...5 {
            script.feed(.exited(.failed("exit code 1")))
            script.pass()
        }
        script.feed(.exited(.failed("exit code 2")))
        let starts = script.said.filter { if case .start = $0.output { true } else { false } }
        #expect(starts.map(\.output) == (1...5).map { .start(restart: $0) })
        #expect(starts.map(\.at) == [250, 750, 1_750, 3_750, 7_750].map(Duration.milliseconds))
        #expect(script.outputs.last == .hangUp(failure: "exit code 2"))
        #expect(script.outputs.filter { $0 == .silence }.count == 5)
    }

    @Test("A program that ran for a minute has all its restarts back")
    func goodRun() {
        var script = Script()
        for _ in 1...12 {
            script.wait(.seconds(60))
            script.feed(.exited(.failed("exit code 1")))
            script.pass()
        }
        #expect(script.outputs.filter { $0 == .start(restart: 1) }.count == 12)
    }

    @Test("A call that ends while its program waits to be started again leaves nothing to do")
    func endsWhileWaiting() {
        var script = Script()
        script.feed(.exited(.failed("exit code 1")))
        script.feed(.callEnded)
        #expect(script.outputs == [.silence, .done] && script.life.nextDeadline == nil)
    }

    @Test("A device that stops has its programs end within half a second")
    func stop() {
        var script = Script()
        script.feed(.stop)
        script.feed(.stop)
        script.pass()
        #expect(script.outputs == [.terminate, .kill] && script.now == Instant.zero.advanced(by: .milliseconds(400)))
        script.feed(.exited(.finished))
        #expect(script.outputs.last == .done)
    }

    @Test("For any inputs in any order, it ends once, and sends nothing after that", arguments: 0..<200)
    func anyOrder(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var script = Script(
            life: ProgramLife(
                startedAt: .zero, answerTimeout: seed % 2 == 0 ? nil : .seconds(5), hasFallback: seed % 4 < 2))
        let inputs: [ProgramLife.Input] = [
            .exited(.finished), .exited(.failed("x")), .asksToHangUp, .drained, .suspended, .callEnded, .stop,
            .timerFired, .stood,
        ]
        for _ in 0..<60 {
            if Bool.random(using: &random) { script.pass() }
            if let input = inputs.randomElement(using: &random) { script.feed(input) }
        }
        script.feed(.callEnded)
        for _ in 0..<4 { script.pass() }
        script.feed(.exited(.finished))
        #expect(script.outputs.filter { $0 == .done }.count == 1 && script.outputs.last == .done)
        #expect(script.life.nextDeadline == nil)
        #expect(script.outputs.filter { if case .hangUp = $0 { true } else { false } }.count <= 1)
        // A call that waits is answered once, or not at all.
        let answers = script.outputs.filter { output in
            switch output {
            case .accept, .decline, .refuse: true
            case .start, .fallBack, .silence, .drain, .hangUp, .close, .terminate, .kill, .done: false
            }
        }
        #expect(answers.count <= seed % 2)
    }

    @Test("A call waits until its program is ready, once")
    func stands() {
        var script = Script(life: ProgramLife(startedAt: .zero, answerTimeout: .seconds(5)))
        #expect(script.life.isAwaited && script.life.nextDeadline == Instant.zero.advanced(by: .seconds(5)))
        script.wait(.seconds(2))
        script.feed(.stood)
        script.feed(.stood)
        #expect(script.outputs == [.accept] && script.life.nextDeadline == nil)
        script.feed(.exited(.finished))
        #expect(script.outputs == [.accept, .drain])
    }

    @Test("A program that is started again has the rest of its time to become ready")
    func standsAfterRestart() {
        var script = Script(life: ProgramLife(startedAt: .zero, answerTimeout: .seconds(5)))
        for _ in 1...4 {
            script.feed(.exited(.failed("exit code 1")))
            script.pass()
        }
        #expect(
            script.outputs.last == .start(restart: 4) && script.now == Instant.zero.advanced(by: .milliseconds(3_750)))
        script.feed(.exited(.failed("exit code 1")))
        script.pass()
        #expect(script.now == Instant.zero.advanced(by: .seconds(5)))
        guard case .refuse(let why) = script.outputs.last else {
            Issue.record("\(script.outputs)")
            return
        }
        let late = "it neither read the caller's sound nor sent any within 5 s"
        #expect(why == "\(late); its last run failed: exit code 1")
        script.feed(.callEnded)
        #expect(script.outputs.last == .done)
    }

    @Test(
        "A program that ends before it is ready declines the call",
        arguments: [ProgramLife.Input.exited(.finished), .asksToHangUp])
    func declines(how: ProgramLife.Input) {
        var script = Script(life: ProgramLife(startedAt: .zero, answerTimeout: .seconds(5), hasFallback: true))
        script.feed(how)
        #expect(script.outputs == [.decline] && script.life.nextDeadline == nil)
        script.feed(.callEnded)
        #expect(script.outputs.last == (how == .asksToHangUp ? .close : .done))
    }

    @Test("With a fallback the call is accepted for that, and ends after it")
    func fallsBack() {
        var script = Script(life: ProgramLife(startedAt: .zero, answerTimeout: .seconds(5), hasFallback: true))
        script.pass()
        let why = "it neither read the caller's sound nor sent any within 5 s"
        #expect(script.outputs == [.accept, .kill, .fallBack(why)])
        script.feed(.exited(.failed("signal 9 ended it")))
        script.wait(.seconds(20))
        script.feed(.drained)
        script.pass()
        #expect(script.outputs.last == .hangUp(failure: nil))
        #expect(script.said.last?.at == .milliseconds(25_250))

        script = Script(life: ProgramLife(startedAt: .zero, hasFallback: true))
        script.feed(.cannotStart("there is none"))
        #expect(script.outputs == [.fallBack("there is none")])
        script.feed(.callEnded)
        #expect(script.outputs.last == .done)
    }

    @Test("With a fallback, one that fails before it is ready is replaced by the fallback at once, and not restarted")
    func failsAtItsStart() {
        for timeout in [nil, Duration.seconds(5)] {
            var script = Script(life: ProgramLife(startedAt: .zero, answerTimeout: timeout, hasFallback: true))
            script.wait(.milliseconds(40))
            script.feed(.exited(.failed("exit code 1")))
            #expect(script.outputs == (timeout == nil ? [] : [.accept]) + [.fallBack("exit code 1")])
            #expect(script.said.last?.at == .milliseconds(40) && !script.life.isRestarting)
        }
    }

    @Test("With a fallback, one that was ready is restarted once, and has a second to become ready again")
    func failsLater() {
        func failing() -> Script {
            var script = Script(life: ProgramLife(startedAt: .zero, answerTimeout: .seconds(5), hasFallback: true))
            script.feed(.stood)
            script.wait(.seconds(3))
            script.feed(.exited(.failed("exit code 1")))
            #expect(script.outputs == [.accept, .silence] && script.life.isRestarting)
            script.pass()
            #expect(script.said.last?.output == .start(restart: 1) && script.said.last?.at == .milliseconds(3_250))
            return script
        }
        // It does not stand.
        var script = failing()
        script.pass()
        #expect(script.outputs.suffix(2) == [.kill, .fallBack("exit code 1")] && script.said.last?.at == .seconds(4))
        // It stands, and fails again.
        script = failing()
        script.feed(.stood)
        #expect(script.life.nextDeadline == nil)
        script.wait(.seconds(2))
        script.feed(.exited(.failed("exit code 2")))
        #expect(script.outputs.last == .fallBack("exit code 2") && script.said.last?.at == .milliseconds(5_250))
        // Its call ends before that: then there is nothing to fall back from.
        script = failing()
        script.feed(.callEnded)
        script.pass()
        script.feed(.exited(.failed("exit code 4")))
        #expect(script.outputs.last == .done && !script.outputs.contains(.fallBack("exit code 1")))
        // It stands, and after a good run it is restarted once more.
        script = failing()
        script.feed(.stood)
        script.wait(ProgramLife.goodRun)
        script.feed(.exited(.failed("exit code 3")))
        #expect(script.outputs.last == .silence)
    }

    @Test("A program reads when it has read what was written for it, and not when nothing could be written")
    func reads() {
        var input = InputProgress()
        input.wrote(nil)
        input.note(unread: 0)
        input.wrote(0)
        input.note(unread: 0)
        #expect(!input.isReading, "its process has ended")
        input.wrote(640)
        input.note(unread: 640)
        #expect(!input.isReading)
        input.note(unread: 0)
        #expect(input.isReading)
    }

    @Test("Of a flood of lines ten a second get through, and those left out are counted")
    func logLimit() {
        var limit = LogLimit()
        var (passed, leftOut) = (0, 0)
        for millisecond in 0..<5_000 {
            guard let count = limit.admit(at: Instant(nanoseconds: Int64(millisecond) * 1_000_000)) else { continue }
            passed += 1
            leftOut += count
        }
        #expect((95...105).contains(passed))
        leftOut += limit.admit(at: Instant(nanoseconds: 6_000_000_000)) ?? 0
        #expect(passed + leftOut == 5_000)
    }
}
