/// How many records of calls are kept. Past it the oldest are removed, those of the same caller before those of other
/// users.
///
/// A record belongs to its caller, so that one user's calls do not displace those of another.
public struct RecordLimits: Hashable, Sendable {
    /// Of calls that one user has made.
    public var perCaller = 10_000
    /// In all.
    public var total = 1_000_000

    /// The limits unless configured.
    public init() {}
}
