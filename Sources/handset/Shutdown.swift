internal import Glibc
internal import Realtime
internal import Synchronization
internal import Core
internal import ArgumentParser

/// What to do about a signal, apart from doing it.
struct ShutdownPolicy: Equatable, Sendable {
    enum Input: Equatable, Sendable {
        /// SIGINT or SIGTERM came.
        case signal
        /// The time for an orderly end has passed.
        case timeout
    }

    enum Action: Equatable, Sendable {
        /// Ask the command to end, and give it the time that it asked for.
        case askToEnd
        /// End the process at once.
        case exitNow
        case none
    }

    private var isEnding = false

    /// - Parameter canEnd: Whether the command knows how to end in order.
    mutating func handle(_ input: Input, canEnd: Bool) -> Action {
        switch (input, isEnding) {
        case (.signal, false):
            guard canEnd else { return .exitNow }
            isEnding = true
            return .askToEnd
        case (.signal, true), (.timeout, true): return .exitNow
        case (.timeout, false): return .none
        }
    }
}

/// SIGINT and SIGTERM: the first asks the command to end, the second ends the process, and so does time. SIGUSR1 is the
/// command's own, and so is SIGHUP if the command wants it; otherwise that is like SIGTERM.
///
/// The signals are blocked in every thread and taken by the first one, which waits for nothing else; so no code runs
/// inside a signal handler. (Were the first thread left to Dispatch, as an `async` main does, it would unblock them.)
enum Shutdown {
    /// The time that a command has for its orderly end, unless it asks for more.
    static let graceSeconds = 2

    /// What the running command does when it is asked to end, and how many seconds that may take.
    private static let ending = Mutex<(seconds: Int, end: @Sendable () -> Void)?>(nil)

    /// What the running command does about SIGUSR1.
    private static let userSignal = Mutex<(@Sendable () -> Void)?>(nil)

    /// What the running command does about SIGHUP, in place of its end.
    private static let hangUp = Mutex<(@Sendable () -> Void)?>(nil)

    /// Blocks the signals. Must come before any other thread is started, which then inherits it.
    static func blockSignals() {
        // Writing to a connection that is gone must be an error, not the end.
        _ = signal(SIGPIPE, SIG_IGN)
        // So must writing beyond the limit on file sizes: it ends a recording, not the process.
        _ = signal(SIGXFSZ, SIG_IGN)
        var signals = Self.signals
        unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Says what ends the command in order. `end` is called once, on the first thread, and must not block; the process
    /// has ``graceSeconds`` from then on, and as many more as it asks for.
    static func onFirstSignal(moreSeconds: Int = 0, _ end: @escaping @Sendable () -> Void) {
        ending.withLock { $0 = (graceSeconds + moreSeconds, end) }
    }

    /// Says what SIGUSR1 leads to; without this, nothing. `act` is called on the first thread, and must not block.
    static func onUserSignal(_ act: @escaping @Sendable () -> Void) {
        userSignal.withLock { $0 = act }
    }

    /// Says what SIGHUP leads to; without this, the end. `act` is called on the first thread, and must not block.
    static func onHangUp(_ act: @escaping @Sendable () -> Void) {
        hangUp.withLock { $0 = act }
    }

    private static var signals: sigset_t {
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe sigaddset(&signals, SIGINT)
        unsafe sigaddset(&signals, SIGTERM)
        unsafe sigaddset(&signals, SIGUSR1)
        unsafe sigaddset(&signals, SIGHUP)
        return signals
    }

    /// Waits for the signals as long as the process lives, and acts on them.
    static func watchSignals() -> Never {
        var policy = ShutdownPolicy()
        var signals = Self.signals
        var deadline: Int64?
        while true {
            let input = wait(for: &signals, until: deadline)
            guard let input else { continue }
            let ending = ending.withLock { $0 }
            switch policy.handle(input, canEnd: ending != nil) {
            case .askToEnd:
                deadline = MonotonicClock.now.nanoseconds + Int64(ending?.seconds ?? 0) * 1_000_000_000
                ending?.end()
            case .exitNow:
                LogOptions.finish(withinMilliseconds: 100)
                _exit(ExitStatus.interrupted.rawValue)
            case .none: break
            }
        }
    }

    /// - Parameter deadline: On the monotonic clock; `nil` waits for ever.
    /// - Returns: What to ask the policy about; `nil` if that is nothing.
    private static func wait(for signals: inout sigset_t, until deadline: Int64?) -> ShutdownPolicy.Input? {
        guard let deadline else {
            var number: Int32 = 0
            return unsafe sigwait(&signals, &number) == 0 ? input(from: number) : nil
        }
        let left = max(0, deadline - MonotonicClock.now.nanoseconds)
        var time = timespec()
        time.tv_sec = Int(left / 1_000_000_000)
        time.tv_nsec = Int(left % 1_000_000_000)
        let number = unsafe sigtimedwait(&signals, nil, &time)
        if number > 0 { return input(from: number) }
        return errno == EAGAIN ? .timeout : nil
    }

    private static func input(from number: Int32) -> ShutdownPolicy.Input? {
        switch number {
        case SIGUSR1: userSignal.withLock { $0 }?()
        case SIGHUP:
            guard let act = hangUp.withLock({ $0 }) else { return .signal }
            act()
        default: return .signal
        }
        return nil
    }
}

/// The options of a command whose calls may continue after SIGTERM.
struct DrainOptions: ParsableArguments {
    /// A day.
    private static let longestSeconds = 86_400

    @Option(
        help: """
            Seconds for which calls continue after SIGTERM, while new ones are refused as busy; with 0 they are hung up at \
            once. A second signal ends the process.
            """)
    var drain = 0

    func validate() throws {
        guard (0...Self.longestSeconds).contains(drain) else {
            throw ValidationError("--drain \(drain) is not a number of seconds from 0 to \(Self.longestSeconds).")
        }
    }
}
