/// How many records of calls are kept. Past it the oldest go, those of the same caller before anybody else's.
///
/// A record is its caller's, so that nobody's calls push out those of another user.
public struct RecordLimits: Hashable, Sendable {
    /// Of calls that one user has made.
    public var perCaller = 10_000
    /// In all.
    public var total = 1_000_000

    /// The limits unless configured.
    public init() {}
}
