/// How long invite machines wait for the service.
public struct InviteTimings: Hashable, Sendable {
    /// For the answer to a request. Default 10 s.
    public var requestTimeout: Duration = .seconds(10)
    /// How long after the ttl the device's own timer fires, leaving the exchange the first word (contract INV-8).
    /// Default 500 ms.
    public var grace: Duration = .milliseconds(500)

    /// Makes the defaults.
    public init() {}
}
