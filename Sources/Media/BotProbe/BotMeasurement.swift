/// How a bot took part in a call, as heard by the caller. Times are samples at 48 kHz.
public struct BotMeasurement: Equatable, Sendable {
    /// A question, and what came of it.
    public enum Turn: Equatable, Sendable {
        /// Answered, this number of samples after the caller's last sound.
        case answered(Int)
        /// The bot was talking when the caller's speech ended.
        case overlapped
        /// No sound came.
        case unanswered
        /// The measuring program was late.
        case doubtful
    }

    /// A sentence of the caller into what the bot says.
    public enum Interruption: Equatable, Sendable {
        /// The bot fell silent, this number of samples after the caller's first sound.
        case stopped(Int)
        /// It did not stop while the caller spoke, nor within a second, and talked for this number of samples.
        case ignored(Int)
        /// It had just paused, or finished.
        case missed
        /// The measuring program was late.
        case doubtful
    }

    /// A telephone key, and what came of it.
    public struct Press: Equatable, Sendable {
        /// Which.
        public let key: Character
        /// Samples until the first sound of the bot, or its hang-up; nil if neither came.
        public let response: Int?
    }

    /// What came of waiting for the bot's hang-up.
    public enum HangUp: Equatable, Sendable {
        /// It was not waited for.
        case notAwaited
        /// The bot hung up before that.
        case early
        /// It came after this number of samples.
        case came(Int)
        /// It did not come.
        case missing
    }

    /// Figures that may be withheld.
    public enum Figure: String, CaseIterable, Sendable {
        case turns, interruptions, cut
    }

    /// Why a figure is withheld.
    public enum WithholdingReason: Equatable, Sendable {
        /// Noise at this level, in dBFS, hides what the bot says.
        case noise(Int)
        /// The measuring program was late, in this number of turns or interruptions.
        case late(Int)
        /// What is heard first is not the greeting that was given: a share of it, 0 to 1, was found.
        case otherGreeting(Double)
        /// The caller spoke before the greeting was over.
        case greetingUnfinished
    }

    /// A figure that is withheld, and why.
    public struct Withheld: Equatable, Sendable {
        /// Which.
        public let figure: Figure
        /// Why.
        public let reason: WithholdingReason
    }

    /// The length of the call.
    public var samples = 0
    /// Whether anything was heard.
    public var hasSound = false
    /// The level of the noise, in dBFS.
    public var noiseDBFS = 0
    /// When the bot was first heard; nil if the caller spoke first.
    public var greetingStart: Int?
    /// The questions, in order.
    public var turns: [Turn] = []
    /// The interruptions, in order.
    public var interruptions: [Interruption] = []
    /// For how long both spoke: in each interruption that is not doubtful.
    public var interruptionTalkOver: [Int] = []
    /// For how long both spoke, in all questions together.
    public var questionTalkOver = 0
    /// The keys, in order.
    public var presses: [Press] = []
    /// Whether the bot hung up.
    public var hangUp = HangUp.notAwaited
    /// What is missing of the greeting; nil without a reference, or if it is withheld.
    public var cut: GreetingCut?
    /// What is withheld.
    public var withheld: [Withheld] = []

    /// Nothing measured.
    public init() {}

    /// Times until the bot's first sound, shortest first.
    public var responses: [Int] {
        turns.compactMap { turn in
            guard case .answered(let time) = turn else { return nil }
            return time
        }.sorted()
    }

    /// Times until the bot's silence, shortest first.
    public var stops: [Int] {
        interruptions.compactMap { interruption in
            guard case .stopped(let time) = interruption else { return nil }
            return time
        }.sorted()
    }

    /// The least of sorted times that `percent` of all do not exceed; nil if there is none.
    public static func percentile(_ percent: Int, of times: [Int]) -> Int? {
        guard !times.isEmpty else { return nil }
        return times[max(1, (times.count * percent + 99) / 100) - 1]
    }
}
