/// A failure as the machines see it: what happened, and whether trying again can help.
public struct ServiceFailure: Error, Hashable, Sendable {
    /// Whether trying again can help.
    public enum Remedy: Hashable, Sendable {
        /// Trying again gives the same.
        case none
        /// Try again, no sooner than `after` from now if the service said so (`Retry-After`).
        case retry(after: Duration?)
    }

    /// What to tell the user.
    public let error: SignalingError
    /// Whether trying again can help.
    public let remedy: Remedy

    /// Makes a failure.
    public init(_ error: SignalingError, remedy: Remedy) {
        self.error = error
        self.remedy = remedy
    }
}
