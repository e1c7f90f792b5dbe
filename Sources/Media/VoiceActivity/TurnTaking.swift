internal import Core

/// What a received frame has brought.
public struct TurnReport: Sendable {
    /// What the caller's sound began or ended.
    public let events: VoiceEvents
    /// What becomes of the program's sound.
    public let bargeIn: BargeInDecision
    /// A turn that turned out to be answered already.
    public let turn: AnsweredTurn?

    @_noAllocation @_noLocks
    init(events: VoiceEvents, bargeIn: BargeInDecision, turn: AnsweredTurn?) {
        self.events = events
        self.bargeIn = bargeIn
        self.turn = turn
    }
}

/// Turn-taking of one call with a program: what the media worker owns and uses in each frame.
///
/// It allocates and locks nothing after `init`. For each frame the worker calls ``hear(_:sending:count:played:)`` with the received
/// sound and the program's, carries out what it reports, and calls ``send(_:)`` with what is sent then. After `stopped` it
/// notifies the program, and calls ``clear()`` when the program's queue is cleared.
public struct TurnTaking: ~Copyable, Sendable {
    private let inPlace = InPlace()
    private var voice: VoiceActivity
    private var slope: GainSlope
    private let interrupts: Bool
    /// Dips and stops so far.
    public private(set) var bargeIn: BargeIn
    /// Response times so far.
    public private(set) var clock: TurnClock

    /// - Parameters:
    ///   - rateHz: Of both signals: a multiple of 8,000 up to 48,000.
    ///   - interrupts: Whether the caller's speech lowers and stops the program here.
    public init(rateHz: Int, interrupts: Bool) {
        voice = VoiceActivity(rateHz: rateHz)
        slope = GainSlope(rateHz: rateHz)
        self.interrupts = interrupts
        bargeIn = BargeIn(rateHz: rateHz)
        clock = TurnClock(rateHz: rateHz)
    }

    /// What the path takes both ways, as far as it is known, for response times at the caller's ear.
    @_noAllocation @_noLocks
    public mutating func setPathDelay(samples: Int) { clock.setPathDelay(samples: samples) }

    /// Samples received so far: the clock of all events.
    public var position: Int { @_noAllocation @_noLocks get { voice.position } }

    /// The factor for the program's sound.
    public var gain: Float { @_noAllocation @_noLocks get { bargeIn.gain } }

    /// Takes a frame of 10 to 60 ms.
    ///
    /// - Parameters:
    ///   - received: The caller's sound.
    ///   - sending: What is to be sent with it, at full level; silence after the first `count` samples.
    ///   - played: Samples of the program that were sent before this frame.
    ///   - isProgram: Whether it is the program that is sent. Nothing else can be interrupted.
    @_noAllocation @_noLocks
    public mutating func hear(
        _ received: Span<Int16>, sending: borrowing MutableSpan<Int16>, count: Int, played: Int, isProgram: Bool
    ) -> TurnReport {
        let events = voice.take(received, sending: sending, there: count, gain: slope.gain)
        var decision = BargeInDecision.none
        if interrupts {
            var isPlaying = clock.isSounding(at: voice.position)
            if !isPlaying, isProgram { isPlaying = TurnClock.isAudible(sending, count) }
            decision = bargeIn.follow(events, isPlaying: isPlaying, played: played, now: voice.position)
        }
        return TurnReport(events: events, bargeIn: decision, turn: clock.follow(events))
    }

    /// Brings what is sent to its level: ``gain``, which it reaches within 5 ms.
    @_noAllocation @_noLocks
    public mutating func applyGain(to sending: inout MutableSpan<Int16>) {
        slope.apply(bargeIn.gain == 0 ? 1 : bargeIn.gain, to: &sending)
    }

    /// The next sound is at ``gain`` from its beginning: it does not continue what was sent before.
    @_noAllocation @_noLocks
    public mutating func restartGain() { slope.restart(at: bargeIn.gain == 0 ? 1 : bargeIn.gain) }

    /// Takes what is sent with the frame that was heard last. Returns a turn whose answer begins with it.
    @_noAllocation @_noLocks
    public mutating func send(_ sending: borrowing MutableSpan<Int16>) -> AnsweredTurn? {
        var turn: AnsweredTurn?
        for index in 0..<sending.count { turn = clock.send(sending[index], now: voice.position &+ index) ?? turn }
        return turn
    }

    /// The queue of the stopped program is cleared.
    @_noAllocation @_noLocks
    public mutating func clear() { bargeIn.clear() }

    /// The call's figures so far. Mutating because what is not may copy all of this first.
    public var summary: TurnSummary {
        @_noAllocation @_noLocks mutating get {
            TurnSummary(
                turns: clock.times.count, medianResponse: clock.times.percentile(50),
                slowResponse: clock.times.percentile(95), overlaps: clock.overlaps, dips: bargeIn.dips,
                falseDips: bargeIn.falseDips, interruptions: bargeIn.stops)
        }
    }
}

/// How turns were taken in a call. Times are samples.
public struct TurnSummary: BitwiseCopyable, Equatable, Sendable {
    /// Turns of the caller that were answered.
    public let turns: Int
    /// The time from the end of the caller's speech to the first sound that is sent, P50, to 3 %.
    public let medianResponse: Int
    /// The same, P95.
    public let slowResponse: Int
    /// Turns in which the program spoke when the caller's speech ended.
    public let overlaps: Int
    /// Times the program was lowered.
    public let dips: Int
    /// False dips among them: the sound was not speech, or was not confirmed in time.
    public let falseDips: Int
    /// Times the program was stopped.
    public let interruptions: Int

    /// Of a call in which nothing has happened.
    public init() {
        self.init(turns: 0, medianResponse: 0, slowResponse: 0, overlaps: 0, dips: 0, falseDips: 0, interruptions: 0)
    }

    /// Both together.
    ///
    /// - Parameter times: The response times of both.
    public func adding(_ other: TurnSummary, _ times: ResponseTimes) -> TurnSummary {
        TurnSummary(
            turns: turns + other.turns, medianResponse: times.percentile(50), slowResponse: times.percentile(95),
            overlaps: overlaps + other.overlaps, dips: dips + other.dips, falseDips: falseDips + other.falseDips,
            interruptions: interruptions + other.interruptions)
    }

    @_noAllocation @_noLocks
    init(
        turns: Int, medianResponse: Int, slowResponse: Int, overlaps: Int, dips: Int, falseDips: Int, interruptions: Int
    ) {
        self.turns = turns
        self.medianResponse = medianResponse
        self.slowResponse = slowResponse
        self.overlaps = overlaps
        self.dips = dips
        self.falseDips = falseDips
        self.interruptions = interruptions
    }
}

/// Applies a factor to sound, and goes from one to the next within 5 ms.
struct GainSlope: Equatable, Sendable {
    private let step: Float
    private(set) var gain: Float = 1

    /// - Parameter rateHz: Samples a second.
    @_noAllocation @_noLocks
    init(rateHz: Int) { step = 200 / Float(rateHz) }

    /// Begins with this factor at the next sample.
    @_noAllocation @_noLocks
    mutating func restart(at factor: Float) { gain = factor }

    @_noAllocation @_noLocks
    mutating func apply(_ target: Float, to frame: inout MutableSpan<Int16>) {
        // Sound at full level stays as it is, to the bit.
        guard gain != 1 || target != 1 else { return }
        for index in 0..<frame.count {
            gain = gain < target ? min(target, gain + step) : max(target, gain - step)
            // No factor is above 1.
            frame[index] = Int16(Float(frame[index]) * gain)
        }
    }
}
