internal import AudioPort
internal import Core

/// How a program's process has ended.
enum ProgramExit: Equatable, Sendable {
    /// With exit code 0: it has said all that it wanted to say.
    case finished
    /// With another code, by a signal, or it could not be started; as text.
    case failed(String)
}

/// The life of one program in one call: when the call is accepted, when the program is restarted, when the call ends because of
/// it, and how it is ended.
///
/// An incoming call is accepted when its program is ready: when it has read the first of the caller's sound, or has written
/// sound. If it is not ready in time, or fails too often, the call is refused, or hears the fallback if there is one. A program
/// that is done before it is ready declines the call.
///
/// A program that ends with exit code 0 ends the call once all its sound is played. One that fails is restarted after a
/// delay that doubles; the caller hears silence meanwhile. After ``mostRestarts`` the call ends. After a run of one
/// minute all restarts are available again. After the end of the call, the program has a second to end by itself.
///
/// With a fallback callers do not wait through that: the fallback follows at once on a process that fails before it is ready. One
/// that was ready is restarted once, and has ``fallbackDelay`` until it is ready again.
struct ProgramLife: ProtocolCore, Sendable {
    enum Input: Equatable, Sendable {
        /// The process is gone.
        case exited(ProgramExit)
        /// There is no process, and there will be none.
        case cannotStart(String)
        /// The program has read, or said something.
        case stood
        /// The program wants the call to end.
        case asksToHangUp
        /// All was played that was to be, see ``Output/drain``.
        case drained
        /// The caller hears something else, such as a file, and what the program has said waits.
        case suspended
        case callEnded
        /// The device stops, and waits for it.
        case stop
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    enum Output: Equatable, Sendable {
        /// Start the process; the value counts restarts.
        case start(restart: Int)
        /// The call can be accepted.
        case accept
        /// The call is to be declined, as the program wants it.
        case decline
        /// The call cannot be accepted.
        case refuse(String)
        /// Play the fallback in place of the program; ``Input/drained`` follows at its end.
        case fallBack(String)
        /// Discard what the process that failed has said.
        case silence
        /// Report when all that the program has written is played; what it writes from now on does not count.
        case drain
        /// End the call; with a reason if it is the program's failure.
        case hangUp(failure: String?)
        /// Close the program's input.
        case close
        /// Ask the process and all that it started to end (SIGTERM).
        case terminate
        /// End them (SIGKILL).
        case kill
        /// The program's part has ended.
        case done
    }

    static let mostRestarts = 5
    static let firstDelay = Duration.milliseconds(250)
    /// From the failure of a process that was ready to the fallback, unless its successor gets ready.
    static let fallbackDelay = Duration.seconds(1)
    /// The duration of a run after which all restarts are available again.
    static let goodRun = Duration.seconds(60)
    /// A queue and a full pipe of the slowest format last some 9 s.
    static let drainLimit = Duration.seconds(15)
    /// The last packets are still on their way, or in the peer's jitter buffer.
    static let lastWord = Duration.milliseconds(250)
    /// The longest fallback, and the time for which a last word may wait.
    static let fallbackLimit = Duration.seconds(FallbackSound.capacity / 48_000) + drainLimit
    /// The time for a program to end by itself, and then after SIGTERM.
    static let grace = (atOnce: Duration.seconds(1), asked: Duration.seconds(2), stopping: Duration.milliseconds(400))

    private enum State {
        case running(restarts: Int, since: Instant)
        case waiting(restarts: Int, until: Instant)
        /// Until all that was said is played.
        case draining(isAlive: Bool, until: Instant)
        case lingering(isAlive: Bool, until: Instant)
        /// The fallback is played.
        case fallingBack(isAlive: Bool, until: Instant)
        /// The device was asked to end the call.
        case hangingUp(isAlive: Bool)
        /// The call has ended and the process has not.
        case ending(Ending, until: Instant?)
        case over
    }

    private enum Ending {
        case closed, terminated, killed
    }

    private var state: State
    private let hasFallback: Bool
    /// How long the program may take until it is ready; nil if the call was accepted without it.
    private let answerTimeout: Duration?
    /// The deadline for getting ready; nil once the call is accepted or refused.
    private var standsBy: Instant?
    /// Whether the process that runs has stood.
    private var hasStood = false
    /// When the fallback takes the place of a failed process, and how that failed.
    private var fallsBack: (at: Instant, why: String)?
    /// How the last process that failed did so.
    private var lastFailure: String?

    /// A program whose process has just been started.
    ///
    /// - Parameter answerTimeout: How long the call waits for it; nil for an accepted call.
    init(startedAt now: Instant, answerTimeout: Duration? = nil, hasFallback: Bool = false) {
        state = .running(restarts: 0, since: now)
        self.answerTimeout = answerTimeout
        self.hasFallback = hasFallback
        standsBy = answerTimeout.map { now.advanced(by: $0) }
    }

    var nextDeadline: Instant? {
        switch state {
        case .running: [standsBy, fallsBack?.at].compactMap { $0 }.min()
        case .waiting(_, let until): [standsBy, fallsBack?.at].compactMap { $0 }.reduce(until, min)
        case .hangingUp, .over: nil
        case .draining(_, let until), .lingering(_, let until), .fallingBack(_, let until): until
        case .ending(_, let until): until
        }
    }

    /// Whether the call waits for the program to get ready.
    var isAwaited: Bool { standsBy != nil }

    /// Whether readiness of the process still has an effect.
    var isToStand: Bool {
        guard case .running = state else { return false }
        return !hasStood
    }

    /// Whether a process that failed will be restarted.
    var isRestarting: Bool { if case .waiting = state { true } else { false } }

    mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .exited(let exit): noteExit(exit, at: now, into: &outbox)
        case .cannotStart(let why): fail(why, isAlive: false, at: now, into: &outbox)
        case .stood:
            guard case .running = state else { return }
            hasStood = true
            fallsBack = nil
            accept(into: &outbox)
        case .asksToHangUp:
            guard case .running = state else { return }
            drain(isAlive: true, at: now, into: &outbox)
        case .drained:
            switch state {
            case .draining(let isAlive, _), .fallingBack(let isAlive, _):
                state = .lingering(isAlive: isAlive, until: now.advanced(by: Self.lastWord))
            case .running, .waiting, .lingering, .hangingUp, .ending, .over: break
            }
        case .suspended:
            switch state {
            case .draining(let isAlive, _):
                state = .draining(isAlive: isAlive, until: now.advanced(by: Self.drainLimit))
            case .fallingBack(let isAlive, _):
                state = .fallingBack(isAlive: isAlive, until: now.advanced(by: Self.fallbackLimit))
            case .running, .waiting, .lingering, .hangingUp, .ending, .over: break
            }
        case .callEnded: end(at: now, into: &outbox)
        case .stop:
            standsBy = nil
            guard isAlive else { return finish(into: &outbox) }
            if case .ending(.terminated, _) = state { return }
            if case .ending(.killed, _) = state { return }
            outbox.append(.terminate)
            state = .ending(.terminated, until: now.advanced(by: Self.grace.stopping))
        case .timerFired:
            if let deadline = nextDeadline, now >= deadline { timeOut(at: now, into: &outbox) }
        }
    }

    /// Whether the program takes part in the call, and its end was not requested.
    var isRunning: Bool {
        switch state {
        case .running: true
        case .waiting, .draining, .lingering, .fallingBack, .hangingUp, .ending, .over: false
        }
    }

    private var isAlive: Bool {
        switch state {
        case .running, .ending: true
        case .draining(let isAlive, _), .lingering(let isAlive, _), .fallingBack(let isAlive, _),
            .hangingUp(let isAlive):
            isAlive
        case .waiting, .over: false
        }
    }

    private mutating func noteExit(_ exit: ProgramExit, at now: Instant, into outbox: inout [Output]) {
        switch state {
        case .running(let restarts, let since): noteExit(exit, restarts, since, at: now, into: &outbox)
        case .draining(_, let until): state = .draining(isAlive: false, until: until)
        case .lingering(_, let until): state = .lingering(isAlive: false, until: until)
        case .fallingBack(_, let until): state = .fallingBack(isAlive: false, until: until)
        case .hangingUp: state = .hangingUp(isAlive: false)
        case .ending: finish(into: &outbox)
        case .waiting, .over: break
        }
    }

    private mutating func noteExit(
        _ exit: ProgramExit, _ restarts: Int, _ since: Instant, at now: Instant, into outbox: inout [Output]
    ) {
        switch exit {
        case .finished: drain(isAlive: false, at: now, into: &outbox)
        case .failed(let how):
            lastFailure = how
            let before = since.duration(to: now) >= Self.goodRun ? 0 : restarts
            let isLast = hasFallback ? before > 0 || !hasStood : before >= Self.mostRestarts
            guard !isLast else { return fail(how, isAlive: false, at: now, into: &outbox) }
            if hasFallback { fallsBack = (now.advanced(by: Self.fallbackDelay), how) }
            outbox.append(.silence)
            state = .waiting(restarts: before + 1, until: now.advanced(by: Self.firstDelay * (1 << before)))
        }
    }

    private mutating func accept(into outbox: inout [Output]) {
        guard isAwaited else { return }
        standsBy = nil
        outbox.append(.accept)
    }

    /// The program will take no part in the call.
    private mutating func fail(_ why: String, isAlive: Bool, at now: Instant, into outbox: inout [Output]) {
        fallsBack = nil
        if hasFallback {
            accept(into: &outbox)
            // The fallback takes its place for the rest of the call.
            if isAlive { outbox.append(.kill) }
            outbox.append(.fallBack(why))
            state = .fallingBack(isAlive: isAlive, until: now.advanced(by: Self.fallbackLimit))
        } else {
            outbox.append(isAwaited ? .refuse(why) : .hangUp(failure: why))
            standsBy = nil
            state = .hangingUp(isAlive: isAlive)
        }
    }

    /// The program is done: it is heard out. One whose call was not accepted declines it.
    private mutating func drain(isAlive: Bool, at now: Instant, into outbox: inout [Output]) {
        guard !isAwaited else {
            standsBy = nil
            outbox.append(.decline)
            state = .hangingUp(isAlive: isAlive)
            return
        }
        outbox.append(.drain)
        state = .draining(isAlive: isAlive, until: now.advanced(by: Self.drainLimit))
    }

    private mutating func end(at now: Instant, into outbox: inout [Output]) {
        switch state {
        case .over, .ending: return
        case .fallingBack(isAlive: true, _):
            // It was killed when the fallback began.
            state = .ending(.killed, until: nil)
            return
        case .running, .waiting, .draining, .lingering, .fallingBack, .hangingUp: break
        }
        standsBy = nil
        guard isAlive else { return finish(into: &outbox) }
        outbox.append(.close)
        state = .ending(.closed, until: now.advanced(by: Self.grace.atOnce))
    }

    private mutating func timeOut(at now: Instant, into outbox: inout [Output]) {
        if let (at, why) = fallsBack, now >= at {
            fallsBack = nil
            switch state {
            case .running, .waiting: return fail(why, isAlive: isAlive, at: now, into: &outbox)
            // The call, or the program's part in it, is about to end anyway.
            case .draining, .lingering, .fallingBack, .hangingUp, .ending, .over: break
            }
        }
        if let standsBy, let answerTimeout, now >= standsBy {
            let cause = lastFailure.map { "; its last run failed: \($0)" } ?? ""
            return fail(
                "it neither read the caller's sound nor sent any within \(answerTimeout.text)\(cause)",
                isAlive: isAlive, at: now, into: &outbox)
        }
        switch state {
        case .waiting(let restarts, _):
            state = .running(restarts: restarts, since: now)
            hasStood = false
            outbox.append(.start(restart: restarts))
        case .draining(let isAlive, _), .lingering(let isAlive, _), .fallingBack(let isAlive, _):
            state = .hangingUp(isAlive: isAlive)
            outbox.append(.hangUp(failure: nil))
        case .ending(.closed, _):
            state = .ending(.terminated, until: now.advanced(by: Self.grace.asked))
            outbox.append(.terminate)
        case .ending(.terminated, _):
            state = .ending(.killed, until: nil)
            outbox.append(.kill)
        case .running, .hangingUp, .ending(.killed, _), .over: break
        }
    }

    private mutating func finish(into outbox: inout [Output]) {
        if case .over = state { return }
        state = .over
        outbox.append(.done)
    }
}
