/// The timers of RFC 3261 §17 and RFC 6026, all made of these.
public struct TransactionTimers: Equatable, Sendable {
    /// The round trip that is assumed.
    public var t1: Duration = .milliseconds(500)
    /// The longest time between repetitions, except of INVITE requests.
    public var t2: Duration = .seconds(4)
    /// How long a message may stay in the network.
    public var t4: Duration = .seconds(5)
    /// Timer C: how long an INVITE may stay without a further provisional response.
    public var proceedingLimit: Duration = .seconds(185)
    /// How long a peer's INVITE waits for its final answer; then the transaction answers 480, even if its user still
    /// waits. No call of a user agent rings for longer (``UserAgentConfiguration/ringLimit``).
    public var answerLimit: Duration = .seconds(180)
    /// When a server sends 100 Trying, if no other response was sent (RFC 3261 §17.2.1).
    public var trying: Duration = .milliseconds(200)

    /// The timers of the RFC.
    public init() {}

    /// Timers B, F, H, J, L and M.
    var timeout: Duration { t1 * 64 }
    /// Timer D.
    var d: Duration { max(.seconds(32), t1 * 64) }
}
