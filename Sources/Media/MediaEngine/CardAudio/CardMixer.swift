internal import AudioDevices
package import Core
package import CallMedia
internal import Realtime
internal import AudioKit

/// Connects a sound card with the calls that use it, on their media worker.
///
/// While a call uses the card or a tone sounds, it has microphone ticks and loudspeaker ticks, one of each every 10 ms.
/// A microphone tick takes captured sound, removes echo and noise, and passes it to the calls, whose frames are due at
/// these ticks. A loudspeaker tick mixes the calls' received sound and tones, and plays them. The echo canceller's
/// reference comes from the card itself, together with the captured sound, so changes of delays and ticks here do not
/// affect it.
package struct CardMixer: ~Copyable {
    /// Samples of a tick: 10 ms.
    static var tickSamples: Int { @_noAllocation @_noLocks get { CardCall.tickSamples } }
    private static var tickNanoseconds: Int64 { @_noAllocation @_noLocks get { 10_000_000 } }
    /// A mixer that falls further behind skips what it has missed.
    private static var catchUpNanoseconds: Int64 { @_noAllocation @_noLocks get { 160_000_000 } }

    private let inPlace = InPlace()
    private var line: SoundLine
    private var processor: SpeakerphoneProcessor
    private let sharing: CallSound.Sharing
    private var focus: MediaCallID?
    private var microphone = VolumeControl()
    private var loudspeaker = VolumeControl()
    private var microphoneMeter = LevelDisplay()
    private var loudspeakerMeter = LevelDisplay()
    private var tones: CallProgressTones
    private var mixer = CallMixer()
    /// Captured sound, what the card played meanwhile, the mix for one call of several, and what was played in the last
    /// tick.
    private var captured = SampleBuffer(capacity: CardMixer.tickSamples)
    private var reference = SampleBuffer(capacity: CardMixer.tickSamples)
    private var work = SampleBuffer(capacity: CardMixer.tickSamples)
    private var played = SampleBuffer(capacity: CardMixer.tickSamples)
    /// When the next ticks are due; nil while no call uses the card. Calls send at the microphone's ticks; the
    /// loudspeaker's ticks are where packets wait the least.
    private var nextCapture: Instant?
    private var nextPlay: Instant?
    private var follower = PeriodTracker(frameNanoseconds: CardMixer.tickNanoseconds)
    /// Captured samples that had been missing before the last tick.
    private var missed = 0
    private var place = PlayoutPhase()
    /// Samples that the loudspeaker's next tick leaves out.
    private var skipping = 0
    /// Of the microphone's kind, since ticks were begun.
    private var ticksSinceStart = 0
    private var ticks = 0
    private var ticksSkipped = 0

    /// - Throws: ``SpeakerphoneError`` when the library refuses.
    init(_ sound: CallSound, line: consuming SoundLine) throws(SpeakerphoneError) {
        self.line = line
        processor = try SpeakerphoneProcessor(sound.processing)
        sharing = sound.sharing
        tones = CallProgressTones(CallToneSet(country: sound.country))
        microphone.set(gainDB: sound.microphoneDB)
        microphone.set(isMuted: sound.isMuted)
        loudspeaker.set(gainDB: sound.volumeDB)
    }

    @_noAllocation @_noLocks
    package mutating func handle(_ order: CardCommand) {
        switch order {
        case .mute(let isMuted): microphone.set(isMuted: isMuted)
        case .volume(let decibels): loudspeaker.set(gainDB: decibels)
        case .microphone(let decibels): microphone.set(gainDB: decibels)
        case .process(let settings): processor.apply(settings)
        case .tone(let tone): tones.sound(tone)
        case .focus(let call): focus = call
        }
    }

    // MARK: Ticks

    /// Begins to take ticks when a call uses the card, and stops when none does.
    @_noAllocation @_noLocks
    package mutating func settle(_ calls: CardCalls, at now: Instant) {
        let isUsed = tones.isSounding || Self.usesCard(calls)
        if isUsed, !isTakingTicks {
            let first = follower.aligned(Self.slot(after: now), to: line.lastBoundary)
            (nextCapture, nextPlay) = (first, first)
            place.begin()
            skipping = 0
            ticksSinceStart = 0
        } else if !isUsed, isTakingTicks {
            (nextCapture, nextPlay) = (nil, nil)
            line.pause(at: now)
        }
    }

    private var isTakingTicks: Bool {
        @_noAllocation @_noLocks get { if case .some = nextCapture { true } else { false } }
    }

    /// When the next tick of either kind is due; nil while no call uses the card.
    package var nextTick: Instant? {
        @_noAllocation @_noLocks get {
            guard let nextCapture, let nextPlay else { return nil }
            return nextCapture.nanoseconds <= nextPlay.nanoseconds ? nextCapture : nextPlay
        }
    }

    /// What is due first; nil if nothing is. Of two that are due at once, the microphone's.
    @_noAllocation @_noLocks
    package mutating func tick(at now: Instant) -> Tick? {
        guard let capture = nextCapture, let play = nextPlay else { return nil }
        let isCapture = capture.nanoseconds <= play.nanoseconds
        let due = isCapture ? capture : play
        guard due.nanoseconds <= now.nanoseconds else { return nil }
        let behind = due.nanoseconds(to: now)
        guard behind > Self.catchUpNanoseconds else { return isCapture ? .capture(due) : .play(due) }
        // The machine stalled: both skip the same time.
        let skipped = behind / Self.tickNanoseconds
        ticksSkipped += Int(skipped)
        nextCapture = capture.advanced(byNanoseconds: skipped * Self.tickNanoseconds)
        nextPlay = play.advanced(byNanoseconds: skipped * Self.tickNanoseconds)
        return isCapture
            ? .capture(due.advanced(byNanoseconds: skipped * Self.tickNanoseconds))
            : .play(due.advanced(byNanoseconds: skipped * Self.tickNanoseconds))
    }

    /// What a tick is for, and when it is due.
    package enum Tick: BitwiseCopyable {
        /// From the microphone to the calls.
        case capture(Instant)
        /// From the calls to the loudspeaker.
        case play(Instant)
    }

    /// Whether another tick of the kind follows `tick` before `now`.
    @_noAllocation @_noLocks
    package static func isLast(_ tick: Instant, at now: Instant) -> Bool { tick.nanoseconds(to: now) < tickNanoseconds }

    /// The first of the microphone's ticks that is not before `earliest`.
    @_noAllocation @_noLocks
    package func tick(notBefore earliest: Instant) -> Instant {
        guard let due = nextCapture else { return Self.slot(after: earliest) }
        let wait = max(0, due.nanoseconds(to: earliest))
        let number = (wait + Self.tickNanoseconds - 1) / Self.tickNanoseconds
        return due.advanced(byNanoseconds: number * Self.tickNanoseconds)
    }

    /// Aligns ticks to the grid of `slot`, or to just after the card's periods if it has them. This resets the card's
    /// delay, so call it only while no call listens.
    ///
    /// - Returns: The tick that `slot` has become.
    @_noAllocation @_noLocks
    package mutating func align(to slot: Instant, at now: Instant) -> Instant {
        guard let due = nextCapture else { return slot }
        let aligned = follower.aligned(slot, to: line.lastBoundary)
        let rest = due.nanoseconds(to: aligned) % Self.tickNanoseconds
        guard rest != 0 else { return aligned }
        let first = due.advanced(byNanoseconds: rest < 0 ? rest + Self.tickNanoseconds : rest)
        (nextCapture, nextPlay) = (first, first)
        line.pause(at: now)
        return aligned
    }

    /// Moves the ticks after the one that was due at `due`, so that they follow the card's periods.
    ///
    /// - Returns: How much later, in nanoseconds, frames at these ticks are to come from now on.
    @_noAllocation @_noLocks
    package mutating func follow(_ due: Instant) -> Int64 {
        let lacked = line.counters.captureUnderrun > missed
        missed = line.counters.captureUnderrun
        let shift = follower.follow(
            due, line.lastBoundary, lacked: lacked, mayJump: ticksSinceStart < Self.ticksUnheard)
        guard let capture = nextCapture, let play = nextPlay else { return 0 }
        ticksSinceStart += 1
        // Resets the delays of both directions.
        if abs(shift) > 1_000_000 { line.pause(at: due) }
        (nextCapture, nextPlay) = (capture.advanced(byNanoseconds: shift), play.advanced(byNanoseconds: shift))
        return shift
    }

    /// Moves the loudspeaker's ticks to where packets wait the least for them, in a pause.
    @_noAllocation @_noLocks
    private mutating func advanceIfWorthwhile(_ calls: CardCalls, at due: Instant) {
        guard place.mayMove(played, Self.tickSamples), let next = nextPlay else { return }
        var shift: Int64 = 0
        for index in 0..<calls.count where calls[index].usesCard {
            guard isConnected(calls[index]) else { continue }
            shift = calls[index].worthwhileAdvance(at: due)
            break
        }
        guard shift >= PlayoutPhase.leastAdvance else { return }
        place.noteMove()
        nextPlay = next.advanced(byNanoseconds: -shift)
        // The card's delay stays what it is: as much of the pause is left out.
        skipping += Int(shift &* 48 / 1_000_000)
        for index in 0..<calls.count where calls[index].usesCard {
            calls[index].advancePulls(nanoseconds: shift)
        }
    }

    /// The first half second, in which a jump does no harm.
    private static var ticksUnheard: Int { @_noAllocation @_noLocks get { 50 } }

    @_noAllocation @_noLocks
    private static func slot(after time: Instant) -> Instant {
        let slot = Pacer.slotNanoseconds
        return Instant(nanoseconds: (time.nanoseconds + slot - 1) / slot * slot)
    }

    @_noAllocation @_noLocks
    private static func usesCard(_ calls: CardCalls) -> Bool {
        for index in 0..<calls.count where calls[index].usesCard { return true }
        return false
    }

    /// Whether a call of `calls` has its frames at the ticks.
    @_noAllocation @_noLocks
    package static func hasPlaced(_ calls: CardCalls) -> Bool {
        for index in 0..<calls.count where calls[index].usesCard && calls[index].isPlaced { return true }
        return false
    }
}

// MARK: Samples

extension CardMixer {
    /// A microphone's tick: from the card to the calls.
    @_noAllocation @_noLocks
    package mutating func capture(for calls: CardCalls, at due: Instant) {
        let lacked = line.counters.captureUnderrun
        Self.capture(&captured, &reference, from: &line, at: due, afterBoundary: follower.wait)
        let (raw, missing) = (Self.trace(captured), line.counters.captureUnderrun - lacked)
        Self.process(&captured, with: &processor, reference)
        Self.finish(&captured, &microphone, &microphoneMeter)
        beginSharing(calls)
        for index in 0..<calls.count where calls[index].usesCard {
            if isConnected(calls[index]) { calls[index].counters.noteCapture(raw, missing: missing) }
            hand(to: calls[index])
        }
        nextCapture = due.advanced(byNanoseconds: Self.tickNanoseconds)
    }

    /// Lets the calls play 10 ms, for ``play(from:at:)``.
    @_noAllocation @_noLocks
    package mutating func hear(_ calls: CardCalls, at due: Instant) {
        for index in 0..<calls.count where calls[index].usesCard {
            calls[index].hear(at: due, through: &work)
        }
    }

    /// A loudspeaker's tick: from the calls to the card.
    @_noAllocation @_noLocks
    package mutating func play(from calls: CardCalls, at due: Instant) {
        mixer.begin(samples: Self.tickSamples)
        var isInCall = false
        for index in 0..<calls.count where calls[index].usesCard {
            guard isConnected(calls[index]) else { continue }
            isInCall = true
            calls[index].contribute(to: &mixer)
        }
        if tones.isSounding { Self.add(&tones, to: &mixer, through: &work, isInCall: isInCall) }
        Self.mix(&mixer, into: &played)
        Self.finish(&played, &loudspeaker, &loudspeakerMeter)
        let refused = line.counters.playOverrun
        Self.play(played, on: &line, at: due, skipping: skipping)
        note(refused: line.counters.playOverrun - refused, calls)
        skipping = 0
        ticks += 1
        nextPlay = due.advanced(byNanoseconds: Self.tickNanoseconds)
        advanceIfWorthwhile(calls, at: due)
    }

    @_noAllocation @_noLocks
    private func note(refused: Int, _ calls: CardCalls) {
        guard refused > 0 else { return }
        for index in 0..<calls.count where calls[index].usesCard && isConnected(calls[index]) {
            calls[index].counters.notePlayback(refused: refused)
        }
    }

    /// The mixer's statistics, for a call of its worker.
    @_noAllocation @_noLocks
    package func report(on call: CardCall) -> SoundReport {
        var report = SoundReport(echo: Self.statistics(of: processor))
        report.microphoneDBFS = microphoneMeter.levelDBFS
        report.microphonePeakDBFS = microphoneMeter.peakDBFS
        report.loudspeakerDBFS = loudspeakerMeter.levelDBFS
        report.loudspeakerPeakDBFS = loudspeakerMeter.peakDBFS
        report.isMuted = microphone.isMuted
        report.volumeDB = loudspeaker.gainDB
        report.processingSamples = processor.delaySamples
        report.ticks = ticks
        report.ticksSkipped = ticksSkipped
        report.isHeld = !isConnected(call)
        call.counters.add(to: &report)
        return report
    }

    @_noAllocation @_noLocks
    private func isConnected(_ call: CardCall) -> Bool {
        switch sharing {
        case .mix: return true
        case .hold:
            guard let focus else { return true }
            return focus.rawValue == call.id.rawValue
        }
    }

    /// If calls are mixed, each hears the others: their contributions to the last tick.
    @_noAllocation @_noLocks
    private mutating func beginSharing(_ calls: CardCalls) {
        guard case .mix = sharing else { return }
        mixer.begin(samples: Self.tickSamples)
        Self.add(captured, to: &mixer)
        for index in 0..<calls.count where calls[index].usesCard {
            calls[index].contribute(to: &mixer)
        }
    }

    @_noAllocation @_noLocks
    private mutating func hand(to call: CardCall) {
        let isHeld = !isConnected(call)
        call.setHeld(isHeld)
        if isHeld { return }
        switch sharing {
        case .hold: call.hand(captured)
        case .mix:
            call.mixOthers(of: &mixer, into: &work)
            call.hand(work)
        }
    }
}

/// Decides when the loudspeaker's ticks are to come earlier, because packets would wait less for them.
///
/// Such a move skips some sound on its way to the card, which must not be audible, so it waits for a pause.
private struct PlayoutPhase: BitwiseCopyable, Sendable {
    private var ticks = 0
    private var quietTurns = 0
    private var nextLook = PlayoutPhase.firstLook

    /// Ticks until a move is first considered, between considerations, and after a move: 4 s, 0.5 s, 5 s.
    private static var firstLook: Int { @_noAllocation @_noLocks get { 400 } }
    private static var lookInterval: Int { @_noAllocation @_noLocks get { 50 } }
    private static var rest: Int { @_noAllocation @_noLocks get { 500 } }
    /// The sound that a move may skip is that of the last ticks.
    private static var turnsOfPause: Int { @_noAllocation @_noLocks get { 3 } }
    /// −54 dBFS, as a sample.
    private static var quietPeak: Int16 { @_noAllocation @_noLocks get { 64 } }
    /// The smallest saving that is worth a move: 1.5 ms.
    static var leastAdvance: Int64 { @_noAllocation @_noLocks get { 1_500_000 } }

    /// Ticks are begun.
    @_noAllocation @_noLocks
    mutating func begin() { self = PlayoutPhase() }

    /// Records a tick, and whether a move may be considered now.
    ///
    /// - Parameter played: What is played.
    @_noAllocation @_noLocks
    mutating func mayMove(_ played: borrowing SampleBuffer, _ count: Int) -> Bool {
        ticks &+= 1
        quietTurns = Self.isQuiet(played, count) ? quietTurns &+ 1 : 0
        guard ticks >= nextLook, quietTurns >= Self.turnsOfPause else { return false }
        nextLook = ticks &+ Self.lookInterval
        return true
    }

    /// Ticks have been moved.
    @_noAllocation @_noLocks
    mutating func noteMove() { nextLook = ticks &+ Self.rest }

    // Views of samples count as reference counting in unoptimised code, so this is not analysed.
    @_semantics("no_performance_analysis") @inline(__always)
    private static func isQuiet(_ frame: borrowing SampleBuffer, _ count: Int) -> Bool {
        let samples = frame.samples(count)
        for index in 0..<count where samples[index] > quietPeak || samples[index] < -quietPeak { return false }
        return true
    }
}

// The mixer's samples, handed from part to part.
extension CardMixer {
    // What follows hands out views of samples, which unoptimised code counts as reference counting, and asks the
    // speakerphone's parts for numbers. It is not analysed; what it calls is.

    @_semantics("no_performance_analysis") @inline(__always)
    static func capture(
        _ frame: inout SampleBuffer, _ reference: inout SampleBuffer, from line: inout SoundLine, at due: Instant,
        afterBoundary wait: Int64?
    ) {
        var samples = frame.mutableSamples(tickSamples)
        var played = reference.mutableSamples(tickSamples)
        line.capture(into: &samples, reference: &played, at: due, afterBoundary: wait)
    }

    @_semantics("no_performance_analysis") @inline(__always)
    static func trace(_ frame: borrowing SampleBuffer) -> SoundTrace {
        var trace = SoundTrace()
        trace.note(frame.samples(tickSamples))
        return trace
    }

    @_semantics("no_performance_analysis") @inline(__always)
    static func process(
        _ frame: inout SampleBuffer, with processor: inout SpeakerphoneProcessor, _ reference: borrowing SampleBuffer
    ) {
        var samples = frame.mutableSamples(tickSamples)
        processor.process(&samples, playback: reference.samples(tickSamples))
    }

    @_semantics("no_performance_analysis") @inline(__always)
    static func finish(_ frame: inout SampleBuffer, _ volume: inout VolumeControl, _ meter: inout LevelDisplay) {
        var samples = frame.mutableSamples(tickSamples)
        volume.apply(&samples)
        meter.add(samples.span)
    }

    @_semantics("no_performance_analysis") @inline(__always)
    static func add(_ frame: borrowing SampleBuffer, to mixer: inout CallMixer) {
        mixer.add(frame.samples(tickSamples))
    }

    @_semantics("no_performance_analysis") @inline(__always)
    static func add(
        _ tones: inout CallProgressTones, to mixer: inout CallMixer, through work: inout SampleBuffer, isInCall: Bool
    ) {
        var samples = work.mutableSamples(tickSamples)
        tones.fill(&samples, isInCall: isInCall)
        mixer.add(samples.span)
    }

    @_semantics("no_performance_analysis") @inline(__always)
    static func mix(_ mixer: inout CallMixer, into frame: inout SampleBuffer) {
        var samples = frame.mutableSamples(tickSamples)
        mixer.mix(into: &samples)
    }

    @_semantics("no_performance_analysis") @inline(__always)
    static func play(
        _ frame: borrowing SampleBuffer, on line: inout SoundLine, at due: Instant, skipping: Int
    ) {
        line.play(frame.samples(tickSamples), at: due, skipping: skipping)
    }

    @_semantics("no_performance_analysis") @inline(__always)
    static func statistics(of processor: borrowing SpeakerphoneProcessor) -> SpeakerphoneStatistics {
        processor.statistics
    }
}
