internal import Realtime
public import VoiceActivity

/// The media worker's side of a port. It takes each received frame and provides the frame to send; it never waits,
/// allocates or locks.
///
/// When the queue runs empty, or is cleared, the sound fades out within 5 ms; when it returns it fades in within 5 ms.
/// A late program causes silence.
public struct PortLine: ~Copyable, Sendable {
    private var heard: AudioRing.Producer
    private var queue: AudioRing.Consumer
    private var orders: SPSCRing<PlayOrder>.Consumer
    private var reports: SPSCRing<PlayReport>.Producer
    private var turnEvents: SPSCRing<TurnEvent>.Producer
    /// Nil for a mixer, which runs by its own clock.
    private let handle: WakeupHandle?
    // Keeps the handle's descriptor open. Untouched on the media thread, so no retain there.
    private let signal: PortSignal?
    private var report = PlayReport()
    /// Samples a second of the widest sound that the program has queued: there is nothing above half of that in what it says.
    package private(set) var widestRate: Int
    private var edge = SoundEdge()
    /// Who speaks, if that is followed.
    private var turns: OutOfLine<TurnTaking>?
    private let followsTurns: Bool
    /// Samples of the call's sound before this line came into it.
    package var start: Int { @_noAllocation @_noLocks get { report.start } }
    /// Samples of the queue that were sent at a low level, and are still in it: the caller hears them again if that was no speech.
    private var ahead = 0
    /// The caller has interrupted the program, and its side does not know yet: nothing of the queue is sent.
    private var isHeld = false
    /// Set if another call fills the queue.
    private var joined: JoinedQueue?
    /// Of a joined call: what its peer says is made up, and nothing else was passed yet.
    private var isMadeUp = false
    /// Of a joined call: sound of its peer was passed.
    private var hasSpoken = false
    /// Of a mixer's call: frames that are encoded for several calls.
    private var shared: OutOfLine<SharedFrameReader>?
    /// How turns were taken so far; nil if that is not followed.
    public var summary: TurnSummary? { @_noAllocation @_noLocks get { report.turns } }

    init(
        heard: consuming AudioRing.Producer, queue: consuming AudioRing.Consumer,
        orders: consuming SPSCRing<PlayOrder>.Consumer, reports: consuming SPSCRing<PlayReport>.Producer,
        turnEvents: consuming SPSCRing<TurnEvent>.Producer, rate: PortRate, turns: TurnPlan?, signal: PortSignal?,
        joined: JoinedQueue? = nil, shared: consuming SharedFrameReader? = nil
    ) {
        if let shared { self.shared = .some(OutOfLine(shared)) }
        self.joined = joined
        widestRate = rate.rawValue
        self.heard = heard
        self.queue = queue
        self.orders = orders
        self.reports = reports
        self.turnEvents = turnEvents
        self.signal = signal
        handle = signal?.handle
        followsTurns = turns != nil
        guard let turns else { return }
        self.turns = .some(OutOfLine(TurnTaking(rateHz: 48_000, interrupts: turns.interrupts)))
        report.turns = TurnSummary()
    }

    /// The line joins a call whose sound has lasted for this number of samples at 48 kHz: positions of speech count from the
    /// beginning of that sound.
    @_noAllocation @_noLocks
    package mutating func begin(at position: Int) { report.start = position }

    /// Runs one frame. Both spans have the same length, in samples at 48 kHz.
    @_noAllocation @_noLocks
    public mutating func exchange(received: Span<Int16>, sending: inout MutableSpan<Int16>) {
        pass(received)
        report.isSuspended = false
        carryOutOrders()
        var count = 0
        if followsTurns {
            count = takeTurn(received, &sending)
        } else {
            leaveOutLateSound()
            let position = queue.position
            count = queue.read(into: &sending)
            shared?.value.provided(edge.isAtRest && count == sending.count ? position : nil)
            report.consumed &+= count
            joined?.noteRest(queue.count)
        }
        edge.shape(&sending, soundSamples: count)
        noteSent(sending)
        // If the ring is full, the next report replaces this one.
        _ = reports.push(report)
        handle?.signal()
    }

    /// The frame of the last ``exchange(received:sending:)`` as a mixer has encoded it for several calls, if its samples are those that
    /// were provided: once.
    @_noAllocation @_noLocks
    package mutating func takeSharedFrame() -> SharedFrame? {
        shared?.value.take()
    }

    /// The samples of the last frame are not sent as they are.
    @_noAllocation @_noLocks
    package mutating func changeFrame() { shared?.value.provided(nil) }

    /// Notifies a mixer of how the call sends what it hears.
    @_noAllocation @_noLocks
    package mutating func note(_ sharing: FrameSharing) { shared?.value.note(sharing) }

    /// Runs one frame in which the caller hears something else: what a program has queued waits, and the program receives what the caller
    /// says. What a mixer sends is of this moment, and is left out: the caller hears the mix without delay afterwards.
    @_noAllocation @_noLocks
    public mutating func hold(received: Span<Int16>, sending: borrowing MutableSpan<Int16>) {
        pass(received)
        report.isSuspended = true
        carryOutOrders()
        if handle == nil { queue.skip(sending.count) }
        if followsTurns { follow(hear(received, sending, sending.count, isProgram: false)) }
        if joined != nil { queue.skip(queue.count) }
        _ = reports.push(report)
        handle?.signal()
    }

    /// Runs one frame of a joined call that does not hear the other one yet: what it says goes there already.
    @_noAllocation @_noLocks
    package mutating func offer(received: Span<Int16>) { pass(received) }

    /// Notes of a joined call, before each of its frames, whether all that it receives is made up. Until its peer is heard that is passed as
    /// silence: while a telephone sends a key, what fills the gap sounds like its last words, and would count as its first.
    @_noAllocation @_noLocks
    package mutating func note(isMadeUp: Bool) {
        guard joined != nil, !hasSpoken else { return }
        hasSpoken = !isMadeUp
        self.isMadeUp = isMadeUp
    }

    @_noAllocation @_noLocks
    private mutating func pass(_ received: Span<Int16>) {
        let taken = isMadeUp ? writeSilence(received.count, to: &heard) : heard.write(received)
        report.missed &+= received.count &- taken
    }

    /// Whether a joined call is to hear the other one from this frame on: that has sound, or was waited for long enough. Silence that the
    /// other one has sent by then is left out.
    ///
    /// - Parameter frame: Working memory, of a frame's length.
    @_noAllocation @_noLocks
    package mutating func hasSound(lookingInto frame: inout MutableSpan<Int16>) -> Bool {
        leaveOutLateSound()
        while queue.count >= frame.count {
            _ = queue.look(at: 0, into: &frame)
            guard !isSilent(frame) else {
                queue.skip(frame.count)
                continue
            }
            return true
        }
        return joined?.endsWait(afterFrame: frame.count) ?? true
    }

    /// Leaves out sound of another call that would be late.
    @_noAllocation @_noLocks
    private mutating func leaveOutLateSound() {
        guard let late = joined?.takeLate(of: queue.count), late > 0 else { return }
        queue.skip(late)
        edge.cut()
    }

    /// Frames of another call that were left out, because they would have been late; 0 of a program.
    package var framesLeftOut: Int { @_noAllocation @_noLocks get { joined?.framesLeftOut ?? 0 } }

    /// Samples of the call that were dropped, because the other side did not read them.
    package var missedSamples: Int { @_noAllocation @_noLocks get { report.missed } }

    /// Only the newest order counts: the position of playback is reported for one.
    @_noAllocation @_noLocks
    private mutating func carryOutOrders() {
        var newest = 0
        while let order = orders.pop() {
            newest = max(newest, order.target)
            widestRate = max(widestRate, order.widestRate)
            guard isHeld, order.interruptions == report.interruptions else { continue }
            isHeld = false
            turns?.value.clear()
        }
        clear(to: newest)
    }

    /// Provides the next frame of the queue, after it was found out who speaks: at full level, lowered, or not at all.
    ///
    /// What is sent at a low level stays in the queue, and counts as not played, until it is sent at full level or discarded.
    ///
    /// - Returns: Samples of sound in the frame.
    @_noAllocation @_noLocks
    private mutating func takeTurn(_ received: Span<Int16>, _ sending: inout MutableSpan<Int16>) -> Int {
        var count = isHeld ? 0 : queue.look(at: ahead, into: &sending)
        let decision = hear(received, sending, count, isProgram: true)
        follow(decision)
        switch decision {
        case .none, .lowered, .passed: break
        case .restored: count = queue.look(at: 0, into: &sending)
        case .stopped: count = 0
        }
        guard count > 0 else { return 0 }
        turns?.value.applyGain(to: &sending)
        if (turns?.value.gain ?? 1) < 1 {
            ahead &+= count
        } else {
            queue.skip(count)
            report.consumed &+= count
        }
        return count
    }

    /// Samples of the call's sound so far.
    private var position: Int {
        @_noAllocation @_noLocks mutating get { start &+ (turns?.value.position ?? 0) }
    }

    @_noAllocation @_noLocks
    private mutating func follow(_ decision: BargeInDecision) {
        switch decision {
        case .none: return
        case .lowered: return tell(.lowered(at: position))
        case .restored:
            tell(.restored(at: position))
            edge.cut()
        case .passed:
            // The caller was sent it, and speaks now.
            queue.skip(ahead)
            report.consumed &+= ahead
        case .stopped:
            report.interruptions &+= 1
            isHeld = true
        }
        // Restored, it continues where it was when it was lowered; passed, behind what was sent.
        ahead = 0
        turns?.value.restartGain()
    }

    @_noAllocation @_noLocks
    private mutating func hear(
        _ received: Span<Int16>, _ sending: borrowing MutableSpan<Int16>, _ count: Int, isProgram: Bool
    ) -> BargeInDecision {
        guard
            let found = turns?.value.hear(
                received, sending: sending, count: count, played: report.consumed &- report.skipped,
                isProgram: isProgram)
        else { return .none }
        for index in 0..<found.events.count {
            let event = found.events[index]
            switch event.kind {
            case .onset, .retracted: break
            case .confirmed: tell(.speechBegan(at: start &+ event.position))
            case .ended: tell(.speechEnded(at: start &+ event.position))
            }
        }
        if let turn = found.turn { tell(.answered(turn.moved(by: start))) }
        // A program is restored after a time, without an event.
        if case .none = found.bargeIn, found.events.count == 0 { return .none }
        report.turns = turns?.value.summary
        return found.bargeIn
    }

    /// Response times are those of what is really sent.
    @_noAllocation @_noLocks
    private mutating func noteSent(_ sending: borrowing MutableSpan<Int16>) {
        guard let turn = turns?.value.send(sending) else { return }
        tell(.answered(turn.moved(by: start)))
        report.turns = turns?.value.summary
    }

    @_noAllocation @_noLocks
    private mutating func tell(_ event: TurnEvent) {
        if !turnEvents.push(event) { report.eventsLost &+= 1 }
    }

    /// Ends the line with its call.
    @_noAllocation @_noLocks
    public mutating func finish() {
        heard.close()
        handle?.signal()
    }

    /// Discards what is in the queue before `target`.
    @_noAllocation @_noLocks
    private mutating func clear(to target: Int) {
        guard target > report.clearedTo else { return }
        report.clearedAt = report.consumed
        report.clearedTo = target
        let count = target &- report.consumed
        guard count > 0 else { return }
        queue.skip(count)
        ahead = max(0, ahead &- count)
        report.consumed &+= count
        report.skipped &+= count
        edge.cut()
    }
}

/// Writes silence in place of a frame.
///
/// - Returns: Samples that the ring has taken.
// Views of samples, which unoptimised code counts as a deallocation.
@_semantics("no_performance_analysis") @inline(__always)
private func writeSilence(_ count: Int, to ring: inout AudioRing.Producer) -> Int {
    let silence = InlineArray<480, Int16>(repeating: 0)
    var written = 0
    while written < count {
        let taken = ring.write(silence.span.extracting(0..<min(count &- written, silence.count)))
        guard taken > 0 else { break }
        written &+= taken
    }
    return written
}

/// Whether all samples are below −72 dBFS, which is not heard.
@_noAllocation @_noLocks
private func isSilent(_ frame: borrowing MutableSpan<Int16>) -> Bool {
    for index in 0..<frame.count where frame[index].magnitude > 8 { return false }
    return true
}

/// Lets sound fall and rise within 5 ms where it would break off.
package struct SoundEdge: BitwiseCopyable {
    /// Samples of a slope at 48 kHz: 5 ms.
    package static var length: Int { @_noAllocation @_noLocks get { 240 } }

    /// The sample that was sent last.
    private var last: Int16 = 0
    /// Where the slope began that falls now.
    private var top: Int16 = 0
    /// Samples that are left of it.
    private var falling = 0
    /// Samples since the sound came back, up to the slope's length.
    private var risen = SoundEdge.length

    private var isCutExpected = false

    @_noAllocation @_noLocks
    package init() {}

    /// The next frame of ``join(_:)`` does not continue the previous one.
    @_noAllocation @_noLocks
    package mutating func expectCut() { isCutExpected = true }

    /// Passes frames, and shapes those after a cut.
    @_noAllocation @_noLocks
    package mutating func join(_ frame: inout MutableSpan<Int16>) {
        if isCutExpected {
            isCutExpected = false
            cut()
        }
        guard falling > 0 || risen < Self.length else {
            if frame.count > 0 { last = frame[frame.count &- 1] }
            return
        }
        shape(&frame, soundSamples: frame.count)
    }

    /// Whether frames pass as they are.
    package var isAtRest: Bool {
        @_noAllocation @_noLocks get { !isCutExpected && falling == 0 && risen >= Self.length }
    }

    /// Notes a frame that passes as it is.
    @_noAllocation @_noLocks
    mutating func pass(_ frame: Span<Int16>) { if frame.count > 0 { last = frame[frame.count &- 1] } }

    /// The next sound does not continue the previous one.
    @_noAllocation @_noLocks
    mutating func cut() {
        top = last
        falling = Self.length
        risen = 0
    }

    /// Shapes a frame of which the first `soundSamples` are sound; the others are filled.
    @_noAllocation @_noLocks
    mutating func shape(_ frame: inout MutableSpan<Int16>, soundSamples: Int) {
        for index in 0..<frame.count {
            if index == soundSamples, risen > 0 { cut() }
            var value = 0
            if index < soundSamples {
                value = Int(frame[index])
                if risen < Self.length {
                    value = value &* risen / Self.length
                    risen &+= 1
                }
            }
            if falling > 0 {
                value = max(-32_768, min(32_767, value &+ Int(top) &* falling / Self.length))
                falling &-= 1
            }
            last = Int16(truncatingIfNeeded: value)
            frame[index] = last
        }
    }
}
