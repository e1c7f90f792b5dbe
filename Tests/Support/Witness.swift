public import Core

/// What a thread that sleeps 5 ms at a time learns of the machine: how late it was woken at the worst.
///
/// A stall that delays this thread delays every thread of the test, so a window of real time that was missed beside a stall says
/// nothing about the code under test. CONTRIBUTING.md has the arithmetic.
public struct Witness: Equatable, Sendable {
    /// How long the thread sleeps at a time.
    public static let period = Duration.milliseconds(5)

    private var sleepsSince: Instant
    private var worst = Duration.zero

    /// Starts watching.
    public init(at now: Instant) { sleepsSince = now }

    /// The thread was woken.
    public mutating func wake(at now: Instant) {
        worst = worstDelay(at: now)
        sleepsSince = now
    }

    /// The longest delay so far. A wake-up that is overdue counts, because the machine may still be stalled.
    public func worstDelay(at now: Instant) -> Duration {
        max(worst, sleepsSince.duration(to: now) - Self.period)
    }

    /// The longest stall that a window is held with.
    ///
    /// - Parameter slack: How much later than on a quiet machine an event may come before the window is missed.
    ///
    /// An event in a test crosses at most four threads one after another, such as sender, receiver, program and test, and a stall may
    /// delay each of them. The witness misses up to 5 ms of a stall, because it may begin while the thread sleeps.
    public static func longestStall(slack: Duration) -> Duration { max(.zero, slack / 4 - period) }
}

/// Decides what the failures of a test with windows of real time mean: up to three attempts, judged by their worst delays.
public struct WitnessedRun: Equatable, Sendable {
    /// What follows an attempt.
    public enum Verdict: Equatable, Sendable {
        /// The attempt counts, whether the test passed or failed.
        case counts
        /// Failures were withheld; the test runs again.
        case again
        /// Failures were withheld in every attempt: the machine was never quiet.
        case tooBusy
    }

    /// How often a test runs at most.
    public static let mostAttempts = 3

    /// The longest stall with which a failure counts.
    public let longestStall: Duration
    /// Worst delays of the attempts whose failures were withheld.
    public private(set) var worstDelays: [Duration] = []

    /// Starts a run without attempts.
    public init(longestStall: Duration) { self.longestStall = longestStall }

    /// Whether a failure counts that occurs when the worst delay of its attempt is `worstDelay`.
    public func counts(failureBeside worstDelay: Duration) -> Bool { worstDelay <= longestStall }

    /// Ends an attempt.
    ///
    /// - Parameter isWithheld: Whether its failures were withheld, because they occurred beside a stall.
    public mutating func endAttempt(isWithheld: Bool, worstDelay: Duration) -> Verdict {
        guard isWithheld else { return .counts }
        worstDelays.append(worstDelay)
        return worstDelays.count < Self.mostAttempts ? .again : .tooBusy
    }

    /// The witness' figures: "woken 83 ms, 121 ms late, with up to 20 ms allowed".
    public var figures: String {
        "woken \(worstDelays.map(\.text).joined(separator: ", ")) late, with up to \(longestStall.text) allowed"
    }
}
