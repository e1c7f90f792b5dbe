/// A failure as the machines see it: what happened, and whether trying again can help.
public struct ServiceFailure: Error, Hashable, Sendable {
    /// Whether trying again can help.
    public enum Remedy: Hashable, Sendable {
        /// Trying again gives the same.
        case none
        /// Try again, no sooner than `after` from now if the service said so (`Retry-After`).
        case retry(after: Duration?)
    }

    /// The error for the user.
    public let error: SignalingError
    /// Whether trying again can help.
    public let remedy: Remedy
    /// Whether the attempt reached the service; false if nothing listens there, or it is unreachable.
    public let isBurden: Bool

    /// Makes a failure.
    public init(_ error: SignalingError, remedy: Remedy, isBurden: Bool = true) {
        self.error = error
        self.remedy = remedy
        self.isBurden = isBurden
    }
}
