internal import AudioKit

/// How a caller measures a bot. Times are samples at 48 kHz.
public struct ProbePlan: Equatable, Sendable {
    /// How often the caller asks and hears the answer out.
    public var turns = 5
    /// How often it talks into an answer.
    public var interruptions = 3
    /// Telephone keys that are pressed after that, one after the other.
    public var keys = ""
    /// At last the caller waits for the bot to hang up.
    public var expectsHangUp = false
    /// The silence that ends what a bot says, in samples.
    public var pause = AudioFormat.samples(milliseconds: 1_500)
    /// How long the caller waits for a sound of the bot.
    public var patience = AudioFormat.samples(milliseconds: 10_000)
    /// How long it waits for a greeting.
    public var greetingWait = AudioFormat.samples(milliseconds: 4_000)
    /// How long it listens to an answer, or a greeting, that does not end.
    public var longestAnswer = AudioFormat.samples(milliseconds: 30_000)
    /// How long a bot has talked when it is interrupted.
    public var interruptAfter = AudioFormat.samples(milliseconds: 1_000)
    /// How often the caller asks for an answer that is long enough to be interrupted.
    public var triesPerInterruption = 3
    /// The longest call.
    public var longestCall = AudioFormat.samples(milliseconds: 600_000)

    /// Makes the usual plan.
    public init() {}
}
