import Synchronization
import Testing
import Core

@testable import TestSupport

@Suite("The witness of stalls")
struct WitnessTests {
    private static func at(_ milliseconds: Double) -> Instant { Instant(nanoseconds: Int64(milliseconds * 1e6)) }

    @Test("The worst delay is that of the wake-up that came latest, and grows while one is overdue")
    func worstDelay() {
        var witness = Witness(at: Self.at(1_000))
        #expect(witness.worstDelay(at: Self.at(1_003)) == .zero)
        for time in [1_002.0, 1_007, 1_012, 1_024, 1_029] { witness.wake(at: Self.at(time)) }
        #expect(witness.worstDelay(at: Self.at(1_030)) == .milliseconds(7))
        #expect(witness.worstDelay(at: Self.at(1_041)) == .milliseconds(7))
        #expect(witness.worstDelay(at: Self.at(1_134)) == .milliseconds(100))
        witness.wake(at: Self.at(1_134))
        #expect(witness.worstDelay(at: Self.at(1_135)) == .milliseconds(100))
    }

    @Test(
        "A stall is too long if four threads that it delays, and the 5 ms of it that no thread saw, are more than the slack",
        arguments: [(100, 20), (300, 70), (1_000, 245), (20, 0), (0, 0)])
    func longestStall(slack: Int, stall: Int) {
        #expect(Witness.longestStall(slack: .milliseconds(slack)) == .milliseconds(stall))
    }

    @Test(
        "A failure beside no stall counts at once; beside a stall it is withheld, twice, and the third time is the end")
    func verdicts() {
        var run = WitnessedRun(longestStall: .milliseconds(20))
        #expect(run.counts(failureBeside: .milliseconds(20)) && !run.counts(failureBeside: .nanoseconds(20_000_001)))
        #expect(run.endAttempt(isWithheld: true, worstDelay: .milliseconds(83)) == .again)
        #expect(run.endAttempt(isWithheld: true, worstDelay: .milliseconds(21)) == .again)
        var quiet = run
        #expect(quiet.endAttempt(isWithheld: false, worstDelay: .milliseconds(500)) == .counts)
        #expect(run.endAttempt(isWithheld: true, worstDelay: .seconds(2)) == .tooBusy)
        #expect(run.figures == "woken 83 ms, 21 ms, 2 s late, with up to 20 ms allowed")
    }

    @Test("The thread watches while a test is watched, and ends with the last one", .timeLimit(.minutes(1)))
    func thread() async throws {
        var watch: (any MachineWatch)? = WitnessThread.shared.watch()
        #expect(WitnessThread.shared.isRunning)
        let before = try #require(watch).worstDelay
        try await until { watch?.worstDelay ?? .zero >= before }
        watch = nil
        try await until { !WitnessThread.shared.isRunning }
    }
}

/// The trait on a scripted machine.
@Suite("Tests that run again after a stall", .filterIssues { $0.isFailure })
struct WitnessTraitTests {
    /// A machine whose worst delays in attempt after attempt are known.
    private final class ScriptedMachine: Sendable {
        private struct Watch: MachineWatch { let worstDelay: Duration }
        private let delays: Mutex<[Duration]>

        init(_ delays: [Duration]) { self.delays = Mutex(delays) }

        func watch() -> any MachineWatch {
            Watch(worstDelay: delays.withLock { $0.isEmpty ? .zero : $0.removeFirst() })
        }
    }

    private struct Failure: Error {}

    private static func trait(_ delays: Duration...) -> WitnessTrait {
        let machine = ScriptedMachine(delays)
        return WitnessTrait(longestStall: .milliseconds(20)) { machine.watch() }
    }

    /// How often `body` runs under `trait`.
    private static func attempts(_ trait: WitnessTrait, _ body: @escaping @Sendable (Int) throws -> Void) async throws
        -> Int
    {
        let test = try #require(Test.current)
        let count = Mutex(0)
        try await trait.attempt(at: test.sourceLocation) { handler in
            try await handler.provideScope(for: test, testCase: Test.Case.current) {
                try body(
                    count.withLock {
                        $0 += 1; return $0
                    })
            }
        }
        return count.withLock { $0 }
    }

    @Test("A test that fails beside a stall runs again, and passes if it holds then")
    func again() async throws {
        let afterIssue = try await Self.attempts(Self.trait(.milliseconds(80), .zero)) { #expect($0 == 2) }
        #expect(afterIssue == 2)
        let afterError = try await Self.attempts(Self.trait(.milliseconds(80), .seconds(1), .zero)) {
            if $0 == 1 { throw Failure() }
            try #require($0 == 3)
        }
        #expect(afterError == 3)
    }

    @Test("A test that passes beside a stall has passed")
    func passes() async throws {
        let count = try await Self.attempts(Self.trait(.seconds(1))) { _ in }
        #expect(count == 1)
    }

    @Test("A failure on a quiet machine is recorded at once, and the test does not run again")
    func quiet() async throws {
        for delays in [[Duration.milliseconds(20)], [.milliseconds(80), .zero]] {
            let machine = ScriptedMachine(delays)
            let trait = WitnessTrait(longestStall: .milliseconds(20)) { machine.watch() }
            let recorded = Mutex(0)
            try await withKnownIssue {
                let count = try await Self.attempts(trait) { Issue.record("attempt \($0)") }
                #expect(count == delays.count)
            } matching: { issue in
                // Those that the trait is to withhold are none of these.
                let isWanted = issue.comments.first?.rawValue == "attempt \(delays.count)"
                if isWanted { recorded.withLock { $0 += 1 } }
                return isWanted
            }
            #expect(recorded.withLock { $0 } == 1)
        }
        await #expect(throws: Failure.self) {
            _ = try await Self.attempts(Self.trait(.zero)) { _ in throw Failure() }
        }
    }

    @Test(
        "A test that fails three times beside stalls fails as on a machine that is too busy, with figures and failure")
    func tooBusy() async throws {
        let failures = Mutex<[String]>([])
        try await withKnownIssue {
            let count = try await Self.attempts(Self.trait(.milliseconds(83), .milliseconds(121), .milliseconds(64))) {
                Issue.record("too little was heard, attempt \($0)")
                throw Failure()
            }
            #expect(count == 3)
        } matching: { issue in
            guard let text = issue.comments.first?.rawValue, text.hasPrefix("machine too busy") else { return false }
            failures.withLock { $0.append(text) }
            return true
        }
        let told = try #require(failures.withLock { $0.count == 1 ? $0.first : nil })
        for part in [
            "3 attempts", "83 ms, 121 ms, 64 ms late", "up to 20 ms", "too little was heard, attempt 3", "Failure",
        ] {
            #expect(told.contains(part), "\(part) in \(told)")
        }
    }

    private static let runs = Mutex(0)
    private static let stalledOnce = trait(.milliseconds(80), .zero)

    @Test("The runner runs a test with the trait again, as often as the trait asks for", stalledOnce)
    func applied() {
        #expect(
            Self.runs.withLock {
                $0 += 1; return $0
            } == 2)
    }

    private static let innerRuns = Mutex(0)

    /// A suite with the trait, and a test in it with its own.
    @Suite("A suite with the trait", WitnessTraitTests.stalls(.seconds(1)))
    struct OfSuite {
        @Test(
            "A test's own trait applies in place of its suite's",
            WitnessTraitTests.stalls(.milliseconds(30), of: .milliseconds(20)))
        func own() {
            #expect(
                WitnessTraitTests.innerRuns.withLock {
                    $0 += 1; return $0
                } == 2)
        }
    }

    /// A trait whose first attempt is beside a stall of that length.
    fileprivate static func stalls(_ delay: Duration, of longest: Duration = .milliseconds(10)) -> WitnessTrait {
        let machine = ScriptedMachine([delay])
        return WitnessTrait(longestStall: longest) { machine.watch() }
    }
}
