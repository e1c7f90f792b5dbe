public import BotProbe

/// One run of `handset loopback bot`, with all that its reports say.
public struct BotRun: Equatable, Sendable {
    /// When it began, as ISO 8601 has it.
    public var startedAt: String
    /// Which Handset measured, and where; nil if unknown.
    public var origin: RunOrigin?
    /// What a reader should know, in order.
    public var facts: [LoopbackRun.Fact] = []
    /// What of the figures is Handset's own, in order.
    public var ownDelays: [LoopbackRun.Stage] = []
    /// What the analysis found.
    public var measurement: BotMeasurement
    /// What is good enough.
    public var thresholds = BotThresholds()
    /// An earlier report with which to compare this one.
    public var baseline: LoopbackBaseline?

    /// What the JSON report names its members' meaning with.
    static let schema = "handset-loopback-bot/1"

    /// Makes a run with the usual thresholds.
    public init(startedAt: String, measurement: BotMeasurement) {
        self.startedAt = startedAt
        self.measurement = measurement
    }

    /// Why a figure is withheld; nil if it is not.
    func reason(_ figure: BotMeasurement.Figure) -> String? {
        measurement.withheld.first { $0.figure == figure }.map { Self.text($0.reason) }
    }

    /// A reason, for a person.
    public static func text(_ reason: BotMeasurement.WithholdingReason) -> String {
        switch reason {
        case .noise(let level): "noise of \(AudioText.number(Double(level), "dBFS")) hides what the bot says"
        case .late(let count): "the measuring program was late in \(count) of them"
        case .otherGreeting(let share):
            "what was heard first is another greeting: \(AudioText.number(100 * share, places: 0)) % of the file was found"
        case .greetingUnfinished: "the greeting was not over when the caller spoke"
        }
    }
}

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
