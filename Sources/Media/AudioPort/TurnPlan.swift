public import VoiceActivity

/// How turns between the caller and a program are followed.
public struct TurnPlan: Sendable, Equatable {
    /// The caller's speech lowers and stops the program.
    public var interrupts: Bool

    /// Makes a plan.
    public init(interrupts: Bool) { self.interrupts = interrupts }
}

/// Whether the caller's speech interrupts a program. The names are those of configurations.
public enum BargeInMode: String, CaseIterable, Sendable {
    /// The program decides.
    case off
    /// It lowers and stops the program where its sound is sent.
    case local
}

extension TurnPlan {
    /// What a configuration says.
    public init(_ mode: BargeInMode) { self.init(interrupts: mode == .local) }
}

/// Events of who speaks in a call. Positions are samples received since the call's sound began: those of a port at its
/// program's rate.
public enum TurnEvent: BitwiseCopyable, Equatable, Sendable {
    /// The caller speaks, since `at`; reported when it is certain.
    case speechBegan(at: Int)
    /// The caller has spoken until `at`; reported some 0.3 s later.
    case speechEnded(at: Int)
    /// The program continues 20 dB lower, because the caller may be speaking.
    case lowered(at: Int)
    /// The caller did not speak: the program continues where it was lowered.
    case restored(at: Int)
    /// A turn of the caller has its answer.
    case answered(AnsweredTurn)

    /// The event with positions at another rate.
    ///
    /// - Parameter ratio: Samples at 48 kHz in one.
    func divided(by ratio: Int) -> TurnEvent {
        switch self {
        case .speechBegan(let at): .speechBegan(at: at / ratio)
        case .speechEnded(let at): .speechEnded(at: at / ratio)
        case .lowered(let at): .lowered(at: at / ratio)
        case .restored(let at): .restored(at: at / ratio)
        case .answered(let turn): .answered(turn.divided(by: ratio))
        }
    }
}

/// What a device reports of speech in a call. Times count from the beginning of the call's sound.
public enum TurnNotice: Equatable, Sendable {
    /// The caller speaks, since then.
    case speechBegan(at: Duration)
    /// The caller has spoken until then.
    case speechEnded(at: Duration)
    /// The caller has interrupted the program after it had played for `played`.
    case interrupted(played: Duration)
    /// From the end of the caller's speech to the first sound of the answer that is sent.
    case answered(after: Duration)

    /// - Parameter rate: Of the event's positions.
    /// - Returns: nil for what is of no interest outside.
    public init?(_ event: TurnEvent, _ rate: PortRate) {
        switch event {
        case .speechBegan(let at): self = .speechBegan(at: rate.duration(of: at))
        case .speechEnded(let at): self = .speechEnded(at: rate.duration(of: at))
        case .answered(let turn): self = .answered(after: rate.duration(of: turn.response))
        case .lowered, .restored: return nil
        }
    }
}

extension PortRate {
    /// The duration of a number of samples.
    public func duration(of samples: Int) -> Duration { .microseconds(Int64(samples) * 1_000_000 / Int64(rawValue)) }
}
