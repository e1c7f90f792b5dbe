// CallPrograms: programs that take part in calls: their processes, and the thread that moves their sound and their lines.

public import AudioPort
public import CallControl
public import CallParticipation
internal import Glibc
public import Realtime
internal import Synchronization
internal import Core

/// How a program is started, and the format of its sound.
public struct ProgramPlan: Sendable, Equatable {
    /// The program, and its arguments. There is no shell.
    public var command: [String]
    /// Both ways.
    public var format: PortFormat
    /// Whether the caller's speech interrupts the program here; nil if speech is not detected.
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

/// The programs of a device's calls, each with its own process, and one thread for all of them.
///
/// Nothing that a program does makes another, or a media worker, wait: no descriptor blocks, and what a program does not take is
/// dropped and counted. All methods may be called from any thread.
public final class CallPrograms: CallParticipant {
    /// A program.
    public let kind = ParticipantKind.program
    /// Until it reads, or has said something.
    public let delaysAnswer = true
    private let signal: PortSignal
    private let publish: @Sendable (ParticipantEvent) -> Void
    private let plan: Mutex<ProgramPlan>
    private let inbox = Mutex(Inbox())
    private let thread = Mutex<RealtimeThread?>(nil)
    private let fallback = Mutex(Fallback())
    private let lines = HeldLines()

    /// The fallback that was read last.
    private struct Fallback {
        var path: String?
        var sound: FallbackSound?
    }

    private struct Inbox {
        var items: [Item] = []
        var isFinished = false
    }

    /// In their order: a call's next program begins after the end of the one before it was requested.
    private enum Item {
        case begun(ProgramRun)
        case input(CallID, ProgramRun.Input)
    }

    /// Prepares for programs, and reads the fallback; the thread starts with the first. A file that cannot be read is reported as
    /// ``ParticipantNotice/warned(_:leftOut:)``.
    ///
    /// - Parameter publish: Receives the events, on the programs' thread.
    public init(_ plan: ProgramPlan, publish: @escaping @Sendable (ParticipantEvent) -> Void) throws(RealtimeError) {
        signal = try PortSignal()
        self.publish = publish
        self.plan = Mutex(plan)
        _ = fallback(of: plan)
    }

    /// Applies another plan to programs that start from now on.
    public func adopt(_ plan: ProgramPlan) { self.plan.withLock { $0 = plan } }

    /// Starts a program for a call.
    ///
    /// - Throws: ``ProgramStartError`` if there is no such program, or the system has no room for one more, and there is no
    ///   fallback.
    public func begin(_ call: ParticipantCall) throws(ProgramStartError) {
        let plan = plan.withLock { $0 }
        let pair = AudioPort.pair(rate: plan.format.rate, signal: signal, turns: plan.bargeIn.map(TurnPlan.init))
        let run = try ProgramRun(
            plan, call, fallback: fallback(of: plan), port: pair.port, at: MonotonicClock.now, publish: publish)
        do throws(RealtimeError) {
            try startIfNeeded()
        } catch {
            run.abort()
            throw ProgramStartError(description: "\(error)")
        }
        lines.hold(pair.line, of: call.id)
        inbox.withLock { $0.items.append(.begun(run)) }
        signal.signal()
    }

    /// The line of a call's program for its media worker, once; nil if the call has none, or the program has left it.
    public func attach(to call: CallID) -> PortLine? { lines.take(of: call) }

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
                publish(.noted(.warned("\(error)", leftOut: 0), nil))
            }
            return fallback.sound
        }
    }

    /// Sends a telephone key as an event.
    public func sendDigit(_ digit: Character, heldFor time: Duration, to call: CallID) {
        send(.digit(digit, Int(time.milliseconds)), to: call)
    }

    /// Reports a refusal to the program and, with limited frequency, to the log.
    public func refuse(_ request: ParticipantRequest, of call: CallID, _ why: String) {
        switch request {
        case .press: send(.refused(why), to: call)
        case .transfer: send(.refused("a transfer is refused: \(why)"), to: call)
        case .handover: send(.refused("a hand-over is refused: \(why)"), to: call)
        case .cancelHandover: send(.refused("no hand-over is taken back: \(why)"), to: call)
        }
    }

    /// Sends the progress of a transfer as an event.
    public func noteTransfer(to target: UserID, _ progress: CallTransfer.Progress, of call: CallID) {
        send(.transfer(target.text, progress.rawValue), to: call)
    }

    /// Sends a step of a hand-over as an event.
    public func noteHandover(_ report: HandoverReport, of call: CallID) { send(.handover(report), to: call) }

    /// Plays what the program has written so far.
    public func hearOut(_ call: CallID) { send(.hearOut, to: call) }

    /// Ends a program, which has a second to end by itself.
    public func end(_ call: CallID, _ end: ParticipationEnd) {
        lines.drop(of: call)
        switch end {
        case .callEnded(let record): send(.end(record.reason.rawValue), to: call)
        case .detached: send(.end("detached"), to: call)
        }
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

    private func send(_ input: ProgramRun.Input, to call: CallID) {
        // Before the first program the thread does not run, and no call has one.
        guard thread.withLock({ $0 != nil }) else {
            if case .end = input { publish(.left(call)) }
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
        ProgramProcess.blockPipeSignals()
        // Of a call only the last takes part in it.
        var runs: [ProgramRun] = []
        while true {
            wait(for: runs)
            let now = MonotonicClock.now
            let arrived = inbox.withLock { inbox in
                defer { inbox.items = [] }
                return inbox
            }
            for item in arrived.items {
                switch item {
                case .begun(let run): runs.append(run)
                case .input(let call, let input):
                    runs.last { $0.call == call }?.handle(input, at: now)
                    if case .end = input { publish(.left(call)) }
                }
            }
            if arrived.isFinished { for run in runs { run.handle(.stop, at: now) } }
            for run in runs { run.tick(at: now) }
            runs.removeAll(where: \.isDone)
            if arrived.isFinished, runs.isEmpty { return }
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
        // Without programs there is nothing to do. Their deadlines are no closer than this, except those of resting descriptors.
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
