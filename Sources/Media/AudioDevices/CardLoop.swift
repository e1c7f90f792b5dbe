internal import Glibc
internal import Realtime
internal import Core

/// The loop of a device's thread: lets the machine decide, carries out its outputs, and moves samples between the card
/// and the lines. Steps are quick and never wait, except for the opening of a card.
struct CardLoop<Card: SoundCard & ~Copyable>: ~Copyable {
    var card: Card
    private var machine = CardMachine()
    private var playback: PlaybackLine
    private var capture: CaptureLine
    private var events: SPSCRing<CardEvent>.Producer
    private let eventSignal: WakeupHandle?
    private var outbox: [CardMachine.Output] = []
    private var outgoing = OutgoingFrames()
    private var incoming = SampleBuffer(capacity: 8_192)
    private var watermarks = QueueWatermarks()
    private var playbackPace = Pace()
    private var capturePace = Pace()
    private var withoutCardAt: Instant?
    /// Since when the worker has exchanged no frame; nil while it does.
    private var unusedSince: Instant?
    private var reportAt: Instant?
    private var worstLatenessNanoseconds: Int64 = 0
    /// Events that found their ring full.
    private(set) var eventsDropped = 0

    private static var tickNanoseconds: Int64 { 10_000_000 }
    private static var reportNanoseconds: Int64 { 1_000_000_000 }
    /// A card without users for this time stops, so that an idle device seldom wakes up: 10 s, so that a card is not
    /// stopped and started between calls that follow each other.
    static var restNanoseconds: Int64 { 10_000_000_000 }

    /// - Parameters:
    ///   - events: Ring for events. When it is full, events are dropped and counted.
    ///   - eventSignal: Is signalled with each event.
    init(
        _ card: consuming Card, _ ends: consuming LineEnds, events: consuming SPSCRing<CardEvent>.Producer,
        eventSignal: WakeupHandle?
    ) {
        self.card = card
        playback = PlaybackLine(ends.playing, ends.playingMarks)
        capture = CaptureLine(ends.capturing, reference: ends.referring, ends.capturingMarks, ends.boundaries)
        self.events = events
        self.eventSignal = eventSignal
        outbox.reserveCapacity(16)
        // Until a card says otherwise.
        playback.begin(queueFrames: 720)
        capture.begin(periodFrames: 480)
    }

    /// Whether the card has been closed as asked.
    var isStopped: Bool { machine.mode == .stopped }
    /// Whether the card's own wake-ups are to be waited for.
    var isCardRunning: Bool { machine.mode == .running || machine.mode == .settling || machine.mode == .playingOut }

    /// When ``step(at:)`` must run at the latest. It must also run when the card is ready, and when the worker, after a pause, has
    /// signalled a frame.
    var nextDeadline: Instant? {
        var earliest = machine.nextDeadline
        if machine.mode == .withoutCard, isInUse, let withoutCardAt {
            earliest = min(earliest ?? withoutCardAt, withoutCardAt)
        }
        // The figures of a card that rests stay what they are.
        if machine.mode != .resting, let reportAt { earliest = min(earliest ?? reportAt, reportAt) }
        return earliest
    }

    mutating func start(at now: Instant) {
        reportAt = now.advanced(byNanoseconds: Self.reportNanoseconds)
        handle(.start, at: now)
    }

    mutating func stop(at now: Instant) { handle(.stop, at: now) }

    /// Records how much later than requested the thread runs, for the statistics.
    mutating func note(latenessNanoseconds: Int64) {
        worstLatenessNanoseconds = max(worstLatenessNanoseconds, latenessNanoseconds)
    }

    /// Notes that the thread has no priority over others.
    mutating func expectLateness() { watermarks.expectLateness() }

    /// Reports that the thread was refused its priority.
    mutating func tellPriorityRefused(errno: Int32) {
        expectLateness()
        tell(.priorityRefused(errno: errno))
    }

    /// Does what is due.
    ///
    /// - Returns: Whether frames were moved.
    @discardableResult
    mutating func step(at now: Instant) -> Bool {
        if let deadline = machine.nextDeadline, deadline <= now { handle(.timerFired, at: now) }
        var hasMoved = false
        switch machine.mode {
        case .withoutCard: runWithoutCard(at: now)
        case .resting:
            runLinesWithoutCard(at: now)
            if isInUse { handle(.wake, at: now) }
        case .settling, .running:
            // Any failure may end this state, and the card with it. Playback goes first, because capture needs the
            // samples that the card was given for the same time, and a little later.
            hasMoved = exchangePlayback(at: now)
            if isCardRunning { hasMoved = exchangeCapture(at: now) || hasMoved }
        case .playingOut: playOut(at: now)
        case .stopped: break
        }
        restIfUnused(at: now)
        if let due = reportAt, now >= due {
            reportAt = now.advanced(byNanoseconds: Self.reportNanoseconds)
            tell(.report(statistics))
            worstLatenessNanoseconds = 0
        }
        return hasMoved
    }

    private var isInUse: Bool { playback.statistics.isInUse || capture.statistics.isInUse }

    private mutating func restIfUnused(at now: Instant) {
        guard !isInUse else {
            unusedSince = nil
            return
        }
        let since = unusedSince ?? now
        unusedSince = since
        if machine.mode == .running, since.nanoseconds(to: now) >= Self.restNanoseconds { handle(.rest, at: now) }
    }

    var statistics: CardStatistics {
        var statistics = CardStatistics()
        statistics.playback = playback.statistics
        statistics.capture = capture.statistics
        statistics.opens = machine.opens
        statistics.losses = machine.losses
        statistics.suspends = machine.suspends
        statistics.isRunning = machine.mode == .running || machine.mode == .resting
        statistics.worstLatenessMilliseconds = Double(worstLatenessNanoseconds) * 1e-6
        return statistics
    }

    // MARK: Outputs of the machine

    private mutating func handle(_ input: CardMachine.Input, at now: Instant) {
        machine.handle(input, at: now, into: &outbox)
        // An action may fail; the machine gets the failure at once, and appends its outputs to the same list.
        var index = 0
        while index < outbox.count {
            let output = outbox[index]
            index += 1
            if let failure = execute(output, at: now) { machine.handle(failure, at: now, into: &outbox) }
        }
        outbox.removeAll(keepingCapacity: true)
    }

    /// - Returns: The next input of the machine.
    private mutating func execute(_ output: CardMachine.Output, at now: Instant) -> CardMachine.Input? {
        switch output {
        case .open: return open()
        case .close:
            card.close()
            withoutCardAt = now
            return nil
        case .run(let direction):
            let result = run(direction, at: now)
            return result < 0 ? .failed(direction, errno: -result) : nil
        case .halt(let direction):
            let result = card.prepare(direction)
            if direction == .playback {
                outgoing.removeAll()
                capture.reference.loseAlignment()
            }
            return result < 0 ? .failed(direction, errno: -result) : nil
        case .probe(let direction):
            let errno = card.condition(direction).errno
            return errno == 0 ? nil : .failed(direction, errno: errno)
        case .resume(let direction):
            withoutCardAt = now
            let result = card.resume(direction)
            return result < 0 ? .resumeFailed(direction, errno: -result) : .resumed(direction)
        case .tell(let event):
            if case .lost = event { watermarks.reset() }
            tell(event)
            // Reports at once that the card runs or is gone, rather than up to a second later.
            switch event {
            case .running, .lost: reportAt = now
            case .opened, .unavailable, .stalled, .xruns, .suspended, .resumed, .priorityRefused, .report, .stopped:
                break
            }
            return nil
        }
    }

    private mutating func open() -> CardMachine.Input {
        if let failure = card.open() { return .openFailed(failure) }
        let (playing, capturing) = (card.grant(.playback), card.grant(.capture))
        if let playing {
            watermarks.open(playing)
            guard playback.open(rate: playing.rate) else { return refuse(.playback) }
            outgoing.reserve(playing.bufferFrames)
        }
        if let capturing {
            guard capture.open(rate: capturing.rate) else { return refuse(.capture) }
            capture.openReference(to: playing ?? capturing)
        }
        return .opened(playback: playing, capture: capturing)
    }

    /// The card has a rate that the resampler does not support.
    private mutating func refuse(_ direction: SoundDirection) -> CardMachine.Input {
        card.close()
        return .openFailed(CardFailure(direction: direction, errno: EINVAL))
    }

    private mutating func run(_ direction: SoundDirection, at now: Instant) -> Int32 {
        let prepared = card.prepare(direction)
        guard prepared >= 0 else { return prepared }
        guard let grant = card.grant(direction) else { return -EBADF }
        switch direction {
        case .capture:
            capture.begin(periodFrames: grant.periodFrames)
            capturePace.begin(grant, slackFrames: grant.bufferFrames, at: now)
        case .playback:
            playback.begin(queueFrames: watermarks.queueFrames)
            playbackPace.begin(grant, slackFrames: grant.bufferFrames, at: now)
            // A sound server that underran waits for the same amount again, so this is at most what will be available.
            card.setWakeQueue(
                frames: watermarks.wakeFrames, startFrames: min(grant.periodFrames, watermarks.queueFrames))
            outgoing.removeAll()
            capture.reference.loseAlignment()
            outgoing.add(silence: watermarks.queueFrames)
            outgoing.tell(&capture.reference, newest: outgoing.count)
            let written = outgoing.write(to: &card, again: -Int(EAGAIN))
            if written < 0 { return Int32(clamping: written) }
        }
        return card.start(direction)
    }

    private mutating func tell(_ event: CardEvent) {
        if !events.push(event) { eventsDropped += 1 }
        eventSignal?.signal()
    }

    // MARK: Samples

    /// Every 10 ms, keeps the lines moving as a card would.
    private mutating func runWithoutCard(at now: Instant) {
        let due = withoutCardAt ?? now
        guard now >= due else { return }
        withoutCardAt = max(due.advanced(byNanoseconds: Self.tickNanoseconds), now)
        runLinesWithoutCard(at: now)
    }

    private mutating func runLinesWithoutCard(at now: Instant) {
        playback.runWithoutCard(at: now)
        capture.runWithoutCard(at: now)
    }

    private mutating func exchangeCapture(at now: Instant) -> Bool {
        guard card.grant(.capture) != nil else {
            capture.runWithoutCard(at: now)
            return false
        }
        let condition = card.condition(.capture)
        guard condition.errno == 0 else {
            fail(.capture, condition.errno, at: now)
            return false
        }
        var left = min(condition.availableFrames, capturePace.allowance(at: now))
        guard left > 0 else { return false }
        let isHeard = machine.mode == .running
        if isHeard {
            let behind = max(0, condition.delayFrames - condition.availableFrames)
            capture.measure(queueFrames: left, behindFrames: behind, at: now)
            capture.reference.align(captureDelay: condition.availableFrames + behind, at: now)
        } else {
            capture.runWithoutCard(at: now)
        }
        var hasMoved = false
        while left > 0 {
            let count = card.read(into: &incoming, count: min(left, incoming.capacity))
            if count < 0 && count != -Int(EAGAIN) {
                fail(.capture, Int32(-count), at: now)
                return hasMoved
            }
            guard count > 0 else { break }
            left -= count
            capturePace.note(count)
            capture.count(framesRead: count)
            hasMoved = true
            if isHeard { Self.take(incoming, count: count, into: &capture) }
        }
        if hasMoved { machine.handle(.progressed(.capture), at: now, into: &outbox) }
        return hasMoved
    }

    private static func take(_ samples: borrowing SampleBuffer, count: Int, into line: inout CaptureLine) {
        line.take(samples.samples(count), count: count)
    }

    private mutating func exchangePlayback(at now: Instant) -> Bool {
        guard let grant = card.grant(.playback) else {
            playback.runWithoutCard(at: now)
            return false
        }
        let condition = card.condition(.playback)
        guard condition.errno == 0 else {
            fail(.playback, condition.errno, at: now)
            return false
        }
        let cardQueue = max(0, grant.bufferFrames - condition.availableFrames)
        let queue = cardQueue + outgoing.count
        capture.reference.note(playbackDelay: max(condition.delayFrames, cardQueue) + outgoing.count, at: now)
        // At least a quarter of a period at a time, also of a card that takes all it is given.
        let room = playbackPace.allowance(at: now) - outgoing.count
        guard queue <= watermarks.wakeFrames, room >= watermarks.queueFrames - watermarks.wakeFrames else {
            return outgoing.count > 0 && finishWriting(at: now)
        }
        let before = outgoing.count
        if machine.mode == .running {
            playback.measure(
                queueFrames: queue, behindFrames: max(0, condition.delayFrames - cardQueue), at: now)
            let (want, must) = (watermarks.queueFrames - queue, max(0, watermarks.leastFrames - queue))
            outgoing.add(from: &playback, want: min(want, room), must: min(must, room), at: now)
        } else {
            playback.runWithoutCard(at: now)
            outgoing.add(silence: min(room, watermarks.queueFrames - queue))
        }
        outgoing.tell(&capture.reference, newest: outgoing.count - before)
        return finishWriting(at: now)
    }

    private mutating func finishWriting(at now: Instant) -> Bool {
        let written = outgoing.write(to: &card, again: -Int(EAGAIN))
        if written < 0 {
            fail(.playback, Int32(clamping: -written), at: now)
            return false
        }
        if written > 0 {
            playbackPace.note(written)
            machine.handle(.progressed(.playback), at: now, into: &outbox)
        }
        return written > 0
    }

    private mutating func fail(_ direction: SoundDirection, _ errno: Int32, at now: Instant) {
        if direction == .playback { outgoing.removeAll() }
        if errno == EPIPE && machine.mode != .playingOut {
            switch direction {
            case .playback:
                playback.countXrun()
                watermarks.noteXrun(at: now)
            case .capture: capture.countXrun()
            }
        }
        handle(.failed(direction, errno: errno), at: now)
    }

    /// Lets the card play what it has.
    private mutating func playOut(at now: Instant) {
        _ = finishWriting(at: now)
        guard isCardRunning, let grant = card.grant(.playback) else { return }
        let condition = card.condition(.playback)
        if condition.errno != 0 {
            fail(.playback, condition.errno, at: now)
        } else if condition.availableFrames >= grant.bufferFrames {
            handle(.playedOut, at: now)
        }
    }
}
