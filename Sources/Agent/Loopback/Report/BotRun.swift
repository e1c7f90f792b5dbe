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
