/// The thresholds of a measured bot. One that is nil is not checked.
public struct BotThresholds: Equatable, Sendable {
    /// Greatest median time until an answer, in milliseconds.
    public var medianResponseMilliseconds: Double? = 1_500
    /// Greatest time until an answer of 95 % of the turns, in milliseconds.
    public var responseMilliseconds: Double? = 3_000
    /// Greatest time until silence of 95 % of the interruptions, in milliseconds.
    public var bargeInMilliseconds: Double? = 1_000
    /// Longest time for which both talk in an interruption, in milliseconds.
    public var talkOverMilliseconds: Double? = 1_500
    /// Most questions without an answer.
    public var unanswered: Int? = 0
    /// Most interruptions through which the bot talks on.
    public var ignored: Int? = 0
    /// Most milliseconds that are missing at either end of the greeting.
    public var cutMilliseconds: Double? = 40
    /// Greatest time until a key is answered, in milliseconds.
    public var keyMilliseconds: Double? = 3_000

    /// The usual ones.
    public init() {}
}
