internal import Glibc
internal import Realtime
internal import Core

/// The ends of a card's rings that its thread has.
struct DuplexEnds: ~Copyable, Sendable {
    /// Frames to play, at the playing card's rate.
    var signal: AudioRing.Consumer
    /// Frames captured, at the capturing card's rate: one sample each, or left and right.
    var captured: AudioRing.Producer
    var notes: SPSCRing<DuplexNote>.Producer
}

/// Plays and captures frame by frame as the card has them: nothing is resampled, and no delay is corrected, so that the
/// captured sound shows only the card's behaviour.
///
/// Whenever the capturing side has a period, all waiting samples are read, and the playback buffer is refilled to the
/// same depth. The time lost by an xrun or a missing card is left out of the signal, and the same time is silence in
/// the recording: so the delay between them stays that of the card.
struct DuplexLoop<Card: SoundCard & ~Copyable>: ~Copyable {
    private enum Mode { case settling, measuring }
    private enum State { case running, away(retryAt: Instant) }

    var card: Card
    private var ends: DuplexEnds
    private var mode = Mode.settling
    private var state = State.running
    private var outgoing = OutgoingFrames()
    private var incoming = SampleBuffer(capacity: 8_192)
    /// The channels of a stereo frame that are delivered.
    private var pairs: SampleBuffer
    /// Samples that are handed on of each frame: 1, or 2.
    private let width: Int
    private let solo: SoloPlan
    private var playbackPace = Pace()
    private var capturePace = Pace()
    private let bufferMilliseconds: Double?
    /// Periods that are kept ahead if nothing else was asked for.
    private let usualPeriods: Int
    private var (playing, capturing): (CardGrant, CardGrant)
    /// Frames that the buffer to play from is filled up to.
    private(set) var queueFrames = 0
    private var settledAt: Instant
    private var xrunsWhileSettling = 0
    /// An xrun that reading or writing met although the step began without one. The next step follows at once, and
    /// measures whether this thread was held up meanwhile.
    private var metXrun: SoundDirection?
    /// When this was last run.
    private var steppedAt: Instant
    /// Until when time is accounted for in what was captured and played.
    private var accountedTo: Instant
    private var (captured, played) = (0, 0)
    /// Frames of the signal to leave out, and of silence to hand on, as soon as the rings allow.
    private var (playedDebt, capturedDebt) = (0, 0)
    private var (playedOwed, capturedOwed) = (0.0, 0.0)
    /// Notes that found their ring full.
    private(set) var notesDropped = 0

    /// Cards crackle and servers settle in their first moments: 0.4 s.
    private static var settlingNanoseconds: Int64 { 400_000_000 }
    private static var retryNanoseconds: Int64 { 500_000_000 }

    /// - Parameters:
    ///   - card: Open in both directions.
    ///   - bufferMilliseconds: How far the buffer to play from is filled; nil for as many as usual.
    ///   - hasPriority: Whether the thread runs before others: two periods are then enough, and six without.
    ///   - solo: Frames of the signal that go to one channel alone.
    ///   - keepsPairs: Whether both channels are handed on, of a card that captures two.
    init?(
        _ card: consuming Card, _ ends: consuming DuplexEnds, bufferMilliseconds: Double?, hasPriority: Bool = true,
        solo: SoloPlan = SoloPlan(), keepsPairs: Bool = false, at now: Instant
    ) {
        guard let playing = card.grant(.playback), let capturing = card.grant(.capture) else { return nil }
        self.solo = solo
        width = keepsPairs && capturing.channels == 2 ? 2 : 1
        pairs = SampleBuffer(capacity: 2 * max(8_192, capturing.bufferFrames))
        (self.playing, self.capturing) = (playing, capturing)
        self.card = card
        self.ends = ends
        self.bufferMilliseconds = bufferMilliseconds
        usualPeriods = hasPriority ? 2 : 6
        (accountedTo, steppedAt) = (now, now)
        settledAt = now.advanced(byNanoseconds: Self.settlingNanoseconds)
        prepareBuffer()
        restart(at: now)
    }

    /// Whether the card's own wake-ups are to be waited for.
    var isCardThere: Bool {
        if case .running = state { true } else { false }
    }

    /// Whether the next step must not wait for the card.
    var isDue: Bool { metXrun != nil }

    /// Whether the signal is being played.
    var isMeasuring: Bool { mode == .measuring }

    /// Does what is due.
    ///
    /// - Returns: Whether frames were moved.
    @discardableResult
    mutating func step(at now: Instant) -> Bool {
        noteHoldUp(at: now)
        payDebts()
        switch state {
        case .running:
            if let direction = metXrun {
                metXrun = nil
                return fail(direction, EPIPE, at: now)
            }
            return exchange(at: now)
        case .away(let retryAt):
            account(until: now)
            if now >= retryAt { reopen(at: now) }
            return false
        }
    }

    /// A thread that comes later than three quarters of what it keeps ahead last is at fault for what follows, and not the
    /// card.
    private mutating func noteHoldUp(at now: Instant) {
        let gap = steppedAt.nanoseconds(to: now)
        steppedAt = now
        guard mode == .measuring, isCardThere else { return }
        let ahead = Int64(queueFrames) * 750_000_000 / Int64(max(1, playing.rate))
        if gap >= ahead { note(.heldUp(nanoseconds: gap), at: now) }
    }

    // MARK: - Starting

    private mutating func prepareBuffer() {
        let wanted = bufferMilliseconds.map { Int(($0 * Double(playing.rate) / 1_000).rounded()) }
        queueFrames = min(
            max(wanted ?? usualPeriods * playing.periodFrames, playing.periodFrames), playing.bufferFrames)
        outgoing.reserve(playing.bufferFrames)
        if incoming.capacity < capturing.bufferFrames {
            incoming = SampleBuffer(capacity: capturing.bufferFrames)
            if pairs.capacity < 2 * incoming.capacity { pairs = SampleBuffer(capacity: 2 * incoming.capacity) }
        }
    }

    /// Starts both directions, with a buffer of silence to play.
    private mutating func restart(at now: Instant) {
        account(until: now)
        var result = card.prepare(.capture)
        if result >= 0 { result = card.prepare(.playback) }
        guard result >= 0 else { return lose(errno: -result, at: now) }
        // The capturing side wakes the thread; a playing side that ran dry waits for what it is given first.
        card.setWakeQueue(frames: 0, startFrames: min(playing.periodFrames, queueFrames))
        capturePace.begin(capturing, slackFrames: capturing.bufferFrames, at: now)
        playbackPace.begin(playing, slackFrames: playing.bufferFrames, at: now)
        outgoing.removeAll()
        outgoing.add(silence: queueFrames)
        result = card.start(.capture)
        if result >= 0 { result = Int32(clamping: outgoing.write(to: &card, again: -Int(EAGAIN))) }
        if result >= 0 { result = card.start(.playback) }
        guard result >= 0 else { return lose(errno: -result, at: now) }
        state = .running
    }

    private mutating func reopen(at now: Instant) {
        state = .away(retryAt: now.advanced(byNanoseconds: Self.retryNanoseconds))
        guard card.open() == nil, let playing = card.grant(.playback), let capturing = card.grant(.capture),
            playing.rate == self.playing.rate, capturing.rate == self.capturing.rate,
            width == 1 || capturing.channels == 2
        else { return card.close() }
        (self.playing, self.capturing) = (playing, capturing)
        prepareBuffer()
        restart(at: now)
        if isCardThere { note(.returned, at: now) }
    }

    // MARK: - Frames

    private mutating func exchange(at now: Instant) -> Bool {
        let input = card.condition(.capture)
        guard input.errno == 0 else { return fail(.capture, input.errno, at: now) }
        let available = min(input.availableFrames, capturePace.allowance(at: now))
        guard available >= capturing.periodFrames else { return finishWriting(at: now) > 0 }
        let output = card.condition(.playback)
        guard output.errno == 0 else { return fail(.playback, output.errno, at: now) }
        let cardQueue = max(0, playing.bufferFrames - output.availableFrames)
        let queue = cardQueue + outgoing.count
        let wanted = min(queueFrames - queue, playbackPace.allowance(at: now) - outgoing.count)
        if mode == .settling, now >= settledAt, wanted > 0 { mode = .measuring }
        if mode == .measuring, wanted > 0 {
            note(
                .exchanged(available: available, queue: queue, behind: max(0, output.delayFrames - cardQueue)), at: now)
        }
        guard read(available, at: now) else { return true }
        if wanted > 0 { fill(wanted, at: now) }
        accountedTo = now
        return finishWriting(at: now) >= 0
    }

    private mutating func read(_ count: Int, at now: Instant) -> Bool {
        var left = count
        while left > 0 {
            let moved = card.read(into: &incoming, count: min(left, incoming.capacity))
            if moved < 0 && moved != -Int(EAGAIN) { return meet(.capture, Int32(clamping: -moved), at: now) }
            guard moved > 0 else { break }
            left -= moved
            capturePace.note(moved)
            if mode == .measuring { hand(moved) }
        }
        return true
    }

    private mutating func hand(_ count: Int) {
        captured += count
        let taken = capturedDebt > 0 ? 0 : handSamples(count)
        guard taken < count else { return }
        capturedDebt += count - taken
        note(.late(played: 0, captured: count - taken), at: accountedTo)
    }

    private mutating func handSamples(_ count: Int) -> Int {
        guard width == 2 else { return Self.write(incoming, count, to: &ends.captured) }
        card.readPairs(into: &pairs, count: count)
        return Self.write(pairs, 2 * count, to: &ends.captured) / 2
    }

    private static func write(_ samples: borrowing SampleBuffer, _ count: Int, to ring: inout AudioRing.Producer) -> Int
    {
        ring.write(samples.samples(count))
    }

    private mutating func fill(_ count: Int, at now: Instant) {
        guard mode == .measuring else { return outgoing.add(silence: count) }
        guard playedDebt == 0 else {
            playedDebt += count
            played += count
            note(.late(played: count, captured: 0), at: now)
            return outgoing.add(silence: count)
        }
        let had = outgoing.add(from: &ends.signal, count: count)
        played += count
        guard had < count else { return }
        playedDebt += count - had
        note(.late(played: count - had, captured: 0), at: now)
    }

    private mutating func finishWriting(at now: Instant) -> Int {
        var total = 0
        while outgoing.count > 0 {
            // What waits are the last frames that were played.
            let part = solo.outputs(at: played - outgoing.count, most: outgoing.count)
            card.setOutputs(part.outputs)
            let written = outgoing.write(to: &card, most: part.count, again: -Int(EAGAIN))
            guard written >= 0 else {
                _ = meet(.playback, Int32(clamping: -written), at: now)
                return written
            }
            playbackPace.note(written)
            total += written
            if written < part.count { break }
        }
        return total
    }

    // MARK: - Trouble

    /// Handles an error of reading or writing. An xrun is reported by the next step, behind a hold-up that caused it.
    ///
    /// - Returns: False, for the caller to return.
    private mutating func meet(_ direction: SoundDirection, _ errno: Int32, at now: Instant) -> Bool {
        guard errno == EPIPE else { return fail(direction, errno, at: now) }
        metXrun = direction
        return false
    }

    /// - Returns: False, for the caller to return.
    private mutating func fail(_ direction: SoundDirection, _ errno: Int32, at now: Instant) -> Bool {
        switch errno {
        case EPIPE:
            if mode == .measuring { note(.xrun(direction), at: now) } else { deepen(at: now) }
            restart(at: now)
        case ESTRPIPE:
            note(.suspended, at: now)
            restart(at: now)
        default: lose(errno: errno, at: now)
        }
        return false
    }

    /// Before anything is measured, a buffer that is too short for this machine is made longer.
    private mutating func deepen(at now: Instant) {
        xrunsWhileSettling += 1
        if bufferMilliseconds == nil, xrunsWhileSettling > 1 {
            queueFrames = min(queueFrames + playing.periodFrames / 2, playing.bufferFrames - playing.periodFrames)
        }
        settledAt = max(settledAt, now.advanced(byNanoseconds: Self.settlingNanoseconds / 2))
    }

    private mutating func lose(errno: Int32, at now: Instant) {
        account(until: now)
        card.close()
        outgoing.removeAll()
        if case .away = state {} else { note(.lost(errno: errno), at: now) }
        state = .away(retryAt: now.advanced(byNanoseconds: Self.retryNanoseconds))
    }

    /// Time went by in which nothing was moved: it is left out of the signal, and is silence in what is captured.
    private mutating func account(until now: Instant) {
        defer { accountedTo = now }
        guard mode == .measuring else { return }
        let seconds = Double(accountedTo.nanoseconds(to: now)) * 1e-9
        playedOwed += seconds * Double(playing.rate)
        capturedOwed += seconds * Double(capturing.rate)
        let (playedNow, capturedNow) = (Int(playedOwed), Int(capturedOwed))
        playedOwed -= Double(playedNow)
        capturedOwed -= Double(capturedNow)
        played += playedNow
        captured += capturedNow
        playedDebt += playedNow
        capturedDebt += capturedNow
        payDebts()
    }

    private mutating func payDebts() {
        while playedDebt > 0 {
            let left = Self.discard(&incoming, min(playedDebt, incoming.capacity), from: &ends.signal)
            guard left > 0 else { break }
            playedDebt -= left
        }
        while capturedDebt > 0 {
            let count = min(capturedDebt, incoming.capacity / width)
            Self.clear(&incoming, count * width)
            let taken = Self.write(incoming, count * width, to: &ends.captured) / width
            guard taken > 0 else { break }
            capturedDebt -= taken
        }
    }

    private static func discard(_ samples: inout SampleBuffer, _ count: Int, from ring: inout AudioRing.Consumer) -> Int
    {
        var space = samples.mutableSamples(count)
        return ring.read(into: &space)
    }

    private static func clear(_ samples: inout SampleBuffer, _ count: Int) {
        var space = samples.mutableSamples(count)
        for index in 0..<count { space[index] = 0 }
    }

    /// Reports what happened, with the positions of both directions.
    mutating func note(_ event: DuplexNote.Event, at now: Instant) {
        if !ends.notes.push(DuplexNote(event: event, at: now, captured: captured, played: played)) { notesDropped += 1 }
    }
}
