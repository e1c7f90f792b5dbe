/// What a frame of a call has brought.
public struct TurnReport: Sendable {
    /// What the caller's sound began or ended.
    public let events: VoiceEvents
    /// What became of the program's sound.
    public let bargeIn: BargeInDecision
    /// A turn whose answer begins in this frame, or that turned out to be answered already.
    public let turn: AnsweredTurn?

    @_noAllocation @_noLocks
    init(events: VoiceEvents, bargeIn: BargeInDecision, turn: AnsweredTurn?) {
        self.events = events
        self.bargeIn = bargeIn
        self.turn = turn
    }
}

/// Turn-taking of one call with a program: what the media worker owns and calls once for each frame.
///
/// It allocates and locks nothing after `init`. A worker calls it between `PortLine.exchange` and encoding, and carries out
/// what it reports: after `stopped` it clears the program's queue, calls ``clear()``, and tells the program the position.
public struct TurnTaking: ~Copyable, Sendable {
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

    /// Runs a frame of 10 to 60 ms.
    ///
    /// - Parameters:
    ///   - received: The caller's sound.
    ///   - sending: The program's, of the same length; its level is changed here.
    ///   - isPlaying: Whether the program has sound in this frame.
    ///   - played: Samples of the program that were sent before this frame.
    @_noAllocation @_noLocks
    public mutating func run(
        received: Span<Int16>, sending: inout MutableSpan<Int16>, isPlaying: Bool, played: Int
    ) -> TurnReport {
        var events = VoiceEvents()
        for index in 0..<received.count {
            let sent = index < sending.count ? sending[index] : 0
            voice.take(received[index], sent: sent, gain: slope.gain, into: &events)
        }
        var decision = BargeInDecision.none
        if interrupts {
            decision = bargeIn.follow(events, isPlaying: isPlaying, played: played, now: voice.position)
            slope.apply(bargeIn.gain, to: &sending)
        }
        var turn = clock.follow(events)
        for index in 0..<sending.count { turn = clock.send(sending[index], now: voice.position &+ index) ?? turn }
        return TurnReport(events: events, bargeIn: decision, turn: turn)
    }

    /// The queue of the stopped program is cleared.
    @_noAllocation @_noLocks
    public mutating func clear() { bargeIn.clear() }
}
