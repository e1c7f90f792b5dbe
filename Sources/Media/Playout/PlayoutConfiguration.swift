/// How a ``PlayoutBuffer`` trades delay against sound that comes too late. All times in milliseconds.
public struct PlayoutConfiguration: Equatable, Sendable {
    /// Floor for the delay above the fastest path, 0 to 1 000. Default 0: on a clean path a packet is played at the
    /// first pull after its arrival.
    public var minimumDelayMilliseconds = 0
    /// Ceiling for the delay above the fastest path, 20 to 1 000. Sound that waits longer is skipped. Default 500.
    public var maximumDelayMilliseconds = 500
    /// Least delay while the path is not known: until 2 s of sound were received. Default 20: what more would cover is
    /// less than what stretching it away costs, since on most paths it must go again.
    public var initialDelayMilliseconds = 20
    /// The cost of one percent of late packets, in milliseconds of delay. A higher value makes calls smoother, with
    /// more delay. Default 10.
    public var millisecondsPerLatePercent = 10
    /// How long a delay is remembered, 1 000 to 60 000: the time after which it counts 1/e. Default 15 000.
    public var memoryMilliseconds = 15_000

    /// The defaults, which suit a conversation.
    public init() {}
}
