internal import AudioPort
internal import BotWire
internal import CallControl
internal import CallParticipation
internal import ControlWire
internal import Glibc
internal import Core

/// One call's program: moves sound between its process and its port, events to it, and its commands.
final class ProgramRun: @unchecked Sendable {
    // Made by the thread that begins the call; afterwards only the programs' thread uses it.

    /// What can happen to the program's call.
    enum Input: Sendable {
        case digit(Character, Int)
        case refused(String)
        /// The progress of a transfer: its target, and its state.
        case transfer(String, String)
        case handover(HandoverReport)
        /// What it has written is to be played, and then the call ends.
        case hearOut
        case end(String)
        case stop
    }

    /// Bytes of events that may wait for a program; one that reads none loses those beyond, and is not held up.
    static let eventBytes = 65_536
    /// Of a line for the log.
    private static let logLineBytes = 1_024
    /// Of what is read at once.
    private static let readBytes = 16_384
    /// How often a process without readable descriptors is checked.
    private static let reapInterval = Duration.milliseconds(100)

    var call: CallID { details.id }
    private(set) var isDone = false
    /// Which of ``watched`` have something, by their order.
    var readiness: [Bool] = []
    private let details: ParticipantCall
    private let plan: ProgramPlan
    private let fallback: FallbackSound?
    /// How much of the fallback is in the port; nil unless it is played.
    private var fallbackPlayed: Int?
    private let publish: (ParticipantEvent) -> Void
    private var port: AudioPort
    private var life: ProgramLife
    private var process: ProgramProcess?
    private var isAlive: Bool
    private var io = Buffers()
    /// What the program says on when it was interrupted.
    private var interrupted = InterruptedSound()
    /// For each clear that the worker has not carried out, whether the program requested it and is notified.
    private var clearsAsked: [Bool] = []
    private var lastReap: Instant
    private var logLimit = LogLimit()
    private var faultLimit = LogLimit(burst: 5, perSecond: 0.2)
    private var endReason = "stopped"
    /// The end of its part was reported.
    private var hasLeft = false

    /// Data in transit to and from one process.
    private struct Buffers {
        var input = InputProgress()
        /// The rest of what the caller said last.
        var unsent: [UInt8] = []
        var events: [UInt8] = []
        var commands = LineCutter(maximumBytes: ExecCommand.lineBytes)
        var errors = LineCutter(maximumBytes: logLineBytes)
        var commandInflow = Inflow.commands
        var errorInflow = Inflow.log
        /// The first half of a sample.
        var half: UInt8?
        /// Bytes of the program's sound that still count; nil: all.
        var outputLeft: Int?
        var isBehind = false
        var hasLostEvents = false
    }

    /// Starts the process. If that fails the call has the fallback.
    ///
    /// - Throws: What the process's start throws, if there is no fallback.
    init(
        _ plan: ProgramPlan, _ details: ParticipantCall, fallback: FallbackSound?, port: consuming AudioPort,
        at now: Instant,
        publish: @escaping (ParticipantEvent) -> Void
    ) throws(ProgramStartError) {
        self.details = details
        self.plan = plan
        self.fallback = fallback
        self.publish = publish
        self.port = port
        life = ProgramLife(
            startedAt: now, answerTimeout: details.isAnswered ? nil : plan.answerTimeout, hasFallback: fallback != nil)
        lastReap = now
        isAlive = true
        do throws(ProgramStartError) {
            process = try ProgramProcess(plan)
        } catch {
            guard fallback != nil else { throw error }
            isAlive = false
            feed(.cannotStart(error.description), at: now)
            return
        }
        sendBegin(restarts: 0)
    }

    /// Ends a process whose call never began.
    func abort() {
        process?.signal(SIGKILL)
        while process != nil {
            if process?.reap() != nil { process = nil } else { usleep(1_000) }
        }
    }

    /// Descriptors that are read when they are readable: sound only if there is room for it, and lines of a program that floods only
    /// once in a while.
    func watched(at now: Instant) -> [Int32] {
        guard let descriptors = process?.descriptors else { return [] }
        let wantsSound = port.room > 0 && io.outputLeft != 0
        return [
            wantsSound ? descriptors.output : -1, io.errorInflow.turn(at: now) == .wait ? -1 : descriptors.errors,
            io.commandInflow.turn(at: now) == .wait ? -1 : descriptors.events,
        ]
    }

    /// When ``watched(at:)`` names a descriptor again that it leaves out for a moment; nil if it leaves out none.
    var watchesMoreAt: Instant? { [io.errorInflow.restsUntil, io.commandInflow.restsUntil].compactMap(\.self).min() }

    func handle(_ input: Input, at now: Instant) {
        switch input {
        case .digit(let key, let milliseconds): send(.digit(key, heldMilliseconds: milliseconds))
        case .refused(let why): reject(why, at: now)
        case .transfer(let target, let state): send(.transfer(to: target, state: state))
        case .handover(let report):
            send(.handover(to: report.target, state: report.state.rawValue, reason: report.reason))
        case .hearOut: feed(.asksToHangUp, at: now)
        case .end(let reason):
            endReason = reason
            hasLeft = true
            feed(.callEnded, at: now)
        case .stop: feed(.stop, at: now)
        }
    }

    /// Does what there is to do.
    func tick(at now: Instant) {
        sendAudio()
        noteStanding(at: now)
        let ready = readiness + [false, false, false]
        if ready[1] { readErrors(at: now) }
        if ready[2] { readCommands(at: now) }
        if ready[0] { readOutput(at: now) }
        playFallback(at: now)
        updatePort(at: now)
        tellTurns()
        flushEvents()
        reap(at: now)
        feed(.timerFired, at: now)
        readiness = []
    }

    // MARK: Its life

    private func feed(_ input: ProgramLife.Input, at now: Instant) {
        var outbox: [ProgramLife.Output] = []
        life.handle(input, at: now, into: &outbox)
        for output in outbox { carryOut(output, at: now) }
    }

    private func note(_ notice: ParticipantNotice) { publish(.noted(notice, call)) }

    private func carryOut(_ output: ProgramLife.Output, at now: Instant) {
        switch output {
        case .start(let restart): start(restart, at: now)
        case .accept: publish(.ready(call))
        case .decline: publish(.rejected(call, .declined, nil))
        case .refuse(let why): publish(.failed(call, why))
        case .fallBack(let why):
            note(.fellBack(why))
            interrupted.end()
            // What is left of its sound is not heard, and nothing that it writes any more.
            io.outputLeft = 0
            port.abandon()
            fallbackPlayed = 0
        case .silence:
            interrupted.end()
            clearsAsked.append(true)
            port.abandon()
        case .drain:
            let unread = process?.unreadBytes ?? 0
            io.outputLeft = unread
            port.end(unread: samples(in: unread))
        case .hangUp(let failure):
            if let failure { note(.processFailed(failure, isRestarted: false)) }
            publish(.done(call, failure: failure))
        case .close:
            send(.end(reason: endReason))
            process?.closeInput()
        case .terminate: process?.signal(SIGTERM)
        case .kill: process?.signal(SIGKILL)
        case .done: isDone = true
        }
    }

    private func start(_ restart: Int, at now: Instant) {
        io = Buffers()
        do throws(ProgramStartError) {
            process = try ProgramProcess(plan)
            isAlive = true
            sendBegin(restarts: restart)
        } catch {
            isAlive = false
            noteExit(.failed(error.description), at: now)
        }
    }

    private func reap(at now: Instant) {
        guard isAlive, let descriptors = process?.descriptors else { return }
        let hasClosed = descriptors.output < 0 || descriptors.events < 0
        guard hasClosed || lastReap.duration(to: now) >= Self.reapInterval else { return }
        lastReap = now
        guard let exit = process?.reap() else { return }
        isAlive = false
        if life.isToStand, hasSpoken { feed(.stood, at: now) }
        // Its last log lines.
        readErrors(at: now, isLast: true)
        readCommands(at: now, isLast: true)
        noteExit(exit, at: now)
    }

    private func noteExit(_ exit: ProgramExit, at now: Instant) {
        for (stream, inflow) in [(ProgramStream.log, io.errorInflow), (.commands, io.commandInflow)]
        where inflow.dropped > 0 {
            note(.dropped(stream, bytes: inflow.dropped))
        }
        let isRunning = life.isRunning
        feed(.exited(exit), at: now)
        if isRunning, case .failed(let how) = exit, life.isRestarting {
            note(.processFailed(how, isRestarted: true))
        }
    }

    /// Once the program has begun to read, or has said something, its call can be accepted.
    private func noteStanding(at now: Instant) {
        if life.isToStand, io.input.isReading || hasSpoken { feed(.stood, at: now) }
    }

    private var hasSpoken: Bool { (process?.unreadBytes ?? 0) > 0 || port.waiting > 0 }

    // MARK: Sound

    /// Queues as much of the fallback as there is room for.
    private func playFallback(at now: Instant) {
        guard let fallback, let played = fallbackPlayed, played < fallback.samples.count else { return }
        let count = port.write(fallback.samples.span.extracting(played...), rate: .hz48000, at: now)
        fallbackPlayed = played + count
        if played + count == fallback.samples.count { port.end() }
    }

    /// Gives the program the caller's sound. Sound that it does not read in time is dropped.
    ///
    /// What was said before it began to read is left out: a program that starts slowly would hear the caller late for the whole
    /// call, because nothing makes it catch up.
    private func sendAudio() {
        var samples: [Int16] = []
        port.read(into: &samples)
        guard isAlive, process != nil else { return }
        if !io.input.isReading, let unread = process?.unheardBytes { io.input.note(unread: unread) }
        guard io.input.isReading else { return }
        if !io.unsent.isEmpty { sendAudio(io.unsent) }
        guard !samples.isEmpty else { return }
        guard io.unsent.isEmpty else {
            if !io.isBehind { note(.behind(events: false)) }
            io.isBehind = true
            return
        }
        var bytes: [UInt8] = []
        plan.format.append(samples, to: &bytes)
        sendAudio(bytes)
    }

    private func sendAudio(_ bytes: [UInt8]) {
        // One that has closed its input does not want to hear.
        let count = process?.writeInput(bytes[...])
        io.input.wrote(count)
        io.unsent = count.map { Array(bytes.dropFirst($0)) } ?? []
    }

    /// Takes as much of the program's sound as there is room for.
    private func readOutput(at now: Instant) {
        let held = io.half == nil ? 0 : 1
        let room = min(Self.readBytes, port.room * plan.format.sampleBytes - held, io.outputLeft ?? .max)
        guard room > 0, case .bytes(let read)? = process?.readOutput(room) else { return }
        if let left = io.outputLeft { io.outputLeft = left - read.count }
        let samples = decode(read)
        let stale = interrupted.discards(samples, rate: plan.format.rate, at: now)
        if stale > 0 { clear(discarded: stale, isAsked: false) }
        _ = port.write(samples.span.extracting(stale..<samples.count), at: now)
    }

    /// The samples of what was read, the first of which may have begun before it.
    private func decode(_ read: [UInt8]) -> [Int16] {
        let bytes = (io.half.map { [$0] } ?? []) + read
        io.half = bytes.count % plan.format.sampleBytes == 0 ? nil : bytes.last
        return plan.format.samples(of: bytes)
    }

    /// Samples that `unread` unread bytes complete.
    private func samples(in unread: Int) -> Int {
        (unread + (io.half == nil ? 0 : 1)) / plan.format.sampleBytes
    }

    private func updatePort(at now: Instant) {
        var events: [PlaybackEvent] = []
        let isFinal = fallbackPlayed.map { $0 == fallback?.samples.count } ?? (io.outputLeft == 0)
        port.update(at: now, isFinal: isFinal, into: &events)
        if port.isSuspended { feed(.suspended, at: now) }
        for event in events {
            switch event {
            case .played(let mark, let played): send(.mark(mark, played: played))
            case .discarded(let mark): send(.markDiscarded(mark))
            case .cleared(let played):
                let isAsked = clearsAsked.isEmpty || clearsAsked.removeFirst()
                if isAsked { send(.cleared(played: played)) }
            case .interrupted(let played): noteInterruption(played: played, at: now)
            case .ended: feed(.drained, at: now)
            }
        }
    }

    /// The caller has interrupted the program: what it has written is discarded, and so is what it writes before it reacts.
    private func noteInterruption(played: Int, at now: Instant) {
        clearsAsked.append(false)
        interrupted.begin(at: now)
        send(.interrupted(played: played))
        tell(.interrupted(played: plan.format.rate.duration(of: played)))
        clear(isAsked: false)
    }

    private func tell(_ notice: TurnNotice) {
        guard !hasLeft, let summary = port.turns else { return }
        publish(.turn(call, notice, summary))
    }

    private func tellTurns() {
        var turns: [TurnEvent] = []
        port.takeTurns(into: &turns)
        for turn in turns {
            switch turn {
            case .speechBegan(let at): send(.speech(isOver: false, at: at))
            case .speechEnded(let at): send(.speech(isOver: true, at: at))
            case .lowered, .restored, .answered: break
            }
            if let notice = TurnNotice(turn, plan.format.rate) { tell(notice) }
        }
    }

    // MARK: Lines

    /// Sends a new process the call's facts, and 20 ms of silence: once it has read that, it listens.
    private func sendBegin(restarts: Int) {
        var silence: [UInt8] = []
        plan.format.append(repeatElement(0, count: plan.format.rate.rawValue / 50), to: &silence)
        sendAudio(silence)
        send(
            .begin(
                ExecEvent.Begin(
                    call: call.number, peer: details.peer.text, isOutgoing: details.isOutgoing,
                    rateHz: plan.format.rate.rawValue, encoding: plan.format.encoding.rawValue, restarts: restarts)))
    }

    private func send(_ event: ExecEvent) {
        let line = event.line
        guard io.events.count + line.count <= Self.eventBytes else {
            if !io.hasLostEvents { note(.behind(events: true)) }
            io.hasLostEvents = true
            return
        }
        io.events += line
        flushEvents()
    }

    private func flushEvents() {
        guard !io.events.isEmpty else { return }
        let count = process?.writeEvents(io.events[...]) ?? io.events.count
        io.events.removeFirst(count)
    }

    private func readCommands(at now: Instant, isLast: Bool = false) {
        switch io.commandInflow.turn(at: now, isLast: isLast) {
        case .wait: return
        case .drop:
            io.commands.skip()
            guard case .bytes(let bytes)? = process?.readCommands(Inflow.droppedAtOnce) else { return }
            noteDropped(bytes.count, of: .commands, at: now)
        case .read(let room):
            guard case .bytes(let bytes)? = process?.readCommands(min(Self.readBytes, room)) else { return }
            io.commandInflow.took(bytes.count, at: now)
            follow(bytes, at: now)
        }
    }

    /// Counts what is dropped; the first of it is reported.
    private func noteDropped(_ count: Int, of stream: ProgramStream, at now: Instant) {
        switch stream {
        case .log: if io.errorInflow.dropped(count, at: now) { note(.flooded(.log)) }
        case .commands:
            guard io.commandInflow.dropped(count, at: now) else { return }
            note(.flooded(.commands))
            send(.error("commands come too fast, and are dropped until they no longer do"))
        }
    }

    private func follow(_ bytes: [UInt8], at now: Instant) {
        var lines: [LineCutter.Line] = []
        io.commands.take(bytes, into: &lines)
        for line in lines {
            guard io.commandInflow.takeLine() else {
                noteDropped(line.count, of: .commands, at: now)
                continue
            }
            do throws(ExecCommand.Fault) {
                guard case .whole(let bytes) = line else { throw ExecCommand.Fault.tooLong }
                carryOut(try ExecCommand(line: bytes), at: now)
            } catch {
                reject(error.description, at: now)
            }
        }
    }

    /// Reports to the program, and at times to the log, that a command was not followed.
    private func reject(_ why: String, at now: Instant) {
        send(.error(why))
        if faultLimit.admit(at: now) != nil { note(.misunderstood(why, leftOut: 0)) }
    }

    private func carryOut(_ command: ExecCommand, at now: Instant) {
        // Commands after the request to hang up do not count.
        guard io.outputLeft == nil else { return }
        // A program that does more than hang up takes part, and its earlier sound is played first.
        if life.isToStand, command != .hangUp || hasSpoken { feed(.stood, at: now) }
        switch command {
        case .mark(let name):
            let unread = samples(in: process?.unreadBytes ?? 0)
            if !port.mark(name, unread: unread) {
                reject("a mark is not set, because \(AudioPort.mostMarks) wait to be played", at: now)
            }
            // A mark behind discarded sound is discarded with it.
            interrupted.pass(at: now)
            if interrupted.isStale { clear(isAsked: false) }
        case .clear:
            interrupted.end()
            clear(isAsked: true)
        case .transfer(let target): if life.isRunning { publish(.transfer(call, to: target)) }
        case .handover(let asked): if life.isRunning { publish(.handover(call, HandoverRequest(asked))) }
        case .cancelHandover: if life.isRunning { publish(.cancelHandover(call)) }
        case .press(let keys): if life.isRunning { publish(.press(call, keys: keys)) }
        case .hangUp: feed(.asksToHangUp, at: now)
        }
    }

    /// Discards all that the program has written until now.
    private func clear(isAsked: Bool) {
        var discarded = 0
        var left = process?.unreadBytes ?? 0
        while left > 0, case .bytes(let read)? = process?.readOutput(left) {
            discarded += decode(read).count
            left -= read.count
        }
        clear(discarded: discarded, isAsked: isAsked)
    }

    /// Discards what is in the port, and `discarded` samples that it has not received.
    private func clear(discarded: Int, isAsked: Bool) {
        clearsAsked.append(isAsked)
        port.clear(unread: discarded)
    }

    private func readErrors(at now: Instant, isLast: Bool = false) {
        switch io.errorInflow.turn(at: now, isLast: isLast) {
        case .wait: return
        case .drop:
            io.errors.skip()
            guard case .bytes(let bytes)? = process?.readErrors(Inflow.droppedAtOnce) else { return }
            noteDropped(bytes.count, of: .log, at: now)
        case .read(let room):
            guard case .bytes(let bytes)? = process?.readErrors(min(Self.readBytes, room)) else { return }
            io.errorInflow.took(bytes.count, at: now)
            log(bytes, at: now)
        }
    }

    private func log(_ bytes: [UInt8], at now: Instant) {
        var lines: [LineCutter.Line] = []
        io.errors.take(bytes, into: &lines)
        for line in lines {
            guard io.errorInflow.takeLine() else {
                noteDropped(line.count, of: .log, at: now)
                continue
            }
            guard let leftOut = logLimit.admit(at: now) else { continue }
            switch line {
            case .whole(let bytes): note(.said(String(decoding: bytes, as: UTF8.self), leftOut: leftOut))
            case .tooLong:
                note(.said("(a line of more than \(Self.logLineBytes) bytes)", leftOut: leftOut))
            }
        }
    }
}

extension LineCutter.Line {
    /// Its bytes, with the line break; of one that is too long those are counted as one.
    fileprivate var count: Int {
        switch self {
        case .whole(let bytes): bytes.count + 1
        case .tooLong: 1
        }
    }
}

extension HandoverRequest {
    /// What a program asks for.
    fileprivate init(_ asked: ExecHandover) {
        self.init(to: asked.target)
        whisper = asked.whisper.map { .text($0) } ?? asked.whisperFile.map { .file($0) }
        acceptKey = asked.acceptKey
        if let file = asked.music { music = file == ExecHandover.ownSound ? .participant : .file(file) }
        if let seconds = asked.ringSeconds { ringing = .seconds(seconds) }
        if asked.listens { role = .listens }
    }
}
