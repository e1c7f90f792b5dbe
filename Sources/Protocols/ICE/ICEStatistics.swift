/// Statistics of an agent since its start.
public struct ICEStatistics: Equatable, Sendable {
    /// The path in use.
    public var path: ICEPath?
    /// The last round trip of a check on the path in use.
    public var roundTrip: Duration?
    /// The smoothed round trip of the checks on the path in use: each counts for an eighth.
    public var smoothedRoundTrip: Duration?
    /// Checks sent.
    public var checksSent = 0
    /// Checks answered.
    public var checksAnswered = 0
    /// Checks of the peer's that were granted.
    public var requestsGranted = 0
    /// Checks that were not protected with our password.
    public var requestsUnauthenticated = 0
    /// Checks, granted or refused, that were dropped because they exceeded the rate limit.
    public var requestsOverLimit = 0
    /// Answers that were not protected as they should be.
    public var responsesUnauthenticated = 0
    /// Answers to no open request: late, duplicate or forged.
    public var responsesUnmatched = 0
    /// Datagrams that are no STUN or make no sense.
    public var malformed = 0
    /// Datagrams from a relay or to a socket that is not in use.
    public var unexpected = 0
    /// The peer's candidates that are for TCP, for another component or have an unusable address.
    public var candidatesIgnored = 0
    /// The peer's candidates beyond the limit.
    public var candidatesOverLimit = 0
    /// Pairs beyond the limit.
    public var pairsOverLimit = 0
    /// Changes of the path after the first.
    public var pathChanges = 0
    /// Role conflicts resolved by taking the other role.
    public var roleChanges = 0
    /// Candidate pairs there are.
    public var pairs = 0

    /// Starts from nothing.
    public init() {}
}
