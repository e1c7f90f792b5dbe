internal import Glibc
internal import Core

/// Decides what is to be done with a sound card: opening, a start that leads to a steady delay, xruns, suspends, cards
/// that vanish, stall or return, and an end that does not hang.
///
/// Its outputs are carried out at once, in order; it receives only failures and the inputs below.
struct CardMachine: ProtocolCore, Sendable {
    enum Input: Equatable, Sendable {
        case start
        /// `open` has succeeded.
        case opened(playback: CardGrant?, capture: CardGrant?)
        /// `open` has failed.
        case openFailed(CardFailure)
        /// Frames were moved in this direction.
        case progressed(SoundDirection)
        /// Something with this direction has failed, with a positive errno.
        case failed(SoundDirection, errno: Int32)
        /// `resume` has succeeded.
        case resumed(SoundDirection)
        /// `resume` has failed, with a positive errno.
        case resumeFailed(SoundDirection, errno: Int32)
        /// While stopping: all that was written has been played.
        case playedOut
        /// The card has had no user for a while.
        case rest
        /// The card has a user.
        case wake
        case stop
        case timerFired
    }

    enum Output: Equatable, Sendable {
        case open
        case close
        /// Stop this direction, empty it, fill its queue with silence if it is playback, and start it.
        case run(SoundDirection)
        /// Stop this direction and empty it, so that the card does not wake its thread.
        case halt(SoundDirection)
        /// Look whether this direction is still there.
        case probe(SoundDirection)
        case resume(SoundDirection)
        case tell(CardEvent)
    }

    /// What the loop does between inputs.
    enum Mode: Equatable, Sendable {
        /// No card: the machine's clock replaces it.
        case withoutCard
        /// The card is open and stopped.
        case resting
        /// Samples are moved, but not the calls': the card's first ones are thrown away, and silence is played.
        case settling
        case running
        /// No new samples are written; the last are played.
        case playingOut
        case stopped
    }

    private enum State: Sendable {
        case idle
        case opening
        case absent(retryAt: Instant)
        case settling(Running, until: Instant)
        case running(Running)
        case resting(Running, probeAt: Instant)
        /// Until `deadline` the card may resume by itself; it is asked at `retryAt`.
        case suspended(Running, direction: SoundDirection, retryAt: Instant, deadline: Instant)
        case playingOut(deadline: Instant)
        case stopped
    }

    /// When each direction moved last, and its failures in a row.
    private struct Running: Sendable {
        var movedAt: InlineArray<2, Instant>
        var failures = InlineArray<2, Int>(repeating: 0)
        let uses: InlineArray<2, Bool>
        let settle: Duration
        let bufferTime: Duration
        /// Whether it has reported that sound flows.
        var isTold = false

        mutating func note(_ direction: SoundDirection, at now: Instant) {
            movedAt[Int(direction.rawValue)] = now
            failures[Int(direction.rawValue)] = 0
        }
    }

    private var state = State.idle
    private var lastOpenFailure: CardFailure?
    /// Before the next try to open a card; longer each time, and short again once one ran.
    private var retryPause = firstRetry
    private var limiters = InlineArray<2, EventLimiter>(repeating: EventLimiter())
    /// For the statistics.
    private(set) var opens = 0
    private(set) var losses = 0
    private(set) var suspends = 0

    private static let firstRetry = Duration.milliseconds(200)
    private static let longestRetry = Duration.seconds(2)
    private static let resumeInterval = Duration.milliseconds(50)
    /// After that time a card that does not resume is restarted.
    private static let resumeLimit = Duration.seconds(10)
    /// A direction that moves nothing for this time, and for twice its buffer, has stalled.
    private static let stallLimit = Duration.seconds(2)
    /// The longest time after a rest in which the calls' sound is not moved.
    private static let wakeLimit = Duration.milliseconds(10)
    /// How often a resting card is checked: nothing else shows that it was unplugged.
    private static let probeInterval = Duration.seconds(2)
    /// Failures in a row, with nothing moved between them, after which the card is reopened.
    private static let failureLimit = 8

    var mode: Mode {
        switch state {
        case .idle, .opening, .absent, .suspended: .withoutCard
        case .resting: .resting
        case .settling: .settling
        case .running: .running
        case .playingOut: .playingOut
        case .stopped: .stopped
        }
    }

    var nextDeadline: Instant? {
        let own: Instant? =
            switch state {
            case .idle, .opening, .stopped: nil
            case .absent(let retryAt): retryAt
            case .settling(let running, let until): min(until, Self.stallDeadline(running))
            case .running(let running): Self.stallDeadline(running)
            case .resting(_, let probeAt): probeAt
            case .suspended(_, _, let retryAt, _): retryAt
            case .playingOut(let deadline): deadline
            }
        var earliest = own
        for index in 0..<2 {
            if let due = limiters[index].deadline { earliest = min(earliest ?? due, due) }
        }
        return earliest
    }

    mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .start:
            guard case .idle = state else { return }
            state = .opening
            outbox.append(.open)
        case .opened(let playback, let capture): opened(playback, capture, at: now, into: &outbox)
        case .openFailed(let failure): openFailed(failure, at: now, into: &outbox)
        case .progressed(let direction): progressed(direction, at: now)
        case .failed(let direction, let errno): failed(direction, errno, at: now, into: &outbox)
        case .resumed(let direction): resumed(direction, at: now, into: &outbox)
        case .resumeFailed(let direction, let errno): resumeFailed(direction, errno, at: now, into: &outbox)
        case .playedOut:
            if case .playingOut = state { end(into: &outbox) }
        case .rest: rest(at: now, into: &outbox)
        case .wake: wake(at: now, into: &outbox)
        case .stop: stop(at: now, into: &outbox)
        case .timerFired: timerFired(at: now, into: &outbox)
        }
    }

    private mutating func opened(
        _ playback: CardGrant?, _ capture: CardGrant?, at now: Instant, into outbox: inout [Output]
    ) {
        guard case .opening = state else { return }
        opens += 1
        lastOpenFailure = nil
        let period = max(playback?.periodMilliseconds ?? 0, capture?.periodMilliseconds ?? 0)
        let buffer = max(playback?.bufferMilliseconds ?? 0, capture?.bufferMilliseconds ?? 0)
        let running = Running(
            movedAt: [now, now], uses: [playback != nil, capture != nil],
            settle: .milliseconds(Int(min(200, 5 * period))), bufferTime: .milliseconds(Int(buffer)))
        outbox.append(.tell(.opened(playback: playback, capture: capture)))
        state = .settling(running, until: now.advanced(by: running.settle))
        // Capture first: its stale frames are drained while the silence in the playback's queue begins to play.
        if capture != nil { outbox.append(.run(.capture)) }
        if playback != nil { outbox.append(.run(.playback)) }
    }

    private mutating func openFailed(_ failure: CardFailure, at now: Instant, into outbox: inout [Output]) {
        guard case .opening = state else { return }
        if failure != lastOpenFailure { outbox.append(.tell(.unavailable(failure))) }
        lastOpenFailure = failure
        state = .absent(retryAt: now.advanced(by: retryPause))
        retryPause = min(retryPause * 2, Self.longestRetry)
    }

    private mutating func progressed(_ direction: SoundDirection, at now: Instant) {
        switch state {
        case .settling(var running, let until):
            running.note(direction, at: now)
            state = .settling(running, until: until)
        case .running(var running):
            running.note(direction, at: now)
            state = .running(running)
        case .idle, .opening, .absent, .resting, .suspended, .playingOut, .stopped: break
        }
    }

    private mutating func failed(
        _ direction: SoundDirection, _ errno: Int32, at now: Instant, into outbox: inout [Output]
    ) {
        switch state {
        case .settling(let running, _), .running(let running):
            recover(running, direction, errno, at: now, into: &outbox)
        case .playingOut:
            // Its last samples are played, or it is gone; either way there is nothing to wait for.
            if direction == .playback { end(into: &outbox) }
        case .resting:
            // Any other failure is found and repaired when the card runs again.
            if Self.isGone(errno) { lose(errno, at: now, into: &outbox) }
        case .idle, .opening, .absent, .suspended, .stopped: break
        }
    }

    private mutating func recover(
        _ running: Running, _ direction: SoundDirection, _ errno: Int32, at now: Instant, into outbox: inout [Output]
    ) {
        var running = running
        let index = Int(direction.rawValue)
        running.failures[index] += 1
        guard !Self.isGone(errno), running.failures[index] <= Self.failureLimit else {
            return lose(errno, at: now, into: &outbox)
        }
        if errno == ESTRPIPE {
            suspends += 1
            outbox.append(.tell(.suspended))
            state = .suspended(
                running, direction: direction, retryAt: now.advanced(by: Self.resumeInterval),
                deadline: now.advanced(by: Self.resumeLimit))
            outbox.append(.resume(direction))
            return
        }
        if errno == EPIPE, let count = limiters[index].count(at: now) {
            outbox.append(.tell(.xruns(direction, count: count)))
        }
        if case .settling = state {
            state = .settling(running, until: now.advanced(by: running.settle))
        } else {
            state = .running(running)
        }
        outbox.append(.run(direction))
    }

    /// The card is gone: unplugged, its driver unloaded, its sound server gone.
    private static func isGone(_ errno: Int32) -> Bool { errno == ENODEV || errno == ENXIO || errno == ECONNREFUSED }

    private mutating func lose(_ errno: Int32, at now: Instant, into outbox: inout [Output]) {
        losses += 1
        state = .absent(retryAt: now.advanced(by: retryPause))
        retryPause = min(retryPause * 2, Self.longestRetry)
        outbox.append(.close)
        outbox.append(.tell(.lost(errno: errno)))
    }

    private mutating func resumed(_ direction: SoundDirection, at now: Instant, into outbox: inout [Output]) {
        guard case .suspended(var running, _, _, _) = state else { return }
        running.movedAt = [now, now]
        running.isTold = false
        outbox.append(.tell(.resumed))
        // Its buffers are outdated, and both directions had stopped: they start as at the beginning.
        state = .settling(running, until: now.advanced(by: running.settle))
        runAll(running, into: &outbox)
    }

    private mutating func resumeFailed(
        _ direction: SoundDirection, _ errno: Int32, at now: Instant, into outbox: inout [Output]
    ) {
        guard case .suspended(let running, let direction, _, let deadline) = state else { return }
        if Self.isGone(errno) { return lose(errno, at: now, into: &outbox) }
        if errno == EAGAIN, now < deadline {
            state = .suspended(
                running, direction: direction, retryAt: now.advanced(by: Self.resumeInterval), deadline: deadline)
            return
        }
        // It cannot resume, or does not. A restart is the only option left; it fails if the card is still asleep.
        resumed(direction, at: now, into: &outbox)
    }

    private mutating func rest(at now: Instant, into outbox: inout [Output]) {
        guard case .running(let running) = state else { return }
        state = .resting(running, probeAt: now.advanced(by: Self.probeInterval))
        for direction in SoundDirection.allCases where running.uses[Int(direction.rawValue)] {
            outbox.append(.halt(direction))
        }
    }

    private mutating func wake(at now: Instant, into outbox: inout [Output]) {
        guard case .resting(var running, _) = state else { return }
        running.movedAt = [now, now]
        running.failures = InlineArray(repeating: 0)
        // It was emptied when it stopped, and its driver has run before.
        state = .settling(running, until: now.advanced(by: min(running.settle, Self.wakeLimit)))
        runAll(running, into: &outbox)
    }

    private func runAll(_ running: Running, into outbox: inout [Output]) {
        if running.uses[Int(SoundDirection.capture.rawValue)] { outbox.append(.run(.capture)) }
        if running.uses[Int(SoundDirection.playback.rawValue)] { outbox.append(.run(.playback)) }
    }

    private mutating func stop(at now: Instant, into outbox: inout [Output]) {
        switch state {
        case .running(let running) where running.uses[Int(SoundDirection.playback.rawValue)]:
            // Not snd_pcm_drain, which waits for ever on a stalled card.
            state = .playingOut(deadline: now.advanced(by: min(running.bufferTime, .milliseconds(500))))
        case .running, .settling, .resting, .suspended, .opening: end(into: &outbox)
        case .idle, .absent:
            state = .stopped
            outbox.append(.tell(.stopped))
        case .playingOut, .stopped: break
        }
    }

    private mutating func end(into outbox: inout [Output]) {
        state = .stopped
        outbox.append(.close)
        outbox.append(.tell(.stopped))
    }

    private mutating func timerFired(at now: Instant, into outbox: inout [Output]) {
        for direction in SoundDirection.allCases {
            if let count = limiters[Int(direction.rawValue)].takeDue(at: now) {
                outbox.append(.tell(.xruns(direction, count: count)))
            }
        }
        switch state {
        case .idle, .opening, .stopped: break
        case .absent(let retryAt):
            guard now >= retryAt else { return }
            state = .opening
            outbox.append(.open)
        case .settling(var running, let until):
            if checkStall(running, at: now, into: &outbox) { return }
            guard now >= until else { return }
            retryPause = Self.firstRetry
            let isTold = running.isTold
            running.isTold = true
            state = .running(running)
            if !isTold { outbox.append(.tell(.running)) }
        case .running(let running): _ = checkStall(running, at: now, into: &outbox)
        case .resting(let running, let probeAt):
            guard now >= probeAt else { return }
            state = .resting(running, probeAt: now.advanced(by: Self.probeInterval))
            for direction in SoundDirection.allCases where running.uses[Int(direction.rawValue)] {
                outbox.append(.probe(direction))
            }
        case .suspended(_, let direction, let retryAt, _):
            if now >= retryAt { outbox.append(.resume(direction)) }
        case .playingOut(let deadline):
            if now >= deadline { end(into: &outbox) }
        }
    }

    private mutating func checkStall(_ running: Running, at now: Instant, into outbox: inout [Output]) -> Bool {
        for direction in SoundDirection.allCases where running.uses[Int(direction.rawValue)] {
            let movedAt = running.movedAt[Int(direction.rawValue)]
            guard now >= movedAt.advanced(by: Self.stallLimit + running.bufferTime * 2) else { continue }
            outbox.append(.tell(.stalled(direction)))
            lose(EIO, at: now, into: &outbox)
            return true
        }
        return false
    }

    private static func stallDeadline(_ running: Running) -> Instant {
        var earliest: Instant?
        for index in 0..<2 where running.uses[index] {
            let deadline = running.movedAt[index].advanced(by: stallLimit + running.bufferTime * 2)
            earliest = min(earliest ?? deadline, deadline)
        }
        return earliest ?? running.movedAt[0].advanced(by: stallLimit)
    }
}

/// Reports the first of many equal events at once, and the others as a number, at most every ten seconds.
struct EventLimiter: BitwiseCopyable, Sendable {
    private var unreported = 0
    private var quietUntil: Instant?

    private static let interval = Duration.seconds(10)

    /// When ``takeDue(at:)`` will return events.
    var deadline: Instant? { unreported > 0 ? quietUntil : nil }

    /// Counts one event.
    ///
    /// - Returns: How many are to be reported now; nil for none.
    mutating func count(at now: Instant) -> Int? {
        unreported += 1
        if let quietUntil, now < quietUntil { return nil }
        return take(at: now)
    }

    /// How many are due to be reported now; nil for none.
    mutating func takeDue(at now: Instant) -> Int? {
        guard let deadline, now >= deadline else { return nil }
        return take(at: now)
    }

    private mutating func take(at now: Instant) -> Int? {
        defer { unreported = 0 }
        quietUntil = now.advanced(by: Self.interval)
        return unreported
    }
}
