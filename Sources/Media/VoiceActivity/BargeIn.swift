/// Where a bot was stopped, in samples of its sound that had been sent.
@frozen
public struct BargeInStop: Equatable, Sendable, BitwiseCopyable {
    /// The caller heard all before this at its full level.
    public let loweredAt: Int
    /// The caller heard nothing after this, except a slope of 5 ms.
    public let stoppedAt: Int

    @_noAllocation @_noLocks
    init(loweredAt: Int, stoppedAt: Int) {
        self.loweredAt = loweredAt
        self.stoppedAt = stoppedAt
    }
}

/// What a frame has brought.
@frozen
public enum BargeInDecision: Equatable, Sendable, BitwiseCopyable {
    case none
    /// The bot continues 20 dB lower from this frame on.
    case lowered
    /// It was no speech: full level again. The bot's sound went on meanwhile, so that no sample is lost or repeated.
    case restored
    /// It was speech, and the bot had ended by itself meanwhile: full level again for what it says next. What the caller was sent
    /// at the low level was the bot's last word, and is not repeated.
    case passed
    /// It was speech: discard what the bot still has to say, and call ``BargeIn/clear()`` when that is done.
    case stopped(BargeInStop)
}

/// Lowers a bot as soon as the caller may be speaking, and stops it when that is certain. A value on the sample clock.
///
/// It acts on speech that begins while the bot speaks. A bot that begins to speak while the caller does has decided so.
public struct BargeIn: Equatable, Sendable {
    private enum State: Equatable, BitwiseCopyable {
        case speaking
        /// Since the bot's sample `at`, for an onset that was decided at `since` of the sample clock.
        case lowered(at: Int, since: Int)
        /// Certainty took too long; a confirmation still stops the bot.
        case doubtful(at: Int)
        case stopped
    }

    /// The factor of the lowered voice: −20 dB.
    public static var loweredGain: Float { @_noAllocation @_noLocks get { 0.1 } }
    /// The longest time between the decision to lower and another, in milliseconds.
    private static var patienceMilliseconds: Int { @_noAllocation @_noLocks get { 350 } }

    private let patience: Int
    private var state = State.speaking
    /// Times the bot was lowered.
    public private(set) var dips = 0
    /// Times it was lowered for what was no speech, or was not certain in time.
    public private(set) var falseDips = 0
    /// Times it was stopped.
    public private(set) var stops = 0

    /// - Parameter rateHz: Samples a second, 8,000…48,000.
    @_noAllocation @_noLocks
    public init(rateHz: Int) { patience = rateHz &* Self.patienceMilliseconds / 1_000 }

    /// The factor for the bot's sound.
    public var gain: Float {
        @_noAllocation @_noLocks get {
            switch state {
            case .speaking, .doubtful: 1
            case .lowered: Self.loweredGain
            case .stopped: 0
            }
        }
    }

    /// Takes the events of a frame.
    ///
    /// - Parameters:
    ///   - isPlaying: Whether the bot has sound to send in this frame.
    ///   - played: Samples of the bot that were sent before this frame.
    ///   - now: Samples received, of which the frame's are the last.
    @_noAllocation @_noLocks
    public mutating func follow(_ events: VoiceEvents, isPlaying: Bool, played: Int, now: Int) -> BargeInDecision {
        let before = gain
        var hasPassed = false
        for index in 0..<events.count {
            let event = events[index]
            switch event.kind {
            case .onset: noteOnset(event.decidedAt, isPlaying, played)
            case .confirmed:
                switch confirm(isPlaying) {
                case .stops(let loweredAt): return .stopped(BargeInStop(loweredAt: loweredAt, stoppedAt: played))
                case .finds(let wasLowered): hasPassed = hasPassed || wasLowered
                }
            case .retracted: retract()
            case .ended: break
            }
        }
        if case .lowered(let at, let since) = state, now &- since >= patience {
            falseDips &+= 1
            state = .doubtful(at: at)
        }
        if before == gain { return .none }
        if gain < before { return .lowered }
        return hasPassed ? .passed : .restored
    }

    /// What the stopped bot had left to say is discarded: what it says from the next frame on is new, and is heard.
    @_noAllocation @_noLocks
    public mutating func clear() {
        if case .stopped = state { state = .speaking }
    }

    @_noAllocation @_noLocks
    private mutating func noteOnset(_ now: Int, _ isPlaying: Bool, _ played: Int) {
        guard case .speaking = state, isPlaying else { return }
        dips &+= 1
        state = .lowered(at: played, since: now)
    }

    /// What a confirmation does.
    private enum Confirmation: BitwiseCopyable {
        /// It stops the bot, which was lowered there.
        case stops(loweredAt: Int)
        /// There is nothing to stop.
        case finds(wasLowered: Bool)
    }

    @_noAllocation @_noLocks
    private mutating func confirm(_ isPlaying: Bool) -> Confirmation {
        let loweredAt: Int
        switch state {
        case .speaking, .stopped: return .finds(wasLowered: false)
        case .lowered(let at, _):
            loweredAt = at
            // The dip was right. If the bot has ended by itself there is nothing to stop.
            guard isPlaying else {
                state = .speaking
                return .finds(wasLowered: true)
            }
        case .doubtful(let at):
            loweredAt = at
            falseDips &-= 1
            guard isPlaying else {
                state = .speaking
                return .finds(wasLowered: false)
            }
        }
        stops &+= 1
        state = .stopped
        return .stops(loweredAt: loweredAt)
    }

    @_noAllocation @_noLocks
    private mutating func retract() {
        switch state {
        case .speaking, .stopped: break
        case .lowered:
            falseDips &+= 1
            state = .speaking
        case .doubtful: state = .speaking
        }
    }
}
