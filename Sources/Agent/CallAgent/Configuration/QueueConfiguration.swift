internal import CallBridging
internal import ConfigReader

/// The section `queues`: what bounds the queues in which callers of flows wait.
public struct QueueConfiguration: Sendable, Equatable {
    /// Callers of a queue.
    public var mostCallers = 100
    /// How long a caller waits.
    public var longestWait = Duration.seconds(3_600)

    /// Has the usual limits.
    public init() {}

    /// The keys of the section.
    struct Keys: ConfigKeys {
        let mostCallers = ConfigKey.integer(
            "max_callers", in: 1...1_000, "callers of a queue; for a further one `QueueResult` is `queue-full`"
        ).defaulting(to: 100)
        let longestWait = ConfigKey.seconds(
            "max_wait_seconds", in: 1...86_400, "how long a caller waits; then `QueueResult` is `timeout`"
        ).defaulting(to: .seconds(3_600))
    }

    init(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        section.read(\.mostCallers, into: &mostCallers, &problems)
        section.read(\.longestWait, into: &longestWait, &problems)
    }

    var limits: CallQueues.Limits { CallQueues.Limits(callers: mostCallers, wait: longestWait) }
}
