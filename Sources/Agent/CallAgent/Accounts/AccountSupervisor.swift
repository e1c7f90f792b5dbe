// Accounts: several accounts in one process. Each has a device, which is started again by itself when it ends.

internal import CallControl
public import Core

/// Decides when the device of each account is started, and what becomes of an account that fails, is changed or is removed.
///
/// An account whose device fails is started again after a wait that doubles from failure to failure; the others do not notice. The
/// process counts as started once every account has been tried, or after ``readyPatience``.
public struct AccountSupervisor: ProtocolCore, Sendable {
    /// What an account is called.
    public typealias Name = String

    /// What happens.
    public enum Input: Hashable, Sendable {
        /// There is an account of this name now. Of one that is there already nothing changes.
        case add(Name)
        /// The account has other settings, which need another device.
        case change(Name)
        /// There is no such account any more.
        case remove(Name)
        /// The account's device can be called.
        case connected(Name)
        /// The account's device could not be made or log in, and has ended.
        case failed(Name)
        /// The account's device has lost its login for good, and still runs.
        case lost(Name)
        /// What the last attempt failed of may be over: the next one need not wait.
        case retry(Name)
        /// The account's device has ended after ``Output/end(_:)``.
        case ended(Name)
        /// The process ends: no device is started any more.
        case stop
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    /// What is to be done.
    public enum Output: Hashable, Sendable {
        /// Make the account's device and connect it: ``Input/connected(_:)`` or ``Input/failed(_:)`` follows.
        case start(Name)
        /// Take no more calls for the account, let the present ones continue for a while, and end its device.
        case end(Name)
        /// The account is gone, and may be forgotten.
        case forget(Name)
        /// The account is tried again after this time; the number counts its failures in a row.
        case wait(Name, Duration, failures: Int)
        /// Every account has been tried once, or has had time for it. Comes once.
        case ready
    }

    /// Where an account is.
    public enum State: Hashable, Sendable {
        /// Its device is made and logs in, after `failures` failures in a row.
        case starting(failures: Int)
        /// Its device can be called, or tries to be.
        case running(since: Instant)
        /// It has failed, and is tried again.
        case waiting(until: Instant, failures: Int)
        /// Its device is about to end, and then another one is started, or none.
        case ending(Sequel, failures: Int)
    }

    /// What follows the end of a device.
    public enum Sequel: Hashable, Sendable {
        case start, wait, forget
    }

    /// The first wait; each failure doubles it.
    public static let shortestWait = Duration.seconds(2)
    /// No wait is longer.
    public static let longestWait = Duration.seconds(300)
    /// The time after which a device counts as one that works: the next failure is the first again.
    public static let stableAfter = Duration.seconds(60)
    /// How long a service may take to answer before the process counts as started without it.
    public static let readyPatience = Duration.seconds(5)

    private var states: [Name: State] = [:]
    /// Accounts that have not been tried yet.
    private var untried: Set<Name> = []
    private var readyDeadline: Instant?
    private var isReady = false
    private var isStopping = false
    private var generator: SplitMix64

    /// Makes one without accounts.
    ///
    /// - Parameter seed: Of the spread of waits.
    public init(seed: UInt64) { generator = SplitMix64(seed: seed) }

    /// Where an account is; nil if there is none of this name.
    public func state(of name: Name) -> State? { states[name] }

    /// When something is to be done if nothing happens.
    public var nextDeadline: Instant? {
        let waits = states.values.compactMap { state -> Instant? in
            guard case .waiting(let until, _) = state, !isStopping else { return nil }
            return until
        }
        return (waits + [readyDeadline].compactMap(\.self)).min()
    }

    /// Takes what happens.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .add(let name): add(name, at: now, into: &outbox)
        case .change(let name): change(name, into: &outbox)
        case .remove(let name): remove(name, into: &outbox)
        case .connected(let name):
            if case .starting? = states[name] { states[name] = .running(since: now) }
            untried.remove(name)
        case .failed(let name):
            untried.remove(name)
            fail(name, at: now, into: &outbox)
        case .lost(let name): lose(name, at: now, into: &outbox)
        case .retry(let name):
            if case .waiting(_, let failures)? = states[name] { start(name, failures: failures, into: &outbox) }
        case .ended(let name): ended(name, at: now, into: &outbox)
        case .stop:
            isStopping = true
            readyDeadline = nil
        case .timerFired:
            if let readyDeadline, readyDeadline <= now { untried = [] }
            for (name, state) in states.sorted(by: { $0.key < $1.key }) {
                guard case .waiting(let until, let failures) = state, until <= now else { continue }
                start(name, failures: failures, into: &outbox)
            }
        }
        becomeReady(into: &outbox)
    }

    private mutating func add(_ name: Name, at now: Instant, into outbox: inout [Output]) {
        switch states[name] {
        case nil:
            if !isReady, !isStopping {
                untried.insert(name)
                readyDeadline = readyDeadline ?? now.advanced(by: Self.readyPatience)
            }
            start(name, failures: 0, into: &outbox)
        // It was removed and is there again.
        case .ending(.forget, _)?: states[name] = .ending(.start, failures: 0)
        case .starting?, .running?, .waiting?, .ending?: break
        }
    }

    private mutating func change(_ name: Name, into outbox: inout [Output]) {
        switch states[name] {
        case .starting?, .running?: end(name, then: .start, failures: 0, into: &outbox)
        case .waiting?: start(name, failures: 0, into: &outbox)
        case .ending(.forget, _)?, nil: break
        case .ending?: states[name] = .ending(.start, failures: 0)
        }
    }

    private mutating func remove(_ name: Name, into outbox: inout [Output]) {
        untried.remove(name)
        switch states[name] {
        case .starting?, .running?: end(name, then: .forget, failures: 0, into: &outbox)
        case .waiting?:
            states[name] = nil
            outbox.append(.forget(name))
        case .ending?: states[name] = .ending(.forget, failures: 0)
        case nil: break
        }
    }

    private mutating func lose(_ name: Name, at now: Instant, into outbox: inout [Output]) {
        guard case .running(let since)? = states[name] else { return }
        end(name, then: .wait, failures: Self.isStable(since, at: now) ? 0 : 1, into: &outbox)
    }

    private mutating func fail(_ name: Name, at now: Instant, into outbox: inout [Output]) {
        switch states[name] {
        case .starting(let failures)?: wait(name, failures: failures + 1, at: now, into: &outbox)
        case .running(let since)?:
            wait(name, failures: Self.isStable(since, at: now) ? 1 : 2, at: now, into: &outbox)
        // It failed after a request to end, and has ended now.
        case .ending?: ended(name, at: now, into: &outbox)
        case .waiting?, nil: break
        }
    }

    private mutating func ended(_ name: Name, at now: Instant, into outbox: inout [Output]) {
        guard case .ending(let sequel, let failures)? = states[name] else { return }
        switch sequel {
        case .start: start(name, failures: failures, into: &outbox)
        case .wait: wait(name, failures: failures + 1, at: now, into: &outbox)
        case .forget:
            states[name] = nil
            outbox.append(.forget(name))
        }
    }

    private mutating func start(_ name: Name, failures: Int, into outbox: inout [Output]) {
        guard !isStopping else { return }
        states[name] = .starting(failures: failures)
        outbox.append(.start(name))
    }

    private mutating func end(_ name: Name, then sequel: Sequel, failures: Int, into outbox: inout [Output]) {
        states[name] = .ending(sequel, failures: failures)
        outbox.append(.end(name))
    }

    private mutating func wait(_ name: Name, failures: Int, at now: Instant, into outbox: inout [Output]) {
        let longest = min(Self.longestWait, Self.shortestWait * (1 << min(failures - 1, 20)))
        // Between half of it and all: accounts that fail together are not tried together.
        let wait = longest * Double.random(in: 0.5...1, using: &generator)
        states[name] = .waiting(until: now.advanced(by: wait), failures: failures)
        if !isStopping { outbox.append(.wait(name, wait, failures: failures)) }
    }

    private mutating func becomeReady(into outbox: inout [Output]) {
        guard !isReady, readyDeadline != nil, untried.isEmpty else { return }
        isReady = true
        readyDeadline = nil
        outbox.append(.ready)
    }

    private static func isStable(_ since: Instant, at now: Instant) -> Bool { since.duration(to: now) >= stableAfter }
}
