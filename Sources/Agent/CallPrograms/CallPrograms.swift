// CallPrograms: programs that take part in calls: their processes, and the thread that moves their sound and their lines.

public import AudioPort
internal import Glibc
public import Realtime
internal import Synchronization
internal import Core
public import VoiceActivity

/// How a program is started, and the format of its sound.
public struct ProgramPlan: Sendable, Equatable {
    /// The program, and its arguments. There is no shell.
    public var command: [String]
    /// Both ways.
    public var format: PortFormat
    /// Whether the caller's speech interrupts the program here; nil if nobody follows who speaks.
    public var bargeIn: BargeInMode?
    /// How long a call that comes in waits until the program reads, or says something.
    public var answerTimeout = Duration.seconds(5)
    /// A WAV or Ogg Opus file, up to a minute, that callers hear once if the program fails.
    public var fallback: String?
    /// Variables of this process that hold its secrets, and that the program does not inherit.
    public var withheldVariables: Set<String> = []
    /// Variables that it inherits although they are withheld, because it needs them.
    public var environment: [String] = []

    /// Makes a plan.
    public init(command: [String], format: PortFormat = PortFormat(), bargeIn: BargeInMode? = nil) {
        self.command = command
        self.format = format
        self.bargeIn = bargeIn
    }
}

/// Lines that a program writes.
public enum ProgramStream: Sendable, Equatable {
    /// On standard error.
    case log
    /// On descriptor 3.
    case commands
}

/// Events of programs for their device.
public enum ProgramNews: Sendable, Equatable {
    /// The program takes part: a call that waits for it can be accepted.
    case stands(call: UInt64)
    /// The program does not want the call that waits for it.
    case declined(call: UInt64)
    /// The call that waits for the program cannot be accepted, for a reason as text.
    case refused(call: UInt64, String)
    /// The program has failed, for a reason as text; the caller hears the fallback, and then the call is to end.
    case fellBack(call: UInt64, String)
    /// Something is wrong around programs: for the log.
    case warned(String)
    /// A line for the log, and how many before it were left out because there were too many.
    case said(call: UInt64, String, leftOut: Int)
    /// The process failed, with the reason as text; it is restarted if `isRestarted`.
    case failed(call: UInt64, String, isRestarted: Bool)
    /// A command of the program is not understood, or cannot be carried out: for the log, with limited frequency.
    case misunderstood(call: UInt64, String)
    /// The program does not read the caller's sound, or its events, fast enough; reported once for each process.
    case behind(call: UInt64, events: Bool)
    /// The program writes this faster than it is read, and what it writes is dropped until it no longer does; reported once for each
    /// process.
    case flooded(call: UInt64, ProgramStream)
    /// So many bytes of a process that has ended were dropped.
    case dropped(call: UInt64, ProgramStream, bytes: Int)
    /// The program wants keys pressed.
    case press(call: UInt64, keys: String)
    /// The program wants the call's peer to call this user, any text, in the device's place.
    case transfer(call: UInt64, to: String)
    /// Who speaks has changed, and how turns were taken so far.
    case turn(call: UInt64, TurnNews, TurnSummary)
    /// The call is to end: the program has said all that it wanted, or has failed too often.
    case hangUp(call: UInt64, failure: String?)
    /// The program that took part in the call has left it: what comes of the call after this, but for the log, is another's.
    case left(call: UInt64)
}

/// The programs of a device's calls, each with its own process, and one thread for all of them.
///
/// Nothing that a program does makes another, or a media worker, wait: no descriptor blocks, and what a program does not take is
/// dropped and counted. All methods may be called from any thread.
public final class CallPrograms: Sendable {
    private let signal: PortSignal
    private let publish: @Sendable (ProgramNews) -> Void
    private let inbox = Mutex(Inbox())
    private let thread = Mutex<RealtimeThread?>(nil)
    private let fallback = Mutex(Fallback())
    /// The lines of programs whose calls' media has not started.
    private let lines = Mutex<[UInt64: HeldLine]>([:])

    /// The fallback that was read last.
    private struct Fallback {
        var path: String?
        var sound: FallbackSound?
    }

    private final class HeldLine: Sendable {
        let line: Mutex<PortLine?>

        init(_ line: consuming PortLine) { self.line = Mutex(line) }
    }

    private struct Inbox {
        var items: [Item] = []
        var isFinished = false
    }

    /// In their order: a call's next program begins when the one before it was told to end.
    private enum Item {
        case begun(ProgramRun)
        case input(UInt64, ProgramRun.Input)
    }

    /// Prepares for programs, and reads the fallback; the thread starts with the first. A file that cannot be read is told as
    /// ``ProgramNews/warned(_:)``.
    ///
    /// - Parameter publish: Is told what programs want and do, on the programs' thread.
    public init(_ plan: ProgramPlan, publish: @escaping @Sendable (ProgramNews) -> Void) throws(RealtimeError) {
        signal = try PortSignal()
        self.publish = publish
        _ = fallback(of: plan)
    }

    /// Starts a program for a call.
    ///
    /// - Parameters:
    ///   - call: The unique number of the call, which events and ``end(call:reason:)`` use.
    ///   - peer: Who is at the other end.
    ///   - isAnswered: Whether the call does not wait for the program. Otherwise ``ProgramNews/stands(call:)``,
    ///     ``ProgramNews/declined(call:)`` or ``ProgramNews/refused(call:_:)`` follows.
    /// - Throws: ``ProgramStartError`` if there is no such program, or the system has no room for one more, and there is no
    ///   fallback.
    public func begin(
        _ plan: ProgramPlan, call: UInt64, peer: String, isOutgoing: Bool, isAnswered: Bool
    ) throws(ProgramStartError) {
        let pair = AudioPort.pair(rate: plan.format.rate, signal: signal, turns: plan.bargeIn.map(TurnPlan.init))
        let run = try ProgramRun(
            plan, .init(call: call, peer: peer, isOutgoing: isOutgoing, isAnswered: isAnswered),
            fallback: fallback(of: plan), port: pair.port, at: MonotonicClock.now, publish: publish)
        do throws(RealtimeError) {
            try startIfNeeded()
        } catch {
            run.abort()
            throw ProgramStartError(description: "\(error)")
        }
        let held = HeldLine(pair.line)
        lines.withLock { $0[call] = held }
        inbox.withLock { $0.items.append(.begun(run)) }
        signal.signal()
    }

    /// The line of a call's program for its media worker, once; nil if the call has none, or the program has left it.
    public func attach(call: UInt64) -> PortLine? {
        lines.withLock { $0.removeValue(forKey: call) }?.line.withLock { $0.take() }
    }

    /// The plan's fallback. A file that was read is read again only after another one, as after a reload.
    private func fallback(of plan: ProgramPlan) -> FallbackSound? {
        fallback.withLock { fallback in
            guard let path = plan.fallback else { return nil }
            guard fallback.path != path else { return fallback.sound }
            fallback.path = path
            do throws(FallbackSound.Unusable) {
                fallback.sound = try FallbackSound(path: path)
            } catch {
                fallback.sound = nil
                publish(.warned("\(error)"))
            }
            return fallback.sound
        }
    }

    /// The caller has pressed a telephone key.
    public func sendDigit(_ digit: Character, heldMilliseconds: Int, to call: UInt64) {
        send(.digit(digit, heldMilliseconds), to: call)
    }

    /// What the program asked for was not done; it and, once in a while, the log are told why.
    public func refuse(call: UInt64, _ why: String) { send(.refused(why), to: call) }

    /// How a transfer goes that the call's peer was asked for: to whom, and one of `trying`, `ringing`, `accepted`, `failed`, `refused`.
    public func sendTransfer(to target: String, state: String, to call: UInt64) {
        send(.transfer(target, state), to: call)
    }

    /// What a call's program has written so far is played, and then ``ProgramNews/hangUp(call:failure:)`` follows.
    public func hearOut(call: UInt64) { send(.hearOut, to: call) }

    /// The call is over, or its program leaves it; the program has a second to end by itself. ``ProgramNews/left(call:)`` follows,
    /// also if the call has none.
    public func end(call: UInt64, reason: String) {
        lines.withLock { $0[call] = nil }
        send(.end(reason), to: call)
    }

    /// Ends all programs, and waits until they have ended: at most 0.5 s.
    public func finish() {
        inbox.withLock { $0.isFinished = true }
        signal.signal()
        thread.withLock { thread in
            thread?.join()
            thread = nil
        }
    }

    private func send(_ input: ProgramRun.Input, to call: UInt64) {
        // Before the first program nobody reads what is sent, and no call has one.
        guard thread.withLock({ $0 != nil }) else {
            if case .end = input { publish(.left(call: call)) }
            return
        }
        inbox.withLock { $0.items.append(.input(call, input)) }
        signal.signal()
    }

    private func startIfNeeded() throws(RealtimeError) {
        try thread.withLock { thread throws(RealtimeError) in
            guard thread == nil else { return }
            thread = try RealtimeThread(name: "programs") { [self] in run() }
        }
    }

    // MARK: The thread

    private func run() {
        // A program that closes its end must not end us.
        var pipes = sigset_t()
        unsafe sigemptyset(&pipes)
        unsafe sigaddset(&pipes, SIGPIPE)
        unsafe pthread_sigmask(SIG_BLOCK, &pipes, nil)
        // Of a call only the last takes part in it.
        var runs: [ProgramRun] = []
        while true {
            wait(for: runs)
            let now = MonotonicClock.now
            let news = inbox.withLock { inbox in
                defer { inbox.items = [] }
                return inbox
            }
            for item in news.items {
                switch item {
                case .begun(let run): runs.append(run)
                case .input(let call, let input):
                    runs.last { $0.call == call }?.handle(input, at: now)
                    if case .end = input { publish(.left(call: call)) }
                }
            }
            if news.isFinished { for run in runs { run.handle(.stop, at: now) } }
            for run in runs { run.tick(at: now) }
            runs.removeAll(where: \.isDone)
            if news.isFinished, runs.isEmpty { return }
        }
    }

    /// Waits for a frame of a call, for data of a program, for a message to one, or for a deadline.
    private func wait(for runs: [ProgramRun]) {
        let now = MonotonicClock.now
        var counts: [Int] = []
        var watched = [pollfd(fd: signal.descriptor, events: Int16(POLLIN), revents: 0)]
        for run in runs {
            let descriptors = run.watched(at: now)
            counts.append(descriptors.count)
            for descriptor in descriptors {
                watched.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
            }
        }
        // Without programs there is nothing to do. Their deadlines are no closer than this, but for descriptors that rest.
        let rest = runs.compactMap(\.watchesMoreAt).min().map {
            max(1, Int32(now.duration(to: $0).milliseconds.rounded(.up)))
        }
        let milliseconds: Int32 = runs.isEmpty ? -1 : min(20, rest ?? 20)
        _ = unsafe poll(&watched, nfds_t(watched.count), milliseconds)
        if watched[0].revents != 0 { signal.clear() }
        var index = 1
        for (run, count) in zip(runs, counts) {
            run.readiness = watched[index..<index + count].map { $0.revents != 0 }
            index += count
        }
    }
}
