public import Core

/// A call's progress, as seen from outside.
public enum CallProgress: Hashable, Sendable {
    /// It is outgoing and unanswered.
    case calling
    /// It came in, and waits for an answer.
    case ringing
    /// It was answered, and cannot carry media yet.
    case connecting
    /// It has been able to carry media since then.
    case established(since: Instant)
    /// It has ended, except that the service has not confirmed everything yet.
    case ending
}
