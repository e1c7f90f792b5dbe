import Synchronization
public import Testing

/// Holds a test's windows of real time hard if the machine did not stall, and runs the test again otherwise.
///
/// A failure counts at once unless the witness was woken later than `longestStall` during the attempt. Failures beside such a stall are
/// withheld, and the test runs again, three times at most. A test whose failures were withheld every time fails as "machine too busy",
/// with the witness' figures and what failed last. A time limit is not withheld: it applies to all attempts together.
public struct WitnessTrait: TestTrait, SuiteTrait, TestScoping {
    /// The longest stall with which a failure counts.
    public let longestStall: Duration
    private let watch: @Sendable () -> any MachineWatch
    private let identity = Identity()

    private final class Identity: Sendable {}

    init(longestStall: Duration, watch: @escaping @Sendable () -> any MachineWatch) {
        (self.longestStall, self.watch) = (longestStall, watch)
    }

    /// Each test of a suite is judged by itself.
    public var isRecursive: Bool { true }

    /// Runs one test case, again where its failures are withheld.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        // A test's own slack applies in place of its suite's.
        let innermost = test.traits.last { $0 is Self } as? Self
        guard innermost?.identity === identity else { return try await function() }
        try await attempt(at: test.sourceLocation) {
            try await $0.provideScope(for: test, testCase: testCase, performing: function)
        }
    }

    /// Runs `body`, which is given what handles its issues, until an attempt counts.
    func attempt(
        at location: SourceLocation, _ body: (IssueHandlingTrait) async throws -> Void
    ) async throws {
        var run = WitnessedRun(longestStall: longestStall)
        while true {
            let attempt = Attempt(run, watch())
            do {
                try await body(.compactMapIssues { attempt.judge($0) })
            } catch {
                // A test is cancelled when its time limit has passed, and when it is skipped.
                guard !Task.isCancelled, attempt.withhold(error) else {
                    if let withheld = attempt.end().withheld { Issue.record("\(withheld)", sourceLocation: location) }
                    throw error
                }
            }
            let (withheld, worstDelay) = attempt.end()
            switch run.endAttempt(isWithheld: withheld != nil, worstDelay: worstDelay) {
            case .counts: return
            case .again where !Task.isCancelled:
                Issue.record(
                    "again, because the witness was \(run.figures); withheld: \(withheld ?? "")", severity: .warning,
                    sourceLocation: location)
            case .again, .tooBusy:
                Issue.record(
                    "machine too busy: in \(run.worstDelays.count) attempts the witness was \(run.figures); the last failure: \(withheld ?? "")",
                    sourceLocation: location)
                return
            }
        }
    }

    /// The failures of one attempt.
    private final class Attempt: Sendable {
        private struct State {
            var hasFailed = false
            var withheld: [String] = []
        }

        private let run: WitnessedRun
        private let watch: any MachineWatch
        private let state = Mutex(State())

        init(_ run: WitnessedRun, _ watch: any MachineWatch) { (self.run, self.watch) = (run, watch) }

        /// The issue if it counts, and nil if it is withheld.
        func judge(_ issue: Issue) -> Issue? {
            guard issue.isFailure else { return issue }
            let place = issue.sourceLocation.map { "\($0): " } ?? ""
            return withholds("\(place)\(issue)") ? nil : issue
        }

        /// Whether an error that ended the attempt is withheld.
        func withhold(_ error: any Error) -> Bool {
            // An expectation has recorded its issue before it threw.
            if error is ExpectationFailedError { return state.withLock { !$0.hasFailed } }
            return withholds("\(error)")
        }

        private func withholds(_ failure: String) -> Bool {
            let counts = run.counts(failureBeside: watch.worstDelay)
            return state.withLock { state in
                if counts { state.hasFailed = true }
                // A test that has failed runs no more, so all its failures are shown.
                guard !state.hasFailed else { return false }
                state.withheld.append(failure)
                return true
            }
        }

        /// The failures that were withheld, nil if there are none, and the attempt's worst delay.
        func end() -> (withheld: String?, worstDelay: Duration) {
            let withheld = state.withLock { $0.withheld }
            return (withheld.isEmpty ? nil : withheld.joined(separator: "; "), watch.worstDelay)
        }
    }
}

extension Trait where Self == WitnessTrait {
    /// Windows of real sound: a frame may come 100 ms late, so failures beside a stall of more than 20 ms are withheld.
    public static var witnessed: Self { witnessed(slack: .milliseconds(100)) }

    /// Windows whose events may come `slack` later than on a quiet machine.
    public static func witnessed(slack: Duration) -> Self {
        WitnessTrait(longestStall: Witness.longestStall(slack: slack)) { WitnessThread.shared.watch() }
    }
}
