import Core

/// A failure as the machines see it: what happened, and whether trying again can help.
public struct ServiceFailure: Error, Hashable, Sendable {
    /// Whether trying again can help.
    public enum Remedy: Hashable, Sendable {
        /// Trying again gives the same.
        case none
        /// Try again, no sooner than `after` from now if the service said so (`Retry-After`).
        case retry(after: Duration?)
    }

    /// A server that waits to take over from another one.
    public struct Standby: Hashable, Sendable {
        /// Where clients find the owner, if the standby knows: a URL.
        public let owner: String?

        /// Makes one.
        public init(owner: String?) { self.owner = owner }
    }

    /// The error for the user.
    public let error: SignalingError
    /// Whether trying again can help.
    public let remedy: Remedy
    /// Whether the attempt reached the service; false if nothing listens there, or it is unreachable.
    public let isBurden: Bool
    /// What the server says if it is a standby: another one owns the database.
    public let standby: Standby?

    /// Makes a failure.
    public init(_ error: SignalingError, remedy: Remedy, isBurden: Bool = true, standby: Standby? = nil) {
        self.error = error
        self.remedy = remedy
        self.isBurden = isBurden
        self.standby = standby
    }
}

extension ServiceFailure {
    /// The socket closed: code 4001 says that the token is no good, every other is worth another attempt.
    static func closed(_ code: UInt16?) -> ServiceFailure {
        let activity = "keep the connection to the service"
        switch code {
        case 4001:
            return ServiceFailure(
                SignalingError(
                    .tokenRejected, activity: activity, cause: "the service closed it, refusing the access token",
                    advice: "Log in again."),
                remedy: .none)
        case let code?:
            return ServiceFailure(
                SignalingError(.disconnected, activity: activity, cause: "the service closed it with code \(code)"),
                remedy: .retry(after: nil))
        case nil:
            return ServiceFailure(
                SignalingError(.disconnected, activity: activity, cause: "it broke without a close frame"),
                remedy: .retry(after: nil))
        }
    }

    /// A ping went unanswered.
    static func dead(after keepalive: Duration) -> ServiceFailure {
        ServiceFailure(
            SignalingError(
                .timedOut, activity: "keep the connection to the service",
                cause: "nothing was received for two keepalive intervals of \(keepalive)"),
            remedy: .retry(after: nil))
    }

    /// An attempt took too long.
    static func silent(for timeout: Duration, during step: ConnectionMachine.Attempt.Step) -> ServiceFailure {
        let activity =
            switch step {
            case .fetching: "fetch the connection's resources"
            case .opening: "open the WebSocket"
            case .starting: "start a session"
            case .waiting: "connect"
            }
        return ServiceFailure(
            SignalingError(
                .timedOut, activity: activity, cause: "no answer within \(timeout.text)",
                advice: "Check that the server runs and that no firewall between drops packets."),
            remedy: .retry(after: nil))
    }
}
