/// How long invite machines wait for the service.
public struct InviteTimings: Hashable, Sendable {
    /// For the answer to a request. Default 10 s.
    public var requestTimeout: Duration = .seconds(10)
    /// How long after the ttl the device's own timer fires, so that the exchange can report the timeout first (contract
    /// INV-8). Default 500 ms.
    public var grace: Duration = .milliseconds(500)

    /// How long an incoming invite rings at most, even if its ttl is longer: then this device rejects it, so that the inviter
    /// is notified (contract INV-9). Default a day, the longest ttl.
    public var answerLimit: Duration = .seconds(86_400)

    /// Makes the defaults.
    public init() {}
}
