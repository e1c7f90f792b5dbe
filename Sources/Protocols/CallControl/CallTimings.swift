/// How long a call machine waits for each step.
public struct CallTimings: Hashable, Sendable {
    /// For media to be prepared. Default 5 s.
    public var prepareTimeout: Duration = .seconds(5)
    /// From the accept to a path and keys. Default 10 s.
    public var setUpTimeout: Duration = .seconds(10)
    /// From the accept to the caller's acknowledgement, where the service waits for one. Default 40 s: SIP repeats its
    /// answer for 32 s (RFC 3261 §13.3.1.4), and then ends the call itself.
    public var acknowledgementTimeout: Duration = .seconds(40)
    /// For the invite.
    public var invite = InviteTimings()

    /// Makes the defaults.
    public init() {}
}
