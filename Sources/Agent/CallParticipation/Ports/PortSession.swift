internal import AudioPort
internal import Core
internal import VoiceActivity

/// How what was asked of a port has ended.
enum PortOutcome: Sendable, Equatable {
    case done, over, closed, cancelled, tooManyMarks

    func check() throws(CallPortError) {
        switch self {
        case .done: return
        case .over:
            throw CallPortError(.over, "the port takes no more sound: the call has ended, or the port has left it")
        case .closed: throw CallPortError(.closed, "the port takes no more sound: it was closed; attach another one")
        case .cancelled: throw CallPortError(.cancelled, "the task that wrote to the port is cancelled")
        case .tooManyMarks:
            throw CallPortError(.tooManyMarks, "the port has \(PortSession.mostMarks) marks that wait; set fewer")
        }
    }
}

/// A port's state. Time is an input, and who must be woken is an output.
struct PortSession: ~Copyable {
    typealias Waiting = CheckedContinuation<PortOutcome, Never>

    /// Marks that may wait: as many as the port's tracker takes.
    static let mostMarks = 256
    /// Events that may wait for a reader; further ones are dropped and counted.
    static let mostEvents = 1_024
    /// How much of what the caller says may wait for a reader; the oldest is dropped and counted.
    static let heardLimit = Duration.milliseconds(500)
    /// Sound that was sent is on its way, or in the peer's jitter buffer.
    static let lastWord = Duration.milliseconds(250)

    /// What waits for room in the queue, in order.
    private enum Item {
        case sound(PortWaiter, Waiting, [Int16], written: Int)
        case mark(String)
        case drain(Drain)
    }

    /// The receiver of a notice when all before it is played.
    private enum Drain {
        case task(PortWaiter, Waiting)
        case device
        /// Its task has stopped waiting.
        case nobody

        func isOf(_ waiter: PortWaiter) -> Bool {
            if case .task(waiter, _) = self { true } else { false }
        }
    }

    private enum Phase { case open, hearingOut, closed, over }

    private var port: AudioPort
    private var phase = Phase.open
    private var frames = Mailbox<CallPort.Frame>()
    private var events = Mailbox<PortEvent>()
    private var items: [Item] = []
    /// Drains in the queue, in order.
    private var drains: [Drain] = []
    private var lingering: [(until: Instant, drain: Drain)] = []
    private var marks = 0
    private var interrupted = InterruptedSound()
    /// For each clear that the worker has not carried out, whether the process requested it and is notified.
    private var clearsAsked: [Bool] = []
    /// Samples of the caller since the port came into the call, with those that were missed.
    private var position = 0
    private var missedAt48kHz = 0
    private(set) var missedSamples = 0
    private(set) var lostEvents = 0
    private var lastWaiter: PortWaiter = 0
    /// Tasks that were cancelled before they waited.
    private var cancelled: Set<PortWaiter> = []

    init(_ port: consuming AudioPort) { self.port = port }

    /// Whether the port was closed.
    var isClosed: Bool { phase == .closed }

    // MARK: Tasks that wait

    mutating func makeWaiter() -> PortWaiter {
        lastWaiter += 1
        return lastWaiter
    }

    mutating func forget(_ waiter: PortWaiter) { cancelled.remove(waiter) }

    mutating func cancel(_ waiter: PortWaiter, into wakes: inout [PortWake]) {
        if frames.cancel(waiter, into: &wakes) || events.cancel(waiter, into: &wakes) { return }
        for index in items.indices {
            switch items[index] {
            case .sound(waiter, let waiting, _, _):
                items.remove(at: index)
                return wake(waiting, .cancelled, into: &wakes)
            case .drain(let drain) where drain.isOf(waiter):
                items.remove(at: index)
                return finish(drain, .cancelled, into: &wakes)
            case .sound, .drain, .mark: continue
            }
        }
        if let index = drains.firstIndex(where: { $0.isOf(waiter) }) {
            finish(drains[index], .cancelled, into: &wakes)
            drains[index] = .nobody
        } else if let index = lingering.firstIndex(where: { $0.drain.isOf(waiter) }) {
            finish(lingering.remove(at: index).drain, .cancelled, into: &wakes)
        } else {
            cancelled.insert(waiter)
        }
    }

    private func wake(_ waiting: Waiting, _ outcome: PortOutcome, into wakes: inout [PortWake]) {
        wakes.append(PortWake { waiting.resume(returning: outcome) })
    }

    private func finish(_ drain: Drain, _ outcome: PortOutcome, into wakes: inout [PortWake]) {
        if case .task(_, let waiting) = drain { wake(waiting, outcome, into: &wakes) }
    }

    mutating func readFrame(
        _ waiter: PortWaiter, _ continuation: CheckedContinuation<CallPort.Frame?, Never>,
        into wakes: inout [PortWake]
    ) {
        frames.read(waiter, continuation, into: &wakes)
        if cancelled.contains(waiter) { _ = frames.cancel(waiter, into: &wakes) }
    }

    mutating func readEvent(
        _ waiter: PortWaiter, _ continuation: CheckedContinuation<PortEvent?, Never>, into wakes: inout [PortWake]
    ) {
        events.read(waiter, continuation, into: &wakes)
        if cancelled.contains(waiter) { _ = events.cancel(waiter, into: &wakes) }
    }

    // MARK: Sound for the caller

    /// Why nothing more is taken; nil if something is.
    private var refusal: PortOutcome? {
        switch phase {
        case .open: nil
        case .closed: .closed
        case .hearingOut, .over: .over
        }
    }

    var playedSamples: Int { port.played }

    var waitingSamples: Int {
        items.reduce(port.waiting) { sum, item in
            guard case .sound(_, _, let samples, let written) = item else { return sum }
            return sum + samples.count - written
        }
    }

    mutating func write(
        _ samples: [Int16], _ waiter: PortWaiter, _ waiting: Waiting, at now: Instant, into wakes: inout [PortWake]
    ) {
        if let refusal { return wake(waiting, refusal, into: &wakes) }
        if cancelled.contains(waiter) { return wake(waiting, .cancelled, into: &wakes) }
        let stale = interrupted.discards(samples, rate: port.rate, at: now)
        items.append(.sound(waiter, waiting, samples, written: stale))
        pump(at: now, into: &wakes)
    }

    mutating func offer(_ samples: [Int16], at now: Instant) -> Int {
        guard refusal == nil, items.isEmpty else { return 0 }
        let stale = interrupted.discards(samples, rate: port.rate, at: now)
        return stale + port.write(samples.span.extracting(droppingFirst: stale), at: now)
    }

    mutating func mark(_ name: String, at now: Instant, into wakes: inout [PortWake]) -> PortOutcome {
        if let refusal { return refusal }
        interrupted.pass(at: now)
        if interrupted.isStale {
            tell(.discarded(mark: name), into: &wakes)
            return .done
        }
        guard marks < Self.mostMarks else { return .tooManyMarks }
        marks += 1
        if items.isEmpty { _ = port.mark(name) } else { items.append(.mark(name)) }
        return .done
    }

    mutating func drain(_ waiter: PortWaiter, _ waiting: Waiting, into wakes: inout [PortWake]) {
        if let refusal { return wake(waiting, refusal, into: &wakes) }
        if cancelled.contains(waiter) { return wake(waiting, .cancelled, into: &wakes) }
        add(.task(waiter, waiting))
    }

    private mutating func add(_ drain: Drain) {
        guard items.isEmpty else { return items.append(.drain(drain)) }
        port.end()
        drains.append(drain)
    }

    /// Plays what was given so far and takes no more.
    mutating func hearOut(into wakes: inout [PortWake]) {
        guard phase == .open || phase == .closed else { return }
        phase = .hearingOut
        add(.device)
    }

    mutating func clear(into wakes: inout [PortWake]) {
        interrupted.end()
        clearsAsked.append(true)
        port.clear(unread: discardItems(into: &wakes))
    }

    /// Takes back what waits for room: its marks and drains are put where they would be.
    ///
    /// - Returns: Samples that are taken back.
    private mutating func discardItems(into wakes: inout [PortWake]) -> Int {
        var unread = 0
        for item in items {
            switch item {
            case .sound(_, let waiting, let samples, let written):
                unread += samples.count - written
                wake(waiting, .done, into: &wakes)
            case .mark(let name): _ = port.mark(name, unread: unread)
            case .drain(let drain):
                port.end(unread: unread)
                drains.append(drain)
            }
        }
        items = []
        return unread
    }

    /// Moves what waits to the queue, as far as there is room.
    private mutating func pump(at now: Instant, into wakes: inout [PortWake]) {
        while let item = items.first {
            switch item {
            case .sound(let waiter, let waiting, let samples, var written):
                written += port.write(samples.span.extracting(droppingFirst: written), at: now)
                guard written == samples.count else {
                    items[0] = .sound(waiter, waiting, samples, written: written)
                    return
                }
                wake(waiting, .done, into: &wakes)
            case .mark(let name): _ = port.mark(name)
            case .drain(let drain):
                port.end()
                drains.append(drain)
            }
            items.removeFirst()
        }
    }

    // MARK: A frame of the call

    /// A frame may have run.
    mutating func run(call: CallID, at now: Instant, into wakes: inout [PortWake], _ reports: inout [ParticipantEvent])
    {
        guard phase != .over else { return }
        hear(into: &wakes)
        var played: [PlaybackEvent] = []
        port.update(at: now, isFinal: !drains.isEmpty || phase == .closed, into: &played)
        for event in played { take(event, call, at: now, into: &wakes, &reports) }
        noteMissed()
        takeTurns(call, into: &wakes, &reports)
        pump(at: now, into: &wakes)
        while let first = lingering.first, first.until <= now {
            lingering.removeFirst()
            finish(first.drain, .done, into: &wakes)
            if case .device = first.drain { reports.append(.done(call, failure: nil)) }
        }
        if port.isOver { end(into: &wakes) }
    }

    private mutating func hear(into wakes: inout [PortWake]) {
        var samples: [Int16] = []
        port.read(into: &samples)
        guard !samples.isEmpty else { return }
        defer { position += samples.count }
        guard phase == .open || phase == .hearingOut else { return }
        frames.put(CallPort.Frame(position: position, samples: samples, rate: port.rate), into: &wakes)
        var waiting = frames.elements.reduce(0) { $0 + $1.samples.count }
        while port.rate.duration(of: waiting) > Self.heardLimit, let dropped = frames.dropFirst() {
            waiting -= dropped.samples.count
            missedSamples += dropped.samples.count
        }
    }

    /// The worker found no room for some of the caller's sound: the gap is behind what was read.
    private mutating func noteMissed() {
        let ratio = PortRate.hz48000.rawValue / port.rate.rawValue
        let gap = (port.missedSamples - missedAt48kHz) / ratio
        missedAt48kHz += gap * ratio
        position += gap
        missedSamples += gap
    }

    private mutating func take(
        _ event: PlaybackEvent, _ call: CallID, at now: Instant, into wakes: inout [PortWake],
        _ reports: inout [ParticipantEvent]
    ) {
        switch event {
        case .played(let mark, let count):
            marks -= 1
            tell(.played(mark: mark, at: count), into: &wakes)
        case .discarded(let mark):
            marks -= 1
            tell(.discarded(mark: mark), into: &wakes)
        case .cleared(let count):
            guard !clearsAsked.isEmpty, clearsAsked.removeFirst() else { return }
            tell(.cleared(played: count), into: &wakes)
        case .interrupted(let count):
            interrupted.begin(at: now)
            clearsAsked.append(false)
            let waited = items
            items = []
            for item in waited { giveUp(item, .done, into: &wakes) }
            tell(.interrupted(played: count), into: &wakes)
            if let turns = port.turns {
                reports.append(.turn(call, .interrupted(played: port.rate.duration(of: count)), turns))
            }
        case .ended:
            guard !drains.isEmpty else { return }
            lingering.append((now.advanced(by: Self.lastWord), drains.removeFirst()))
        }
    }

    private mutating func takeTurns(_ call: CallID, into wakes: inout [PortWake], _ reports: inout [ParticipantEvent]) {
        var found: [TurnEvent] = []
        port.takeTurns(into: &found)
        for event in found {
            if let turns = port.turns, let told = TurnNotice(event, port.rate) {
                reports.append(.turn(call, told, turns))
            }
            switch event {
            // The process knows only what it has heard; the device's events count from the call's beginning.
            case .speechBegan(let at): tell(.speech(isOver: false, at: at - port.start), into: &wakes)
            case .speechEnded(let at): tell(.speech(isOver: true, at: at - port.start), into: &wakes)
            case .answered(let turn):
                tell(.responded(after: port.rate.duration(of: turn.response)), into: &wakes)
            case .lowered, .restored: break
            }
        }
    }

    mutating func tell(_ event: PortEvent, into wakes: inout [PortWake]) {
        guard phase == .open || phase == .hearingOut else { return }
        if events.elements.count < Self.mostEvents { events.put(event, into: &wakes) } else { lostEvents += 1 }
    }

    // MARK: The end

    /// Closes the port; what is in the queue is played.
    mutating func close(into wakes: inout [PortWake]) {
        guard phase == .open else { return }
        phase = .closed
        frames.removeAll()
        events.removeAll()
        stop(.closed, into: &wakes)
    }

    /// Ends the session with its call or its part. Waiting frames and events can still be read.
    mutating func end(into wakes: inout [PortWake]) {
        guard phase != .over else { return }
        phase = .over
        stop(.over, into: &wakes)
    }

    private mutating func stop(_ outcome: PortOutcome, into wakes: inout [PortWake]) {
        frames.finish(into: &wakes)
        events.finish(into: &wakes)
        for item in items { giveUp(item, outcome, into: &wakes) }
        items = []
        for drain in drains + lingering.map(\.drain) { finish(drain, outcome, into: &wakes) }
        // The queue still reports their end.
        drains = drains.map { _ in .nobody }
        lingering = []
    }

    /// What waits for room never gets any.
    private mutating func giveUp(_ item: Item, _ outcome: PortOutcome, into wakes: inout [PortWake]) {
        switch item {
        case .sound(_, let waiting, _, _): wake(waiting, outcome, into: &wakes)
        case .mark(let name):
            marks -= 1
            tell(.discarded(mark: name), into: &wakes)
        case .drain(let drain):
            // The queue is empty from here on.
            guard outcome == .done else { return finish(drain, outcome, into: &wakes) }
            port.end()
            drains.append(drain)
        }
    }
}
