/// How long a call machine waits for each step.
public struct CallTimings: Hashable, Sendable {
    /// For media to be prepared. Default 5 s.
    public var prepareTimeout: Duration = .seconds(5)
    /// From the accept to media flowing both ways. Default 10 s.
    public var setUpTimeout: Duration = .seconds(10)
    /// For the invite.
    public var invite = InviteTimings()

    /// Makes the defaults.
    public init() {}
}
